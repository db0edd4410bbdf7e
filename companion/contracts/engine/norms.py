"""Gain and bias of a norm that is a module: put in for a call, and put back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["norm_form"]


def norm_form(fn: object, component: str) -> tuple[Callable, str] | None:
    """Return how to call a norm that is a module, and what was assumed.

    Which tensor is the gain is seen by what it does: where the gain is 0,
    nothing but the bias is left. None if it is no module, or none that holds
    just what the component takes.
    """
    if not isinstance(fn, nn.Module):
        return None
    held = dict([*fn.named_parameters(), *fn.named_buffers()])
    vectors = {n: p for n, p in held.items() if p.ndim == 1 and p.numel() > 1}
    widths = {p.numel() for p in vectors.values()}
    if len(widths) != 1:
        return None
    width = widths.pop()
    names = list(vectors)
    count = 1 if component == "rms_norm" else 2
    if len(names) != count:
        return None
    x = torch.linspace(-1, 2, 3 * width).reshape(3, width)
    try:
        gain = gain_of(fn, names, x)
    except Exception:
        try:
            gain = gain_of(fn, names, x[None])  # It may want three axes.
        except Exception:
            return None
    if gain is None:
        return None
    bias = next((n for n in names if n != gain), None)
    epsilons = [
        (part, name)
        for part in fn.modules()
        for name, value in vars(part).items()
        if "eps" in name.lower() and isinstance(value, float)
    ]

    def call(module: nn.Module, args: tuple) -> Any:
        x, wanted, *rest = args
        values = {gain: wanted}
        if bias is not None:
            values[bias] = rest[0]
        with resized(module, width, x.shape[-1], epsilons, rest[-1]):
            return torch.func.functional_call(module, values, (x,))

    words = f"`{gain}` is its gain" + (
        f" and `{bias}` its bias" if bias else ""
    )
    said = f"it is a module: {words}, and the contracts' own stood there"
    if not epsilons:
        said += "; it has no `eps` that could be set"
    return call, said


def gain_of(module: nn.Module, names: list[str], x: Tensor) -> str | None:
    """Return which of the vectors multiplies: at 0 it leaves the others."""
    with torch.no_grad():
        for name in names:
            values = {n: torch.full(x.shape[-1:], 2.0) for n in names}
            values[name] = torch.zeros(x.shape[-1])
            got = torch.func.functional_call(module, values, (x,))
            left = 2.0 if len(names) > 1 else 0.0
            if torch.equal(got, torch.full_like(x, left)):
                return name
    return None


@contextmanager
def resized(
    module: nn.Module, width: int, new: int, epsilons: list, eps: float
) -> Iterator[None]:
    """Let a module be ``new`` wide within, with this ``eps``."""
    before = []
    try:
        for part in module.modules():
            for name, value in list(vars(part).items()):
                other = other_size(value, width, new)
                if other is not value:
                    before.append((part, name, value))
                    object.__setattr__(part, name, other)
        for part, name in epsilons:
            before.append((part, name, getattr(part, name)))
            object.__setattr__(part, name, eps)
        yield
    finally:
        for part, name, value in reversed(before):
            object.__setattr__(part, name, value)


def other_size(value: Any, width: int, new: int) -> Any:
    """Return a size, or a power of it, for the new width."""
    if type(value) is int and value == width:
        return new
    if isinstance(value, tuple | list) and list(value) == [width]:
        return (new,)
    if type(value) is float and width > 1:
        for power in (-0.5, 0.5):
            if abs(value - width**power) < 1e-9:
                return new**power
    return value
