"""Tell what keeps a model from being judged: its memory, or its one length."""

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import (
    BATCH,
    SEQ,
    arranged,
    lengths,
    required_names,
)
from companion.contracts.discovery.kinds.calls import first
from companion.contracts.engine.report import Report

__all__ = ["limit", "of_one_length", "only_length"]

MEMORY = (
    "it keeps something from one call to the next, so that the same ids do not "
    "give the same logits. If it is a memory of the rows before, it may be "
    "right: mark a function that clears it and then calls the model. If "
    "nothing is to be kept, this is a fault"
)


def limit(module: nn.Module, report: Report) -> str:
    """Say why the faults of a model may be none; nothing, if they are."""
    if report.faults and remembers(module):
        return MEMORY
    one_length = report.faults and only_length(module) == SEQ
    return of_one_length(SEQ) if one_length else ""


def of_one_length(length: int) -> str:
    """Say that a model takes one length only."""
    return (
        f"it takes rows of {length} ids and of no other length, and the "
        "contracts send several. If it is to take others, this is a fault"
    )


def remembers(module: nn.Module) -> bool:
    """Tell whether what was said before counts, where nothing is drawn.

    What it keeps may have as many rows as some contract has sent. Weights that
    a call changes are no memory.
    """
    versions = [x._version for x in module.parameters()]
    for batch in (BATCH, 1, 3, 4):
        one = rows(SEQ, batch)
        other = one % 5 + 1
        for args in arranged(required_names(module), [one]):
            turned = tuple(other if x is one else x for x in args)
            calls = (args, args, turned, args)
            _, before, _, after = (outcome(module, a) for a in calls)
            if before is not None and after is not None:
                same = versions == [x._version for x in module.parameters()]
                return same and not torch.equal(before, after)
    return False


def only_length(module: nn.Module) -> int:
    """Return the one length that a model of ids takes; 0 if there are more."""
    tables = lengths(module)
    fitting = [n for n in dict.fromkeys([SEQ, *tables]) if takes(module, n)]
    near = {1, 2, 3, 4, 6, 7, *(n - 1 for n in tables)} - {0, *fitting}
    lone = len(fitting) == 1 and not any(takes(module, n) for n in near)
    return fitting[0] if lone else 0


def takes(module: nn.Module, length: int) -> bool:
    """Tell whether a model answers to each of as many ids."""
    for args in arranged(required_names(module), [rows(length)]):
        found = outcome(module, args)
        if found is not None:
            flat = found.ndim == 2 and len(found) == BATCH * length
            return flat or found.shape[:2] == (BATCH, length)
    return False


def rows(length: int, batch: int = BATCH) -> Tensor:
    """Make rows of ids from 1 to 5."""
    return torch.arange(batch * length).view(batch, length) % 5 + 1


def outcome(module: nn.Module, args: tuple, seed: int = 0) -> Tensor | None:
    """Return what comes back, with the same numbers drawn; None if it raises.

    The first is taken where there are several.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        try:
            found = first(module(*args))
        except Exception:
            return None
    return found if isinstance(found, Tensor) else None
