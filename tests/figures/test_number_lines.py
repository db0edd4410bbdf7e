"""Weights on number lines: what stands for them is what the package stores."""

import re
from html import unescape

import pytest
import torch
from figures.registry import EIGHT, figure_of, parts_at

from companion.efficiency import quantize
from companion.figures import number_lines

PLAIN, OUT = 0, 1
ALL, FOURS = 0, 1
FOUR_BITS, EIGHT_BITS = 0, 1
STATES = [(o, g, b) for o in (0, 1) for g in (0, 1) for b in (0, 1)]


def table(state, name):
    html = "".join(parts_at(figure_of("number_lines"), *state)["tables"])
    rows = re.findall(rf"<th scope=row>{name}</th>(.*?)</tr>", html)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", "".join(rows))
    return [float(unescape(c).replace("\N{MINUS SIGN}", "-")) for c in cells]


def found(state):
    out, groups, bits = state
    weights = torch.tensor([*EIGHT[:-1], 7.0 if out else EIGHT[-1]]).double()
    return weights, quantize(
        weights, (4, 8)[bits], per="tensor" if groups == ALL else 4
    )


@pytest.mark.parametrize("state", STATES)
def test_the_table_has_what_the_package_stores(state):
    weights, stored = found(state)
    assert table(state, "weight") == pytest.approx(weights.tolist())
    assert table(state, "integer") == stored.integers.tolist()
    back = stored.dequantize(torch.float64).tolist()
    half = {4: 0.0051, 8: 0.00051}[stored.bits]
    assert table(state, "stands for") == pytest.approx(back, abs=half)


@pytest.mark.parametrize("state", STATES)
def test_it_says_how_many_are_off_and_what_a_weight_costs(state):
    weights, stored = found(state)
    says = parts_at(figure_of("number_lines"), *state)["says"][0]
    error = (stored.dequantize(torch.float64) - weights).abs()
    off = int((error > 1e-6).sum())
    assert ("No weight is off" in says) == (off == 0)
    if off:
        largest = f"{error.max():.{ {4: 2, 8: 3}[stored.bits] }f}"
        assert f"{off} of 8 weights are off, by {largest} at most" in says
        assert float(largest) > 0
    half = quantize(
        weights.float(), stored.bits, per=8 // stored.scale.numel(),
        scale_dtype=torch.float16,
    )  # fmt: skip
    assert f"that is {half.bits_per_number:g} bits a weight" in says


def test_an_outlier_ruins_its_group_and_no_other():
    assert table((OUT, ALL, FOUR_BITS), "integer")[:4] == [0, 0, 0, 1]
    assert table((OUT, FOURS, FOUR_BITS), "integer")[:4] == [1, -3, 4, 7]
    assert table((OUT, FOURS, FOUR_BITS), "integer")[4:] == [0, 0, 1, 7]


def test_a_tick_is_drawn_for_each_number_that_can_be_stored():
    for bits, ticks in ((FOUR_BITS, 15), (EIGHT_BITS, 255)):
        html = parts_at(figure_of("number_lines"), OUT, ALL, bits)["lines"][0]
        comb = re.search(r'class="comb" d="(.*?)"', html)[1]
        assert comb.count("V") == ticks


@pytest.mark.bad_input
def test_other_than_eight_weights_are_refused():
    with pytest.raises(ValueError, match="expected eight, got 2"):
        number_lines([1.0, 2.0], 3.0)
