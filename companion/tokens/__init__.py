"""Text as tokens: byte-pair encoding, WordPiece and unigrams.

Words, the same in the book, the code and the tests:
    character   what Python's ``str`` counts, a Unicode code point
    symbol      what a learner begins with: a character, or a byte
    piece       one symbol, or several that were joined
    merge       a pair of pieces that is joined wherever it stands
    rank        the place of a merge in the list; 0 was learned first
    word        what pre-tokenisation cuts out; no piece crosses its borders
    token       a piece with its number, the id
"""

from companion.tokens.fast import fast_encode, fast_merges
from companion.tokens.plain import bpe_decode, bpe_encode, learn_merges
from companion.tokens.tokenizer import Tokenizer, bits_per_byte
from companion.tokens.unigram import (
    expected_counts,
    learn_unigram,
    log_likelihood,
    unigram_encode,
)
from companion.tokens.wordpiece import learn_wordpiece, wordpiece_encode
from companion.tokens.words import as_symbols, split_special, word_counts, words

__all__ = [
    "Tokenizer",
    "as_symbols",
    "bits_per_byte",
    "bpe_decode",
    "bpe_encode",
    "expected_counts",
    "fast_encode",
    "fast_merges",
    "learn_merges",
    "learn_unigram",
    "learn_wordpiece",
    "log_likelihood",
    "split_special",
    "unigram_encode",
    "word_counts",
    "wordpiece_encode",
    "words",
]
