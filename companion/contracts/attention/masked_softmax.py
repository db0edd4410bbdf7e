"""The masked softmax: True = may attend."""

import torch
from torch import Tensor

from companion.contracts.attention.softmax import FAR
from companion.contracts.engine.compare import draw
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    batch_independence,
    equivariance,
    fully_masked_row_gets_zeros,
    fully_masked_row_has_finite_gradients,
    future_hidden,
    half_precision,
    hidden_score_changes_nothing,
    large_scores_stay_finite,
    mask_broadcasts,
    no_weight_is_negative,
    rows_sum_to_one,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import (
    MASK_HINTS,
    PATCHY,
    causal,
    fully_masked,
    hide,
    require_hidden,
)

__all__ = ["MASKED_SOFTMAX"]


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
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
)


def has_weight(fn: Guarded, args: tuple) -> Tensor:
    """Return which row gives which key a weight."""
    return fn.raw(*args).detach().nan_to_num() != 0


MASKED_SOFTMAX.before_reference(
    future_hidden(lambda: (draw(5, 5, seed=13), causal(5)), has_weight)
)


@MASKED_SOFTMAX.before_reference
def no_leak(fn: Guarded) -> None:
    """A hidden key gets exactly 0."""
    args = draw(3, 5, seed=11), PATCHY
    require_hidden(fn, has_weight(fn, args), args, "which the mask hides")


MASKED_SOFTMAX.contract(
    rows_sum_to_one(lambda: (draw(2, 3, 5, seed=5), PATCHY))
)
MASKED_SOFTMAX.contract(
    no_weight_is_negative(lambda: (draw(2, 3, 5, seed=7), PATCHY))
)
MASKED_SOFTMAX.contract(
    hidden_score_changes_nothing(
        lambda: (draw(2, 3, 5, seed=17), PATCHY),
        lambda scores, mask: (scores.masked_fill(~mask, 1e4), mask),
        "The hidden score was 10⁴: is it -∞ before the softmax, or only "
        "wiped out after it?",
    )
)
MASKED_SOFTMAX.contract(
    mask_broadcasts(
        "A mask may be (1, key), (query, key) or (batch, 1, query, key)",
        lambda: (draw(2, 3, 5, 7, seed=19),),
        ((1, 7), (5, 7), (2, 1, 5, 7)),
        (2, 3, 5, 7),
    )
)
MASKED_SOFTMAX.contract(
    fully_masked_row_gets_zeros(
        lambda: (draw(3, 5, seed=29), fully_masked()),
        lambda scores, mask: torch.full((5,), 1 / 5),
    )
)
MASKED_SOFTMAX.contract(
    fully_masked_row_has_finite_gradients(
        lambda: (draw(3, 5, seed=29), fully_masked())
    )
)
MASKED_SOFTMAX.contract(
    equivariance(
        "Adding the same number to a whole row changes nothing",
        lambda: (draw(3, 5, seed=31), PATCHY),
        lambda scores, mask: (scores + torch.tensor([[3.0], [-2], [1]]), mask),
        why="Only differences between scores count.",
    )
)
MASKED_SOFTMAX.contract(
    batch_independence(
        "One batch element does not touch another",
        lambda: (draw(2, 3, 5, seed=37), PATCHY),
        lambda scores, mask: (
            torch.stack([scores[0], draw(3, 5, seed=41) + 2]),
            mask,
        ),
        why="is a sum or a maximum taken over the batch?",
        unit="batch",
        changed=1,
    )
)
MASKED_SOFTMAX.contract(
    large_scores_stay_finite(lambda: (FAR, torch.ones(3, 5, dtype=torch.bool)))
)
MASKED_SOFTMAX.contract(
    half_precision(lambda: (draw(3, 5, seed=43) + 12, PATCHY))
)


# Known mistakes, in the order in which they are recognised

MASKED_SOFTMAX.mistake("upside-down", hint=MASK_HINTS["upside-down"])(
    lambda scores, mask: hide(scores, ~mask)
)
MASKED_SOFTMAX.mistake("transposed", hint=MASK_HINTS["transposed"])(
    lambda scores, mask: hide(
        scores, mask.mT if mask.shape[-1] == mask.shape[-2] else mask
    )
)
MASKED_SOFTMAX.mistake("unused", hint=MASK_HINTS["unused"])(
    lambda scores, mask: scores.softmax(-1)
)


@MASKED_SOFTMAX.mistake(
    hint=MASK_HINTS["multiplied-afterwards"],
    symptom="short sentences get shorter vectors, the shorter the worse",
)
def multiplied_afterwards(scores, mask):
    """The mask wipes weights out after the softmax: rows sum to less."""
    return torch.softmax(scores, dim=-1) * mask


MASKED_SOFTMAX.mistake("filled-with-zero", hint=MASK_HINTS["filled-with-zero"])(
    lambda scores, mask: (scores * mask).softmax(-1)
)
MASKED_SOFTMAX.mistake("added", hint=MASK_HINTS["added"])(
    lambda scores, mask: (scores + mask.to(scores.dtype)).softmax(-1)
)
MASKED_SOFTMAX.mistake("over-the-queries", hint=MASK_HINTS["over-the-queries"])(
    lambda scores, mask: hide(scores.mT, mask.mT).mT
)


@MASKED_SOFTMAX.mistake(
    symptom="fine, until padding scores high: then a row is NaN"
)
def shared_out_afterwards(scores, mask):
    """Wiped out after the softmax, and the rest divided by its sum."""
    weights = torch.softmax(scores, dim=-1) * mask
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(~mask.any(-1, keepdim=True), 1)


@MASKED_SOFTMAX.mistake(
    symptom="the loss is a little too good, and the text a little too bad"
)
def filled_with_minus_ten(scores, mask):
    """Hidden scores become -10: enough for weak scores, not for strong."""
    weights = scores.masked_fill(~mask, -10).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0)


@MASKED_SOFTMAX.mistake(
    symptom="one empty sentence in a batch, and all weights are NaN at once"
)
def nan_in_empty_rows(scores, mask):
    """Hidden scores become -∞: a row of nothing else is 0/0."""
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


@MASKED_SOFTMAX.mistake(
    symptom="no error: a sentence of padding reads all of its padding"
)
def uniform_in_empty_rows(scores, mask):
    """Hidden scores become very low: equally low ones get equal weights."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1)


@MASKED_SOFTMAX.mistake(
    symptom="every output is finite, and the first step makes all NaN"
)
def nan_in_the_gradient(scores, mask):
    """The NaN of an empty row is turned into 0, too late for its gradient."""
    bias = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    return (scores + bias).softmax(-1).nan_to_num(0)


@MASKED_SOFTMAX.mistake(
    symptom="in mixed precision everything is NaN from the first batch on"
)
def mask_times_a_billion(scores, mask):
    """Adds hidden × -1e9, which is -∞ in float16; and 0 × -∞ is NaN."""
    billion = torch.tensor(-1e9).to(scores.dtype)
    weights = (scores + (~mask).to(scores.dtype) * billion).softmax(-1)
    return weights.masked_fill(~mask, 0)
