"""What the lab says of real corpora, computed where they are at hand."""

import json
import os

import pytest
from py_mini_racer import MiniRacer

from companion import tokens
from companion.data import corpora

pytestmark = pytest.mark.once

CUT = """
const dictionary = new Intl.Segmenter("zh", {granularity: "word"});
const words = text => [...dictionary.segment(text)].filter(w => w.isWordLike);
const count = texts => texts.reduce((sum, t) => sum + words(t).length, 0);
"""


def chinese_words(texts):
    """How many words ICU finds in its dictionary; V8 brings both along."""
    with MiniRacer() as v8:
        v8.eval(CUT)
        return v8.eval(f"count({json.dumps(texts)})")


def test_a_chinese_word_is_one_of_the_dictionary_and_no_punctuation():
    assert chinese_words(["我们明天去北京。", "猫"]) == 4 + 1


@pytest.mark.skipif(
    not os.environ.get("COMPANION_DATA"),
    reason="COMPANION_DATA names no folder with the real corpora",
)
def test_tokens_fall_with_the_vocabulary_in_both_languages():
    parts = corpora.tatoeba(script="simplified")
    train = [text for pair in parts.train for text in pair]
    chinese, english = zip(*parts.test, strict=True)
    merges = tokens.fast_merges(tokens.word_counts(train), 4000)
    words = sum(len(text.split()) for text in english), chinese_words(chinese)
    table = {}
    for number in (0, 1000, 4000):
        tokenizer = tokens.Tokenizer(merges[:number])
        found = [
            (sum(len(tokenizer.encode(text)) for text in texts), texts)
            for texts in (english, chinese)
        ]
        rates = [count / sum(map(len, texts)) for count, texts in found]
        rates += [
            count / many for (count, _), many in zip(found, words, strict=True)
        ]
        table[number] = [f"{value:.2f}" for value in rates]
    assert table == {
        0: ["1.00", "2.99", "5.00", "5.38"],
        1000: ["0.40", "1.14", "2.00", "2.05"],
        4000: ["0.31", "0.80", "1.54", "1.43"],
    }
