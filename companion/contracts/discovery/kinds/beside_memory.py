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
from companion.contracts.discovery.arguments import (
    least_arguments,
    required_names,
)
from companion.contracts.discovery.kinds.calls import answer, widths
from companion.contracts.discovery.mask_makers import FIRST
from companion.contracts.engine.compare import draw
from companion.contracts.engine.forms.styles import MEMORY
from companion.contracts.engine.modules.around import Around

__all__ = [
    "OF_A_LAYER",
    "BesideMemory",
    "beside_memory",
    "keys_and_values_follow",
    "layer_beside_memory",
]

SAME = "`{}` was the same for all sentences, a memory of {} vectors"
BOTH = "`{}` and `{}` were the same for all sentences, a memory of {} vectors"
OF_A_LAYER = (
    "it is a decoder's: beside a memory that stays the same it was judged as "
    "an encoder is"
)
PLACES = 4
"""How many vectors a memory has."""

ALSO = r"(img|image|visual|audio|enc\w*)_?(feat(ure)?s?|emb(ed(ding)?)?s?)"
"""What else a memory is called."""


class BesideMemory(Around):
    """Gives a module of ids the same memory for all sentences.

    Args:
        module: It takes ids and vectors.
        words: What it calls the vectors, keys and values perhaps.
        width: How wide they are.
        axis: Where its sentences stand, 0 or 1.
        masks: What it calls the masks of the vectors; it gets none.
    """

    def __init__(
        self,
        module: nn.Module,
        words: tuple[str, ...],
        width: int,
        axis: int = 0,
        masks: tuple[str, ...] = (),
    ):
        same = (SAME if len(words) == 1 else BOTH).format(*words, PLACES)
        super().__init__(module, f"{same}; {FIRST}" if axis else same)
        self.words, self.axis = words, axis
        self.memory = draw(1, PLACES, width, seed=131)
        self.none = dict.fromkeys(masks)
        self.forward = self.like(module, self.with_it, (*words, *masks))

    def with_it(self, *args: Any, **named: Any) -> Any:
        """Call it with the memory."""
        names = [*inspect.signature(self.module.forward).parameters]
        names = [n for n in names if n not in (*self.words, *self.none)]
        given = dict(zip(names, args, strict=False)) | named
        rows = next(x for x in given.values() if isinstance(x, Tensor))
        memory = self.memory.expand(rows.shape[self.axis], -1, -1)
        memory = memory.transpose(0, self.axis).contiguous()
        twice = dict.fromkeys(self.words, memory)
        return self.module(**given, **self.none, **twice)


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
    words = named if len(named) == 1 else required_names(module)[:2]
    ids = torch.tensor([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    ways = itertools.product((0, 1), words, widths(module))
    for axis, word, width in ways if len(names) > 1 else ():
        kind = BesideMemory.named_as(module)
        beside = kind(module, (word,), width, axis)
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


OF_THE_MEMORY = re.compile(
    r"(?i)(.*_)?(mem(ory)?|src|source|enc(oder)?|cross|context)(_.*)?"
    r"|(pad(ding)?_mask)"
)
"""What the masks of a memory are called, beside those of what asks."""

OF_THE_TARGET = re.compile(
    r"(?i)(.*_)?(tgt|trg|tar(get)?|dec(oder)?|self|slf|own|look_?ahead|causal"
    r"|future|subsequent)(_.*)?"
)
"""What the masks of what asks are called."""


KEYS = re.compile("(?i)keys?|values?|k|v")
"""What a memory is called that is given twice."""


def keys_and_values_follow(module: nn.Module) -> bool:
    """Tell whether vectors go in, and keys and values behind them."""
    first, *others = inspect.signature(module.forward).parameters
    own = not re.fullmatch(rf"{KEYS.pattern}|q(uer(y|ies))?", first)
    return own and len(others) > 1 and all(map(KEYS.fullmatch, others[:2]))


def layer_beside_memory(module: nn.Module) -> nn.Module | None:
    """Return a decoder's layer with its memory given; None, if it is none.

    What comes out has to move with the memory, and to be as what goes in.
    """
    names = [*inspect.signature(module.forward).parameters]
    masks = [name for name in names if "mask" in name.lower()]
    words = tuple(
        name
        for name in names
        if name not in masks and re.fullmatch(MEMORY, name)
    ) or tuple(name for name in names[1:] if KEYS.fullmatch(name))
    if len(words) != 1 and not (words and all(map(KEYS.fullmatch, words))):
        return None
    ours = tuple(name for name in masks if OF_THE_MEMORY.fullmatch(name))
    known = [name for name in masks if OF_THE_TARGET.fullmatch(name)]
    if not ours and len(known) < len(masks):
        return None  # Whose mask it is, nobody knows.
    kind = BesideMemory.named_as(module)
    for width in widths(module):
        x = draw(2, 5, width, seed=7)
        beside = kind(module, words, width, 0, ours)
        rest = (None,) * (least_arguments(beside) - 1)
        got = answer(beside, (x, *rest))
        beside.memory = -beside.memory
        moved = answer(beside, (x, *rest))
        if got is None or moved is None or got.shape != x.shape:
            continue
        if not torch.equal(got, moved):
            return beside
    return None
