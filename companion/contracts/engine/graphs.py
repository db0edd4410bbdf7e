"""Tensors that a module keeps with their graph, so that training fails.

The first `backward()` uses a graph up. What hangs on one that an earlier call,
or `__init__`, has made raises at the second.
"""

import re
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import (
    Broken,
    draw,
    tensors_in,
    weighed,
)
from companion.contracts.engine.levels import FAULT, RISK

__all__ = ["require_two_steps"]

ONCE = (
    "`{}` is computed once and kept, with its graph: the second `backward()` "
    "raises, and it stays what it was while its weights learn. Compute it in "
    "`forward`, in each call."
)
KEPT = (
    "`{}` keeps what the last call computed, with its graph, so that the next "
    "`backward()` raises: store `.detach()` of it, or write it under "
    "`torch.no_grad()`."
)
CACHED = (
    "What it computes is right, and a cache that only answers under "
    "`torch.no_grad()` needs no more; in code that is trained it is a fault."
)
CACHE = re.compile(r"(?i)cache|past|prev|(^|[._])(k|v|kv|keys?|values?)$")
"""What is called so is made for answering, a token at a time."""
PYTORCHS = set(vars(nn.Module()))
"""What PyTorch itself keeps in each module."""
USED_UP = re.compile("a second time|modified by an inplace operation")
"""What autograd says of a graph that is used up, or written over."""


def require_two_steps(
    module: nn.Module, call: Callable, named: dict[str, Tensor]
) -> None:
    """Raise Broken if a second step of training fails for what is kept.

    Args:
        module: What is to be trained.
        call: Calls it, always with the same inputs.
        named: Its weights.
    """
    try:
        for _ in range(2):
            before = dict(with_graphs(module))
            versions = {name: x._version for name, x in before.items()}
            ends = [x for x in tensors_in(call()) if x.requires_grad]
            if not ends:
                return
            pairs = [(x, draw(*x.shape, seed=97)) for x in ends]
            weights = list(named.values())
            torch.autograd.grad(weighed(pairs), weights, allow_unused=True)
    except RuntimeError as error:
        if not USED_UP.search(str(error)):
            raise
        after = dict(with_graphs(module))
        same = [n for n, x in after.items() if before.get(n) is x]
        once = [n for n in same if after[n]._version == versions[n]]
        written = [n for n in same if n not in once]
        for names, told in ((once, ONCE), (written, KEPT), (after, KEPT)):
            for name in names:
                cached = told == KEPT and CACHE.search(name)
                level, why = (RISK, CACHED) if cached else (FAULT, "")
                raise Broken(
                    told.format(name), cause=told, level=level, why=why
                ) from None
        raise


def with_graphs(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """List what a module holds that was computed from weights or inputs."""
    for prefix, part in module.named_modules():
        plain = {n: x for n, x in vars(part).items() if n not in PYTORCHS}
        buffers = part.named_buffers(recurse=False)
        for name, held in (*buffers, *plain.items()):
            for x in tensors_of(held):
                if x.grad_fn is not None:
                    yield f"{prefix}.{name}".lstrip("."), x


def tensors_of(held: object, depth: int = 2) -> list[Tensor]:
    """List the tensors that something is, or holds."""
    if isinstance(held, Tensor):
        return [held]
    if not depth or not isinstance(held, list | tuple | dict):
        return []
    inner = held.values() if isinstance(held, dict) else held
    return [x for one in inner for x in tensors_of(one, depth - 1)]
