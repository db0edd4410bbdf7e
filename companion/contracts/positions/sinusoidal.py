"""Contracts of sinusoidal positions, by Vaswani et al. (2017), section 3.5.

P[t, 2i] = sin(t / 10000^(2i/d)),  P[t, 2i+1] = cos(t / 10000^(2i/d))
"""

import torch

from companion.contracts.engine.compare import Broken, furthest, number, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.positions.sinusoidal_cases import (
    SUSPECTS,
    cases,
    oracle,
)

SINUSOIDAL = Component(
    name="sinusoidal",
    signature="sinusoidal(length, d_model)",
    returns="one row for each position (length, d_model)",
    axes=("position", "dimension"),
    shape=lambda length, d_model: (length, d_model),
    dtype=torch.float32,
    oracle=oracle,
    reference="the formula",
    agrees="It agrees with the formula",
    cases=cases,
    suspects=SUSPECTS,
    shape_hints={
        "Position and dimension are swapped.": (
            lambda length, d_model: (d_model, length)
        ),
        "Are these the sines only? Between two of them belongs a cosine.": (
            lambda length, d_model: (length, d_model // 2)
        ),
    },
)


@SINUSOIDAL.contract
def first_row(fn: Guarded) -> None:
    """Position 0 is 0, 1, 0, 1, …"""
    got = fn(3, 10)
    expected = torch.tensor([0.0, 1.0]).repeat(5)
    index = furthest(got[0], expected)
    if index is not None:
        raise Broken(
            f"Dimension {index[0]} of position 0 is {number(got[0][index])}: "
            "the sine of 0 is 0, and its cosine 1.",
            got[:1],
            expected.unsqueeze(0),
        )


@SINUSOIDAL.contract
def circle(fn: Guarded) -> None:
    """Every pair of dimensions lies on a circle of radius 1."""
    got = fn(11, 8)
    radius = got.unflatten(-1, (-1, 2)).square().sum(-1)
    why = "Dimensions 2i and 2i+1 are sine and cosine of one angle."
    require_pairs(radius, torch.ones_like(radius), why)


@SINUSOIDAL.contract
def rotation(fn: Guarded) -> None:
    """Three positions further is the same rotation everywhere."""
    sine, cosine = fn(13, 8).unflatten(-1, (-1, 2)).unbind(-1)
    # sin(a − b) and cos(a − b), from the pairs of both positions.
    turn_sine = sine[3:] * cosine[:-3] - cosine[3:] * sine[:-3]
    turn_cosine = cosine[3:] * cosine[:-3] + sine[3:] * sine[:-3]
    why = "Between position {} and {} the pair turns otherwise than before."
    for turn in (turn_sine, turn_cosine):
        require_pairs(turn, turn[:1].expand_as(turn), why)


def require_pairs(got: torch.Tensor, expected: torch.Tensor, why: str) -> None:
    """Raises Broken at the first (position, pair) that differs."""
    index = furthest(got, expected)
    if index is not None:
        position, pair = index
        why = why.format(position, position + 3)
        raise Broken(
            f"{why} At position {position}, pair {pair} yours is "
            f"{number(got[index])}, expected {number(expected[index])}.",
            got,
            expected,
            ("position", "pair"),
        )


@SINUSOIDAL.contract
def speeds(fn: Guarded) -> None:
    """The first pair turns by 1 a step, each next one more slowly."""
    for width, factor in ((8, 10.0), (4, 100.0)):
        step = fn(2, width)[1].unflatten(-1, (-1, 2))
        got = torch.atan2(step[:, 0], step[:, 1])
        expected = factor ** -torch.arange(width / 2)
        off = ((got - expected).abs() > 0.01 * expected).nonzero()
        if len(off):
            pair = int(off[0])
            raise Broken(
                f"For d_model = {width} pair {pair} turns by "
                f"{number(got[pair])} a step, expected {number(expected[pair])}"
                f": each pair is {factor:g} times as slow as the one before.",
                got,
                expected,
                ("pair",),
            )


@SINUSOIDAL.contract
def whatever_the_length(fn: Guarded) -> None:
    """A row does not depend on how many there are."""
    whole = fn(97, 10)
    for length in (1, 2, 11):
        why = f"The rows change when there are only {length} of them."
        same(fn, fn(length, 10), whole[:length], why)


@SINUSOIDAL.contract
def odd(fn: Guarded) -> None:
    """It takes an odd width, whose last dimension is a sine."""
    for width in (1, 3, 7):
        why = (
            f"Of {width} dimensions the last is a sine without its cosine: "
            "there is one cosine less."
        )
        same(fn, fn(5, width), oracle(5, width), why)
