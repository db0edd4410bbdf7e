"""The same merges and the same pieces as ``plain.py``, with less work.

The plain learner counts every pair of every word again for each merge. Here a
merge touches only the words that hold its pair, and a heap knows the most
frequent pair. The plain encoder looks at the whole word for each merge; here
the neighbours are a linked list, and a heap knows the merge with the lowest
rank.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from companion.tokens.plain import Merge, check_learning, joined

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
    splits = [list(word) for word in frequencies]
    often = list(frequencies.values())
    counts: Counter[Merge] = Counter()
    holders: defaultdict[Merge, set[int]] = defaultdict(set)
    for i, pieces in enumerate(splits):
        for pair in pairwise(pieces):
            counts[pair] += often[i]
            holders[pair].add(i)
    heap = [(-count, pair) for pair, count in counts.items()]
    heapq.heapify(heap)
    learned: list[Merge] = []
    while heap and len(learned) < merges:
        count, best = heapq.heappop(heap)
        # A count that has changed since lies further down, as it is now.
        if best not in counts or counts[best] != -count:
            continue
        changed: dict[Merge, None] = {}
        for i in holders.pop(best):
            before, splits[i] = splits[i], joined(splits[i], best)
            for pair in pairwise(before):
                counts[pair] -= often[i]
                changed[pair] = None
                holders[pair].discard(i)
            for pair in pairwise(splits[i]):
                counts[pair] += often[i]
                changed[pair] = None
                holders[pair].add(i)
        for pair in changed:
            if holders[pair]:
                heapq.heappush(heap, (-counts[pair], pair))
            else:
                del holders[pair], counts[pair]
        learned.append(best)
    return learned


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
