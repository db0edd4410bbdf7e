"""A translator whose padding is another id than 0, as its own code has it."""

import inspect
import re
from collections.abc import Callable
from types import FunctionType
from typing import Any

from torch import nn

from companion.contracts.adapters import padding_is
from companion.contracts.engine.modules.around import Around
from companion.contracts.masks.padding_mask import numbers_read_by

__all__ = ["PADDED_WITH", "ids_for_padding", "padded_with"]

PADDED_WITH = "padding was {} in what it got, as its code has it"
MOST = 10
"""The last of the few ids that a model is asked with."""


class PaddedWith(Around):
    """Takes ids in which 0 and its own padding have changed places.

    Args:
        module: The model.
        pad: Its padding.
    """

    def __init__(self, module: nn.Module, pad: int):
        super().__init__(module)
        self.call: Callable = padding_is(module.forward, pad)
        self.forward = self.like(module, self.exchanged)

    def exchanged(self, *args: Any, **named: Any) -> Any:
        """Call it with both exchanged in what is given by its place."""
        return self.call(*args, **named)


def padded_with(module: nn.Module, pad: int) -> nn.Module:
    """Return a model that takes 0 as padding, though its own is another id."""
    return PaddedWith.named_as(module)(module, pad).eval()


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
    return sorted(x for x in found if 0 < x <= MOST)


PAD = re.compile("(?i)pad")
