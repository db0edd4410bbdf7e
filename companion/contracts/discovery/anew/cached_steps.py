"""Compare one step with a module's own cache with the whole sequence.

A step hands in the last position alone, and keys and values of those before it
as the module itself returned them. No contract of a whole sequence sees what
goes wrong there: the mask's row, and the place of the new position.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.discovery.anew.rebuild import a_call
from companion.contracts.discovery.arguments import SEQ
from companion.contracts.discovery.kinds.calls import CLOSE, first
from companion.contracts.discovery.make import make
from companion.contracts.discovery.verdict import Judged, in_time
from companion.contracts.engine.compare import draw
from companion.contracts.engine.levels import FAULT, RISK
from companion.contracts.engine.report import Failure

__all__ = ["with_cached_steps"]

CONTRACT = "A step with its cache gives what the whole sequence gives"
FIRST_ROW = (
    "Given `{}` as it returned it, the last position sees the first one, and "
    "nothing else that is cached: the mask's row is that of position 0. It has "
    "to be cut at the rows behind the cache, `mask[n : n + 1, : n + 1]`; with "
    "a single query, `is_causal=True` shows the first key alone."
)
OTHER_PLACE = (
    "Given `{}` as it returned it, the last position sees all before it, and "
    "becomes another one than in the whole sequence. Is its place counted from "
    "0 again, and not from the length of the cache?"
)
UNLIKE = "It is right if its cache is meant for something else."

KEPT = re.compile(
    r"(?i)(layer_|kv_|key_?value_)?(caches?|pasts?)"
    r"|past_(kvs?|key_?values?|states?)"
)
"""What a cache is called that is given."""

WANTED = re.compile(r"(?i)(use|return|with)_(kv_)?(caches?|pasts?|presents?)")
"""The flag without which none is returned."""

PLACED = re.compile(r"(?i)pos|offset|start|cache_len|cis|cos|sin|rope|freq")
"""By this a caller says where a step stands, so that nothing is asked."""


def with_cached_steps(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add to a report that a step with a cache differs from the whole.

    A fault if the step sees the first position alone, else a risk.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    attends = judged.component in ("causal_attention", "multihead")
    ids = judged.component == "language_model"
    if judged.report.faults or not (attends or ids):
        return judged
    module, _ = make(kind, near)
    found = in_time(lambda: difference(module.eval(), ids=ids))
    if found is None:
        return judged
    report = judged.report.with_more(found)
    return replace(judged, report=report)


def difference(module: nn.Module, *, ids: bool) -> Failure | None:
    """Return how a step differs from the whole; None if it does not.

    Nor if nobody can tell how a step wants to be called.
    """
    name = its_cache(module)
    with torch.no_grad(), torch.random.fork_rng([]):
        args = a_call(module, ids=ids) if name else None
        if args is None or not only_one(args):
            return None
        steps = Steps(module, name, args)
        whole, step = steps.whole(args[0]), steps.last(args[0])
        if whole is None or step is None or step.shape != whole.shape:
            return None
        if torch.allclose(whole, step, **CLOSE):
            return None
        # In a model that sees its future, what was cached is another thing.
        if ids and not steps.begin_alike(args[0]):
            return None
        seen = steps.seen(args[0], ids=ids)
    if seen in ([0], [0, SEQ - 1] if ids else []):  # It also adds itself.
        told, level = FIRST_ROW, FAULT
    elif seen == [*range(SEQ)]:
        told, level = OTHER_PLACE, RISK
    else:
        return None
    why = UNLIKE if level == RISK else ""
    said = told.format(name)
    return Failure(CONTRACT, said, level=level, why=why, cause=told)


def its_cache(module: nn.Module) -> str:
    """Return the name of the cache that may be given; nothing if none is."""
    known = inspect.signature(module.forward).parameters.values()
    caches = [x.name for x in known if KEPT.fullmatch(x.name)]
    others = [x.name for x in known if x.name not in caches]
    if len(caches) != 1 or any(map(PLACED.search, others)):
        return ""
    return caches[0]


def only_one(args: tuple) -> bool:
    """Tell whether nothing but one sequence goes in."""
    tensors = [x for x in args if isinstance(x, Tensor)]
    return bool(tensors) and all(x is tensors[0] for x in tensors)


class Steps:
    """Calls a module with a sequence, or with its last position.

    Args:
        module: It takes a cache.
        name: What that is called.
        args: What it is called with otherwise; one sequence among it.
    """

    def __init__(self, module: nn.Module, name: str, args: tuple):
        self.module, self.name = module, name
        self.signature = inspect.signature(module.forward)
        self.args, self.x = args, args[0]

    def call(self, x: Tensor, cache: object = None) -> Any:
        """Call it with ``x``, and a cache."""
        own = [x if a is self.x else a for a in self.args]
        bound = self.signature.bind(*own)
        for name, known in self.signature.parameters.items():
            if WANTED.fullmatch(name) and known.default is False:
                bound.arguments[name] = True
        if cache is not None:
            bound.arguments[self.name] = cache
        return self.module(*bound.args, **bound.kwargs)

    def whole(self, x: Tensor) -> Tensor | None:
        """Return what the last position becomes, without a cache."""
        got = first(self.call(x))
        fits = isinstance(got, Tensor) and got.ndim == 3
        return got[:, -1:] if fits else None

    def begin_alike(self, x: Tensor) -> bool:
        """Tell whether a beginning becomes what it does in the whole."""
        alone, whole = first(self.call(x[:, :-1])), first(self.call(x))
        if alone.shape[1] != SEQ - 1 or whole.shape[1] != SEQ:
            return True  # It returns the last position alone.
        return torch.allclose(alone, whole[:, :-1], **CLOSE)

    def last(self, x: Tensor) -> Tensor | None:
        """Return what it becomes in a step of its own.

        None, if no cache is returned, or none is taken so.
        """
        try:
            cache = returned(self.call(x[:, :-1]))
            got = first(self.call(x[:, -1:], cache)) if cache else None
        except Exception:
            return None
        return got if isinstance(got, Tensor) else None

    def seen(self, x: Tensor, *, ids: bool) -> list[int]:
        """List the positions with which the step of the last one moves."""
        before, found = self.last(x), []
        for place in range(SEQ):
            other = x.clone()
            # Ids are 1 to 5, and 6 is another one.
            other[:, place] = 6 if ids else draw(*x[:, place].shape, seed=83)
            moved = self.last(other)
            if moved is None or not torch.allclose(before, moved, atol=1e-6):
                found.append(place)
        return found


def returned(result: object) -> object:
    """Return what stands behind the first result and holds tensors."""
    behind = result[1:] if isinstance(result, tuple) else ()
    nests = [x for x in behind if isinstance(x, tuple | list) and x]
    return nests[-1] if nests else None
