"""What is tried on grouped-query attention, and how it may go wrong.

Sizes are apart: 2 sentences, 6 query heads that share 2 key and value heads,
3 queries, 5 keys, d = 11 and d_v = 7. What one head may get wrong is what
attention may get wrong, so those mistakes are the same functions.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.attention.attention import ATTENTION
from companion.contracts.engine.compare import draw
from companion.contracts.engine.masking import PATCHY, causal

HEADS, KV_HEADS = 6, 2


def qkv(
    seed: int, kv_heads: int = KV_HEADS, heads: int = HEADS
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values."""
    return (
        draw(2, heads, 3, 11, seed=seed),
        draw(2, kv_heads, 5, 11, seed=seed + 100),
        draw(2, kv_heads, 5, 7, seed=seed + 200),
    )


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    # Where all sizes are equal, swapped arguments and axes show their numbers.
    square = (draw(2, n, 5, 5, seed=s) for n, s in ((6, 3), (2, 5), (2, 7)))
    return {
        "for 2 groups of 3 heads": qkv(2),
        "for 3 groups of 2 heads": qkv(3, 3),
        "with a causal mask": (*square, causal(5)),
        "with a mask": (*qkv(11), PATCHY),
        "with a mask for each head": (*qkv(13), patches()),
    }


def patches() -> Tensor:
    """A mask (batch, head, query, key) that differs from head to head."""
    mask = draw(2, HEADS, 3, 5, seed=17) > 0
    mask[..., 2] = True
    return mask


def each(x: Tensor, heads: int) -> Tensor:
    """Every key or value head, once for each query head of its group."""
    return x.repeat_interleave(heads // x.shape[1], 1)


def oracle(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """PyTorch's own, with the shared heads written out."""
    heads = q.shape[1]
    return F.scaled_dot_product_attention(
        q, each(k, heads), each(v, heads), mask
    )


def shared(spread: Callable, other: Callable | None = None) -> Callable:
    """Attention whose key and value heads are shared out otherwise."""

    def suspect(q, k, v, mask=None):
        keys = spread(k, q.shape[1])
        values = (other or spread)(v, q.shape[1])
        return F.scaled_dot_product_attention(q, keys, values, mask)

    return suspect


def head_by_head(suspect: Callable) -> Callable:
    """A mistake of attention, made in every head."""

    def mistake(q, k, v, mask=None):
        return suspect(q, each(k, q.shape[1]), each(v, q.shape[1]), mask)

    return mistake


def in_turns(x: Tensor, heads: int) -> Tensor:
    """Head 0, head 1, head 0, head 1, ..."""
    return x.repeat(1, heads // x.shape[1], 1, 1)


def averaged(x: Tensor, heads: int) -> Tensor:
    """The mean of all heads, for each."""
    return x.mean(1, keepdim=True).expand(-1, heads, -1, -1)


def first_only(x: Tensor, heads: int) -> Tensor:
    """Head 0 for each."""
    return x[:, :1].expand(-1, heads, -1, -1)


def backwards(x: Tensor, heads: int) -> Tensor:
    """The last head for the first group."""
    return each(x.flip(1), heads)


def other_masks(arrange: Callable) -> Callable:
    """A mask for each head, whose heads are arranged otherwise."""

    def suspect(q, k, v, mask=None):
        if mask is None or mask.ndim < 4:
            raise RuntimeError("this mistake shows with a mask for each head")
        return oracle(q, k, v, arrange(mask, k.shape[1]))

    return suspect


def regrouped(mask: Tensor, kv_heads: int) -> Tensor:
    """The masks of the heads 0, 2, 4, 1, 3, 5."""
    return mask.unflatten(1, (-1, kv_heads)).transpose(1, 2).flatten(1, 2)


def one_a_group(mask: Tensor, kv_heads: int) -> Tensor:
    """The mask of a group's first head, for all of it."""
    group = mask.shape[1] // kv_heads
    return mask[:, ::group].repeat_interleave(group, 1)


def scaled_by(width: Callable) -> Callable:
    """Scores divided by the root of another number."""

    def suspect(q, k, v, mask=None):
        root = (width(q, k) / q.shape[-1]) ** 0.5
        return oracle(q / root, k, v, mask)

    return suspect


NEIGHBOURS = (
    "take turns, 0 1 0 1 0 1, as `repeat` deals them out. Neighbouring query "
    "heads share one, 0 0 0 1 1 1: use `repeat_interleave`."
)
SUSPECTS = {
    "The key and value heads " + NEIGHBOURS: (shared(in_turns)),
    "The key heads " + NEIGHBOURS: (shared(in_turns, each)),
    "The value heads " + NEIGHBOURS: (shared(each, in_turns)),
    "The key and value heads are averaged: each group has its own.": (
        shared(averaged)
    ),
    "All query heads get key head 0: each group has its own.": (
        shared(first_only)
    ),
    "The groups are in the wrong order: the first query heads get key head "
    "0.": shared(backwards),
    "The mask's heads are grouped as `repeat` would have it: head i has mask "
    "i.": other_masks(regrouped),
    "The mask of a group's first head is used for all of the group: every "
    "query head has a mask of its own.": other_masks(one_a_group),
    "The mask of the first head is used for all: every query head has a mask "
    "of its own.": other_masks(lambda mask, kv_heads: mask[:, :1]),
    "The scores are divided by the root of the group's size times d: a key is "
    "d wide, however many share it.": scaled_by(
        lambda q, k: q.shape[1] // k.shape[1] * q.shape[-1]
    ),
    "The scores are divided by the root of the model's width: a key is d "
    "wide.": scaled_by(lambda q, k: q.shape[1] * q.shape[-1]),
    **{
        hint: head_by_head(suspect) for hint, suspect in ATTENTION.hints.items()
    },
}
"""Hint -> the mistake it hints at."""


def groups(heads: int, kv_heads: int) -> Tensor:
    """Which query head hears which key head: True in (head, kv head)."""
    own = torch.arange(heads).unsqueeze(1) // (heads // kv_heads)
    return own == torch.arange(kv_heads)
