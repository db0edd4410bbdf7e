"""Texts with dropped spans, how to take the spans out, and how not to.

The words are the ids 11, 12, 13, ..., so that a message shows where each one
stood, and the sentinels count down from 99.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from companion.contracts.engine.compare import seeded

SENTINEL = 99
Ids = list[int]
Pair = tuple[Ids, Ids]


class Case(NamedTuple):
    """A text, what is dropped of it, and the first sentinel."""

    tokens: Ids
    dropped: list[bool]
    sentinel: int = SENTINEL

    @property
    def args(self) -> tuple[Tensor, Tensor, int]:
        """What the function is called with."""
        return torch.tensor(self.tokens), torch.tensor(self.dropped), self[2]


def drop(kept: str, sentinel: int = SENTINEL) -> Case:
    """A text of as many words as ``kept`` has letters; ``x`` is dropped."""
    words = [11 + i for i in range(len(kept))]
    return Case(words, [letter == "x" for letter in kept], sentinel)


PLAIN = drop("..xx.x..")
MIDDLE = (PLAIN, drop(".x.xxx.xx."), drop(".x.x.", 50))
ENDS = (drop("xx..."), drop("...xx"), drop("x...x"), drop("x.x"))
NOTHING, EVERYTHING = drop("....."), drop("xxxxx")
TWINS = Case(
    [11, 12, 11, 12, 12, 11, 11],
    [False, True, False, False, True, True, False],
)
"""Equal words, of which one is dropped and the other is not."""


def some(seed: int, length: int = 23) -> Case:
    """A text of words drawn from 11 … 40, about a third of it dropped."""
    generator = seeded(seed)
    words = torch.randint(11, 41, (length,), generator=generator)
    dropped = torch.rand(length, generator=generator) < 0.35
    return Case(words.tolist(), dropped.tolist())


def pieces(case: Case, alone: bool = False) -> list[tuple[bool, Ids]]:
    """The text cut into runs: (whether it is dropped, its tokens).

    ``alone`` makes every dropped token a run of its own.
    """
    runs: list[tuple[bool, Ids]] = []
    for token, out in zip(case.tokens, case.dropped, strict=True):
        if runs and runs[-1][0] == out and not (out and alone):
            runs[-1][1].append(token)
        else:
            runs.append((out, [token]))
    return runs


def corrupt(
    case: Case, sign: int = -1, last: bool = True, alone: bool = False
) -> Pair:
    """What is to be returned; the options are what may go wrong."""
    source, target, sentinel = [], [], case.sentinel
    for out, tokens in pieces(case, alone):
        if out:
            source.append(sentinel)
            target += [sentinel, *tokens]
            sentinel += sign
        else:
            source += tokens
    return source, target + [sentinel] * last


def without_sentinels(case: Case) -> Pair:
    """Spans are deleted, as BART's token deletion does."""
    source = [x for out, run in pieces(case) if not out for x in run]
    return source, corrupt(case)[1]


def between(case: Case) -> Pair:
    """A target of spans alone, with no sentinel anywhere."""
    spans = [x for out, run in pieces(case) if out for x in run]
    return corrupt(case)[0], spans


def behind(case: Case) -> Pair:
    """A target in which the sentinel follows its span."""
    source, target = corrupt(case, last=False)
    swapped = []
    for out, run in pieces(case):
        if out:
            sentinel, target = target[0], target[1 + len(run) :]
            swapped += [*run, sentinel]
    return source, swapped


def turned(case: Case) -> Case:
    """What was kept is dropped."""
    return case._replace(dropped=[not x for x in case.dropped])


def from_the_next(case: Case) -> Pair:
    """The first sentinel is one lower."""
    return corrupt(case._replace(sentinel=case.sentinel - 1))


MISTAKEN: dict[str, Callable[[Case], Pair]] = {
    "Every dropped token has a sentinel of its own: neighbours are one span, "
    "with one sentinel.": lambda case: corrupt(case, alone=True),
    "The spans leave nothing behind in the source, as in BART's deletion: put "
    "a sentinel there.": without_sentinels,
    "The sentinels count up: they count down, from the last id of the "
    "vocabulary.": lambda case: corrupt(case, 1),
    "Every span has the same sentinel: nobody can tell which is which. They "
    "count down.": lambda case: corrupt(case, 0),
    "The last sentinel is missing: the target ends with one more, which says "
    "that it is over.": lambda case: corrupt(case, last=False),
    "The target is the whole text, which is BART's: T5's is the dropped spans "
    "alone.": lambda case: (corrupt(case)[0], case.tokens),
    "The target holds no sentinels: each span comes behind its own.": between,
    "In the target each sentinel follows its span: it comes before it.": behind,
    "The target is the source of the opposite mask, in which a sentinel stands "
    "for what was kept: where the text begins or ends with a dropped span, it "
    "no longer fits.": lambda case: (
        corrupt(case)[0],
        corrupt(turned(case))[0],
    ),
    "What was to be dropped is kept, and the rest is dropped: True means "
    "dropped.": lambda case: corrupt(turned(case)),
    "Source and target have changed places: the source comes first.": (
        lambda case: corrupt(case)[::-1]
    ),
    "The first sentinel is skipped: the first span gets `sentinel` itself.": (
        from_the_next
    ),
}
"""Hint -> the mistake, as a function of a case."""
