"""Text to ids and back, by character, by word and by sub-word."""

import os

import pytest
import sentencepiece
import torch

from companion.data import atomic, phrasebook
from companion.data.codecs import Characters, Subwords, Words, load
from companion.data.corpora import tatoeba

TEXTS = [
    text
    for pair in phrasebook.pairs()[::7]
    for text in ("".join(pair.zh), " ".join(pair.en))
]
# Nothing here is in TEXTS but letters.
ODD = [
    "",
    " ",
    " two  spaces ",
    "\t\n\r\n",
    "full-width：（ＡＢＣ）　。",
    "🐱👩‍💻",
    "龘",
    "<s> </s> <pad> <unk> <0x41>",
    "\x00\u200b\u2028",
    "e\u0301 is not \u00e9",
]


@pytest.fixture(scope="module")
def subwords():
    return Subwords.train(TEXTS, 400)


@pytest.fixture(params=["characters", "words", "subwords"])
def codec(request, subwords):
    if request.param == "subwords":
        return subwords
    kind = Characters if request.param == "characters" else Words
    return kind.train(TEXTS)


def test_every_text_of_training_survives_the_round_trip(codec):
    for text in TEXTS:
        ids = codec.encode(text)
        assert min(ids) > codec.eos
        assert max(ids) < len(codec)
        assert codec.decode(ids) == text


def test_the_special_ids_are_those_of_every_batch(codec):
    assert (codec.pad, codec.bos, codec.eos) == (0, 1, 2)


def test_decoding_stops_at_the_end_and_drops_what_is_no_word(codec):
    ids = codec.encode("I like the cat")
    row = torch.tensor([0, codec.bos, *ids, codec.eos, *ids, 0])
    assert codec.decode(row) == "I like the cat"
    assert codec.decode([codec.bos]) == ""


def test_tokens_and_ids_are_as_many(codec):
    assert len(codec.tokens("I like the cat")) == len(
        codec.encode("I like the cat")
    )


def test_a_saved_codec_gives_the_same_ids_and_holds_no_pickle(codec, tmp_path):
    path = tmp_path / "any.name"
    codec.save(path)
    again = load(path)
    assert type(again) is type(codec)
    assert len(again) == len(codec)
    assert [again.encode(t) for t in TEXTS] == [codec.encode(t) for t in TEXTS]
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    # A pickle begins with \x80 and ends with a full stop.
    assert not path.read_bytes().startswith(b"\x80")
    assert {p.name for p in tmp_path.iterdir()} == {"any.name", "again"}


def test_characters_and_words_are_numbered_as_they_first_occur():
    characters = Characters.train(["我爱猫", "爱你"])
    assert characters.encode("你我爱") == [6, 3, 4]
    words = Words.train(["I love cats", "cats love you"])
    assert words.encode("you love cats") == [6, 4, 5]
    assert words.tokens("you love cats") == ["you", "love", "cats"]
    assert Words.train(["a b"]).encode("") == []


def test_a_line_break_is_a_character():
    text = "To be,\nor not\n"
    codec = Characters.train([text])
    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize("text", ODD)
def test_sub_words_give_back_any_text_exactly(subwords, text):
    ids = subwords.encode(text)
    assert subwords.decode(ids) == text
    assert 3 not in ids  # Unknown.


def test_what_was_never_seen_is_spelled_in_bytes(subwords):
    assert subwords.tokens("龘")[-3:] == ["<0xE9>", "<0xBE>", "<0x98>"]


def test_sub_words_are_the_library_s_own(subwords, tmp_path):
    subwords.save(tmp_path / "m")
    theirs = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "m")
    )
    for text in [*TEXTS, *ODD]:
        assert subwords.encode(text) == theirs.encode(text)
    assert subwords.tokens("I like it") == theirs.encode(
        "I like it", out_type=str
    )


def test_the_same_texts_give_the_same_sub_words(subwords, tmp_path):
    subwords.save(tmp_path / "one")
    Subwords.train(iter(TEXTS), 400).save(tmp_path / "two")
    one, two = ((tmp_path / n).read_bytes() for n in ("one", "two"))
    assert one == two


def test_a_vocabulary_has_the_size_asked_for(subwords):
    assert len(subwords) == 400


def test_words_that_are_often_seen_are_one_sub_word(subwords):
    assert subwords.tokens("the last") == ["▁the", "▁last"]
    assert subwords.tokens("今天") == ["▁", "今天"]


def test_sub_words_read_all_of_tatoeba_s_test_part():
    if not os.environ.get("COMPANION_DATA"):
        pytest.skip("COMPANION_DATA names no folder with the real corpora")
    parts = tatoeba()
    train = [text for pair in parts.train for text in pair]
    test = [text for pair in parts.test for text in pair]
    codec = Subwords.train(train, 8000)
    ids = [codec.encode(text) for text in test]
    assert [codec.decode(row) for row in ids] == test
    assert not any(3 in row for row in ids)
    # Sub-words are worth it: fewer ids than characters, few of them bytes.
    count, characters = sum(map(len, ids)), sum(map(len, test))
    assert count < 0.5 * characters
    spelled = sum(i < 260 for row in ids for i in row)
    assert spelled < 0.01 * count
    seen = {character for text in train for character in text}
    assert not seen.issuperset("".join(test))


# What is refused, and what is left of it.


@pytest.mark.bad_input
def test_what_was_never_seen_is_named():
    with pytest.raises(ValueError, match="unknown token '猫'; none is near"):
        Characters.train(["我爱狗"]).encode("我爱猫")
    with pytest.raises(ValueError, match=r"'dog'; the nearest .* 'dogs'"):
        Words.train(["I love dogs"]).encode("I love dog")


@pytest.mark.bad_input
@pytest.mark.parametrize("texts", [[], [""]])
def test_an_empty_text_teaches_nothing(texts):
    for train in (
        Characters.train,
        Words.train,
        lambda texts: Subwords.train(texts, 400),
    ):
        with pytest.raises(ValueError, match="texts: expected at least one"):
            train(texts)


@pytest.mark.bad_input
def test_a_token_that_no_text_has_is_refused():
    with pytest.raises(ValueError, match="expected characters, got 'ab'"):
        Characters(["a", "ab"])
    with pytest.raises(ValueError, match="expected words, got 'a b'"):
        Words(["a", "a b"])
    with pytest.raises(ValueError, match="'a' is there twice"):
        Words(["a", "a"])


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("size", "message"),
    [
        (1, "sentencepiece refuses 1: "),
        (100, r"expected at least \d{3} for these texts, got 100$"),
        (9999, r"expected at most \d{3,4} for these texts, got 9999$"),
    ],
)
def test_a_vocabulary_that_cannot_have_that_size_is_refused(size, message):
    with pytest.raises(ValueError, match=f"vocab_size: .*({message})"):
        Subwords.train(TEXTS, size)


@pytest.mark.bad_input
def test_the_sign_that_stands_for_a_space_is_refused(subwords):
    with pytest.raises(ValueError, match=r"U\+2581\), got 'a▁b'"):
        subwords.encode("a▁b")
    with pytest.raises(ValueError, match=r"U\+2581\), got 'a▁b'"):
        Subwords.train(["a▁b"], 400)


@pytest.mark.bad_input
@pytest.mark.parametrize("ids", [[400], [-1]])
def test_an_id_without_a_sub_word_is_refused(subwords, ids):
    with pytest.raises(ValueError, match=rf"0 to 399, got {ids[0]}"):
        subwords.decode(ids)


@pytest.mark.bad_input
def test_a_codec_cut_short_anywhere_is_refused_by_name(codec, tmp_path):
    path = tmp_path / "codec"
    codec.save(path)
    data = path.read_bytes()
    for length in range(0, len(data), max(1, len(data) // 97)):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match="/codec: expected a codec"):
            load(path)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "data", [b"{}", b"[]", b'{"kind": "none", "tokens": []}', b"\xff\xff"]
)
def test_another_file_is_no_codec(tmp_path, data):
    path = tmp_path / "codec"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="/codec: expected a codec"):
        load(path)


@pytest.mark.bad_input
def test_a_model_with_other_special_ids_is_refused(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_prefix=str(tmp_path / "m"),
        vocab_size=400,
        byte_fallback=True,
        model_type="bpe",
        minloglevel=2,
    )
    with pytest.raises(ValueError, match=r"\[0, 1, 2, 3\] .* got \[-1, 1, 2"):
        Subwords((tmp_path / "m.model").read_bytes())


@pytest.mark.bad_input
def test_a_full_disk_leaves_the_old_codec_and_nothing_else(
    tmp_path, monkeypatch
):
    path = tmp_path / "codec"
    Words.train(["one two"]).save(path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left .*/codec'"):
        Words.train(["three"]).save(path)
    assert load(path).decode([3, 4]) == "one two"
    assert [p.name for p in tmp_path.iterdir()] == ["codec"]
