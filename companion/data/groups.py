"""A split of sentence pairs in which no sentence is on both sides of it.

A corpus says one thing in several ways: "Hi." is 嗨。 and 你好。 Lines dealt
out one by one would put such a pair of lines on both sides of the split, and
the test would ask for what training has said.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from zlib import crc32

Pair = tuple[str, str]


def groups(keys: Iterable[Sequence[Hashable]]) -> list[list[int]]:
    """The places that hang together, because a chain of equal keys joins them.

    Each place has some keys; two places with a key in common are in one group,
    and so is what either of them has a key in common with (union-find).
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
    for place, (first, *_) in enumerate(keys):
        found[find(first)].append(place)
    return list(found.values())


def plain(text: str) -> str:
    """The text without what nobody hears: punctuation, spaces, capitals."""
    return "".join(filter(str.isalnum, text)).casefold() or text


def split(
    pairs: Sequence[Pair], *, percent: int
) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """A part to train on, one to choose by, and one to test on.

    About ``percent`` of the groups are in each of the last two. A checksum of
    the group decides, so the parts are the same each time and everywhere.
    """
    keys = [(("src", plain(s)), ("tgt", plain(t))) for s, t in pairs]
    parts = [], [], []
    for group in groups(keys):
        name = min(" ".join(pairs[place]) for place in group)
        number = crc32(name.encode()) % 100
        part = 2 if number < percent else 1 if number < 2 * percent else 0
        parts[part].extend(group)
    train, valid, test = ([pairs[i] for i in sorted(part)] for part in parts)
    return train, valid, test
