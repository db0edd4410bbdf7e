"""The figure whose words move, as Python makes it."""

import json
import re
from fractions import Fraction
from functools import reduce
from itertools import permutations
from operator import add
from pathlib import Path

import pytest
import torch
from test_figures import Tags
from torch import nn

from companion.figures import word_order
from companion.figures.gallery.word_order import (
    ENGLISH,
    START,
    TOKENS,
    VECTORS,
    VOCABULARY,
    combined,
    sentence,
)
from companion.rnn import ConcatFNN, MeanFNN, bag_of_words

CHAPTER = Path(__file__).parents[1] / "book" / "01_rnn.ipynb"
ORDERS = list(permutations(START))
MINUS = "\N{MINUS SIGN}"


def shown():
    """The figure without its style and its script."""
    return word_order().html.split("</style>")[1].split("<script")[0]


def chips(html):
    """The numbers that stand in tiles or in the concatenation."""
    found = re.findall(r"<span class=\"\w+\" style[^>]*>([^<]+)</span>", html)
    return [float(text.replace(MINUS, "-")) for text in found]


def cells(html, kind):
    table = re.search(rf'<table class="cells {kind}">.*?</table>', html)[0]
    found = re.findall(r"<td class[^>]*>([^<]+)</td>", table)
    return [float(text.replace(MINUS, "-")) for text in found]


def read_by(kind, **length):
    """What one of the chapter's networks reads, with these word vectors."""
    net = kind(len(VOCABULARY), 3, 2, **length).double()
    with torch.no_grad():
        for token, tenths in VECTORS.items():
            at = VOCABULARY.encode([token])
            net.embedding.weight[at] = torch.tensor(tenths).double() / 10
    net.fnn = nn.Identity()
    return lambda words: net(torch.tensor([VOCABULARY.encode(words)]))[0]


def test_the_figure_is_whole_and_asks_nothing_of_another_place():
    html = word_order().html
    assert Tags(html).open == []
    assert not re.search(r"https?://|@import|//cdn|\bsrc=|\bfetch\(", html)
    assert not re.search(r"url\((?!#)", html)
    assert len(html.encode()) < 24_000


def test_the_same_figure_is_the_same_bytes():
    assert word_order().html == word_order().html


def test_the_mean_and_the_concatenation_are_what_the_networks_read():
    mean, concat = read_by(MeanFNN), read_by(ConcatFNN, length=4)
    for words in ORDERS:
        ours = combined(words)
        for numbers, net in ((ours.mean, mean), (ours.concat, concat)):
            numbers = torch.tensor(numbers, dtype=torch.float64)
            torch.testing.assert_close(numbers, net(words))


def test_the_bag_is_that_of_the_package_without_what_is_no_word():
    for words in ORDERS:
        bag = bag_of_words(torch.tensor(VOCABULARY.encode(words)), 13)
        assert combined(words).bag == bag[3:].tolist()
        assert bag[:3].sum() == 0
        assert dict(zip(TOKENS, combined(words).bag, strict=True)) == {
            token: token in START for token in "小猫我爱你看大狗他书"
        }


def test_the_mean_is_the_one_a_reader_finds_by_hand():
    # (0.9 + 0.1 - 0.4 + 0.6) / 4 and so on, with fractions.
    by_hand = [
        float(Fraction(sum(column), 4 * 10))
        for column in zip(*VECTORS.values(), strict=True)
    ]
    assert combined(START).mean == by_hand == [0.3, 0.4, -0.2]


def test_no_order_moves_the_mean_by_as_much_as_its_last_bit():
    assert {tuple(combined(words).mean) for words in ORDERS} == {
        tuple(combined(START).mean)
    }
    # It does where tenths are added up as they come, so they are not. (From
    # Python 3.12 on, sum does so no more.)
    careless = {
        tuple(
            reduce(add, (tenths / 10 for tenths in column)) / 4
            for column in zip(*(VECTORS[w] for w in words), strict=True)
        )
        for words in ORDERS
    }
    assert len(careless) > 1


def test_every_order_has_a_concatenation_of_its_own():
    assert len({tuple(combined(words).concat) for words in ORDERS}) == 24
    for column in zip(*VECTORS.values(), strict=True):
        assert len(set(column)) == 4


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("我爱小猫", 0),
        ("爱我小猫", 6),  # Two neighbours change places.
        ("我猫爱小", 9),  # One word jumps over two.
        ("猫小爱我", 12),
    ],
)
def test_the_sentence_counts_what_changed(words, changed):
    assert sentence(tuple(words)) == (
        f"{' '.join(words)}: the counts and the mean, (0.3, 0.4, −0.2), are as "
        f"at the start; {changed} of 12 numbers of the concatenation changed."
    )


def test_without_scripts_the_start_stands_there_in_numbers():
    html = shown()
    tiles, long = re.findall(r'<ol class="\w+">(.*?)</ol>', html)
    side_by_side = [tenths / 10 for w in START for tenths in VECTORS[w]]
    assert chips(tiles) == chips(long) == side_by_side
    assert cells(html, "bag") == combined(START).bag
    assert cells(html, "mean") == combined(START).mean
    assert re.findall(r'<b lang="zh">(.)</b><i>(\w+)</i>', tiles) == list(
        ENGLISH.items()
    )
    assert long.count("<small>=</small>") == 12
    said = re.sub(r"<[^>]+>", "", re.search(r'says".*?>(.*?)</p>', html)[1])
    assert said == sentence(START)
    assert word_order().text == f"Word order. {said}"


def test_the_caption_does_the_first_mean_and_counts_the_orders():
    caption = shown().split("<figcaption>")[1]
    assert "(0.9 + 0.1 − 0.4 + 0.6) / 4 = 0.3 in every order" in caption
    assert (
        "The 24 orders of these words have 1 bag of words, 1 mean and 24 "
        "concatenations" in caption
    )


def test_the_words_and_their_ids_are_those_of_the_chapter():
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    made = next(c for c in cells if c["id"] == "rnn-vocabulary")
    assert f'Vocabulary("{"".join(TOKENS)}")' in "".join(made["source"])
    assert "".join(START) in "".join(made["source"])
