"""Merges learned and applied, texts cut and read, right in several ways."""

import codecs
import heapq
import re
from collections import Counter, defaultdict
from itertools import pairwise

from contracts.right import right

from companion.tokens import fast_encode, fast_merges
from companion.tokens.plain import ranks_of

# Learning


def joined(pieces, pair):
    found, rest = [], list(pieces)
    while rest:
        size = 2 if tuple(rest[:2]) == pair else 1
        found.append("".join(rest[:size]))
        rest = rest[size:]
    return tuple(found)


@right("learn_merges")
def ties_to_the_first_met(frequencies, merges):
    """Python's `max` keeps the first of several, here in reading order."""
    splits = {tuple(word): n for word, n in frequencies.items()}
    learned = []
    for _ in range(merges):
        counts = Counter()
        for pieces, n in splits.items():
            for pair in pairwise(pieces):
                counts[pair] += n
        if not counts:
            break
        learned.append(max(counts, key=counts.get))
        splits = {joined(p, learned[-1]): n for p, n in splits.items()}
    return learned


@right("learn_merges")
def ties_to_the_last_in_the_alphabet(frequencies, merges):
    """As lists; stops before a pair that occurs only once."""
    words = [(list(word), n) for word, n in sorted(frequencies.items())]
    learned = []
    while len(learned) < merges:
        counts = defaultdict(int)
        for pieces, n in words:
            for i in range(len(pieces) - 1):
                counts[pieces[i], pieces[i + 1]] += n
        often, best = max(((n, p) for p, n in counts.items()), default=(0, 0))
        if often < 2:
            break
        learned.append([*best])
        for pieces, _ in words:
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = ["".join(best)]
                i += 1
    return learned


@right("learn_merges")
def runs_count_once(frequencies, merges):
    """In aaa the pair (a, a) counts once, as it can be joined once."""
    splits = {word: list(word) for word in frequencies}
    ranks = {}
    while len(ranks) < merges:
        counts = Counter()
        for word, pieces in splits.items():
            last = None
            for at, pair in enumerate(pairwise(pieces)):
                if last == (at - 1, pair):
                    last = None
                    continue
                counts[pair] += frequencies[word]
                last = (at, pair)
        if not counts:
            break
        best = counts.most_common(1)[0][0]
        ranks[best] = len(ranks)
        splits = {word: joined(p, best) for word, p in splits.items()}
    return ranks


@right("learn_merges")
def by_a_pattern(frequencies, merges):
    """A text of pieces with blanks, whose borders the pattern respects."""
    text = {" ".join(word): n for word, n in frequencies.items()}
    learned = []
    while len(learned) < merges:
        counts = Counter()
        for word, n in text.items():
            for pair in pairwise(word.split()):
                counts[pair] += n
        if not counts:
            break
        best = min(counts, key=lambda p: (-counts[p], len(p[0] + p[1])))
        learned.append(best)
        found = re.compile(rf"(?<!\S){re.escape(' '.join(best))}(?!\S)")
        text = {found.sub("".join(best), w): n for w, n in text.items()}
    return tuple(learned)


right("learn_merges")(fast_merges)

# Applying


@right("bpe_encode")
def replayed(word, merges):
    pieces = tuple(word)
    for pair in merges:
        pieces = joined(pieces, tuple(pair))
    return pieces


@right("bpe_encode")
def one_pair_at_a_time(word, merges):
    """The pair of the lowest rank, and of several the leftmost."""
    pieces = list(word)
    while len(pieces) > 1:
        ranked = [
            (merges.index(pair), i)
            for i, pair in enumerate(pairwise(pieces))
            if pair in merges
        ]
        if not ranked:
            break
        i = min(ranked)[1]
        pieces[i : i + 2] = ["".join(pieces[i : i + 2])]
    return pieces


@right("bpe_encode")
def by_ids(word, merges):
    """Ids in place of pieces, as a library does."""
    names = dict.fromkeys([*word, *(s for p in merges for s in p)])
    names |= dict.fromkeys(map("".join, merges))
    ids = {name: i for i, name in enumerate(names)}
    table = {
        (ids[a], ids[b]): (rank, ids[a + b])
        for rank, (a, b) in enumerate(merges)
    }
    row = [ids[symbol] for symbol in word]
    heap = [(table[p][0], p) for p in pairwise(row) if p in table]
    while heap:
        heapq.heapify(heap)
        _, pair = heap[0]
        out, i = [], 0
        while i < len(row):
            here = tuple(row[i : i + 2]) == pair
            out.append(table[pair][1] if here else row[i])
            i += 2 if here else 1
        row = out
        heap = [(table[p][0], p) for p in pairwise(row) if p in table]
    back = list(names)
    return [back[i] for i in row]


@right("bpe_encode")
def with_a_heap(word, merges):
    return fast_encode(word, ranks_of(merges))


# Reading


@right("bpe_decode")
def all_bytes_at_once(ids, vocabulary):
    return b"".join(map(vocabulary.__getitem__, ids)).decode("utf-8", "replace")


@right("bpe_decode")
def as_they_come(ids, vocabulary):
    """What a chat does: a character is written when its last byte is there."""
    reader = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = "".join(reader.decode(vocabulary[i]) for i in ids)
    return text + reader.decode(b"", final=True)


@right("bpe_decode")
def errors_left_out(ids, vocabulary):
    found = bytearray()
    for i in ids:
        found.extend(vocabulary[int(i)])
    return str(found, "utf-8", "ignore")


# Cutting


@right("split_special")
def by_splitting(text, special):
    if not special:
        return [text] if text else []
    marks = "|".join(re.escape(s) for s in sorted(special, reverse=True))
    return [part for part in re.split(f"({marks})", text) if part]


@right("split_special")
def sign_by_sign(text, special):
    parts, plain = [], ""
    while text:
        here = max(
            (s for s in special if text.startswith(s)), key=len, default=""
        )
        if not here:
            plain, text = plain + text[0], text[1:]
            continue
        parts += [plain, here] if plain else [here]
        plain, text = "", text[len(here) :]
    return (*parts, plain) if plain else tuple(parts)


@right("split_special")
def token_by_token(text, special):
    """Splits for the longest token first, then what is left for the next."""
    parts = [(text, False)]
    for mark in sorted(special, key=len)[::-1]:
        done = []
        for part, fixed in parts:
            if fixed:
                done.append((part, True))
                continue
            for i, piece in enumerate(part.split(mark)):
                done += [(mark, True)] * (i > 0) + [(piece, False)]
        parts = done
    return [part for part, _ in parts if part]
