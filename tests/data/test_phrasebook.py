"""The corpus: two languages, their orders, and an honest test part."""

import re

import pytest
import torch

from companion.data.phrasebook import (
    FAMILIES,
    Pair,
    batch,
    pairs,
    phrasebook_batches,
    split,
)
from companion.data.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def corpus():
    return {"".join(zh): " ".join(en) for zh, en in pairs()}


@pytest.fixture(scope="module")
def parts():
    return split()


@pytest.fixture
def vocabulary():
    return Vocabulary("我爱小猫")


def test_the_notes_sentence_is_in_the_test_part(parts):
    _, test = parts
    cats = Pair(tuple("我爱小猫"), ("I", "love", "little", "cats"))
    assert cats in test


def test_the_corpus_is_several_thousand_and_the_same_each_time(corpus):
    assert len(corpus) > 5000
    assert pairs() == pairs()


def test_no_chinese_sentence_has_two_translations(corpus):
    assert len(corpus) == len(pairs())


@pytest.mark.parametrize(
    ("zh", "en"),
    [
        (
            "我今天在公园看到一只小猫",
            "I saw a little cat in the park today",
        ),
        ("老师喜欢小猫吗", "does the teacher like little cats"),
        (
            "他上周没在商店买书",
            "he did not buy any books at the shop last week",
        ),
        ("花园里有两只小鸟", "there are two little birds in the garden"),
        ("这不是我的猫", "this is not my cat"),
        ("她的书在桌上吗", "is her book on the table"),
        ("他有一本旧书", "he has an old book"),
    ],
)
def test_a_sentence_of_each_family_reads_as_a_translator_would(zh, en):
    texts = {text for family in FAMILIES for text in family()}
    assert en in [" ".join(e.split()) for z, e in texts if z == zh]


def test_chinese_is_characters_and_english_lower_case_words_and_i():
    for zh, en in pairs():
        assert all(len(c) == 1 and "\u4e00" <= c <= "\u9fff" for c in zh)
        assert all(w == "I" or w.islower() for w in en)


@pytest.mark.parametrize(
    ("character", "word"), [("小", "little"), ("猫", "cat"), ("黑", "black")]
)
def test_a_word_stands_where_its_character_stands(corpus, character, word):
    for zh, en in corpus.items():
        assert (character in zh) == (word in en)


def test_english_agrees_with_itself(corpus):
    wrong = re.compile(
        r"\ba [aeiou]|\ban [^aeiou]"
        r"|\b(two|three|any|no) (\w+ )?(cat|book|apple)\b"
        r"|^(he|she|the teacher) (have|like|love|do)\b"
        r"|^(I|you|we|they) (has|likes|loves|does)\b"
        r"|\b(do|does|did|not) (\w+ )?(has|likes|saw|bought|ate|drew)\b"
    )
    assert [en for en in corpus.values() if wrong.search(en)] == []


def test_measure_words_go_with_their_nouns(corpus):
    for zh in corpus:
        assert ("本" in zh) <= ("书" in zh)
        assert ("匹" in zh) <= ("马" in zh)
        assert ("只" in zh) <= any(animal in zh for animal in "猫狗鸟")


def test_no_test_sentence_occurs_in_training_in_either_language(parts):
    train, test = parts
    for side in ("zh", "en"):
        seen = {getattr(pair, side) for pair in train}
        assert seen.isdisjoint(getattr(pair, side) for pair in test)


def test_every_word_of_a_test_sentence_occurs_in_training(parts):
    train, test = parts
    known = {word for zh, en in train for word in (*zh, *en)}
    assert known.issuperset(word for zh, en in test for word in (*zh, *en))


def test_the_parts_are_the_corpus_and_a_tenth_is_for_testing(parts):
    train, test = parts
    assert sorted(train + test) == sorted(pairs())
    assert 0.08 < len(test) / len(pairs()) < 0.12


def test_a_corpus_of_ones_own_keeps_unknown_words_out_of_the_test_part(parts):
    _, test = parts
    alone = next(pair for pair in test if len(pair.en) > 4)
    assert split([alone]) == ([], [])


def test_the_corpus_survives_the_round_trip():
    for side in ("zh", "en"):
        sentences = [getattr(pair, side) for pair in pairs()]
        vocabulary = Vocabulary.from_sentences(sentences)
        ids = batch(sentences, vocabulary)
        back = [tuple(vocabulary.decode(row)) for row in ids]
        assert back == sentences


def test_a_batch_runs_from_bos_to_eos_and_then_pads(vocabulary):
    ids = batch([tuple("我爱小猫"), tuple("小猫")], vocabulary)
    by_hand = [[1, 3, 4, 5, 6, 2], [1, 5, 6, 2, 0, 0]]
    assert ids.equal(torch.tensor(by_hand))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ([], ValueError, "sentences: expected at least one, got none"),
        ([("我",), ()], ValueError, "the one at 1 has no tokens"),
        ("我爱", TypeError, "got the string '我' at 0"),
        ([("我",), "小猫"], TypeError, "got the string '小猫' at 1"),
        ([("狗",)], ValueError, "unknown token '狗'"),
    ],
)
def test_what_is_no_batch_of_sentences_is_refused(
    vocabulary, sentences, error, message
):
    with pytest.raises(error, match=message):
        batch(sentences, vocabulary)


def test_batches_are_pairs_of_the_corpus_the_same_for_each_seed(parts):
    train, _ = parts
    zh = Vocabulary.from_sentences(pair.zh for pair in train)
    en = Vocabulary.from_sentences(pair.en for pair in train)
    made = [
        phrasebook_batches(train, zh, en, size=5, steps=3, seed=seed)
        for seed in (0, 0, 1)
    ]
    known = set(train)
    for src, tgt in made[0]:
        rows = zip(src, tgt, strict=True)
        found = [
            Pair(tuple(zh.decode(s)), tuple(en.decode(t))) for s, t in rows
        ]
        assert len(found) == 5
        assert known.issuperset(found)
    first, again, other = (batches[0][0] for batches in made)
    assert first.equal(again)
    assert first.shape != other.shape or not first.equal(other)


@pytest.mark.bad_input
def test_no_batch_is_drawn_from_an_empty_corpus(vocabulary):
    with pytest.raises(ValueError, match="corpus: expected at least one pair"):
        phrasebook_batches([], vocabulary, vocabulary, size=2, steps=1, seed=0)
