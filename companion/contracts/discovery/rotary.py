"""Call a module that turns vectors, or makes the tables for it, as ``rope``.

It is built for each width that the contracts send. What makes tables is asked
for long ones, by which vectors are turned. What turns vectors by their place
gets each vector at its position in a sentence of its own.
"""

import contextlib
import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.adapters import rope_of_tables
from companion.contracts.discovery.arguments import required_names
from companion.contracts.discovery.make import NotBuilt, arguments, make
from companion.contracts.discovery.sizes import HEADS, is_size

__all__ = ["BY_PLACE", "ROTARY", "SCALED", "as_rope", "turning_by_place"]

ROTARY = re.compile(
    r"(\w*(Rotary|ROPE|RoPE|Rope)|rotary|rope)"
    r"(?i:(_?(pos(ition(al)?)?|emb(edding)?s?|enc(od(ing|er))?s?|pe))*)"
)
"""What is called so turns vectors, or makes the tables for it."""

SCALED = re.compile(
    r"(?i)scal|ntk|yarn|xpos|partial|percent|fraction|ratio|rotary_dim|axial"
    r"|2d|concentration|interpol|factor|compress|section"
)
"""What has such a word turns by other angles than the paper's, on purpose."""

LENGTH = re.compile(
    r"(?i)(max_?)?(seq(uence)?_?)?len(gth)?|seq|(num|n)_?pos(itions?)?|end|n|t"
    r"|max_?positions?"
)
"""What is called so is how long tables are to be."""

LONG = 64
"""Longer than the positions that the contracts send."""

START = re.compile(
    r"(?i)(start|past|cache|seq|position)_?(pos(ition)?|offset|idx|index)"
    r"|offset|start|past_(seq_?)?len(gth)?"
)
"""What is called so is the position of the first vector."""

BY_PLACE = "each vector stood at its position in a sentence of its own"
AT_0 = "; its `{}` was 0"
EACH_WIDTH = "built anew for each width"
BY_TABLES = "it makes tables, by which vectors were turned"


def as_rope(kind: type, near: dict) -> tuple[Callable, str] | None:
    """Return a class as a function of vectors and positions, and how.

    None, if no usual call of it is understood.

    Args:
        kind: The class.
        near: What else stands in its file.
    """

    @cache
    def of_heads(width: int) -> nn.Module:
        return make(kind, near, width, length=LONG)[0].eval()

    def built(width: int) -> nn.Module:
        return of_heads(times * width)

    times = 1
    try:
        # Where it asks how many there are, its width may be that of all heads.
        if any(is_size(x, HEADS) for x in arguments(kind, near).values()):
            with torch.no_grad():
                turns = axis_of_places(of_heads(HEADS * 8)) is not None
            times = HEADS if turns else 1
        tried = built(8)
        with torch.no_grad():
            if tables(tried, 8, 5) is not None:
                turn = rope_of_tables(lambda w, n: tables(built(w), w, n))
                return turn, BY_TABLES
            others = [
                n for n in required_names(tried)[1:] if not START.fullmatch(n)
            ]
            if "pos" in "".join(others).lower():
                return with_positions(built, tried), EACH_WIDTH
            axis = axis_of_places(tried)
    except NotBuilt:
        return None
    if axis is None:
        return None

    def rope(x: Tensor, positions: Tensor) -> Tensor:
        return by_place(built(x.shape[-1]), axis, x, positions)

    start = "".join(n for n in required_names(tried)[1:] if START.fullmatch(n))
    return rope, BY_PLACE + (AT_0.format(start) if start else "")


def turning_by_place(fn: Callable) -> Callable | None:
    """Return a function of vectors alone as one of vectors and positions.

    None, if it is not called so, or turns along no axis.
    """
    module = nn.Module()
    module.forward = fn  # pyrefly: ignore
    try:
        with torch.no_grad():
            axis = axis_of_places(module)
    except (TypeError, ValueError):  # It has no signature.
        return None
    if axis is None:
        return None

    def rope(x: Tensor, positions: Tensor) -> Tensor:
        return by_place(module, axis, x, positions)

    return rope


def with_positions(
    built: Callable[[int], nn.Module], like: nn.Module
) -> Callable:
    """Make of modules a function that takes what ``like`` takes.

    Args:
        built: From a width, the module.
        like: One of them.
    """

    def rope(*args: Any, **named: Any) -> Any:
        width = next(iter((*args, *named.values()))).shape[-1]
        return built(width)(*args, **named)

    rope.__signature__ = inspect.signature(like.forward)  # pyrefly: ignore
    return rope


def tables(module: nn.Module, width: int, length: int) -> Any:
    """Ask a module for the tables of so many positions; None, if it has none.

    It is given their number, or vectors that are so many.
    """
    names = required_names(module)
    known = inspect.signature(module.forward).parameters
    more: dict[str, Any] = {"device": "cpu"} if "device" in names else {}
    left = [name for name in names if name != "device"]
    word = next((n for n in known if LENGTH.fullmatch(n)), "")
    calls: list[dict[str, Any]] = []
    if len(left) == 1 and LENGTH.fullmatch(left[0]):
        calls = [{left[0]: length}]
    elif len(left) == 1:
        x = torch.zeros(1, 1, length, width)
        calls = [{left[0]: x, **({word: length} if word else {})}]
    elif len(left) == 2 and LENGTH.fullmatch(left[1]):
        x = torch.zeros(1, 1, length, width)
        calls = [{left[0]: x, left[1]: length}]
    elif len(left) == 2 and left[1].startswith("pos"):
        x, at = torch.zeros(1, 1, length, width), torch.arange(length)
        calls = [{left[0]: x, left[1]: given} for given in (at[None], at)]
    for words in calls:
        try:
            found = module(**words, **more)
        except Exception:
            continue
        if isinstance(found, Tensor) and not found.is_complex():
            angles = found.ndim == 2 and len(found) == length
            found = (found.cos(), found.sin()) if angles else None
        if are_tables(found, width, length):
            return found
    return None


def are_tables(found: object, width: int, length: int) -> bool:
    """Tell whether these are cosines and sines, a row for each position."""
    if isinstance(found, Tensor):
        each = (found,)
    elif isinstance(found, tuple | list) and len(found) == 2:
        each = tuple(found)
    else:
        return False
    sizes = {length * width, length * width // 2}
    return all(
        isinstance(x, Tensor)
        and x.numel() in sizes
        and x.shape[-1] in (width // 2, *[width] * (not x.is_complex()))
        and (x.is_complex() or bool((x.abs() <= 1.001).all()))
        for x in each
    )


def turned(module: nn.Module, x: Tensor) -> Tensor | None:
    """Return vectors as a module turns them, queries where it takes both."""
    names = required_names(module)
    first = {n: 0 for n in names[1:] if START.fullmatch(n)}
    count = len(names) - len(first)
    if count not in (1, 2):
        return None
    if len(names) == 2 and LENGTH.fullmatch(names[1]):
        return of_a_length(module, x)
    found = module(*[x] * count, **first)
    several = isinstance(found, tuple | list) and len(found) == count == 2
    found = found[0] if several else found
    fits = isinstance(found, Tensor) and found.shape == x.shape
    return found if fits else None


def of_a_length(module: nn.Module, x: Tensor) -> Tensor | None:
    """Return vectors as turned by what also wants to know how many there are.

    They stand along the axis before the last, or along the second.
    """
    for length in dict.fromkeys((x.shape[-2], x.shape[1])):
        with contextlib.suppress(Exception):
            found = module(x, length)
            if isinstance(found, Tensor) and found.shape == x.shape:
                return found
    return None


def axis_of_places(module: nn.Module) -> int | None:
    """Find the axis along which equal vectors are turned otherwise.

    It is 2 or 1 of four axes, or 1 of three, written as -1.
    """
    vector = torch.linspace(0.5, 1.5, 8)
    for shape, axes in (((2, 3, 5, 8), (2, 1)), ((2, 5, 8), (1,))):
        try:
            got = turned(module, vector.expand(shape).contiguous())
        except Exception:
            continue
        if got is None:
            continue
        moved = [
            n
            for n in range(len(shape) - 1)
            if not torch.allclose(got, got.narrow(n, 0, 1).expand_as(got))
        ]
        if len(moved) == 1 and moved[0] in axes:
            return moved[0] if len(shape) == 4 else -1
    return None


def by_place(
    module: nn.Module, axis: int, x: Tensor, positions: Tensor
) -> Tensor:
    """Turn each vector at its position in a sentence of its own."""
    flat = x.reshape(-1, x.shape[-1])
    at = positions.expand(x.shape[:-1]).reshape(-1)
    rows = torch.arange(len(flat))
    long = flat.new_zeros(len(flat), int(positions.max()) + 1, x.shape[-1])
    long = long.index_put((rows, at), flat)
    if axis > 0:  # Of four axes, the other of these is that of one head.
        found = turned(module, long.unsqueeze(3 - axis))
        found = found if found is None else found.squeeze(3 - axis)
    else:
        found = turned(module, long)
    # Whatever has another shape is told as that.
    return x[:0] if found is None else found[rows, at].reshape(x.shape)
