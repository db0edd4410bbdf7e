"""Merges and tokens got wrong in ways that no user sees for long."""

import re
from collections import Counter
from itertools import pairwise

from contracts.odd import wrong

from companion.tokens import bpe_encode, learn_merges


@wrong("learn_merges")
def nothing_learned(frequencies, merges):
    return []


@wrong("learn_merges")
def pieces_returned(frequencies, merges):
    return ["".join(pair) for pair in learn_merges(frequencies, merges)]


@wrong("learn_merges")
def with_their_counts(frequencies, merges):
    return [(pair, 1, 2) for pair in learn_merges(frequencies, merges)]


@wrong("learn_merges")
def fails_at_the_end(frequencies, merges):
    """`max` of nothing."""
    found = learn_merges(frequencies, merges)
    if len(found) < merges:
        raise ValueError("max() arg is an empty sequence")
    return found


@wrong("learn_merges")
def pairs_without_order(frequencies, merges):
    """(a, t) and (t, a) count together."""
    counts = Counter()
    for word, often in frequencies.items():
        for pair in pairwise(word):
            counts[tuple(sorted(pair))] += often
    return [pair for pair, _ in counts.most_common(merges)]


@wrong("learn_merges")
def told_nothing(frequencies, merges):
    learn_merges(frequencies, merges)


@wrong("bpe_encode")
def as_one_text(word, merges):
    return " ".join(bpe_encode(word, merges))


@wrong("bpe_encode")
def as_numbers(word, merges):
    return [*map(len, bpe_encode(word, merges))]


@wrong("bpe_encode")
def one_merge_only(word, merges):
    return bpe_encode(word, merges[:1])


@wrong("bpe_encode")
def one_at_a_time(word, merges):
    yield from bpe_encode(word, merges)


@wrong("bpe_decode")
def bytes_returned(ids, vocabulary):
    return b"".join(vocabulary[i] for i in ids)


@wrong("bpe_decode")
def parts_returned(ids, vocabulary):
    return [vocabulary[i].decode(errors="replace") for i in ids]


@wrong("bpe_decode")
def backwards(ids, vocabulary):
    return b"".join(vocabulary[i] for i in ids[::-1]).decode(errors="replace")


@wrong("split_special")
def with_its_places(text, special):
    return [
        (found.start(), found.end())
        for mark in special
        for found in re.finditer(re.escape(mark), text)
    ]


@wrong("split_special")
def lower_case(text, special):
    return [text.lower()]


@wrong("split_special")
def every_sign(text, special):
    return list(text)
