"""WordPiece and unigrams, each by its own objective."""

import io
import itertools
import math

import pytest
import sentencepiece
import tokenizers
from tokenizers import models, trainers

from companion import tokens
from companion.data import corpora

FEW = {"cat": 6, "cats": 4, "hat": 3, "hats": 2, "little": 3}
CHANCES = {
    "c": 0.10, "a": 0.05, "t": 0.05, "s": 0.10, "ats": 0.25, "cat": 0.20,
    "ca": 0.15, "ts": 0.10,
}  # fmt: skip
LOG_P = {piece: math.log(p) for piece, p in CHANCES.items()}
PLAY = corpora.romeo_and_juliet().train
COUNTS = {
    word: often
    for word, often in tokens.word_counts([PLAY]).items()
    if word.isascii() and word.strip().isalpha()
}
WORDS = dict(sorted(COUNTS.items(), key=lambda item: (-item[1], item))[:500])


def splits(word, pieces):
    """Every way to make the word of pieces."""
    for borders in itertools.product([0, 1], repeat=len(word) - 1):
        cuts = [0, *(i + 1 for i, b in enumerate(borders) if b), len(word)]
        split = [word[a:b] for a, b in itertools.pairwise(cuts)]
        if all(piece in pieces for piece in split):
            yield split


# WordPiece


def test_wordpiece_joins_what_is_rare_and_inseparable():
    pieces, merges = tokens.learn_wordpiece(FEW, 3)
    assert merges[0] == ("##l", "##e")
    assert {"##l", "##le", "c", "##a"} <= {*pieces}
    # 3 / (3 · 3) against 15 / (15 · 21): a and t are frequent, and apart.
    assert 3 / (3 * 3) > 15 / (15 * 21)
    assert ("##a", "##t") not in merges


def test_wordpiece_takes_the_longest_piece_as_tokenizers_does():
    pieces, _ = tokens.learn_wordpiece(
        {w.strip(): n for w, n in list(WORDS.items())[:300]}, 60
    )
    vocabulary = {piece: i for i, piece in enumerate(["[UNK]", *pieces])}
    model = tokenizers.Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]")
    )
    for word in COUNTS:
        ours = tokens.wordpiece_encode(word.strip(), vocabulary)
        assert model.encode(word.strip()).tokens == ours


def test_longest_first_can_fail_where_another_split_exists():
    pieces = {"c", "ca", "##ats", "##s"}
    assert tokens.wordpiece_encode("cats", pieces) == ["[UNK]"]


def test_the_librarys_trainer_of_wordpiece_counts_pairs_as_bpe_does():
    """So its vocabulary is no test of the score; only encoding is."""
    model = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words = (w for w, often in FEW.items() for _ in range(often))
    first = len({w[0] for w in FEW} | {f"##{s}" for w in FEW for s in w[1:]})
    trainer = trainers.WordPieceTrainer(
        vocab_size=first + 7, show_progress=False
    )
    model.train_from_iterator(words, trainer)
    assert "##at" in model.get_vocab()
    assert "##le" not in model.get_vocab()


def test_wordpiece_stops_where_every_word_is_one_piece():
    pieces, merges = tokens.learn_wordpiece({"aba": 2, "b": 1, "x": 0}, 50)
    assert merges == [("##b", "##a"), ("a", "##ba")]
    assert {"aba", "b"} <= {*pieces}


# Unigrams


def test_the_likeliest_split_is_that_of_the_example_and_flips():
    assert tokens.unigram_encode("cats", LOG_P) == ["c", "ats"]
    rarer = {**LOG_P, "ats": math.log(0.19)}
    assert tokens.unigram_encode("cats", rarer) == ["cat", "s"]


def test_viterbi_finds_the_best_of_all_splits():
    log_p = tokens.learn_unigram(WORDS, 300)
    for word in list(WORDS)[::7]:
        worth = [sum(log_p[p] for p in s) for s in splits(word, log_p)]
        best = tokens.unigram_encode(word, log_p)
        assert sum(log_p[p] for p in best) == pytest.approx(max(worth))


def test_the_same_pieces_give_the_tokens_of_tokenizers():
    log_p = tokens.learn_unigram(WORDS, 300)
    table = [("<unk>", -100.0), *log_p.items()]
    model = tokenizers.Tokenizer(models.Unigram(table, unk_id=0))
    for word in WORDS:
        ours = tokens.unigram_encode(word, log_p)
        assert model.encode(word).tokens == ours


def test_sentencepiece_splits_by_the_same_rule():
    """Its pieces, with its numbers, through our Viterbi."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PLAY.splitlines()), model_writer=written,
        vocab_size=400, model_type="unigram", num_threads=1, minloglevel=2,
    )  # fmt: skip
    theirs = sentencepiece.SentencePieceProcessor(
        model_proto=written.getvalue()
    )
    log_p = {
        theirs.id_to_piece(i): theirs.get_score(i)
        for i in range(3, theirs.vocab_size())
    }
    for word in list(WORDS)[::3]:
        pieces = theirs.encode(word.strip(), out_type=str)
        ours = tokens.unigram_encode("".join(pieces), log_p)
        assert ours == pieces


def test_the_likelihood_sums_over_all_splits():
    each = [math.prod(CHANCES[p] for p in s) for s in splits("cats", CHANCES)]
    got = tokens.log_likelihood({"cats": 3}, LOG_P)
    assert got == pytest.approx(3 * math.log(sum(each)))


def test_expected_counts_weigh_every_split_by_its_probability():
    found = [(s, math.prod(CHANCES[p] for p in s))
             for s in splits("cats", CHANCES)]  # fmt: skip
    total = sum(p for _, p in found)
    counts = tokens.expected_counts({"cats": 5}, LOG_P)
    for piece in CHANCES:
        share = sum(p * s.count(piece) for s, p in found) / total
        assert counts[piece] == pytest.approx(5 * share)


def test_a_step_of_em_never_lowers_the_likelihood():
    few = dict(list(WORDS.items())[:60])
    log_p = tokens.learn_unigram(few, 200)
    uniform = dict.fromkeys(log_p, -math.log(len(log_p)))
    before = tokens.log_likelihood(few, uniform)
    for _ in range(4):
        counts = tokens.expected_counts(few, uniform)
        total = math.log(sum(counts.values()))
        uniform = {p: math.log(c) - total for p, c in counts.items() if c}
        after = tokens.log_likelihood(few, uniform)
        assert after >= before - 1e-9
        before = after


def test_learning_leaves_as_many_pieces_as_asked_for_and_every_character():
    characters = {s for word in WORDS for s in word}
    for size in (100, 300):
        log_p = tokens.learn_unigram(WORDS, size)
        assert len(log_p) == size
        assert characters <= log_p.keys()
        assert sum(map(math.exp, log_p.values())) == pytest.approx(1)


@pytest.mark.bad_input
def test_words_that_no_pieces_make_are_refused():
    with pytest.raises(ValueError, match=r"word: expected .* got 'dog'"):
        tokens.unigram_encode("dog", LOG_P)
    with pytest.raises(ValueError, match=r"word: expected .* got 'dog'"):
        tokens.log_likelihood({"dog": 1}, LOG_P)
    with pytest.raises(
        ValueError, match=r"size: expected at least 2, .* got 1"
    ):
        tokens.learn_unigram({"ab": 1}, 1)
