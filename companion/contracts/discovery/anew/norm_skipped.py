"""Find attention whose queries went through a norm, and whose keys did not."""

import re
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from companion.contracts.discovery.anew.rebuild import MODELS, a_call
from companion.contracts.discovery.kinds.calls import first
from companion.contracts.discovery.make import make
from companion.contracts.discovery.verdict import Judged, in_time
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.common import watched
from companion.contracts.engine.report import Failure

__all__ = ["with_norm_of_keys"]

CONTRACT = "Queries, keys and values go through the same norm"
SKIPPED = (
    "`{}` gets queries that went through `{}`, and keys and values that did "
    "not: with the norm in front of attention, all three are what it returns."
)
TRAINED = (
    "It trains so, too; but then keys and values grow with the stream, to "
    "which every layer adds."
)

A_NORM = re.compile(r"(?i)norm|^ln$")
ATTENTION = re.compile(r"(?i)att|head|mha")


def with_norm_of_keys(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add a risk if keys and values of a stream skip the norm of its queries.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    if judged.report.faults:
        return judged
    module, _ = make(kind, near)
    ids = judged.component in MODELS
    found = in_time(lambda: skipped(module.eval(), ids=ids))
    if not found:
        return judged
    told = SKIPPED.format(*found)
    risk = Failure(CONTRACT, told, level=RISK, why=TRAINED, cause=told)
    return replace(judged, report=judged.report.with_more(risk))


def skipped(module: nn.Module, *, ids: bool) -> tuple[str, str] | None:
    """Name an attention and the norm that its keys and values skip, if any."""
    names = {part: name for name, part in module.named_modules() if name}
    normed: list[tuple[str, object, Tensor]] = []
    came: dict[nn.Module, object] = {}
    found: list[tuple[str, str]] = []

    def before(part: nn.Module, args: tuple, words: dict) -> None:
        given = [*args, *words.values()]
        if is_norm(part):
            came[part] = given[0] if given else None
        elif ATTENTION.search(type(part).__name__):
            found.extend(
                (names[part], norm)
                for norm, x, out in normed
                if len(given) > 2
                and given[0] is out
                and given[1] is given[2] is x
            )

    def after(part: nn.Module, got: object) -> None:
        if is_norm(part) and isinstance(out := first(got), Tensor):
            normed.append((names[part], came[part], out))

    with torch.no_grad(), torch.random.fork_rng([]):
        if (args := a_call(module, ids=ids)) is None:
            return None
        # Another sequence need not go through the norm of this one.
        apart = [x.clone() if isinstance(x, Tensor) else x for x in args]
        with watched(names, before, after):
            module(*apart)
    return found[0] if found else None


def is_norm(part: nn.Module) -> bool:
    """Tell whether a part is a norm, by its name."""
    return A_NORM.search(type(part).__name__) is not None
