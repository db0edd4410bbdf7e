"""Who moves with whom: what a function with weights of its own can be asked.

There is nothing to compare its numbers with. What remains is to change one
position and to see which rows move.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE

__all__ = [
    "SHARE",
    "local_window",
    "of_a_window",
    "reach",
    "reach_without_a_mask",
    "require_moved",
    "require_silent",
    "rounding",
]

SHARE = 1e-4
"""Rounding moves a row by less than this share of what a change moves."""


def rounding(result: Tensor) -> float:
    """Return by how much rounding may move the numbers of a result.

    The tests hold this between a source without influence, which rounding
    moves, and a right translator of six layers with weights as small as GPT's.
    """
    most = result.detach().nan_to_num(0, 0, 0).abs().max()
    return 16 * torch.finfo(result.dtype).eps * float(most)


SIZES = 1.0, 0.1
"""Of the vectors: large ones may saturate a softmax, and a weight of 1e-9
would pass for none."""


def reach(
    fn: Guarded, x: Tensor, *rest: Any, wanted: Tensor | None = None
) -> Tensor:
    """Map which row moves with which position: (batch, row, position).

    Args:
        fn: What is called.
        x: Its vectors.
        *rest: Its other arguments; masks, if a map is wanted.
        wanted: The map that is expected. If it comes out of one call with all
            changes in one batch, there is no need for a call for each.
    """
    if wanted is not None and moves_as(fn, x, rest, wanted):
        return wanted
    seen = torch.zeros(*x.shape[:2], x.shape[1], dtype=torch.bool)
    for size in SIZES:
        before, *after = (fn.raw(one, *rest) for one in changes(size * x, size))
        seen |= moved_rows(before, after)
    return seen


def moves_as(fn: Guarded, x: Tensor, rest: tuple, wanted: Tensor) -> bool:
    """Tell whether rows move as wanted where all changes are one batch.

    What goes from sentence to sentence is the same before and after there: a
    contract about sentences finds that.
    """
    every = [(one, *rest) for size in SIZES for one in changes(size * x, size)]
    if (got := fn.at_once(every)) is None:
        return False
    seen, calls = torch.zeros_like(wanted), len(every) // len(SIZES)
    for i in range(0, len(every), calls):
        before, *after = got[i : i + calls]
        seen |= moved_rows(before, after)
    return torch.equal(seen, wanted)


def changes(x: Tensor, size: float) -> list[Tensor]:
    """List vectors, and the same with each position changed in turn."""
    found = [x]
    for position in range(x.shape[1]):
        changed = x.clone()
        way = draw(len(x), x.shape[-1], seed=211 + position)
        changed[:, position] += size * way
        found.append(changed)
    return found


def reach_without_a_mask(fn: Guarded, arguments: Callable) -> Tensor:
    """Map the same for several vectors, until each row moves with each.

    With large weights a softmax may give one position all the weight, and no
    row the same one for other vectors.

    Args:
        fn: What is called with vectors alone.
        arguments: Draws them from a seed.
    """
    x = arguments(11)
    wanted = torch.ones(*x.shape[:2], x.shape[1], dtype=torch.bool)
    seen = reach(fn, x, wanted=wanted)
    for seed in (1009, 1013, 1019, 1021):
        if seen.all():
            break
        seen |= reach(fn, arguments(seed))
    return seen


def moved_rows(before: Tensor, after: list[Tensor]) -> Tensor:
    """Map which row moved in which of several results."""
    before = before.detach()
    # NaN stays NaN, which is no movement, and another contract's business.
    columns = [
        (one.detach() - before).abs().nan_to_num(0).flatten(2).amax(-1)
        for one in after
    ]
    gaps = torch.stack(columns, -1)
    return gaps > max(SHARE * float(gaps.max()), rounding(before))


def require_silent(seen: Tensor, may: Tensor, how: str, why: str) -> None:
    """Raise Broken for the first row that moves and ``may`` not."""
    show_first(
        seen,
        may,
        seen & ~may,
        f"moves with position {{position}}, {how}. {why}",
        why,
    )


def require_moved(seen: Tensor, may: Tensor, how: str, why: str) -> None:
    """Raise Broken for the first row that does not move, though it ``may``."""
    show_first(
        seen,
        may,
        may & ~seen,
        f"does not move with position {{position}}, {how}. {why}",
        why,
    )


def show_first(
    seen: Tensor, may: Tensor, wrong: Tensor, message: str, cause: str
) -> None:
    """Raise Broken at the first True of ``wrong``, with both maps."""
    if wrong.any():
        batch, row, position = wrong.nonzero()[0].tolist()
        raise Broken(
            f"Row {row} {message.format(position=position)}",
            seen[batch].float(),
            may[batch].float(),
            ("row", "moves with"),
            cause,
        )


WINDOW = (
    "Every row sees itself and {} before it, and nothing further back: a local "
    "window."
)
MEANT_SO = (
    "It is right if attention is to be local, as within a sliding window; each "
    "further layer sees further."
)


def local_window(*seen: Tensor) -> int:
    """Return how many before itself every row sees, if all see as many.

    None where all of the past is seen, or nothing but a row itself: 0.

    Args:
        *seen: Which row moves with which position, of several lengths.
    """
    widths = {int(one.reshape(-1, one.shape[-1])[-1].sum()) - 1 for one in seen}
    if len(widths) > 1:
        return 0
    (width,) = widths
    for one in seen:
        band = torch.ones_like(one).tril().triu(-width)
        if not (0 < width < one.shape[-1] - 1) or not torch.equal(one, band):
            return 0
    return width


def of_a_window(width: int) -> Broken:
    """Say that attention is local, which is another convention."""
    told = WINDOW.format(width)
    return Broken(told, cause=told, level=NOTE, why=MEANT_SO)
