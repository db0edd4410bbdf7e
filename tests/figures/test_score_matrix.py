"""The figure of chapter 03: scores to type."""

import math
import re

import pytest
import torch
from figures.browser import close, computed, enter, press
from figures.registry import html_of

from companion.attention import (
    attention_weights,
    scaled_dot_product_attention,
    softmax,
    softmax_jacobian,
)
from companion.figures import (
    score_matrix,
)
from companion.figures.gallery.score_matrix import SCORES, VALUES, movement
from companion.figures.kit.digits import heat


def test_the_first_row_of_the_notes_example_is_finished():
    html = score_matrix().html.split("<script")[0]
    row = [0.27, 0.13, 0.49, 0.11]
    cells = "".join(f"<td {heat(w)}>{w:.2f}</td>".split(">", 1)[1] for w in row)
    shown = re.sub(r"<td [^>]*>", "", html)
    assert cells in shown
    assert "0.244</td>0.417</td>0.590</td>" in shown


def test_movement_is_a_half_for_two_equal_weights_and_never_more():
    assert movement(torch.tensor([0.5, 0.5])).item() == pytest.approx(0.5)
    assert movement(torch.tensor([1.0, 0.0])).item() == 0
    some = movement(softmax(5 * torch.randn(101, 7)))
    assert (some <= 0.5 + 1e-6).all()


@pytest.mark.bad_input
def test_the_score_matrix_needs_a_value_for_each_key():
    with pytest.raises(ValueError, match=r"values: .*\(3, any\), got \(2, 1\)"):
        score_matrix([[1.0, 2.0, 3.0]], [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("d_k", "width_keys"), [(1, ["Home"]), (64, []), (1024, ["End"])]
)
@pytest.mark.parametrize(
    ("scale_keys", "power"),
    [(["Home"], 0.0), (["Home", "ArrowRight"], -0.5), (["End"], -1)],
)
def test_the_sliders_recompute_the_weights_of_the_package(
    reader, d_k, width_keys, scale_keys, power
):
    page = reader(html_of("score_matrix"))
    enter(page)
    press(page, *width_keys, "Tab", *scale_keys)
    # Queries whose dot products with the unit vectors are the raw scores.
    q = torch.tensor(SCORES, dtype=torch.float64) * math.sqrt(d_k)
    k, v = torch.eye(4, dtype=q.dtype), torch.tensor(VALUES, dtype=q.dtype)
    weights = attention_weights(q, k, scale=d_k**power)
    output = scaled_dot_product_attention(q, k, v, scale=d_k**power)
    shown = computed(page)
    assert shown.d_k == d_k
    close(shown.weights, weights)
    close(shown.output, output)
    close(shown.largest, weights.amax(1))
    moves = torch.linalg.matrix_norm(softmax_jacobian(weights), ord=2)
    close(shown.movement, moves, rtol=1e-4, atol=1e-9)
    assert f"dₖ = {d_k}, scale" in page.locator(".says").inner_text()


def test_only_the_root_scale_makes_the_weights_independent_of_d_k(reader):
    page = reader(html_of("score_matrix"))
    start = computed(page).weights
    enter(page)
    press(page, "End")
    close(computed(page).weights, start)
    press(page, "Tab", "ArrowLeft")  # scale 1
    assert computed(page).largest[0] > 0.999
    press(page, "End")  # scale 1/d_k
    assert max(computed(page).largest) < 0.27


def field(page, kind, row, column):
    cells = page.locator(f"table.{kind} tbody tr").nth(row).locator("input")
    return cells.nth(column)


def retype(page, text):
    press(page, "ControlOrMeta+a", "Delete")
    page.keyboard.type(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", 2), ("-0.5", -0.5), ("−0.5", -0.5), ("0,5", 0.5), ("１．５", 1.5),
     (".5", 0.5), ("1e2", 100), (" 3 ", 3)],
)  # fmt: skip
def test_a_typed_score_counts(reader, text, value):
    page = reader(html_of("score_matrix"))
    computed(page)
    field(page, "scores", 1, 2).focus()
    retype(page, text)
    scores = torch.tensor(SCORES, dtype=torch.float64)
    scores[1, 2] = value
    close(computed(page).scores, scores)
    close(computed(page).weights, softmax(scores))
    assert page.locator(".problem").all_inner_texts() == ["", ""]


def test_a_typed_value_counts(reader):
    page = reader(html_of("score_matrix"))
    computed(page)
    field(page, "values", 3, 1).focus()
    retype(page, "-7")
    v = torch.tensor(VALUES, dtype=torch.float64)
    v[3, 1] = -7
    close(
        computed(page).output,
        softmax(torch.tensor(SCORES, dtype=v.dtype)) @ v,
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty."),
        ("abc", "is not a number: “abc”."),
        ("0x10", "is not a number: “0x10”."),
        ("Infinity", "is not a number: “Infinity”."),
        ("1e999", "is not between −1000 and 1000: “1e999”."),
    ],
)
def test_bad_input_is_named_and_the_last_good_value_counts(
    reader, text, complaint
):
    page = reader(html_of("score_matrix"))
    computed(page)
    cell = field(page, "scores", 0, 1)
    cell.focus()
    retype(page, "0.7")
    press(page, "Tab", "Shift+Tab")
    retype(page, text)
    problem = page.locator(".problem").first
    assert problem.inner_text() == (
        f"Scores, row 1, column 2 {complaint} 0.7 still counts."
    )
    assert computed(page).scores[0][1] == 0.7
    assert problem.get_attribute("role") == "alert"
    assert cell.get_attribute("aria-invalid") == "true"
    assert cell.input_value() == text
    assert torch.tensor(computed(page).weights).isfinite().all()
    retype(page, "0.9")
    assert problem.inner_text() == ""
    assert cell.get_attribute("aria-invalid") == "false"
    assert computed(page).scores[0][1] == 0.9


def test_two_bad_cells_are_both_named(reader):
    page = reader(html_of("score_matrix"))
    computed(page)
    for column in (0, 3):
        field(page, "scores", 2, column).fill("?")
    text = page.locator(".problem").first.inner_text()
    assert "row 3, column 1 is not" in text
    assert "row 3, column 4 is not" in text
