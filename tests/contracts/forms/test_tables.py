"""What makes the tables of RoPE, and turns no vector itself."""

import pytest
import torch
from contracts.known import gate_message
from torch import nn

from companion.contracts import adapters, check

pytestmark = pytest.mark.once


def angles(dim, end, base=10000.0, factor=2, start=0):
    i = torch.arange(dim // 2)
    places = torch.arange(start, start + end).float()
    return torch.outer(places, base ** (-factor * i / dim))


def complex_numbers(dim, end, theta=10000.0):
    turn = angles(dim, end, theta)
    return torch.polar(torch.ones_like(turn), turn)


def each_once(head_dim, seq_len):
    turn = angles(head_dim, seq_len)
    return turn.cos(), turn.sin()


def in_halves(head_dim, max_seq_len):
    turn = angles(head_dim, max_seq_len).repeat(1, 2)
    return turn.cos()[None, None], turn.sin()[None, None]


def in_pairs(seq_len, dim):
    turn = angles(dim, seq_len).repeat_interleave(2, -1)
    return turn.cos()[:, None], turn.sin()[:, None]


def stacked(dim, max_seq_len):
    turn = angles(dim, max_seq_len)
    return torch.stack([turn.cos(), turn.sin()], -1)


def for_long_texts(dim, end):
    return complex_numbers(dim, end, 500000.0)


def turned_heads_first(x, freqs_cis):
    """Turn (batch, head, seq, head_dim) by as many rows as there are."""
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    turned = turned * freqs_cis[: x.shape[2]]
    return torch.view_as_real(turned).flatten(3)


def turned_heads_behind(x, freqs_cis):
    """Turn (batch, seq, head, head_dim)."""
    return turned_heads_first(x.transpose(1, 2), freqs_cis).transpose(1, 2)


@pytest.mark.parametrize(
    ("turn", "axes"),
    [
        (turned_heads_first, "(batch, head, seq, head_dim)"),
        (turned_heads_behind, "(batch, seq, head, head_dim)"),
    ],
)
def test_heads_stand_where_a_rotation_by_a_table_wants_them(turn, axes):
    report = check("rope", turn)
    assert report.passed, str(report)
    assert axes in report.assumed[0]


def test_a_rotation_by_a_table_that_is_wrong_for_both_is_a_fault():
    def first_alone(x, freqs_cis):
        return turned_heads_first(x, freqs_cis[:1].expand_as(freqs_cis))

    assert not check("rope", first_alone).passed


RIGHT = [complex_numbers, each_once, in_halves, in_pairs, stacked]


@pytest.mark.parametrize("make", RIGHT)
def test_tables_of_any_layout_are_found_without_an_adapter(make):
    report = check("rope", make)
    assert report.passed, str(report)
    assert "it makes tables" in report.assumed[0]
    assert "The base" not in str(report)


def test_another_base_of_tables_is_a_note_and_no_fault():
    report = check("rope", for_long_texts)
    assert report.passed
    assert "The base is 500000" in " ".join(f.message for f in report.notes)


class Rotary(nn.Module):
    """Made for one width, and asked with vectors and positions."""

    def __init__(self, dim):
        super().__init__()
        self.speeds = 10000 ** (-torch.arange(0, dim, 2) / dim)

    def forward(self, x, position_ids):
        turn = position_ids[..., None].float() * self.speeds
        turn = torch.cat([turn, turn], -1)
        return turn.cos(), turn.sin()


def test_a_module_of_one_width_is_told_the_adapter_that_makes_it():
    message = gate_message("rope", Rotary(8))
    assert "`adapters.rope_of_tables` may be wanted." in message

    def make(dim, length):
        return Rotary(dim)(torch.zeros(1, length, dim), torch.arange(length))

    assert check("rope", adapters.rope_of_tables(make)).passed


def exponent_of_half(dim, end):
    turn = angles(dim, end, factor=1)
    return turn.cos(), turn.sin()


def off_by_one(dim, end):
    turn = angles(dim, end, start=1)
    return turn.cos(), turn.sin()


def sines_first(dim, end):
    return tuple(reversed(each_once(dim, end)))


def in_degrees(dim, end):
    turn = torch.deg2rad(angles(dim, end))
    return turn.cos(), turn.sin()


def base_for_the_dimension(dim, end):
    # They have changed places: dim to the power of i/base.
    turn = angles(10000, end, base=float(dim))[:, : dim // 2]
    return turn.cos(), turn.sin()


def two_layouts(dim, end):
    turn = angles(dim, end)
    return turn.repeat(1, 2).cos(), turn.repeat_interleave(2, -1).sin()


WRONG = [
    (exponent_of_half, "The exponent is i/d"),
    (off_by_one, "The angle of position 0 is 0"),
    (sines_first, "Have the tables of sines and cosines changed places?"),
    (in_degrees, "The angle is in degrees"),
    (base_for_the_dimension, "All pairs turn alike"),
    (two_layouts, "agree on which two dimensions make a pair?"),
]


@pytest.mark.parametrize(("make", "named"), WRONG)
def test_what_is_wrong_with_tables_is_named(make, named):
    report = check("rope", make)
    assert not report.passed
    assert named in " ".join(f.message for f in report.faults), str(report)


@pytest.mark.bad_input
def test_tables_of_another_width_are_refused():
    rope = adapters.rope_of_tables(lambda dim, end: torch.ones(2, end, 3))
    with pytest.raises(ValueError, match=r"^make: expected tables .* got"):
        rope(torch.ones(1, 2, 8), torch.arange(2))
