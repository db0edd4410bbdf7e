"""Judge positions beside ids, or those that a module is told to add."""

import re

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import required_names
from companion.contracts.discovery.kinds.calls import CLOSE, answer, widths
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.engine.modules.around import Around

__all__ = ["ADDED_ALONE", "PositionsAlone", "at_positions", "positions_alone"]

SEQ = 5
ONE, OTHER = 2, 3
"""Ids that stand for padding nowhere: 0 or 1 does."""

ADDED_ALONE = (
    "what it adds to the rows of its ids for their positions was added to "
    "vectors"
)


AT_POSITIONS = "it got the positions 0, 1, …, (batch, seq)"
GIVEN = re.compile(r"(?i)pos(ition)?s?(_?(ids?|idx|index|indices))?")
"""What positions are called that have to be given."""


class AtPositions(Around):
    """Gives a module the positions of the vectors that it gets.

    Args:
        module: It takes vectors, and a position for each.
    """

    def __init__(self, module: nn.Module):
        super().__init__(module, AT_POSITIONS)

    def forward(self, x: Tensor) -> Tensor:
        """Call it with ``x``, whose vectors are counted from 0."""
        places = torch.arange(x.shape[1], device=x.device)
        return self.module(x, places.expand(x.shape[:2]))


def at_positions(module: nn.Module) -> nn.Module | None:
    """Return what needs no positions to be given; None, if it takes none."""
    names = required_names(module)
    if len(names) != 2 or not GIVEN.fullmatch(names[1]):
        return None
    placed = AtPositions.named_as(module)(module)
    known = *widths(module), WIDTH
    vectors = (torch.ones(1, SEQ, width) for width in known)
    taken = any(answer(placed, (x,)) is not None for x in vectors)
    return placed if taken else None


class PositionsAlone(Around):
    """Adds to vectors what a module adds to the rows of its ids.

    Args:
        module: It takes ids.
        words: The table from which it takes their rows.
        times: By what it multiplies them.
    """

    def __init__(self, module: nn.Module, words: nn.Embedding, times: float):
        super().__init__(module)
        # No part of it: it is one of the module's already.
        self.row = lambda: times * words.weight[ONE].detach()

    def forward(self, x: Tensor) -> Tensor:
        """Add the rows for positions to ``x``."""
        ids = torch.full(x.shape[:2], ONE, device=x.device)
        return x + (self.module(ids) - self.row())


def positions_alone(module: nn.Module) -> tuple[nn.Module, int] | None:
    """Return what adds the positions of a module of ids, and how wide it is.

    None, if it adds none, or does more than that.
    """
    ids = torch.full((1, SEQ), ONE)
    changed = ids.clone()
    changed[0, 2] = OTHER
    calls = ids, torch.full((1, SEQ), OTHER), changed
    got, other, mixed = (answer(module, (x,)) for x in calls)
    if got is None or other is None or mixed is None or got.ndim != 3:
        return None
    place = torch.arange(SEQ)[:, None] == 2
    apart = torch.allclose(mixed, torch.where(place, other, got), **CLOSE)
    constant = torch.allclose(got, got[:, :1].expand_as(got), **CLOSE)
    if not apart or constant:
        return None
    for words in module.modules():
        if not isinstance(words, nn.Embedding):
            continue
        rows = words.weight[[ONE, OTHER]] if len(words.weight) > OTHER else None
        if rows is None or rows.shape[1] != got.shape[2]:
            continue
        between = rows[0] - rows[1]
        times = float((got - other)[0, 0] @ between / between.square().sum())
        expected = (times * between).expand_as(got)
        if torch.allclose(got - other, expected, **CLOSE):
            return PositionsAlone(module, words, times), got.shape[2]
    return None
