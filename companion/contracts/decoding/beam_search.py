"""Contracts of beam search: several hypotheses side by side.

When a search may stop early, and how it fills up its beam, is up to its
writer: the tables are such that customary ways find the same. The same holds
for the length penalty, that of Wu et al. or n^alpha.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from companion.contracts.decoding.step_functions import (
    BOS,
    EOS,
    VOCAB,
    Prefix,
    StubModel,
    read_ids,
)
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE

__all__ = ["BEAM_SEARCH"]

Chances = dict[Prefix, dict[int, float]]
Scores = Callable[[Prefix], Tensor]

JUNK = 10
"""The id that follows the impossible."""


class Case(NamedTuple):
    """A table, and how it is searched."""

    scores: Scores
    beam: int
    max_len: int
    alpha: float = 0.0


def never() -> Tensor:
    """The logits of what never comes, eos least of all; no two are equal."""
    logits = -40 - 0.1 * torch.arange(VOCAB)
    logits[EOS] = -60
    return logits


def tree(chances: Chances) -> Scores:
    """Logits of a table of probabilities, each raised by a number of its own.

    Where the table ends one id is certain, so that whoever extends what is
    finished pays nothing for it.
    """

    @functools.cache
    def scores(prefix: Prefix) -> Tensor:
        logits = never()
        for token, chance in chances.get(prefix, {JUNK: 1.0}).items():
            logits[token] = math.log(chance)
        # Raw logits then prefer what has little to do with the chances.
        return logits - 5 * (sum(prefix) % 4)

    return scores


def branches(seed: int, stop: bool = True) -> Scores:
    """Two words and, with ``stop``, eos, as likely as it happens."""

    @functools.cache
    def scores(prefix: Prefix) -> Tensor:
        mixed = seed
        for token in prefix:
            mixed = (7919 * mixed + 104_729 * token) % 1_000_003
        generator = torch.Generator().manual_seed(mixed)
        logits = never()
        ids = [3, 4, EOS] if stop else [3, 4]
        logits[ids] = 1.5 * torch.randn(len(ids), generator=generator)
        return logits - 5 * (sum(prefix) % 4)

    return scores


GARDEN = tree({
    (): {3: 0.55, 4: 0.45},
    (3,): {5: 0.4, 6: 0.3, 7: 0.3},
    (4,): {8: 0.95, 5: 0.05},
    (3, 5): {EOS: 0.9, 6: 0.1},
    (3, 6): {EOS: 0.9, 5: 0.1},
    (3, 7): {EOS: 0.9, 5: 0.1},
    (4, 8): {EOS: 0.9, 6: 0.1},
})  # fmt: skip

SHORT = tree({
    (): {3: 0.9, 4: 0.1},
    (3,): {EOS: 0.5, 5: 0.3, 6: 0.2},
    (3, 5): {7: 0.95, EOS: 0.05},
    (3, 5, 7): {8: 0.95, EOS: 0.05},
    (3, 5, 7, 8): {EOS: 0.95, 9: 0.05},
    (3, 6): {EOS: 0.5, 7: 0.5},
    (3, 6, 7): {EOS: 1.0},
})  # fmt: skip

# After eos nothing is likely, so that it is dear to go on.
SPENT = dict.fromkeys(range(3, VOCAB), 1 / (VOCAB - 3))
COSTLY = tree({
    (): {3: 0.55, 4: 0.45},
    (3,): {EOS: 0.9, 5: 0.1},
    (4,): {5: 0.9, 6: 0.1},
    (4, 5): {6: 0.9, 7: 0.1},
    (4, 5, 6): {EOS: 0.9, 7: 0.1},
    (3, EOS): SPENT,
    **{(3, EOS, word): SPENT for word in SPENT},
})  # fmt: skip

SILENT = tree({
    (): {EOS: 0.6, 3: 0.4},
    (3,): {EOS: 0.8, 4: 0.2},
})  # fmt: skip


def pair(ratio: float) -> Scores:
    """Two ids with log p = -1 against five with log p = -``ratio``."""
    short, long = math.exp(-1), math.exp(-ratio)
    rest = {word: (word + 30) / 292 for word in range(3, VOCAB)}
    wide = {9: 1 - short - long}
    wider = {(9,) + (word,) * n: rest for n in range(6) for word in rest}
    return tree({
        (): {3: short, 4: long, **wide},
        (3,): {EOS: 1.0},
        (4,): {5: 1.0},
        (4, 5): {6: 1.0},
        (4, 5, 6): {7: 1.0},
        (4, 5, 6, 7): {EOS: 1.0},
        **wider,
    })  # fmt: skip


NO_ALPHA = "`alpha` changes nothing: divide the sum of log p by the penalty."
NO_PENALTY = (
    "A search that takes no `alpha` is right so; one that takes it should use "
    "it."
)
RATIOS = {0.6: (0.95, 1.1, 1.4, 1.62, 2.0, 2.6), 1.2: (1.3, 1.8, 2.6)}
"""alpha -> how much less likely the long sentence is; none is a close call."""


@functools.cache  # Made when asked for: the rest of this file takes less time.
def pairs() -> list[Case]:
    """Searches in which the length penalty decides."""
    return [
        Case(pair(ratio), 3, 6, alpha)
        for alpha, ratios in RATIOS.items()
        for ratio in ratios
    ]


# In these tables four beams are enough, whenever a search stops.
WHOLE = [Case(branches(seed), 4, 4) for seed in (9, 11, 38, 49)]
CUT = [Case(branches(seed, stop=False), 4, 3) for seed in (65, 70, 77)]

BEST = [
    Case(GARDEN, 2, 5),
    Case(SHORT, 3, 6),
    Case(COSTLY, 3, 4),
    Case(SILENT, 3, 4),
    *WHOLE,
    *CUT,
]


def wu(n: int, alpha: float) -> float:
    """The length penalty of Wu et al. (2016), equation 14, for n ids."""
    return ((5 + n) / 6) ** alpha


@dataclass(frozen=True)
class Search:
    """A beam search, put together from what can go wrong in it.

    Attributes:
        logs: From logits, what is summed up.
        penalty: From a number of ids and alpha, what the sum is divided by.
        forgets: Whether a finished hypothesis is dropped.
        hurries: Whether the first finished one is returned.
        extends: Whether a finished one is extended like any other.
        cuts: Whether all after eos is cut off at the end.
        copies: Whether it starts from as many copies of bos as are kept.
        apart: Whether each hypothesis is replaced by its own best
            continuation, however good others are.
        shrinks: Whether a sum is divided by the penalty at each step.
        spare: How many steps less than asked for are made.
        patient: Whether it goes on when enough of them are finished.
        late: Whether the larger id comes first where two are as good.
        misplaced: Whether all words are appended to the first row.
        rank: Which of the hypotheses is returned.
        width: How many are kept, if not as many as asked for.
    """

    logs: Callable = lambda logits: logits.log_softmax(-1)
    penalty: Callable = wu
    forgets: bool = False
    hurries: bool = False
    extends: bool = False
    cuts: bool = False
    copies: bool = False
    apart: bool = False
    shrinks: bool = False
    spare: int = 0
    patient: bool = False
    late: bool = False
    misplaced: bool = False
    rank: int = 0
    width: int | None = None

    def __call__(self, case: Case) -> list[int]:
        """The ids of the hypothesis it finds, without bos."""
        live, done = [((), 0.0)] * (case.beam if self.copies else 1), []
        for _ in range(case.max_len - self.spare):
            found = self.step(case, live)
            ends = [] if self.extends else [f for f in found if f[0][-1] == EOS]
            live = [f for f in found if f not in ends]
            done += [] if self.forgets else ends
            enough = len(done) >= (1 if self.hurries else case.beam)
            if enough and not self.patient:
                live = []
            if not live:
                break
        pool = done + live or ends
        pool.sort(
            key=lambda f: f[1] / self.penalty(len(f[0]), case.alpha),
            reverse=True,
        )
        ids = list(pool[self.rank][0])
        return ids[: ids.index(EOS) + 1] if self.cuts and EOS in ids else ids

    def decode(self, step_fn, bos, eos, beam, max_len, alpha) -> list[int]:
        """Search as the function of a learner does."""

        def scores(ids: Prefix) -> Tensor:
            return step_fn(torch.tensor([[bos, *ids]]))[0]

        return self(Case(scores, beam, max_len, alpha))

    def step(self, case: Case, live: list) -> list:
        """The best continuations of ``live``."""
        found = []
        for ids, score in live:
            logs = self.logs(case.scores(ids)).tolist()
            start = live[0][0] if self.misplaced else ids
            by = self.penalty(len(ids) + 1, case.alpha) if self.shrinks else 1
            more = [((*start, i), (score + x) / by) for i, x in enumerate(logs)]
            if self.apart and len(live) > 1:
                more = [max(more, key=lambda f: f[1])]
            found += more
        found.sort(reverse=self.late)
        found.sort(key=lambda f: f[1], reverse=True)
        return found[: self.width or case.beam]


RIGHT = [
    Search(penalty=penalty)
    for more in (0, -1, 1)
    for penalty in (
        lambda n, alpha, more=more: wu(n + more, alpha),
        lambda n, alpha, more=more: max(n + more, 0.1) ** alpha,
    )
]
"""Two customary penalties; eos may count as one of the ids, and bos too."""

BEAM_SEARCH = Component(
    name="beam_search",
    signature="beam_search(step_fn, bos, eos, beam, max_len, alpha)",
    returns="a list of ids, without bos, up to eos",
    shape_contract="It returns ids",
    read=read_ids,
    cases=lambda: {
        "for two beams": (StubModel(GARDEN, 5), BOS, EOS, 2, 5, 0.0)
    },
)


def found(fn: Guarded, case: Case) -> list[int]:
    """What ``fn`` finds, without the bos that another contract speaks of."""
    model = StubModel(case.scores, case.max_len)
    ids = fn(model, BOS, EOS, *case[1:])
    return ids[1:] if ids[:1] == [BOS] else ids


def mistake(fn: Guarded) -> str:
    """The hint of the known mistake that finds the same, or nothing."""
    results = [found(fn, case) for case in BEST + pairs()]
    known = (hint for hint in BEAM_SEARCH.hints if results in mistaken(hint))
    hint = next(known, "")
    return COPIES if hint == GREEDY and asks_again(fn) else hint


def asks_again(fn: Guarded) -> bool:
    """Whether it asks for the same prefix twice, and no longer at the start."""
    model = StubModel(GARDEN, 5)
    fn(model, BOS, EOS, 2, 5, 0.0)
    rows = [row for asked in model.asked for row in asked if len(row) > 1]
    return len(set(rows)) < len(rows)


@functools.cache
def mistaken(hint: str) -> list[list[list[int]]]:
    """What a mistake finds everywhere, in each way to stop and to sort."""
    decode = BEAM_SEARCH.hints[hint]

    def finds(case: Case, search: Search) -> list[int]:
        step_fn = StubModel(case.scores, case.max_len)
        return decode(step_fn, BOS, EOS, *case[1:], search=search)

    ways = product((False, True), repeat=2)
    searches = (Search(patient=patient, late=late) for patient, late in ways)
    return [[finds(case, s) for case in BEST + pairs()] for s in searches]


def log_p(case: Case, ids: list[int]) -> float:
    """The log-probability of ``ids``."""
    logs = (
        case.scores(tuple(ids[:n])).log_softmax(-1) for n in range(len(ids))
    )
    return sum(row[i].item() for row, i in zip(logs, ids, strict=True))


def require_best(fn: Guarded, case: Case, expected: list[int]) -> None:
    """Raise Broken unless it finds ``expected``."""
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
    require_best(fn, Case(COSTLY, 3, 4), [3, EOS])
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
    return [[search(case) for case in pairs()] for search in RIGHT]


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
    got, ways = [found(fn, case) for case in pairs()], penalised()
    if got in ways:
        return
    hint = mistake(fn)
    level, why = (NOTE, NO_PENALTY) if hint == NO_ALPHA else ("", "")
    near = min(ways, key=lambda way: sum(map(list.__ne__, way, got)))
    at = next(i for i, ids in enumerate(near) if ids != got[i])
    case = pairs()[at]
    says = (
        f"With alpha {case.alpha:g} it returned {got[at]}, log p "
        f"{log_p(case, got[at]):.3g}: expected {near[at]}, log p "
        f"{log_p(case, near[at]):.3g}. The penalty is ((5 + n) / 6)^alpha, for "
        "n ids, or n^alpha."
    )
    says = f"{hint} {says}" if hint else says
    raise Broken(says, cause=hint, level=level, why=why)


# Known mistakes

RIGHT_SEARCH = Search()
GREEDY = "This is a greedy search: one hypothesis is kept, whatever `beam` is."
COPIES = (
    "All hypotheses are copies of one: at the first step each row holds bos "
    "alone, and the same continuation is the best of each. Keep one row at "
    "first, or set the other rows' sums to -∞."
)


@BEAM_SEARCH.mistake(
    hint=GREEDY,
    symptom="ten beams are ten times as slow, and find what one finds",
)
def greedy_in_disguise(*args, search=RIGHT_SEARCH):
    """Takes the best continuation of each step, whatever `beam` is."""
    return replace(search, width=1).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It sums probabilities: the probability of a sentence is their "
    "product, so sum log-probabilities.",
    symptom="long sentences win, the longer the better",
)
def adds_probabilities(*args, search=RIGHT_SEARCH):
    """Probabilities are added instead of their logarithms."""
    return replace(search, logs=lambda x: x.softmax(-1)).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It sums logits: `log_softmax` makes sentences comparable.",
    symptom="the likeliest sentence loses to one whose logits happen to be "
    "high",
)
def adds_logits(*args, search=RIGHT_SEARCH):
    """Raw logits are added, which mean something within one row only."""
    return replace(search, logs=lambda logits: logits).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It returns the last of its hypotheses: return the best.",
    symptom="more beams, worse sentences",
)
def returns_the_last(*args, search=RIGHT_SEARCH):
    """Sorted upwards, and the first one is taken."""
    return replace(search, rank=-1).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It forgets finished hypotheses: keep them until the end, one of "
    "them may be the best.",
    symptom="no sentence is ever short",
)
def forgets_the_finished(*args, search=RIGHT_SEARCH):
    """What ends leaves the beam, and goes nowhere."""
    return replace(search, forgets=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It returns the first finished hypothesis: another may become better "
    "than it.",
    symptom="more beams, shorter sentences, of which many are empty",
)
def returns_the_first_finished(*args, search=RIGHT_SEARCH):
    """Whatever ends first is the answer."""
    return replace(search, hurries=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It extends finished hypotheses: after eos nothing follows.",
    symptom="sentences with an end in the middle",
)
def extends_the_finished(*args, search=RIGHT_SEARCH):
    """eos is a word like any other."""
    return replace(search, extends=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint="Words are appended to the wrong row: candidate i of the flattened "
    "scores continues row `i // vocab`.",
    symptom="sentences that begin well and end in another one",
)
def appends_to_the_first(*args, search=RIGHT_SEARCH):
    """Which row a candidate continues is forgotten: all continue the best."""
    return replace(search, misplaced=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint=NO_ALPHA,
    symptom="alpha can be tuned for days: nothing changes",
)
def unpenalised(*args, search=RIGHT_SEARCH):
    """Sums are compared as they are: whatever is short wins."""
    return replace(search, penalty=lambda n, alpha: 1.0).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It multiplies by the length penalty: log p is negative, so that a "
    "long sentence gains when it is divided.",
    symptom="the larger alpha is, the shorter the sentences",
)
def times_the_penalty(*args, search=RIGHT_SEARCH):
    """Multiplies negative sums by a penalty that grows."""
    return replace(search, penalty=lambda n, alpha: 1 / wu(n, alpha)).decode(
        *args
    )


@BEAM_SEARCH.mistake(
    hint="It takes the mean over ids, whatever `alpha` is: with 0 nothing is "
    "divided.",
    symptom="with alpha 0 it is not the likeliest sentence that wins",
)
def always_the_mean(*args, search=RIGHT_SEARCH):
    """Divides by the number of ids, without being asked to."""
    return replace(search, penalty=lambda n, alpha: n).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It divides by (5 + n) / 6, and forgets the exponent `alpha`.",
)
def without_the_exponent(*args, search=RIGHT_SEARCH):
    """The penalty of alpha 1, whatever alpha is."""
    return replace(search, penalty=lambda n, alpha: wu(n, 1.0)).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It extends finished hypotheses, and cuts off at the end what follows "
    "eos: what was paid for that stays in their sums. Put them aside.",
    symptom="good short sentences lose, and which of them wins is chance",
)
def extends_and_cuts(*args, search=RIGHT_SEARCH):
    """eos is a word like any other, until the result is printed."""
    return replace(search, extends=True, cuts=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint=COPIES,
    symptom="ten beams are ten times as slow, and all of them say the same",
)
def copies_of_one_beam(*args, search=RIGHT_SEARCH):
    """bos stands in as many rows as there are beams, all of them equal."""
    return replace(search, copies=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint="Hypotheses never compete: each is replaced by its own best "
    "continuation. Take the best of all continuations together.",
    symptom="the beams differ in their first word, and a wrong start lives on",
)
def beams_apart(*args, search=RIGHT_SEARCH):
    """`topk` row by row: so many greedy searches side by side."""
    return replace(search, apart=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint="The sum is divided by the penalty at every step, and goes on from "
    "there: the first words count less and less. Divide only what is compared.",
    symptom="with alpha it prefers whatever ends well",
)
def shrinks_at_each_step(*args, search=RIGHT_SEARCH):
    """The score that is compared becomes the sum that is added to."""
    return replace(search, shrinks=True).decode(*args)


@BEAM_SEARCH.mistake(
    hint="It makes one step less than `max_len`: bos was counted.",
    symptom="long sentences lack their last word",
)
def bos_is_counted(*args, search=RIGHT_SEARCH):
    """The loop ends when the row, bos included, is `max_len` long."""
    return replace(search, spare=1).decode(*args)
