"""Merges, learned and replayed: what a step shows is what the package does."""

import re

import pytest
from figures.registry import MERGE_WORDS, figure_of, parts_at

from companion.figures import merge_steps
from companion.tokens import bpe_encode, learn_merges

LEARN, ENCODE = 0, 1
MERGES = learn_merges(MERGE_WORDS, 4)


def boxes(html):
    """The pieces of each row, as they are drawn."""
    rows = re.findall(r"<tr[^>]*>.*?</tr>", html)
    return [re.findall(r'class="piece[^"]*">(.*?)</span>', row) for row in rows]


@pytest.mark.parametrize("step", range(5))
def test_the_words_are_cut_as_the_merges_so_far_cut_them(step):
    parts = parts_at(figure_of("merge_steps"), LEARN, step)
    wanted = [bpe_encode(word, MERGES[:step]) for word in MERGE_WORDS]
    assert boxes(parts["left"][0]) == wanted


def test_the_first_pair_of_the_list_is_the_next_merge():
    for step, (left, right) in enumerate(MERGES):
        parts = parts_at(figure_of("merge_steps"), LEARN, step)
        pairs = re.findall(r"<tr.*?scope=row>(.*?)</th>", parts["right"][0])
        assert pairs[0] == f"{left}·{right}"


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (0, "Nothing is joined yet: 51 symbols in 15 words."),
        (1, "Merge 1 joins a·t: 36 tokens are left."),
        (4, "Merge 4 joins cat·s: 17 tokens are left."),
    ],
)
def test_the_number_of_tokens_is_that_of_all_words(step, says):
    said = parts_at(figure_of("merge_steps"), LEARN, step)["says"][0]
    assert said.startswith(says)
    total = sum(
        n * len(bpe_encode(word, MERGES[:step]))
        for word, n in MERGE_WORDS.items()
    )
    assert f" {total} " in said


def test_encoding_replays_the_merges_and_ends_with_the_tokens():
    figure = figure_of("merge_steps")
    says = [parts_at(figure, ENCODE, step)["says"][0] for step in range(5)]
    assert says[2] == "Merge 2, c·at, finds nothing to join."
    assert says[4].endswith("The tokens are c · hat · s.")
    left = parts_at(figure, ENCODE, 4)["left"][0]
    assert boxes(left) == [bpe_encode("chats", MERGES)]


@pytest.mark.bad_input
def test_more_than_a_page_can_show_is_refused():
    with pytest.raises(ValueError, match="got 7, 1 and 'a'"):
        merge_steps(dict.fromkeys("abcdefg", 1), 1, "a")
    with pytest.raises(ValueError, match="got 1, 9 and 'a'"):
        merge_steps({"ab": 1}, 9, "a")
    with pytest.raises(ValueError, match="got 1, 1 and ''"):
        merge_steps({"ab": 1}, 1, "")
