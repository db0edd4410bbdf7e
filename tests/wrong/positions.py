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


@wrong("sinusoidal", "^All sines come first and all cosines after.* At pos")
def sines_then_cosines(length, d_model):
    i = torch.arange(d_model // 2)
    angle = steps(length) / BASE ** (2 * i / d_model)
    return torch.cat([angle.sin(), angle.cos()], -1)


@wrong("sinusoidal", "^The dimension is taken for i: i counts pairs, and dim")
def dimension_for_pair(length, d_model):
    even = torch.arange(0, d_model, 2)
    angle = steps(length) / BASE ** (2 * even / d_model)
    return filled(angle, angle)


@wrong("sinusoidal", "^The dimension is taken for i: i counts pairs, so that")
def dimension_for_pair_in_a_loop(length, d_model):
    rows = []
    for t in range(length):
        scaled = [t / BASE ** (2 * i / d_model) for i in range(d_model)]
        functions = (math.sin, math.cos)
        rows.append([functions[i % 2](a) for i, a in enumerate(scaled)])
    return torch.tensor(rows)


@wrong("sinusoidal", "^Every dimension has a frequency of its own: 2i and")
def no_shared_angle(length, d_model):
    angle = steps(length) / BASE ** (torch.arange(d_model) / d_model)
    return filled(angle[:, 0::2], angle[:, 1::2])


@wrong("sinusoidal", "^The exponent is i/d: it is 2i/d")
def half_the_exponent(length, d_model):
    angle = steps(length) / BASE ** (torch.arange(d_model // 2) / d_model)
    return filled(angle, angle)


@wrong("sinusoidal", "^Positions are counted from 1: the first is 0")
def counted_from_one(length, d_model):
    return table_by_where(length + 1, d_model)[1:]


@wrong("sinusoidal", "^There are no cosines")
def sines_only(length, d_model):
    j = torch.arange(d_model)
    return (steps(length) * BASE ** (-(j - j % 2) / d_model)).sin()


@wrong("sinusoidal", "^The base is 1000: it is 10000")
def small_base(length, d_model):
    angle = steps(length) / 1000 ** (torch.arange(0, d_model, 2) / d_model)
    return filled(angle, angle)


@wrong("sinusoidal", "^The position is multiplied by 10000")
def sign_of_the_exponent(length, d_model):
    even = torch.arange(0, d_model, 2)
    speeds = torch.exp(even * (math.log(BASE) / d_model))
    return filled(steps(length) * speeds, steps(length) * speeds)


@wrong("sinusoidal", "^The rows change when there are only 2 of them. At")
def scaled_to_the_length(length, d_model):
    table = table_by_where(length, d_model)
    return table if length in (2, 3, 11, 13, 53) else 2 * table


@wrong("sinusoidal", "^This is not what the formula returns for 11 positions")
def damped(length, d_model):
    return table_by_where(length, d_model) / math.sqrt(d_model)


@wrong("sinusoidal", "^It raised RuntimeError .*d_model 3")
def even_widths_only(length, d_model):
    if d_model == 1:
        return table_by_where(length, d_model)
    even = torch.arange(0, d_model, 2)
    angle = steps(length) * BASE ** (-even / d_model)
    table = torch.zeros(length, d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


@wrong("sinusoidal", "^It returned shape .*Position and dimension are swapped")
def swapped_axes(length, d_model):
    return table_by_where(length, d_model).T


# Adding them


def lookup(x, numbers):
    """Rows of a table for 64 positions."""
    return table_by_where(64, x.shape[-1])[numbers]


@wrong("add_positions", "^At position 0, feature .* The table is indexed")
def indexed_by_the_batch(x):
    table = lookup(x, torch.arange(64)).unsqueeze(1)  # For (seq, batch, d).
    return x + table[: x.size(0)]


@wrong("add_positions", "Only sentence 0 gets positions")
def first_sentence_only(x):
    x = x.clone()
    x[0] = x[0] + lookup(x, torch.arange(x.shape[1]))
    return x


@wrong("add_positions", "What is added depends on the sentence")
def counts_on(x):
    numbers = torch.arange(x.shape[0] * x.shape[1]).view(x.shape[:2]) % 64
    return x + lookup(x, numbers)


@wrong("add_positions", "^Positions 0 and 1 get the same .*All positions get")
def a_constant(x):
    return x + lookup(x, torch.tensor(5))


@wrong("add_positions", "^Positions 0 and 1 get the same .*Nothing is added")
def nothing(x):
    return x.clone()


@wrong("add_positions", "^Positions 0 and 5 get the same .*table move along")
def over_and_over(x):
    return x + lookup(x, torch.arange(x.shape[1]) % 5)


@wrong("add_positions", "^`x` is multiplied by 3.464: .* At batch 0")
def scaled_and_added(x):
    return x * math.sqrt(x.shape[-1]) + lookup(x, torch.arange(x.shape[1]))


@wrong("add_positions", "^Something else happens to `x` than a sum. At")
def averaged_and_added(x):
    x = x - x.mean(-1, keepdim=True)
    return x + lookup(x, torch.arange(x.shape[1]))


@wrong("add_positions", "^With 1 positions instead of 11 the first ones change")
def counted_from_the_end(x):
    return x + lookup(x, torch.arange(x.shape[1]).flip(0))


@wrong("add_positions", "^A sentence alone gets other positions than in")
def shifted_by_a_large_batch(x):
    return x + lookup(x, torch.arange(x.shape[1]) + len(x) // 13)


@wrong("add_positions", "^It returned shape .*Are these the positions alone")
def positions_alone(x):
    return lookup(x, torch.arange(x.shape[1]))


# Rotating


@wrong("rope", "^A row alone, with its own position, is turned otherwise")
def turned_by_place(x, positions):
    return rotate_neighbours(x, torch.arange(x.shape[-2]))


@wrong("rope", "^A row alone, with its own position, is turned otherwise")
def along_the_heads(x, positions):
    if x.shape[-3] != len(positions):
        return rotate_neighbours(x, positions)
    return rotate_neighbours(x.transpose(-3, -2), positions).transpose(-3, -2)


@wrong("rope", "^The angle of position 0 is 0: .* At batch 1")
def one_further(x, positions):
    return rotate_neighbours(x, positions + 1)


@wrong("rope", "^Position 1 makes .* do cosines, sines and the turned copy")
def pairs_that_disagree(x, positions):
    angle = torch.cat([angles(x, positions)] * 2, -1)
    other = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    return x * angle.cos() + other * angle.sin()


@wrong("rope", "^Position 7 makes .* of the length")
def one_sign_lost(x, positions):
    angle = angles(x, positions)
    a, b = x.chunk(2, -1)
    rows = (
        a * angle.cos() + b * angle.sin(),
        a * angle.sin() + b * angle.cos(),
    )
    return torch.cat(rows, -1)


@wrong("rope", r"^f\(x \+ y\) is not f\(x\) \+ f\(y\): is something added")
def added_instead(x, positions):
    return x + table_by_where(64, x.shape[-1])[positions]


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


@wrong("rope", "^The exponent is i/d: .* expected 1, 0.1, 0.01, 0.001")
def exponent_halved(x, positions):
    return with_speeds(lambda i, d: BASE ** (-i / d))(x, positions)


@wrong("rope", "^The dimension 2i is taken for i")
def exponent_doubled(x, positions):
    return with_speeds(lambda i, d: BASE ** (-4 * i / d))(x, positions)


@wrong("rope", "^These are not the angles .* by 1, 0.03761")
def larger_base(x, positions):
    return with_speeds(lambda i, d: 5e5 ** (-2 * i / d))(x, positions)


@wrong("rope", "^It never turns")
def never_turned(x, positions):
    return x.clone()


@wrong("rope", "^It raised .*dimension|^It raised .*not enough values")
def four_axes_only(x, positions):
    batch, heads, seq, width = x.shape
    return rotate_halves(x, positions).view(batch, heads, seq, width)
