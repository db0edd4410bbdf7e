"""The figure of chapter 02: the alignment grid."""

import pytest
import torch
from figures.browser import PHONE, close, computed, enter, focused, press
from figures.registry import SOURCE, STATES, TARGET, WEIGHTS, html_of

from companion.attention import softmax
from companion.figures import (
    alignment_grid,
)
from companion.figures.gallery.alignment_grid import context


def test_the_context_is_the_weighted_sum_of_the_states():
    assert context([0.25, 0.75], [[4.0, 0.0], [0.0, 8.0]]) == [1.0, 6.0]
    weights, states = softmax(torch.randn(5)), torch.randn(5, 2)
    torch.testing.assert_close(
        torch.tensor(context(weights.tolist(), states.tolist())),
        weights @ states,
    )


def test_the_grid_starts_with_the_word_that_looks_most_sharply():
    figure = alignment_grid(
        ["小", "猫"], ["little", "cat"], [[0.6, 0.4], [0.1, 0.9]],
        [[1.0, 0.0], [0.0, -1.0]],
    )  # fmt: skip
    assert "“cat” looks most at “猫” (0.90)" in figure.text
    assert "context c: 0.10, −0.90." in figure.text


def test_chinese_words_are_marked_as_chinese_and_markup_is_escaped():
    html = html_of("alignment_grid")
    assert '<span lang="zh">猫</span>' in html
    assert "<th scope=col>&lt;eos&gt;</th>" in html
    assert "<eos>" not in html.split("<script")[0]


@pytest.mark.bad_input
def test_the_grid_refuses_weights_that_do_not_fit_the_words():
    weights, states = torch.full((5, 3), 1 / 3), torch.ones(5, 2)
    with pytest.raises(ValueError, match=r"weights: .*\(3, 5\), got \(5, 3\)"):
        alignment_grid(SOURCE, TARGET, weights, states)


@pytest.mark.bad_input
def test_the_grid_refuses_states_that_do_not_fit_the_words():
    weights, states = torch.full((3, 5), 0.2), torch.ones(2, 5)
    with pytest.raises(ValueError, match=r"states: .*\(5, any\), got \(2, 5\)"):
        alignment_grid(SOURCE, TARGET, weights, states)


@pytest.mark.bad_input
def test_the_grid_names_the_word_whose_weights_do_not_sum_to_1():
    weights = torch.full((3, 5), 0.2)
    weights[1] = 0.3
    with pytest.raises(ValueError, match=r"1\.500 in the row of 'cats'"):
        alignment_grid(SOURCE, TARGET, weights, torch.ones(5, 2))


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        (["Home"], 0),
        (["Home", "ArrowDown"], 1),
        (["End"], 2),
        (["End", "ArrowDown"], 2),
        (["End", "ArrowUp", "ArrowUp", "ArrowUp"], 0),
    ],
)
def test_arrow_keys_pick_a_word_and_its_context_is_the_sum(reader, keys, row):
    page = reader(html_of("alignment_grid"))
    enter(page)
    press(page, *keys)
    assert computed(page).state == [row]
    sums = page.locator(".scaled tr:not(.alphas) td:last-child")
    shown = [float(text.replace("−", "-")) for text in sums.all_inner_texts()]
    close(shown, WEIGHTS[row] @ STATES, rtol=0, atol=0.0051)
    assert focused(page, "textContent") == TARGET[row]
    pressed = page.locator("button[aria-pressed=true]")
    assert pressed.all_inner_texts() == [TARGET[row]]
    assert page.locator(".chosen").inner_text() == TARGET[row]
    assert f"“{TARGET[row]}” looks most" in page.locator(".says").inner_text()


def test_a_finger_picks_a_row_by_its_word_and_by_its_cells(reader):
    page = reader(html_of("alignment_grid"), width=PHONE, has_touch=True)
    computed(page)
    rows = page.locator(".grid tr:not(.title)")
    rows.nth(2).locator("button").tap()
    assert computed(page).state == [2]
    rows.nth(0).locator("td").nth(1).tap()
    assert computed(page).state == [0]


def test_the_context_of_a_short_sentence_is_not_cut_on_a_phone(reader):
    source, target = ["⟨", *"我爱小猫", "⟩"], ["I", "love", "little", "cats"]
    states = 0.99 * torch.tensor([[-1.0] * 5] * 6)
    figure = alignment_grid(source, target, torch.full((4, 6), 1 / 6), states)
    page = reader(figure.html, width=PHONE)
    computed(page)
    wide, room = page.locator(".scroll").evaluate(
        "e => [e.scrollWidth, e.clientWidth]"
    )
    assert wide <= room


def test_a_mouse_looks_and_the_picked_word_comes_back(reader):
    page = reader(html_of("alignment_grid"))
    computed(page)
    rows = page.locator(".grid tr:not(.title)")
    rows.nth(1).locator("button").click()
    rows.nth(0).hover()
    assert computed(page).state == [0]
    page.locator("figcaption").hover()
    assert computed(page).state == [1]
