"""Heads that share keys and values, without a copy of either.

Words for axes, the same in the book, the code and the tests:
    query    positions that ask
    key      positions that are asked, and that answer
    head     attentions side by side
    kv_head  heads that keys and values have, each for a group of heads
    d        width of a query or a key within one head
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.attention import scaled_dot_product_attention

__all__ = ["shared_heads_attention"]


def shared_heads_attention(
    q: Float[Tensor, "batch head query d"],
    k: Float[Tensor, "batch kv_head key d"],
    v: Float[Tensor, "batch kv_head key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch head query d_v"]:
    """Compute ``grouped_query_attention``, each stored key read where it is.

    The heads of a group ask the same keys, so they are nothing but more
    queries: (kv_head, group · query) of them stand side by side, and one
    product of matrices serves the group. With one kv_head it is multi-query
    attention (Shazeer, 2019).

    Args:
        q: What each position asks with, in each head.
        k: What a group of neighbouring heads asks each position by.
        v: What each position answers to a group.
        mask: True = may attend; broadcasts to (batch, head, query, key).

    Returns:
        A vector for each head and query; zeros where nobody may be seen.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: the kv_heads do not divide the heads, or ``mask`` does not
            fit.

    Example:
        >>> q, k = torch.zeros(1, 6, 1, 4), torch.zeros(1, 2, 9, 4)
        >>> shared_heads_attention(q, k, k).shape
        torch.Size([1, 6, 1, 4])
    """
    batch, heads, query, _ = q.shape
    kv_heads, key = k.shape[1:3]
    if heads % kv_heads:
        raise ValueError(
            f"k: expected kv_heads that divide the {heads} heads of q, got "
            f"{kv_heads}"
        )
    if mask is not None:
        mask = torch.broadcast_to(mask, (batch, heads, query, key))
        mask = mask.reshape(batch, kv_heads, -1, key)
    asking = q.reshape(batch, kv_heads, -1, q.shape[-1])
    found = scaled_dot_product_attention(asking, k, v, mask)
    return found.reshape(batch, heads, query, -1)
