"""Rotary positions: queries and keys turned in wrong ways."""

import torch

from companion.positions import rotate, sinusoidal
from companion.zoo.animal import animal

BASE = 10000.0
PLACE = "A row turns by its position, not by its place"
LENGTH = "No vector changes its length"
SPEEDS = "The pairs turn by 10000^(−2i/d) a step"


def angles(x, positions):
    """By how much each position turns each pair: (seq, pair)."""
    i = torch.arange(x.shape[-1] // 2)
    return torch.outer(positions.float(), BASE ** (-2 * i / x.shape[-1]))


def turned(x, angle):
    """Dimension i paired with i + d/2, turned by ``angle``."""
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@animal(
    "rope",
    seen="a common slip",
    symptom="with a cache every new word stands at position 0: text dissolves",
    contract=PLACE,
    says="do the angles come from `positions`",
)
def turned_by_place(x, positions):
    """Counts rows from 0, and does not read `positions`."""
    return rotate(x, torch.arange(x.shape[-2]))


@animal(
    "rope",
    seen="a common slip: (batch, seq, head, width) for (batch, head, seq, "
    "width)",
    symptom="an error, unless there are as many heads as words; then nonsense",
    contract=PLACE,
    says="run along the axis before the last",
)
def turned_along_the_heads(x, positions):
    """Where it fits, the positions run along the heads."""
    if x.shape[-3] != len(positions):
        return rotate(x, positions)
    return rotate(x.transpose(-3, -2), positions).transpose(-3, -2)


@animal(
    "rope",
    seen="a common slip, made by two libraries' halves of one formula",
    symptom="trains, worse the longer the text; borrowed weights write noise",
    contract=LENGTH,
    says="agree on which two dimensions make a pair",
)
def pairs_that_disagree(x, positions):
    """Cosines for halves, but the turned copy is made of neighbours."""
    angle = torch.cat([angles(x, positions)] * 2, -1)
    other = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    return x * angle.cos() + other * angle.sin()


@animal(
    "rope",
    seen="a common slip",
    symptom="scores grow and shrink with the position",
    contract=LENGTH,
    says="A pair (a, b) becomes",
)
def one_sign_lost(x, positions):
    """The minus of the rotation is lost: it stretches and does not turn."""
    angle = angles(x, positions)
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos + b * sin, a * sin + b * cos], -1)


@animal(
    "rope",
    seen="a common slip",
    symptom="scores depend on where two words stand, not on how far apart",
    contract="It turns, and adds nothing",
    says="is something added to `x`",
)
def added_instead(x, positions):
    """Adds a table to queries and keys, where they should turn."""
    return x + sinusoidal(64, x.shape[-1])[positions]


@animal(
    "rope",
    seen="a common slip",
    symptom="good up to the length of the table, and mush from there on",
    contract="A dot product depends on how far two positions are apart",
    says="is the angle proportional to the position",
)
def table_that_ends(x, positions):
    """Positions past the end of a table of 16 all get its last row."""
    return rotate(x, positions.clamp(max=15))


@animal(
    "rope",
    seen="a common slip",
    symptom="learns nearby words well; far ones look alike",
    contract=SPEEDS,
    says="The exponent is i/d",
)
def half_the_exponent(x, positions):
    """i/d for 2i/d: no pair is as slow as the slowest should be."""
    i = torch.arange(x.shape[-1] // 2)
    speeds = BASE ** (-i / x.shape[-1])
    return turned(x, torch.outer(positions.float(), speeds))


@animal(
    "rope",
    seen="a common slip",
    symptom="no pair is slow enough to tell near from far",
    contract=SPEEDS,
    says="All pairs turn alike",
)
def one_speed(x, positions):
    """Every pair turns by the same angle."""
    angle = positions.float().unsqueeze(-1).expand(-1, x.shape[-1] // 2)
    return turned(x, angle)


@animal(
    "rope",
    seen="a common slip: weights trained with another base",
    symptom="borrowed weights write well for a line, and then worse and worse",
    contract=SPEEDS,
    says="These are not the angles",
)
def other_base(x, positions):
    """500000 for 10000: right for one model, wrong for another."""
    i = torch.arange(x.shape[-1] // 2)
    speeds = 5e5 ** (-2 * i / x.shape[-1])
    return turned(x, torch.outer(positions.float(), speeds))
