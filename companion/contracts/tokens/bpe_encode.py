"""Contracts of applying merges: from a word to its pieces.

The merges are such as a learner can have learned: each joins symbols, or pieces
that an earlier merge has made. For these it is the same whether one replays the
list from its beginning or joins the pair with the lowest rank until none is
left.
"""

from collections.abc import Callable
from itertools import pairwise

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.tokens.pieces import (
    Pair,
    join_pair,
    mistake,
    require,
    strings,
    strung,
)

__all__ = ["BPE_ENCODE"]


def pairs(text: str) -> list[Pair]:
    """Merges from "a t, c at"."""
    found = [tuple(each.split()) for each in text.split(", ")]
    return [(left, right) for left, right in found]


PLAIN = ("chats", pairs("a t, c at, h at, cat s"))
ORDER = (
    ("cats", pairs("t s, c a, ca t")),
    ("lower", pairs("e r, l o, lo w, w er")),
    ("abcd", pairs("b c, a b, c d, ab cd")),
    ("abcd", pairs("a b, ab c, c d")),
    ("unlikely", pairs("l i, u n, k e, un li, ke l, ke ly")),
)
RUNS = (("aaa", pairs("a a")), ("baaaaa", pairs("a a, aa a")))
WHEREVER = (
    ("banana", pairs("a n, b an")),
    ("catcat", pairs("a t, c at")),
)
PARTS = (("xcab", pairs("x c, a b, c ab")), ("bcat", pairs("b c, c a, a t")))
UNKNOWN = (("cow?", pairs("c a, ca t, o w")), ("猫cat", pairs("a t, c at")))
NOTHING = (("cat", []),)
EVERY = (PLAIN, *ORDER, *RUNS, *WHEREVER, *PARTS, *UNKNOWN, *NOTHING)

BPE_ENCODE = Component(
    name="bpe_encode",
    signature="bpe_encode(word, merges)",
    returns="a list of pieces, strings that joined are the word",
    shape_contract="It returns a list of pieces",
    read=strings,
    cases=lambda: {"for a word of five letters": PLAIN},
)


def split(
    word: str, merges: list[Pair], join: Callable = join_pair
) -> list[str]:
    """Replay the merges, each joined by ``join``."""
    pieces = list(word)
    for pair in merges:
        pieces = join(pieces, pair)
    return pieces


def require_all(fn: Guarded, cases: tuple) -> None:
    """Raise Broken unless the pieces are those of a replay."""
    for args in cases:
        expected = split(*args)
        if fn(*args) != expected:
            hint = mistake(fn, BPE_ENCODE, EVERY)
            require(fn, args, expected, hint)


@BPE_ENCODE.before_reference
def nothing_lost(fn: Guarded) -> None:
    """Joined, the pieces are the word."""
    for word, merges in EVERY:
        got = fn(word, merges)
        if "".join(got) != word:
            hint = mistake(fn, BPE_ENCODE, EVERY)
            says = (
                f"With {fn.describe((word, merges))} it returned "
                f"{strung(got)}: joined that is {strung(''.join(got))}."
            )
            raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@BPE_ENCODE.before_reference
def order(fn: Guarded) -> None:
    """What was learned first is joined first."""
    require_all(fn, (PLAIN, *ORDER))


@BPE_ENCODE.contract
def runs(fn: Guarded) -> None:
    """In a run of one symbol pairs are joined from the left."""
    require_all(fn, RUNS)


@BPE_ENCODE.contract
def wherever(fn: Guarded) -> None:
    """A pair is joined wherever it stands."""
    require_all(fn, WHEREVER)


@BPE_ENCODE.contract
def whole_pieces(fn: Guarded) -> None:
    """Whole pieces are joined, and not their ends."""
    require_all(fn, PARTS)


@BPE_ENCODE.contract
def unknown(fn: Guarded) -> None:
    """What no merge knows stays in symbols."""
    require_all(fn, (*UNKNOWN, *NOTHING))


# Known mistakes


@BPE_ENCODE.mistake(
    hint="It takes the longest piece that fits, as WordPiece does: replay the "
    "merges in the order in which they were learned.",
    symptom="other pieces than in training, in a few words of a hundred",
)
def longest_match(word, merges):
    """From the left, the longest piece of the vocabulary."""
    known, found = {*word, *map("".join, merges)}, []
    while word:
        size = max(n for n in range(1, len(word) + 1) if word[:n] in known)
        found.append(word[:size])
        word = word[size:]
    return found


@BPE_ENCODE.mistake(
    hint="The merges are applied by their length: what counts is their order.",
    symptom="long pieces are never reached, as their parts are not there yet",
)
def longest_merge_first(word, merges):
    """Merges that make longer pieces come first."""
    return split(word, sorted(merges, key=lambda p: -len("".join(p))))


@BPE_ENCODE.mistake(
    hint="The shortest merges come first: what counts is their order.",
    symptom="right for most words, and other pieces than in training for some",
)
def shortest_merge_first(word, merges):
    """Merges are sorted by their length, and then by the alphabet."""
    return split(word, sorted(merges, key=lambda p: (len("".join(p)), p)))


@BPE_ENCODE.mistake(
    hint="The merges are applied from the last to the first.",
    symptom="words stay in small pieces, however many merges there are",
)
def last_learned_first(word, merges):
    """The list is replayed backwards."""
    return split(word, merges[::-1])


@BPE_ENCODE.mistake(
    hint="It joins the first pair from the left that any merge knows: of all "
    "pairs in the word, take the one that was learned first.",
    symptom="the beginnings of words are too long, and their ends in letters",
)
def first_from_the_left(word, merges):
    """Whatever pair comes first in the word is joined."""
    pieces, known = list(word), {*merges}
    i = 0
    while i < len(pieces) - 1:
        if (pieces[i], pieces[i + 1]) in known:
            pieces[i : i + 2] = ["".join(pieces[i : i + 2])]
            i = 0
        else:
            i += 1
    return pieces


def overlapping(pieces, pair):
    """Join every pair, also one whose first piece was used already."""
    found, used = [], False
    for i, piece in enumerate(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            found.append("".join(pair))
            used = True
        elif used:
            used = False
        else:
            found.append(piece)
    return found


@BPE_ENCODE.mistake(
    hint="Joined pairs overlap: after a pair go on behind its second piece.",
    symptom="aaa becomes aa aa: a text that decodes to another one",
)
def joins_overlapping_pairs(word, merges):
    """In a run the second piece of a pair begins the next one."""
    return split(word, merges, overlapping)


def from_the_right(pieces, pair):
    """Join, beginning at the end."""
    turned = join_pair(
        [p[::-1] for p in pieces[::-1]], (pair[1][::-1], pair[0][::-1])
    )
    return [p[::-1] for p in turned[::-1]]


@BPE_ENCODE.mistake(
    hint="Runs are joined from the right: training joins from the left.",
    symptom="other pieces than in training, in runs such as aaa only",
)
def joins_from_the_right(word, merges):
    """A loop that goes backwards, so that indices stay valid."""
    return split(word, merges, from_the_right)


def joined_once(pieces, pair):
    """Join the first place only."""
    for i, found in enumerate(pairwise(pieces)):
        if found == pair:
            return [*pieces[:i], "".join(pair), *pieces[i + 2 :]]
    return pieces


@BPE_ENCODE.mistake(
    hint="A pair is joined once in a word: go on to its end.",
    symptom="banana has more pieces than its halves",
)
def joins_the_first_only(word, merges):
    """Stops at the first place of the pair."""
    return split(word, merges, joined_once)


@BPE_ENCODE.mistake(
    hint="`replace` also finds the pair where a longer piece ends or begins "
    "so: compare whole pieces.",
    symptom="pieces that are in no vocabulary",
)
def replaces_in_a_text(word, merges):
    """`"x a b".replace("a b", "ab")`, which also changes "xa b"."""

    def replaced(pieces, pair):
        text = " ".join(pieces).replace(" ".join(pair), "".join(pair))
        return text.split(" ")

    return split(word, merges, replaced)


@BPE_ENCODE.mistake(
    hint="Symbols that no merge knows are dropped: they stay as they are.",
    symptom="rare characters vanish, and nothing is said about it",
)
def unknown_dropped(word, merges):
    """Only what the merges mention is kept."""
    known = {symbol for pair in merges for symbol in "".join(pair)}
    return [p for p in split(word, merges) if {*p} <= known]


@BPE_ENCODE.mistake(
    hint="The word stays in symbols: apply the merges.",
)
def never_merged(word, merges):
    """The symbols, and nothing joined."""
    return list(word)


@BPE_ENCODE.mistake(
    hint="A word that occurs in the vocabulary is looked up whole: replay the "
    "merges, which may lead elsewhere.",
    symptom="right for nearly all words, and other pieces for a few",
)
def whole_word_looked_up(word, merges):
    """A shortcut: if some merge makes the word, that is it."""
    return [word] if word in map("".join, merges) else split(word, merges)
