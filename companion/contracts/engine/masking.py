"""What the contracts about masks share: True = may attend."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    gradients,
    same,
)
from companion.contracts.engine.guard import Guarded, lengths_beside
from companion.contracts.engine.influence import reach
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.universal import recognised_mistake

__all__ = [
    "EACH_OTHERS",
    "EMPTY",
    "EMPTY_NAN",
    "HIDES_ROWS",
    "MASK_HINTS",
    "NAN_IN_ROW",
    "NAN_WHATEVER",
    "PATCHY",
    "THE_FIRSTS",
    "attended",
    "causal",
    "fully_masked",
    "hide",
    "hides_at_once",
    "hides_padding",
    "hides_rows",
    "is_nan_whatever",
    "require_attended",
    "require_finite_gradients",
    "require_finite_row",
    "require_hidden",
    "require_zeros_in_row_one",
    "sends_masks",
    "some_mask",
    "unchanged",
    "unless_any_is_causal",
    "visible",
]

# Every row hides something and shows something, every key is hidden from one
# row and shown to another, and no row is like another.
PATCHY = torch.tensor(
    [[1, 0, 1, 1, 0], [0, 1, 0, 1, 1], [1, 1, 0, 0, 1]],
    dtype=torch.bool,
    device="cpu",  # Whatever the default device is when this is imported.
)
EMPTY = (
    "No usual mask leaves a row nothing to attend to; it comes where a whole "
    "sentence is padding, or padding stands in front of a causal mask."
)
EMPTY_NAN = (
    "No usual mask leaves a row nothing to attend to; but where padding stands "
    "in front of a causal mask one does, and its NaN reaches every weight with "
    "the next step."
)
UPSIDE_DOWN = "Is the mask upside down? True means may attend."
NAN_IN_ROW = (
    "All its scores are -∞, and the softmax of that is 0/0. Fill with a finite "
    "number, `torch.finfo(scores.dtype).min`, and set hidden weights to 0 "
    "after the softmax."
)
NAN_IN_GRADIENT = (
    "Turning NaN into 0 afterwards mends the output, not the gradient: fill "
    "by `masked_fill` with a finite number instead of adding -∞, and divide "
    "by no sum that is 0."
)


def sends_masks(contract: Callable) -> Callable:
    """Declare that a contract needs a mask, and tells nothing without one."""
    vars(contract).update(sends_masks=True)
    return contract


def hides_padding(which: str) -> Callable[[Callable], Callable]:
    """Declare that a contract is about padding, of ``source`` or ``target``."""

    def declared(contract: Callable) -> Callable:
        vars(contract).update(hides_padding=which)
        return contract

    return declared


ANY_IS_CAUSAL = (
    "Any mask is taken for the causal one: with a mask, whatever it says, no "
    "row sees what comes after it, and without one every row sees all."
)
IN_A_DECODER = (
    "It is right in a decoder that is given the causal mask or none; a mask "
    "of padding would hide no padding."
)


def unless_any_is_causal(contract: Callable) -> Callable:
    """Have a contract say so, as a risk, if any mask does what a causal does.

    Such a mask is a mere flag, as where it decides on ``is_causal``.
    """

    @functools.wraps(contract)
    def told(fn: Guarded) -> None:
        try:
            contract(fn)
        except Broken:
            if any_is_causal(fn):
                raise Broken(
                    ANY_IS_CAUSAL, level=RISK, why=IN_A_DECODER
                ) from None
            raise

    return told


def any_is_causal(fn: Guarded) -> bool:
    """Tell whether rows see their past under any mask, and all without one.

    Where lengths stand beside it, these are to hide the padding.
    """
    wants = getattr(fn.form, "wants", None)
    if wants is not None and lengths_beside(wants.names):
        return False
    x = fn.component.example[0]
    past = causal(x.shape[1])
    try:
        got = fn.raw(x, past)
        for mask in (past | True, past.mT):
            # With small weights the rows differ by a little.
            if not torch.equal(fn.raw(x, mask), got):
                return False
        own = past.expand(len(x), -1, -1)
        seen = reach(fn, x, past, wanted=own)
        whole = reach(fn, x, wanted=own | True)
    except Broken:
        return False
    return torch.equal(seen, own) and bool(whole.all())


HIDES_ROWS = (
    "The mask hides rows, the queries, and not keys: whose own entry is False "
    "loses its row, and all others see it still. Lay it over the keys, "
    "`mask[:, None, None, :]`."
)


def unchanged(fn: Guarded, x: Tensor, mask: Tensor) -> bool:
    """Tell whether it is the same as with a mask that hides nothing."""
    return not rows_changed(fn, x, mask).any()


def hides_rows(fn: Guarded, x: Tensor, mask: Tensor) -> bool:
    """Tell whether a mask (batch, 1, 1, key) changes its hidden rows alone."""
    changed = rows_changed(fn, x, mask)
    return bool(changed.any()) and torch.equal(changed, ~mask[:, 0, 0])


def rows_changed(fn: Guarded, x: Tensor, mask: Tensor) -> Tensor:
    """Map which rows change with a mask: (batch, row)."""
    gap = fn.raw(x, mask) - fn.raw(x, torch.ones_like(mask))
    return gap.detach().nan_to_num(1).abs().amax(-1) > 1e-5


def attended(may: Tensor) -> Tensor:
    """Map which rows somebody may see: (batch, row, 1).

    Padding is no such row. What it gets is nobody's business: zeros, its
    sentence, or the mean of everything, where the mask hides queries too.

    Args:
        may: Which row may see which, (batch, row, position).
    """
    return may.any(-2)[..., None]


def causal(n: int) -> Tensor:
    """Make a mask with which row i may see the keys 0 … i."""
    return torch.ones(n, n, dtype=torch.bool).tril()


def fully_masked() -> Tensor:
    """Make ``PATCHY``, in which row 1 may see nothing."""
    mask = PATCHY.clone()
    mask[1] = False
    return mask


def hide(scores: Tensor, mask: Tensor) -> Tensor:
    """Compute what is right, as long as every row sees something."""
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def some_mask(*shape: int) -> Tensor:
    """Draw a mask in which every row sees at least key 2."""
    mask = draw(*shape, seed=23) > 0
    mask[..., 2] = True
    return mask


EACH_OTHERS = (
    "Sentences get each other's mask: where batch and heads are one axis, the "
    "mask needs `repeat_interleave`, not `repeat`."
)
THE_FIRSTS = "Every sentence gets the mask of the first."
MASK_HINTS = {
    "upside-down": "The mask is upside down: True means may attend.",
    "transposed": "The triangle is upside down: the mask is transposed.",
    "unused": "The mask is not used.",
    "multiplied-afterwards": "The mask multiplies the weights after the "
    "softmax, and a row no longer sums to 1: put -∞ into the hidden scores "
    "before it.",
    "filled-with-zero": "The hidden scores are set to 0, a score like any "
    "other: they need -∞.",
    "added": "The mask is added to the scores as 0 and 1, which hides nothing: "
    "put -∞ into the hidden scores.",
    "over-the-queries": "The softmax runs over the queries: it belongs over "
    "the keys, `dim=-1`.",
}
"""Id -> the hint, the same for all components that take a mask."""


def visible(fn: Guarded, args: tuple, moved: int) -> Tensor:
    """Map which row moves with which key: True in (row, key).

    ``moved`` is 1 to change a key in ``k`` and 2 to change its value in ``v``.
    """
    before, *after = (fn.raw(*one) for one in with_changes(args, moved))
    return rows_moved(before, after)


def hides_at_once(fn: Guarded, args: tuple, hidden: Tensor) -> bool:
    """Tell whether no row moves with a hidden value, all changed in one batch.

    Args:
        fn: What is called.
        args: Its arguments: tensors whose first axis is a batch's, and words.
        hidden: Which key is hidden from which row, (row, key).
    """
    got = fn.at_once(with_changes(args, 2))
    if got is None:
        return False
    before, *after = got
    return not (rows_moved(before, after) & hidden).any()


def with_changes(args: tuple, moved: int) -> list[tuple]:
    """List arguments, and the same with one of them changed at each key."""
    found = [args]
    for key in range(args[1].shape[-2]):
        changed = args[moved].clone()
        changed[..., key, :] += draw(changed.shape[-1], seed=23)
        found.append((*args[:moved], changed, *args[moved + 1 :]))
    return found


def rows_moved(before: Tensor, after: list[Tensor]) -> Tensor:
    """Map which row moved in which of several results: (row, result)."""
    gaps = ((one.detach() - before.detach()).abs() > 1e-3 for one in after)
    return torch.stack([x.any(-1).flatten(0, -2).any(0) for x in gaps], -1)


def require_hidden(
    fn: Guarded, sees: Tensor, args: tuple, how: str, why: str = ""
) -> None:
    """Raise Broken unless ``sees`` is nowhere true where the mask hides.

    The mask is the last of ``args``. ``why`` is told unless the mistake has a
    name, and a scale that is wrong does not explain a leak.
    """
    mask = args[-1]
    leaks = sees & ~mask
    if leaks.any():
        row, key = leaks.nonzero()[0].tolist()
        known = recognised_mistake(fn)
        if known and known[0] in MASK_HINTS.values():
            why = known[0]
        why = why or why_seen(fn, sees, args)
        leak = f"Row {row} sees key {key}, {how}."
        raise Broken(f"{leak} {why}", *as_maps(sees, mask), why)


def as_maps(sees: Tensor, mask: Tensor) -> tuple:
    """Return who sees whom, and who may, for ``Broken`` to show."""
    return sees.float(), mask.float(), ("row", "sees key")


def why_seen(fn: Guarded, sees: Tensor, args: tuple) -> str:
    """Ask the learner what a map of who sees whom suggests."""
    *rest, mask = args
    everybody = torch.ones_like(mask)
    if furthest(fn.raw(*rest, everybody), fn.raw(*args)) is None:
        return "The mask seems to be ignored: without it nothing changes."
    # Turned round, a triangle leaves the last row nothing to see.
    if torch.equal(sees[:-1], ~mask[:-1]):
        return UPSIDE_DOWN
    if torch.equal(sees, mask.mT):
        return "Is the triangle upside down?"
    return "Does the mask reach the scores, as -∞, before the softmax?"


def require_attended(sees: Tensor, mask: Tensor) -> None:
    """Raise Broken unless ``sees`` is true wherever ``mask`` allows it."""
    unseen = mask & ~sees
    if unseen.any():
        row, key = unseen.nonzero()[0].tolist()
        raise Broken(
            f"Row {row} does not see key {key}, which the mask allows. "
            f"{UPSIDE_DOWN}",
            *as_maps(sees, mask),
            UPSIDE_DOWN,
        )


def require_zeros_in_row_one(fn: Guarded, got: Tensor, uniform: Tensor) -> None:
    """Raise Broken unless row 1 is 0 and nothing is NaN.

    ``uniform`` is what equal weights would make of it.
    """
    expected = got.detach().clone()
    expected[1] = 0
    require_finite_row(fn, got, expected)
    why = "Row 1 may attend to nothing."
    if furthest(got[1], uniform) is None:
        why = (
            "Row 1 may attend to nothing, and attends to all keys alike: "
            "equally low scores become equal weights. Set hidden weights to 0 "
            "after the softmax."
        )
    same(fn, got, expected, why)


NAN_WHATEVER = (
    "Under a mask all is NaN, whatever that hides: 0 · (−∞) is NaN, so that "
    "`masked_fill` hides, and no product with −∞ does."
)


def is_nan_whatever(fn: Guarded, x: Tensor, mask: Tensor) -> bool:
    """Tell whether nothing but NaN comes of keys that are hidden by turns.

    Every row then sees some, whatever True means.

    Args:
        fn: What takes vectors and a mask.
        x: The vectors.
        mask: A mask of a shape that it takes.
    """
    turns = torch.zeros_like(mask)
    turns[..., ::2] = True
    return all(bool(fn.raw(x, each).isnan().all()) for each in (turns, ~turns))


def require_finite_row(
    fn: Guarded, got: Tensor, expected: Tensor | None = None
) -> None:
    """Raise Broken if a row that may attend to nothing is NaN."""
    try:
        finite(fn, got, NAN_IN_ROW, expected, NAN_IN_ROW)
    except Broken as broken:
        broken.level, broken.why = RISK, EMPTY_NAN
        raise


def require_finite_gradients(fn: Guarded, *args) -> None:
    """Raise Broken for an argument whose gradient is NaN."""
    upstream = draw(*fn.component.shape(*args), seed=97)
    found = gradients(fn.raw, args, [upstream]) or ()
    names = fn.component.parameters
    for name, gradient in zip(names, found, strict=False):
        if gradient is not None and not gradient.isfinite().all():
            # Where the output is NaN, that is what there is to mend.
            require_finite_row(fn, fn.raw(*args))
            row = int((~gradient.isfinite()).nonzero()[0, -2])
            raise Broken(
                f"The gradient of `{name}` is NaN in row {row}. "
                f"{NAN_IN_GRADIENT}",
                gradient,
                axes=("row", "column"),
            )
