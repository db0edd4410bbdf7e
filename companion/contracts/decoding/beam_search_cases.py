"""Tables on which beam searches differ, a right search, and known mistakes."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from companion.contracts.decoding.step_functions import EOS, VOCAB, Prefix

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


RATIOS = {0.6: (0.95, 1.1, 1.4, 1.62, 2.0, 2.6), 1.2: (1.3, 1.8, 2.6)}
"""alpha -> how much less likely the long sentence is; none is a close call."""

PAIRS = [
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
    patient: bool = False
    late: bool = False
    misplaced: bool = False
    rank: int = 0
    width: int | None = None

    def __call__(self, case: Case) -> list[int]:
        """The ids of the hypothesis it finds, without bos."""
        live, done = [((), 0.0)], []
        for _ in range(case.max_len):
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
        worth = lambda f: f[1] / self.penalty(len(f[0]), case.alpha)  # noqa: E731
        pool.sort(key=worth, reverse=True)
        return list(pool[self.rank][0])

    def step(self, case: Case, live: list) -> list:
        """The best continuations of ``live``."""
        found = []
        for ids, score in live:
            logs = self.logs(case.scores(ids)).tolist()
            start = live[0][0] if self.misplaced else ids
            found += [((*start, i), score + x) for i, x in enumerate(logs)]
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

MISTAKEN = {
    "This is a greedy search: one hypothesis is kept, whatever `beam` is.": (
        Search(width=1)
    ),
    "It sums probabilities: the probability of a sentence is their product, so "
    "sum log-probabilities.": Search(logs=lambda logits: logits.softmax(-1)),
    "It sums logits: `log_softmax` makes sentences comparable.": Search(
        logs=lambda logits: logits
    ),
    "It returns the last of its hypotheses: return the best.": Search(rank=-1),
    "It forgets finished hypotheses: keep them until the end, one of them may "
    "be the best.": Search(forgets=True),
    "It returns the first finished hypothesis: another may become better than "
    "it.": Search(hurries=True),
    "It extends finished hypotheses: after eos nothing follows.": Search(
        extends=True
    ),
    "Words are appended to the wrong row: candidate i of the flattened scores "
    "continues row `i // vocab`.": Search(misplaced=True),
    "`alpha` changes nothing: divide the sum of log p by the penalty.": Search(
        penalty=lambda n, alpha: 1.0
    ),
    "It multiplies by the length penalty: log p is negative, so that a long "
    "sentence gains when it is divided.": Search(
        penalty=lambda n, alpha: 1 / wu(n, alpha)
    ),
    "It takes the mean over ids, whatever `alpha` is: with 0 nothing is "
    "divided.": Search(penalty=lambda n, alpha: n),
    "It divides by (5 + n) / 6, and forgets the exponent `alpha`.": Search(
        penalty=lambda n, alpha: wu(n, 1.0)
    ),
}
"""Hint -> the search that is mistaken in this way."""
