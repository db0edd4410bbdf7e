"""Ways to put dropped spans back, and how it may go wrong."""

from collections.abc import Callable

from companion.contracts.variants.span_corrupt_cases import (
    Case,
    Ids,
    corrupt,
    pieces,
)


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
