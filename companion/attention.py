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

from companion.data.checks import check_device, check_mask_fits


def softmax(
    scores: Float[Tensor, "..."], dim: int = -1
) -> Float[Tensor, "..."]:
    """Turn scores into positive weights that sum to 1 along ``dim``.

    The largest score is subtracted first. That changes nothing in the result,
    because softmax only sees differences, and keeps ``exp`` from overflowing.

    Raises:
        TypeError: ``scores`` is not a floating-point tensor.
        ValueError: ``dim`` is no axis of ``scores``, or has no entries.
    """
    _require_float(scores=scores)
    if not isinstance(dim, int) or not -scores.ndim <= dim < scores.ndim:
        raise ValueError(
            f"dim: expected an axis of scores {_shape(scores)}, got {dim!r}"
        )
    if scores.shape[dim] == 0:
        raise ValueError(
            f"scores: axis {dim} has no entries to share the weight, "
            f"got shape {_shape(scores)}"
        )
    shifted = scores - scores.amax(dim, keepdim=True).detach()
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def softmax_jacobian(
    weights: Float[Tensor, "... key"],
) -> Float[Tensor, "... key key"]:
    """How each weight moves with each score: ``diag(p) - p pᵀ``.

    ``weights`` is what softmax returned. The spectral norm of the result never
    exceeds 1/2, so a softmax alone cannot make a gradient explode.

    Raises:
        TypeError: ``weights`` is not a floating-point tensor.
        ValueError: ``weights`` has no axis, or no entries.
    """
    _require_float(weights=weights)
    _require_entries(weights=weights)
    if weights.ndim == 0:
        raise ValueError("weights: expected at least one axis, got a scalar")
    outer = weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.diag_embed(weights) - outer


def masked_softmax(
    scores: Float[Tensor, "... query key"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "... query key"]:
    """Softmax over the keys that may be seen; the others get exactly 0.

    ``mask`` says who may be looked at: True = may attend. A query that may look
    at nobody gets a row of zeros, and zero gradients.

    Raises:
        TypeError: ``mask`` is not boolean (PyTorch would *add* a float mask to
            the scores, so a 0/1 mask would silently mask nothing).
        ValueError: ``mask`` does not broadcast to the shape of ``scores``.
    """
    _require_float(scores=scores)
    check_mask_fits(mask, scores.shape)
    check_device("mask", mask, scores)
    # The lowest finite number and not -inf: softmax makes NaN of a row of -inf,
    # and a NaN that never arises need not be kept out of any gradient.
    lowest = torch.finfo(scores.dtype).min
    weights = softmax(scores.masked_fill(~mask, lowest))
    return weights.masked_fill(~mask, 0.0)


def attention_weights(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "... query key"]:
    """How much each query looks at each key; every row sums to 1.

    Equation 1 of Vaswani et al. (2017), before the values. ``mask`` is as in
    ``masked_softmax``. ``scale`` multiplies the scores and is ``1 / sqrt(d_k)``
    unless given.

    Raises:
        TypeError: ``q`` or ``k`` is not floating point, or their dtypes differ;
            ``mask`` is not boolean.
        ValueError: ``q`` and ``k`` do not fit together, or one is empty;
            ``mask`` does not broadcast to ``(..., query, key)``.
    """
    _require_pair(q, k)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    # Scaling q first keeps the products small enough for half precision.
    scores = (q * scale) @ k.transpose(-2, -1)  # ... query key
    return softmax(scores) if mask is None else masked_softmax(scores, mask)


def scaled_dot_product_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "... query d_v"]:
    """Each query's average of the values, by ``attention_weights``.

    Equation 1 of Vaswani et al. (2017). Arguments as in ``attention_weights``.

    Raises:
        TypeError: as ``attention_weights``, and for ``v``.
        ValueError: as ``attention_weights``; ``v`` and ``k`` differ in length.
    """
    _require_float(v=v)
    _require_entries(v=v)
    weights = attention_weights(q, k, mask, scale=scale)
    if v.dtype != weights.dtype:
        raise TypeError(f"v: expected {k.dtype} as k has, got {v.dtype}")
    if v.ndim < 2 or v.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"v: expected one value for each of the {k.shape[-2]} keys "
            f"of k {_shape(k)}, got {_shape(v)}"
        )
    _require_same_leading("v", v, "the weights", weights)
    return weights @ v


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _require_float(**tensors: Tensor) -> None:
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(
                f"{name}: expected a tensor, got {type(x).__name__}"
            )
        if not x.is_floating_point():
            raise TypeError(
                f"{name}: expected a floating-point tensor, got {x.dtype}"
            )


def _require_entries(**tensors: Tensor) -> None:
    for name, x in tensors.items():
        if x.numel() == 0:
            raise ValueError(
                f"{name}: expected at least one entry, got shape {_shape(x)}"
            )


def _require_pair(q: Tensor, k: Tensor) -> None:
    _require_float(q=q, k=k)
    _require_entries(q=q, k=k)
    if q.dtype != k.dtype:
        raise TypeError(f"k: expected {q.dtype} as q has, got {k.dtype}")
    if q.ndim < 2 or k.ndim < 2 or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            "q, k: expected (..., query, d_k) and (..., key, d_k) with one "
            f"d_k, got {_shape(q)} and {_shape(k)}"
        )
    _require_same_leading("k", k, "q", q)


def _require_same_leading(name: str, x: Tensor, peer: str, y: Tensor) -> None:
    """The axes before the last two agree, or broadcast."""
    try:
        torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"{name}: expected leading axes that fit {peer} {_shape(y)}, "
            f"got {_shape(x)}"
        ) from None
