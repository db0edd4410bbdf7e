"""Normalisations over the wrong axis, or by the wrong size.

LayerNorm and RMSNorm take each vector by itself, along its features.
"""

import torch
import torch.nn.functional as F

from companion.zoo.animal import animal

LAYER = "It agrees with PyTorch"


def normed(x, gain, bias, eps, dim=-1, *, correction=0):
    """Layer normalisation, with the statistics of any axes."""
    variance = x.var(dim, correction=correction, keepdim=True)
    centred = x - x.mean(dim, keepdim=True)
    return centred / (variance + eps).sqrt() * gain + bias


@animal(
    "layer_norm",
    seen="a common slip",
    symptom="a sentence means something else in every batch, and a batch of "
    "one is all bias",
    contract=LAYER,
    says="The statistics run over the batch",
)
def over_the_batch(x, gain, bias, eps):
    """The mean is taken over axis 0, which is the batch."""
    return normed(x, gain, bias, eps, 0)


@animal(
    "layer_norm",
    seen="a common slip",
    symptom="a decoder's loss is too good: the statistics tell of the future",
    contract=LAYER,
    says="The statistics run over the positions",
)
def over_the_positions(x, gain, bias, eps):
    """Each feature is normalised along the sentence."""
    return normed(x, gain, bias, eps, -2 if x.ndim > 1 else -1)


@animal(
    "layer_norm",
    seen="note 4, line 180, says that it scales each sample (C-96)",
    symptom="rows change when the sentence gets longer, by padding too",
    contract=LAYER,
    says="The statistics run over a whole sentence",
)
def over_the_sentence(x, gain, bias, eps):
    """One mean and one variance for all positions of a sample, as images have
    it."""
    return normed(x, gain, bias, eps, (-2, -1) if x.ndim > 1 else -1)


@animal(
    "layer_norm",
    seen="a common slip",
    symptom="it trains, and one sentence at a time it answers otherwise",
    contract=LAYER,
    says="as in BatchNorm",
)
def batch_norm(x, gain, bias, eps):
    """All positions of all sentences share the statistics of a feature."""
    lead = tuple(range(x.ndim - 1)) or -1
    return normed(x, gain, bias, eps, lead)


@animal(
    "layer_norm",
    seen="a common slip: `var` and `std` divide by d - 1 unless told",
    symptom="loaded weights answer a little wrongly, the more so the narrower "
    "the model",
    contract=LAYER,
    says="The variance divides by d − 1: here it divides by d",
)
def unbiased(x, gain, bias, eps):
    """The variance of a sample stands for that of the vector."""
    return normed(x, gain, bias, eps, correction=1)


@animal(
    "layer_norm",
    seen="a popular tutorial",
    symptom="it trains well; what was trained with another norm does not fit",
    contract=LAYER,
    says="The variance divides by d − 1, and eps stands outside the root",
)
def by_the_default_deviation(x, gain, bias, eps):
    """Divides by `x.std() + eps`: two slips in so few letters."""
    centred = x - x.mean(-1, keepdim=True)
    return gain * centred / (x.std(-1, keepdim=True) + eps) + bias


@animal(
    "layer_norm",
    seen="a common slip",
    symptom="a vector of equal numbers has an infinite gradient",
    contract=LAYER,
    says="eps stands outside the root",
)
def eps_outside_the_root(x, gain, bias, eps):
    """The root is taken first, and eps added to it."""
    std = x.std(-1, correction=0, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) / (std + eps) * gain + bias


@animal(
    "layer_norm",
    seen="a common slip",
    symptom="the gain hardly learns, since the norm undoes it at once",
    contract=LAYER,
    says="The gain comes before the normalisation",
)
def gain_before_the_norm(x, gain, bias, eps):
    """Multiplies by the gain, and normalises then."""
    return normed(x * gain, torch.ones_like(gain), bias, eps)


@animal(
    "layer_norm",
    seen="a common slip",
    symptom="outputs drift with the mean of the stream, layer by layer",
    contract=LAYER,
    says="The mean is not subtracted: this is RMSNorm",
)
def mean_left_in(x, gain, bias, eps):
    """Divides by the root of the mean square, and calls it LayerNorm."""
    return F.rms_norm(x, x.shape[-1:], gain, eps) + bias


@animal(
    "layer_norm",
    seen="a common slip: one pass over the numbers instead of two",
    symptom="NaN after long training, where a vector's mean has grown large",
    contract="A mean of 10⁴ spoils nothing",
    says="is the difference of two large numbers",
)
def difference_of_squares(x, gain, bias, eps):
    """The variance as the mean square less the squared mean, in float32."""
    wide = x.float()
    mean = wide.mean(-1, keepdim=True)
    variance = wide.square().mean(-1, keepdim=True) - mean**2
    return ((wide - mean) / (variance + eps).sqrt() * gain + bias).to(x.dtype)


# RMS normalisation
