"""Contracts of putting dropped spans back: the inverse of span corruption.

What is to come back is known, so the contracts take texts apart and ask for
them. Whether a source and a target that do not fit are refused, is up to the
writer.
"""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.variants.span_corrupt import (
    ENDS,
    EVERYTHING,
    MIDDLE,
    NOTHING,
    PLAIN,
    TWINS,
    Case,
    Ids,
    corrupt,
    drop,
    pieces,
    row,
    some,
)
from companion.variants import span_restore

__all__ = ["SPAN_RESTORE"]


def spans(case: Case) -> list[Ids]:
    """The runs that are dropped."""
    return [run for out, run in pieces(case) if out]


def put_back(case: Case, fill: Callable[[int], Ids]) -> Ids:
    """The source, with ``fill(i)`` for sentinel i."""
    restored: Ids = []
    count = 0
    for out, run in pieces(case):
        restored += fill(count) if out else run
        count += out
    return restored


def at(runs: list[Ids], i: int) -> Ids:
    """Run ``i``, or none if there is no such run."""
    return runs[i] if 0 <= i < len(runs) else []


def tail_lost(case: Case) -> Ids:
    """What follows the last sentinel of the source is forgotten."""
    runs = pieces(case)
    while runs and not runs[-1][0]:
        runs.pop()
    return [x for _, run in runs for x in run]


def filled_once(case: Case) -> Ids:
    """Only the first sentinel is replaced."""
    sentinel = case.sentinel
    return put_back(
        case, lambda i: spans(case)[i] if i == 0 else [sentinel - i]
    )


MISTAKEN: dict[str, Callable[[Case], Ids]] = {
    "The source comes back as it was: put the spans where their sentinels "
    "are.": lambda case: corrupt(case)[0],
    "The sentinels are deleted, and the spans stay lost: the target has "
    "them.": lambda case: put_back(case, lambda i: []),
    "The spans are appended: each belongs where its sentinel stands.": (
        lambda case: [
            *put_back(case, lambda i: []),
            *(x for span in spans(case) for x in span),
        ]
    ),
    "The sentinels stay in the text: the span takes the place of its "
    "sentinel.": lambda case: put_back(
        case, lambda i: [case.sentinel - i, *spans(case)[i]]
    ),
    "Only the first sentinel is replaced: the next one is `sentinel - 1`.": (
        filled_once
    ),
    "Every span lands one sentinel too early.": lambda case: put_back(
        case, lambda i: at(spans(case), i + 1)
    ),
    "Every span lands one sentinel too late.": lambda case: put_back(
        case, lambda i: at(spans(case), i - 1)
    ),
    "The spans come back in the wrong order: sentinels count down.": (
        lambda case: put_back(case, lambda i: spans(case)[-1 - i])
    ),
    "Every span is read backwards.": lambda case: put_back(
        case, lambda i: spans(case)[i][::-1]
    ),
    "Only the first token of each span comes back.": lambda case: put_back(
        case, lambda i: spans(case)[i][:1]
    ),
    "What follows the last sentinel of the source is lost.": tail_lost,
    "The target's last sentinel is in the text: it says only that the target "
    "is over.": lambda case: put_back(
        case,
        lambda i: (
            spans(case)[i]
            + [case.sentinel - i - 1] * (i == len(spans(case)) - 1)
        ),
    ),
}
"""Hint -> the mistake, as a function of the text that was taken apart."""


MANY = drop("x." * 12)


def taken_apart(case: Case) -> tuple[Tensor, Tensor, int]:
    """Source, target and first sentinel."""
    source, target = corrupt(case)
    return torch.tensor(source), torch.tensor(target), case.sentinel


SPAN_RESTORE = Component(
    name="span_restore",
    signature="span_restore(source, target, sentinel)",
    returns="the text, a tensor of ids with one axis",
    shape_contract="It returns a text",
    read=row,
    cases=lambda: {"for two spans": taken_apart(PLAIN)},
)


def mistake(fn: Guarded) -> str:
    """The known mistake that makes the same of every text, or nothing."""
    texts = (*MIDDLE, *ENDS)
    results = [found(fn, case) for case in texts]
    known = (
        hint
        for hint, wrong in MISTAKEN.items()
        if results == [wrong(case) for case in texts]
    )
    return next(known, "")


def found(fn: Guarded, case: Case) -> Ids:
    """What ``fn`` makes of a text that was taken apart."""
    return fn(*taken_apart(case))


def require(fn: Guarded, case: Case) -> None:
    """Raise Broken unless the text comes back."""
    got = found(fn, case)
    if got != case.tokens:
        hint = mistake(fn)
        source, target = corrupt(case)
        says = (
            f"From the source {source}, the target {target} and the sentinel "
            f"{case.sentinel} it made {got}: expected {case.tokens}."
        )
        raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@SPAN_RESTORE.before_reference
def inverse(fn: Guarded) -> None:
    """Each span takes the place of its sentinel."""
    for case in MIDDLE:
        require(fn, case)


@SPAN_RESTORE.contract
def ends(fn: Guarded) -> None:
    """A text may begin or end with a span."""
    for case in ENDS:
        require(fn, case)


@SPAN_RESTORE.contract
def nothing(fn: Guarded) -> None:
    """A source without a sentinel is the text."""
    require(fn, NOTHING)


@SPAN_RESTORE.contract
def everything(fn: Guarded) -> None:
    """A source of one sentinel leaves the text to the target."""
    require(fn, EVERYTHING)


@SPAN_RESTORE.contract
def twins(fn: Guarded) -> None:
    """Equal tokens are told apart by their place."""
    require(fn, TWINS)


@SPAN_RESTORE.contract
def many(fn: Guarded) -> None:
    """It takes as many spans as there are."""
    require(fn, MANY)


@SPAN_RESTORE.contract
def random(fn: Guarded) -> None:
    """Whatever was dropped comes back."""
    for seed in range(10):
        require(fn, some(seed))


# Known mistakes


def gaps(target, sentinel):
    """The spans of a target, in order."""
    found = []
    for token in target.tolist():
        if token == sentinel - len(found):
            found.append([])
        else:
            found[-1].append(token)
    return found[:-1]


def filled(source, target, sentinel, fill):
    """The source, with ``fill(i)`` for sentinel i."""
    count, text = len(gaps(target, sentinel)), []
    for token in source.tolist():
        i = sentinel - token
        text += fill(i) if 0 <= i < count else [token]
    return torch.tensor(text, dtype=torch.long)


@SPAN_RESTORE.mistake(
    "appended",
    hint="The spans are appended: each belongs where its sentinel stands.",
    symptom="all words are there, and the sentence makes no sense",
)
def appended(source, target, sentinel):
    """What was said is put behind what was read."""
    kept = filled(source, target, sentinel, lambda i: [])
    said = [*itertools.chain(*gaps(target, sentinel))]
    return torch.cat([kept, torch.tensor(said, dtype=torch.long)])


@SPAN_RESTORE.mistake(
    "sentinels-stay",
    hint="The sentinels stay in the text: the span takes the place of its "
    "sentinel.",
    symptom="the text has strange words before each gap that was filled",
)
def sentinels_stay(source, target, sentinel):
    """A span is put behind its sentinel, and not in its place."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: [sentinel - i, *found[i]])


@SPAN_RESTORE.mistake(
    "last-span-first",
    hint="The spans come back in the wrong order: sentinels count down.",
    symptom="the right words in one another's places",
)
def last_span_first(source, target, sentinel):
    """Sorted by id, the last sentinel comes first."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: found[-1 - i])


@SPAN_RESTORE.mistake(
    "a-token-a-gap",
    hint="Only the first token of each span comes back.",
    symptom="the longer the gaps, the more is missing",
)
def a_token_a_gap(source, target, sentinel):
    """Each sentinel is replaced by the one token behind it."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: found[i][:1])


@SPAN_RESTORE.mistake(
    "ten-spans-at-most",
    symptom="right for short texts: long ones are full of sentinels",
)
def ten_spans_at_most(source, target, sentinel):
    """Only the first ten sentinels have a name in the code."""
    found = gaps(target, sentinel)

    def fill(i):
        return found[i] if i < 10 else [sentinel - i]

    return filled(source, target, sentinel, fill)


@SPAN_RESTORE.mistake(
    "drops-repetitions",
    symptom="right, but for texts in which a word stands twice",
)
def drops_repetitions(source, target, sentinel):
    """The text is put together in a dictionary of its words."""
    text = span_restore(source, target, sentinel).tolist()
    return torch.tensor(list(dict.fromkeys(text)))
