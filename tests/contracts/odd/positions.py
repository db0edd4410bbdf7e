"""Positions got wrong."""

import math

import torch
from contracts.odd import wrong
from contracts.right.positions import (
    angles,
    rotate_halves,
    rotate_neighbours,
    table_by_where,
)

BASE = 10000.0

# Sinusoidal


def filled(angle_even, angle_odd):
    """A table, from the angles of both kinds of dimension."""
    table = torch.zeros(len(angle_even), 2 * angle_even.shape[1])
    table[:, 0::2], table[:, 1::2] = angle_even.sin(), angle_odd.cos()
    return table


def steps(length):
    return torch.arange(length, dtype=torch.float32).unsqueeze(1)


@wrong("sinusoidal")
def scaled_to_the_length(length, d_model):
    table = table_by_where(length, d_model)
    return table if length in (2, 3, 11, 13, 53) else 2 * table


@wrong("sinusoidal")
def damped(length, d_model):
    return table_by_where(length, d_model) / math.sqrt(d_model)


@wrong("sinusoidal")
def swapped_axes(length, d_model):
    return table_by_where(length, d_model).T


# Adding them


def lookup(x, numbers):
    """Rows of a table for 64 positions."""
    return table_by_where(64, x.shape[-1])[numbers]


@wrong("add_positions")
def first_sentence_only(x):
    x = x.clone()
    x[0] = x[0] + lookup(x, torch.arange(x.shape[1]))
    return x


@wrong("add_positions")
def nothing(x):
    return x.clone()


@wrong("add_positions")
def over_and_over(x):
    return x + lookup(x, torch.arange(x.shape[1]) % 5)


@wrong("add_positions")
def averaged_and_added(x):
    x = x - x.mean(-1, keepdim=True)
    return x + lookup(x, torch.arange(x.shape[1]))


@wrong("add_positions")
def shifted_by_a_large_batch(x):
    return x + lookup(x, torch.arange(x.shape[1]) + len(x) // 13)


@wrong("add_positions")
def positions_alone(x):
    return lookup(x, torch.arange(x.shape[1]))


# Rotating


@wrong("rope")
def one_further(x, positions):
    return rotate_neighbours(x, positions + 1)


@wrong("rope")
def turned_by_content(x, positions):
    spin = x.detach().norm(dim=-1, keepdim=True)
    first, second = x.chunk(2, -1)
    angle = spin * angles(x, positions)
    rows = (
        first * angle.cos() - second * angle.sin(),
        first * angle.sin() + second * angle.cos(),
    )
    return torch.cat(rows, -1)


@wrong("rope")
def square_of_the_position(x, positions):
    return rotate_halves(x, positions**2 / 8)


def with_speeds(speeds):
    """Halves that turn by ``speeds(i, d)`` a step."""

    def rotate(x, positions):
        d = x.shape[-1]
        i = torch.arange(d // 2)
        angle = torch.outer(positions.float(), speeds(i, d))
        a, b = x.chunk(2, -1)
        rows = (
            a * angle.cos() - b * angle.sin(),
            a * angle.sin() + b * angle.cos(),
        )
        return torch.cat(rows, -1)

    return rotate


@wrong("rope")
def exponent_doubled(x, positions):
    return with_speeds(lambda i, d: BASE ** (-4 * i / d))(x, positions)


@wrong("rope")
def never_turned(x, positions):
    return x.clone()


@wrong("rope")
def four_axes_only(x, positions):
    batch, heads, seq, width = x.shape
    return rotate_halves(x, positions).view(batch, heads, seq, width)
