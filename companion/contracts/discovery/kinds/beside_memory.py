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

from companion.contracts.discovery.kinds.calls import answer, widths
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
    """

    def __init__(self, module: nn.Module, word: str, width: int):
        super().__init__(module, SAME.format(word, PLACES))
        self.word = word
        self.memory = draw(1, PLACES, width, seed=131)
        self.forward = self.like(module, self.with_it, (word,))

    def with_it(self, *args: Any, **named: Any) -> Any:
        """Call it with the memory."""
        names = [*inspect.signature(self.module.forward).parameters]
        names.remove(self.word)
        given = dict(zip(names, args, strict=False)) | named
        batch = next(len(x) for x in given.values() if isinstance(x, Tensor))
        memory = self.memory.expand(batch, -1, -1).contiguous()
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
    for word, width in itertools.product(words, widths(module)):
        if len(names) < 2:
            break
        found = BesideMemory.named_as(module)(module, word, width)
        got, other = answer(found, (ids,)), answer(found, (ids.flip(0),))
        found.memory = -found.memory
        moved = answer(found, (ids,))
        if got is None or other is None or moved is None:
            continue
        whole = got.ndim == 3 and got.shape[:2] == ids.shape
        if whole and not torch.equal(got, other) | torch.equal(got, moved):
            return found
    return None
