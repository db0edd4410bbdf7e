"""Gain and bias of a norm that is a module: put in for a call, and put back."""

import inspect
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["norm_form"]

MOST = {"rms_norm": 1, "layer_norm": 2}
"""How many vectors a norm holds at most: its gain, and perhaps a bias."""


def norm_form(fn: object, component: str) -> tuple[Callable, str] | None:
    """Return how to call a norm that is a module, and what was assumed.

    None if it is no module, or none that holds just what the component takes,
    gain and bias excepted.
    """
    if not isinstance(fn, nn.Module):
        return None
    held = dict([*fn.named_parameters(), *fn.named_buffers()])
    return with_vectors(fn, component, held) if held else without_a_gain(fn)


def with_vectors(
    fn: nn.Module, component: str, held: dict[str, Tensor]
) -> tuple[Callable, str] | None:
    """Return how to call a norm that holds a gain, and what was assumed.

    Which tensor is the gain is seen by what it does: where the gain is 0,
    nothing but the bias is left.
    """
    vectors = {n: p for n, p in held.items() if p.ndim == 1 and p.numel() > 1}
    widths = {p.numel() for p in vectors.values()}
    if len(widths) != 1:
        return None
    width = widths.pop()
    names = list(vectors)
    if len(names) > MOST[component]:
        return None
    x = torch.linspace(-1, 2, 3 * width).reshape(3, width)
    try:
        found = gain_of(fn, names, x)
    except Exception:
        try:
            found = gain_of(fn, names, x[None])  # It may want three axes.
        except Exception:
            return None
    if found is None:
        return None
    gain, less = found
    bias = next((n for n in names if n != gain), None)
    lacks_bias = bias is None and component == "layer_norm"
    epsilons = epsilons_in(fn)

    def call(module: nn.Module, args: tuple) -> Any:
        x, wanted, *rest = args
        values = {gain: wanted - less if less else wanted}
        if bias is not None:
            values[bias] = rest[0]
        with resized(module, width, x.shape[-1], epsilons, rest[-1]):
            got = torch.func.functional_call(module, values, (x,))
        if lacks_bias and isinstance(got, Tensor):
            # Added where there is none, so that all contracts can be tried.
            got = got + rest[0].to(got.dtype)
        return got

    words = ("1 + " if less else "") + f"`{gain}` is its gain"
    return call, as_told(words, bias, lacks_bias, bool(epsilons))


def epsilons_in(module: nn.Module) -> list[tuple[nn.Module, str]]:
    """List where a module keeps its eps: the part, and the name there."""
    return [
        (part, name)
        for part in module.modules()
        for name, value in vars(part).items()
        if "eps" in name.lower() and isinstance(value, float)
    ]


def without_a_gain(fn: nn.Module) -> tuple[Callable, str] | None:
    """Return how to call a norm that holds nothing, and what was assumed.

    What the contracts' own gain and bias do is done behind it. None if it may
    be given a gain, if a plain tensor may be one that nothing trains, or if
    nothing says which of its numbers is its width.
    """
    if any(
        isinstance(value, Tensor)
        for part in fn.modules()
        for value in vars(part).values()
    ):
        return None
    every = [*inspect.signature(fn.forward).parameters.values()]
    needed = [one for one in every if one.default is one.empty]
    widths = {
        value if type(value) is int else value[0]
        for part in fn.modules()
        for value in vars(part).values()
        if type(value) is int
        or (isinstance(value, tuple | list) and len(value) == 1)
    }
    if len(every) != 1 or len(needed) != 1 or len(widths) > 1:
        return None
    width, epsilons = next(iter(widths), 0), epsilons_in(fn)

    def call(module: nn.Module, args: tuple) -> Any:
        x, gain, *bias, eps = args
        with resized(module, width, x.shape[-1], epsilons, eps):
            got = module(x)
        if not isinstance(got, Tensor):
            return got
        got = got * gain.to(got.dtype)
        return got + bias[0].to(got.dtype) if bias else got

    said = (
        "it is a module without a gain, and the contracts' own was put "
        "behind it"
    )
    return call, said if epsilons else f"{said}; {NO_EPSILON}"


NO_EPSILON = "it has no `eps` that could be set"


def as_told(
    gain: str, bias: str | None, lacks_bias: bool, has_epsilon: bool
) -> str:
    """Say what was taken for the gain and for the bias."""
    words = f"{gain} and `{bias}` its bias" if bias else gain
    said = f"it is a module: {words}, and the contracts' own stood there"
    if lacks_bias:
        said += "; it has no bias, and the contracts' own was added behind it"
    if not has_epsilon:
        said += f"; {NO_EPSILON}"
    return said


def gain_of(
    module: nn.Module, names: list[str], x: Tensor
) -> tuple[str, float] | None:
    """Return which of the vectors multiplies, and what is added to it first.

    At 0 a gain leaves only the others; at −1, where it multiplies by 1 + w.
    Such a one starts at 0. If all of it is 1, everything gets twice as long,
    and 1 was added to a gain.
    """
    held = dict([*module.named_parameters(), *module.named_buffers()])
    with torch.no_grad():
        # What adds 1 to its result is to be told so, and has a gain too.
        tried = itertools.product((0.0, 1.0), (0.0, 1.0), names)
        for more, less, name in tried:
            if less and bool((held[name] == 1).all()):
                continue
            values = {n: torch.full(x.shape[-1:], 2.0) for n in names}
            values[name] = torch.full(x.shape[-1:], -less)
            got = torch.func.functional_call(module, values, (x,))
            left = more + (2.0 if len(names) > 1 else 0.0)
            if torch.equal(got, torch.full_like(x, left)):
                return name, less
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
