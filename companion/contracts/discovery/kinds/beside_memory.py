"""Judge what writes beside a memory of vectors as a language model.

A captioning decoder takes ids, and what an encoder has made of a picture. With
the same memory for all sentences it is a language model.
"""

import inspect
import itertools
import re
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.adapters import sequence_first
from companion.contracts.discovery.kinds.calls import answer, widths
from companion.contracts.discovery.mask_makers import FIRST
from companion.contracts.discovery.raising import wanted
from companion.contracts.engine.compare import draw
from companion.contracts.engine.forms.styles import MEMORY
from companion.contracts.engine.modules.around import Around

__all__ = ["BesideMemory", "beside_memory"]

SAME = "`{}` was the same for all sentences, a memory of {} vectors"
PLACES = 4
"""How many vectors a memory has."""

ALSO = r"(img|image|visual|audio|enc\w*)_?(feat(ure)?s?|emb(ed(ding)?)?s?)"
"""What else a memory is called."""


class BesideMemory(Around):
    """Gives a module of ids the same memory for all sentences.

    Args:
        module: It takes ids and vectors.
        word: What it calls the vectors.
        width: How wide they are.
        axis: Where its sentences stand, 0 or 1.
    """

    def __init__(self, module: nn.Module, word: str, width: int, axis: int = 0):
        same = SAME.format(word, PLACES)
        super().__init__(module, f"{same}; {FIRST}" if axis else same)
        self.word, self.axis = word, axis
        self.memory = draw(1, PLACES, width, seed=131)
        self.forward = self.like(module, self.with_it, (word,))

    def with_it(self, *args: Any, **named: Any) -> Any:
        """Call it with the memory."""
        names = [*inspect.signature(self.module.forward).parameters]
        names.remove(self.word)
        given = dict(zip(names, args, strict=False)) | named
        rows = next(x for x in given.values() if isinstance(x, Tensor))
        memory = self.memory.expand(rows.shape[self.axis], -1, -1)
        memory = memory.transpose(0, self.axis).contiguous()
        return self.module(**given, **{self.word: memory})


def beside_memory(module: nn.Module) -> nn.Module | None:
    """Return a module with its memory given; None, if it takes none.

    Its logits have to move with the memory, and with the ids.
    """
    names = [*inspect.signature(module.forward).parameters]
    named = [
        name
        for name in names
        if "mask" not in name and re.fullmatch(f"{MEMORY}|{ALSO}", name.lower())
    ]
    words = named if len(named) == 1 else wanted(module)[:2]
    ids = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    ways = itertools.product((0, 1), words, widths(module))
    for axis, word, width in ways if len(names) > 1 else ():
        kind = BesideMemory.named_as(module)
        beside = kind(module, word, width, axis)
        found = sequence_first(beside) if axis else beside
        got, other = answer(found, (ids,)), answer(found, (ids.flip(0),))
        beside.memory = -beside.memory
        moved = answer(found, (ids,))
        if got is None or other is None or moved is None:
            continue
        whole = got.ndim == 3 and got.shape[:2] == ids.shape
        if whole and not torch.equal(got, other) | torch.equal(got, moved):
            return found
    return None
