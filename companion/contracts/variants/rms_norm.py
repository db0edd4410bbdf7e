"""Contracts of RMS normalisation: each vector by its own size."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

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

__all__ = ["RMS_NORM"]

SEQ, WIDTH = 5, 7


def arguments(
    seed: int, *lead: int, width: int = WIDTH, eps: float = 1e-6
) -> tuple[Tensor, Tensor, float]:
    """x, gain and eps."""
    x = 2 * draw(*(lead or (2, SEQ)), width, seed=seed) + 1
    return x, 1 + draw(width, seed=seed + 100) / 2, eps


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    return {
        # Large, so that it shows where eps stands.
        "with eps = 0.5": arguments(2, eps=0.5),
        "with eps = 1e-6": arguments(3),
        # Where both are 7, exchanged axes show their numbers.
        "for 7 positions of width 7": arguments(5, 2, WIDTH),
    }


def oracle(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """PyTorch's own."""
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def size(x: Tensor, eps: float, dim: int | tuple[int, ...] = -1) -> Tensor:
    """What each number is divided by: the root of the mean square."""
    return (x.square().mean(dim, keepdim=True) + eps).sqrt()


def over(*dim: int) -> Callable:
    """The mean square of other axes."""
    return lambda x, gain, eps: x / size(x, eps, dim) * gain


def divided(by: Callable) -> Callable:
    """The gain as it should be, after another division."""
    return lambda x, gain, eps: x / by(x, eps) * gain


def centred(x: Tensor) -> Tensor:
    """What LayerNorm divides."""
    return x - x.mean(-1, keepdim=True)


def total(x: Tensor) -> Tensor:
    """The sum of the squares of each vector."""
    return x.square().sum(-1, keepdim=True)


LAST = "take the mean square of each vector, `dim=-1`."


SUSPECTS = {
    f"The mean square runs over the batch: {LAST}": over(0),
    f"The mean square runs over the positions: {LAST}": over(1),
    f"The mean square runs over batch and positions: {LAST}": over(0, 1),
    f"The mean square runs over a whole sentence: {LAST}": over(1, 2),
    f"The mean square runs over all there is: {LAST}": over(0, 1, 2),
    "The mean is subtracted: this is LayerNorm. RMSNorm leaves the mean in.": (
        lambda x, gain, eps: F.layer_norm(x, x.shape[-1:], gain, None, eps)
    ),
    "The mean is subtracted before the division: RMSNorm leaves it in.": (
        lambda x, gain, eps: centred(x) / size(x, eps) * gain
    ),
    "It divides by the standard deviation, from which the mean is missing: "
    "take the mean of x².": divided(
        lambda x, eps: (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
    ),
    "It divides by the standard deviation, with d − 1 at that: take the mean "
    "of x².": divided(lambda x, eps: x.std(-1, keepdim=True) + eps),
    "The squares are divided by d − 1: take their mean, over d.": divided(
        lambda x, eps: (total(x) / (x.shape[-1] - 1) + eps).sqrt()
    ),
    "It divides by the length of the vector: the length is √d times the root "
    "of the mean square.": divided(lambda x, eps: (total(x) + eps).sqrt()),
    "It divides by the length of the vector, and eps is not used as it should "
    "be: √(mean(x²) + eps).": divided(lambda x, eps: total(x).sqrt()),
    "eps stands outside the root: √(mean(x²) + eps).": divided(
        lambda x, eps: size(x, 0.0) + eps
    ),
    "`eps` is not used, or always the same.": (
        lambda x, gain, eps: oracle(x, gain, 1e-6)
    ),
    "The gain is not used.": lambda x, gain, eps: x / size(x, eps),
    "The gain is added: it multiplies.": (
        lambda x, gain, eps: x / size(x, eps) + gain
    ),
    "The gain is 1 + `gain`: here `gain` is what multiplies.": (
        lambda x, gain, eps: x / size(x, eps) * (1 + gain)
    ),
    "The gain comes before the normalisation, which wipes it out again.": (
        lambda x, gain, eps: x * gain / size(x * gain, eps)
    ),
    "The gain runs along the positions: it has one number a feature.": (
        lambda x, gain, eps: x / size(x, eps) * gain.unsqueeze(-1)
    ),
    "The root is missing: divide by √(mean(x²) + eps).": divided(
        lambda x, eps: size(x, eps).square()
    ),
    "It multiplies by the root: divide by it.": divided(
        lambda x, eps: 1 / size(x, eps)
    ),
    "It divides by the mean of |x|: square first, and take the root.": divided(
        lambda x, eps: x.abs().mean(-1, keepdim=True) + eps
    ),
}
"""Hint -> the mistake it hints at."""


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


# Known mistakes


@RMS_NORM.mistake(
    "layer-norm-without-a-bias",
    hint="The mean is subtracted: this is LayerNorm. RMSNorm leaves the mean "
    "in.",
    symptom="weights of a published model load, and it speaks nonsense",
)
def layer_norm_without_a_bias(x, gain, eps):
    """Leaves the bias out, and the mean not in."""
    return F.layer_norm(x, x.shape[-1:], gain, None, eps)


@RMS_NORM.mistake(
    "made-a-unit-vector",
    hint="It divides by the length of the vector, and eps is not used as it "
    "should be: √(mean(x²) + eps).",
    symptom="the stream is √d times too small, and so is every gradient",
)
def made_a_unit_vector(x, gain, eps):
    """Divides by the length, which is √d times the root mean square."""
    return (F.normalize(x.float(), dim=-1) * gain).to(x.dtype)


@RMS_NORM.mistake(
    "gain-counted-from-zero",
    hint="The gain is 1 + `gain`: here `gain` is what multiplies.",
    symptom="loaded weights give vectors of twice their size",
)
def gain_counted_from_zero(x, gain, eps):
    """Adds the 1 that this gain has already."""
    return F.rms_norm(x, x.shape[-1:], 1 + gain, eps)


@RMS_NORM.mistake(
    "squares-in-half-precision",
    symptom="fine in float32 and bfloat16; in float16 the first wide vector "
    "is 0",
)
def squares_in_half_precision(x, gain, eps):
    """Squares in the number type that it got."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain
