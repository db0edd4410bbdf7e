"""The opening of chapter 05: which words change with the order."""

import re

import pytest
import torch
from figures.registry import shown

from companion.attention import scaled_dot_product_attention as attend
from companion.figures import swapped_words
from companion.figures.gallery.swapped_words import same

WORDS, GLOSSES, ORDER = ["猫", "追", "狗"], ["cat", "chases", "dog"], [2, 1, 0]
X = torch.tensor([[2.0, 0], [1, 1], [0, 2]])


def outputs(code):
    return [attend(x + code, x + code, x + code) for x in (X, X[ORDER])]


def drawn(one, two):
    panel = ("A panel", one, two)
    return swapped_words(WORDS, ORDER, [panel], glosses=GLOSSES)


def test_attention_without_positions_makes_the_same_of_every_word():
    figure = drawn(*outputs(torch.zeros(3, 2)))
    assert figure.text == (
        "Two orders. A panel: 猫 the same, 追 the same, 狗 the same."
    )
    html = shown(figure)
    assert html.count(">=<") == 3
    assert "≠" not in html
    assert "another" not in html


def test_a_word_is_compared_with_itself_and_not_with_its_place():
    one, two = outputs(torch.zeros(3, 2))
    assert same(one.tolist(), two.tolist(), ORDER) == [True, True, True]
    two[0, 1] += 0.01  # The first place of the second sentence: 狗.
    assert same(one.tolist(), two.tolist(), ORDER) == [True, True, False]


def test_what_differs_is_marked_by_a_sign_and_by_a_dashed_line():
    figure = drawn(*outputs(torch.tensor([[0.0, 1], [0.5, 0.9], [0.9, 0.5]])))
    assert figure.text.count("another") == 3
    html = shown(figure)
    assert html.count(">≠<") == html.count('line class="apart"') == 3
    assert 'line class="alike"' not in html


def test_the_numbers_are_those_that_came_in():
    one, two = torch.randn(2, 3, 2)
    html = shown(drawn(one, two)).replace("\N{MINUS SIGN}", "-")
    found = re.findall(r'class="number" [^>]*>([-\d.]+)<', html)
    by_place = torch.stack([one, two], 1).flatten()
    torch.testing.assert_close(
        torch.tensor([float(n) for n in found]), by_place, atol=0.0051, rtol=0
    )


@pytest.mark.bad_input
def test_words_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"words: expected three.*got 2"):
        swapped_words(["a", "b"], [1, 0], [], glosses="xy")
    with pytest.raises(ValueError, match=r"first of 'A panel'.*\(3, 2\)"):
        drawn(torch.zeros(2, 2), torch.zeros(3, 2))
