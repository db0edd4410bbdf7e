"""Contracts of putting dropped spans back: the inverse of span corruption.

What is to come back is known, so the contracts take texts apart and ask for
them. Whether a source and a target that do not fit are refused, is up to the
writer.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.variants.span_corrupt import row
from companion.contracts.variants.span_corrupt_cases import (
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
    some,
)
from companion.contracts.variants.span_restore_cases import MISTAKEN

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
    """Raises Broken unless the text comes back."""
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
