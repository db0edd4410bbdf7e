"""Byte-pair encoding: learned, applied and undone, plainly and fast."""

import itertools
import time

import pytest
import tokenizers
from tokenizers import models, trainers

from companion import tokens
from companion.data import corpora
from companion.tokens.plain import joined, ranks_of

FEW = {"cat": 6, "cats": 4, "hat": 3, "hats": 2, "little": 3}
PLAY = corpora.romeo_and_juliet().train
COUNTS = tokens.word_counts([PLAY])


def counted(frequencies, merges):
    """How often each pair stands in the words after some merges."""
    found = {}
    for word, often in frequencies.items():
        pieces = list(word)
        for pair in merges:
            pieces = joined(pieces, pair)
        for pair in itertools.pairwise(pieces):
            found[pair] = found.get(pair, 0) + often
    return found


def test_the_example_on_paper_learns_at_cat_hat_and_cats():
    merges = tokens.learn_merges(FEW, 4)
    assert merges == [("a", "t"), ("c", "at"), ("h", "at"), ("cat", "s")]
    assert counted(FEW, [])[("a", "t")] == 15
    assert counted(FEW, merges[:1])[("c", "at")] == 10
    assert counted(FEW, merges[:2])[("h", "at")] == 5
    assert counted(FEW, merges[:3])[("cat", "s")] == 4
    # ts began with 6, more than h with a, and lost its t to at.
    assert counted(FEW, [])[("t", "s")] == 6 > counted(FEW, [])[("h", "a")]
    assert ("t", "s") not in counted(FEW, merges[:1])


@pytest.mark.parametrize(
    ("word", "pieces"),
    [("chat", "c hat"), ("hats", "hat s"), ("cats", "cats"), ("tin", "t i n")],
)
def test_new_words_are_split_by_replaying_the_merges(word, pieces):
    merges = tokens.learn_merges(FEW, 4)
    assert tokens.bpe_encode(word, merges) == pieces.split()


def test_encoding_follows_the_order_of_the_merges_and_not_their_length():
    merges = [("t", "s"), ("c", "a"), ("ca", "t")]
    assert tokens.bpe_encode("cats", merges) == ["ca", "ts"]
    assert tokens.bpe_encode("cat", merges) == ["cat"]


def test_a_tie_goes_to_the_pair_that_is_first_in_the_alphabet():
    for words in (["zy", "ab"], ["ab", "zy"]):
        assert tokens.learn_merges(dict.fromkeys(words, 5), 1) == [("a", "b")]


def test_overlapping_pairs_are_joined_from_the_left():
    assert tokens.bpe_encode("aaaaa", [("a", "a")]) == ["aa", "aa", "a"]


def test_learning_stops_where_every_word_is_one_piece():
    assert len(tokens.learn_merges({"abc": 1, "d": 2}, 50)) == 2
    assert tokens.learn_merges({}, 3) == tokens.learn_merges({"a": 1}, 3) == []


def test_the_fast_learner_learns_the_merges_of_the_plain_one_from_a_play():
    assert tokens.fast_merges(COUNTS, 40) == tokens.learn_merges(COUNTS, 40)


def test_the_fast_encoder_splits_a_play_as_the_plain_one_does():
    merges = tokens.fast_merges(COUNTS, 700)
    ranks = ranks_of(merges)
    for word in list(COUNTS)[::7]:
        assert tokens.fast_encode(word, ranks) == tokens.bpe_encode(
            word, merges
        )


def test_the_fast_learner_does_less_than_a_quarter_of_the_work():
    few = dict(list(COUNTS.items())[:2000])
    spent = {}
    for learn in (tokens.learn_merges, tokens.fast_merges):
        begin = time.process_time()
        learn(few, 150)
        spent[learn.__name__] = time.process_time() - begin
    assert 4 * spent["fast_merges"] < spent["learn_merges"], spent


def theirs(frequencies, merges):
    """The merges that the library learns from words whose pairs have no tie."""
    model = tokenizers.Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=len({s for word in frequencies for s in word}) + merges,
        show_progress=False,
    )
    texts = (w for w, often in frequencies.items() for _ in range(often))
    model.train_from_iterator(texts, trainer)
    return model


def test_tokenizers_learns_the_pieces_of_the_example():
    vocabulary = theirs(FEW, 4).get_vocab()
    assert vocabulary.keys() == {*"acehilst", "at", "cat", "hat", "cats"}


def test_the_same_merges_give_the_tokens_of_tokenizers():
    merges = tokens.fast_merges(COUNTS, 700)
    pieces = dict.fromkeys([*map(chr, range(256)), *map("".join, merges)])
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    model = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    for word in list(COUNTS)[::5]:
        assert model.encode(word).tokens == tokens.bpe_encode(word, merges)


@pytest.mark.parametrize("learn", [tokens.learn_merges, tokens.fast_merges])
@pytest.mark.bad_input
def test_empty_words_and_negative_numbers_are_refused(learn):
    with pytest.raises(ValueError, match="merges: expected at least 0, got -1"):
        learn({"a": 1}, -1)
    with pytest.raises(TypeError, match=r"merges: expected an int, got 2\.5"):
        learn({"a": 1}, 2.5)
    with pytest.raises(ValueError, match=r"frequencies: .* got '': 3"):
        learn({"": 3}, 1)
    with pytest.raises(ValueError, match=r"frequencies: .* got 'a': -2"):
        learn({"a": -2}, 1)


def test_decoding_joins_the_bytes_before_it_reads_them():
    vocabulary = [b"\xe7\x8c", b"\xab", b"cat "]
    assert tokens.bpe_decode([2, 0, 1], vocabulary) == "cat 猫"
    assert tokens.bpe_decode([0, 2], vocabulary) == "\ufffdcat "
    assert tokens.bpe_decode([], vocabulary) == ""
    with pytest.raises(ValueError, match="ids: expected 0 to 2, got 3"):
        tokens.bpe_decode([3], vocabulary)
    with pytest.raises(ValueError, match="ids: expected 0 to 2, got -1"):
        tokens.bpe_decode([-1], vocabulary)
