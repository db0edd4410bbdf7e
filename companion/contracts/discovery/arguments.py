"""What a module wants to be given: how many arguments, of what shapes."""

import inspect
import itertools
import re
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from companion.contracts.engine.modules.common import is_lazy

__all__ = [
    "BATCH",
    "SEQ",
    "arranged",
    "least_arguments",
    "lengths",
    "most_arguments",
    "required_names",
]

BATCH, SEQ = 2, 5
"""The sizes of what a module is tried with."""


def required_names(module: nn.Module) -> list[str]:
    """Name what its forward wants."""
    parameters = inspect.signature(module.forward).parameters.values()
    return [
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


def most_arguments(module: nn.Module) -> int:
    """Count what its forward takes by position at most."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return 9
    return sum(one.kind is not one.KEYWORD_ONLY for one in parameters)


def least_arguments(module: nn.Module) -> int:
    """Count what its forward wants."""
    parameters = inspect.signature(module.forward).parameters.values()
    return sum(
        one.default is one.empty
        and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        for one in parameters
    )


def arranged(names: list[str], tensors: list[Tensor]) -> Iterator[tuple]:
    """Give tensors to arguments, of which one may be of another kind."""
    names = names or ["x"]
    masks = [name for name in names if "mask" in name.lower()]
    count = len(names) - len(masks)
    many = (
        itertools.product(tensors, repeat=count)
        if count in (1, 2)
        else ((x,) * count for x in tensors)
    )
    for given in many:
        for mask in masks_of(given) if masks else (None,):
            own = iter(given)
            yield tuple(mask if n in masks else next(own) for n in names)


def masks_of(given: tuple[Tensor, ...]) -> Iterator[Tensor | None]:
    """List masks for these, of other numbers than True and False too."""
    yield None
    x = given[0] if given else torch.ones(BATCH, SEQ)
    seq = x.shape[-2 if x.is_floating_point() and x.ndim > 1 else -1]
    for axes in ((seq, seq), (1, 1, seq, seq), (BATCH, seq, seq), (BATCH, seq)):
        for kind in (torch.bool, torch.long, torch.float):
            yield torch.ones(axes, dtype=kind)


LONGEST = 4096
"""A longer table is none of a sentence that is tried."""


NOTED = re.compile(r"(?i)len|block|ctx|context|seq|steps?$|positions")
"""What a number is called that says how long a sentence is."""


def lengths(module: nn.Module) -> list[int]:
    """List how long a sentence may have to be: as a table, or as is noted.

    Tables need not be registered.
    """
    parts = [p for p in module.modules() if isinstance(p, nn.Linear)]
    weights = {id(x) for part in parts for x in part.parameters()}
    tables = [x for x in module.parameters() if id(x) not in weights]
    notes = [x for part in module.modules() for x in vars(part).items()]
    loose = [x for _, x in notes if isinstance(x, Tensor)]
    own = (x for x in (*tables, *module.buffers(), *loose) if not is_lazy(x))
    found = [x.shape[-2] for x in own if x.ndim > 1]
    found += [n for name, n in notes if type(n) is int and NOTED.search(name)]
    return list(dict.fromkeys(n for n in found if 1 < n <= LONGEST))[:6]
