"""Byte-pair encoding as one explains it: count, join, and do it again.

Sennrich et al. (2016). ``fast.py`` finds the same, sooner.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from companion.checks import check_int

__all__ = [
    "Merge",
    "bpe_decode",
    "bpe_encode",
    "check_learning",
    "joined",
    "learn_merges",
    "ranks_of",
]

Merge = tuple[str, str]
"""Two neighbours, the left one first."""


def learn_merges(frequencies: Mapping[str, int], merges: int) -> list[Merge]:
    """Learn which neighbours to join, the most frequent pair first.

    A word counts as often as it occurs. Of pairs that are as frequent, the
    first in alphabetical order (by code point) is taken, so that the order of
    ``frequencies`` does not matter. In "aaa" the pair (a, a) counts twice.

    Args:
        frequencies: Word -> how often it occurs. Each character of a word is
            one symbol at first.
        merges: How many to learn. There are fewer if every word is one piece
            before that.

    Returns:
        The merges in the order in which they were learned.

    Raises:
        ValueError: ``merges`` or a frequency is below 0, or a word is empty.

    Example:
        >>> learn_merges({"cat": 6, "cats": 4, "hat": 3, "hats": 2}, 3)
        [('a', 't'), ('c', 'at'), ('h', 'at')]
    """
    check_learning(frequencies, merges)
    splits = {word: list(word) for word in frequencies}
    learned: list[Merge] = []
    while len(learned) < merges:
        counts: Counter[Merge] = Counter()
        for word, pieces in splits.items():
            for pair in pairwise(pieces):
                counts[pair] += frequencies[word]
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        splits = {word: joined(p, best) for word, p in splits.items()}
        learned.append(best)
    return learned


def joined(
    pieces: Sequence[str], pair: Merge, name: str | None = None
) -> list[str]:
    """Join a pair wherever it stands, from left to right, without overlap.

    Args:
        pieces: Of one word.
        pair: What is joined.
        name: What it then is, if not the one after the other.

    Example:
        >>> joined(["a", "a", "a"], ("a", "a"))
        ['aa', 'a']
    """
    name = "".join(pair) if name is None else name
    found: list[str] = []
    i = 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            found.append(name)
            i += 2
        else:
            found.append(pieces[i])
            i += 1
    return found


def bpe_encode(word: str, merges: Sequence[Merge]) -> list[str]:
    """Split a word into pieces: nothing is counted, the merges are replayed.

    Of all neighbours in the word, the pair that was learned first is joined,
    until no pair is left that was learned.

    Args:
        word: One word; its characters are the symbols.
        merges: In the order in which they were learned.

    Returns:
        The pieces; joined they are the word.

    Example:
        >>> bpe_encode("chat", [("a", "t"), ("c", "at"), ("h", "at")])
        ['c', 'hat']
    """
    ranks, pieces = ranks_of(merges), list(word)
    while known := ranks.keys() & pairwise(pieces):
        pieces = joined(pieces, min(known, key=lambda pair: ranks[pair]))
    return pieces


def bpe_decode(ids: Iterable[int], vocabulary: Sequence[bytes]) -> str:
    r"""Turn ids back into a text: join the bytes, and read them as UTF-8.

    A character may be spread over several tokens, so no token is read alone.
    What is no UTF-8, as a model can write it, is replaced by U+FFFD.

    Args:
        ids: The tokens.
        vocabulary: The bytes of each token.

    Raises:
        ValueError: An id has no token.

    Example:
        >>> bpe_decode([2, 0, 1], [b"\xe7\x8c", b"\xab", b"cat "])
        'cat 猫'
    """
    found = []
    for i in ids:
        if not 0 <= i < len(vocabulary):
            raise ValueError(
                f"ids: expected 0 to {len(vocabulary) - 1}, got {i}"
            )
        found.append(vocabulary[i])
    return b"".join(found).decode("utf-8", errors="replace")


def ranks_of(merges: Sequence[Merge]) -> dict[Merge, int]:
    """Rank the merges; of a pair that is there twice the first counts."""
    ranks: dict[Merge, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    return ranks


def check_learning(frequencies: Mapping[str, int], merges: int) -> None:
    """Refuse empty words, counts below 0, and fewer than 0 merges."""
    check_int(merges=merges)
    if merges < 0:
        raise ValueError(f"merges: expected at least 0, got {merges}")
    for word, count in frequencies.items():
        if not word or count < 0:
            raise ValueError(
                "frequencies: expected words that are not empty and counts of "
                f"at least 0, got {word!r}: {count}"
            )
