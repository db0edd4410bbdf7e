"""A block that hides the future, judged in a language model made around it.

It takes vectors, and what is wrong in it shows in a model of a row of ids:
so it gets embeddings, positions, a last norm and logits.
"""

import inspect
from dataclasses import replace

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import BATCH, SEQ
from companion.contracts.discovery.kinds.calls import (
    NO_SOFTMAX,
    first,
    understood,
)
from companion.contracts.discovery.readings import said_by
from companion.contracts.discovery.sizes import LONG, VOCAB
from companion.contracts.discovery.verdict import (
    Check,
    Judged,
    Unjudged,
    in_time,
)
from companion.contracts.engine.component import title
from companion.contracts.engine.modules.around import Around
from companion.contracts.engine.modules.common import (
    module_kept,
    moved_from_zero,
)
from companion.contracts.engine.modules.taking_part import takes_part
from companion.contracts.engine.modules.waiting import WITH_AN_ARGUMENT
from companion.contracts.engine.report import Report
from companion.contracts.engine.scale import Heard
from companion.contracts.transformer.language_model import (
    past_the_sublayers,
    to_what_was_left,
)
from companion.contracts.transformer.residuals import (
    attending,
    in_lists,
    sub_layers,
)

__all__ = ["hiding_nothing", "judged_in_a_model"]

AROUND = "judged in a language model that was made around it"


class LanguageModel(Around):
    """A model of one block; of its parts only those of the block have names.

    Args:
        module: The block.
        width: How wide its vectors are.
        args: What it is called with, vectors first.
        more: An argument that gets the same vectors, if any.
    """

    def __init__(
        self, module: nn.Module, width: int, args: tuple, more: str = ""
    ):
        super().__init__(module)
        self.args, self.more = args, more
        if not has_layers(module, args):
            # Where the layers of a model are looked for.
            self.layers = nn.ModuleList([module])
        self.tokens = nn.Embedding(VOCAB, width)
        self.places = nn.Embedding(LONG, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token, for each position."""
        places = torch.arange(tokens.shape[-1])
        x = self.tokens(tokens) + self.places(places)
        more = {self.more: x} if self.more else {}
        states = self.module(*with_vectors(self.args, x), **more)
        return self.head(self.norm(first(states)))


def has_layers(module: nn.Module, args: tuple) -> bool:
    """Tell whether a block is a stack of layers, perhaps with maps around it.

    In a layer there are an attention and a network. In a head there is less.

    Args:
        module: The block.
        args: What it is called with.
    """
    attends = attending([module], lambda: module(*args))
    for name, layer in in_lists(module, attends):
        parts = [part for _, part in sub_layers(name, layer)]
        looking = sum(map(attends, parts))
        if len(parts) > MATRICES_OF_ATTENTION or 0 < looking < len(parts):
            return True
    return False


MATRICES_OF_ATTENTION = 4


def with_vectors(args: tuple, x: Tensor) -> tuple:
    """Return a call with other vectors, and masks as long as these."""
    return tuple(x if a is args[0] else as_long(a, x) for a in args)


def as_long(given: object, x: Tensor) -> object:
    """Return a mask that hides nothing, or all, for as many vectors.

    Args:
        given: What a block was called with for 2 sentences of 5; a mask has one
            number everywhere.
        x: The vectors.
    """
    if not isinstance(given, Tensor) or not given.numel():
        return given
    sizes = {BATCH: len(x), SEQ: x.shape[1]}
    shape = [sizes.get(n, n) for n in given.shape]
    return given.flatten()[0].expand(shape).contiguous()


class HidingNothing(Around):
    """Gives causal attention the masks that it wants, and these hide nothing.

    Args:
        module: It hides the future itself.
        args: What it is called with, vectors first.
    """

    def __init__(self, module: nn.Module, args: tuple):
        super().__init__(module, HID_NOTHING)
        self.args = args

    def forward(self, x: Tensor) -> object:
        """Call it with vectors and such masks."""
        return self.module(*with_vectors(self.args, x))


HID_NOTHING = "the mask that it wants hid nothing"


def hiding_nothing(module: nn.Module) -> nn.Module:
    """Return causal attention that gets masks which hide nothing."""
    hidden = bool(said_by(module))
    _, args = understood(module, [], hidden=hidden)
    return HidingNothing.named_as(module)(module, args)


def judged_in_a_model(module: nn.Module, check: Check) -> Judged:
    """Judge a block in a language model that is made around it.

    Raises:
        Unjudged: It cannot be called, or no softmax is heard in it.
    """
    with (
        module_kept(module),
        moved_from_zero([module]),
        torch.random.fork_rng([]),
        torch.no_grad(),
    ):
        module.eval()
        hidden = bool(said_by(module))
        width, args = in_time(lambda: understood(module, [], hidden=hidden))
        in_time(lambda: require_attention(module, args))
        torch.manual_seed(0)
        model = LanguageModel(module, width, args).eval()
        report = check("language_model", model)
        report = without_what_waits(report, module, width, args, check)
        report = with_names_of_the_block(report, type(module).__name__)
    if report.untried:
        raise Unjudged(report.failures[0].message)
    return Judged("language_model", report, (AROUND,))


OF_ITS_LAYERS = {title(past_the_sublayers), title(to_what_was_left)}


def with_names_of_the_block(report: Report, name: str) -> Report:
    """Name the parts of a block as it does, and itself by its class."""
    failures = [
        replace(
            f,
            message=f.message.replace("`layers.0.", "`")
            .replace("`layers.0`", f"`{name}`")
            .replace("`module.", "`"),
        )
        if f.contract in OF_ITS_LAYERS
        else f
        for f in report.failures
    ]
    return replace(report, failures=failures)


def require_attention(module: nn.Module, args: tuple) -> None:
    """Refuse a block in which no softmax is heard.

    Raises:
        Unjudged: So it is.
    """
    with Heard(BATCH) as heard:
        module(*args)
    if not heard.found:
        raise Unjudged(NO_SOFTMAX)


def without_what_waits(
    report: Report, module: nn.Module, width: int, args: tuple, check: Check
) -> Report:
    """Make a risk of weights that wait for an optional argument.

    Args:
        report: What was found of the model.
        module: The block.
        width: How wide its vectors are.
        args: What it is called with.
        check: ``companion.contracts.check``.
    """
    idle = [f for f in report.faults if f.contract == title(takes_part)]
    known = [*inspect.signature(module.forward).parameters.values()]
    optional = [one.name for one in known[len(args) :] if one.default is None]
    for name in optional if idle else ():
        other = LanguageModel(module, width, args, name).eval()
        found = check("language_model", other)
        if found.untried or title(takes_part) not in found.held:
            continue
        why = WITH_AN_ARGUMENT.format(name)
        return report.milder(idle.__contains__, why)
    return report
