"""Contracts of the masked softmax: True = may attend."""

import torch
from torch import Tensor

from companion.contracts.attention.softmax import (
    FAR,
    none_negative,
    rows_sum_to_one,
)
from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import (
    PATCHY,
    WRONGLY_MASKED,
    causal,
    fully_masked,
    hide,
    require_finite_gradients,
    require_hidden,
    require_zeros_in_row_one,
    some_mask,
)


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    return {
        "with a mask": (draw(2, 3, 5, seed=2), PATCHY),
        "with a causal mask": (draw(2, 5, 5, seed=3), causal(5)),
    }


MASKED_SOFTMAX = Component(
    name="masked_softmax",
    signature="masked_softmax(scores, mask)",
    returns="the weights, in the shape of `scores`",
    axes=("row", "key"),
    shape=lambda scores, mask: scores.shape,
    oracle=hide,
    reference="torch.softmax with -∞ for each hidden score",
    cases=cases,
    suspects=WRONGLY_MASKED,
)


def weights_of(fn: Guarded, seed: int) -> Tensor:
    """The weights for some scores, of which every row sees something."""
    return fn(draw(2, 3, 5, seed=seed), PATCHY)


@MASKED_SOFTMAX.before_reference
def future(fn: Guarded) -> None:
    """With a causal mask no row sees its future."""
    args = draw(5, 5, seed=13), causal(5)
    sees = fn.raw(*args).detach().nan_to_num() != 0
    require_hidden(fn, sees, args, "which is in its future")


@MASKED_SOFTMAX.before_reference
def no_leak(fn: Guarded) -> None:
    """A hidden key gets exactly 0."""
    args = draw(3, 5, seed=11), PATCHY
    sees = fn.raw(*args).detach().nan_to_num() != 0
    require_hidden(fn, sees, args, "which the mask hides")


@MASKED_SOFTMAX.contract
def sums_to_one(fn: Guarded) -> None:
    """Every row sums to 1."""
    rows_sum_to_one(fn, weights_of(fn, 5))


@MASKED_SOFTMAX.contract
def not_negative(fn: Guarded) -> None:
    """No weight is negative."""
    none_negative(fn, weights_of(fn, 7))


@MASKED_SOFTMAX.contract
def however_large(fn: Guarded) -> None:
    """A hidden score of 10⁴ changes nothing."""
    scores = draw(2, 3, 5, seed=17)
    got = fn.raw(scores.masked_fill(~PATCHY, 1e4), PATCHY)
    why = (
        "The hidden score was 10⁴: is it -∞ before the softmax, or only "
        "wiped out after it?"
    )
    finite(fn, got, why, fn(scores, PATCHY))
    same(fn, got, fn(scores, PATCHY), why)


@MASKED_SOFTMAX.contract
def broadcasts(fn: Guarded) -> None:
    """A mask may be (1, key), (query, key) or (batch, 1, query, key)."""
    scores = draw(2, 3, 5, 7, seed=19)
    for shape in ((1, 7), (5, 7), (2, 1, 5, 7)):
        mask = some_mask(*shape)
        why = f"A mask of shape {shape} is not spread over the scores."
        expected = fn(scores, mask.expand(2, 3, 5, 7))
        same(fn, fn(scores, mask), expected, why)


@MASKED_SOFTMAX.contract
def nobody_to_see(fn: Guarded) -> None:
    """A row that may attend to nothing gets zeros."""
    got = fn.raw(draw(3, 5, seed=29), fully_masked())
    require_zeros_in_row_one(fn, got, torch.full((5,), 1 / 5))


@MASKED_SOFTMAX.contract
def nobody_to_see_gradient(fn: Guarded) -> None:
    """A row that may attend to nothing has finite gradients."""
    require_finite_gradients(fn, draw(3, 5, seed=29), fully_masked())


@MASKED_SOFTMAX.contract
def shift(fn: Guarded) -> None:
    """Adding the same number to a whole row changes nothing."""
    scores = draw(3, 5, seed=31)
    moved = scores + torch.tensor([[3.0], [-2.0], [1.0]])
    why = "Only differences between scores count."
    same(fn, fn(moved, PATCHY), fn(scores, PATCHY), why)


@MASKED_SOFTMAX.contract
def batch_apart(fn: Guarded) -> None:
    """One batch element does not touch another."""
    scores = draw(2, 3, 5, seed=37)
    moved = torch.stack([scores[0], draw(3, 5, seed=41) + 2])
    before, after = fn(scores, PATCHY), fn(moved, PATCHY)
    if furthest(after[0], before[0]) is not None:
        raise Broken(
            "Only batch 1 was changed, and batch 0 moved: is a sum or a "
            "maximum taken over the batch?",
            after[0],
            before[0],
        )


@MASKED_SOFTMAX.contract
def far_scores(fn: Guarded) -> None:
    """Scores of ±10⁴ give finite weights."""
    scores = torch.tensor([[1e4, 5e3, -1e4, 1e4, 0], [-1e4] * 5, [0.0] * 5])
    mask = torch.ones(3, 5, dtype=torch.bool)
    got, expected = fn.raw(scores, mask), scores.softmax(-1)
    finite(fn, got, FAR, expected)
    same(fn, got, expected, "Large scores are not told apart.")


@MASKED_SOFTMAX.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    require_half_precision(fn, draw(3, 5, seed=43) + 12, PATCHY)
