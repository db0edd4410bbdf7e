"""What a caller is told whose vectors, places or ids do not fit."""

import torch
from torch import Tensor


def check_float(name: str, x: Tensor, *, axes: str, width: int | None) -> None:
    """Refuses what is no floating-point tensor with the named last two axes.

    ``width`` is the size of the last axis, or None for any size.

    Raises:
        TypeError: ``x`` is no tensor of floating-point numbers.
        ValueError: it has fewer than two axes, or another width.
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        got = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"{name}: expected a floating-point tensor, got {got}")
    if x.ndim < 2 or not x.numel() or x.shape[-1] != (width or x.shape[-1]):
        size = "" if width is None else f" = (..., {width})"
        raise ValueError(
            f"{name}: expected shape (..., {axes}){size}, got {tuple(x.shape)}"
        )


def check_numbers(name: str, x: Tensor) -> None:
    """Refuses what is no tensor of whole or floating-point numbers.

    Raises:
        TypeError: as said.
    """
    kind = getattr(x, "dtype", type(x).__name__)
    refused = torch.bool, torch.complex64, torch.complex128
    if not isinstance(kind, torch.dtype) or kind in refused:
        raise TypeError(f"{name}: expected a tensor of numbers, got {kind}")


def check_fits(
    name: str, shape: torch.Size, target: torch.Size, axes: str
) -> None:
    """Refuses a shape that does not broadcast to ``target``.

    Raises:
        ValueError: as said.
    """
    try:
        fits = torch.broadcast_shapes(shape, target) == target
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name}: expected a shape that broadcasts to {axes} = "
            f"{tuple(target)}, got {tuple(shape)}"
        )


def check_like(name: str, x: Tensor, peer: str, y: Tensor) -> None:
    """Refuses ``x`` if its number type or its device is not that of ``y``.

    Raises:
        TypeError: the number types differ.
        ValueError: the devices differ.
    """
    kind = getattr(x, "dtype", type(x).__name__)
    if kind != y.dtype:
        raise TypeError(f"{name}: expected {y.dtype} as {peer} has, got {kind}")
    if x.device != y.device:
        raise ValueError(
            f"{name}: expected device {y.device}, where {peer} is, "
            f"got {x.device}"
        )


def check_queries_and_keys(q: Tensor, k: Tensor, **sizes: int) -> None:
    """Refuses q and k that are not heads of one sequence asking itself.

    ``sizes`` gives what the scheme was built for: ``head_dim``, and
    ``num_heads`` where each head has numbers of its own.

    Raises:
        TypeError: one is no tensor of floating-point numbers, or they differ.
        ValueError: a shape does not fit.
    """
    axes = "head, seq, head_dim"
    check_float("q", q, axes=axes, width=sizes["head_dim"])
    check_float("k", k, axes=axes, width=None)
    check_like("k", k, "q", q)
    if k.shape != q.shape:
        raise ValueError(
            f"k: expected the shape of q {tuple(q.shape)}, one sequence asks "
            f"itself, got {tuple(k.shape)}"
        )
    heads = sizes.get("num_heads")
    if heads is not None and (q.ndim < 3 or q.shape[-3] != heads):
        raise ValueError(
            f"q: expected (..., head, seq, head_dim) with {heads} heads, "
            f"got {tuple(q.shape)}"
        )


def check_values(v: Tensor, k: Tensor, *, width: int | None = None) -> None:
    """Refuses values that are not one for each key.

    Raises:
        TypeError: ``v`` is no tensor of the number type of ``k``.
        ValueError: its axes before the last are not those of ``k``, or the
            last is not ``width``.
    """
    check_float("v", v, axes="key, d_v", width=width)
    check_like("v", v, "k", k)
    if v.shape[:-1] != k.shape[:-1]:
        raise ValueError(
            f"v: expected one value for each key of k {tuple(k.shape)}, "
            f"got {tuple(v.shape)}"
        )
