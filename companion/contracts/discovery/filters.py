"""Call a function that filters logits as ``sampling_filter``.

As most write it, it has no temperature, 0 turns it off, and it may write -∞
into the logits that it is given.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["as_sampling_filter", "filters_logits"]

NAMES = (
    r"top_?k_?(and_?)?top_?p_?(logits_?)?(filter(ing)?|warper)?|filter_?logits"
)
"""What it is called."""

ROLES = {
    "logits": r"logits|scores|x",
    "top_k": r"top_?k|k",
    "top_p": r"top_?p|p",
    "temperature": r"temperature|temp|t",
}
"""What an argument is -> what it is called."""

BY_ROWS = "it got one row of logits at a time"


def filters_logits(name: str, fn: Callable) -> bool:
    """Tell whether a function is called so, and takes what it takes."""
    named = re.fullmatch(NAMES, name.strip("_").lower())
    return bool(named) and {"logits", "top_k", "top_p"} <= {*roles_of(fn)}


def roles_of(fn: Callable) -> dict[str, inspect.Parameter]:
    """Return what each argument is that it has, or has to be given.

    Nothing, if the name of one that it has to be given does not say it.
    """
    found: dict[str, inspect.Parameter] = {}
    for one in inspect.signature(fn).parameters.values():
        named = (
            role
            for role, names in ROLES.items()
            if role not in found and re.fullmatch(names, one.name.lower())
        )
        if role := next(named, ""):
            found[role] = one
        elif one.default is one.empty:
            return {}
    return found


def as_sampling_filter(fn: Callable) -> tuple[Callable, tuple[str, ...]]:
    """Make of a function one that is called as ``sampling_filter``.

    Returns:
        It, and how it calls the other in words.
    """
    roles = roles_of(fn)

    def call(logits: Tensor, k: int | None, p: float | None, t: float) -> Any:
        divided = "temperature" not in roles
        given = {
            "logits": logits / t if divided else logits.clone(),
            "top_k": off(roles["top_k"], 0) if k is None else k,
            "top_p": off(roles["top_p"], 1.0) if p is None else p,
            "temperature": t,
        }
        return fn(**{one.name: given[role] for role, one in roles.items()})

    def by_rows(logits: Tensor, *rest: Any) -> Tensor:
        return torch.stack([call(row, *rest) for row in logits])

    try:
        call(torch.randn(2, 5), 2, 0.5, 1.0)
    except Exception:
        return by_rows, (BY_ROWS,)
    return call, ()


def off(one: inspect.Parameter, otherwise: float) -> Any:
    """Return with what an argument filters nothing: its default, or a number.

    A default of 50, or of 0.9, filters.
    """
    return one.default if one.default in (None, 0, 1.0, -1) else otherwise
