"""Tell what a module is by what it takes and returns, and judge it as that."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.adapters import sequence_first, without_residual
from companion.contracts.discovery.keywords import called_by_position
from companion.contracts.discovery.limits import (
    limit,
    of_one_length,
    only_length,
)
from companion.contracts.discovery.make import WIDTH, NotBuilt, make
from companion.contracts.discovery.published import another_kind, by_convention
from companion.contracts.discovery.raising import fails, wanted
from companion.contracts.discovery.readings import said_by, settled
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.component import title
from companion.contracts.engine.families import is_linear_once_normed
from companion.contracts.engine.forms import (
    BY_NAMES,
    CONTEXT,
    MEMORY,
    NO_MASK,
    NONE,
    PAIRED,
)
from companion.contracts.engine.guard import Stop
from companion.contracts.engine.levels import FAULT, RISK
from companion.contracts.engine.modules import (
    gains_moved,
    is_lazy,
    module_kept,
    watched,
)
from companion.contracts.engine.report import Failure, Report
from companion.contracts.engine.runner import (
    EITHER_FIRST,
    WHICH_FIRST,
    finishes,
    stop,
    thread_for,
    too_long,
)
from companion.contracts.engine.scale import (
    FUSED,
    LINEAR,
    PRODUCTS,
    SOFTMAX,
    Heard,
    axis_heard,
)
from companion.contracts.engine.scale import WHOLE as WHOLE_ATTENTION
from companion.contracts.engine.weights import OF_MODULES
from companion.contracts.multihead.causal_attention import EXCHANGED, ITSELF
from companion.contracts.positions.rates import wrongly_measured
from companion.contracts.positions.sinusoidal import SINUSOIDAL, wrong_rates
from companion.contracts.positions.turned import hear_turning
from companion.contracts.transformer.encoder import NORMED_STREAM

__all__ = [
    "ADDED_ALONG_THE_FIRST",
    "LOOKS",
    "NOTHING",
    "NO_CALL",
    "SEES_ALL",
    "SEQUENCE_FIRST",
    "WHOLE",
    "Judged",
    "Raises",
    "Unjudged",
    "asks_first",
    "in_time",
    "judge",
    "judged_as_causal",
    "never_read",
    "require_no_other_kind",
    "understood",
    "widths",
]

BATCH, SEQ = 2, 5
LOOKS = "it looks like"
NO_CALL = "no usual call was understood"
WHOLE = "A whole language model of it can be judged"
SEES_ALL = "every row sees all tokens"
NOTHING = "in use it does nothing"
STACK = "What leaves the stack is normalised"
"""What a single layer of an encoder need not do."""
CLOSE = {"rtol": 1e-3, "atol": 1e-4}
Check = Callable[..., Report]


class Unjudged(Exception):
    """There is no contract for it; the message says why."""


class Raises(Unjudged):
    """It raises in every call that one of its kind takes.

    Args:
        why: What is raised.
    """

    def __init__(self, why: str):
        super().__init__(f"{why} {OTHERWISE}")
        self.why = why


OTHERWISE = "Only a risk: it is right if yours wants to be called otherwise."


class NoAnswer(Unjudged):
    """A call takes too long, or wants to end the process."""


@dataclass(frozen=True)
class Judged:
    """What something was taken for, and what came of it.

    Attributes:
        component: The name of the component.
        report: What the contracts say.
        assumed: How it was recognised, and how it was called, in sentences.
    """

    component: str
    report: Report
    assumed: tuple[str, ...] = ()


def judge(
    module: nn.Module,
    check: Check,
    near: dict | None = None,
    hints: list[int] | None = None,
    said: Callable[[], str] = str,
) -> Judged:
    """Find out what ``module`` is, and judge it as that.

    Args:
        module: It may be of any width.
        check: ``companion.contracts.check``, or a partial of it with what True
            means in masks; then no other reading is tried.
        near: What else stands in its file.
        hints: How wide its vectors may be, if it does not show.
        said: By what its model says that True hides in its masks, if it does.

    Returns:
        What it was taken for, and the report.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    if any(map(is_lazy, (*module.parameters(), *module.buffers()))):
        raise Unjudged(
            "its parameters have no shape yet: call it once, with a batch of "
            "yours, and then again"
        )
    with called_by_position(module) as named, gains_moved([module]) as told:
        judged = judged_as_it_is(module, check, near or {}, hints or [], said)
    require_no_other_kind(module, judged)
    more = (BY_NAMES if named else "", told.rstrip("."))
    return replace(
        judged,
        report=by_convention(module, judged.report),
        assumed=(*judged.assumed, *filter(None, more)),
    )


def judged_as_it_is(
    module: nn.Module,
    check: Check,
    near: dict,
    hints: list[int],
    said: Callable[[], str],
) -> Judged:
    """Do what ``judge`` does, with the numbers that a module has.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        try:
            module.eval()
        except Exception as error:
            raise Unjudged(f"`eval()` raised {raised_in(error)}") from None
        try:
            width, args = in_time(
                lambda: understood(module, hints, hidden=hides(check))
            )
        except NoAnswer:
            raise
        except Unjudged as reason:
            if not in_time(lambda: takes_ids(module)):
                raise
            why = reason
        else:
            return judged_on_vectors(module, check, near, width, args, said)
        return judged_on_ids(module, check, why)


SECONDS = 5.0
"""How long it may take to find out what something is."""

LATE = (
    f"it had not come back after {too_long(SECONDS)} and was stopped. Does a "
    "loop never end?"
)


def in_time(task: Callable[[], Any]) -> Any:
    """Return what ``task`` does, which calls somebody's code.

    Raises:
        NoAnswer: It takes too long, or wants to end the process.
    """
    done: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            with torch.no_grad():
                done.append((task(), None))
        except Stop:
            raise
        except BaseException as error:
            done.append((None, error))

    thread, finished, clock = thread_for(work)
    try:
        thread.start()
        finishes(finished, clock, SECONDS)
    finally:
        if not finished.is_set():
            stop(thread, finished)
    if not done:
        raise NoAnswer(LATE)
    [(found, error)] = done
    if error is None:
        return found
    if isinstance(error, Unjudged):
        raise error
    if isinstance(error, Exception):
        raise Unjudged(
            f"one call of it came back, and another raised {raised_in(error)}"
        )
    raise NoAnswer(f"a call of it raised {type(error).__name__}")


# Models: ids in, logits out.


NAMES_OF_IDS = re.compile(
    r"(?i)((input|token|src|tgt|trg|source|target)s?_?)?(ids|idxs?|indices)"
)
"""What only ids are called, and no vectors."""


def takes_ids(module: nn.Module) -> bool:
    """Tell whether something in it looks up ids, or they are asked for."""
    bags = any(isinstance(x, nn.EmbeddingBag) for x in module.modules())
    if bags or rows_for_ids(module):
        return True
    if any(map(NAMES_OF_IDS.fullmatch, wanted(module)[:1])):
        return True
    return answers_ids(module)


def answers_ids(module: nn.Module) -> bool:
    """Tell whether it answers one of the usual calls with ids."""
    ids = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    calls = [(ids,), (ids, None), (ids, ids), (ids, ids[:, 1:])]
    calls += [(ids, ids, None, None), (ids, None, None)]
    return any(answer(module, args) is not None for args in calls)


def rows_for_ids(module: nn.Module) -> list[int]:
    """List how many ids each embedding in it knows, PyTorch's or its own."""
    return [
        len(next(part.parameters()))
        for part in module.modules()
        if isinstance(part, nn.Embedding) or looks_up(part)
    ]


def looks_up(part: nn.Module) -> bool:
    """Tell whether it is an embedding that somebody wrote.

    It holds one table, has a row of it for each id, and takes no vectors.
    """
    own = [*part.parameters()]
    if len(own) != 1 or own[0].ndim != 2 or len(own[0]) < 2:
        return False
    ids = torch.tensor([[0, 1, 1]])
    found = answer(part, (ids,))
    vectors = torch.zeros(*ids.shape, len(own[0].mT))
    return (
        found is not None
        and found.shape == vectors.shape
        and answer(part, (vectors,)) is None
    )


def judged_on_ids(module: nn.Module, check: Check, vectors: Unjudged) -> Judged:
    """Judge a translator or a language model."""
    if in_time(lambda: ids_only_by_their_place(module)):
        if width := in_time(lambda: width_of_positions(module)):
            x = draw(BATCH, SEQ, width, seed=7)
            adding = Adding(module)
            judged = judged_on_vectors(adding, check, {}, width, (x,), str)
            return replace(judged, assumed=(ADDED_TO, *judged.assumed))
        raise Unjudged(
            "ids go in, and what comes out does not depend on which they are: "
            "a table of positions, for which `add_positions` and `sinusoidal` "
            "have contracts"
        )
    report = translates = None
    if most_arguments(module) > 1:
        report, words = on_ids("translation_model", module, check)
        said = ["two rows of ids go in, and logits for the second come out"]
        said += [words] if words else []
        if was_called(report):
            require_no_limit(module, report)
            return Judged("translation_model", report, tuple(said))
        translates = report
    report, words = on_ids("language_model", module, check)
    if nan := in_time(lambda: nan_for_any_ids(module, report)):
        return Judged("language_model", nan, (IDS_TO_LOGITS,))
    both = translates is not None and in_time(lambda: reads_both(module))
    if both or not was_called(report):
        raise not_called(module, vectors, translates, report)
    require_no_limit(module, report)
    if turned := along_the_first(module, check, report):
        report = either_first(report, turned)
    elif refused := why_unjudged(module, report, vectors):
        raise refused
    said = IDS_TO_LOGITS
    if in_time(lambda: returns_vectors(module)):
        said = STATES
    return Judged("language_model", report, tuple(filter(None, (said, words))))


def along_the_first(
    module: nn.Module, check: Check, report: Report
) -> Report | None:
    """Check a model with the sequence first, if a recurrent layer is so.

    One without ``batch_first`` is. Nothing, where that mends nothing.

    Args:
        module: It was called with the batch first.
        check: ``companion.contracts.check``.
        report: What was found then.
    """
    recurrent = [x for x in module.modules() if isinstance(x, nn.RNNBase)]
    if not report.faults or all(x.batch_first for x in recurrent):
        return None
    turned = check("language_model", sequence_first(module))
    left = {f.contract for f in turned.faults}
    mends = any(f.contract not in left for f in report.faults)
    return turned if was_called(turned) and mends else None


def either_first(report: Report, turned: Report) -> Report:
    """Make risks of faults that are none where the sequence comes first.

    Args:
        report: With the batch first.
        turned: With the sequence first.
    """
    left = {f.contract for f in turned.faults}
    kept = [
        replace(f, level=RISK, why=EITHER_FIRST, cause=WHICH_FIRST)
        if f.level == FAULT and f.contract not in left
        else f
        for f in report.failures
    ]
    return replace(report, failures=kept)


def why_unjudged(
    module: nn.Module, report: Report, vectors: Unjudged
) -> Unjudged | None:
    """Say why what is no language model, or may be none, is not judged.

    Args:
        module: It was called as a language model.
        report: What was found then.
        vectors: Why it cannot be called with vectors.
    """
    messages = " ".join(f.message for f in report.failures)
    if "its own token only" in messages and only_looks_up(module):
        if not [*module.parameters()]:
            return vectors  # There is no table in it.
        return Unjudged("it looks ids up, and no place sees another")
    if of_positions(report) and in_time(lambda: convolves_ids(module)):
        return Unjudged(f"{LOOKS} language_model, but {CONVOLUTION}")
    if report.faults and in_time(lambda: returns_states(module)):
        return Unjudged(f"ids go in, and {RECURRENT_STATES}")
    if "sees all tokens" in messages and not has_triangle(module):
        says = [
            f"ids go in, a row of numbers for each comes out, and {SEES_ALL}.",
            "If it predicts the next token, this is a fault: the causal mask "
            "is missing.",
            "If it fills gaps, or is an encoder, it is right.",
            'Only you know: `check("language_model", …)` judges it as the '
            "former",
        ]
        if name := in_time(lambda: unheard_mask(module)):
            says.insert(-1, UNHEARD.format(name))
        return Unjudged(" ".join(says))
    return None


RECURRENT_STATES = (
    "what a recurrent layer keeps comes out, with no row for each of them"
)


def returns_states(module: nn.Module) -> bool:
    """Tell whether a recurrent module returns what has no row for an id.

    Its first sizes are those of layers and sentences then, which may be the
    sizes of what went in by chance.
    """
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7]] * 3)
    found = answer(module, (ids,))
    recurrent = any(isinstance(x, nn.RNNBase) for x in module.modules())
    if not recurrent or found is None:
        return False
    return found.shape[:2] not in (ids.shape, ids.mT.shape)


def convolves_ids(module: nn.Module) -> bool:
    """Tell whether a convolution mixes the ids of a row, and no attention."""
    ids = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    return convolves(module, lambda: answer(module, (ids,)))


UNHEARD = (
    "Whatever `{}` hides, no number changes: is it handed on to the attention?"
)


def unheard_mask(module: nn.Module) -> str:
    """Return the name of a mask of padding that hides nothing, or nothing.

    It is the second argument; the usual shapes and types are tried.
    """
    names = [*inspect.signature(module.forward).parameters]
    if len(names) < 2 or "mask" not in names[1]:
        return ""
    ids = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    rest = [None] * (least_arguments(module) - 2)
    with module_kept(module), torch.no_grad():
        module.eval()
        unread = never_read(lambda mask: answer(module, (ids, mask, *rest)))
    return names[1] if unread else ""


def never_read(call: Callable[[Tensor], Tensor | None]) -> bool:
    """Tell whether masks of all usual shapes and types change nothing.

    Args:
        call: Returns what comes of a mask for 2 sentences of 5, or nothing if
            the mask is refused.
    """
    taken = False
    shown = torch.ones(BATCH, SEQ, dtype=torch.bool)
    shown[0, 1:3] = False
    pairs = shown[:, None].expand(BATCH, SEQ, SEQ)
    shapes = [shown, shown[:, None], shown[:, None, None]]
    shapes += [pairs[0], pairs, pairs[:, None]]
    for mask in shapes:
        for kind in (torch.bool, torch.long, torch.float):
            every = (mask, ~mask, torch.ones_like(mask))
            got = [call(one.to(kind)) for one in every]
            if any(x is None for x in got):
                continue
            if not all(torch.equal(x, got[0]) for x in got):
                return False
            taken = True
    return taken


IDS_TO_LOGITS = "a row of ids goes in, and logits for each of them come out"
NAN = (
    "So it is with any ids, and its weights are finite: does some row of the "
    "mask hide all, so that its softmax is 0/0? A causal mask keeps the "
    "diagonal: `tril()` says who may attend, and `triu(1)` what to hide."
)


def nan_for_any_ids(module: nn.Module, report: Report) -> Report | None:
    """Return a report on logits that are NaN whatever the ids; else nothing.

    Some ids may be padding, and weights that nobody has drawn may be anything.
    """
    got = report.failures[0].got if report.untried else None
    if got is None or got.isfinite().all():
        return None
    drawn = all(
        p.isfinite().all() and p.abs().max() < 1e4
        for p in module.parameters()
        if p.numel() and p.is_floating_point()
    )
    ids = torch.arange(1, 10)[:, None].expand(-1, SEQ)
    found = answer(module, ((ids + torch.arange(SEQ)) % 9 + 1,))
    if not drawn or found is None or found.ndim != 3:
        return None
    if not found.isnan().flatten(2).any(-1).all(0).any():
        return None
    over = axis_heard(lambda: answer(module, (ids,)), len(ids)) or NAN
    first, *others = report.failures
    told = replace(first, message=f"{first.message} {over}", cause=over)
    return replace(report, failures=[told, *others])


def not_called(
    module: nn.Module,
    vectors: Unjudged,
    translates: Report | None,
    report: Report,
) -> Unjudged:
    """Say why neither a translator nor a language model could be called."""
    if DECODER in str(vectors):
        return vectors
    two = [name for name in wanted(module) if "mask" not in name][1:]
    # What wants two rows of ids says nothing where it gets one.
    (failure, *_) = (translates if two else report).failures
    why = why_no_model(module, failure.message)
    own = [*widths(module), WIDTH][:1]
    raises = RAISED in why and not refuses(why)
    bad = raises and in_time(lambda: fails(module, own, ids=True))
    return Raises(why) if bad else Unjudged(why)


STATES = (
    "a row of ids goes in, and a vector for each of them comes out: below an "
    "output layer this is a language model, whose states were judged"
)


def returns_vectors(module: nn.Module) -> bool:
    """Tell whether what it returns is as wide as its table, not as long."""
    ids, past = torch.tensor([[1, 2, 3]]), torch.ones(3, 3).bool().tril()
    for mask in (None, past, past[None], past[None, None]):
        rest = [mask] * (least_arguments(module) - 1)
        found = answer(module, (ids, *rest))
        if found is not None and found.ndim == 3:
            rows = rows_for_ids(module)
            tables = [p for p in module.parameters() if len(p) in rows]
            known = {p.shape[-1] for p in tables if p.ndim == 2}
            return found.shape[-1] in known - {*rows}
    return False


def require_no_limit(module: nn.Module, report: Report) -> None:
    """Refuse a model whose memory, or one length, may be why it fails.

    Raises:
        Unjudged: It is so.
    """
    if why := in_time(lambda: limit(module, report)):
        raise Unjudged(why)


RAISED = "It raised "


def was_called(report: Report) -> bool:
    """Tell whether a call was understood, whatever is wrong with it."""
    shaped = "It returns a tensor of the right shape" in report.held
    return not report.untried or shaped


def reads_both(module: nn.Module) -> bool:
    """Tell whether it wants two rows of ids, and logits come of both.

    So do a translator's, and not those of a language model, which gets what
    is to follow for its loss. What says of which segment a token is comes
    with every token, and makes no translator.
    """
    two = [name for name in wanted(module) if "mask" not in name]
    if len(two) < 2 or re.search("(?i)seg|type", " ".join(two)):
        return False
    one = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    masks = [None] * (least_arguments(module) - 2)
    rows = (one, one), (one % 5 + 1, one), (one, one % 5 + 1)
    got = [answer(module, (*pair, *masks)) for pair in rows]
    if any(x is None or x.ndim < 3 for x in got):
        return False
    before, *after = got
    return not any(torch.equal(before, x) for x in after)


def on_ids(
    component: str, module: nn.Module, check: Check
) -> tuple[Report, str]:
    """Check a model, in either reading of the masks that it may be given."""
    # What its `forward` leaves out would be told as weights without a part.
    with never_called(module) as tops:
        answered = in_time(lambda: answers_ids(module))
    tried = tops if answered else []
    if found := with_top(component, module, check, tried):
        return found
    with never_called(module) as tops:
        report = check(component, module, brief=True)
    left = [name for name in tops if name not in tried and report.faults]
    return with_top(component, module, check, left) or in_either_reading(
        component, module, check, report
    )


def with_top(
    component: str, module: nn.Module, check: Check, tops: list[str]
) -> tuple[Report, str] | None:
    """Check a model with one of its parts on top, the first that fits.

    Args:
        component: What it is.
        module: The model.
        check: ``companion.contracts.check``.
        tops: The names of the parts.
    """
    for name in tops:
        topped = Topped(module, name)
        report = check(component, topped, brief=True)
        if was_called(report):
            whole, words = in_either_reading(component, topped, check, report)
            whole = with_own_names(whole)
            said = f"`{name}` stands on top, which its `forward` leaves out"
            return whole, "; ".join(filter(None, (said, words)))
    return None


def with_own_names(report: Report) -> Report:
    """Name the parts of a model as it does, and not as `Topped` does."""
    failures = [
        replace(one, message=one.message.replace("`module.", "`"))
        for one in report.failures
    ]
    return replace(report, failures=failures)


def in_either_reading(
    component: str, module: nn.Module, check: Check, report: Report
) -> tuple[Report, str]:
    """Settle what True means in the masks of a model, and how it is then."""
    given = any(re.search("masks? too", said) for said in report.assumed)
    if not given or masks_are_told(check):
        models = component == "language_model"
        if models and why_unjudged(module, report, Unjudged(NOTHING)):
            return report, ""  # Nobody asks for the rest.
        return report.whole(), ""
    return settled(
        report,
        lambda: check(component, module, mask="hidden", brief=True),
        said=lambda: said_by(module),
    )


@contextlib.contextmanager
def never_called(module: nn.Module) -> Iterator[list[str]]:
    """Name the parts of a module, and leave out those that are called.

    Args:
        module: A model.

    Yields:
        Those with a linear map, and none of the lists.
    """
    lists = nn.ModuleList | nn.ModuleDict
    parts = {
        part: name
        for name, part in module.named_children()
        if not isinstance(part, lists)
        and any(isinstance(x, nn.Linear) for x in part.modules())
    }
    left = [*parts.values()]

    def called(part: nn.Module, args: tuple, words: dict) -> None:
        if parts[part] in left:
            left.remove(parts[part])

    with watched(parts, called):
        yield left


class Topped(nn.Module):
    """A model, and one of its own parts on what it returns.

    Args:
        module: The model.
        name: The name of the part, its output layer.
    """

    def __init__(self, module: nn.Module, name: str):
        super().__init__()
        self.module = module

        def forward(*args: Any, **named: Any) -> Any:
            states = first(self.module(*args, **named))
            return getattr(self.module, name)(states)

        forward.__signature__ = inspect.signature(  # pyrefly: ignore
            module.forward
        )
        self.forward = forward
        self.train(module.training)


def ids_only_by_their_place(module: nn.Module) -> bool:
    """Tell whether a module turns ids into what is the same for all ids."""
    one = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    got, other = answer(module, (one,)), answer(module, (one % 5 + 1,))
    if got is None or other is None or got.ndim < 2:
        return False
    return torch.equal(got, other) and bool(got.isfinite().all())


ADDED_TO = "it returns positions alone, and these were added to vectors"


class Adding(nn.Module):
    """Adds to vectors what a module makes of as many ids, whatever these are.

    Args:
        module: It returns a row for each position, and calls for no vectors.
    """

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        """Add the rows to ``x``."""
        ids = torch.full(x.shape[:2], NO_PADDING, device=x.device)
        return x + self.module(ids)


NO_PADDING = 2
"""An id that stands for padding nowhere: 0 or 1 does."""


POSITIONS = re.compile(r"(?i)^pe$|pos|sinus")
"""What is called so returns positions that are added."""

OTHER_POSITIONS = re.compile(r"(?i)rot|rope|rel|alibi|bias")
"""What is called so returns numbers for distances, or angles."""


def width_of_positions(module: nn.Module) -> int:
    """Return how wide a table of positions is that a module returns, or 0.

    It is called so, and has a row for each position, the batch first.
    """
    name = type(module).__name__
    if OTHER_POSITIONS.search(name) or not POSITIONS.search(name):
        return 0
    got = module(torch.full((BATCH, SEQ), NO_PADDING))
    fits = isinstance(got, Tensor) and got.shape[:-1] in (
        (SEQ,),
        (1, SEQ),
        (BATCH, SEQ),
    )
    return got.shape[-1] if fits else 0


def only_looks_up(module: nn.Module) -> bool:
    """Tell whether a module is an embedding, and no model."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    recurrent = any(isinstance(x, nn.RNNBase) for x in module.modules())
    return len(matrices) <= 3 and not recurrent


NO_FORWARD = (
    "it has no `forward`. If it is called by methods, such as `encode` and "
    "`decode`, mark a function that calls them"
)


def why_no_model(module: nn.Module, message: str) -> str:
    """Say why ids cannot be sent into it."""
    if type(module).forward is nn.Module.forward:
        return NO_FORWARD
    rows = in_time(lambda: rows_for_ids(module))
    if rows and max(rows) < 10:
        return (
            f"its vocabulary has {max(rows)} tokens at most, and the contracts "
            "send ids up to 9: build it with 10 at least"
        )
    if length := in_time(lambda: only_length(module)):
        return of_one_length(length)
    return f"no call with ids was understood. {message}"


def has_triangle(module: nn.Module, ahead: int = 0) -> bool:
    """Tell whether a buffer is a causal mask: then it was meant to be one.

    Args:
        module: What may hold it.
        ahead: How many positions ahead it may be seen, if it is off by some.
    """
    for x in module.buffers():
        if x.ndim > 1 and x.shape[-1] == x.shape[-2] > 1:
            part = x.reshape(-1, *x.shape[-2:])[0] != 0
            if torch.equal(part, torch.ones_like(part).tril(ahead)) or (
                torch.equal(part, torch.ones_like(part).triu(1 + ahead))
            ):
                return True
    return False


# Parts: vectors in, vectors out.


class Resized(nn.Module):
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
        super().__init__()
        self.module, self.width, self.mask = module, width, mask
        self.narrows = width > WIDTH
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


DECODER = "a decoder"
SECOND = rf"{PAIRED}|context|xa"
"""What they call it where it stands second."""


def a_decoder(module: nn.Module) -> Unjudged:
    """Say that it is a decoder."""
    names = ", ".join(inspect.signature(module.forward).parameters)
    return Unjudged(
        f"it takes `{names}`: {DECODER}, which has no contracts of its own. "
        "The whole translator is judged with it"
    )


def is_decoder(module: nn.Module, width: int) -> bool:
    """Tell whether a module looks at itself, and at a memory.

    It adds to what comes in, which attention to a memory alone does not do.

    Args:
        module: What takes vectors.
        width: How wide they are.
    """
    names = wanted(module)[1:2]
    names = names or [*inspect.signature(module.forward).parameters][1:2]
    if not any(re.fullmatch(SECOND, name) for name in names):
        return False
    return any(
        looks_at_itself_too(module, width, swapped, turned)
        for swapped in (False, True)
        for turned in (False, True)
    )


def looks_at_itself_too(
    module: nn.Module, width: int, swapped: bool, turned: bool
) -> bool:
    """Tell whether one of two sequences looks at both, and is added.

    Args:
        module: What takes two.
        width: How wide their vectors are.
        swapped: Whether it is the second that looks.
        turned: Whether the sequence comes first.
    """
    more = [None] * (least_arguments(module) - 2)

    def call(own: Tensor, memory: Tensor) -> Any:
        two = (memory, own) if swapped else (own, memory)
        if not turned:
            return first(module(*two, *more))
        got = first(module(*(x.transpose(0, 1) for x in two), *more))
        return got.transpose(0, 1)

    x, memory, other = (draw(BATCH, SEQ, width, seed=s) for s in (7, 8, 9))
    try:
        got, moved = (call(x, y) for y in (memory, other))
        if got.shape != x.shape or torch.equal(got, moved):
            return False
        rows = movement(lambda v: call(v, memory), x)
        with module_kept(module):
            for weight in module.parameters():
                if weight.ndim > 1:
                    weight.data.zero_()
            left, after = (call(v, memory) for v in (x, other))
    except Exception:
        return False
    apart = rows & ~torch.eye(SEQ, dtype=torch.bool)
    return bool(apart.any()) and not torch.equal(left, after)


def masks_are_told(check: Check) -> bool:
    """Tell whether the user has said what True means in masks."""
    return "mask" in getattr(check, "keywords", {})


def hides(check: Check) -> bool:
    """Tell whether the user has said that True hides in masks."""
    return getattr(check, "keywords", {}).get("mask") == "hidden"


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
            lambda: tried(as_added, brief=True),
            lambda: said_by(module) or told(),
        )
    else:
        report, words = tried(), ""
    report = with_what_was_said(report, said)
    if component == "add_positions" and report.passed:
        wrong = in_time(lambda: rates_of(module, width, args))
        report = replace(report, failures=[*report.failures, *wrong])
    best = Judged(component, report, tuple(filter(None, (said, words))))
    no_mask = takes_no_mask(module, best)
    alone = best.report.untried or no_mask
    if component == "multihead" and alone and has_triangle(module):
        return judged_as_causal(module, check, [width])
    if no_mask and in_time(
        lambda: is_to_be_causal(module, component, width, args)
    ):
        return judged_as_causal(module, check, [width])
    if no_mask and said != NAMED_ATTENTION:
        in_time(lambda: require_attention(module, component, width, args))
        if component == "encoder":
            best = in_time(lambda: with_its_input(best, module, width, args))
    else:
        in_time(lambda: require_no_neighbours(report, module, width, args))
    if component == "feed_forward" and best.report.faults:
        best = less_its_input(module, width, args, best, check)
    return best if not best.report.untried else upside_down(best, tried, check)


LEARNED_PAIRS = (
    "what one position takes from another is learned for each pair of them, "
    "and is the same whatever stands there, as in a Synthesizer or a mixer: "
    "queries and keys, of which the contracts know, are not in it"
)


def pairs_are_learned(module: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether weights are parameters, and depend on nothing that comes.

    Then a parameter has two axes for positions, as many as there may be.
    """
    tables = [p for p in module.parameters() if p.ndim > 1]
    if not any(
        p.shape[-1] == p.shape[-2] >= SEQ and p.shape[-1] != width
        for p in tables
    ):
        return False

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    return in_time(lambda: is_affine(fn, draw(BATCH, SEQ, width, seed=7)))


NAMED_CAUSAL = "its name says so, and each position sees those before it"
EQUAL_ROWS = "Of equal positions every row gathers the same"
SINK = (
    "It is right with a sink that takes a share of each row, with 1 added to "
    "the sum of a softmax, or without a softmax, as in linear attention."
)


def with_what_was_said(report: Report, said: str) -> Report:
    """Add what goes with how a part was recognised, or make it milder."""
    if said.endswith(NO_INPUT) and not report.untried:
        return replace(report, failures=[*report.failures, LOST])
    one, *others = report.faults or [None, None]
    if said == NAMED_CAUSAL and not others and one.contract == EQUAL_ROWS:
        milder = replace(one, level=RISK, why=SINK)
        kept = [milder if f is one else f for f in report.failures]
        return replace(report, failures=kept)
    return report


NO_LAYERS = (
    "its list of layers is empty, and what is left of it is its norm: build it "
    "with layers"
)


def no_layers(part: nn.Module) -> bool:
    """Tell whether it is a list of modules in which there is none."""
    lists = isinstance(part, nn.ModuleList | nn.ModuleDict | nn.Sequential)
    return lists and not len(part)


def rates_of(module: nn.Module, width: int, args: tuple) -> list[Failure]:
    """Tell what is wrong with the rates of sinusoids that are added, if so.

    Args:
        module: What adds positions.
        width: How wide its vectors are.
        args: What it is called with.
    """
    table = added_rows(module, width, args)
    hint, *size = wrong_rates(table[:SEQ]), *table.shape
    kind = type(module.module if isinstance(module, Adding) else module)
    broken = Broken(hint) if hint else wrongly_measured(table, kind)
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

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    x = draw(BATCH, SEQ, width, seed=7)
    with Heard(BATCH) as heard, Triangles() as triangles:
        fn(x)
    looks = f"{LOOKS} {component} that takes no mask"
    names = [type(part).__name__ for part in module.modules()]
    named = any(map(CAUSAL.search, names))
    if triangles.made or named or has_triangle(module):
        raise Unjudged(
            f"{looks}, and every position sees all. If a causal mask is meant "
            'to be at work, this is a fault: `check("causal_attention", …)` of '
            "the attention names it"
        )
    if not heard.found:
        raise Unjudged(f"{looks}, but no softmax was heard in it")
    same = fn(alike(x))
    mixed = not torch.allclose(same, alike(same), **CLOSE)
    # Where heads and positions are mixed up, alike ones get unlike rows.
    if not movement(fn, x).all() and not (mixed and component == "multihead"):
        raise Unjudged(f"{looks}, but not each position sees all of them")
    try:
        for seq in (1, 2 * SEQ):
            fn(draw(BATCH, seq, width, seed=7))
    except Exception as error:
        raise Unjudged(
            f"{looks}, but it takes sentences of one length only. "
            f"{type(error).__name__}: {error}"[:240]
        ) from None


ANOTHER_KIND = (
    "`{}` says that it is another kind of attention, for which not all of "
    "these contracts hold"
)


def require_no_other_kind(module: nn.Module, judged: Judged) -> None:
    """Refuse faults of what bears the name of another kind of attention.

    Raises:
        Unjudged: It is so.
    """
    name = another_kind(module)
    if name and judged.component in MIXING and of_positions(judged.report):
        why = ANOTHER_KIND.format(name)
        raise Unjudged(f"{LOOKS} {judged.component}, but {why}")


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
    if component not in MIXING or not of_positions(report):
        return

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    x = draw(BATCH, SEQ, width, seed=7)
    if convolves(module, lambda: fn(x)):
        raise Unjudged(f"{LOOKS} {component}, but {CONVOLUTION}")
    seen = movement(fn, x)
    place = torch.arange(SEQ)
    apart = (place[:, None] - place).abs()
    by_distance = torch.equal(seen, seen[0][apart])
    if by_distance and seen[0, 0] and 1 < seen[0].sum() < SEQ:
        near = seen[0].diff().sum() == 1
        which = WITHIN_A_WINDOW if near else AT_SOME_DISTANCES
        raise Unjudged(f"{LOOKS} {component}, but {which}")


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

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    if adds_its_input(module, fn, width):
        return judged
    norms = [x for x in module.modules() if "norm" in type(x).__name__.lower()]
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


class Triangles(TorchFunctionMode):
    """Notes whether a call makes a triangle, as causal masks are made."""

    made = False

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.made |= getattr(func, "__name__", "") in ("tril", "triu")
        return func(*args, **(kwargs or {}))


def is_to_be_causal(
    module: nn.Module, component: str, width: int, args: tuple
) -> bool:
    """Tell whether attention that takes no mask is to hide the future.

    Its name says so, or a triangle of its own hides it but for one position.
    """

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    name = type(module).__name__
    named = CALLED_ATTENTION.search(name) and not adds_its_input(
        module, fn, width
    )
    if component != "multihead" and not named:
        return False
    if re.search(r"(?i)causal|masked", name):
        return True
    with Triangles() as triangles:
        seen = movement(fn, draw(BATCH, SEQ, width, seed=7))
    made = triangles.made or has_triangle(module, ahead=1)
    return made and torch.equal(seen, torch.ones_like(seen).tril(1))


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
        got = report.failures[0].got if report.untried else None
        if got is not None and not got.isfinite().all():
            x = draw(BATCH, SEQ, WIDTH, seed=7)
            over = in_time(lambda: axis_heard(lambda: answer(fn, (x,)), BATCH))
            report = with_its_nan_named(report, got, over)
    return Judged("causal_attention", report, ("positions see each other",))


def with_its_nan_named(report: Report, got: Tensor, over: str) -> Report:
    """Say what makes NaN: a row that sees nothing, or a softmax's axis.

    Args:
        report: What waits until it is finite.
        got: What came back, with NaN.
        over: Over which axis a softmax runs, if that is another one.
    """
    rows = got.isnan().any(-1) if got.ndim == 3 else got[:0]
    places = {tuple(row.nonzero().flatten().tolist()) for row in rows}
    last = ((got.shape[1] - 1,),)
    hint = over or {((0,),): ITSELF, last: EXCHANGED}.get((*places,))
    if not hint:
        return report
    first, *others = report.failures
    told = replace(first, message=f"{first.message} {hint}", cause=hint)
    return replace(report, failures=[told, *others])


def taken_for(
    module: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise a module, without its residual and norm if need be.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    try:
        component, said = in_time(lambda: recognised(module, width, args))
    except Unjudged as reason:
        inner = bare(module)
        if inner is None:
            raise
        try:
            return in_time(lambda: inside(module, inner, width, args))
        except Unjudged:
            raise reason from None
    inner = bare(module) if component == "encoder" else None
    if inner is None:
        return module, component, said
    try:
        # Attention with a norm in front, whose input is added elsewhere.
        if in_time(lambda: has_lost_its_input(inner, width, args)):
            return in_time(lambda: inside(module, inner, width, args))
    except Unjudged:
        pass
    return module, component, said


def inside(
    module: nn.Module, inner: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise what stands beside a norm, and perhaps before a residual.

    Args:
        module: The whole part.
        inner: It without its norm, and less its input.
        width: How wide its vectors are.
        args: What it is called with.

    Raises:
        Unjudged: It is neither attention nor a feed-forward network.
    """
    lost = has_lost_its_input(inner, width, args)
    taken = inner.yours if lost else inner
    component, said = recognised(taken, width, args)
    if component not in ("multihead", "feed_forward", "causal_attention"):
        raise Unjudged(f"beside its norm {LOOKS} {component}")
    said = f"{said}; judged without the norm inside"
    x = draw(BATCH, SEQ, width, seed=9)
    own = (x if a is args[0] else a for a in args)
    if not lost:
        said += ", and less its input"
    elif kind_of_norm(first(module(*own))):
        said += NO_INPUT
    return taken, component, said


NO_INPUT = ", and adds no input"
LOST = Failure(
    "It adds its input before it norms the sum",
    "With all its weights at 0 nothing of the input is left: its norm comes "
    "last, and there is no residual inside. Is `x +` missing?",
    level=RISK,
    why="It is right if whoever calls it adds the input behind its norm.",
    cause="residual",
)


LOST_WITHIN = Failure(
    "A path leads past every sub-layer",
    "With all its matrices at 0 nothing of the input is left. Is a residual "
    "connection missing, `x + attend(norm(x))`?",
    level=RISK,
    why="It is right if whoever calls it adds the input.",
    cause="residual",
)


def has_lost_its_input(inner: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether nothing is left of the input where all weights are 0.

    Args:
        inner: A part without its norm, and less its input.
        width: How wide its vectors are.
        args: What it is called with.
    """
    with module_kept(inner):
        for weight in inner.parameters():
            weight.data.zero_()
        x = draw(BATCH, SEQ, width, seed=9)
        own = (x if a is args[0] else a for a in args)
        return torch.allclose(first(inner(*own)), -x, **CLOSE)


def bare(module: nn.Module) -> nn.Module | None:
    """Return a part without the one norm inside, and less its input."""
    norms = [
        name
        for name, part in module.named_children()
        if "norm" in type(part).__name__.lower()
    ]
    return without_residual(module, norms[0]) if len(norms) == 1 else None


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
    return failure.contract != STACK or failure.message == NORMED_STREAM


def less_its_input(
    module: nn.Module, width: int, args: tuple, best: Judged, check: Check
) -> Judged:
    """Judge a network that adds its input, without that."""

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

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


def understood(
    module: nn.Module, hints: list[int], *, hidden: bool = False
) -> tuple[int, tuple]:
    """Find the width of a module, and a call that it takes.

    Args:
        module: The module.
        hints: How wide its vectors may be, if it does not show.
        hidden: Whether True is known to hide in its masks.

    Raises:
        Unjudged: None of the usual calls is taken.
    """
    blind, said, reshaped = None, [], False
    for width in dict.fromkeys([*widths(module), *hints, WIDTH]):
        x = draw(BATCH, SEQ, width, seed=3)
        for args in calls(module, x, hidden=hidden):
            try:
                got = first(module(*args))
            except Exception as error:
                said.append((args, f"It raised {raised_in(error)}"))
                continue
            if isinstance(got, Tensor) and got.shape == x.shape:
                if sees(module, args, got):
                    return width, args
                blind = blind or (width, args)
            else:
                reshaped |= isinstance(got, Tensor)
                said.append((args, returned(got, x)))
    if blind is not None:
        return blind
    names = list(inspect.signature(module.forward).parameters)
    own = [*widths(module), *hints, WIDTH]
    named = any(re.fullmatch(MEMORY, name) for name in names)
    # What comes back without that is no decoder, but of another width.
    wants = any(re.fullmatch(MEMORY, name) for name in wanted(module))
    named &= wants or not reshaped
    if named or any(is_decoder(module, width) for width in own):
        raise a_decoder(module)
    plain = of_plain(said)
    raises = said and all(text.startswith(RAISED) for _, text in said)
    bad = raises and not refuses(plain) and fails(module, own)
    reason = f"{NO_CALL}, from `{', '.join(names)}`. {plain}".rstrip()
    raise Raises(reason) if bad else Unjudged(reason)


def refuses(said: str) -> bool:
    """Tell whether what was raised says that something else is wanted.

    A number stands where no name or default says what is meant.
    """
    number = re.search(r"'(int|bool)' object (is not|has no|does not)", said)
    return f"{RAISED}AssertionError" in said or bool(number)


def returned(got: object, x: Tensor) -> str:
    """Tell what came back that is not as `x` is."""
    if isinstance(got, Tensor):
        return f"It returned shape {tuple(got.shape)} for {tuple(x.shape)}."
    what = "None" if got is None else f"a {type(got).__name__}"
    return f"It returned {what}."


def of_plain(said: list[tuple[tuple, str]]) -> str:
    """Choose what the plain call did: the shortest, and without None.

    Of several widths it is the one with which it came back.
    """
    plain = [one for one in said if not any(a is None for a in one[0])] or said
    short = [text for args, text in plain if len(args) == len(plain[0][0])]
    back = [text for text in short if not text.startswith(RAISED)]
    return next(iter([*back, *short]), "")


def widths(module: nn.Module) -> list[int]:
    """List how wide the vectors of a module may be, likely ones first."""
    own = [x for x in module.parameters() if not is_lazy(x)]
    found = [x.shape[-1] for x in own if x.ndim]
    tables = [x for x in module.buffers() if not is_lazy(x)]
    found += [x.shape[-1] for x in tables if x.ndim > 1]
    return list(dict.fromkeys(n for n in found if n > 1))[:4]


def sees(module: nn.Module, args: tuple, got: Tensor) -> bool:
    """Tell whether a mask that is given lets anything be seen.

    Where it hides all, what comes back is NaN, or the same for any vectors.
    """
    x, *more = args
    if not any(isinstance(a, Tensor) and a.dtype == torch.bool for a in more):
        return True
    y = draw(*x.shape, seed=4)
    other = first(module(*(y if a is x else a for a in args)))
    return bool(got.isfinite().all()) and not torch.equal(got, other)


def calls(
    module: nn.Module, x: Tensor, *, hidden: bool = False
) -> Iterator[tuple]:
    """List the usual calls that fit the number of its arguments.

    A mask lets all be seen, first as the user has said, then otherwise.
    """
    most, least = most_arguments(module), least_arguments(module)
    if {name.lower() for name in wanted(module)} >= OF_A_PICTURE:
        return
    may = torch.full((1, 1, SEQ, SEQ), not hidden)
    own = (may[0].expand(BATCH, SEQ, SEQ),)
    keys = (may[0, 0, :1].expand(BATCH, SEQ),)
    other, no_keys = (~own[0],), (~keys[0],)
    for args in (
        (x,),
        (x, None),
        (x, x, x),
        (x, x, x, None),
        (x, None, None),
        (x, may),
        (x, ~may),
        (x, may[0, 0]),
        (x, ~may[0, 0]),
        (x, x, x, may),
        (x, x, x, ~may),
        (x, x, x, may[0, 0]),
        (x, x, x, ~may[0, 0]),
        (x, x, x, None, None),
        (x, 0),
        (x, *own),
        (x, *other),
        (x, x, x, *own),
        (x, x, x, *other),
        (x, *keys),
        (x, *no_keys),
        (x, x, x, *keys),
        (x, x, x, *no_keys),
    ):
        if least <= len(args) <= most:
            yield args
    if asks_another(module, x.shape[-1]):
        for args in ((x, x), (x, x, None), (x, x, own[0]), (x, x, other[0])):
            if least <= len(args) <= most:
                yield args


OF_A_PICTURE = {"h", "w"}
"""What a module wants that folds its positions into a picture."""


def asks_another(module: nn.Module, width: int) -> bool:
    """Tell whether two sequences go in, of which one asks the other.

    A decoder does that too, and looks at itself besides.
    """
    (second,) = wanted(module)[1:2] or ("",)
    if re.fullmatch(CONTEXT, second):
        return True
    required = least_arguments(module) > 1 and "mask" not in second
    known = required and re.fullmatch(PAIRED, second)
    return bool(known) and not is_decoder(module, width)


def most_arguments(module: nn.Module) -> int:
    """Count what its forward takes by position at most."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 9
    return sum(one.kind is not one.KEYWORD_ONLY for one in parameters)


def least_arguments(module: nn.Module) -> int:
    """Count what its forward wants."""
    parameters = inspect.signature(module.forward).parameters.values()
    return sum(
        one.default is one.empty
        and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        for one in parameters
    )


def first(result: object) -> object:
    """Return the output, where it comes with weights."""
    while isinstance(result, tuple | list) and result:
        result = result[0]
    return result


def answer(module: nn.Module, args: tuple) -> Tensor | None:
    """Return what a module answers, or nothing if it raises."""
    if not least_arguments(module) <= len(args) <= most_arguments(module):
        return None
    try:
        got = first(module(*args))
    except Exception:
        return None
    return got if isinstance(got, Tensor) and got.is_floating_point() else None


def recognised(module: nn.Module, width: int, args: tuple) -> tuple[str, str]:
    """Tell which component a module is, and by what.

    Raises:
        Unjudged: There are no contracts for what it does.
    """

    def fn(x: Tensor) -> Tensor:
        own = (x.clone() if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    x = draw(BATCH, SEQ, width, seed=7)
    if seems := sequence_seems_first(fn, x):
        raise Unjudged(seems + by_default(module))
    moved = movement(fn, x)
    if torch.equal(moved, torch.eye(SEQ, dtype=torch.bool)):
        return each_alone(module, fn, x)
    if not moved.diagonal().all():
        if moved.any():
            return "multihead", "positions see each other in it"
        raise Unjudged(NOTHING_COUNTS)
    same = alike(x)
    # Where all positions are alike, weights that sum to 1 do not show.
    averages = is_affine(lambda v: fn(alike(v)), same)
    if not moved.triu(1).any():
        if averages and "causal_attention" in known():
            return "causal_attention", "each position sees those before it"
        raise Unjudged(
            "each position sees itself and what stands before it: the mask is "
            f"built in. {WHOLE}"
        )
    if len(args) > 2 and args[1] is args[0] and not averages:
        raise Unjudged(THREE)
    if averages:
        said = "positions see each other, and alike ones are mapped linearly"
        return "multihead", said
    return "encoder", "positions see each other, and each is changed further"


NOTHING_COUNTS = "what it returns does not depend on what goes in"
ZERO_GAIN = "its name says so, and its gain is 0"
NO_GAIN = Failure(
    "Its gain lets something through",
    "Its gain is 0 as it is built, so that nothing of the input is left: does "
    "it begin at 1, or is `1 +` missing where it multiplies?",
    level=RISK,
    why="It is right if a branch is to begin with nothing, as in Swin v2.",
    cause="gain",
)
THREE = "it takes three vectors, and is no attention alone"
ATTENTION = re.compile(r"(?i)((multi_?head(ed)?|self|scaled_?dot_?product)*"
                       r"_?attention|(multi_?|attention_?)?heads|multi_?head"
                       r"|mha|mhsa)")  # fmt: skip
"""What attention is called, also if its weights are no averages."""


def alike(x: Tensor) -> Tensor:
    """Put what stands first everywhere, in memory of its own for `view`."""
    return x[:, :1].expand_as(x).contiguous()


SEQUENCE_FIRST = (
    "what stands first in its tensors is what it looks over: one place sees "
    "the same place of other sentences, and nothing else. If the sequence "
    "comes first in yours, it may be right: judge "
    "`adapters.sequence_first(…)` of it. If the batch comes first, this is a "
    "fault"
)


ADDED_ALONG_THE_FIRST = (
    "what it adds differs along what stands first in its tensors, and nowhere "
    "else. If the sequence comes first in yours, it may be right: judge "
    "`adapters.sequence_first(…)` of it. If the batch comes first, this is a "
    "fault"
)


def by_default(module: nn.Module) -> str:
    """Say where `batch_first` was left at False, which is its default."""
    for name, part in module.named_modules():
        named = inspect.signature(type(part).__init__).parameters
        one = named.get("batch_first")
        parts = part.modules()
        if one is None or one.default is not False:
            continue
        if not any(getattr(x, "batch_first", False) for x in parts):
            where = f" in `{name}` ({type(part).__name__})" if name else ""
            return (
                f". `batch_first` is False{where}, as by default: with "
                "`batch_first=True` the batch comes first"
            )
    return ""


def asks_first(module: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether its first axis seems to be that of the positions.

    Args:
        module: What takes vectors.
        width: How wide they are.
        args: What it is called with.
    """

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    return bool(sequence_seems_first(fn, draw(BATCH, SEQ, width, seed=7)))


def sequence_seems_first(fn: Callable[[Tensor], Tensor], x: Tensor) -> str:
    """Say how the first axis is taken for the positions, if it seems so.

    Either as attention looks over positions, or as positions are added.
    """
    others = draw(*x.shape, seed=11)  # A norm undoes what is a mere multiple.
    try:
        got, other = fn(x), fn(torch.cat([x[:1], others[1:]]))
        # With a causal mask the first place sees itself alone.
        later = fn(torch.cat([others[:1], x[1:]]))
        lone = fn(x[:, :1])
        added = got - x
        twice = fn(2 * x) - 2 * x
    except Exception:
        return ""
    if got.shape != x.shape or lone.shape != x[:, :1].shape:
        return ""
    first_still = torch.allclose(got[:1], other[:1], **CLOSE)
    if not (first_still and torch.allclose(got[-1:], later[-1:], **CLOSE)):
        alone = torch.allclose(lone, got[:, :1], **CLOSE)
        return SEQUENCE_FIRST if alone else ""
    same = added[:, :1, :].expand_as(added)
    apart = not torch.allclose(added[0], added[1], **CLOSE)
    constant = torch.allclose(added, twice, **CLOSE)
    if constant and apart and torch.allclose(added, same, **CLOSE):
        return ADDED_ALONG_THE_FIRST
    return ""


def known() -> set[str]:
    """Return the names of the components."""
    from companion.contracts import COMPONENTS

    return set(COMPONENTS)


def each_alone(
    module: nn.Module, fn: Callable[[Tensor], Tensor], x: Tensor
) -> tuple[str, str]:
    """Tell what a module is that treats each position alone."""
    got = fn(x)
    equal = fn(alike(x))
    if not torch.allclose(equal, alike(equal), **CLOSE):
        return at_its_place(fn, x)
    if norm := kind_of_norm(got):
        way = x - x.mean(-1, keepdim=True) if norm[0] == "layer_norm" else x
        along = torch.cosine_similarity(got, way, -1).min() > 0.98
        if along and torch.allclose(fn(3 * x), got, rtol=0.02, atol=0.02):
            return norm
        raise Unjudged(MORE_THAN_A_NORM)
    if torch.equal(got, x):
        raise Unjudged(NOTHING)
    if is_affine(fn, x):
        raise Unjudged(LINEAR_MAP)
    said = "each position is changed alone, and not linearly"
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    matrices = [p for p in module.parameters() if p.ndim > 1]
    if len(linear) < 2 and len(matrices) < 2:
        raise Unjudged(f"{said}: {NO_NETWORK}")
    if is_linear_once_normed(fn, x, draw(*x.shape, seed=41)):
        raise Unjudged(f"behind a norm {LINEAR_MAP}")
    return "feed_forward", said


MORE_THAN_A_NORM = "it ends with a norm, and is more than a norm"


def at_its_place(fn: Callable[[Tensor], Tensor], x: Tensor) -> tuple[str, str]:
    """Tell what a module is that changes each position by where it stands.

    It may multiply by √d_model first, which an embedding left to it.
    """
    for factor in (1.0, WIDTH**0.5):
        added = fn(x) - factor * x
        if torch.allclose(added, fn(2 * x) - factor * 2 * x, **CLOSE):
            if torch.allclose(added[:, 1:, 1:], added[:, :-1, :-1], **CLOSE):
                raise Unjudged(BY_DISTANCE)
            return "add_positions", ITS_OWN_VECTOR
    raise Unjudged(f"each position is changed alone, and {BY_ITS_PLACE}")


def is_a_norm(part: nn.Module) -> bool:
    """Tell whether a part is a norm, as its name says."""
    return "norm" in type(part).__name__.lower()


ITS_OWN_VECTOR = "to each position its own vector is added"
BY_DISTANCE = (
    "what it adds in a row and a column depends on how far apart these are, "
    "and on nothing else: so do the biases that are added to scores, as in "
    "ALiBi and T5, and there are no contracts for those"
)
BY_ITS_PLACE = (
    "by its place, but not by a sum: are features reordered, or projected? "
    "What it makes of zeros has contracts if that is a table: mark "
    "`adapters.table_of(make)` as `sinusoidal`, where `make` takes a width, or "
    "`adapters.added_from(lambda x: yours(0 * x))` as `add_positions`"
)
"""What to do about positions that come to the features in another way."""


def kind_of_norm(got: Tensor) -> tuple[str, str] | None:
    """Tell which norm returns such vectors, before it has learned."""
    mean, power = got.mean(-1), got.square().mean(-1)
    one = torch.ones_like(power)
    # One that divides by n - 1 is a norm too, and its contracts say so.
    size = torch.allclose(power, one, atol=1.5 / got.shape[-1])
    if not size:
        return None
    if torch.allclose(mean, 0 * one, atol=1e-3):
        return "layer_norm", "each vector has mean 0 and variance 1"
    if torch.allclose(power, one, atol=1e-3):
        return "rms_norm", "each vector has mean square 1"
    return None


def movement(fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Map which row moves with which position, in any sentence."""
    columns = []
    for place in range(SEQ):
        changed = x.clone()
        changed[:, place] += draw(BATCH, x.shape[-1], seed=31 + place)
        gap = (fn(changed) - fn(x)).abs().nan_to_num(0)
        columns.append(gap.flatten(2).amax((0, -1)))
    moved = torch.stack(columns, -1)
    return moved > 1e-5 * moved.max()


def is_affine(fn: Callable[[Tensor], Tensor], x: Tensor) -> bool:
    """Tell whether a straight line is mapped to a straight line."""
    y = draw(*x.shape, seed=41)
    halfway = fn((x + y) / 2)
    return torch.allclose(halfway, (fn(x) + fn(y)) / 2, **CLOSE)


# Norms: gain and bias are inside, and the contracts put their own in.

NO_NETWORK = "this is no feed-forward network"
NORM = re.compile(r"(?i)\w*(layer|rms)_?norm(ali[sz]ation)?|rms|ln")
"""What norms are called, also those that norm nothing."""
ELSEWHERE = re.compile(r"(?i)chan|spat|time|temp|group|batch|instance")
"""What is called so norms over other axes on purpose."""


def named_or_taken(
    module: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise a module; what norms nothing is a norm if it is called one.

    So is attention whose weights are no averages.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    name = type(module).__name__
    by_name = module, "multihead", "its name says so"
    try:
        taken = taken_for(module, width, args)
        if taken[1] in MIXING and is_called_a_norm(module):
            return by_its_name(module, OVER_OTHERS)
        if taken[1] == "feed_forward" and attends_to_no_position(module, args):
            return module, "multihead", NAMED_ATTENTION
        lone = taken[1] == "encoder"
        if lone and bare(module) is None and ATTENTION.fullmatch(name):
            return by_name
        if lone and "attention" in name.lower():
            alone = in_time(lambda: attends_alone(module, width, args))
            taken = (module, "multihead", alone) if alone else taken
    except Unjudged as reason:
        if found := by_name_alone(module, width, args, str(reason)):
            return found
        if THREE in str(reason) and ATTENTION.fullmatch(name):
            return by_name
        raise
    return taken


NAMED_ATTENTION = "its name says so, and a softmax weighs in it"


def attends_to_no_position(module: nn.Module, args: tuple) -> bool:
    """Tell whether what is called attention attends, and not to positions."""
    if not CALLED_ATTENTION.search(type(module).__name__):
        return False

    def weighs() -> bool:
        with Heard(BATCH) as heard:
            module(*args)
        return bool(heard.found)

    return in_time(weighs)


def by_name_alone(
    module: nn.Module, width: int, args: tuple, reason: str
) -> tuple[nn.Module, str, str] | None:
    """Take a module for what its name says, where what it does tells nothing.

    Args:
        module: What takes vectors.
        width: How wide they are.
        args: What it is called with.
        reason: Why it was not recognised.
    """
    if SEQUENCE_FIRST in reason and is_called_a_norm(module):
        return by_its_name(module, OVER_OTHERS)
    gains = [p for p in module.parameters() if not p.any()]
    if reason == NOTHING_COUNTS and gains and is_called_a_norm(module):
        return by_its_name(module, ZERO_GAIN)
    if NO_NETWORK in reason and NORM.fullmatch(type(module).__name__):
        return by_its_name(module, "its name says so, and it norms nothing")
    return by_name_of_a_part(module, width, args, reason)


def by_name_of_a_part(
    module: nn.Module, width: int, args: tuple, reason: str
) -> tuple[nn.Module, str, str] | None:
    """Take a module that is no norm for what its name says, likewise."""
    if LINEAR_MAP in reason and is_called_a_network(module):
        return module, "feed_forward", "its name says so"
    if LINEAR_MAP in reason and attends_to_no_position(module, args):
        return module, "multihead", NAMED_ATTENTION
    if WHOLE in reason and in_time(
        lambda: is_attention_alone(module, width, args)
    ):
        return module, "causal_attention", NAMED_CAUSAL
    return None


LINEAR_MAP = "it is a linear map"
NETWORK = re.compile(
    r"(?i)(\w*_)?(gated|swi|ge|(position|point|pos)_?wise)*_?"
    r"(mlp|ffn|feed_?forward)(_?net(work)?)?(_?(layer|block))?"
)
"""What feed-forward networks are called, also without an activation."""
CALLED_ATTENTION = re.compile(r"(?i)attention|attn|mha|mhsa")


def is_called_a_network(module: nn.Module) -> bool:
    """Tell whether it is a network by its name, and by its two matrices."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    named = NETWORK.fullmatch(type(module).__name__)
    return bool(named) and len(matrices) > 1


def is_attention_alone(module: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether what hides the future is attention, and adds no input.

    By its name. Of equal positions it makes equal rows, unless it turns its
    values, or positions and heads are mixed up; convolutions and positions
    that are added inside have good reasons to make them unlike.
    """
    if not CALLED_ATTENTION.search(type(module).__name__):
        return False

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    if adds_its_input(module, fn, width):
        return False
    same = fn(alike(draw(BATCH, SEQ, width, seed=7)))
    if torch.allclose(same, alike(same), **CLOSE):
        return True
    long = draw(BATCH, TURNED_SEQ, width, seed=7)
    if hear_turning(lambda: fn(alike(long)), TURNED_SEQ):
        return True
    linear = {id(m.weight) for m in module.modules() if type(m) is nn.Linear}
    others = [p for p in module.parameters() if id(p) not in linear]
    tables = [b for b in module.buffers() if b.is_floating_point()]
    places = [x for x in (*others, *tables) if x.squeeze().ndim > 1]
    return not places or has_triangle(module)


def adds_its_input(
    module: nn.Module, fn: Callable[[Tensor], Tensor], width: int
) -> bool:
    """Tell whether some of the input is left where all matrices are 0."""
    x, y = (draw(BATCH, SEQ, width, seed=seed) for seed in (7, 9))
    with module_kept(module):
        for weight in module.parameters():
            if weight.ndim > 1:
                weight.data.zero_()
        return not torch.equal(fn(x), fn(y))


TURNED_SEQ = 7
"""So long is no other axis."""


ONE_ATTENTION = "it is one attention and its projection, whatever it norms"


def attends_alone(module: nn.Module, width: int, args: tuple) -> str:
    """Say that a part is one attention that adds no input, if it is.

    Norms stand in it, of its input or of its heads.

    Args:
        module: What is taken for a layer.
        width: How wide its vectors are.
        args: What it is called with.
    """

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own))

    x, other = (draw(BATCH, SEQ, width, seed=s) for s in (7, 9))
    with Behind() as heard:
        got = fn(x)
    if heard.attentions != 1 or heard.maps > 1:
        return ""
    with module_kept(module):
        for part in module.modules():
            own = [*part.parameters(recurse=False)]
            # The gain of a norm stays: behind it the input may stand alone.
            for weight in own if any(p.ndim > 1 for p in own) else ():
                weight.data.zero_()
        if not torch.equal(fn(x), fn(other)):
            return ""
    return ONE_ATTENTION + (NO_INPUT if kind_of_norm(got) else "")


class Behind(TorchFunctionMode):
    """Counts attentions, and what is multiplied by a matrix behind the last."""

    attentions = maps = 0

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        got, name = func(*args, **(kwargs or {})), getattr(func, "__name__", "")
        if name in ATTENDS:
            self.attentions, self.maps = self.attentions + 1, 0
        tensors = [a for a in args if isinstance(a, Tensor)]
        by_matrix = name in PRODUCTS and any(a.ndim == 2 for a in tensors)
        self.maps += by_matrix or name in LINEAR
        return got


ATTENDS = {*SOFTMAX, *WHOLE_ATTENTION, FUSED}
"""What attention is heard by."""
MIXING = ("encoder", "multihead", "causal_attention")
"""What a norm may look like that runs over other vectors too."""
OVER_OTHERS = "its name says so, and one vector moves with another"


def is_called_a_norm(module: nn.Module) -> bool:
    """Tell whether it is a norm by its name and its vectors.

    One that is to run over channels or over time says so in its name.
    """
    name = type(module).__name__
    matrices = [p for p in module.parameters() if p.squeeze().ndim > 1]
    named = NORM.fullmatch(name) and not ELSEWHERE.search(name)
    return bool(named) and not matrices


def by_its_name(module: nn.Module, said: str) -> tuple[nn.Module, str, str]:
    """Take a module for the norm that its name says."""
    # With a gain alone it is that of T5, whatever it is called.
    lone = len([*module.parameters()]) == 1
    lone |= "rms" in type(module).__name__.lower()
    return module, "rms_norm" if lone else "layer_norm", said


def no_decoder(
    module: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise a module; a decoder is refused, and not taken for an encoder.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    try:
        taken = named_or_taken(module, width, args)
    except Unjudged as reason:
        if THREE in str(reason) and in_time(lambda: is_decoder(module, width)):
            raise a_decoder(module) from None
        raise
    if taken[1] == "encoder" and in_time(lambda: is_decoder(module, width)):
        raise a_decoder(module)
    if taken[1] == "multihead" and pairs_are_learned(module, width, args):
        raise Unjudged(LEARNED_PAIRS)
    return taken


def judged_norm(
    module: nn.Module, component: str, said: str, check: Check, near: dict
) -> Judged:
    """Judge a norm, built anew for each width and eps.

    Raises:
        Unjudged: It is no norm alone, or cannot be called as one.
    """
    if any(no_layers(part) for part in module.modules()):
        raise Unjudged(NO_LAYERS)
    report = check(component, module)
    if report.faults and not [*module.parameters()]:
        anew = check(component, OfEachWidth(type(module), near))
        report = report if anew.untried or anew.faults else anew
    if report.untried:
        fn = as_function(type(module), near)
        report = check(component, fn)
        if report.untried:
            raise Unjudged(
                f"it looks like {component}: {said}. "
                f"{report.failures[0].message}"
            )
    if said == ZERO_GAIN:
        report = replace(report, failures=[*report.failures, NO_GAIN])
    return Judged(component, report, (said,))


class OfEachWidth(nn.Module):
    """Builds a norm without parameters anew for the width of what comes.

    Args:
        kind: Its class.
        near: What else stands in its file.
    """

    def __init__(self, kind: type, near: dict):
        super().__init__()
        self.kind, self.near = kind, near

    def forward(self, x: Tensor) -> Tensor:
        """Norm ``x``."""
        return make(self.kind, self.near, x.shape[-1])[0].eval()(x)


def as_function(kind: type, near: dict) -> Callable:
    """Make of a norm's class the function that the contracts call."""
    try:
        built, _ = make(kind, near)
    except NotBuilt as reason:
        raise Unjudged(f"it is a norm, and {reason}") from None
    names = [name for name, _ in built.named_parameters()]
    epsilon = next(
        (n for n in vars(built) if re.fullmatch(r"(?i).*eps(ilon)?", n)), None
    )
    if epsilon is None and any(is_a_norm(part) for part in built.children()):
        raise Unjudged(MORE_THAN_A_NORM)
    if epsilon is None:
        raise Unjudged("it is a norm whose eps cannot be chosen")

    def norm(x: Tensor, *rest: Any) -> Tensor:
        *vectors, eps = rest
        own, _ = make(kind, near, x.shape[-1])
        setattr(own, epsilon, eps)
        for name, vector in zip(names, vectors, strict=False):
            delattr(own, name)
            setattr(own, name, vector)
        return own(x)

    return norm
