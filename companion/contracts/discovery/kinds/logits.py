"""Put logits where the contracts look for them."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.contracts.discovery.arguments import BATCH, least_arguments
from companion.contracts.discovery.kinds.calls import answer, first
from companion.contracts.engine.modules.around import Around

__all__ = ["in_their_place"]

IN_THE_MIDDLE = (
    "its logits were (batch, vocab, seq), as PyTorch's `cross_entropy` takes "
    "them, and the vocabulary was put last"
)
FIRST_ROW = (
    "its first row of logits is the same whatever goes in: it got whole "
    "targets, which it shifts itself, and that row was left out"
)
SHORT, LONG = 3, 5
"""How many ids there are in a row."""


class VocabularyLast(Around):
    """Turns the logits (batch, vocab, seq) of a model into the usual ones."""

    def __init__(self, module: nn.Module):
        super().__init__(module, IN_THE_MIDDLE)
        self.forward = self.like(module, self.turned)

    def turned(self, *args: Any, **named: Any) -> Tensor:
        """Call it, and put the vocabulary last."""
        return first(self.module(*args, **named)).mT


class WithoutFirstRow(Around):
    """Gives a translator whole targets, and leaves out what answers none."""

    def __init__(self, module: nn.Module):
        super().__init__(module, FIRST_ROW)
        self.forward = self.like(module, self.shifted)

    def shifted(self, src: Tensor, tgt: Tensor, *args: Any, **named: Any):
        """Call it with one more token behind the targets."""
        longer = F.pad(tgt, (0, 1), value=1)
        return first(self.module(src, longer, *args, **named))[:, 1:]


def in_their_place(module: nn.Module, known: Iterable[int]) -> nn.Module:
    """Return a model whose logits stand where the contracts look for them.

    It is the same one, if they do anyway, or if that cannot be told.

    Args:
        module: It takes one row of ids, or two.
        known: How many ids its tables know.
    """
    if any(vocabulary_second(module, rows, {*known}) for rows in (1, 2)):
        return VocabularyLast.named_as(module)(module).eval()
    if first_row_is_empty(module):
        return WithoutFirstRow.named_as(module)(module).eval()
    return module


def answered(module: nn.Module, *rows: Tensor) -> Tensor | None:
    """Return what comes of rows of ids, and of nothing else."""
    rest = [None] * (least_arguments(module) - len(rows))
    found = answer(module, (*rows, *rest))
    return found if found is not None and found.ndim == 3 else None


def vocabulary_second(module: nn.Module, rows: int, known: set[int]) -> bool:
    """Tell whether logits come as (batch, vocab, seq)."""
    sizes = set()
    for length in (SHORT, LONG):
        ids = torch.arange(1, length + 1).repeat(BATCH, 1)
        found = answered(module, *[ids] * rows)
        if found is None or found.shape[::2] != (BATCH, length):
            return False
        sizes.add(found.shape[1])
    return len(sizes) == 1 and sizes <= known - {SHORT, LONG}


def first_row_is_empty(module: nn.Module) -> bool:
    """Tell whether a translator's first row knows nothing, and others do."""
    ids = torch.arange(1, LONG + 1).repeat(BATCH, 1)
    one, other = answered(module, ids, ids), answered(module, ids + 1, ids + 1)
    if one is None or other is None or one.shape[:2] != ids.shape:
        return False
    same = [
        torch.equal(x, y)
        for x, y in zip(one.unbind(1), other.unbind(1), strict=True)
    ]
    return same[0] and not any(same[1:])
