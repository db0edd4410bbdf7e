"""What is tried on a layer normalisation, and how it may go wrong.

Sizes are prime and differ: 2 sentences of 5 positions, vectors of width 7.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import draw

SEQ, WIDTH = 5, 7


def arguments(
    seed: int, *lead: int, width: int = WIDTH, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor, float]:
    """x, gain, bias and eps."""
    x = 2 * draw(*(lead or (2, SEQ)), width, seed=seed) + 1
    gain = 1 + draw(width, seed=seed + 100) / 2
    return x, gain, draw(width, seed=seed + 200), eps


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    return {
        # Large, so that it shows where eps stands.
        "with eps = 0.5": arguments(2, eps=0.5),
        "with eps = 1e-5": arguments(3),
        # Where both are 7, exchanged axes show their numbers.
        "for 7 positions of width 7": arguments(5, 2, WIDTH),
    }


def oracle(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """PyTorch's own."""
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def normal(
    x: Tensor,
    eps: float,
    dim: int | tuple[int, ...] = -1,
    correction: int = 0,
    outside: bool = False,
) -> Tensor:
    """Mean 0 and variance 1, in the ways that are tried."""
    centred = x - x.mean(dim, keepdim=True)
    variance = x.var(dim, correction=correction, keepdim=True)
    root = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return centred / root


def over(*dim: int):
    """The statistics of other axes."""
    return lambda x, gain, bias, eps: normal(x, eps, dim) * gain + bias


def divided(by, **style):
    """Gain and bias as they should be, after another division."""
    return lambda x, gain, bias, eps: by(x, eps, **style) * gain + bias


LAST = "take the mean and the variance of each vector, `dim=-1`."
SUSPECTS = {
    f"The statistics run over the batch: {LAST}": over(0),
    f"The statistics run over the positions: {LAST}": over(1),
    f"The statistics run over batch and positions, as in BatchNorm: {LAST}": (
        over(0, 1)
    ),
    f"The statistics run over a whole sentence: {LAST}": over(1, 2),
    f"The statistics run over all there is: {LAST}": over(0, 1, 2),
    "The variance divides by d − 1: here it divides by d, "
    "`unbiased=False`.": divided(normal, correction=1),
    "eps stands outside the root: √(variance + eps).": (
        divided(normal, outside=True)
    ),
    "The variance divides by d − 1, and eps stands outside the root: "
    "√(variance + eps), with `unbiased=False`.": (
        divided(normal, correction=1, outside=True)
    ),
    "`eps` is not used, or always the same.": (
        lambda x, gain, bias, eps: oracle(x, gain, bias, 1e-5)
    ),
    "The gain is not used.": (lambda x, gain, bias, eps: normal(x, eps) + bias),
    "The bias is not used.": (lambda x, gain, bias, eps: normal(x, eps) * gain),
    "Neither gain nor bias is used.": (
        lambda x, gain, bias, eps: normal(x, eps)
    ),
    "Gain and bias are swapped.": (
        lambda x, gain, bias, eps: oracle(x, bias, gain, eps)
    ),
    "The gain comes before the normalisation, which wipes it out again.": (
        lambda x, gain, bias, eps: normal(x * gain, eps) + bias
    ),
    "Gain and bias come before the normalisation, which wipes them out.": (
        lambda x, gain, bias, eps: normal(x * gain + bias, eps)
    ),
    "The bias is multiplied by the gain: it is added last.": (
        lambda x, gain, bias, eps: (normal(x, eps) + bias) * gain
    ),
    "The gain runs along the positions: it has one number a feature.": (
        lambda x, gain, bias, eps: (
            normal(x, eps) * gain.unsqueeze(-1) + bias.unsqueeze(-1)
        )
    ),
    "The mean is not subtracted: this is RMSNorm.": (
        lambda x, gain, bias, eps: (
            x * torch.rsqrt(x.square().mean(-1, True) + eps) * gain + bias
        )
    ),
    "The mean is not subtracted.": divided(
        lambda x, eps: x / (x.var(-1, correction=0, keepdim=True) + eps).sqrt()
    ),
    "The mean is subtracted, and nothing is divided.": divided(
        lambda x, eps: x - x.mean(-1, keepdim=True)
    ),
    "The root is missing: divide by √(variance + eps).": divided(
        lambda x, eps: normal(x, eps) * normal_factor(x, eps)
    ),
}
"""Hint -> the mistake it hints at."""


def normal_factor(x: Tensor, eps: float) -> Tensor:
    """One over the root of each vector's variance."""
    return torch.rsqrt(x.var(-1, correction=0, keepdim=True) + eps)
