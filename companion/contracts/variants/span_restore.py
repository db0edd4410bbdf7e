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
    row,
    some,
)
from companion.variants import span_restore

__all__ = ["SPAN_RESTORE"]

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
    """The hint of the known mistake that makes the same, or nothing."""
    texts = (*MIDDLE, *ENDS)
    results = [found(fn, case) for case in texts]

    def explains(known: Callable) -> bool:
        each = (known(*taken_apart(case)) for case in texts)
        return results == [text.tolist() for text in each]

    return next((h for h, f in SPAN_RESTORE.hints.items() if explains(f)), "")


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


def at(spans, i):
    """Span ``i``, or nothing if there is no such span."""
    return spans[i] if 0 <= i < len(spans) else []


@SPAN_RESTORE.mistake(
    hint="The source comes back as it was: put the spans where their "
    "sentinels are.",
)
def source_itself(source, target, sentinel):
    """Nothing is put back."""
    return source


@SPAN_RESTORE.mistake(
    hint="The sentinels are deleted, and the spans stay lost: the target has "
    "them.",
)
def sentinels_deleted(source, target, sentinel):
    """What was read, without its gaps."""
    return filled(source, target, sentinel, lambda i: [])


@SPAN_RESTORE.mistake(
    hint="The spans are appended: each belongs where its sentinel stands.",
    symptom="all words are there, and the sentence makes no sense",
)
def appended(source, target, sentinel):
    """What was said is put behind what was read."""
    kept = filled(source, target, sentinel, lambda i: [])
    said = [*itertools.chain(*gaps(target, sentinel))]
    return torch.cat([kept, torch.tensor(said, dtype=torch.long)])


@SPAN_RESTORE.mistake(
    hint="The sentinels stay in the text: the span takes the place of its "
    "sentinel.",
    symptom="the text has strange words before each gap that was filled",
)
def sentinels_stay(source, target, sentinel):
    """A span is put behind its sentinel, and not in its place."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: [sentinel - i, *found[i]])


@SPAN_RESTORE.mistake(
    hint="Only the first sentinel is replaced: the next one is `sentinel - 1`.",
)
def one_sentinel_only(source, target, sentinel):
    """Looks for one id, and for no other."""
    spans = gaps(target, sentinel)
    return filled(
        source, target, sentinel, lambda i: [sentinel - i] if i else spans[0]
    )


@SPAN_RESTORE.mistake(hint="Every span lands one sentinel too early.")
def one_too_early(source, target, sentinel):
    """Sentinel i gets span i + 1."""
    spans = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: at(spans, i + 1))


@SPAN_RESTORE.mistake(hint="Every span lands one sentinel too late.")
def one_too_late(source, target, sentinel):
    """Sentinel i gets span i - 1."""
    spans = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: at(spans, i - 1))


@SPAN_RESTORE.mistake(
    hint="The spans come back in the wrong order: sentinels count down.",
    symptom="the right words in one another's places",
)
def last_span_first(source, target, sentinel):
    """Sorted by id, the last sentinel comes first."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: found[-1 - i])


@SPAN_RESTORE.mistake(hint="Every span is read backwards.")
def read_backwards(source, target, sentinel):
    """Each span comes back with its last token first."""
    spans = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: spans[i][::-1])


@SPAN_RESTORE.mistake(
    hint="Only the first token of each span comes back.",
    symptom="the longer the gaps, the more is missing",
)
def a_token_a_gap(source, target, sentinel):
    """Each sentinel is replaced by the one token behind it."""
    found = gaps(target, sentinel)
    return filled(source, target, sentinel, lambda i: found[i][:1])


@SPAN_RESTORE.mistake(
    hint="What follows the last sentinel of the source is lost.",
)
def end_lost(source, target, sentinel):
    """Stops at the last sentinel of the source."""
    text = filled(source, target, sentinel, lambda i: gaps(target, sentinel)[i])
    names = [sentinel - i for i in range(len(gaps(target, sentinel)))]
    behind = [*reversed([token in names for token in source.tolist()])]
    kept = behind.index(True) if any(behind) else len(behind)
    return text[: len(text) - kept]


@SPAN_RESTORE.mistake(
    hint="The target's last sentinel is in the text: it says only that the "
    "target is over.",
)
def last_sentinel_left(source, target, sentinel):
    """The last span is taken up to the end of the target."""
    spans = gaps(target, sentinel)
    ends = {len(spans) - 1: [int(target[-1])]}
    return filled(
        source, target, sentinel, lambda i: spans[i] + ends.get(i, [])
    )


@SPAN_RESTORE.mistake(
    symptom="right for short texts: long ones are full of sentinels",
)
def ten_spans_at_most(source, target, sentinel):
    """Only the first ten sentinels have a name in the code."""
    found = gaps(target, sentinel)

    def fill(i):
        return found[i] if i < 10 else [sentinel - i]

    return filled(source, target, sentinel, fill)


@SPAN_RESTORE.mistake(
    symptom="right, but for texts in which a word stands twice",
)
def drops_repetitions(source, target, sentinel):
    """The text is put together in a dictionary of its words."""
    text = span_restore(source, target, sentinel).tolist()
    return torch.tensor(list(dict.fromkeys(text)))
