"""Whatever the text: rules of chapter 09."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion import tokens
from companion.tokens.plain import joined, ranks_of
from companion.tokens.words import as_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
WORDS = st.text("abc", min_size=1, max_size=11)
FREQUENCIES = st.dictionaries(WORDS, st.integers(1, 7), max_size=7)
COUNTS = st.integers(0, 13)
END = "<|end|>"
MARKED = st.lists(
    TEXTS | st.sampled_from([END, END[:3], "|>", "  "]), max_size=5
)
TRAINED = tokens.Tokenizer.train(
    ["I love little cats, 我爱小猫。 " * 3], 290, [END]
)


@given(TEXTS)
def test_every_text_without_lone_surrogates_comes_back(text):
    assert TRAINED.decode(TRAINED.encode(text)) == text
    assert as_text(tokens.as_symbols(text)) == text
    assert "".join(tokens.words(text)) == text
    assert sum(map(len, tokens.word_counts([text]))) <= len(text.encode())


@given(TEXTS, st.characters(categories=["Cs"]), TEXTS)
def test_a_lone_surrogate_is_refused_wherever_it_stands(before, lone, after):
    with pytest.raises(ValueError, match="half a pair"):
        TRAINED.encode(before + lone + after)


@given(MARKED, st.booleans())
def test_however_a_text_is_cut_into_chunks_its_ids_stay_the_same(
    parts, special
):
    whole = TRAINED.encode("".join(parts), special=special)
    assert list(TRAINED.encode_stream(parts, special=special)) == whole
    assert TRAINED.decode(whole) == "".join(parts)


@given(MARKED)
def test_special_tokens_are_parts_of_their_own(parts):
    text = "".join(parts)
    found = tokens.split_special(text, [END])
    assert "".join(found) == text
    assert all(found)
    assert found.count(END) == text.count(END)
    assert not any(END in part for part in found if part != END)


@given(FREQUENCIES, COUNTS)
def test_the_fast_learner_learns_what_the_plain_one_learns(frequencies, merges):
    plain = tokens.learn_merges(frequencies, merges)
    assert tokens.fast_merges(frequencies, merges) == plain


@given(FREQUENCIES, COUNTS, st.text("abcd", max_size=17))
def test_three_ways_to_apply_learned_merges_agree(frequencies, count, word):
    merges = tokens.learn_merges(frequencies, count)
    pieces = tokens.bpe_encode(word, merges)
    assert tokens.fast_encode(word, ranks_of(merges)) == pieces
    replayed = list(word)
    for pair in merges:
        replayed = joined(replayed, pair)
    assert replayed == pieces
    assert "".join(pieces) == word


@given(FREQUENCIES, COUNTS)
def test_one_merge_more_never_makes_more_tokens(frequencies, count):
    merges = tokens.learn_merges(frequencies, count)
    for word in frequencies:
        sizes = [
            len(tokens.bpe_encode(word, merges[:n]))
            for n in range(len(merges) + 1)
        ]
        assert sizes == sorted(sizes, reverse=True)


@given(st.lists(st.integers(0, 256), max_size=9))
def test_whatever_ids_a_model_writes_can_be_decoded(ids):
    vocabulary = [*(bytes([i]) for i in range(256)), "猫".encode()]
    text = tokens.bpe_decode(ids, vocabulary)
    data = b"".join(vocabulary[i] for i in ids)
    assert text == data.decode(errors="replace")


@given(FREQUENCIES, COUNTS)
def test_wordpiece_splits_what_it_learned_from(frequencies, merges):
    pieces, learned = tokens.learn_wordpiece(frequencies, merges)
    assert len(learned) <= merges
    for word in frequencies:
        split = tokens.wordpiece_encode(word, pieces)
        assert "".join(p.removeprefix("##") for p in split) == word


@given(FREQUENCIES.filter(bool), st.integers(3, 13))
def test_unigram_pieces_are_a_distribution_that_makes_every_word(words, size):
    log_p = tokens.learn_unigram(words, size)
    assert math.isclose(sum(map(math.exp, log_p.values())), 1, rel_tol=1e-9)
    likelihood = tokens.log_likelihood(words, log_p)
    counts = tokens.expected_counts(words, log_p)
    characters = sum(len(p) * c for p, c in counts.items())
    assert math.isclose(characters, sum(len(w) * n for w, n in words.items()))
    best = 0.0
    for word, often in words.items():
        pieces = tokens.unigram_encode(word, log_p)
        assert "".join(pieces) == word
        best += often * sum(log_p[piece] for piece in pieces)
    assert best <= likelihood + 1e-9


@given(st.floats(0, 9), st.integers(1, 99), st.integers(1, 99))
def test_bits_a_byte_grow_with_the_loss_and_with_the_tokens(loss, count, size):
    bits = tokens.bits_per_byte(loss, count, size)
    assert math.isclose(bits * size * math.log(2), loss * count, abs_tol=1e-12)
