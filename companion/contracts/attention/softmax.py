"""Contracts of softmax: scores in, weights that sum to 1 out."""

import math

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    number,
    place,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded

FAR = (
    "`exp` makes ∞ of a large score, and 0 of every low one: subtract each "
    "row's own largest score first, as `torch.softmax` does."
)


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    scores = draw(2, 3, 5, seed=2)
    return {
        "along the last axis": (scores, -1),
        "along axis 1": (scores, 1),
        "along axis 0": (scores, 0),
    }


def share(parts: Tensor, dim: int) -> Tensor:
    """``parts`` divided by their sum."""
    return parts / parts.sum(dim, keepdim=True)


SOFTMAX = Component(
    name="softmax",
    signature="softmax(scores, dim)",
    returns="the weights, in the shape of `scores`",
    axes=("row", "column"),
    shape=lambda scores, dim: scores.shape,
    oracle=torch.softmax,
    reference="torch.softmax",
    cases=cases,
    suspects={
        "`dim` is not used: the softmax always runs along the last axis.": (
            lambda scores, dim: scores.softmax(-1)
        ),
        "`dim` is not used: the softmax always runs along axis 0.": (
            lambda scores, dim: scores.softmax(0)
        ),
        "`dim` is not used: the softmax always runs along axis 1.": (
            lambda scores, dim: scores.softmax(1)
        ),
        "All numbers share one sum: sum along `dim` only, and keep the axis "
        "with `keepdim=True`.": (
            lambda scores, dim: scores.flatten().softmax(0).view_as(scores)
        ),
        "These are exponentials: divide them by their sum.": (
            lambda scores, dim: scores.exp()
        ),
        "These are exponentials, divided by the largest: divide them by "
        "their sum.": (
            lambda scores, dim: (scores - scores.amax(dim, True)).exp()
        ),
        "There is no `exp`: scores divided by their sum may be negative.": (
            share
        ),
        "The scores are squared: use `exp`.": (
            lambda scores, dim: share(scores**2, dim)
        ),
        "This is 2 to the power of the scores: use e, `exp`.": (
            lambda scores, dim: share(torch.exp2(scores), dim)
        ),
        "The sign is turned round: the largest score is to get the "
        "largest weight.": lambda scores, dim: (-scores).softmax(dim),
        "This is a sigmoid: it looks at each score alone.": (
            lambda scores, dim: scores.sigmoid()
        ),
        "This is the logarithm of the softmax.": torch.log_softmax,
        "The scores came back as they were.": lambda scores, dim: scores,
    },
)


@SOFTMAX.contract
def sums_to_one(fn: Guarded) -> None:
    """Every row sums to 1."""
    rows_sum_to_one(fn, fn(draw(3, 5, seed=3), -1))


def rows_sum_to_one(fn: Guarded, weights: Tensor) -> None:
    """Raises Broken for the row whose sum is furthest from 1."""
    sums = weights.sum(-1)
    index = furthest(sums, torch.ones_like(sums))
    if index is not None:
        where = place(index, fn.component.axes[:-1])
        raise Broken(
            f"{where.capitalize()} sums to {sums[index]:.4g}, not to 1.",
            weights,
        )


def require_factor(weights: Tensor, factor: float, where: str) -> None:
    """Raises Broken unless ``weights`` are softmax(factor · [1, 0])."""
    found = (weights[0] / weights[1]).log().detach()
    if not math.isclose(found.item(), factor, rel_tol=1e-3):
        raise Broken(
            f"For {where} a score is multiplied by {number(found)}, expected "
            f"{factor:.4g}."
        )


@SOFTMAX.contract
def not_negative(fn: Guarded) -> None:
    """No weight is negative."""
    none_negative(fn, fn(draw(3, 5, seed=5), -1))


def none_negative(fn: Guarded, weights: Tensor) -> None:
    """Raises Broken for the first negative weight."""
    if (weights < 0).any():
        index = tuple((weights < 0).nonzero()[0].tolist())
        where = place(index, fn.component.axes)
        raise Broken(
            f"{where.capitalize()} is {weights[index]:.4g}: an exponential "
            "is never negative, so where is `exp`?",
            weights,
        )


@SOFTMAX.contract
def shift(fn: Guarded) -> None:
    """Adding the same number to a whole row changes nothing."""
    scores = draw(3, 5, seed=7)
    moved = scores + torch.tensor([[3.0], [-2.0], [1.0]])
    why = "Only differences between scores count."
    same(fn, fn(moved, -1), fn(scores, -1), why)


@SOFTMAX.contract
def order(fn: Guarded) -> None:
    """Reordering the scores reorders the weights."""
    scores, order = draw(3, 5, seed=11), torch.tensor([3, 0, 4, 2, 1])
    why = "A weight depends on where its score stands."
    same(fn, fn(scores[:, order], -1), fn(scores, -1)[:, order], why)


@SOFTMAX.contract
def rows_apart(fn: Guarded) -> None:
    """One row does not touch another."""
    scores = draw(3, 5, seed=13)
    before, scores = fn(scores, -1), scores.clone()
    scores[1] = draw(5, seed=17) + 2
    after = fn(scores, -1)
    kept = torch.tensor([0, 2])
    index = furthest(after[kept], before[kept])
    if index is not None:
        row = int(kept[index[0]])
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


@SOFTMAX.contract
def far_scores(fn: Guarded) -> None:
    """Scores of ±10⁴ give finite weights."""
    scores = torch.tensor([[1e4, 5e3, -1e4, 1e4, 0], [-1e4] * 5, [0.0] * 5])
    got, expected = fn.raw(scores, -1), scores.softmax(-1)
    finite(fn, got, FAR, expected)
    same(fn, got, expected, "Large scores are not told apart.")


@SOFTMAX.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    # exp(12) is more than float16 can hold.
    require_half_precision(fn, draw(3, 5, seed=23) + 12, -1)
