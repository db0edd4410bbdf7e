"""Positions in binary, as hands and as numbers."""

import re

import pytest
import torch
from figures.registry import shown

from companion.figures import clock_rows
from companion.figures.gallery.clock_rows import BARS, DIALS, PITCH, numbers
from companion.positions import rotate

TURNS = (90, 45, 22.5)


def test_the_hands_are_clockwise_turns_of_one_that_points_up():
    up = torch.tensor([0.0, 1.0], dtype=torch.float64)
    for p in range(8):
        for i, turn in enumerate(TURNS):
            angle = torch.tensor([-p * turn * torch.pi / 180]).double()
            turned = rotate(up[None], angle)[0].tolist()
            assert numbers(p, TURNS)[2 * i : 2 * i + 2] == pytest.approx(
                turned, abs=1e-6
            )


def test_all_eight_rows_differ_and_the_fast_hand_alone_repeats():
    rows = torch.tensor([numbers(p, TURNS) for p in range(8)])
    assert torch.pdist(rows).min() > 0.3
    torch.testing.assert_close(rows[:4, :2], rows[4:, :2])
    assert torch.pdist(rows[:, 4:]).min() > 0.3


def test_each_row_draws_its_digits_hands_and_bars():
    html = shown(clock_rows())
    bits = re.findall(r'<text class="bit\d" [^>]*>(\d)<', html)
    digits = ["".join(bits[3 * p : 3 * p + 3])[::-1] for p in range(8)]
    assert digits == [f"{p:03b}" for p in range(8)]
    hands = re.findall(
        r'class="hand" x1="(\d+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"',
        html,
    )
    bars = re.findall(
        r'class="bar (\w+)" x="(\d+)" y="([\d.]+)" .*?height="([\d.]+)"', html
    )
    for p in range(8):
        values = numbers(p, TURNS)
        tips = [
            part
            for x1, y1, x2, y2 in hands[3 * p : 3 * p + 3]
            for part in (float(x2) - float(x1), float(y1) - float(y2))
        ]
        assert tips == pytest.approx([14 * v for v in values], abs=0.06)
        sizes = [
            float(high) * (1 if sign == "plus" else -1)
            for sign, _, _, high in bars[6 * p : 6 * p + 6]
        ]
        assert sizes == pytest.approx([14 * v for v in values], abs=0.06)
    assert [int(x) for x, *_ in hands[:3]] == [
        DIALS + PITCH * i for i in range(3)
    ]
    assert int(bars[0][1]) == BARS - 6


@pytest.mark.bad_input
def test_another_number_of_hands_is_refused():
    with pytest.raises(ValueError, match=r"turns: expected three .*got 2"):
        clock_rows((90, 45))
