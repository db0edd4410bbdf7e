"""Contracts of RMS normalisation: each vector by its own size."""

import torch

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    gradients,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.influence import reach, require_silent
from companion.contracts.variants.rms_norm_cases import (
    LAST,
    SEQ,
    SUSPECTS,
    WIDTH,
    arguments,
    cases,
    oracle,
)

RMS_NORM = Component(
    name="rms_norm",
    signature="rms_norm(x, gain, eps)",
    returns="the normalised vectors, in the shape of `x`",
    axes=("position", "feature"),
    shape=lambda x, gain, eps: x.shape,
    oracle=oracle,
    reference="F.rms_norm",
    cases=cases,
    suspects=SUSPECTS,
)


@RMS_NORM.contract
def unit_size(fn: Guarded) -> None:
    """With gain 1, the squares of every vector have the mean 1."""
    x, gain, eps = arguments(7)
    got = fn(x, torch.ones_like(gain), eps).square().mean(-1)
    why = "The mean square of a vector is not 1."
    same(fn, got, torch.ones_like(got), why, 1e-3)


@RMS_NORM.contract
def mean_stays(fn: Guarded) -> None:
    """A vector of equal numbers becomes the gain."""
    x, gain, eps = arguments(11)
    x[0, 2] = 3
    got = fn.raw(x, gain, eps)[0, 2]
    why = (
        "Position 2 of sentence 0 is all 3, and its mean square is 9: is the "
        "mean subtracted, as LayerNorm does?"
    )
    finite(fn, got, why)
    same(fn, got, gain, why)


@RMS_NORM.contract
def positions_apart(fn: Guarded) -> None:
    """No position sees another."""
    x, *rest = arguments(13)
    seen = reach(fn, x, *rest)
    alone = torch.eye(SEQ, dtype=torch.bool).expand_as(seen)
    why = f"Over which axis does the mean run? {LAST.capitalize()}"
    require_silent(seen, alone, "which is another position", why)


@RMS_NORM.contract
def stretch(fn: Guarded) -> None:
    """Stretching a vector changes nothing, and turning it round its sign."""
    x, *rest = arguments(17)
    factor = torch.tensor([2.0, 3.0, -5.0, 7.0, 11.0]).unsqueeze(-1)
    why = "A vector's own size is divided out, and its direction stays."
    same(fn, fn(factor * x, *rest), factor.sign() * fn(x, *rest), why)


@RMS_NORM.contract
def any_leading_axes(fn: Guarded) -> None:
    """It takes any number of axes before the features."""
    for lead in ((), (3,), (1, 1), (2, 3, 2)):
        x, *rest = arguments(19, 12)
        x = x[: max(1, torch.Size(lead).numel())].reshape(*lead, WIDTH)
        why = (
            f"With {len(lead)} axes before the features it is not what "
            "F.rms_norm returns."
        )
        same(fn, fn(x, *rest), oracle(x, *rest), why)


@RMS_NORM.contract
def zeros(fn: Guarded) -> None:
    """A vector of zeros stays one."""
    x, *rest = arguments(23)
    x[0, 2] = 0
    got, expected = fn.raw(x, *rest), oracle(x, *rest)
    why = "Its mean square is 0, and 0/0 is NaN: add eps to it."
    finite(fn, got, why, expected)
    same(fn, got, expected, "Position 2 of sentence 0 is all 0.")


@RMS_NORM.contract
def zeros_gradient(fn: Guarded) -> None:
    """A vector of zeros has a finite gradient."""
    x, *rest = arguments(23)
    x[0, 2] = 0
    found = gradients(fn.raw, (x, *rest), [draw(*x.shape, seed=97)])
    slope = found[0] if found else None
    if slope is not None and not slope.isfinite().all():
        raise Broken(
            "The gradient of `x` is NaN where a vector is all 0: a root is "
            "infinitely steep at 0. Add eps to the mean square, inside the "
            "root.",
            slope,
        )


@RMS_NORM.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    x, *rest = arguments(29)
    require_half_precision(fn, draw(*x.shape, seed=31), *rest)


@RMS_NORM.contract
def large_in_half(fn: Guarded) -> None:
    """In float16 a vector of numbers near 1000 does not overflow."""
    x, gain, eps = arguments(37)
    small, gain = (1000 * x).half(), gain.half()
    expected = oracle(small.float(), gain.float(), eps)
    got = fn.raw(small, gain, eps)
    why = (
        "float16 ends at 65504, and the square of 1000 is a million: square "
        "in float32, `x.float()`, and turn the result back, `.to(x.dtype)`."
    )
    finite(fn, got, why, expected)
    same(fn, got, expected, why, 0.05)
