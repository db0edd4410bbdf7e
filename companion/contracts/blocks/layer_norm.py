"""Contracts of layer normalisation: each vector by its own statistics."""

import torch

from companion.contracts.blocks.layer_norm_cases import (
    LAST,
    SEQ,
    SUSPECTS,
    WIDTH,
    arguments,
    cases,
    oracle,
)
from companion.contracts.engine.compare import (
    draw,
    finite,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.influence import reach, require_silent

LAYER_NORM = Component(
    name="layer_norm",
    signature="layer_norm(x, gain, bias, eps)",
    returns="the normalised vectors, in the shape of `x`",
    axes=("position", "feature"),
    shape=lambda x, gain, bias, eps: x.shape,
    oracle=oracle,
    reference="F.layer_norm",
    cases=cases,
    suspects=SUSPECTS,
)


@LAYER_NORM.contract
def standardised(fn: Guarded) -> None:
    """With gain 1 and bias 0, every vector has mean 0 and variance 1."""
    x, gain, bias, eps = arguments(7)
    got = fn(x, torch.ones_like(gain), torch.zeros_like(bias), eps)
    mean, variance = got.mean(-1), got.var(-1, correction=0)
    for name, found, wanted in (("mean", mean, 0), ("variance", variance, 1)):
        why = f"The {name} of a vector is not {wanted}."
        same(fn, found, torch.full_like(found, wanted), why, 1e-3)


@LAYER_NORM.contract
def positions_apart(fn: Guarded) -> None:
    """No position sees another."""
    x, *rest = arguments(11)
    seen = reach(fn, x, *rest)
    alone = torch.eye(SEQ, dtype=torch.bool).expand_as(seen)
    why = f"Over which axis do the statistics run? {LAST.capitalize()}"
    require_silent(seen, alone, "which is another position", why)


@LAYER_NORM.contract
def shift_and_scale(fn: Guarded) -> None:
    """Shifting and stretching a vector changes nothing."""
    x, *rest = arguments(13)
    stretch = torch.tensor([2.0, 3.0, 5.0, 7.0, 11.0]).unsqueeze(-1)
    why = "A vector's own mean and variance are divided out."
    same(fn, fn(stretch * x - 5, *rest), fn(x, *rest), why)


@LAYER_NORM.contract
def any_leading_axes(fn: Guarded) -> None:
    """It takes any number of axes before the features."""
    for lead in ((), (3,), (1, 1), (2, 3, 2)):
        x, *rest = arguments(17, 12)
        x = x[: max(1, torch.Size(lead).numel())].reshape(*lead, WIDTH)
        why = (
            f"With {len(lead)} axes before the features it is not what "
            "F.layer_norm returns."
        )
        same(fn, fn(x, *rest), oracle(x, *rest), why)


@LAYER_NORM.contract
def constant(fn: Guarded) -> None:
    """A vector of equal numbers becomes the bias."""
    x, *rest = arguments(19)
    x[0, 2] = 3
    got, expected = fn.raw(x, *rest), oracle(x, *rest)
    why = (
        "Its variance is 0, and 0/0 is NaN: add eps to the variance, inside "
        "the root."
    )
    finite(fn, got, why, expected)
    same(fn, got, expected, "Position 2 of sentence 0 is all 3.")


@LAYER_NORM.contract
def far_from_zero(fn: Guarded) -> None:
    """A mean of 10⁴ spoils nothing."""
    x, *rest = arguments(23)
    x = (64 * x).round() / 64 + 1e4  # Exact in float32.
    why = (
        "E[x²] − E[x]² is the difference of two large numbers: subtract the "
        "mean first, then square."
    )
    got, expected = fn.raw(x, *rest), oracle(x.double(), *doubled(rest))
    finite(fn, got, why)
    same(fn, got, expected.float(), why, 1e-2)


def doubled(rest: list) -> list:
    """Gain and bias in float64, and eps."""
    gain, bias, eps = rest
    return [gain.double(), bias.double(), eps]


@LAYER_NORM.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    x, *rest = arguments(29)
    require_half_precision(fn, draw(*x.shape, seed=31), *rest)
