"""Modules that want each argument by its name, called as all others are."""

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

__all__ = ["called_by_position"]


@contextlib.contextmanager
def called_by_position(module: nn.Module) -> Iterator[bool]:
    """Let a module take arguments by their places that it takes by name only.

    Those without a default come first, and then the others, in their order.

    Args:
        module: Any module; one that takes an argument by its place stays as
            it is.

    Yields:
        Whether it is called so.
    """
    kind = type(module)
    words = by_name_only(module)
    if not words:
        yield False
        return
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    signature = inspect.Signature([itself, *words])

    def forward(*args: Any, **named: Any) -> Any:
        given = signature.bind(*args, **named).arguments
        return kind.forward(given.pop("self"), **given)

    forward.__signature__ = signature  # type: ignore[attr-defined]
    # A class of its own, for a copy of the module must not call the module.
    own = {"forward": forward, "__module__": kind.__module__}
    module.__class__ = type(kind.__name__, (kind,), own)
    try:
        yield True
    finally:
        module.__class__ = kind


def by_name_only(module: nn.Module) -> list[inspect.Parameter]:
    """List the arguments of a forward that takes all by their names."""
    taken = inspect.signature(module.forward).parameters.values()
    if any(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in taken):
        return []
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    words = [p.replace(kind=place) for p in taken if p.kind is p.KEYWORD_ONLY]
    return sorted(words, key=lambda p: p.default is not p.empty)
