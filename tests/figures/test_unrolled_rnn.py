"""The figure of chapter 01: an RNN, unrolled."""

import pytest
import torch
from figures.browser import enter, focused, press
from figures.registry import html_of

from companion.figures import (
    small_rnn,
    unrolled_rnn,
)
from companion.figures.kit.digits import short
from companion.rnn import gradient_to_inputs, unroll


def test_the_small_rnn_turns_states_and_keeps_their_length():
    U = small_rnn().U
    torch.testing.assert_close(U @ U.T, torch.eye(8, dtype=U.dtype))


def test_without_tanh_the_gradient_falls_by_the_gain_at_every_step():
    x, h0, W, U, b = small_rnn(length=7)
    norms = gradient_to_inputs(0 * x, h0, W, 0.5 * U, b)
    expected = 0.5 ** torch.arange(6, -1, -1, dtype=norms.dtype)
    torch.testing.assert_close(norms, expected)


@pytest.mark.parametrize(("gain", "first"), [(0.8, 0.0144), (1.0, 1.0)])
def test_small_states_hardly_bend_the_line_of_the_small_rnn(gain, first):
    x, h0, W, U, b = small_rnn()
    norms = gradient_to_inputs(x, h0, W, gain * U, b)
    assert norms[0].item() == pytest.approx(first, rel=0.01)


def test_full_states_make_the_gradient_fall_short_of_the_line():
    x, h0, W, U, b = small_rnn()
    norms = gradient_to_inputs(x, h0, W, 2 * U, b)
    states = unroll(x[None], h0[None], W, 2 * U, b)[0]
    assert states[0].abs().mean() < 0.01 < 0.4 < states[-1].abs().mean()
    assert 1000 < norms[0] < 0.1 * 2**19


def test_the_unrolled_rnn_says_what_the_package_computes():
    x, h0, W, U, b = small_rnn()
    norms = gradient_to_inputs(x, h0, W, 0.8 * U, b)
    ratio = short((norms[-1] / norms[0]).item())
    figure = unrolled_rnn()
    assert f"x₁ reaches h₂₀ {ratio} times more weakly" in figure.text
    for value in norms.tolist():
        assert f">{short(value)}</td>" in figure.html


def test_the_unrolled_rnn_draws_a_step_for_each_input():
    html = unrolled_rnn(small_rnn(length=7)).html
    assert html.count('class="step"') == 7
    assert "h₇" in html
    assert "h₈" not in html


@pytest.mark.parametrize(
    ("keys", "gain"),
    [
        ([], 0.8),
        (["Home"], 0.5),
        (["End"], 2.0),
        (["ArrowRight"] * 4, 1.0),
        (["End", *["ArrowLeft"] * 10], 1.5),
    ],
)
def test_the_slider_recomputes_the_gradients_of_the_package(reader, keys, gain):
    page = reader(html_of("unrolled_rnn"))
    enter(page)
    press(page, *keys)
    x, h0, W, U, b = small_rnn()
    rows = page.locator("tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    norms = gradient_to_inputs(x, h0, W, gain * U, b)
    states = unroll(x[None], h0[None], W, gain * U, b)[0]
    assert rows == [
        [str(t), short(norm), short(size)]
        for t, (norm, size) in enumerate(
            zip(norms.tolist(), states.abs().mean(1).tolist(), strict=True), 1
        )
    ]
    assert focused(page, "ariaValueText ?? ''") == f"{gain:.2f}"
    assert f"Gain {gain:.2f}:" in page.locator(".says").inner_text()


def test_the_bars_tip_over_when_the_gain_passes_1(reader):
    page = reader(html_of("unrolled_rnn"))
    enter(page)
    press(page, "Home")
    assert page.locator(".bar.down").count() >= 19
    press(page, *["ArrowRight"] * 14)  # gain 1.2
    assert page.locator(".bar.up").count() == 19


def test_the_table_follows_the_slider(reader):
    page = reader(html_of("unrolled_rnn"))
    enter(page)
    press(page, "Home", "Tab", "Enter")
    cell = page.locator("tbody tr td").first
    assert cell.is_visible()
    assert cell.inner_text() == "1.9×10⁻⁶"
