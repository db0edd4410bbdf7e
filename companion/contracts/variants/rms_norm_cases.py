"""What is tried on an RMS normalisation, and how it may go wrong.

Sizes are prime and differ: 2 sentences of 5 positions, vectors of width 7.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import draw

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
