"""Contracts of RMS normalisation: each vector by its own size."""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    gradients,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    HALF,
    THREE_AXES,
    equivariance,
    half_precision,
    leading_axes,
    normed,
    positions_apart,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, risk
from companion.contracts.engine.universal import recognised_mistake

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


LAST = "take the mean square of each vector, `dim=-1`."

RMS_NORM = Component(
    name="rms_norm",
    signature="rms_norm(x, gain, eps)",
    returns="the normalised vectors, in the shape of `x`",
    axes=("position", "feature"),
    shape=lambda x, gain, eps: x.shape,
    oracle=oracle,
    reference="F.rms_norm",
    cases=cases,
)


TOO_HIGH = (
    "Every number is too high by 1: is 1 added to the result? Gemma adds it to "
    "the gain, `x * (1 + gain)`."
)


def not_too_high(contract: Callable) -> Callable:
    """Have a contract report what 1 too much breaks as that alone."""

    @functools.wraps(contract)
    def holds(fn: Guarded) -> None:
        try:
            contract(fn)
        except Broken as broken:
            known = recognised_mistake(fn)
            if known is None or known[0] != TOO_HIGH:
                raise
            got = broken.got, broken.expected
            raise Broken(TOO_HIGH, *got, cause=TOO_HIGH) from None

    return holds


@RMS_NORM.contract
@not_too_high
def unit_size(fn: Guarded) -> None:
    """With gain 1, the squares of every vector have the mean 1."""
    x, gain, eps = arguments(7)
    got = fn(x, torch.ones_like(gain), eps).square().mean(-1)
    why = "The mean square of a vector is not 1."
    same(fn, got, torch.ones_like(got), why, 1e-3)


@RMS_NORM.contract
@not_too_high
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


RMS_NORM.contract(
    positions_apart(
        lambda: arguments(13),
        f"Over which axis does the mean run? {LAST.capitalize()}",
    )
)


FACTOR = torch.tensor([2.0, 3.0, -5.0, 7.0, 11.0]).unsqueeze(-1)

RMS_NORM.contract(
    not_too_high(
        equivariance(
            "Stretching a vector changes nothing, and turning it round its "
            "sign",
            lambda: arguments(17),
            lambda x, *rest: (FACTOR * x, *rest),
            lambda y: FACTOR.sign() * y,
            why="A vector's own size is divided out, and its direction stays.",
        )
    )
)


def with_axes(lead: tuple[int, ...]) -> tuple[Tensor, Tensor, float]:
    """Make arguments with these axes before the features."""
    x, *rest = arguments(19, 12)
    count = max(1, torch.Size(lead).numel())
    return x[:count].reshape(*lead, WIDTH), *rest


RMS_NORM.contract(
    not_too_high(
        leading_axes(
            "the features",
            ((), (3,), (1, 1), (2, 3, 2)),
            with_axes,
            normed(oracle),
            "F.rms_norm returns",
            THREE_AXES,
            unseen=True,
        )
    )
)


ZEROS = (
    "A vector of zeros comes only where padding is embedded as zeros, and "
    "nothing is added to it."
)


@RMS_NORM.contract
@risk(ZEROS)
@not_too_high
def zeros(fn: Guarded) -> None:
    """A vector of zeros stays one."""
    x, *rest = arguments(23)
    x[0, 2] = 0
    got, expected = fn.raw(x, *rest), oracle(x, *rest)
    why = "Its mean square is 0, and 0/0 is NaN: add eps to it."
    finite(fn, got, why, expected)
    same(fn, got, expected, "Position 2 of sentence 0 is all 0.")


@RMS_NORM.contract
@risk(ZEROS)
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


RMS_NORM.contract(
    half_precision(lambda: (draw(2, SEQ, WIDTH, seed=31), *arguments(29)[1:]))
)


@RMS_NORM.contract
@risk(HALF)
@not_too_high
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


def total(x):
    """The sum of the squares of each vector."""
    return x.square().sum(-1, keepdim=True)


@RMS_NORM.mistake(
    hint="The mean square runs over the batch: take the mean square of each "
    "vector, `dim=-1`.",
)
def over_the_batch(x, gain, eps):
    """The size is that of a number in all sentences."""
    return x / size(x, eps, 0) * gain


@RMS_NORM.mistake(
    hint="The mean square runs over the positions: take the mean square of "
    "each vector, `dim=-1`.",
)
def over_the_positions(x, gain, eps):
    """The size is that of a number at all positions."""
    return x / size(x, eps, 1) * gain


@RMS_NORM.mistake(
    hint="The mean square runs over batch and positions: take the mean square "
    "of each vector, `dim=-1`.",
)
def over_the_batch_and_positions(x, gain, eps):
    """The size is that of a number at all positions of all sentences."""
    return x / size(x, eps, (0, 1)) * gain


@RMS_NORM.mistake(
    hint="The mean square runs over a whole sentence: take the mean square of "
    "each vector, `dim=-1`.",
)
def over_the_sentence(x, gain, eps):
    """The size is that of a whole sentence."""
    return x / size(x, eps, (1, 2)) * gain


@RMS_NORM.mistake(
    hint="The mean square runs over all there is: take the mean square of "
    "each vector, `dim=-1`.",
)
def over_the_whole(x, gain, eps):
    """The size is that of all vectors together."""
    return x / size(x, eps, (0, 1, 2)) * gain


@RMS_NORM.mistake(
    hint="The mean is subtracted: this is LayerNorm. RMSNorm leaves the mean "
    "in.",
    symptom="weights of a published model load, and it speaks nonsense",
)
def layer_norm_without_a_bias(x, gain, eps):
    """Leaves the bias out, and the mean not in."""
    return F.layer_norm(x, x.shape[-1:], gain, None, eps)


@RMS_NORM.mistake(
    hint="The mean is subtracted before the division: RMSNorm leaves it in.",
)
def centred_above_the_line(x, gain, eps):
    """The mean is missing above the line, and not below it."""
    return (x - x.mean(-1, keepdim=True)) / size(x, eps) * gain


@RMS_NORM.mistake(
    hint="It divides by the standard deviation, from which the mean is "
    "missing: take the mean of x².",
)
def divided_by_the_deviation(x, gain, eps):
    """The variance for the mean square."""
    return x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * gain


@RMS_NORM.mistake(
    hint="It divides by the standard deviation, with d − 1 at that: take the "
    "mean of x².",
)
def divided_by_torchs_std(x, gain, eps):
    """`torch.std` with its default."""
    return x / (x.std(-1, keepdim=True) + eps) * gain


@RMS_NORM.mistake(
    hint="The squares are divided by d − 1: take their mean, over d.",
)
def squares_unbiased(x, gain, eps):
    """The sum of the squares, by d − 1."""
    return x / (total(x) / (x.shape[-1] - 1) + eps).sqrt() * gain


@RMS_NORM.mistake(
    hint="It divides by the length of the vector: the length is √d times the "
    "root of the mean square.",
)
def divided_by_the_length(x, gain, eps):
    """The sum of the squares, and not their mean."""
    return x / (total(x) + eps).sqrt() * gain


@RMS_NORM.mistake(
    hint="It divides by the length of the vector, and eps is not used as it "
    "should be: √(mean(x²) + eps).",
    symptom="the stream is √d times too small, and so is every gradient",
)
def made_a_unit_vector(x, gain, eps):
    """Divides by the length, which is √d times the root mean square."""
    return (F.normalize(x.float(), dim=-1) * gain).to(x.dtype)


SMALL = (
    "Published code has it so, and it shows only for vectors that are about as "
    "small as eps."
)


@RMS_NORM.mistake(
    hint="eps stands outside the root: √(mean(x²) + eps).",
    level=NOTE,
    why=SMALL,
)
def eps_outside(x, gain, eps):
    """eps is added to the root."""
    return x / (size(x, 0.0) + eps) * gain


@RMS_NORM.mistake(
    hint="`eps` is not used, or always the same.",
    level=NOTE,
    why=SMALL,
)
def eps_fixed(x, gain, eps):
    """A number of its own for eps."""
    return oracle(x, gain, 1e-6)


@RMS_NORM.mistake(hint="The gain is not used.")
def gain_left_out(x, gain, eps):
    """The vectors are normalised, and that is all."""
    return x / size(x, eps)


@RMS_NORM.mistake(hint="The gain is added: it multiplies.")
def gain_added(x, gain, eps):
    """The gain is taken for a bias."""
    return x / size(x, eps) + gain


@RMS_NORM.mistake(
    hint="The gain is 1 + `gain`: here `gain` is what multiplies.",
    symptom="loaded weights give vectors of twice their size",
)
def gain_counted_from_zero(x, gain, eps):
    """Adds the 1 that this gain has; some models store the gain less 1."""
    return F.rms_norm(x, x.shape[-1:], 1 + gain, eps)


@RMS_NORM.mistake(
    hint="The gain comes before the normalisation, which wipes it out again.",
)
def gain_before(x, gain, eps):
    """What is normalised is gain · x."""
    return x * gain / size(x * gain, eps)


@RMS_NORM.mistake(
    hint="The gain runs along the positions: it has one number a feature.",
)
def gain_along_the_positions(x, gain, eps):
    """The gain is turned into a column."""
    return x / size(x, eps) * gain.unsqueeze(-1)


@RMS_NORM.mistake(
    hint="The root is missing: divide by √(mean(x²) + eps).",
)
def root_left_out(x, gain, eps):
    """Divides by the mean square itself."""
    return x / size(x, eps).square() * gain


@RMS_NORM.mistake(hint="It multiplies by the root: divide by it.")
def multiplied(x, gain, eps):
    """`*` for `/`."""
    return x * size(x, eps) * gain


@RMS_NORM.mistake(
    hint="It divides by the mean of |x|: square first, and take the root.",
)
def divided_by_the_mean_size(x, gain, eps):
    """The mean of the sizes."""
    return x / (x.abs().mean(-1, keepdim=True) + eps) * gain


@RMS_NORM.mistake(
    symptom="fine in float32 and bfloat16; in float16 the first wide vector "
    "is 0",
)
def squares_in_half_precision(x, gain, eps):
    """Squares in the number type that it got."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


@RMS_NORM.mistake(
    hint="The unit vector is divided by √d: it is multiplied by √d, since its "
    "numbers are to be 1 in size.",
    symptom="each layer adds next to nothing, and the loss hardly falls",
)
def unit_vector_made_smaller(x, gain, eps):
    """`dim ** -0.5` is called a scale, and a scale is multiplied."""
    return x / (total(x) + eps).sqrt() * x.shape[-1] ** -0.5 * gain


@RMS_NORM.mistake(hint=TOO_HIGH)
def one_added_to_the_result(x, gain, eps):
    """The 1 of a gain that is stored less 1 goes to the result instead."""
    return oracle(x, gain, eps) + 1.0
