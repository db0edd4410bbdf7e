"""The byte-level tokenizer: words, special tokens, streams and round trips."""

import math

import pytest
import tokenizers
import torch
import torch.nn.functional as F
from tokenizers import decoders, models, pre_tokenizers

from companion import tokens
from companion.data import corpora, phrasebook
from companion.tokens.words import LONGEST, as_text

END = "<|end|>"
PLAY = corpora.romeo_and_juliet()
SENTENCES = [
    " ".join(pair.en) + " " + "".join(pair.zh) for pair in phrasebook.split()[0]
]
TOKENIZER = tokens.Tokenizer.train([PLAY.train, *SENTENCES], 700, [END])
TEXTS = (
    "",
    " ",
    "I love little cats. 我爱小猫。",
    "  two   spaces\t\n\n and a tab \n",
    "café cafe\u0301 Ａ ﬁ",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽",
    "שָׁלוֹם עולم مرحبا \u202eabc\u202c",
    "\x00\x7f\ufeff\ufffd\U0010ffff\r\n\x85\u2028",
    "a" * 300 + " " * 200 + "1" * 100 + "!" * 150,
    f"{END}{END[:4]}<|{END}",
)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(text, special):
    assert TOKENIZER.decode(TOKENIZER.encode(text, special=special)) == text
    assert "".join(tokens.words(text)) == text


def test_half_a_surrogate_pair_is_refused_and_named():
    with pytest.raises(ValueError, match=r"half a pair, U\+D83D$"):
        TOKENIZER.encode("a\ud83d")


def test_the_first_ids_are_the_bytes_and_the_last_the_special_tokens():
    assert TOKENIZER.vocabulary[:256] == [bytes([i]) for i in range(256)]
    assert TOKENIZER.vocabulary[-1] == END.encode()
    assert len(TOKENIZER) == 700
    untrained = tokens.Tokenizer([])
    assert untrained.encode("猫") == [0xE7, 0x8C, 0xAB]


def test_a_special_token_is_one_only_where_it_is_asked_for():
    text = f"love{END}"
    assert TOKENIZER.encode(text, special=True)[-1] == 699
    plain = TOKENIZER.encode(text)
    assert 699 not in plain
    assert TOKENIZER.decode(plain) == text


def test_no_merge_joins_a_word_with_the_next_one():
    borders = set()
    for word in tokens.words(PLAY.valid):
        borders.add(sum(borders and [max(borders)]) + len(word.encode()))
    ends, at = set(), 0
    for i in TOKENIZER.encode(PLAY.valid):
        at += len(TOKENIZER.vocabulary[i])
        ends.add(at)
    assert borders <= ends


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_a_stream_gives_the_ids_of_the_whole_text(step):
    text = f"{PLAY.valid[:1999]}{END}我爱小猫  {END[:5]}{END}" + "".join(TEXTS)
    chunks = [text[i : i + step] for i in range(0, len(text), step)]
    for special in (False, True):
        ids = list(TOKENIZER.encode_stream(chunks, special=special))
        assert ids == TOKENIZER.encode(text, special=special)


def test_a_stream_holds_back_one_word_and_no_more():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "x"

    stream = TOKENIZER.encode_stream(endless())
    for _ in range(500):
        next(stream)
        before = taken
    written = len(TOKENIZER.decode(TOKENIZER.encode("x" * before)))
    assert written <= 500 * LONGEST
    assert taken - before <= LONGEST + 1


def test_a_longer_special_token_wins_over_one_that_it_begins_with():
    tokenizer = tokens.Tokenizer([], ["<s>", "<s>>", "a<s>"])
    for text, ids in (
        ("<s>>", [257]),
        ("<s>x", [256, 120]),
        ("a<s>>", [258, 62]),
    ):
        assert tokenizer.encode(text, special=True) == ids
        assert list(tokenizer.encode_stream(text, special=True)) == ids
    parts = tokens.split_special("a<s>><s>", ["<s>", "<s>>"])
    assert parts == ["a", "<s>>", "<s>"]
    assert tokens.split_special("a.b", ["."]) == ["a", ".", "b"]
    assert tokens.split_special("", []) == tokens.split_special("", ["x"]) == []


def test_digits_go_in_threes_and_a_word_takes_its_space_along():
    found = list(tokens.words("I love 1234 cats!  我爱 don't\n\nX"))
    assert found == [
        *("I", " love", " 123", "4", " cats", "!", " ", " 我爱"),
        *(" don", "'", "t", "\n", "\n", "X"),
    ]
    assert max(map(len, tokens.words(" " + "ab" * 999))) == LONGEST


def test_words_are_counted_in_bytes():
    counts = tokens.word_counts(["我 cat cat", "我 cat"])
    assert counts == {tokens.as_symbols("我"): 2, " cat": 3}
    assert as_text(tokens.as_symbols("猫")) == "猫"


def byte_level():
    """The library with our merges, and its own names of the bytes."""
    names = dict(zip(range(256), alphabet(), strict=True))

    def named(piece):
        return "".join(names[ord(symbol)] for symbol in piece)

    pieces = [*map(chr, range(256)), *map("".join, TOKENIZER.merges)]
    vocabulary = {named(p): i for i, p in enumerate(dict.fromkeys(pieces))}
    merges = [(named(a), named(b)) for a, b in TOKENIZER.merges]
    model = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    model.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(
                tokenizers.Regex(r" ?[A-Za-z\x{4e00}-\x{9fff}]+|."), "isolated"
            ),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    model.decoder = decoders.ByteLevel()
    return model


def alphabet():
    """GPT-2's characters for the bytes: printable ones stand for themselves."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(i if i in shown else next(others)) for i in range(256)]


def test_the_same_merges_give_the_ids_of_tokenizers_byte_level():
    model = byte_level()
    for sentence in SENTENCES[::301]:
        assert TOKENIZER.encode(sentence) == model.encode(sentence).ids
        assert model.decode(model.encode(sentence).ids) == sentence


def test_bits_a_byte_are_the_loss_of_the_text_whatever_the_tokens():
    text, vocab = PLAY.valid[:997], len(TOKENIZER)
    ids = torch.tensor(TOKENIZER.encode(text))
    torch.manual_seed(0)
    logits = torch.randn(len(ids), vocab)
    mean = F.cross_entropy(logits, ids).item()
    size = len(text.encode())
    got = tokens.bits_per_byte(mean, len(ids), size)
    chosen = logits.double().log_softmax(-1)[range(len(ids)), ids]
    assert got == pytest.approx(-chosen.sum().item() / math.log(2) / size)
    # A uniform guess over bytes costs 8 bits a byte.
    assert tokens.bits_per_byte(math.log(256), size, size) == pytest.approx(8)


@pytest.mark.bad_input
def test_what_no_tokenizer_can_be_made_of_is_refused():
    with pytest.raises(
        ValueError, match=r"special: .* different and not empty"
    ):
        tokens.Tokenizer([], ["<s>", "<s>"])
    with pytest.raises(ValueError, match=r"special: .* not empty, got"):
        tokens.Tokenizer([], [""])
    with pytest.raises(ValueError, match=r"special: .* not empty, got"):
        tokens.split_special("a", [""])
    with pytest.raises(ValueError, match=r"merges: .* got \('ab', 'c'\)"):
        tokens.Tokenizer([("ab", "c")])
    with pytest.raises(ValueError, match=r"expected at least 257, .* got 256"):
        tokens.Tokenizer.train(["a"], 256, [END])
    with pytest.raises(ValueError, match="size: expected at least 1, got 0"):
        tokens.bits_per_byte(1.0, 3, 0)
