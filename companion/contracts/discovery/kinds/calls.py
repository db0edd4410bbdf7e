"""How a module wants to be called with vectors, and what it then returns."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.discovery.arguments import (
    BATCH,
    SEQ,
    least_arguments,
    most_arguments,
    required_names,
)
from companion.contracts.discovery.raising import fails
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.discovery.verdict import Check, Raises, Unjudged
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.compare import draw
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.signature import wanted
from companion.contracts.engine.forms.styles import (
    CONTEXT,
    MEMORY,
    PAIRED,
    wants_two,
)
from companion.contracts.engine.modules.common import (
    is_lazy,
    module_kept,
)
from companion.contracts.engine.report import Report
from companion.contracts.engine.universal import right_shape

__all__ = [
    "ADDED_ALONG_THE_FIRST",
    "CLOSE",
    "DECODER",
    "LOOKS",
    "NOTHING",
    "NO_CALL",
    "NO_SOFTMAX",
    "RAISED",
    "SEQUENCE_FIRST",
    "WHOLE",
    "Called",
    "a_decoder",
    "alike",
    "answer",
    "asks_first",
    "by_default",
    "calls",
    "first",
    "has_triangle",
    "hides",
    "is_affine",
    "is_decoder",
    "masks_are_told",
    "movement",
    "on_vectors",
    "refuses",
    "sequence_seems_first",
    "understood",
    "was_called",
    "widths",
]

LOOKS = "it looks like"


NO_CALL = "no usual call was understood"


WHOLE = "A whole language model of it can be judged"


NOTHING = "in use it does nothing"


NO_SOFTMAX = "no softmax was heard in it"


CLOSE = {"rtol": 1e-3, "atol": 1e-4}


class Called(TorchFunctionMode):
    """Notes the names of PyTorch's functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


RAISED = "It raised "


def was_called(report: Report) -> bool:
    """Tell whether a call was understood, whatever is wrong with it."""
    shaped = title(right_shape) in report.held
    return not report.untried or shaped


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


DECODER = "a decoder, which has no contracts of its own"


SECOND = rf"{PAIRED}|context|xa"
"""What they call it where it stands second."""


def a_decoder(module: nn.Module) -> Unjudged:
    """Say that it is a decoder."""
    names = ", ".join(inspect.signature(module.forward).parameters)
    return Unjudged(
        f"it takes `{names}`: {DECODER}. The whole translator is judged with it"
    )


def is_decoder(module: nn.Module, width: int) -> bool:
    """Tell whether a module looks at itself, and at a memory.

    It adds to what comes in, which attention to a memory alone does not do.

    Args:
        module: What takes vectors.
        width: How wide they are.
    """
    names = required_names(module)[1:2]
    if "decoder" in type(module).__name__.lower() and any(
        re.fullmatch(MEMORY, name) for name in names
    ):
        return True  # It may add nothing for want of a residual.
    names = names or [*inspect.signature(module.forward).parameters][1:2]
    known = any(re.fullmatch(SECOND, name) for name in names)
    if not (known or wants_two(wanted(module))):
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
                    return width, causal_if_either(module, args)
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
    wants = any(re.fullmatch(MEMORY, name) for name in required_names(module))
    named &= wants or not reshaped
    if named or any(is_decoder(module, width) for width in own):
        raise a_decoder(module)
    plain = of_plain(said)
    raises = said and all(text.startswith(RAISED) for _, text in said)
    bad = raises and not refuses(plain) and fails(module, own)
    reason = f"{NO_CALL}, from `{', '.join(names)}`. {plain}".rstrip()
    raise Raises(reason) if bad else Unjudged(reason)


def causal_if_either(module: nn.Module, args: tuple) -> tuple:
    """Return a call with its mask upside down, if only so the future is hidden.

    A mask that hides all by a large number beside one that hides the future
    makes all scores of a row equal again.
    """
    turned = tuple(~a if is_mask(a) else a for a in args)
    if not any(map(is_mask, args)):
        return args
    try:
        seen, other = (
            movement(on_vectors(module, each), args[0])
            for each in (args, turned)
        )
    except Exception:
        return args
    past = torch.ones_like(other).tril()
    return turned if seen.all() and torch.equal(other, past) else args


def is_mask(x: object) -> bool:
    """Tell whether something that is given is a mask."""
    return isinstance(x, Tensor) and x.dtype == torch.bool


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
    if {name.lower() for name in required_names(module)} >= OF_A_PICTURE:
        return
    may = torch.full((1, 1, SEQ, SEQ), not hidden)
    own = (may[0].expand(BATCH, SEQ, SEQ),)
    keys = (may[0, 0, :1].expand(BATCH, SEQ),)
    other, no_keys = (~own[0],), (~keys[0],)
    for args in (
        # What takes such a mask may be mixed up by one that has rows.
        *[(x, *mask) for mask in (keys, no_keys) if most == least == 2],
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
        masks = None, own[0], other[0], keys[0], no_keys[0]
        for args in ((x, x), *((x, x, mask) for mask in masks)):
            if least <= len(args) <= most:
                yield args


OF_A_PICTURE = {"h", "w"}
"""What a module wants that folds its positions into a picture."""


def asks_another(module: nn.Module, width: int) -> bool:
    """Tell whether two sequences go in, of which one asks the other.

    A decoder does that too, and looks at itself besides.
    """
    (second,) = required_names(module)[1:2] or ("",)
    if re.fullmatch(CONTEXT, second):
        return True
    required = least_arguments(module) > 1 and "mask" not in second
    own = "".join(required_names(module)[:1])
    paired = re.fullmatch(PAIRED, second) or re.fullmatch(MEMORY, own)
    known = required and (paired or wants_two(wanted(module)))
    return bool(known) and not is_decoder(module, width)


def first(result: object) -> object:
    """Return the output, where it comes with weights."""
    while isinstance(result, tuple | list) and result:
        result = result[0]
    return result


def on_vectors(module: nn.Module, args: tuple) -> Callable[[Tensor], Tensor]:
    """Return what calls a module as it was understood, with other vectors."""

    def fn(x: Tensor) -> Tensor:
        own = (x if a is args[0] else a for a in args)
        return first(module(*own)).detach()  # pyrefly: ignore

    return fn


def answer(module: nn.Module, args: tuple) -> Tensor | None:
    """Return what a module answers, or nothing if it raises."""
    if not least_arguments(module) <= len(args) <= most_arguments(module):
        return None
    try:
        got = first(module(*args))
    except Exception:
        return None
    return got if isinstance(got, Tensor) and got.is_floating_point() else None


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
    fn = on_vectors(module, args)

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
