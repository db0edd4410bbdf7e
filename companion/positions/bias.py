"""Positions as a number added to each score: ALiBi and T5.

Words for axes, the same in the book, the code and the tests:
    head   heads of an attention layer
    query  positions that ask
    key    positions that are asked
An offset is key - query: negative where the key came before.
A leading ``...`` is any number of batch-like axes, for example ``batch``.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.attention import masked_softmax, softmax
from companion.checks import (
    check_broadcasts,
    check_device,
    check_float,
    check_like,
    check_mask_fits,
    check_sizes,
    checked_by,
    checking,
)

__all__ = [
    "T5Bias",
    "alibi_bias",
    "alibi_slopes",
    "biased_attention",
    "biased_weights",
    "offsets",
    "t5_bucket",
]


def offsets(
    length: int, start: int = 0, *, device: torch.device | str | None = None
) -> Int[Tensor, "query key"]:
    """Compute how far each key stands after each query: ``key - query``.

    Args:
        length: How many keys there are.
        start: The position of the first query; the last one is the last key's.
        device: Where the offsets are made.

    Returns:
        One offset for each query and key.

    Raises:
        TypeError, ValueError: ``length`` is no whole number from 1 up.

    Example:
        >>> offsets(3)
        tensor([[ 0,  1,  2],
                [-1,  0,  1],
                [-2, -1,  0]])
    """
    if checking():
        check_sizes(length=length)
    positions = torch.arange(length, device=device)
    return positions - positions[start:].unsqueeze(-1)


def _check_biased(
    q: Tensor,
    k: Tensor,
    bias: Tensor,
    mask: Tensor | None = None,
    *,
    scale: float | None = None,
) -> None:
    check_float("q", q, axes="query, d_k", width=None)
    check_float("k", k, axes="key, d_k", width=q.shape[-1])
    check_like("k", k, "q", q)
    leading = q.shape[:-2]
    check_broadcasts("k", k.shape[:-2], leading, "the leading axes of q")
    check_like("bias", bias, "q", q)
    shape = *leading, q.shape[-2], k.shape[-2]
    check_broadcasts("bias", bias.shape, shape, "(..., query, key)")
    if mask is not None:
        check_mask_fits(mask, shape)
        check_device("mask", mask, q)


@checked_by(_check_biased)
def biased_weights(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    bias: Float[Tensor, "..."],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "... query key"]:
    """Compute the attention weights of ``scale · q kᵀ + bias``.

    Args:
        q: What each position asks for.
        k: What each position offers.
        bias: What is added to the scores; broadcasts to them.
        mask: Who may be attended to: True = may. A query that may attend to
            nothing gets zeros.
        scale: ``1 / sqrt(d_k)`` unless given; T5 uses 1.

    Returns:
        The attention weights.

    Raises:
        TypeError: An input is not floating point, or the types differ; ``mask``
            is not boolean.
        ValueError: A shape does not fit.

    Example:
        >>> q, k = torch.zeros(1, 2), torch.zeros(2, 2)
        >>> biased_weights(q, k, torch.tensor([[0.0, 3.0]]).log1p())
        tensor([[0.2000, 0.8000]])
    """
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1])
    scores = (q * scale) @ k.transpose(-2, -1) + bias
    return softmax(scores) if mask is None else masked_softmax(scores, mask)


def biased_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    bias: Float[Tensor, "..."],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    scale: float | None = None,
) -> Float[Tensor, "... query d_v"]:
    """Compute each query's average of the values, by ``biased_weights``.

    Args:
        q: What each position asks for.
        k: What each position offers.
        v: What each position hands over.
        bias: What is added to the scores; broadcasts to them.
        mask: Who may be attended to: True = may.
        scale: ``1 / sqrt(d_k)`` unless given.

    Returns:
        One vector a query.

    Raises:
        TypeError, ValueError: As ``biased_weights``, and for ``v``.

    Example:
        >>> q, k = torch.zeros(1, 2), torch.zeros(2, 2)
        >>> v = torch.tensor([[0.0], [10.0]])
        >>> biased_attention(q, k, v, torch.zeros(1, 2))
        tensor([[5.]])
    """
    weights = biased_weights(q, k, bias, mask, scale=scale)
    if checking():
        check_values(v, k)
    return weights @ v


def check_values(v: Tensor, k: Tensor, *, width: int | None = None) -> None:
    """Refuse values that are not one for each key.

    Raises:
        TypeError: ``v`` is no tensor of the dtype of ``k``.
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


def alibi_slopes(
    num_heads: int, *, device: torch.device | str | None = None
) -> Float[Tensor, " head"]:
    """Compute how steeply each head forgets: a geometric sequence down to 2⁻⁸.

    For a power of two, head h = 1 … H has ``2^(-8h / H)``. Otherwise the rest
    is every other slope of twice the power below. Section 3 of Press et al.
    (2022), and their code for the second case.

    Args:
        num_heads: How many heads.
        device: Where the slopes are made.

    Returns:
        One slope a head.

    Raises:
        TypeError, ValueError: ``num_heads`` is no whole number from 1 up.

    Example:
        >>> alibi_slopes(4)
        tensor([0.2500, 0.0625, 0.0156, 0.0039])
    """
    if checking():
        check_sizes(num_heads=num_heads)
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = -8 * torch.arange(1, power + 1, device=device) / power
    between = -4 * torch.arange(1, 2 * power, 2, device=device) / power
    return torch.cat([slopes, between])[:num_heads].exp2()


def alibi_bias(
    num_heads: int,
    length: int,
    start: int = 0,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "head query key"]:
    """Compute minus slope times distance: no parameters, no longest length.

    Press et al. (2022) look back only; here a key that comes after is
    penalised like one that came before. Under a causal mask both agree.

    Args:
        num_heads: How many heads.
        length: How many keys.
        start: The position of the first query; the last one is the last key's.
        device: Where the bias is made.
        dtype: Its type; the default floating-point type unless given.

    Returns:
        What is added to the scores.

    Raises:
        TypeError, ValueError: A size is no whole number from 1 up.

    Example:
        >>> alibi_bias(8, 2)[0]
        tensor([[ 0.0000, -0.5000],
                [-0.5000,  0.0000]])
    """
    slopes = alibi_slopes(num_heads, device=device).to(dtype)
    distance = offsets(length, start, device=slopes.device).abs()
    return slopes.view(-1, 1, 1) * -distance


def t5_bucket(
    offset: Int[Tensor, "*axes"],
    *,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Int[Tensor, "*axes"]:
    """Find the bucket that an offset key - query falls into.

    Near offsets have a bucket each. Farther ones share, in steps that grow
    geometrically; all from ``max_distance`` on share the last. Half of the
    buckets is for keys that come after, or, if not ``bidirectional``, those
    share bucket 0 with offset 0. Section 2.1 of Raffel et al. (2020).

    Args:
        offset: How far a key stands after its query.
        num_buckets: How many buckets there are.
        max_distance: From where on all offsets share the last one.
        bidirectional: Whether keys that come after have buckets of their own.

    Returns:
        A bucket for each offset.

    Raises:
        TypeError: ``offset`` is no tensor of integers.
        ValueError: The buckets are odd, too few, or reach too near.

    Example:
        >>> t5_bucket(torch.tensor([0, -1, -7, -8, -20, -500, 1]))
        tensor([ 0,  1,  7,  8, 10, 15, 17])
    """
    if checking():
        _check_buckets(offset, num_buckets, max_distance, bidirectional)
    side = num_buckets // 2 if bidirectional else num_buckets
    later = (offset > 0) * side if bidirectional else torch.zeros_like(offset)
    distance = offset.abs() if bidirectional else (-offset).clamp(min=0)
    near = side // 2
    # The logarithm is not used below `near`, and is kept from being log(0). In
    # float32, as everywhere: at a bucket's edge it is rounding that decides.
    ratio = distance.clamp(min=near).float() / near
    steps = ratio.log() / math.log(max_distance / near)
    far = (near + (steps * (side - near)).long()).clamp(max=side - 1)
    return later + torch.where(distance < near, distance, far)


class T5Bias(nn.Module):
    """Learn a number for each head and bucket of offsets, to add to the scores.

    Args:
        num_heads: How many heads.
        num_buckets: As in ``t5_bucket``.
        max_distance: As in ``t5_bucket``.
        bidirectional: As in ``t5_bucket``.

    Attributes:
        weight: num_buckets × num_heads.

    Example:
        >>> T5Bias(num_heads=2)(length=3).shape
        torch.Size([2, 3, 3])
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
    ):
        super().__init__()
        check_sizes(num_heads=num_heads)
        self.buckets = {
            "num_buckets": num_buckets,
            "max_distance": max_distance,
            "bidirectional": bidirectional,
        }
        t5_bucket(torch.zeros(1, dtype=torch.long), **self.buckets)
        self.weight = nn.Parameter(torch.empty(num_buckets, num_heads))
        nn.init.normal_(self.weight, std=0.02)

    def forward(
        self, length: int, start: int = 0
    ) -> Float[Tensor, "head query key"]:
        """Look up the bias of each head, for ``biased_attention``.

        Args:
            length: How many keys there are.
            start: The position of the first query.

        Raises:
            TypeError, ValueError: ``length`` is no whole number from 1 up.
        """
        offset = offsets(length, start, device=self.weight.device)
        bias = self.weight[t5_bucket(offset, **self.buckets)]
        return bias.movedim(-1, 0)


def _check_buckets(
    offset: Tensor, num_buckets: int, max_distance: int, bidirectional: bool
) -> None:
    kind = getattr(offset, "dtype", type(offset).__name__)
    if kind not in (torch.int64, torch.int32):
        raise TypeError(f"offset: expected a tensor of integers, got {kind}")
    check_sizes(num_buckets=num_buckets, max_distance=max_distance)
    side = num_buckets // 2 if bidirectional else num_buckets
    if side < 2 or (bidirectional and num_buckets % 2):
        wanted = "an even number from 4 up" if bidirectional else "2 or more"
        raise ValueError(f"num_buckets: expected {wanted}, got {num_buckets}")
    if max_distance <= side // 2:
        raise ValueError(
            f"max_distance: expected more than the {side // 2} near offsets "
            f"that have a bucket each, got {max_distance}"
        )
