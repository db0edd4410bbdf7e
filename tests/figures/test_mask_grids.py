"""The masks of chapter 06 as squares: what each square says."""

import re

import pytest
import torch
from figures.registry import shown

from companion import masks
from companion.figures import mask_grids, verdicts


def squares(figure):
    """The kinds of all squares, a list of rows for each grid."""
    return [
        [
            re.findall(r'<td class="(\w+)">', row)
            for row in grid.partition("<tbody>")[2].split("</tr>")[:-1]
        ]
        for grid in shown(figure).split("<table")[1:]
    ]


def test_a_square_is_filled_where_the_mask_is_true():
    mask = torch.rand(3, 5) < 0.5
    (grid,) = squares(mask_grids([(mask, "x")], rows="abc", columns="vwxyz"))
    assert [[kind == "seen" for kind in row] for row in grid] == mask.tolist()


def test_a_hidden_square_says_why():
    tokens = torch.tensor([[4, 7, 0]])
    mask = masks.combine_masks(tokens, tokens, 0).tgt[0, 0]
    (grid,) = squares(
        mask_grids([(mask, "x")], rows="abc", pads=[False, False, True])
    )
    assert grid == [
        ["seen", "future", "both"],
        ["seen", "seen", "both"],
        ["seen", "seen", "pad"],
    ]


def test_what_differs_from_the_right_mask_stands_out():
    right = torch.ones(3, 3).tril()
    one_too_far, behind = torch.ones(3, 3).tril(1), torch.ones(3, 3).tril(-1)
    found = squares(
        mask_grids(
            [(one_too_far, "far", right), (behind, "behind", right)], rows="abc"
        )
    )
    leaks, lost = (
        [[kind == wrong for kind in row] for row in grid]
        for grid, wrong in zip(found, ("leak", "lost"), strict=True)
    )
    assert leaks == (one_too_far > right).tolist()
    assert lost == (behind < right).tolist()


def test_the_legend_names_what_is_drawn_and_nothing_else():
    figure = mask_grids([(torch.ones(2, 2).tril(), "x")], rows="ab")
    legend = shown(figure).partition('<ul class="legend">')[2]
    assert re.findall(r'<b class="(\w+)"', legend) == ["seen", "hidden"]
    assert "a sees a; b sees a, b" in figure.text


def test_a_row_that_sees_nobody_says_so():
    assert "a sees nobody" in mask_grids([([[0]], "x")], rows="a").text


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("mask", "pads", "says"),
    [
        (torch.ones(2, 3), None, "x: expected 2 rows of 2 .*got 2 of 3"),
        (torch.ones(2, 2), [True], "pads: expected one for each of 2.*got 1"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask, pads, says):
    with pytest.raises(ValueError, match=says):
        mask_grids([(mask, "x")], rows="ab", pads=pads)


def test_a_verdict_has_its_sign_and_its_colour():
    figure = verdicts(
        {"x": {"a": ["right", "NaN"], "b": ["mean", "right"]}},
        ["one", "two"],
        good=["right"],
        bad=["NaN"],
    )
    assert re.findall(r'<td class="(\w+)">(.*?)</td>', shown(figure)) == [
        ("good", "✓ right"),
        ("bad", "✗ NaN"),
        ("fair", "~ mean"),
        ("good", "✓ right"),
    ]
    assert figure.text == "Verdicts. x: a right, NaN; b mean, right."


@pytest.mark.bad_input
def test_a_row_of_verdicts_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="x, a: expected 2 words, got 1"):
        verdicts({"x": {"a": ["right"]}}, ["one", "two"], good=[], bad=[])
