"""The same merges and the same pieces as ``plain.py``, with less work.

The plain learner counts every pair of every word again for each merge. Here a
merge touches only the places where its pair stands and their neighbours, and a
heap knows the most frequent pair. The plain encoder looks at the whole word for
each merge; here the neighbours are a linked list, and a heap knows the merge
with the lowest rank.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from companion.tokens.plain import Merge, check_learning

__all__ = ["fast_encode", "fast_merges"]


def fast_merges(frequencies: Mapping[str, int], merges: int) -> list[Merge]:
    """Learn what ``learn_merges`` learns, merge for merge.

    Args:
        frequencies: Word -> how often it occurs.
        merges: How many to learn.

    Returns:
        The merges in the order in which they were learned.

    Raises:
        ValueError: ``merges`` or a frequency is below 0, or a word is empty.

    Example:
        >>> fast_merges({"cat": 6, "cats": 4, "hat": 3, "hats": 2}, 3)
        [('a', 't'), ('c', 'at'), ('h', 'at')]
    """
    check_learning(frequencies, merges)
    pairs = _Pairs(frequencies)
    heap = [(-count, pair) for pair, count in pairs.counts.items()]
    heapq.heapify(heap)
    learned: list[Merge] = []
    while heap and len(learned) < merges:
        count, best = heapq.heappop(heap)
        # A count that has changed since lies further down, as it is now.
        if pairs.counts.get(best) == -count:
            for pair in pairs.join(best):
                heapq.heappush(heap, (-pairs.counts[pair], pair))
            learned.append(best)
    return learned


class _Pairs:
    """How often each pair of neighbours stands in some words, and where."""

    def __init__(self, frequencies: Mapping[str, int]):
        # All words in one row, with an empty piece behind each.
        self.pieces: list[str] = []
        self.often: list[int] = []
        for word, count in frequencies.items():
            self.pieces += [*word, ""]
            self.often += [count] * (len(word) + 1)
        self.right = list(range(1, len(self.pieces) + 1))
        self.left = list(range(-1, len(self.pieces) - 1))
        self.counts: Counter[Merge] = Counter()
        self.places: defaultdict[Merge, set[int]] = defaultdict(set)
        for i, pair in enumerate(pairwise(self.pieces)):
            if all(pair):
                self.counts[pair] += self.often[i]
                self.places[pair].add(i)

    def join(self, best: Merge) -> list[Merge]:
        """Join a pair wherever it stands; return the pairs to count anew."""
        pieces, left, right = self.pieces, self.left, self.right
        changed: dict[Merge, None] = {best: None}
        for i in sorted(self.places.pop(best)):
            gone = right[i]
            # In "aaa" the first pair has taken what the second begins with.
            if (pieces[i], pieces[gone]) != best:
                continue
            before, behind = left[i], right[gone]
            new = "".join(best)
            for sign, at, pair in (
                (-1, before, (pieces[before], best[0])),
                (-1, gone, (best[1], pieces[behind])),
                (1, before, (pieces[before], new)),
                (1, i, (new, pieces[behind])),
            ):
                if all(pair):
                    self.counts[pair] += sign * self.often[i]
                    places = self.places[pair]
                    (places.add if sign > 0 else places.discard)(at)
                    changed[pair] = None
            pieces[i], pieces[gone] = new, ""
            right[i], left[behind] = behind, i
        for pair in changed:
            if not self.places[pair]:
                del self.places[pair], self.counts[pair]
        return [pair for pair in changed if pair in self.counts]


def fast_encode(word: str, ranks: Mapping[Merge, int]) -> list[str]:
    """Split a word as ``bpe_encode`` does, in n log n steps for n characters.

    Args:
        word: One word; its characters are the symbols.
        ranks: Merge -> its rank.

    Returns:
        The pieces; joined they are the word.

    Example:
        >>> fast_encode("chat", {("a", "t"): 0, ("c", "at"): 1, ("h", "at"): 2})
        ['c', 'hat']
    """
    pieces, n = list(word), len(word)
    right = list(range(1, n + 1))
    left = list(range(-1, n - 1))
    heap: list[tuple[int, int, Merge]] = []

    def offer(i: int) -> None:
        if i >= 0 and right[i] < n:
            pair = (pieces[i], pieces[right[i]])
            if pair in ranks:
                heapq.heappush(heap, (ranks[pair], i, pair))

    for i in range(n - 1):
        offer(i)
    while heap:
        _, i, pair = heapq.heappop(heap)
        # One of the two may have been joined with another in the meantime.
        if right[i] >= n or (pieces[i], pieces[right[i]]) != pair:
            continue
        gone = right[i]
        pieces[i], pieces[gone] = "".join(pair), ""
        right[i] = right[gone]
        if right[gone] < n:
            left[right[gone]] = i
        offer(left[i])
        offer(i)
    return [piece for piece in pieces if piece]
