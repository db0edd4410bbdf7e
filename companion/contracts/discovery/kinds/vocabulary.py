"""A model that gives logits with the vocabulary in the middle."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import BATCH, least_arguments
from companion.contracts.discovery.kinds.calls import answer, first
from companion.contracts.engine.modules.around import Around

__all__ = ["vocabulary_last"]

IN_THE_MIDDLE = (
    "its logits were (batch, vocab, seq), as PyTorch's `cross_entropy` takes "
    "them, and the vocabulary was put last"
)


class VocabularyLast(Around):
    """Turns the logits (batch, vocab, seq) of a model into the usual ones."""

    def __init__(self, module: nn.Module):
        super().__init__(module, IN_THE_MIDDLE)
        self.forward = self.like(module, self.turned)

    def turned(self, *args: Any, **named: Any) -> Tensor:
        """Call it, and put the vocabulary last."""
        return first(self.module(*args, **named)).mT


def vocabulary_last(module: nn.Module, known: Iterable[int]) -> nn.Module:
    """Return a model whose logits end with the vocabulary.

    It is the same one, if they do anyway, or if that cannot be told.

    Args:
        module: It takes one row of ids, or two.
        known: How many ids its tables know.
    """
    for rows in (1, 2):
        rest = [None] * (least_arguments(module) - rows)
        found = {
            n: answer(module, (*rows * (ids_of(n),), *rest)) for n in (3, 5)
        }
        sizes = {
            x.shape[1]
            for n, x in found.items()
            if x is not None and x.ndim == 3 and x.shape[::2] == (BATCH, n)
        }
        answered = all(x is not None for x in found.values())
        if answered and len(sizes) == 1 and sizes <= {*known} - {*found}:
            return VocabularyLast.named_as(module)(module).eval()
    return module


def ids_of(length: int) -> Tensor:
    """Return rows of ids so long."""
    return torch.arange(1, length + 1).repeat(BATCH, 1)
