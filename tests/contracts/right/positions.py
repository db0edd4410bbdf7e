"""Positions, right in several ways: tables, sums and rotations."""

import math

import torch
from contracts.right import built, right
from torch import nn

BASE = 10000.0


@right("sinusoidal")
def table_by_where(length, d_model):
    j = torch.arange(d_model)
    speeds = BASE ** (-(j - j % 2) / d_model)
    angles = torch.arange(length).unsqueeze(1) * speeds
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


@right("sinusoidal")
def table_by_strides(length, d_model):
    table = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    even = torch.arange(0, d_model, 2).float()
    speeds = torch.exp(even * -(math.log(BASE) / d_model))
    table[:, 0::2] = torch.sin(position * speeds)
    table[:, 1::2] = torch.cos(position * speeds[: d_model // 2])
    return table


@right("sinusoidal")
def table_by_loop(length, d_model):
    rows = []
    for t in range(length):
        row = []
        for j in range(d_model):
            angle = t / BASE ** (2 * (j // 2) / d_model)
            row.append(math.cos(angle) if j % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows)


@right("sinusoidal")
def table_by_complex_numbers(length, d_model):
    pairs = torch.arange((d_model + 1) // 2)
    angles = torch.outer(torch.arange(length), BASE ** (-2 * pairs / d_model))
    # The real part comes first, so this begins with the sine.
    hands = torch.complex(angles.sin(), angles.cos())
    return torch.view_as_real(hands).flatten(1)[:, :d_model]


@right("add_positions")
def add_sinusoids(x):
    return x + table_by_where(x.shape[1], x.shape[2]).unsqueeze(0)


class Learned(nn.Module):
    """A table that learns, looked up by number."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        numbers = torch.arange(x.size(1), device=x.device)
        return self.dropout(x + self.table(numbers))


class Buffered(nn.Module):
    """A table with an axis for the batch, cut to the length."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", table_by_strides(100, 12)[None])

    def forward(self, x):
        return x + self.table[:, : x.size(1)]


right("add_positions")(built(lambda: Learned().eval()))
right("add_positions")(built(Buffered))


@right("add_positions")
def add_one_sentence_at_a_time(x):
    table = table_by_loop(x.shape[1], x.shape[2])
    return torch.stack([sentence + table for sentence in x])


@right("add_positions")
def add_whole_numbers(x):
    """Poor positions, but positions: 0, 1, 2 … in every feature."""
    return x + torch.arange(x.shape[1]).unsqueeze(-1)


def angles(x, positions):
    i = torch.arange(x.shape[-1] // 2)
    return torch.outer(positions.float(), BASE ** (-2 * i / x.shape[-1]))


@right("rope")
def rotate_neighbours(x, positions):
    angle = angles(x, positions)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = (
        a * angle.cos() - b * angle.sin(),
        a * angle.sin() + b * angle.cos(),
    )
    return torch.stack(turned, -1).flatten(-2)


@right("rope")
def rotate_halves(x, positions):
    """As GPT-NeoX and Llama do: dimension i is paired with i + d/2."""
    angle = torch.cat([angles(x, positions)] * 2, -1)
    a, b = x.chunk(2, -1)
    return x * angle.cos() + torch.cat([-b, a], -1) * angle.sin()


@right("rope")
def rotate_complex(x, positions):
    angle = angles(x, positions)
    hands = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turn = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(hands * turn).flatten(-2)


@right("rope")
def rotate_the_other_way(x, positions):
    return rotate_halves(x, -positions)


@right("rope")
def rotate_by_matrices(x, positions):
    angle = angles(x, positions)
    blocks = torch.stack(
        [angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1
    ).unflatten(-1, (2, 2))
    pairs = x.unflatten(-1, (-1, 2)).unsqueeze(-1)
    return (blocks @ pairs).squeeze(-1).flatten(-2)


@right("rope")
def rotate_by_table(x, positions):
    """Looked up by whole positions, as a cache of sines is."""
    angle = angles(x, torch.arange(64)).repeat_interleave(2, -1)
    cosines, sines = angle.cos()[positions], angle.sin()[positions]
    a, b = x[..., 0::2], x[..., 1::2]
    other = torch.stack([-b, a], -1).reshape(x.shape)
    return x * cosines + other * sines
