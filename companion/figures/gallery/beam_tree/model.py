"""The package's beam search, watched from outside."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from companion.decoding import beam_search, length_penalty

MOST = 5
"""So many continuations of a step have room beside each other on a phone."""
LEAST = -14
"""What is less likely than one in a million is not worth a box."""

Ids = tuple[int, ...]


class Step(NamedTuple):
    """A step of the search."""

    shown: list[Ids]
    """The best continuations, the best one first."""
    kept: list[Ids]
    """Those of them that stay, or finish."""
    others: int
    """How many more continuations there were."""


class Record(NamedTuple):
    """A search from its first step to its winner."""

    tokens: list[str]
    bos: int
    eos: int
    beam: int
    max_len: int
    alpha: float
    steps: list[Step]
    totals: dict[Ids, float]
    """The log-probabilities of all tokens of a beginning, added up."""
    winner: Ids

    def names(self, ids: Ids) -> list[str]:
        """The tokens of a beginning."""
        return [self.tokens[i] for i in ids]

    def ends(self, ids: Ids) -> bool:
        """Whether it is a finished sentence."""
        return ids[-1:] == (self.eos,)

    def score(self, ids: Ids) -> float:
        """What competes in the end."""
        return self.totals[ids] / length_penalty(len(ids), self.alpha)

    def own(self, ids: Ids) -> float:
        """The log-probability of the last token alone."""
        return self.totals[ids] - self.totals[ids[:-1]]

    def alive(self, steps: int) -> list[Ids]:
        """What has finished within so many steps, and what goes on."""
        if not steps:
            return [()]
        ended = [
            h for step in self.steps[:steps] for h in step.kept if self.ends(h)
        ]
        last = self.steps[steps - 1].kept
        return ended + [h for h in last if not self.ends(h)]


def record(
    step_fn: Callable,
    tokens: list[str],
    *,
    bos: int,
    eos: int,
    beam: int,
    max_len: int,
    alpha: float,
) -> Record:
    """Runs ``companion.decoding.beam_search`` and notes what it looks at.

    Raises:
        ValueError: there are not as many names as logits.
    """
    looked: list = []
    totals: dict[Ids, float] = {(): 0.0}
    watched = _watched(step_fn, len(tokens), looked, totals)
    winner = tuple(beam_search(watched, bos, eos, beam, max_len, alpha))
    stayed = [live for live, _ in looked[1:]] + [[winner]]
    width, steps = beam, []
    for (_, found), after in zip(looked, stayed, strict=True):
        steps.append(_step(_ranked(found, totals, after), width, totals))
        width -= sum(ids[-1] == eos for ids in steps[-1].kept)
    return Record(tokens, bos, eos, beam, max_len, alpha, steps, totals, winner)


def _watched(
    step_fn: Callable, names: int, looked: list, totals: dict[Ids, float]
) -> Callable:
    """The same function, which writes down what it is asked and answers."""

    def step(rows: Tensor) -> Tensor:
        logits = step_fn(rows)
        if logits.shape[-1] != names:
            raise ValueError(
                f"tokens: expected {logits.shape[-1]} names, one a logit, got "
                f"{names}"
            )
        live = [tuple(row[1:]) for row in rows.tolist()]
        looked.append((live, _continuations(live, logits, totals)))
        return logits

    return step


def _step(ranked: list[Ids], width: int, totals: dict[Ids, float]) -> Step:
    """What a beam of that width keeps of them, and what is shown."""
    kept = ranked[:width]
    shown = [
        ids
        for ids in ranked[:MOST]
        if ids in kept or totals[ids] - totals[ids[:-1]] > LEAST
    ]
    return Step(shown, kept, len(ranked) - len(shown))


def _continuations(
    live: list[Ids], logits: Tensor, totals: dict[Ids, float]
) -> list[Ids]:
    """All that can follow; their sums, as the search has them, go to totals."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    before = wide.new_tensor([totals[ids] for ids in live])
    sums = (wide.log_softmax(-1) + before.unsqueeze(-1)).tolist()
    found: dict[Ids, float] = {
        (*ids, token): total
        for ids, row in zip(live, sums, strict=True)
        for token, total in enumerate(row)
        if total > -torch.inf
    }
    totals.update(found)
    return list(found)


def _ranked(
    found: list[Ids], totals: dict[Ids, float], stayed: list[Ids]
) -> list[Ids]:
    """The best first; of equals, those that the search went on with."""
    return sorted(found, key=lambda ids: (-totals[ids], ids not in stayed))
