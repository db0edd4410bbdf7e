"""Scaled dot-product attention.

Words for axes, the same in the book, the code and the tests:
    query   positions that ask
    key     positions that are asked, and that answer
    d_k     width of a query or a key
    d_v     width of a value
A leading ``...`` is any number of batch-like axes, for example ``batch head``.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.checks import (
    check_device,
    check_mask_fits,
    check_tensor,
    checked_by,
)

__all__ = [
    "attention_weights",
    "masked_softmax",
    "scaled_dot_product_attention",
    "softmax",
    "softmax_jacobian",
]


def _check_softmax(scores: Tensor, dim: int = -1) -> None:
    _check_float(scores=scores)
    if not isinstance(dim, int) or not -scores.ndim <= dim < scores.ndim:
        raise ValueError(
            f"dim: expected an axis of scores {_shape(scores)}, got {dim!r}"
        )
    if scores.shape[dim] == 0:
        raise ValueError(
            f"scores: axis {dim} has no entries to share the weight, "
            f"got shape {_shape(scores)}"
        )


@checked_by(_check_softmax)
def softmax(
    scores: Float[Tensor, "..."], dim: int = -1
) -> Float[Tensor, "..."]:
    """Turn scores into positive weights that sum to 1 along ``dim``.

    The largest score is subtracted first. That changes nothing in the result,
    because softmax only sees differences, and keeps ``exp`` from overflowing.

    Args:
        scores: Any floating-point numbers.
        dim: The axis whose entries share the weight.

    Returns:
        The weights, of the shape of ``scores``.

    Raises:
        TypeError: ``scores`` is not a floating-point tensor.
        ValueError: ``dim`` is no axis of ``scores``, or has no entries.

    Example:
        >>> softmax(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """
    shifted = scores - scores.amax(dim, keepdim=True).detach()
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def softmax_jacobian(
    weights: Float[Tensor, "... key"],
) -> Float[Tensor, "... key key"]:
    """Compute how each weight moves with each score: ``diag(p) - p pᵀ``.

    The spectral norm of the result never exceeds 1/2, so a softmax alone cannot
    make a gradient explode.

    Args:
        weights: What softmax returned.

    Returns:
        A symmetric matrix for each row of weights.

    Raises:
        TypeError: ``weights`` is not a floating-point tensor.
        ValueError: ``weights`` has no axis, or no entries.

    Example:
        >>> softmax_jacobian(torch.tensor([0.5, 0.5]))
        tensor([[ 0.2500, -0.2500],
                [-0.2500,  0.2500]])
    """
    _check_float(weights=weights)
    _check_entries(weights=weights)
    if weights.ndim == 0:
        raise ValueError("weights: expected at least one axis, got a scalar")
    outer = weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.diag_embed(weights) - outer


def _check_masked(scores: Tensor, mask: Tensor) -> None:
    _check_float(scores=scores)
    check_mask_fits(mask, scores.shape)
    check_device("mask", mask, scores)
    _check_softmax(scores)


@checked_by(_check_masked)
def masked_softmax(
    scores: Float[Tensor, "... query key"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "... query key"]:
    """Apply softmax over the keys that may be seen; the others get exactly 0.

    Args:
        scores: Any floating-point numbers.
        mask: True = may attend. A fully masked row gets zeros, and zero
            gradients.

    Returns:
        The weights, of the shape of ``scores``.

    Raises:
        TypeError: ``mask`` is not boolean (PyTorch would *add* a float mask to
            the scores, so a 0/1 mask would silently mask nothing).
        ValueError: ``mask`` does not broadcast to the shape of ``scores``.

    Example:
        >>> mask = torch.tensor([[True, False]])
        >>> masked_softmax(torch.tensor([[1.0, 5.0]]), mask)
        tensor([[1., 0.]])
    """
    # The lowest finite number and not -inf: softmax makes NaN of a row of -inf,
    # and a NaN that never arises need not be kept out of any gradient.
    lowest = torch.finfo(scores.dtype).min
    weights = softmax(scores.masked_fill(~mask, lowest))
    return weights.masked_fill(~mask, 0.0)


def _check_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
) -> None:
    _check_float(q=q, k=k)
    _check_entries(q=q, k=k)
    if q.dtype != k.dtype:
        raise TypeError(f"k: expected {q.dtype} as q has, got {k.dtype}")
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            "q, k: expected (..., query, d_k) and (..., key, d_k) with one "
            f"d_k, got {_shape(q)} and {_shape(k)}"
        )
    _check_leading("k", k, "q", q.shape)
    if mask is not None:
        check_mask_fits(mask, _scores_shape(q, k))
        check_device("mask", mask, q)


@checked_by(_check_weights)
def attention_weights(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "... query key"]:
    """Compute how much each query looks at each key; every row sums to 1.

    Equation 1 of Vaswani et al. (2017), before the values.

    Args:
        q: Queries.
        k: Keys.
        mask: As in ``masked_softmax``.
        scale: What multiplies the scores, ``1 / sqrt(d_k)`` unless given.

    Returns:
        The weights.

    Raises:
        TypeError: ``q`` or ``k`` is not floating point, or their dtypes differ;
            ``mask`` is not boolean.
        ValueError: ``q`` and ``k`` do not fit together, or one is empty;
            ``mask`` does not broadcast to ``(..., query, key)``.

    Example:
        >>> attention_weights(torch.zeros(1, 3), torch.ones(2, 3))
        tensor([[0.5000, 0.5000]])
    """
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    # Scaling q first keeps the products small enough for half precision.
    scores = (q * scale) @ k.transpose(-2, -1)  # ... query key
    return softmax(scores) if mask is None else masked_softmax(scores, mask)


def _check_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
) -> None:
    _check_float(v=v)
    _check_entries(v=v)
    _check_weights(q, k, mask)
    if v.dtype != k.dtype:
        raise TypeError(f"v: expected {k.dtype} as k has, got {v.dtype}")
    if v.ndim < 2 or v.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"v: expected one value for each of the {k.shape[-2]} keys "
            f"of k {_shape(k)}, got {_shape(v)}"
        )
    _check_leading("v", v, "the weights", _scores_shape(q, k))


@checked_by(_check_attention)
def scaled_dot_product_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "... query d_v"]:
    """Average the values for each query, by ``attention_weights``.

    Equation 1 of Vaswani et al. (2017).

    Args:
        q: Queries.
        k: Keys.
        v: A value for each key.
        mask: As in ``masked_softmax``.
        scale: As in ``attention_weights``.

    Returns:
        A row for each query; zeros where it may attend to nothing.

    Raises:
        TypeError: as ``attention_weights``, and for ``v``.
        ValueError: as ``attention_weights``; ``v`` and ``k`` differ in length.

    Example:
        >>> q, k = torch.zeros(1, 3), torch.ones(2, 3)
        >>> scaled_dot_product_attention(q, k, torch.tensor([[2.0], [4.0]]))
        tensor([[3.]])
    """
    return attention_weights(q, k, mask, scale=scale) @ v


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _scores_shape(q: Tensor, k: Tensor) -> tuple[int, ...]:
    leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    return *leading, q.shape[-2], k.shape[-2]


def _check_float(**tensors: Tensor) -> None:
    for name, x in tensors.items():
        check_tensor(name, x, "", 0)
        if not x.is_floating_point():
            raise TypeError(
                f"{name}: expected a floating-point tensor, got {x.dtype}"
            )


def _check_entries(**tensors: Tensor) -> None:
    for name, x in tensors.items():
        if x.numel() == 0:
            raise ValueError(
                f"{name}: expected at least one entry, got shape {_shape(x)}"
            )


def _check_leading(
    name: str, x: Tensor, other: str, shape: tuple[int, ...]
) -> None:
    """The axes before the last two agree, or broadcast."""
    try:
        torch.broadcast_shapes(x.shape[:-2], shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"{name}: expected leading axes that fit {other} {tuple(shape)}, "
            f"got {_shape(x)}"
        ) from None
