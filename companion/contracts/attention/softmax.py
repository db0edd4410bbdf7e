"""Softmax: scores in, weights that sum to 1 out."""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw, furthest, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    equivariance,
    half_precision,
    large_scores_stay_finite,
    no_weight_is_negative,
    rows_sum_to_one,
)
from companion.contracts.engine.guard import Guarded

__all__ = ["FAR", "SOFTMAX"]


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    scores = draw(2, 3, 5, seed=2)
    return {
        "along the last axis": (scores, -1),
        "along axis 1": (scores, 1),
        "along axis 0": (scores, 0),
    }


SOFTMAX = Component(
    name="softmax",
    signature="softmax(scores, dim)",
    returns="the weights, in the shape of `scores`",
    axes=("row", "column"),
    shape=lambda scores, dim: scores.shape,
    oracle=torch.softmax,
    reference="torch.softmax",
    cases=cases,
)
ORDER = torch.tensor([3, 0, 4, 2, 1], device="cpu")
FAR = torch.tensor(
    [[1e4, 5e3, -1e4, 1e4, 0], [-1e4] * 5, [0.0] * 5], device="cpu"
)

SOFTMAX.contract(rows_sum_to_one(lambda: (draw(3, 5, seed=3), -1)))
SOFTMAX.contract(no_weight_is_negative(lambda: (draw(3, 5, seed=5), -1)))
SOFTMAX.contract(
    equivariance(
        "Adding the same number to a whole row changes nothing",
        lambda: (draw(3, 5, seed=7), -1),
        lambda scores, dim: (scores + torch.tensor([[3.0], [-2], [1]]), dim),
        why="Only differences between scores count.",
    )
)
SOFTMAX.contract(
    equivariance(
        "Reordering the scores reorders the weights",
        lambda: (draw(3, 5, seed=11), -1),
        lambda scores, dim: (scores[:, ORDER], dim),
        lambda weights: weights[:, ORDER],
        why="A weight depends on where its score stands.",
    )
)


@SOFTMAX.contract
def rows_apart(fn: Guarded) -> None:
    """One row does not touch another."""
    scores = draw(3, 5, seed=13)
    before, scores = fn(scores, -1), scores.clone()
    scores[1] = draw(5, seed=17) + 2
    after = fn(scores, -1)
    others = torch.tensor([0, 2])
    index = furthest(after[others], before[others])
    if index is not None:
        row = int(others[index[0]])
        raise Broken(
            f"Only row 1 was changed, and row {row} moved: is a sum or a "
            "maximum taken over all rows?",
            after,
            before,
        )


@SOFTMAX.contract
def any_axes(fn: Guarded) -> None:
    """It takes any number of axes, and each of them as dim."""
    shape = (2, 3, 5, 7)
    for axes in range(1, 5):
        for dim in range(-axes, axes):
            scores = draw(*shape[-axes:], seed=19)
            why = (
                f"For shape {tuple(scores.shape)} and dim {dim} it is not "
                "what it is with that axis moved to the end."
            )
            expected = fn(scores.movedim(dim, -1), -1).movedim(-1, dim)
            same(fn, fn(scores, dim), expected, why)


SOFTMAX.contract(large_scores_stay_finite(lambda: (FAR, -1)))
# exp(12) is more than float16 can hold.
SOFTMAX.contract(half_precision(lambda: (draw(3, 5, seed=23) + 12, -1)))


# Known mistakes, in the order in which they are recognised


def share(parts: Tensor, dim: int) -> Tensor:
    """Divide ``parts`` by their sum."""
    return parts / parts.sum(dim, keepdim=True)


@SOFTMAX.mistake(
    hint="`dim` is not used: the softmax always runs along the last axis.",
    symptom="right in every test along the last axis, wrong along another",
)
def ignores_dim(scores, dim):
    """It takes `dim`, and runs along the last axis whatever that says."""
    return torch.softmax(scores, dim=-1)


SOFTMAX.mistake(
    "always-axis-0",
    hint="`dim` is not used: the softmax always runs along axis 0.",
)(lambda scores, dim: scores.softmax(0))
SOFTMAX.mistake(
    "always-axis-1",
    hint="`dim` is not used: the softmax always runs along axis 1.",
)(lambda scores, dim: scores.softmax(1))


@SOFTMAX.mistake(
    hint="All numbers share one sum: sum along `dim` only, and keep the axis "
    "with `keepdim=True`.",
    symptom="weights shrink as the batch grows, and with them the output",
)
def one_sum_for_all(scores, dim):
    """`sum()` without an axis: the whole batch shares one weight of 1."""
    parts = (scores - scores.max()).exp()
    return parts / parts.sum()


SOFTMAX.mistake(
    "exponentials", hint="These are exponentials: divide them by their sum."
)(lambda scores, dim: scores.exp())
SOFTMAX.mistake(
    "divided-by-largest",
    hint="These are exponentials, divided by the largest: divide them by "
    "their sum.",
)(lambda scores, dim: (scores - scores.amax(dim, keepdim=True)).exp())
SOFTMAX.mistake(
    "shares",
    hint="There is no `exp`: scores divided by their sum may be negative.",
)(share)
SOFTMAX.mistake("squared", hint="The scores are squared: use `exp`.")(
    lambda scores, dim: share(scores**2, dim)
)
SOFTMAX.mistake(
    "powers-of-two", hint="This is 2 to the power of the scores: use e, `exp`."
)(lambda scores, dim: share(torch.exp2(scores), dim))
SOFTMAX.mistake(
    "upside-down",
    hint="The sign is turned round: the largest score is to get the "
    "largest weight.",
)(lambda scores, dim: (-scores).softmax(dim))
SOFTMAX.mistake(
    "sigmoid", hint="This is a sigmoid: it looks at each score alone."
)(lambda scores, dim: scores.sigmoid())
SOFTMAX.mistake("logarithm", hint="This is the logarithm of the softmax.")(
    torch.log_softmax
)
SOFTMAX.mistake("unchanged", hint="The scores came back as they were.")(
    lambda scores, dim: scores
)


@SOFTMAX.mistake(
    symptom="training goes well for a while, then the loss is NaN for ever"
)
def overflows(scores, dim):
    """The formula as printed: `exp` of a score of 89 is already infinite."""
    return share(scores.exp(), dim)


@SOFTMAX.mistake(
    symptom="a confident sentence turns the others of its batch into NaN"
)
def one_maximum_for_all(scores, dim):
    """The largest score of the whole batch is subtracted from every row."""
    return share((scores - scores.max()).exp(), dim)


@SOFTMAX.mistake(symptom="every output is right, and training goes astray")
def half_a_gradient(scores, dim):
    """The sum is detached, like the maximum; but the sum matters."""
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    return parts / parts.sum(dim, keepdim=True).detach()


@SOFTMAX.mistake(symptom="no weight comes near 1, however clear the case is")
def clamped(scores, dim):
    """Scores are cut at ±30 so that `exp` cannot overflow."""
    return share(scores.clamp(-30, 30).exp(), dim)
