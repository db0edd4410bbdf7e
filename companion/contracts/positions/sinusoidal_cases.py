"""What is tried on sinusoidal positions, and how they may go wrong."""

import math

import torch
from torch import Tensor


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    return {
        "for 11 positions of width 8": (11, 8),
        "for 3 positions of width 14": (3, 14),
        "for 53 positions of width 2": (53, 2),
        # Angles of at most 100, so that rounding cannot hide a wrong sign.
        "for 2 positions of width 4": (2, 4),
    }


def columns(d_model: int) -> Tensor:
    """The number of each dimension, and so twice that of its pair."""
    return torch.arange(d_model, dtype=torch.float64)


def table(
    length: int,
    d_model: int,
    *,
    exponent=lambda j, d: (j - j % 2) / d,
    base: float = 10000.0,
    start: int = 0,
    turn=lambda angle: angle,
    even=torch.sin,
    odd=torch.cos,
) -> Tensor:
    """The formula, with one thing changed; column j belongs to pair j // 2."""
    j = columns(d_model)
    positions = torch.arange(start, start + length, dtype=torch.float64)
    angle = turn(positions[:, None] / base ** exponent(j, d_model))
    return torch.where(j % 2 == 0, even(angle), odd(angle)).float()


def oracle(length: int, d_model: int) -> Tensor:
    """The formula, in double precision."""
    return table(length, d_model)


def changed(**style):
    """The formula with something else in it."""
    return lambda length, d_model: table(length, d_model, **style)


def halves(length: int, d_model: int) -> Tensor:
    """First all sines, then all cosines."""
    right = oracle(length, d_model)
    return torch.cat([right[:, ::2], right[:, 1::2]], 1)


SUSPECTS = {
    "All sines come first and all cosines after. Some libraries do so, but "
    "the formula alternates: dimension 2i is a sine, 2i+1 the cosine of the "
    "same angle.": halves,
    "Sine and cosine are swapped: dimension 2i is the sine.": (
        changed(even=torch.cos, odd=torch.sin)
    ),
    "There are no cosines: dimension 2i+1 is the cosine of the angle.": (
        changed(odd=torch.sin)
    ),
    "There are no sines: dimension 2i is the sine of the angle.": (
        changed(even=torch.cos)
    ),
    "The dimension is taken for i: i counts pairs, and dimension 2i has the "
    "exponent 2i/d, not 2·2i/d.": changed(
        exponent=lambda j, d: 2 * (j - j % 2) / d
    ),
    "The dimension is taken for i: i counts pairs, so that both dimensions of "
    "a pair have one angle, with exponent 2i/d.": changed(
        exponent=lambda j, d: 2 * j / d
    ),
    "Every dimension has a frequency of its own: 2i and 2i+1 share one "
    "angle.": changed(exponent=lambda j, d: j / d),
    "The exponent is i/d: it is 2i/d, where i counts pairs.": (
        changed(exponent=lambda j, d: (j // 2) / d)
    ),
    "The exponent ends at 1, i/(d/2 − 1), as in Tensor2Tensor: the formula "
    "has 2i/d.": changed(exponent=lambda j, d: (j // 2) / max(d / 2 - 1, 1)),
    "Positions are counted from 1: the first is 0.": changed(start=1),
    "The base is 1000: it is 10000.": changed(base=1000.0),
    "The base is e: it is 10000.": changed(base=math.e),
    "The position is multiplied by 10000^(2i/d): divide by it.": (
        changed(base=1e-4)
    ),
    "The angle is taken for degrees: `torch.sin` takes radians.": (
        changed(turn=torch.deg2rad)
    ),
    "The frequencies run backwards: the first pair is the fastest.": (
        changed(exponent=lambda j, d: (d - 2 - (j - j % 2)) / d)
    ),
    "There is no 10000^(2i/d): all pairs turn alike.": (
        changed(exponent=lambda j, d: 0 * j)
    ),
}
"""Hint -> the mistake it hints at."""
