"""Contracts of beam search: several hypotheses side by side.

When a search may stop early, and how it fills up its beam, is up to its
writer: the tables are such that customary ways find the same. The same holds
for the length penalty, that of Wu et al. or n^alpha.
"""

import functools
from dataclasses import replace
from itertools import product

from companion.contracts.decoding.beam_search_cases import (
    BEST,
    CUT,
    GARDEN,
    MISTAKEN,
    PAIRS,
    RIGHT,
    SHORT,
    SILENT,
    WHOLE,
    Case,
    Search,
    branches,
)
from companion.contracts.decoding.step_functions import (
    BOS,
    EOS,
    Speaker,
    read_ids,
)
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded

BEAM_SEARCH = Component(
    name="beam_search",
    signature="beam_search(step_fn, bos, eos, beam, max_len, alpha)",
    returns="a list of ids, without bos, up to eos",
    shape_contract="It returns ids",
    read=read_ids,
    cases=lambda: {"for two beams": (Speaker(GARDEN, 5), BOS, EOS, 2, 5, 0.0)},
)


def found(fn: Guarded, case: Case) -> list[int]:
    """What ``fn`` finds, without the bos that another contract speaks of."""
    speaker = Speaker(case.scores, case.max_len)
    ids = fn(speaker, BOS, EOS, *case[1:])
    return ids[1:] if ids[:1] == [BOS] else ids


def mistake(fn: Guarded) -> str:
    """The known mistake that finds the same everywhere, or nothing."""
    results = [found(fn, case) for case in BEST + PAIRS]
    known = (hint for hint in MISTAKEN if results in mistaken(hint))
    return next(known, "")


@functools.cache
def mistaken(hint: str) -> list[list[list[int]]]:
    """What a mistake finds everywhere, in each way to stop and to sort."""
    ways = product((False, True), repeat=2)
    searches = (
        replace(MISTAKEN[hint], patient=patient, late=late)
        for patient, late in ways
    )
    return [[search(case) for case in BEST + PAIRS] for search in searches]


def log_p(case: Case, ids: list[int]) -> float:
    """The log-probability of ``ids``."""
    logs = (
        case.scores(tuple(ids[:n])).log_softmax(-1) for n in range(len(ids))
    )
    return sum(row[i].item() for row, i in zip(logs, ids, strict=True))


def require_best(fn: Guarded, case: Case, expected: list[int]) -> None:
    """Raises Broken unless it finds ``expected``."""
    got = found(fn, case)
    if got == expected:
        return
    hint = mistake(fn) or ended(got, case.max_len)
    known = all(0 <= i < len(case.scores(())) for i in got)
    p = f" with log p {log_p(case, got):.3g}" if known else ""
    says = (
        f"With beam {case.beam}, max_len {case.max_len} and alpha "
        f"{case.alpha:g} it returned {got}{p}: {expected} has "
        f"{log_p(case, expected):.3g}."
    )
    raise Broken(f"{hint} {says}" if hint else says, cause=hint)


def ended(ids: list[int], max_len: int) -> str:
    """What is wrong with the end of a result, if it can be seen."""
    if EOS in ids[:-1]:
        return "There are ids after eos: nothing follows it."
    if EOS not in ids and len(ids) < max_len:
        return "It ends without eos, before `max_len`."
    if len(ids) > max_len:
        return "It is longer than `max_len`."
    return ""


@BEAM_SEARCH.before_reference
def start(fn: Guarded) -> None:
    """bos is not part of the result."""
    ids = fn(*BEAM_SEARCH.example)
    if ids[:1] == [BOS]:
        raise Broken(
            f"It returned {ids}, which begins with bos: nobody said it. Leave "
            "it out."
        )


@BEAM_SEARCH.before_reference
def one_beam(fn: Guarded) -> None:
    """With one beam it is a greedy search."""
    for scores in (GARDEN, SHORT, branches(3), branches(7, stop=False)):
        case = Case(scores, 1, 5)
        got, expected = found(fn, case), Search()(case)
        if got != expected:
            hint = mistake(fn) or ended(got, case.max_len)
            says = f"With beam 1 it returned {got}: greedy is {expected}."
            raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@BEAM_SEARCH.contract
def garden(fn: Guarded) -> None:
    """Two beams find what a greedy search misses."""
    require_best(fn, Case(GARDEN, 2, 5), [4, 8, EOS])


@BEAM_SEARCH.contract
def finished(fn: Guarded) -> None:
    """What is finished stays, and is extended no more."""
    require_best(fn, Case(SHORT, 3, 6), [3, EOS])
    require_best(fn, Case(SILENT, 3, 4), [EOS])


@BEAM_SEARCH.contract
def brute_force(fn: Guarded) -> None:
    """With beams enough it finds the most likely sentence of all."""
    for case in WHOLE:
        require_best(fn, case, best_of_all(case))


@BEAM_SEARCH.contract
def cut(fn: Guarded) -> None:
    """Without eos it returns the most likely `max_len` ids."""
    for case in CUT:
        require_best(fn, case, best_of_all(case))


@functools.cache
def penalised() -> list[list[list[int]]]:
    """What is right where a long sentence competes with a short one."""
    return [[search(case) for case in PAIRS] for search in RIGHT]


@functools.cache
def best_of_all(case: Case) -> list[int]:
    """The most likely of all sentences of two words, up to eos."""
    every = [
        [*words, EOS]
        for n in range(case.max_len)
        for words in product((3, 4), repeat=n)
    ]
    every += [list(words) for words in product((3, 4), repeat=case.max_len)]
    return max(every, key=lambda ids: log_p(case, ids))


@BEAM_SEARCH.contract
def penalty(fn: Guarded) -> None:
    """With alpha it divides by the length penalty."""
    got, ways = [found(fn, case) for case in PAIRS], penalised()
    if got in ways:
        return
    hint = mistake(fn)
    near = min(ways, key=lambda way: sum(map(list.__ne__, way, got)))
    at = next(i for i, ids in enumerate(near) if ids != got[i])
    case = PAIRS[at]
    says = (
        f"With alpha {case.alpha:g} it returned {got[at]}, log p "
        f"{log_p(case, got[at]):.3g}: expected {near[at]}, log p "
        f"{log_p(case, near[at]):.3g}. The penalty is ((5 + n) / 6)^alpha, for "
        "n ids, or n^alpha."
    )
    raise Broken(f"{hint} {says}" if hint else says, cause=hint)
