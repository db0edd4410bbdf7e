"""What returns less than goes in: a single head, or positions alone."""

import re
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.contracts.discovery.arguments import BATCH, SEQ
from companion.contracts.discovery.kinds.calls import (
    answer,
    calls,
    first,
    movement,
    widths,
)
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.engine.compare import draw
from companion.contracts.engine.modules.around import Around

__all__ = ["A_HEAD", "ROWS_ALONE", "filled_up", "plus_rows"]

A_HEAD = re.compile(r"(?i)head|att(entio)?n")
"""What is called so may be one head of several, to be joined elsewhere."""

FILLED_UP = "its output, {} wide, was filled up with zeros to {}"


class FilledUp(Around):
    """Fills up what a head returns, so that it is as wide as what goes in.

    Args:
        module: The head.
        width: How wide that is.
        said: In words, what it does.
    """

    def __init__(self, module: nn.Module, width: int, said: str):
        super().__init__(module, said)
        self.width = width
        self.forward = self.like(module, self.filled)

    def filled(self, *args: Any, **named: Any) -> Any:
        """Call the head, and append zeros."""
        return self.leave(self.module(*args, **named))

    def leave(self, x: Any) -> Any:
        """Append zeros to vectors, and leave weights as they are."""
        if isinstance(x, tuple | list) and x:
            return type(x)((self.leave(x[0]), *x[1:]))
        return F.pad(x, (0, self.width - x.shape[-1]))


def filled_up(module: nn.Module) -> nn.Module | None:
    """Return a head whose output is as wide as its input; None, if none is."""
    if not A_HEAD.search(type(module).__name__):
        return None
    for width in widths(module):
        x = draw(BATCH, SEQ, width, seed=3)
        for args in calls(module, x):
            got = answer(module, args)
            if isinstance(got, Tensor) and got.shape[:-1] == x.shape[:-1]:
                own = got.shape[-1]
                map_of = own == SEQ and is_a_map(module, x, args)
                narrow = 1 < own < width and not map_of
                if narrow and sees_others(module, x, args):
                    said = FILLED_UP.format(own, width)
                    kind = FilledUp.named_as(module)
                    return kind(module, width, said)
    return None


def is_a_map(module: nn.Module, x: Tensor, args: tuple) -> bool:
    """Tell whether as many numbers come back for a position as there are."""
    fewer = x[:, 1:]
    got = answer(module, tuple(fewer if a is x else a for a in args))
    return got is None or got.shape[-1] == fewer.shape[1]


def sees_others(module: nn.Module, x: Tensor, args: tuple) -> bool:
    """Tell whether a position sees another: a head that classifies does not.

    Args:
        module: What is called a head.
        x: Vectors.
        args: What it is called with, and these first.
    """

    def fn(vectors: Tensor) -> Tensor:
        own = (vectors if a is x else a for a in args)
        return first(module(*own))  # pyrefly: ignore

    return not torch.equal(movement(fn, x), torch.eye(SEQ, dtype=torch.bool))


class PlusRows(Around):
    """Adds to vectors the rows of positions that a module returns for them.

    Args:
        module: It returns a row for each position, whatever stands there.
    """

    def __init__(self, module: nn.Module):
        super().__init__(module, ROWS_ALONE)

    def forward(self, x: Tensor) -> Tensor:
        """Add the rows to ``x``."""
        return x + self.module(x)


ROWS_ALONE = "it returns positions alone, and these were added to vectors"


def plus_rows(module: nn.Module) -> nn.Module | None:
    """Return what adds a module's rows to vectors; None, if it returns none.

    They are alike for all sentences, and need have no axis for these.
    """
    for width in [*widths(module), WIDTH]:
        one, other = (draw(BATCH, SEQ, width, seed=seed) for seed in (3, 5))
        got, again = (answer(module, (x,)) for x in (one, other))
        if got is None or again is None or not torch.equal(got, again):
            continue
        alike = got.shape == one.shape and torch.equal(got[:1], got[1:2])
        if alike and not torch.equal(got[:, 0], got[:, 1]):
            got = got[:1]
        if got.shape in ((SEQ, width), (1, SEQ, width)):
            return PlusRows.named_as(module)(module)
    return None
