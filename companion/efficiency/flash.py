"""FlashAttention in plain PyTorch: exact, and no score matrix is kept.

Dao et al. (2022) and Dao (2023), whose second version this follows. The scores
exist a tile at a time. For the backward pass only one number a row is kept
beside inputs and output, the log of its sum of exponentials; from it each tile
of weights is computed once more. Here that saves memory, and no time: a kernel
on a GPU, such as PyTorch's own, gains time as its tiles stay in fast memory.

Words for axes:
    query   positions that ask
    key     positions that are asked, and that answer
    group   query heads that share a head of keys and values
    d_k     width of a query or a key
    d_v     width of a value
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from companion.checks import (
    check_device,
    check_mask_fits,
    check_sizes,
    check_switches,
    checked_by,
)
from companion.efficiency.online_softmax import Running, merge, running

__all__ = ["flash_attention", "kept_for_backward", "split_attention"]


def _check_inputs(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(
                f"{name}: expected a floating-point tensor, got {kind}"
            )
        if x.dtype != q.dtype:
            raise TypeError(f"{name}: expected {q.dtype} as q, got {x.dtype}")
        if x.ndim < 2 or not x.numel():
            raise ValueError(
                f"{name}: expected (..., position, width) with at least one "
                f"entry, got {tuple(x.shape)}"
            )
    if k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"v: expected a value for each key of k {tuple(k.shape)}, got "
            f"{tuple(v.shape)}"
        )
    alike = k.ndim == q.ndim and k.shape[-1] == q.shape[-1]
    if alike and q.ndim > 2:
        alike = k.shape[:-3] == q.shape[:-3] and not q.shape[-3] % k.shape[-3]
    if not alike:
        raise ValueError(
            "k: expected the leading axes and the width of q "
            f"{tuple(q.shape)}, or heads that divide those of q, got "
            f"{tuple(k.shape)}"
        )
    if mask is not None:
        check_mask_fits(mask, (*q.shape[:-1], k.shape[-2]))
        check_device("mask", mask, q)


def _check_flash(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    *,
    mask: Tensor | None = None,
    block: int = 64,
) -> None:
    _check_inputs(q, k, v, mask)
    check_switches(causal=causal)
    check_sizes(block=block)


@checked_by(_check_flash)
def flash_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    causal: bool = False,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    block: int = 64,
) -> Float[Tensor, "... query d_v"]:
    """Attend tile by tile, forward and backward, and keep no score matrix.

    Algorithms 1 and 2 of Dao (2023), on any device, without its kernels.
    Where ``k`` and ``v`` have fewer heads than ``q``, neighbouring query heads
    share one, of which no more than a tile is ever copied.

    Args:
        q: Queries.
        k: Keys.
        v: A value for each key.
        causal: Whether a query sees only keys up to its own position. Where
            there are more keys than queries, the last query sees all of them
            and is at the last key's position (the triangle ends in the lower
            right corner): so it is when a cache holds what came before.
            PyTorch's ``is_causal`` begins in the upper left corner instead.
        mask: True = may attend, beside ``causal``. It is kept as it was given.
        block: How many queries, and how many keys, a tile has.

    Returns:
        A row for each query; zeros where it may attend to nothing.

    Raises:
        TypeError: a tensor is not floating point, or of another dtype than
            ``q``; ``mask`` is not boolean, ``causal`` is no bool, or ``block``
            no int.
        ValueError: a shape does not fit, or ``block`` is below 1.

    Example:
        >>> q, k = torch.zeros(2, 3), torch.ones(2, 3)
        >>> flash_attention(q, k, torch.tensor([[2.0], [4.0]]), causal=True)
        tensor([[2.],
                [3.]])
    """
    heads = k.shape[-3] if q.ndim > 2 else 1
    grouped = q.unflatten(-3, (heads, -1)) if q.ndim > 2 else q.unsqueeze(-3)
    if mask is not None:
        mask = _mask_of_groups(mask, q, heads)
    output = _Flash.apply(grouped, k, v, mask, causal, block)
    return output.reshape(*q.shape[:-1], v.shape[-1])


def _mask_of_groups(mask: Tensor, q: Tensor, heads: int) -> Tensor:
    """Give a mask (..., head, query, key) an axis for the group, as a view."""
    while mask.ndim < q.ndim:
        mask = mask.unsqueeze(0)
    if q.ndim == 2 or mask.shape[-3] == 1:
        return mask.unsqueeze(-3)
    return mask.unflatten(-3, (heads, -1))


class _Flash(torch.autograd.Function):
    """Attention of queries (..., group, query, d_k) to keys (..., key, d_k)."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        causal: bool,
        block: int,
    ) -> Tensor:
        """Sweep the keys for each block of queries; Algorithm 1."""
        output = q.new_empty(*q.shape[:-1], v.shape[-1])
        lse = torch.empty(q.shape[:-1], dtype=_wide(q), device=q.device)
        for rows in _blocks(q.shape[-2], block):
            so_far = None
            for keys in _blocks(k.shape[-2], block):
                seen = _seen(rows, keys, q, k, mask, causal)
                if seen is False:
                    continue
                scores = _scores(q, k, rows, keys, seen)
                values = v[..., keys, :].to(scores.dtype).unsqueeze(-3)
                parts = running(scores, values)
                so_far = parts if so_far is None else merge(so_far, parts)
            if so_far is None:  # These queries see no key at all.
                output[..., rows, :], lse[..., rows] = 0, math.inf
                continue
            output[..., rows, :] = so_far.result().to(q.dtype)
            found = so_far.log_sum_exp()
            # exp(score - ∞) is 0, also for a score of -∞.
            lse[..., rows] = found.masked_fill(found == -math.inf, math.inf)
        ctx.save_for_backward(q, k, v, output, lse, mask)
        ctx.causal, ctx.block = causal, block
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """Compute each tile of weights once more; Algorithm 2."""
        q, k, v, output, lse, mask = ctx.saved_tensors
        wide = _wide(q)
        of_q, of_k, of_v = (torch.zeros_like(x, dtype=wide) for x in (q, k, v))
        # What each row's softmax takes off all its scores' gradients.
        common = (upstream.to(wide) * output.to(wide)).sum(-1, keepdim=True)
        scale = 1 / math.sqrt(q.shape[-1])
        for keys in _blocks(k.shape[-2], ctx.block):
            k_tile = k[..., keys, :].to(wide).unsqueeze(-3)
            v_tile = v[..., keys, :].to(wide).unsqueeze(-3)
            for rows in _blocks(q.shape[-2], ctx.block):
                seen = _seen(rows, keys, q, k, mask, ctx.causal)
                if seen is False:
                    continue
                scores = _scores(q, k, rows, keys, seen)
                weights = (scores - lse[..., rows].unsqueeze(-1)).exp()
                up = upstream[..., rows, :].to(wide)
                of_weights = up @ v_tile.mT
                of_scores = weights * (of_weights - common[..., rows, :])
                q_tile = q[..., rows, :].to(wide)
                # A head of keys hears all query heads of its group.
                of_v[..., keys, :] += (weights.mT @ up).sum(-3)
                of_k[..., keys, :] += (of_scores.mT @ q_tile).sum(-3) * scale
                of_q[..., rows, :] += of_scores @ k_tile * scale
        found = (x.to(q.dtype) for x in (of_q, of_k, of_v))
        return (*found, None, None, None)


def _wide(x: Tensor) -> torch.dtype:
    """Return what sums are gathered in: float32 for half precision."""
    return torch.promote_types(x.dtype, torch.float32)


def _blocks(length: int, block: int) -> Iterator[slice]:
    """Cut 0 … length - 1 into blocks, of which the last may be smaller."""
    for start in range(0, length, block):
        yield slice(start, min(start + block, length))


def _seen(
    rows: slice,
    keys: slice,
    q: Tensor,
    k: Tensor,
    mask: Tensor | None,
    causal: bool,
) -> Tensor | bool | None:
    """Return who sees whom in a tile: None for all, False for nobody."""
    seen = None
    if mask is not None:
        seen = mask[..., rows, :] if mask.shape[-2] > 1 else mask
        seen = seen[..., keys] if mask.shape[-1] > 1 else seen
    if causal:
        # The lower right corner: the last query is where the last key is.
        ahead = k.shape[-2] - q.shape[-2]
        if keys.start > rows.stop - 1 + ahead:
            return False
        if keys.stop - 1 > rows.start + ahead:
            at = torch.arange(rows.start, rows.stop, device=q.device) + ahead
            key = torch.arange(keys.start, keys.stop, device=q.device)
            past = key <= at.unsqueeze(-1)
            seen = past if seen is None else seen & past
    return seen


def _scores(
    q: Tensor, k: Tensor, rows: slice, keys: slice, seen: Tensor | bool | None
) -> Tensor:
    """Compute one tile of scores, (..., group, row, key), -∞ where hidden."""
    wide = _wide(q)
    scale = 1 / math.sqrt(q.shape[-1])
    q_tile = q[..., rows, :].to(wide) * scale
    # The group's queries stand below each other: one product with its keys.
    stacked = q_tile.flatten(-3, -2) @ k[..., keys, :].to(wide).mT
    scores = stacked.unflatten(-2, q_tile.shape[-3:-1])
    if isinstance(seen, Tensor):
        scores = scores.masked_fill(~seen, -math.inf)
    return scores


def _check_split(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    parts: int,
    *,
    mask: Tensor | None = None,
) -> None:
    _check_inputs(q, k, v, mask)
    if q.shape[:-2] != k.shape[:-2]:
        raise ValueError(
            f"k: expected the leading axes of q {tuple(q.shape)}, got "
            f"{tuple(k.shape)}"
        )
    check_sizes(parts=parts)


@checked_by(_check_split)
def split_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    parts: int,
    *,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "... query d_v"]:
    """Split the keys over workers, who know nothing of each other, and merge.

    One new token has one query a head, too few to keep a GPU busy; its keys are
    many. Here the workers take turns; what matters is that each of them needs
    its own keys only, and that three things a row are all it hands back.

    Args:
        q: Queries, few of them.
        k: Keys.
        v: A value for each key.
        parts: How many workers there are at most.
        mask: True = may attend.

    Returns:
        What plain attention returns, up to rounding; zeros for a query that
        may attend to nothing.

    Raises:
        TypeError: as ``flash_attention``, or ``parts`` is no int.
        ValueError: a shape does not fit, or ``parts`` is below 1.

    Example:
        >>> q, k = torch.zeros(1, 3), torch.ones(2, 3)
        >>> split_attention(q, k, torch.tensor([[2.0], [4.0]]), parts=2)
        tensor([[3.]])
    """
    size = -(-k.shape[-2] // parts)
    found: list[Running] = []
    for keys in _blocks(k.shape[-2], size):
        scores = q @ k[..., keys, :].mT / math.sqrt(q.shape[-1])
        seen = mask
        if mask is not None and mask.shape[-1] > 1:
            seen = mask[..., keys]
        found.append(running(scores, v[..., keys, :], seen))
    # Pairs of neighbours, as a tree: merging is associative.
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        odd = found[-1:] if len(found) % 2 else []
        found = [merge(a, b) for a, b in pairs] + odd
    return found[0].result()


def kept_for_backward(fn: Callable, *args: Any) -> list[tuple[int, ...]]:
    """List the shapes of what autograd keeps of a call for its backward pass.

    A tensor that is kept twice, or as a view of another one, counts once.

    Args:
        fn: A function of tensors.
        args: Its arguments; what is floating point gets a gradient.

    Returns:
        The shapes, the largest first.

    Example:
        >>> kept_for_backward(torch.exp, torch.zeros(2, 3))
        [(2, 3)]
    """
    found: dict[int, tuple[int, ...]] = {}
    alive = []

    def note(x: Tensor) -> Tensor:
        memory = x.untyped_storage().data_ptr()
        alive.append(x)  # So that no later tensor gets the same memory.
        before = found.get(memory, ())
        if not before or x.numel() > math.prod(before):
            found[memory] = tuple(x.shape)
        return x

    given = [
        x.detach().requires_grad_()
        if isinstance(x, Tensor) and x.is_floating_point()
        else x
        for x in args
    ]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        fn(*given)
    return sorted(found.values(), key=math.prod, reverse=True)
