"""Judge the positions that a module adds to the rows that ids look up."""

import torch
from torch import Tensor, nn

from companion.contracts.discovery.kinds.calls import CLOSE, answer
from companion.contracts.engine.modules.around import Around

__all__ = ["ADDED_ALONE", "PositionsAlone", "positions_alone"]

SEQ = 5
ONE, OTHER = 2, 3
"""Ids that stand for padding nowhere: 0 or 1 does."""

ADDED_ALONE = (
    "what it adds to the rows of its ids for their positions was added to "
    "vectors"
)


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
