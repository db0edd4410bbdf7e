"""Judge what takes vectors, and returns vectors."""

import contextlib
import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.contracts.discovery.arguments import BATCH, SEQ
from companion.contracts.discovery.kinds.calls import (
    CLOSE,
    LOOKS,
    NO_SOFTMAX,
    Called,
    a_decoder,
    alike,
    answer,
    first,
    has_triangle,
    hides,
    masks_are_told,
    movement,
    on_vectors,
    understood,
    widths,
)
from companion.contracts.discovery.kinds.nan import (
    held_nan,
    holds_nan,
    is_nan,
    with_its_nan_named,
    with_nan_by,
)
from companion.contracts.discovery.kinds.narrow import A_HEAD
from companion.contracts.discovery.kinds.norms import (
    is_a_norm,
    judged_norm,
)
from companion.contracts.discovery.kinds.recognition import (
    CALLED_ATTENTION,
    LOST_WITHIN,
    NAMED_ATTENTION,
    NAMED_CAUSAL,
    NAMED_INSIDE,
    NO_INPUT,
    Behind,
    adds_its_input,
    is_called_a_network,
    no_decoder,
)
from companion.contracts.discovery.published import SINK, another_kind
from companion.contracts.discovery.readings import are_ones, said_by, settled
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.discovery.verdict import (
    ATTENDING,
    Check,
    Judged,
    Unjudged,
    in_time,
)
from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.adopt import NO_MASK
from companion.contracts.engine.forms.other_ways import NONE
from companion.contracts.engine.forms.styles import MEMORY
from companion.contracts.engine.levels import FAULT, RISK
from companion.contracts.engine.modules.around import Around
from companion.contracts.engine.modules.common import module_kept
from companion.contracts.engine.modules.taking_part import OF_MODULES
from companion.contracts.engine.report import Failure, Report
from companion.contracts.engine.scale import (
    Heard,
    axis_heard,
)
from companion.contracts.engine.universal import STAYS_ON
from companion.contracts.multihead.causal_attention import sums_to_one
from companion.contracts.positions.rates import wrongly_measured
from companion.contracts.positions.sinusoidal import SINUSOIDAL, wrong_rates
from companion.contracts.transformer.encoder import (
    NORMED_BETWEEN,
    NORMED_STREAM,
    normalised,
)

__all__ = [
    "A_LAYER",
    "CONVOLUTION",
    "NO_PADDING",
    "Adding",
    "Resized",
    "convolves",
    "judged_as_causal",
    "judged_on_vectors",
    "of_nan",
    "of_positions",
    "require_no_other_kind",
]

STACK = title(normalised)
"""What a single layer of an encoder need not do."""


class Adding(Around):
    """Adds to vectors what a module makes of as many ids, whatever these are.

    Args:
        module: It returns a row for each position, and calls for no vectors.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Add the rows to ``x``."""
        ids = torch.full(x.shape[:2], NO_PADDING, device=x.device)
        return x + self.module(ids)


NO_PADDING = 2
"""An id that stands for padding nowhere: 0 or 1 does."""


class Resized(Around):
    """Lets 12-wide vectors into a module of another width.

    They are spread over its width, and what comes back is read the same way,
    so that a row still moves with whom it moved.

    Args:
        module: What is inside; it is called with the same arguments.
        width: How wide its vectors are.
        mask: How a mask that says True = may attend becomes its own.
    """

    def __init__(
        self,
        module: nn.Module,
        width: int,
        mask: Callable[[Tensor], Tensor] | None = None,
    ):
        super().__init__(module)
        self.width, self.mask = width, mask
        self.narrows = width > WIDTH  # Of what leaves, a contract asks this.
        if width != WIDTH:
            wide = draw(max(width, WIDTH), min(width, WIDTH), seed=5)
            ways = torch.linalg.qr(wide).Q
            ways = ways.mT if width > WIDTH else ways
            self.register_buffer("ways", ways * (width / WIDTH) ** 0.5)
        signature = inspect.signature(module.forward)

        def forward(*args: Any, **named: Any) -> Any:
            args = tuple(map(self.enter, args))
            named = {name: self.enter(x) for name, x in named.items()}
            return self.leave(self.module(*args, **named))

        forward.__signature__ = signature  # pyrefly: ignore
        self.forward = forward

    def enter(self, x: Any) -> Any:
        """Widen a vector, or turn a mask."""
        if not isinstance(x, Tensor):
            return x
        if x.dtype == torch.bool:
            return x if self.mask is None else self.mask(x)
        if x.is_floating_point() and x.shape[-1] == WIDTH != self.width:
            return x @ self.ways.to(x.dtype)
        return x

    def leave(self, x: Any) -> Any:
        """Narrow what comes back."""
        if isinstance(x, tuple | list):
            return type(x)(map(self.leave, x))
        if not isinstance(x, Tensor) or x.ndim < 2 or self.width == WIDTH:
            return x
        if x.is_floating_point() and x.shape[-1] == self.width:
            return x @ self.ways.mT.to(x.dtype) * (WIDTH / self.width)
        return x


class InPieces(Resized):
    """Lets 12-wide vectors into narrow positions, as more sentences.

    A sum is a sum of all numbers then, and not of those few that a narrow
    vector can hold. The last piece is filled up with zeros.
    """

    def enter(self, x: Any) -> Any:
        """Cut vectors into pieces, one behind the other along the batch."""
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        cut = x.shape[-1] == WIDTH
        return torch.cat(self.filled(x).split(self.width, -1)) if cut else x

    def filled(self, x: Tensor) -> Tensor:
        """Append zeros, until pieces of its width come out even."""
        return F.pad(x, (0, -WIDTH % self.width))

    def leave(self, x: Any) -> Any:
        """Put the pieces together again."""
        if isinstance(x, Tensor) and x.ndim > 1 and x.shape[-1] == self.width:
            pieces = x.chunk(-(-WIDTH // self.width))
            return torch.cat(pieces, -1)[..., :WIDTH]
        return x


def judged_on_vectors(
    module: nn.Module,
    check: Check,
    near: dict,
    width: int,
    args: tuple,
    told: Callable[[], str],
) -> Judged:
    """Judge a part that takes vectors."""
    module, component, said = no_decoder(module, width, args)
    if component in ("layer_norm", "rms_norm"):
        return judged_norm(module, component, said, check, near)

    def tried(
        mask: Callable[[Tensor], Tensor] | None = None, brief: bool = False
    ) -> Report:
        plain = width == WIDTH and mask is None
        narrow = component == "add_positions" and width < WIDTH
        resized = InPieces if narrow else Resized
        fn = module if plain else resized(module, width, mask)
        report = check(component, fn.eval(), brief=brief)
        return without_the_stack(component, report)

    if component in ("multihead", "encoder") and not masks_are_told(check):
        report, words = settled(
            tried(brief=True),
            lambda: tried(torch.logical_not, brief=True),
            None if are_ones(module) else lambda: tried(as_added, brief=True),
            lambda: said_by(module) or told(),
        )
    else:
        report, words = tried(), ""
    report = with_what_was_said(report, said)
    if component == "add_positions" and report.passed:
        wrong = in_time(lambda: rates_of(module, width, args))
        report = report.with_more(*wrong)
    best = Judged(component, report, tuple(filter(None, (said, words))))
    no_mask = takes_no_mask(module, best)
    alone = best.report.untried or no_mask
    if component == "multihead" and alone and has_triangle(module):
        return judged_as_causal(module, check, [width])
    if no_mask and in_time(
        lambda: is_to_be_causal(module, component, width, args)
    ):
        return judged_as_causal(module, check, [width])
    if no_mask and said not in (NAMED_ATTENTION, NAMED_INSIDE):
        in_time(lambda: require_attention(module, component, width, args))
        if component == "encoder":
            best = in_time(lambda: with_its_input(best, module, width, args))
    else:
        in_time(lambda: require_no_neighbours(report, module, width, args))
    if component == "feed_forward" and best.report.faults:
        require_a_network(module, best.report)
        best = less_its_input(module, width, args, best, check)
    return best if not best.report.untried else upside_down(best, tried, check)


def of_nan(module: nn.Module, width: int, check: Check) -> Judged | None:
    """Judge what makes NaN of all vectors, for a tensor that it holds is NaN.

    Args:
        module: What takes vectors.
        width: How wide they are.
        check: ``companion.contracts.check``.
    """
    if not holds_nan(module):
        return None
    weights = any(p.ndim > 1 for p in module.parameters())
    component = "encoder" if weights else "add_positions"
    fn = module if width == WIDTH else Resized(module, width)
    report = check(component, fn.eval(), brief=True)
    if not is_nan(report):
        return None
    held = held_nan(
        module, lambda: not is_nan(check(component, fn, brief=True))
    )
    report = with_nan_by(report, held)
    return Judged(component, report, (MAKES_NAN,)) if held else None


MAKES_NAN = "vectors go in, and NaN comes out"


def require_a_network(module: nn.Module, report: Report) -> None:
    """Refuse what has more linear maps than any feed-forward network.

    Raises:
        Unjudged: It has, its name does not say that it is one, and not only
            a weight is idle.
    """
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    deep = len(linear) > MOST_MAPS and of_positions(report)
    if deep and not is_called_a_network(module):
        raise Unjudged(f"{LOOKS} feed_forward, but {DEEPER}")


MOST_MAPS = 3
DEEPER = "it is a deeper network, of more than two or three linear maps"


EQUAL_ROWS = title(sums_to_one)


def with_what_was_said(report: Report, said: str) -> Report:
    """Add what goes with how a part was recognised, or make it milder."""
    if said.endswith(NO_INPUT) and not report.untried:
        return report.with_more(LOST)
    one, *others = report.faults or [None, None]
    if said == NAMED_CAUSAL and not others and one.contract == EQUAL_ROWS:
        return report.milder(lambda f: f is one, SINK)
    return report


def rates_of(module: nn.Module, width: int, args: tuple) -> list[Failure]:
    """Tell what is wrong with the rates of sinusoids that are added, if so.

    Args:
        module: What adds positions.
        width: How wide its vectors are.
        args: What it is called with.
    """
    table = added_rows(module, width, args)
    hint, *size = wrong_rates(table[:SEQ]), *table.shape
    kind = type(module.module if isinstance(module, Around) else module)
    measured = table if table[0].any() else table[1:]  # It may be padding's.
    broken = Broken(hint) if hint else wrongly_measured(measured, kind)
    if broken is None:
        return []
    return [
        Failure(
            "Sinusoids have the rates of the formula",
            broken.message,
            table,
            SINUSOIDAL.oracle(*size),
            SINUSOIDAL.axes,
            cause=broken.cause,
            level=broken.level or FAULT,
            why=broken.why,
        )
    ]


def added_rows(module: nn.Module, width: int, args: tuple) -> Tensor:
    """Return what is added at the first positions, at more if it takes more."""

    def rows(seq: int) -> Tensor:
        x = torch.zeros(BATCH, seq, width)
        return first(module(*(x if a is args[0] else a for a in args)))[0]

    try:
        return rows(2 * SEQ + 1)
    except Exception:
        return rows(SEQ)


def upside_down(
    judged: Judged, tried: Callable[..., Report], check: Check
) -> Judged:
    """Say that the user's word about masks is the wrong one, if it is.

    Raises:
        Unjudged: It could not be called, whatever True means.
    """
    if STAYS_ON in judged.report.failures[0].message:
        return judged  # So it was called, and this is what is wrong.
    told, hidden = masks_are_told(check), hides(check)
    if not (told and tried(torch.logical_not, brief=True).passed):
        raise Unjudged(
            f"{LOOKS} {judged.component}, by this: {judged.assumed[0]}. But it "
            f"could not be called as one. {judged.report.failures[0].message}"
        )
    does, word = ("shows", "shown") if hidden else ("hides", "hidden")
    said = f'If True {does} in your masks after all, {NONE} `mask="{word}"`.'
    assumed = (*judged.report.assumed, said)
    return replace(judged, report=replace(judged.report, assumed=assumed))


def require_attention(
    module: nn.Module, component: str, width: int, args: tuple
) -> None:
    """Refuse what takes no mask, and may mix positions in another way.

    Such as a convolution, a mixer, or attention within a window. All of these
    are right, and break what is true of attention.

    Raises:
        Unjudged: It is not certain that this is attention.
    """
    fn = on_vectors(module, args)

    x = draw(BATCH, SEQ, width, seed=7)
    with Heard(BATCH) as heard, Called() as called:
        fn(x)
    looks = f"{LOOKS} {component} that takes no mask"
    names = [type(part).__name__ for part in module.modules()]
    named = any(map(CAUSAL.search, names))
    if called.names & TRIANGLES or named or has_triangle(module):
        raise Unjudged(
            f"{looks}, and every position sees all. If a causal mask is meant "
            'to be at work, this is a fault: `check("causal_attention", …)` of '
            "the attention names it"
        )
    if not (heard.found or heard.lone):
        raise Unjudged(f"{looks}, but {NO_SOFTMAX}")
    same = fn(alike(x))
    mixed = not torch.allclose(same, alike(same), **CLOSE)
    # Where heads and positions are mixed up, alike ones get unlike rows.
    if not movement(fn, x).all() and not (mixed and component == "multihead"):
        raise Unjudged(f"{looks}, but not each position sees all of them")
    try:
        for seq in (2 * SEQ, 1):
            fn(draw(BATCH, seq, width, seed=7))
    except Exception as error:
        # A single word may be refused on purpose.
        if seq == 1 and isinstance(error, AssertionError):
            return
        raise Unjudged(
            f"{looks}, but it takes sentences of one length only. "
            f"{type(error).__name__}: {error}"[:240]
        ) from None


ANOTHER_KIND = (
    "`{}` is another kind of attention, by its name or its code, for which not "
    "all of these contracts hold"
)


def require_no_other_kind(module: nn.Module, judged: Judged) -> None:
    """Refuse faults of what bears the name of another kind of attention.

    Or of what may be given a memory, and was asked without one.

    Raises:
        Unjudged: It is so.
    """
    if judged.component not in ATTENDING or not of_positions(judged.report):
        return
    if name := another_kind(module):
        why = ANOTHER_KIND.format(name)
        raise Unjudged(f"{LOOKS} {judged.component}, but {why}")
    if judged.component == "encoder" and in_time(lambda: may_ask(module)):
        raise a_decoder(module)


def may_ask(module: nn.Module) -> bool:
    """Tell whether a memory that need not be given moves what is returned.

    One that is its second argument is looked for elsewhere.
    """
    asked = [*inspect.signature(module.forward).parameters][2:]
    names = [n for n in asked if re.fullmatch(MEMORY, n) and "mask" not in n]
    for width in widths(module) if names else []:
        x, other = (draw(BATCH, SEQ, width, seed=seed) for seed in (7, 9))
        with contextlib.suppress(Exception):
            alone = first(module(x.clone()))
            return any(
                not torch.equal(alone, first(module(x.clone(), **{n: other})))
                for n in names
            )
    return False


def require_no_neighbours(
    report: Report, module: nn.Module, width: int, args: tuple
) -> None:
    """Refuse what is wrong as attention, and may be right as something else.

    As a convolution, or as attention within a window, or dilated: of what sees
    only positions that are so far off, on either side, the contracts of
    attention are not true.

    Raises:
        Unjudged: It is so.
    """
    component = report.component
    if component not in ATTENDING or not of_positions(report):
        return

    fn = on_vectors(module, args)

    x = draw(BATCH, SEQ, width, seed=7)
    if convolves(module, lambda: fn(x)):
        raise Unjudged(f"{LOOKS} {component}, but {CONVOLUTION}")
    if not (is_to_attend(module) or weighs(lambda: fn(x))):
        raise Unjudged(f"{LOOKS} {component}, but {NO_SOFTMAX}")
    seen = movement(fn, x)
    place = torch.arange(SEQ)
    apart = (place[:, None] - place).abs()
    by_distance = torch.equal(seen, seen[0][apart])
    if by_distance and seen[0, 0] and 1 < seen[0].sum() < SEQ:
        near = seen[0].diff().sum() == 1
        which = WITHIN_A_WINDOW if near else AT_SOME_DISTANCES
        raise Unjudged(f"{LOOKS} {component}, but {which}")


def is_to_attend(module: nn.Module) -> bool:
    """Tell whether it, or a part of it, is called attention."""
    names = [type(part).__name__ for part in module.modules()]
    return any(map(A_HEAD.search, names))


def weighs(call: Callable[[], Any]) -> bool:
    """Tell whether a softmax is heard, or one that is written by hand."""
    with Heard(BATCH) as heard, Behind() as behind:
        call()
    return bool(heard.found) or heard.lone or behind.attentions > 0


WITHIN_A_WINDOW = "each position sees those near it only, as within a window"


AT_SOME_DISTANCES = (
    "each position sees those at some distances only, as in dilated attention"
)


def of_positions(report: Report) -> bool:
    """Tell whether a fault may come of how positions are mixed.

    A weight that takes no part does not.
    """
    others = {title(contract) for contract in OF_MODULES}
    return any(fault.contract not in others for fault in report.faults)


CONVOLUTION = "a convolution mixes its positions, and no softmax was heard"


def convolves(module: nn.Module, call: Callable[[], Any]) -> bool:
    """Tell whether a convolution mixes positions in it, and no attention.

    Args:
        module: The module.
        call: Calls it; None, if it raises.
    """
    convolutions = (nn.Conv1d, nn.Conv2d)
    wide = any(
        isinstance(part, convolutions) and max(part.kernel_size) > 1
        for part in module.modules()
    )
    if not wide:
        return False
    with Heard(BATCH) as heard:
        got = call()
    return got is not None and not heard.found


def with_its_input(
    judged: Judged, module: nn.Module, width: int, args: tuple
) -> Judged:
    """Add to what was found of a layer without a mask that its input is lost.

    Raises:
        Unjudged: It adds no input, and neither its name nor its norms say that
            it is a layer.
    """
    fn = on_vectors(module, args)

    if adds_its_input(module, fn, width):
        return judged
    norms = [*filter(is_a_norm, module.modules())]
    if len(norms) < 2 or not A_LAYER.fullmatch(type(module).__name__):
        looks = f"{LOOKS} {judged.component} that takes no mask"
        raise Unjudged(f"{looks}, but it adds no input")
    whole = judged.report.whole()
    lost = LOST_WITHIN.contract
    # What leaves is made of what was normed: of that this is the cause.
    others = [f for f in whole.failures if f.contract not in (lost, STACK)]
    report = replace(
        whole,
        failures=[*others, LOST_WITHIN],
        held=[name for name in whole.held if name != lost],
    )
    return replace(judged, report=report)


A_LAYER = re.compile(
    r"(?i)(\w*(encoder|transformer|attention|attn|self|vit|bert)_?)?(layer|block)"
)
"""What is called so is meant to add its input."""


CAUSAL = re.compile(r"(?i)causal|masked|decoder|gpt")
"""What is called so may have lost its mask."""


def takes_no_mask(module: nn.Module, judged: Judged) -> bool:
    """Tell whether it was called without a mask, or was not to get one."""
    if any(NO_MASK in said for said in judged.report.assumed):
        return True
    attends = judged.component in ("multihead", "encoder")
    return attends and bool(judged.report.faults) and only_keeps(module)


def only_keeps(module: nn.Module) -> bool:
    """Tell whether all that it takes beside vectors is a cache, by its name.

    That is no mask, whatever is sent in its place.
    """
    taken = list(inspect.signature(module.forward).parameters.values())[1:]
    named = all(OF_A_CACHE.fullmatch(x.name) for x in taken)
    return bool(taken) and named


OF_A_CACHE = re.compile(
    r"(?i)((kv_?|past_?|use_?)*cache\w*|layer(_?(idx|id|index|past))?|past\w*"
    r"|(start|cur|input|cache)_?(pos(ition)?s?|len)|pos(itions?)?(_?ids)?"
    r"|(freqs_?)?(cis|cos|sin)|rope\w*)"
)
"""What attention takes beside vectors that is no mask."""


TRIANGLES = {"tril", "triu"}
"""What causal masks are made by."""


def is_to_be_causal(
    module: nn.Module, component: str, width: int, args: tuple
) -> bool:
    """Tell whether attention that takes no mask is to hide the future.

    Its name says so, or a triangle of its own hides it but for one position.
    """
    fn = on_vectors(module, args)

    name = type(module).__name__
    named = CALLED_ATTENTION.search(name) and not adds_its_input(
        module, fn, width
    )
    if component != "multihead" and not named:
        return False
    if re.search(r"(?i)causal|masked", name):
        return True
    with Called() as called:
        seen = movement(fn, draw(BATCH, SEQ, width, seed=7))
    made = called.names & TRIANGLES or has_triangle(module, ahead=1)
    return bool(made) and torch.equal(seen, torch.ones_like(seen).tril(1))


def as_added(may: Tensor) -> Tensor:
    """Make of a mask one that is added to the scores."""
    return torch.zeros(may.shape).masked_fill(~may, -torch.inf)


def judged_as_causal(
    module: nn.Module, check: Check, hints: list[int]
) -> Judged:
    """Judge attention that gets a causal mask, whatever it makes of that.

    Raises:
        Unjudged: It cannot be called with vectors.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        width, _ = understood(module, hints, hidden=hides(check))
        fn = module if width == WIDTH else Resized(module, width)
        report = check("causal_attention", fn.eval())
        if is_nan(report):
            x = draw(BATCH, SEQ, WIDTH, seed=7)
            over = in_time(lambda: axis_heard(lambda: answer(fn, (x,)), BATCH))
            report = with_its_nan_named(report, report.failures[0].got, over)
    return Judged("causal_attention", report, ("positions see each other",))


LOST = Failure(
    "It adds its input before it norms the sum",
    "With all its weights at 0 nothing of the input is left: its norm comes "
    "last, and there is no residual inside. Is `x +` missing?",
    level=RISK,
    why="It is right if whoever calls it adds the input behind its norm.",
    cause="residual",
)


def without_the_stack(component: str, report: Report) -> Report:
    """Leave out what only the last layer of an encoder owes."""
    if component != "encoder":
        return report
    if len(report.faults) == 1 and not asked_of_a_layer(report.faults[0]):
        report = report.whole()  # What ended it is no fault here.
    owed = [f for f in report.failures if asked_of_a_layer(f)]
    later = report.rest

    def rest() -> Report:
        return without_the_stack(component, report.whole())

    return replace(report, failures=owed, rest=rest if later else None)


def asked_of_a_layer(failure: Failure) -> bool:
    """Tell whether a single layer, too, is to do better.

    It need not norm what leaves it, but its residual starts from what came in.
    """
    return failure.contract != STACK or failure.message in (
        NORMED_STREAM,
        NORMED_BETWEEN,
    )


def less_its_input(
    module: nn.Module, width: int, args: tuple, best: Judged, check: Check
) -> Judged:
    """Judge a network that adds its input, without that."""
    fn = on_vectors(module, args)

    # Less `x`, a network that never added it takes both signs, and more.
    if not in_time(lambda: adds_its_input(module, fn, width)):
        return best

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x: Tensor) -> Tensor:
            return first(self.module(x)) - x

    inner = Network().eval()
    taken = inner if width == WIDTH else Resized(inner, width)
    report = check("feed_forward", taken)
    if report.untried or report.faults:
        return best
    said = "it adds its input: judged without that"
    return Judged("feed_forward", report, (*best.assumed, said))
