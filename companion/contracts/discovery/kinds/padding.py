"""A model whose padding is another id than 0, as its own code has it."""

import inspect
import itertools
import re
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.engine.modules.around import Around
from companion.contracts.masks.padding_mask import exchanged, numbers_read_by

__all__ = ["PADDED_WITH", "padded_with", "paddings"]

PADDED_WITH = "padding was {} in what it got, as its code has it"
MOST, FEW = 10, 3
"""The last of the ids that a model is asked with, and how many are tried."""


class PaddedWith(Around):
    """Takes ids in which 0 and its own padding have changed places.

    Args:
        module: The model.
        pads: Its padding in each row of ids, 0 where it is that.
    """

    def __init__(self, module: nn.Module, pads: tuple[int, ...]):
        super().__init__(module)
        self.pads = pads
        self.forward = self.like(module, self.changed)

    def changed(self, *args: Any, **named: Any) -> Any:
        """Call it with both exchanged in what is given by its place."""
        pads = itertools.chain(self.pads, itertools.repeat(self.pads[-1]))
        given = [
            exchanged(x, 0, pad) if is_of_ids(x) else x
            for x, pad in zip(args, pads, strict=False)
        ]
        return self.module(*given, **named)


def is_of_ids(x: object) -> bool:
    """Tell whether something that is given holds ids."""
    return isinstance(x, Tensor) and x.dtype == torch.long


def padded_with(module: nn.Module, pads: tuple[int, ...]) -> nn.Module:
    """Return a model that takes 0 as padding, though its own is another id."""
    return PaddedWith.named_as(module)(module, pads).eval()


def paddings(module: nn.Module, rows: int) -> list[tuple[int, ...]]:
    """List what may be the padding of a model, one for each row of ids.

    Args:
        module: The model.
        rows: How many rows it takes.
    """
    ids = ids_for_padding(module)
    alike = [(pad,) for pad in ids]
    others = [
        pads
        for pads in itertools.product([0, *ids], repeat=rows)
        if len({*pads}) > 1
    ]
    return alike + (others if rows > 1 else [])


def ids_for_padding(module: nn.Module) -> list[int]:
    """List the ids besides 0 that may be the padding of a model.

    They are kept under such a name, known to an embedding, or read by the code
    of its class. Whoever gives it masks decides what padding is: then none are.
    """
    known = inspect.signature(module.forward).parameters
    if any(re.search("(?i)mask|len", name) for name in known):
        return []
    found = set()
    for part in module.modules():
        kept = vars(part).items()
        found |= {x for name, x in kept if type(x) is int and PAD.search(name)}
    for owner in type(module).__mro__:
        own = [] if owner.__module__.startswith("torch.") else vars(owner)
        for name in own:
            if isinstance(method := vars(owner)[name], FunctionType):
                found |= numbers_read_by(method)
    return sorted(x for x in found if 0 < x <= MOST)[:FEW]


PAD = re.compile("(?i)pad")
