"""Heads that share their keys and values, and what that saves.

Words for axes, the same in the book, the code and the tests:
    query    positions that ask
    key      positions that are asked, and that answer
    head     attentions side by side
    kv_head  heads that keys and values have, each for a group of heads
    d        width of a query or a key within one head
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from companion.attention import scaled_dot_product_attention
from companion.checks import (
    check_mask_fits,
    check_sizes,
    check_states,
    check_switches,
    check_vectors,
    checked_by,
)
from companion.multihead import KVCache, Mask, MultiHeadAttention, split_heads
from companion.positions import rotate
from companion.transformer.model import start_weights

__all__ = [
    "GroupedQueryAttention",
    "cache_numbers",
    "grouped_query_attention",
]


def _check_groups(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_states(name, x, q)
    check_vectors("q", q, q, batch=None, head=None, query=None, d=None)
    batch, heads, query, d = q.shape
    check_vectors("k", k, q, batch=batch, kv_head=None, key=None, d=d)
    kv_heads, key = k.shape[1:3]
    if heads % kv_heads:
        raise ValueError(
            f"k: expected kv_heads that divide the {heads} heads of q, got "
            f"{kv_heads}"
        )
    check_vectors("v", v, q, batch=batch, kv_head=kv_heads, key=key, d_v=None)
    if mask is not None:
        check_mask_fits(mask, (batch, heads, query, key))


@checked_by(_check_groups)
def grouped_query_attention(
    q: Float[Tensor, "batch head query d"],
    k: Float[Tensor, "batch kv_head key d"],
    v: Float[Tensor, "batch kv_head key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch head query d_v"]:
    """Attention in which neighbouring heads share their keys and values.

    With r = head / kv_head, heads 0 … r - 1 ask kv_head 0, the next r ask
    kv_head 1. One kv_head is the multi-query attention of Shazeer (2019), as
    many as heads is multi-head attention; between them stands figure 2 of
    Ainslie et al. (2023). ``mask``: True = may attend; a query that may look at
    nobody gets zeros.

    Raises:
        TypeError: a tensor is not floating point, or a dtype differs; ``mask``
            is not boolean.
        ValueError: the kv_heads do not divide the heads, a shape does not fit.
    """
    k, v = (_shared(x, q.shape[1]) for x in (k, v))
    return scaled_dot_product_attention(q, k, v, mask)


class GroupedQueryAttention(MultiHeadAttention):
    """Attend with fewer heads of keys and values than of queries.

    Section 2.2 of Ainslie et al. (2023). With ``rotary`` queries and keys are
    turned by their position (Su et al., 2021), and values are not: they say
    what stands there, and not where.

    Args:
        d_model: Width of the vectors.
        num_heads: Heads of queries.
        num_kv_heads: Heads of keys and values.
        rotary: Whether queries and keys are turned.
        bias: Whether the linear maps have one.

    Raises:
        TypeError: A size is not an int, or a switch not a bool.
        ValueError: A size is below 1; ``num_heads`` does not divide
            ``d_model``, or ``num_kv_heads`` does not divide ``num_heads``; with
            ``rotary`` a head has an odd width.

    Example:
        >>> attend = GroupedQueryAttention(12, num_heads=6, num_kv_heads=2)
        >>> attend.k_proj.weight.shape, attend(torch.zeros(1, 5, 12)).shape
        (torch.Size([4, 12]), torch.Size([1, 5, 12]))
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int,
        rotary: bool = False,
        bias: bool = True,
    ):
        super().__init__(d_model, num_heads, bias=bias)
        check_sizes(num_kv_heads=num_kv_heads)
        check_switches(rotary=rotary)
        _group(num_heads, num_kv_heads)  # Refuses what cannot be shared out.
        head_dim = d_model // num_heads
        if rotary and head_dim % 2:
            raise ValueError(
                "num_heads: expected an even width of a head to turn in "
                f"pairs, got {d_model} / {num_heads} = {head_dim}"
            )
        self.num_kv_heads, self.rotary = num_kv_heads, rotary
        width = num_kv_heads * head_dim
        self.k_proj = nn.Linear(d_model, width, bias=bias)
        self.v_proj = nn.Linear(d_model, width, bias=bias)
        start_weights(self.k_proj)
        start_weights(self.v_proj)

    def queries(
        self, x: Float[Tensor, "batch query d_model"], start: int = 0
    ) -> Float[Tensor, "batch head query d"]:
        """Compute what each position asks with; the first is ``start``."""
        return self._turned(super().queries(x), start)

    def keys(
        self, x: Float[Tensor, "batch key d_model"], start: int = 0
    ) -> Float[Tensor, "batch kv_head key d"]:
        """Compute what a group of heads asks each position by."""
        k = split_heads(self.k_proj(x), self.num_kv_heads)
        return self._turned(k, start)

    def values(
        self, x: Float[Tensor, "batch key d_model"]
    ) -> Float[Tensor, "batch kv_head key d"]:
        """Compute what each position answers to a group of heads."""
        return split_heads(self.v_proj(x), self.num_kv_heads)

    def _check(
        self,
        x: Tensor,
        mask: Mask = None,
        key: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> None:
        if self.rotary and key is not None:
            raise ValueError(
                "key: expected none, because rotary positions are those of "
                "one sequence that asks itself"
            )
        super()._check(x, mask, key, cache)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        k, v = (_shared(x, self.num_heads) for x in (k, v))
        return super()._attend(q, k, v, mask)

    def _weights(self, q: Tensor, k: Tensor, mask: Mask) -> Tensor:
        return super()._weights(q, _shared(k, self.num_heads), mask)

    def _turned(self, x: Tensor, start: int) -> Tensor:
        if not self.rotary:
            return x
        stop = start + x.shape[-2]
        return rotate(x, torch.arange(start, stop, device=x.device))


def cache_numbers(
    num_layers: int, num_kv_heads: int, head_dim: int, length: int
) -> int:
    """Count the numbers that a cache stores for one sequence.

    A key and a value, for each layer, kv_head and position.

    Args:
        num_layers: Layers.
        num_kv_heads: Heads of keys and values.
        head_dim: Width of a head.
        length: Tokens.

    Returns:
        How many numbers.

    Raises:
        TypeError, ValueError: A size is no whole number from 1 up.

    Example:
        >>> cache_numbers(num_layers=32, num_kv_heads=8, head_dim=128, length=1)
        65536
    """
    sizes = {"num_layers": num_layers, "num_kv_heads": num_kv_heads}
    check_sizes(**sizes, head_dim=head_dim, length=length)
    return 2 * num_layers * num_kv_heads * head_dim * length


def _shared(
    x: Float[Tensor, "batch kv_head key d"], num_heads: int
) -> Float[Tensor, "batch head key d"]:
    """Each kv_head once for every head of its group."""
    return x.repeat_interleave(_group(num_heads, x.shape[1]), dim=1)


def _group(num_heads: int, num_kv_heads: int) -> int:
    """How many heads share one kv_head."""
    if num_heads % num_kv_heads:
        raise ValueError(
            f"num_kv_heads: expected a divisor of the {num_heads} heads, "
            f"got {num_kv_heads}"
        )
    return num_heads // num_kv_heads
