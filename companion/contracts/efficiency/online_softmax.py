"""Softmax from a running maximum and a running sum, block by block.

How often the scores are read cannot be seen from outside. What can is that
blocks are put together rightly, whatever their size and their order.
"""

import math

import torch
from torch import Tensor

from companion.contracts.attention.softmax import FAR
from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    equivariance,
    half_precision,
    large_scores_stay_finite,
    rows_sum_to_one,
)
from companion.contracts.engine.guard import Guarded

__all__ = ["ONLINE_SOFTMAX"]

# The largest score comes late in one row, early in another.
RISING = torch.tensor(
    [[0.0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [1, 5, 2, 6, 0, 4, 3]],
    device="cpu",
)


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    return {
        "in blocks of 2, of 7 scores": (draw(2, 3, 7, seed=2), 2),
        "where the largest comes late, or early": (RISING, 3),
        "in one block": (draw(3, 5, seed=3), 8),
        "in blocks of 1": (draw(3, 5, seed=5), 1),
        "in blocks of 2, of 6 scores": (draw(3, 6, seed=7), 2),
    }


ONLINE_SOFTMAX = Component(
    name="online_softmax",
    signature="online_softmax(scores, block)",
    returns="the weights, in the shape of `scores`",
    axes=("row", "column"),
    shape=lambda scores, block: scores.shape,
    oracle=lambda scores, block: scores.softmax(-1),
    reference="torch.softmax",
    cases=cases,
    shape_hints={
        "Is this the sum of each row? What is wanted are all its weights.": (
            lambda scores, block: scores.shape[:-1]
        ),
    },
)


ONLINE_SOFTMAX.contract(rows_sum_to_one(lambda: (draw(3, 11, seed=11), 4)))


@ONLINE_SOFTMAX.contract
def any_block(fn: Guarded) -> None:
    """The size of a block changes nothing."""
    scores = draw(3, 11, seed=13)
    whole = fn(scores, 11)
    for block in (1, 2, 3, 5, 10, 12, 64):
        why = f"In blocks of {block} it is not what it is in one of 11."
        same(fn, fn(scores, block), whole, why)


ONLINE_SOFTMAX.contract(
    equivariance(
        "Blocks in another order give the same weights, in that order",
        lambda: (draw(3, 8, seed=17), 2),
        lambda scores, block: (scores.roll(4, -1), block),
        lambda weights: weights.roll(4, -1),
        why="What a block adds depends on when it comes: is all that was "
        "gathered so far rescaled as the maximum grows?",
    )
)


@ONLINE_SOFTMAX.contract
def rows_apart(fn: Guarded) -> None:
    """One row does not touch another."""
    scores = draw(3, 7, seed=19)
    before, scores = fn(scores, 3), scores.clone()
    # Far enough that a maximum of its neighbour leaves a row nothing.
    scores[1] += 200
    after = fn(scores, 3)
    index = furthest(after, before)
    if index is not None:
        raise Broken(
            f"200 was added to all of row 1, which changes no weight, and row "
            f"{index[0]} moved: has each row its own maximum and sum?",
            after,
            before,
        )


@ONLINE_SOFTMAX.contract
def far_below_zero(fn: Guarded) -> None:
    """Scores of -200 are like any others."""
    scores = draw(3, 7, seed=23)
    why = (
        "With 200 subtracted from all scores the weights are others: does the "
        "running maximum begin at 0? Begin at -∞."
    )
    got, expected = fn.raw(scores - 200, 2), fn(scores, 2)
    finite(fn, got, why, expected)
    same(fn, got, expected, why)


def with_a_hidden_block() -> Tensor:
    """Make scores of which the first block, a middle and the last are -∞."""
    scores = draw(3, 8, seed=29)
    scores[0, :2] = scores[1, 2:6] = scores[2, 6:] = -math.inf
    return scores


@ONLINE_SOFTMAX.contract
def hidden_block(fn: Guarded) -> None:
    """A block whose scores are all -∞ gets weight 0."""
    scores = with_a_hidden_block()
    got, expected = fn.raw(scores, 2), scores.softmax(-1)
    why = (
        "A block of its row is hidden, all its scores are -∞: as long as the "
        "maximum is -∞ too, their difference is NaN."
    )
    finite(fn, got, why, expected)
    same(fn, got, expected, "One block is hidden, all its scores are -∞.")


ONLINE_SOFTMAX.contract(large_scores_stay_finite(lambda: (FAR.flip(-1), 1)))
ONLINE_SOFTMAX.contract(half_precision(lambda: (draw(3, 5, seed=31) + 12, 2)))


@ONLINE_SOFTMAX.contract
def any_axes(fn: Guarded) -> None:
    """It takes any number of axes before the scores."""
    for lead in ((), (2,), (2, 3), (2, 3, 5)):
        scores = draw(*lead, 7, seed=37)
        rows = scores.reshape(-1, 1, 7)
        expected = torch.cat([fn(row, 3) for row in rows]).reshape(scores.shape)
        why = f"With {len(lead)} axes before the scores it is not row by row."
        same(fn, fn(scores, 3), expected, why)


# Known mistakes, in the order in which they are recognised


def gather(scores, block, *, rescale=True, first=-math.inf, grow=torch.maximum):
    """Gather maximum and sum, right but for what a mistake puts in."""
    maximum = torch.full_like(scores[..., :1], first)
    total = torch.zeros_like(maximum)
    for part in scores.split(block, -1):
        largest = grow(maximum, part.amax(-1, keepdim=True)).detach()
        low = largest.masked_fill(largest == -math.inf, 0)
        if rescale:
            total = total * (maximum - low).exp()
        total = total + (part - low).exp().sum(-1, keepdim=True)
        maximum = largest
    return maximum, total


def share(scores, maximum, total):
    """Write the weights."""
    low = maximum.masked_fill(maximum == -math.inf, 0)
    return (scores - low).exp() / total


@ONLINE_SOFTMAX.mistake(
    hint="The sum is not rescaled as the maximum grows: multiply it by "
    "exp(old maximum - new maximum) before a block is added.",
    symptom="right where the largest score comes first; rows sum to less than "
    "1 elsewhere",
)
def sum_not_rescaled(scores, block):
    """What earlier blocks added stays, below a maximum that is none now."""
    return share(scores, *gather(scores, block, rescale=False))


@ONLINE_SOFTMAX.mistake(
    hint="The sum is rescaled the wrong way round: by exp(old - new maximum), "
    "which is at most 1.",
    symptom="sums explode wherever a larger score comes late",
)
def rescaled_upside_down(scores, block):
    """Multiplies by exp(new - old) where it should be exp(old - new)."""
    maximum = total = None
    for part in scores.split(block, -1):
        here = part.amax(-1, keepdim=True).detach()
        largest = here if maximum is None else torch.maximum(maximum, here)
        low = largest.masked_fill(largest == -math.inf, 0)
        added = (part - low).exp().sum(-1, keepdim=True)
        if total is not None:
            added = added + total * (low - maximum).exp()
        maximum, total = largest, added
    return share(scores, maximum, total)


@ONLINE_SOFTMAX.mistake(
    hint="Each block has a softmax of its own: all blocks share one sum.",
    symptom="a row of many blocks weighs as much as there are blocks",
)
def a_softmax_for_each_block(scores, block):
    """Blocks never hear of each other."""
    return torch.cat([x.softmax(-1) for x in scores.split(block, -1)], -1)


@ONLINE_SOFTMAX.mistake(
    hint="Each block has a softmax of its own, and the blocks count the same: "
    "a block counts by its sum of exponentials.",
    symptom="rows sum to 1, and a key is heard by how dull its block is",
)
def blocks_averaged(scores, block):
    """The softmax of each block, divided by the number of blocks."""
    blocks = scores.split(block, -1)
    return torch.cat([x.softmax(-1) for x in blocks], -1) / len(blocks)


@ONLINE_SOFTMAX.mistake(
    hint="The last block is left out where the block does not divide the row: "
    "take what is left as a smaller block.",
    symptom="right for every length that the block divides",
)
def last_block_left_out(scores, block):
    """`n // block` blocks."""
    whole = scores.shape[-1] // block * block
    if not whole:
        return scores.softmax(-1)
    weights = scores[..., :whole].softmax(-1)
    return torch.cat([weights, torch.zeros_like(scores[..., whole:])], -1)


@ONLINE_SOFTMAX.mistake(
    hint="The last block alone is in the sum: add to what was there.",
    symptom="weights beyond 1 wherever the end of a row is dull",
)
def last_block_alone(scores, block):
    """`total = …` where it should be `total = total * … + …`."""
    maximum, _ = gather(scores, block)
    low = maximum.masked_fill(maximum == -math.inf, 0)
    last = scores.split(block, -1)[-1]
    return share(scores, maximum, (last - low).exp().sum(-1, keepdim=True))


@ONLINE_SOFTMAX.mistake(
    hint="The weights of a block are divided by the sum as it was then: divide "
    "once, when all blocks are known.",
    symptom="early keys are heard too loudly, as in a causal row cut short",
)
def divided_too_early(scores, block):
    """Each block is divided by the sum so far, and never again."""
    parts, end = [], 0
    for part in scores.split(block, -1):
        end += part.shape[-1]
        maximum, total = gather(scores[..., :end], block)
        parts.append(share(part, maximum, total))
    return torch.cat(parts, -1)


@ONLINE_SOFTMAX.mistake(
    symptom="right until scores spread; then whole rows are NaN",
)
def first_maximum_kept(scores, block):
    """The maximum of the first block is subtracted from all of them."""
    maximum = scores[..., :block].amax(-1, keepdim=True).detach()
    low = maximum.masked_fill(maximum == -math.inf, 0)
    total = (scores - low).exp().sum(-1, keepdim=True)
    return share(scores, maximum, total)


@ONLINE_SOFTMAX.mistake(
    symptom="fine for years, and 0/0 for a row whose scores are all low",
)
def begins_at_zero(scores, block):
    """The running maximum begins at 0, and not at -∞."""
    return share(scores, *gather(scores, block, first=0.0))


@ONLINE_SOFTMAX.mistake(
    symptom="one loud row in a batch, and the quiet ones are NaN",
)
def one_maximum_for_all_rows(scores, block):
    """`part.max()` without an axis."""

    def grow(maximum, here):
        return torch.maximum(maximum, here.max())

    return share(scores, *gather(scores, block, grow=grow))


@ONLINE_SOFTMAX.mistake(
    symptom="NaN as soon as a whole tile is masked, as causal masks do",
)
def nan_in_a_hidden_block(scores, block):
    """-∞ - (-∞) while no score of the row has been seen."""
    maximum = torch.full_like(scores[..., :1], -math.inf)
    total = torch.zeros_like(maximum)
    for part in scores.split(block, -1):
        here = part.amax(-1, keepdim=True).detach()
        largest = torch.maximum(maximum, here)
        total = total * (maximum - largest).exp()
        total = total + (part - largest).exp().sum(-1, keepdim=True)
        maximum = largest
    return (scores - maximum).exp() / total


@ONLINE_SOFTMAX.mistake(
    symptom="every output is right, and training goes astray",
)
def half_a_gradient(scores, block):
    """The sum is detached, like the maximum; but the sum matters."""
    maximum, total = gather(scores, block)
    return share(scores, maximum, total.detach())


@ONLINE_SOFTMAX.mistake(
    symptom="one pass and no maximum: NaN from the first score beyond 88",
)
def no_maximum(scores, block):
    """Adds exponentials up as they come, and subtracts nothing."""
    total = torch.zeros_like(scores[..., :1])
    for part in scores.split(block, -1):
        total = total + part.exp().sum(-1, keepdim=True)
    return scores.exp() / total
