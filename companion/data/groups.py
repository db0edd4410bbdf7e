"""A split of sentence pairs in which no sentence is on both sides of it.

A corpus says one thing in several ways: "Hi." is 嗨。 and 你好。 Lines dealt
out one by one would put such a pair of lines on both sides of the split, and
the test would ask for what training has said.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from zlib import crc32

__all__ = ["groups", "plain", "split"]

Pair = tuple[str, str]


def groups(keys: Iterable[Sequence[Hashable]]) -> list[list[int]]:
    """Group the indices that a chain of equal keys joins (union-find).

    Args:
        keys: Those of each index. Two with a key in common are in one group,
            and so is what either of them has a key in common with.

    Example:
        >>> groups([["a", "b"], ["c"], ["b", "d"], ["d"]])
        [[0, 2, 3], [1]]
    """
    leader: dict[Hashable, Hashable] = {}

    def find(key: Hashable) -> Hashable:
        while leader.setdefault(key, key) != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    keys = list(keys)
    for first, *others in keys:
        for other in others:
            leader[find(other)] = find(first)
    found = defaultdict(list)
    for index, (first, *_) in enumerate(keys):
        found[find(first)].append(index)
    return list(found.values())


def plain(text: str) -> str:
    """Leave out what nobody hears: punctuation, spaces, capitals.

    Example:
        >>> plain("Hi, Tom!")
        'hitom'
    """
    return "".join(filter(str.isalnum, text)).casefold() or text


def split(
    pairs: Sequence[Pair], *, percent: int
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Split pairs into a part to train on, to choose by, and to test on.

    A checksum of the group decides, so the parts are the same each time and
    everywhere.

    Args:
        pairs: Texts, source and target.
        percent: How many of the groups are in each of the last two parts.
    """
    keys = [(("src", plain(s)), ("tgt", plain(t))) for s, t in pairs]
    parts = [], [], []
    for group in groups(keys):
        name = min(" ".join(pairs[index]) for index in group)
        number = crc32(name.encode()) % 100
        part = 2 if number < percent else 1 if number < 2 * percent else 0
        parts[part].extend(group)
    train, valid, test = ([pairs[i] for i in sorted(part)] for part in parts)
    return train, valid, test
