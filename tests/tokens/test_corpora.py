"""What the lab says of real corpora, computed where they are at hand."""

import os

import pytest

from companion import tokens
from companion.data import corpora

pytestmark = pytest.mark.once


@pytest.mark.skipif(
    not os.environ.get("COMPANION_DATA"),
    reason="COMPANION_DATA names no folder with the real corpora",
)
def test_tokens_a_character_fall_with_the_vocabulary_in_both_languages():
    parts = corpora.tatoeba(script="simplified")
    train = [text for pair in parts.train for text in pair]
    chinese, english = zip(*parts.test, strict=True)
    merges = tokens.fast_merges(tokens.word_counts(train), 4000)
    table = {}
    for number in (0, 1000, 4000):
        tokenizer = tokens.Tokenizer(merges[:number])
        found = [
            (sum(len(tokenizer.encode(text)) for text in texts), texts)
            for texts in (english, chinese)
        ]
        a_word = found[0][0] / sum(len(text.split()) for text in english)
        rates = [count / sum(map(len, texts)) for count, texts in found]
        table[number] = [f"{value:.2f}" for value in (*rates, a_word)]
    assert table == {
        0: ["1.00", "2.99", "5.00"],
        1000: ["0.40", "1.14", "2.00"],
        4000: ["0.31", "0.80", "1.54"],
    }
