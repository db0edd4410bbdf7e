"""Layer normalisation: each vector by its own statistics.

Sizes are prime and differ: 2 sentences of 5 positions, vectors of width 7.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    after,
    draw,
    finite,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    THREE_AXES,
    equivariance,
    half_precision,
    leading_axes,
    normed,
    positions_apart,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, risk

__all__ = ["LAYER_NORM"]

SEQ, WIDTH = 5, 7


def arguments(
    seed: int, *lead: int, width: int = WIDTH, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Draw x, gain, bias and eps."""
    x = 2 * draw(*(lead or (2, SEQ)), width, seed=seed) + 1
    gain = 1 + draw(width, seed=seed + 100) / 2
    return x, gain, draw(width, seed=seed + 200), eps


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    return {
        # Large, so that it shows where eps stands.
        "with eps = 0.5": arguments(2, eps=0.5),
        "with eps = 1e-5": arguments(3),
        # Where both are 7, exchanged axes show their numbers.
        "for 7 positions of width 7": arguments(5, 2, WIDTH),
    }


def oracle(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Call PyTorch's own."""
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


LAYER_NORM = Component(
    name="layer_norm",
    signature="layer_norm(x, gain, bias, eps)",
    returns="the normalised vectors, in the shape of `x`",
    axes=("position", "feature"),
    shape=lambda x, gain, bias, eps: x.shape,
    oracle=oracle,
    reference="F.layer_norm",
    cases=cases,
)
LAST = "take the mean and the variance of each vector, `dim=-1`."
OVER_THE_BATCH = f"The statistics run over the batch: {LAST}"


apart = positions_apart(
    lambda: arguments(11),
    f"Over which axis do the statistics run? {LAST.capitalize()}",
)


def by_itself(fn: Guarded) -> None:
    """Raise Broken if a sentence moves with the others of its batch."""
    x, *rest = arguments(37)
    other, why = torch.cat([x[:1], 2 * x[1:] + 1]), OVER_THE_BATCH
    same(fn, fn(other, *rest)[:1], fn(x, *rest)[:1], why, cause=why)


@LAYER_NORM.contract
@after(apart, by_itself)
def standardised(fn: Guarded) -> None:
    """With gain 1 and bias 0, every vector has mean 0 and variance 1."""
    x, gain, bias, eps = arguments(7)
    got = fn(x, torch.ones_like(gain), torch.zeros_like(bias), eps)
    mean, variance = got.mean(-1), got.var(-1, correction=0)
    for name, found, wanted in (("mean", mean, 0), ("variance", variance, 1)):
        why = f"The {name} of a vector is not {wanted}."
        same(fn, found, torch.full_like(found, wanted), why, 1e-3)


LAYER_NORM.contract(apart)
LAYER_NORM.contract(
    equivariance(
        "Shifting and stretching a vector changes nothing",
        lambda: arguments(13),
        lambda x, *rest: (
            torch.tensor([[2.0], [3], [5], [7], [11]]) * x - 5,
            *rest,
        ),
        why="A vector's own mean and variance are divided out.",
    )
)


def with_lead(lead: tuple[int, ...]) -> tuple:
    """Draw arguments with these axes before the features."""
    x, *rest = arguments(17, 12)
    count = max(1, torch.Size(lead).numel())
    return x[:count].reshape(*lead, WIDTH), *rest


LAYER_NORM.contract(
    leading_axes(
        "the features",
        ((), (3,), (1, 1), (2, 3, 2)),
        with_lead,
        normed(oracle),
        "F.layer_norm returns",
        THREE_AXES,
        unseen=True,
    )
)


@LAYER_NORM.contract
@risk(
    "A vector of equal numbers comes only where padding is embedded as zeros, "
    "and nothing is added to it."
)
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
    # Of the other vectors other contracts speak.
    got = torch.cat([expected[:1, :2], got[:1, 2:3], expected[:1, 3:]], 1)
    same(fn, got, expected[:1], "Position 2 of sentence 0 is all 3.")


@LAYER_NORM.contract
@after(apart, by_itself)
def far_from_zero(fn: Guarded) -> None:
    """A mean of 10⁴ spoils nothing."""
    x, *rest = arguments(23)
    x = (64 * x).round() / 64 + 1e4  # Exact in float32.
    why = (
        "E[x²] − E[x]² is the difference of two large numbers: subtract the "
        "mean first, then square."
    )
    gain, bias, eps = rest
    small = arguments(23)
    if furthest(fn.raw(*small), oracle(*small)) is not None:
        why = "It is not what F.layer_norm returns near 0 either."
    expected = oracle(x.double(), gain.double(), bias.double(), eps)
    got = fn.raw(x, *rest)
    finite(fn, got, why)
    same(fn, got, expected.float(), why, 1e-2)


def drawn_anew() -> tuple:
    """Draw arguments whose vectors have no mean."""
    x, *rest = arguments(29)
    return draw(*x.shape, seed=31), *rest


LAYER_NORM.contract(half_precision(drawn_anew))


# Known mistakes, in the order in which they are recognised


def normed(x, gain, bias, eps, dim=-1, *, correction=0, outside=False):
    """Normalise with the statistics of any axes."""
    variance = x.var(dim, correction=correction, keepdim=True)
    root = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return (x - x.mean(dim, keepdim=True)) / root * gain + bias


def unit(x, eps):
    """Normalise without gain and bias."""
    return F.layer_norm(x, x.shape[-1:], eps=eps)


@LAYER_NORM.mistake(
    hint=OVER_THE_BATCH,
    symptom="a sentence means something else in every batch, and a batch of "
    "one is all bias",
)
def over_the_batch(x, gain, bias, eps):
    """The mean is taken over axis 0, which is the batch."""
    return normed(x, gain, bias, eps, 0)


@LAYER_NORM.mistake(
    hint=f"The statistics run over the positions: {LAST}",
    symptom="a decoder's loss is too good: the statistics tell of the future",
)
def over_the_positions(x, gain, bias, eps):
    """Each feature is normalised along the sentence."""
    return normed(x, gain, bias, eps, -2 if x.ndim > 1 else -1)


@LAYER_NORM.mistake(
    hint="The statistics run over batch and positions, as in BatchNorm: "
    f"{LAST}",
    symptom="it trains, and one sentence at a time it answers otherwise",
)
def batch_norm(x, gain, bias, eps):
    """All positions of all sentences share the statistics of a feature."""
    lead = tuple(range(x.ndim - 1)) or -1
    return normed(x, gain, bias, eps, lead)


@LAYER_NORM.mistake(
    hint=f"The statistics run over a whole sentence: {LAST}",
    symptom="rows change when the sentence gets longer, by padding too",
)
def over_the_sentence(x, gain, bias, eps):
    """One mean and one variance for all positions of a sample, as images have
    it."""
    return normed(x, gain, bias, eps, (-2, -1) if x.ndim > 1 else -1)


LAYER_NORM.mistake(
    "over-everything", hint=f"The statistics run over all there is: {LAST}"
)(lambda *args: normed(*args, tuple(range(args[0].ndim))))


SHORTER = (
    "A well-known implementation has it so: all vectors are shorter by the "
    "same share, 0.1 % at width 512, which the gain makes up for."
)


@LAYER_NORM.mistake(
    hint="The variance divides by d − 1: here it divides by d, "
    "`unbiased=False`.",
    symptom="loaded weights answer a little wrongly, the more so the narrower "
    "the model",
    level=NOTE,
    why=SHORTER,
)
def unbiased(x, gain, bias, eps):
    """The variance of a sample stands for that of the vector."""
    return normed(x, gain, bias, eps, correction=1)


SMALL = (
    "Published code has it so, and it shows only for vectors whose numbers "
    "differ about as little as eps."
)


@LAYER_NORM.mistake(
    hint="eps stands outside the root: √(variance + eps).",
    symptom="a vector of equal numbers has an infinite gradient",
    level=NOTE,
    why=SMALL,
)
def eps_outside_the_root(x, gain, bias, eps):
    """The root is taken first, and eps added to it."""
    return normed(x, gain, bias, eps, outside=True)


@LAYER_NORM.mistake(
    hint="The variance divides by d − 1, and eps stands outside the root: "
    "√(variance + eps), with `unbiased=False`.",
    symptom="it trains well; what was trained with another norm does not fit",
    level=NOTE,
    why=SHORTER,
)
def by_the_default_deviation(x, gain, bias, eps):
    """Divides by `x.std() + eps`: two slips in so few letters."""
    return normed(x, gain, bias, eps, correction=1, outside=True)


@LAYER_NORM.mistake(
    hint="The root is taken twice: the deviation is one already, so divide by "
    "that, or by √(variance + eps).",
    symptom="it trains; long vectors stay longer than short ones",
)
def root_of_the_deviation(x, gain, bias, eps):
    """`sqrt(x.std() + eps)`: the fourth root of the squares."""
    middle = x - x.mean(-1, keepdim=True)
    root = (x.std(-1, correction=0, keepdim=True) + eps).sqrt()
    return middle / root * gain + bias


@LAYER_NORM.mistake(
    hint="The bias is added to what is divided by: add it to the quotient.",
    symptom="right as it is drawn, where the bias is 0, and wrong once that is "
    "trained",
)
def bias_in_the_divisor(x, gain, bias, eps):
    """A parenthesis closes too late, behind the bias."""
    middle = x - x.mean(-1, keepdim=True)
    return gain * middle / (x.std(-1, keepdim=True) + eps + bias)


LAYER_NORM.mistake(
    "always-the-same-eps",
    hint="`eps` is not used, or always the same.",
    level=NOTE,
    why=SMALL,
)(lambda x, gain, bias, eps: oracle(x, gain, bias, 1e-5))
LAYER_NORM.mistake(
    "unbiased-with-its-own-eps",
    hint="The variance divides by d − 1, and `eps` is not used, or always the "
    "same.",
    level=NOTE,
    why=SHORTER,
)(lambda x, gain, bias, eps: normed(x, gain, bias, 1e-6, correction=1))
LAYER_NORM.mistake("without-gain", hint="The gain is not used.")(
    lambda x, gain, bias, eps: unit(x, eps) + bias
)
LAYER_NORM.mistake("without-bias", hint="The bias is not used.")(
    lambda x, gain, bias, eps: unit(x, eps) * gain
)
LAYER_NORM.mistake(
    "without-gain-and-bias", hint="Neither gain nor bias is used."
)(lambda x, gain, bias, eps: unit(x, eps))
LAYER_NORM.mistake("swapped", hint="Gain and bias are swapped.")(
    lambda x, gain, bias, eps: oracle(x, bias, gain, eps)
)


@LAYER_NORM.mistake(
    hint="The gain comes before the normalisation, which wipes it out again.",
    symptom="the gain hardly learns, since the norm undoes it at once",
)
def gain_before_the_norm(x, gain, bias, eps):
    """Multiplies by the gain, and normalises then."""
    return unit(x * gain, eps) + bias


LAYER_NORM.mistake(
    "gain-and-bias-before",
    hint="Gain and bias come before the normalisation, which wipes them out.",
)(lambda x, gain, bias, eps: unit(x * gain + bias, eps))
LAYER_NORM.mistake(
    "bias-times-gain",
    hint="The bias is multiplied by the gain: it is added last.",
)(lambda x, gain, bias, eps: (unit(x, eps) + bias) * gain)
LAYER_NORM.mistake(
    "gain-along-the-positions",
    hint="The gain runs along the positions: it has one number a feature.",
)(
    lambda x, gain, bias, eps: (
        unit(x, eps) * gain.unsqueeze(-1) + bias.unsqueeze(-1)
    )
)


@LAYER_NORM.mistake(
    hint="The mean is not subtracted: this is RMSNorm.",
    symptom="outputs drift with the mean of the stream, layer by layer",
)
def mean_left_in(x, gain, bias, eps):
    """Divides by the root of the mean square, and calls it LayerNorm."""
    return F.rms_norm(x, x.shape[-1:], gain, eps) + bias


LAYER_NORM.mistake("mean-not-subtracted", hint="The mean is not subtracted.")(
    lambda x, gain, bias, eps: (
        x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() * gain + bias
    )
)
LAYER_NORM.mistake(
    "not-divided", hint="The mean is subtracted, and nothing is divided."
)(lambda x, gain, bias, eps: (x - x.mean(-1, keepdim=True)) * gain + bias)
LAYER_NORM.mistake(
    "without-the-root", hint="The root is missing: divide by √(variance + eps)."
)(
    lambda x, gain, bias, eps: (
        unit(x, eps)
        * torch.rsqrt(x.var(-1, correction=0, keepdim=True) + eps)
        * gain
        + bias
    )
)


@LAYER_NORM.mistake(
    symptom="NaN after long training, where a vector's mean has grown large"
)
def difference_of_squares(x, gain, bias, eps):
    """The variance as the mean square less the squared mean, in float32."""
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    variance = wide.square().mean(-1, keepdim=True) - mean**2
    return ((wide - mean) / (variance + eps).sqrt() * gain + bias).to(x.dtype)


@LAYER_NORM.mistake(
    hint="Only the mean is divided: brackets are missing, `(x - mean) / std`.",
    symptom="the stream grows from layer to layer, as if there were no norm",
)
def mean_divided_alone(x, gain, bias, eps):
    """`x - mean / std`, in which the division comes first."""
    mean, variance = x.mean(-1, True), x.var(-1, correction=0, keepdim=True)
    return gain * (x - mean / (variance + eps).sqrt()) + bias


@LAYER_NORM.mistake(
    hint="eps is added to the quotient: brackets are missing, "
    "`(x - mean) / (std + eps)`.",
    symptom="all is well, until a vector of equal numbers makes NaN of it all",
)
def eps_added_behind(x, gain, bias, eps):
    """`(x - mean) / std + eps`, which guards nothing."""
    mean, variance = x.mean(-1, True), x.var(-1, correction=0, keepdim=True)
    return gain * ((x - mean) / variance.sqrt() + eps) + bias
