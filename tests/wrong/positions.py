"""Positions got wrong."""

import math

import torch
from right.positions import (
    angles,
    rotate_halves,
    rotate_neighbours,
    table_by_where,
)

from wrong import wrong

BASE = 10000.0

# Sinusoidal


def filled(angle_even, angle_odd):
    """A table, from the angles of both kinds of dimension."""
    table = torch.zeros(len(angle_even), 2 * angle_even.shape[1])
    table[:, 0::2], table[:, 1::2] = angle_even.sin(), angle_odd.cos()
    return table


def steps(length):
    return torch.arange(length, dtype=torch.float32).unsqueeze(1)


@wrong("sinusoidal", "^The dimension is taken for i: i counts pairs, so that")
def dimension_for_pair_in_a_loop(length, d_model):
    rows = []
    for t in range(length):
        scaled = [t / BASE ** (2 * i / d_model) for i in range(d_model)]
        functions = (math.sin, math.cos)
        rows.append([functions[i % 2](a) for i, a in enumerate(scaled)])
    return torch.tensor(rows)


@wrong("sinusoidal", "^The exponent is i/d: it is 2i/d")
def half_the_exponent(length, d_model):
    angle = steps(length) / BASE ** (torch.arange(d_model // 2) / d_model)
    return filled(angle, angle)


@wrong("sinusoidal", "^There are no cosines")
def sines_only(length, d_model):
    j = torch.arange(d_model)
    return (steps(length) * BASE ** (-(j - j % 2) / d_model)).sin()


@wrong("sinusoidal", "^The base is 1000: it is 10000")
def small_base(length, d_model):
    angle = steps(length) / 1000 ** (torch.arange(0, d_model, 2) / d_model)
    return filled(angle, angle)


@wrong("sinusoidal", "^The rows change when there are only 2 of them. At")
def scaled_to_the_length(length, d_model):
    table = table_by_where(length, d_model)
    return table if length in (2, 3, 11, 13, 53) else 2 * table


@wrong("sinusoidal", "^This is not what the formula returns for 11 positions")
def damped(length, d_model):
    return table_by_where(length, d_model) / math.sqrt(d_model)


@wrong("sinusoidal", "^It returned shape .*Position and dimension are swapped")
def swapped_axes(length, d_model):
    return table_by_where(length, d_model).T


# Adding them


def lookup(x, numbers):
    """Rows of a table for 64 positions."""
    return table_by_where(64, x.shape[-1])[numbers]


@wrong("add_positions", "Only sentence 0 gets positions")
def first_sentence_only(x):
    x = x.clone()
    x[0] = x[0] + lookup(x, torch.arange(x.shape[1]))
    return x


@wrong("add_positions", "^Positions 0 and 1 get the same .*Nothing is added")
def nothing(x):
    return x.clone()


@wrong("add_positions", "^Positions 0 and 5 get the same .*table move along")
def over_and_over(x):
    return x + lookup(x, torch.arange(x.shape[1]) % 5)


@wrong("add_positions", "^Something else happens to `x` than a sum. At")
def averaged_and_added(x):
    x = x - x.mean(-1, keepdim=True)
    return x + lookup(x, torch.arange(x.shape[1]))


@wrong("add_positions", "^A sentence alone gets other positions than in")
def shifted_by_a_large_batch(x):
    return x + lookup(x, torch.arange(x.shape[1]) + len(x) // 13)


@wrong("add_positions", "^It returned shape .*Are these the positions alone")
def positions_alone(x):
    return lookup(x, torch.arange(x.shape[1]))


# Rotating


@wrong("rope", "^The angle of position 0 is 0: .* At batch 1")
def one_further(x, positions):
    return rotate_neighbours(x, positions + 1)


@wrong("rope", r"^f\(x \+ y\) is not f\(x\) \+ f\(y\)")
def turned_by_content(x, positions):
    spin = x.detach().norm(dim=-1, keepdim=True)
    first, second = x.chunk(2, -1)
    angle = spin * angles(x, positions)
    rows = (
        first * angle.cos() - second * angle.sin(),
        first * angle.sin() + second * angle.cos(),
    )
    return torch.cat(rows, -1)


@wrong("rope", "^Positions 11 and 3 give the score .*is the angle proportional")
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


@wrong("rope", "^The dimension 2i is taken for i")
def exponent_doubled(x, positions):
    return with_speeds(lambda i, d: BASE ** (-4 * i / d))(x, positions)


@wrong("rope", "^It never turns")
def never_turned(x, positions):
    return x.clone()


@wrong("rope", "^It raised .*dimension|^It raised .*not enough values")
def four_axes_only(x, positions):
    batch, heads, seq, width = x.shape
    return rotate_halves(x, positions).view(batch, heads, seq, width)
