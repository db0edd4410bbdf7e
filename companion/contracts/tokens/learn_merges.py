"""Contracts of learning byte-pair merges.

Which of several pairs that are as frequent is taken, is up to the writer: a
contract replays what was learned, and asks of each merge whether any other pair
was more frequent there. Whether a run such as "aaa" holds the pair (a, a) twice
or once is up to the writer too, so nothing depends on it.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.tokens.pieces import (
    Pair,
    join_pair,
    mistake,
    strings,
    strung,
)

__all__ = ["LEARN_MERGES"]

Case = tuple[dict[str, int], int]

PLAIN: Case = ({"cat": 6, "cats": 4, "hat": 3, "hats": 2, "little": 3}, 4)
OFTEN: Case = ({"low": 9, "lid": 1, "lie": 1, "lip": 1, "tin": 2}, 2)
ANEW: Case = ({"abc": 10, "xbc": 3, "bcy": 1, "ab": 5}, 2)
RUN: Case = ({"aaab": 5, "xb": 1}, 3)
TWICE: Case = ({"banana": 4, "nab": 2, "cab": 1}, 3)
COUNTED: Case = ({"anan": 3, "xy": 5, "n": 1}, 3)
PARTS: Case = ({"xab": 3, "xa": 6, "ab": 5, "cd": 2}, 4)
APART: Case = ({"ab": 3, "cd": 3, "e": 9, "xyz": 4, "xy": 1}, 3)
SHORT: Case = ({"abc": 3, "ab": 1, "d": 2}, 9)


def read(fn: Guarded, result: object, args: tuple) -> list[Pair]:
    """A list of pairs of strings; a pair may be a list too."""
    if isinstance(result, dict):
        result = list(result)  # Merges as keys, in order.
    if not isinstance(result, list | tuple):
        return [tuple(strings(fn, result, args))]  # It raises.
    for pair in result:
        fits = isinstance(pair, list | tuple) and len(pair) == 2
        if not fits or not all(isinstance(piece, str) for piece in pair):
            raise Broken(
                f"It returned {strung(pair)} among others: expected "
                f"{fn.component.returns}."
            )
    return [tuple(pair) for pair in result]


LEARN_MERGES = Component(
    name="learn_merges",
    signature="learn_merges(frequencies, merges)",
    returns="a list of pairs of strings, the first that was learned first",
    shape_contract="It returns a list of pairs",
    read=read,
    cases=lambda: {"for five words": fresh(PLAIN)},
)


def fresh(case: Case) -> Case:
    """A case that nobody has changed."""
    return dict(case[0]), case[1]


def counted(splits: dict[str, list[str]], words: dict[str, int]) -> Counter:
    """How often each pair stands in the words, split as they are."""
    counts: Counter[Pair] = Counter()
    for word, pieces in splits.items():
        for pair in pairwise(pieces):
            counts[pair] += words[word]
    return counts


def require_frequent(fn: Guarded, case: Case) -> None:
    """Raise Broken unless every merge was of a most frequent pair."""
    words = case[0]
    splits = {word: list(word) for word in words}
    for number, pair in enumerate(fn(*fresh(case)), 1):
        counts = counted(splits, words)
        most = max(counts.values(), default=0)
        if not counts[pair] or counts[pair] < most:
            best = max(counts, key=lambda p: counts[p], default=None)
            there = (
                f"stands there {counts[pair]} times"
                if counts[pair]
                else "is not there"
            )
            other = f" {best} stands there {most} times." if best else ""
            hint = mistake(fn, LEARN_MERGES, map(fresh, KNOWN))
            says = (
                f"With {fn.describe(case)}, merge {number} is {pair}, which "
                f"{there}.{other}"
            )
            raise Broken(f"{hint} {says}" if hint else says, cause=hint)
        splits = {word: join_pair(p, pair) for word, p in splits.items()}


def require_count(fn: Guarded, case: Case, expected: int) -> None:
    """Raise Broken unless it learned that many merges."""
    got = len(fn(*fresh(case)))
    if got != expected:
        hint = mistake(fn, LEARN_MERGES, map(fresh, KNOWN))
        says = (
            f"With {fn.describe(case)} it learned {got} merges: expected "
            f"{expected}."
        )
        raise Broken(f"{hint} {says}" if hint else says, cause=hint)


# Without a tie, so that every right learner returns the same.
KNOWN = (PLAIN, OFTEN, ANEW, RUN, TWICE, COUNTED, PARTS)


@LEARN_MERGES.before_reference
def most_frequent(fn: Guarded) -> None:
    """Each merge joins a pair that no other is more frequent than."""
    require_frequent(fn, PLAIN)


@LEARN_MERGES.contract
def frequencies(fn: Guarded) -> None:
    """A word counts as often as it occurs."""
    require_frequent(fn, OFTEN)


@LEARN_MERGES.contract
def anew(fn: Guarded) -> None:
    """After a merge the pairs are counted anew."""
    require_frequent(fn, ANEW)


@LEARN_MERGES.contract
def runs(fn: Guarded) -> None:
    """In a run of one symbol joined pairs do not overlap."""
    require_frequent(fn, RUN)


@LEARN_MERGES.contract
def wherever(fn: Guarded) -> None:
    """A pair is joined wherever it stands in a word."""
    require_frequent(fn, TWICE)


@LEARN_MERGES.contract
def each_place(fn: Guarded) -> None:
    """A pair counts as often as it stands in a word."""
    require_frequent(fn, COUNTED)


@LEARN_MERGES.contract
def whole_pieces(fn: Guarded) -> None:
    """Whole pieces are joined, and not their ends."""
    require_frequent(fn, PARTS)


@LEARN_MERGES.contract
def borders(fn: Guarded) -> None:
    """No pair crosses the border of a word."""
    require_frequent(fn, APART)


@LEARN_MERGES.contract
def as_many(fn: Guarded) -> None:
    """It learns as many merges as asked for."""
    for merges in (1, 3, 4):
        require_count(fn, (PLAIN[0], merges), merges)


@LEARN_MERGES.contract
def ends(fn: Guarded) -> None:
    """It ends where nothing that is frequent is left to join."""
    got = fn(*fresh(SHORT))
    # Some stop before a pair that occurs only once.
    if len(got) > 2:
        raise Broken(
            f"With {fn.describe(SHORT)} it learned {strung(got)}: after two "
            "merges every word is one piece."
        )


# Known mistakes


def learned(
    words: dict[str, int],
    merges: int,
    join: Callable = join_pair,
    count: Callable = counted,
    score: Callable = lambda counts, pair, splits, words: counts[pair],
) -> list[Pair]:
    """Learn as it should be done, but for what is exchanged."""
    splits: dict[str, Any] = {word: list(word) for word in words}
    found: list[Pair] = []
    while len(found) < merges:
        counts = count(splits, words)
        if not counts:
            break
        best = min(counts, key=lambda p: (-score(counts, p, splits, words), p))
        splits = {word: join(p, best) for word, p in splits.items()}
        found.append(best)
    return found


@LEARN_MERGES.mistake(
    hint="The frequencies are forgotten: a pair counts as often as its words "
    "occur.",
    symptom="odd pieces of rare words, and common words in many pieces",
)
def frequency_forgotten(frequencies, merges):
    """Each different word counts once, however often it occurs."""
    return learned(dict.fromkeys(frequencies, 1), merges)


@LEARN_MERGES.mistake(
    hint="The pairs are counted once, at the beginning: a merge makes new "
    "pairs, and takes symbols away from old ones. Count again after each.",
    symptom="no piece is ever longer than two symbols",
)
def counted_only_once(frequencies, merges):
    """The most frequent pairs of symbols, from one count."""
    counts = counted({word: list(word) for word in frequencies}, frequencies)
    return sorted(counts, key=lambda p: (-counts[p], p))[:merges]


def overlapping(pieces, pair):
    """Join every pair, also one whose first piece was used already."""
    found, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            found.append("".join(pair))
            # A run of three becomes two pairs, and a piece is used twice.
            i += 1 if tuple(pieces[i + 1 : i + 3]) == pair else 2
        else:
            found.append(pieces[i])
            i += 1
    return found


@LEARN_MERGES.mistake(
    hint="Joined pairs overlap: after a pair go on behind its second piece.",
    symptom="runs such as aaa or ---- grow longer while they are joined",
)
def joins_overlapping_pairs(frequencies, merges):
    """In a run the second piece of a pair begins the next one."""
    return learned(frequencies, merges, join=overlapping)


def joined_once(pieces, pair):
    """Join the first place only."""
    for i, found in enumerate(pairwise(pieces)):
        if found == pair:
            return [*pieces[:i], "".join(pair), *pieces[i + 2 :]]
    return list(pieces)


@LEARN_MERGES.mistake(
    hint="A pair is joined once in a word: go on to its end.",
    symptom="the same merge is learned again and again",
)
def joins_the_first_only(frequencies, merges):
    """Stops at the first place of the pair in each word."""
    return learned(frequencies, merges, join=joined_once)


def replaced(pieces, pair):
    """Replace within a text of pieces with blanks between."""
    return " ".join(pieces).replace(" ".join(pair), "".join(pair)).split(" ")


@LEARN_MERGES.mistake(
    hint="`replace` also finds the pair where a longer piece ends or begins "
    "so: compare whole pieces.",
    symptom="merges that are learned, and that nothing is ever encoded with",
)
def replaces_in_a_text(frequencies, merges):
    """`"x a b".replace("a b", "ab")`, which also changes "xa b"."""
    return learned(frequencies, merges, join=replaced)


@LEARN_MERGES.mistake(
    hint="Pairs across the border of two words are counted: count in each "
    "word for itself.",
    symptom="pieces that begin in one word and end in the next",
)
def crosses_borders(frequencies, merges):
    """All words are one long text."""
    text = "".join(word * n for word, n in frequencies.items())
    return learned({text: 1}, merges)


@LEARN_MERGES.mistake(
    hint="A pair counts once a word, even where it stands twice in it.",
    symptom="a little worse than anybody else's, and nobody knows why",
)
def once_a_word(frequencies, merges):
    """The pairs of a word are made a set."""

    def count(splits, words):
        counts: Counter[Pair] = Counter()
        for word, pieces in splits.items():
            for pair in {*pairwise(pieces)}:
                counts[pair] += words[word]
        return counts

    return learned(frequencies, merges, count=count)


@LEARN_MERGES.mistake(
    hint="This is WordPiece's score, count(ab) / (count(a) · count(b)): "
    "byte-pair encoding takes the most frequent pair.",
    symptom="rare words become one piece, and frequent ones stay in letters",
)
def scored_as_wordpiece(frequencies, merges):
    """The pair that is least independent comes first."""

    def score(counts, pair, splits, words):
        singles: Counter[str] = Counter()
        for word, pieces in splits.items():
            for piece in pieces:
                singles[piece] += words[word]
        return counts[pair] / (singles[pair[0]] * singles[pair[1]])

    return learned(frequencies, merges, score=score)


@LEARN_MERGES.mistake(
    hint="The rarest pair is joined: take the most frequent one.",
    symptom="thousands of merges, and texts as long as before",
)
def rarest_first(frequencies, merges):
    """Sorted upwards, and the first one is taken."""
    return learned(frequencies, merges, score=lambda counts, p, *_: -counts[p])


@LEARN_MERGES.mistake(
    hint="It learns one merge too few.",
)
def one_too_few(frequencies, merges):
    """A `range` that begins at 1."""
    return learned(frequencies, merges - 1)


@LEARN_MERGES.mistake(
    hint="The merges come in the wrong order: the first that was learned "
    "first, because encoding replays them.",
    symptom="the pieces are all there, and encoding hardly ever reaches them",
)
def last_learned_first(frequencies, merges):
    """Merges are put in front of those before."""
    return learned(frequencies, merges)[::-1]


@LEARN_MERGES.mistake(
    symptom="for a small text the list is full of merges that join nothing",
)
def goes_on_with_nothing(frequencies, merges):
    """Fills the list up when nothing is left to join."""
    found = learned(frequencies, merges)
    return found + [("", "")] * (merges - len(found))
