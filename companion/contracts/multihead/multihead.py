"""Contracts of multi-head attention, whatever weights it has of its own.

Nothing is said of the heads: one head is right too, and nobody can count them
from outside.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    after,
    finite,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.influence import (
    reach,
    require_moved,
    require_silent,
)
from companion.contracts.engine.masking import (
    NAN_IN_ROW,
    causal,
    require_finite_gradients,
    some_mask,
)
from companion.contracts.multihead.multihead_cases import (
    BATCH,
    EYE,
    MISTAKEN,
    SEQ,
    allowed,
    arguments,
    deaf_alike,
    fully_masked,
    looks_like,
    padding,
)

MULTIHEAD = Component(
    name="multihead",
    weights=True,
    signature="multihead(x, mask=None)",
    returns="the output (batch, seq, d_model)",
    axes=("row", "feature"),
    shape=lambda x, mask=None: x.shape,
    shape_hints={
        "Are these the weights, before they meet the values?": (
            lambda x, mask=None: (*x.shape[:2], x.shape[1])
        ),
        "The batch appears twice: a mask (batch, 1, 1, seq) has an axis for "
        "the heads, and so must the scores.": (
            lambda x, mask=None: (len(x), *x.shape)
        ),
    },
    cases=lambda: {
        "without a mask": (arguments(2),),
        "with a causal mask": (arguments(3), causal(SEQ)),
        "with a padding mask": (arguments(5), padding(3, 5)),
    },
)

IGNORED = "The mask is not used: without it nothing changes."
AFTERWARDS = (
    "The mask multiplies the weights after the softmax, whose sum still counts "
    "the hidden keys: put -∞ into the hidden scores before it."
)
COUNTED = (
    "Does the mask reach the scores, as -∞, before the softmax over the keys?"
)


def why_leaked(fn: Guarded, x: Tensor, seen: Tensor, mask: Tensor) -> str:
    """The mistake that makes rows move as ``seen`` under ``mask``."""
    if furthest(fn.raw(x, torch.ones_like(mask)), fn.raw(x, mask)) is None:
        return IGNORED
    if counts_afterwards(fn, x):
        return AFTERWARDS
    for hint, mistake in MISTAKEN.items():
        other = mistake(allowed(mask))
        if looks_like(seen, other) and deaf_alike(fn.raw(x, mask), other):
            return hint
    return COUNTED


def counts_afterwards(fn: Guarded, x: Tensor) -> bool:
    """Whether each True adds the same, whatever else is True.

    Under a mask that comes before the softmax it takes its share from others.
    """
    past, none = causal(SEQ), torch.zeros(SEQ, SEQ, dtype=torch.bool)
    halves = fn.raw(x, past) + fn.raw(x, ~past)
    return furthest(halves, fn.raw(x, ~none) + fn.raw(x, none)) is None


def require_masked(fn: Guarded, x: Tensor, mask: Tensor, how: str) -> None:
    """Raises Broken unless rows move with what ``mask`` lets them see."""
    seen, may = reach(fn, x, mask), allowed(mask)
    if (seen & ~may & ~EYE).any() or (may & ~seen).any():
        why = why_leaked(fn, x, seen, mask)
        require_silent(seen, may | EYE, how, why)
        require_moved(seen, may, "which the mask allows", why)


@MULTIHEAD.before_reference
def order(fn: Guarded) -> None:
    """Reordering the positions reorders the rows."""
    x, order = arguments(17), torch.tensor([3, 0, 4, 2, 1])
    why = (
        "Attention knows no order: where heads are split or joined, does a "
        "`view` mix positions and heads for want of a transpose?"
    )
    if not reach(fn, x).triu(1).any():
        why = "No row sees what comes after it, although there is no mask."
    same(fn, fn(x[:, order]), fn(x)[:, order], why)


@MULTIHEAD.before_reference
def everybody(fn: Guarded) -> None:
    """Without a mask every row sees every position."""
    x = arguments(13)
    seen, why = reach(fn, x), "Is a mask at work that nobody gave?"
    if torch.equal(seen, EYE.expand_as(seen)):
        why = (
            "Each row sees itself only: the scores compare the heads of one "
            "position, not the positions of one head. Transpose to (batch, "
            "head, seq, head_dim) first."
        )
        if furthest(fn(x)[:1], fn(x[:1])) is not None:
            why = (
                "Each row sees its own place in other sentences: the axes are "
                "read as (seq, batch, d_model), and the batch comes first. "
                "PyTorch's module needs `batch_first=True`."
            )
    require_moved(seen, torch.ones_like(seen), "although there is no mask", why)


@MULTIHEAD.before_reference
# Where positions are mixed up, no mask can be judged.
@after(order)
def future(fn: Guarded) -> None:
    """With a causal mask no row sees its future."""
    how = "which is in its future"
    require_masked(fn, arguments(7), causal(SEQ), how)


@MULTIHEAD.before_reference
@after(order)
def pads(fn: Guarded) -> None:
    """No row sees the padding of its own sentence."""
    how = "which the mask hides"
    require_masked(fn, arguments(11), padding(2, 4), how)


@MULTIHEAD.contract
@after(future)
def all_true(fn: Guarded) -> None:
    """A mask that hides nothing changes nothing."""
    x = arguments(43)
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool)
    why = "Every entry of the mask is True: all may attend."
    same(fn, fn(x, mask), fn(x), why)


@MULTIHEAD.contract
@after(order)
def twice(fn: Guarded) -> None:
    """Saying everything twice changes no row."""
    x = arguments(19)
    why = (
        "The positions stand there twice, so each weight halves and counts "
        "twice: do the weights of a row sum to 1?"
    )
    same(fn, fn(torch.cat([x, x], 1))[:, :SEQ], fn(x), why)


@MULTIHEAD.contract
@after(pads, twice)
def as_if_absent(fn: Guarded) -> None:
    """Hidden positions might as well not be there."""
    x = arguments(23)
    got = fn(x, padding(3, 3))[:, :3]
    why = (
        "Positions 3 and 4 are hidden from all, and still change the rows "
        "before them, by being there."
    )
    same(fn, got, fn(x[:, :3]), why)


@MULTIHEAD.contract
def content(fn: Guarded) -> None:
    """The weights depend on what stands there."""
    x, y = arguments(29), arguments(31)
    for size in (1.0, 3.0, 10.0):
        bend = fn(size * (x + y)) - fn(size * x) - fn(size * y) + fn(0 * x)
        if bend.abs().max() > 1e-3 * (fn(size * x) - fn(0 * x)).abs().max():
            return
    raise Broken(
        "The output is a linear function of `x`, as if all weights were "
        "constant: do queries and keys meet, in a softmax?"
    )


@MULTIHEAD.contract
@after(pads)
def broadcasts(fn: Guarded) -> None:
    """A mask may be (seq, seq), (batch, 1, 1, seq) or (batch, 1, seq, seq)."""
    x = arguments(41)
    for shape in ((SEQ, SEQ), (BATCH, 1, 1, SEQ), (1, 1, SEQ, SEQ)):
        mask = some_mask(*shape)
        why = f"A mask of shape {shape} is not spread over the scores."
        expected = fn(x, mask.expand(BATCH, 1, SEQ, SEQ))
        same(fn, fn(x, mask), expected, why)


@MULTIHEAD.contract
@after(everybody)
def any_size(fn: Guarded) -> None:
    """It takes sentences of any length, one at a time too."""
    for seq in (1, 3, 11):
        x = arguments(47, seq)
        alone = torch.cat([fn(x[:1]), fn(x[1:])])
        why = f"Of {seq} positions, each sentence alone gives other rows."
        same(fn, fn(x), alone, why)


@MULTIHEAD.contract
def nobody_to_see(fn: Guarded) -> None:
    """A row that may attend to nothing is finite, and sees nothing."""
    x, mask = arguments(37), fully_masked()
    finite(fn, fn.raw(x, mask), NAN_IN_ROW, cause=NAN_IN_ROW)
    future(fn)  # Else a row may see what no row is to see.
    seen, may = reach(fn, x, mask), torch.ones(BATCH, SEQ, SEQ).bool()
    may[:, 1] = False
    why = (
        "Equally low scores become equal weights: set hidden weights to 0 "
        "after the softmax."
    )
    require_silent(seen, may, "and may attend to nothing", why)


@MULTIHEAD.contract
def nobody_to_see_gradient(fn: Guarded) -> None:
    """A row that may attend to nothing has finite gradients."""
    require_finite_gradients(fn, arguments(37), fully_masked())
