"""Rotations and tables of distances inside attention, heard while it runs.

Where all positions hold the same vector, a query and a key that are turned
rightly leave a score that only their distance decides. So it is with scores
to which numbers for each distance are added, or nothing at all. What turns is
known by a table that multiplies: all its numbers at position 0 are the same,
and none is larger.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import is_float
from companion.contracts.engine.scale import (
    FUSED,
    HIDDEN,
    LINEAR,
    PRODUCTS,
    SOFTMAX,
)

__all__ = ["ANGLES", "hear_turning", "turned_by_distance"]

QUERIES_ONLY = (
    "Queries are turned by their positions and keys are not, so that the score "
    "of two equal vectors depends on where they stand, and not on how far "
    "apart: turn both."
)
KEYS_ONLY = (
    "Keys are turned by their positions and queries are not, so that the score "
    "of two equal vectors depends on where they stand, and not on how far "
    "apart: turn both."
)
LENGTHS = (
    "What turns queries and keys by their positions changes their lengths, and "
    "so is no rotation: of a pair (a, b) it makes (a cos - b sin, "
    "a sin + b cos). Is the minus lost, or have the two numbers of a pair two "
    "angles?"
)
ANGLES = (
    "The score of two equal vectors depends on where they stand, and not only "
    "on how far apart: are queries and keys turned by the same angles?"
)
SUMS = (
    "The score of two equal vectors depends on the sum of their positions, "
    "i + j, and not on how far apart they are: is the table of distances read "
    "at the right place, or shifted the right way?"
)
VALUES = (
    "Values are turned by their positions as queries and keys are: a row "
    "gathers them unturned, so turn queries and keys only."
)

MULTIPLIES = {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "multiply"}
SHARE = 0.1
"""Scores at one distance differ by less of all that scores differ by."""


class Scored(NamedTuple):
    """One attention: its scores, and what they came of, if that is known."""

    scores: Tensor
    queries: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None


class Turning(TorchFunctionMode):
    """Listens for tables that turn, and for the scores of each attention.

    Attributes:
        seq: How many positions there are.
        turns: Whether something was turned.
        found: The attentions.
        entering: What entered the softmax of each, as far as it was heard.
        same: Whether what is projected first is the same at each position.
    """

    def __init__(self, seq: int):
        super().__init__()
        self.seq, self.turns = seq, False
        self.found: list[Scored] = []
        self.entering: list[Tensor] = []
        self.products: list[tuple[Tensor, Tensor, Tensor]] = []
        self.weights: list[Tensor] = []
        self.same: bool | None = None

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        got, name = func(*args, **kwargs), getattr(func, "__name__", "")
        if name in MULTIPLIES:
            tables = (x for x in args if isinstance(x, Tensor))
            self.turns |= any(is_table(x, self.seq) for x in tables)
        elif name == FUSED:
            order = "query", "key", "value"
            named = dict(zip(order, args, strict=False)) | kwargs
            self.hear_fused(*(named[n].detach() for n in order))
        elif name in SOFTMAX:
            self.hear_softmax(args, kwargs, got)
        elif name in PRODUCTS and is_float(got):
            self.hear_product(name, args, got)
        elif name in LINEAR and self.same is None and is_float(got):
            x = args[0].detach()
            at = x.ndim > 2 and x.shape[1] == self.seq
            self.same = not at or not varies(x, 1)
        return got

    def hear_fused(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        """Note the scores that PyTorch's attention computes inside."""
        if q.ndim > 2 and k.ndim > 2 and q.shape[-3] % k.shape[-3] == 0:
            each = q.shape[-3] // k.shape[-3]
            k = k.repeat_interleave(each, -3) if each > 1 else k
        if q.shape[:-1] == k.shape[:-1]:
            self.found.append(Scored(q @ k.mT, q, k, v))

    def hear_softmax(self, args: tuple, kwargs: dict, got: Tensor) -> None:
        """Note the scores that enter a softmax over the keys."""
        scores = (args[0] if args else kwargs["input"]).detach()
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        last = dim in (-1, scores.ndim - 1)
        square = scores.shape[-2:] == (self.seq, self.seq)
        if scores.ndim > 2 and last and square:
            self.entering.append(scores.clone())
            fits = (p for p in self.products if p[2].shape == scores.shape)
            one, other, product = [(None, None, None), *fits][-1]
            if product is None:
                # The largest of a row may have been subtracted.
                product = scores - scores.diagonal(0, -2, -1)[..., None]
            self.found.append(Scored(product.clone(), one, other))
            self.weights.append(got)

    def hear_product(self, name: str, args: tuple, got: Tensor) -> None:
        """Note two factors, or the values that weights multiply."""
        pair = args[:2]
        if name == "einsum":
            pair = args[1] if isinstance(args[1], list | tuple) else args[1:3]
        pair = pair[::-1] if name == "__rmatmul__" else pair
        if len(pair) != 2 or not all(map(is_float, pair)):
            return
        one, other = (x.detach() for x in pair)
        if self.found and self.found[-1].values is None and self.weights:
            weights = self.weights[-1]
            if one.numel() == weights.numel() and other.ndim > 2:
                last = self.found[-1]
                self.found[-1] = last._replace(values=other.clone())
                return
        if min(one.ndim, other.ndim) > 2:
            given = one.clone(), other.clone(), got.detach()
            self.products.append(given)


def is_table(x: Tensor, seq: int) -> bool:
    """Tell whether a factor may be a table of cosines, by its first row.

    Numbers that multiply, each of modulus 1, are complex.
    """
    if x.numel() < 2 or seq not in x.shape:
        return False
    if x.is_complex():
        return bool((x.detach().abs() - 1).abs().max() < 1e-3)
    if not x.is_floating_point() or bool(((x == 0) | (x == 1)).all()):
        return False  # A mask that multiplies is no table of cosines.
    x = x.detach()
    for axis in (a for a, size in enumerate(x.shape) if size == seq):
        first = x.select(axis, 0)
        top = first.max()
        flat = bool(top > 0) and bool((first - top).abs().max() < 1e-3 * top)
        if flat and bool(x.abs().max() <= 1.001 * top) and varies(x, axis):
            return True
    return False


def varies(x: Tensor, axis: int) -> bool:
    """Tell whether positions along an axis differ, beyond rounding."""
    gap = (x - x.select(axis, 0).unsqueeze(axis)).abs().max()
    return bool(gap > 1e-3 * x.abs().max())


def hear_turning(call: Callable[[], object], seq: int) -> str:
    """Say what is wrong with how queries, keys and values are turned.

    Args:
        call: Calls a module in which all positions hold the same vector.
        seq: How many positions there are: no other axis is as long.

    Returns:
        The fault, or nothing where nothing is turned, or all is rightly.
    """
    with Turning(seq) as heard:
        call()
    # With positions that are added, no vector is like another.
    if heard.same is False:
        return ""
    if not heard.turns:
        return SUMS if any(map(by_sum, heard.entering)) else ""
    for one in heard.found:
        if one.values is None:
            continue
        if moves(one.values, seq):
            # What else tells positions apart, such as a convolution, changes
            # lengths too: of vectors that differ already nothing is known.
            return "" if lengths_vary(one.values, seq) else VALUES
        if not by_distance(one.scores):
            return why(one, seq)
    return ""


def moves(x: Tensor, seq: int) -> bool | None:
    """Tell whether vectors differ by their positions, if it can be told."""
    axes = [axis for axis, size in enumerate(x.shape) if size == seq]
    return varies(x, axes[0]) if len(axes) == 1 else None


def by_distance(scores: Tensor) -> bool:
    """Tell whether scores (..., query, key) depend on the distance alone."""
    rows = scores.double().flatten(0, -3)
    seq = rows.shape[-1]
    past = torch.ones(seq, seq, dtype=torch.bool).tril()
    for row in rows:
        seen = past & (row > HIDDEN) & row.isfinite()
        if not seen.any():
            continue
        all_of_it = row[seen]
        most = float(all_of_it.max() - all_of_it.min())
        if most < 1e-3 * float(all_of_it.abs().max()):
            continue
        for distance in range(seq - 1):
            here = row.diagonal(-distance)[seen.diagonal(-distance)]
            if len(here) and float(here.max() - here.min()) > SHARE * most:
                return False
    return True


def by_sum(scores: Tensor) -> bool:
    """Tell whether the sum of their positions decides scores, and nothing else.

    They are (..., query, key), and so alike along each line that runs from the
    lower left to the upper right.
    """
    rows = scores.double().flatten(0, -3)
    rows = rows.masked_fill(rows <= HIDDEN, -torch.inf)
    seen = rows.isfinite()
    if by_distance(scores) or not seen.any():
        return False
    most = rows.amax() - torch.where(seen, rows, torch.inf).amin()
    for row in rows.flip(-1):
        for at in range(-row.shape[-1] + 1, row.shape[-1]):
            here = row.diagonal(at)
            here = here[here.isfinite()]
            if len(here) and here.max() - here.min() > 1e-3 * most:
                return False
    return True


def turned_by_distance(call: Callable[[], object], seq: int) -> bool:
    """Tell whether vectors are turned, and distances alone decide the scores.

    Args:
        call: Calls a module in which all positions hold the same vector.
        seq: How many positions there are: no other axis is as long.
    """
    with Turning(seq) as heard:
        call()
    return (
        heard.turns
        and heard.same is True
        and bool(heard.found)
        and all(
            by_distance(scores) and by_distance(scores.mT)
            for scores, *_ in heard.found
        )
    )


def why(one: Scored, seq: int) -> str:
    """Say how it comes that scores depend on more than the distance."""
    if one.queries is None or one.keys is None:
        return ANGLES
    queries, keys = moves(one.queries, seq), moves(one.keys, seq)
    if None in (queries, keys):
        return ANGLES
    if scaled_by_place(one.queries, seq) or scaled_by_place(one.keys, seq):
        return ""
    if queries != keys:
        return QUERIES_ONLY if queries else KEYS_ONLY
    return LENGTHS if queries and lengths_vary(one.queries, seq) else ANGLES


def scaled_by_place(x: Tensor, seq: int) -> bool:
    """Tell whether all vectors of a position are longer by the same factor."""
    sizes = lengths(x, seq)
    factors = sizes / sizes.select(0, 0).clamp_min(1e-12)
    apart = factors.amax(1) - factors.amin(1)
    return bool((factors - 1).abs().max() > 0.02 and apart.max() < 1e-3)


def lengths(x: Tensor, seq: int) -> Tensor:
    """Return how long each vector is, (position, vector)."""
    axis = next(a for a, size in enumerate(x.shape) if size == seq)
    along = -2 if axis == x.ndim - 1 else -1
    return x.norm(dim=along, keepdim=True).movedim(axis, 0).flatten(1)


def lengths_vary(x: Tensor, seq: int) -> bool:
    """Tell whether vectors are longer at one position than at another."""
    sizes = lengths(x, seq)
    spread = sizes.amax(0) - sizes.amin(0)
    return bool((spread > 0.02 * sizes.mean()).any())
