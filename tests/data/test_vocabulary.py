"""Tokens to ids and back, and what happens to tokens nobody knows."""

import pytest
import torch

from companion.data.vocabulary import Vocabulary

SENTENCES = [("I", "love", "little", "cats"), ("little", "cats", "love", "me")]


@pytest.fixture
def vocabulary():
    return Vocabulary.from_sentences(SENTENCES)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_survives_the_round_trip(vocabulary, sentence):
    assert tuple(vocabulary.decode(vocabulary.encode(sentence))) == sentence


def test_ids_come_in_order_of_first_occurrence_after_the_three_specials(
    vocabulary,
):
    assert (vocabulary.pad, vocabulary.bos, vocabulary.eos) == (0, 1, 2)
    assert vocabulary.encode(SENTENCES[0]) == [3, 4, 5, 6]
    assert vocabulary.encode(SENTENCES[1]) == [5, 6, 4, 7]
    assert len(vocabulary) == 8


def test_a_string_is_read_one_character_at_a_time():
    vocabulary = Vocabulary("我爱小猫")
    assert vocabulary.encode("小猫") == [5, 6]


def test_decoding_stops_at_the_end_and_drops_what_is_no_word(vocabulary):
    assert vocabulary.decode([1, 0, 3, 0, 4, 2, 5, 6]) == ["I", "love"]


def test_decoding_reads_a_tensor(vocabulary):
    assert vocabulary.decode(torch.tensor([1, 3, 4, 2])) == ["I", "love"]


@pytest.mark.bad_input
def test_an_unknown_token_is_named_with_the_nearest_known_one(vocabulary):
    with pytest.raises(ValueError, match=r"'cat'; the nearest .* is 'cats'"):
        vocabulary.encode(["little", "cat"])
    with pytest.raises(ValueError, match="'狗'; none is near"):
        vocabulary.encode(["狗"])


@pytest.mark.bad_input
@pytest.mark.parametrize("token", ["love", "<pad>"])
def test_no_token_has_two_ids(token):
    with pytest.raises(ValueError, match=f"'{token}' is there twice"):
        Vocabulary(["love", "me", token])


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([3, 8], ValueError, "ids: expected 0 to 7, got 8"),
        ([-1], ValueError, "got -1"),
        ([3.0], TypeError, "ids: expected integers, got 3.0"),
        (torch.ones(2, 3).long(), TypeError, r"got tensor\(\[1, 1, 1\]\)"),
    ],
)
def test_ids_without_a_token_are_refused(vocabulary, ids, error, message):
    with pytest.raises(error, match=message):
        vocabulary.decode(ids)
