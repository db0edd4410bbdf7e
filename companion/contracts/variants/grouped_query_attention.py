"""Contracts of grouped-query attention: query heads that share keys.

With as many key and value heads as query heads it is multi-head attention, and
with a single one multi-query attention (Ainslie et al., 2023; Shazeer, 2019).
"""

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.attention import masked_softmax
from companion.contracts.attention.attention import ATTENTION
from companion.contracts.engine.compare import (
    Broken,
    draw,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    alone_as_in_the_batch,
    equivariance,
    fully_masked_row_has_finite_gradients,
    future_hidden,
    half_precision,
    hidden_score_changes_nothing,
    mask_broadcasts,
    require_factor,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import risk
from companion.contracts.engine.masking import (
    EMPTY,
    PATCHY,
    causal,
    fully_masked,
    require_hidden,
    require_zeros_in_row_one,
    visible,
)
from companion.contracts.engine.universal import recognised_mistake

__all__ = ["GROUPED_QUERY_ATTENTION"]

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


def groups(heads: int, kv_heads: int) -> Tensor:
    """Which query head hears which key head: True in (head, kv head)."""
    own = torch.arange(heads).unsqueeze(1) // (heads // kv_heads)
    return own == torch.arange(kv_heads)


GROUPED_QUERY_ATTENTION = Component(
    name="grouped_query_attention",
    signature="grouped_query_attention(q, k, v, mask=None)",
    returns="the output (batch, head, query, d_v), one head for each of q's",
    axes=("row", "feature"),
    shape=lambda q, k, v, mask=None: (*q.shape[:-1], v.shape[-1]),
    oracle=oracle,
    reference="F.scaled_dot_product_attention(…, enable_gqa=True)",
    cases=cases,
    shape_hints={
        "There is one output for each key head: each query head has its own, "
        "also where heads share their keys.": lambda q, k, v, mask=None: (
            *k.shape[:2],
            q.shape[2],
            v.shape[-1],
        ),
        "The groups have an axis of their own: flatten it, so that the heads "
        "are on one axis again.": lambda q, k, v, mask=None: (
            *k.shape[:2],
            q.shape[1] // k.shape[1],
            q.shape[2],
            v.shape[-1],
        ),
        "The heads are merged already: leave that to whoever calls.": (
            lambda q, k, v, mask=None: (
                len(q),
                q.shape[2],
                q.shape[1] * v.shape[-1],
            )
        ),
        "Are these the weights, before they meet the values?": (
            lambda q, k, v, mask=None: (*q.shape[:-1], k.shape[-2])
        ),
    },
)


@GROUPED_QUERY_ATTENTION.before_reference
def shared(fn: Guarded) -> None:
    """Neighbouring query heads share a key and value head."""
    for kv_heads in (2, 3):
        args, expected = qkv(19, kv_heads), groups(HEADS, kv_heads)
        attended = torch.stack([attended_heads(fn, args, i) for i in (1, 2)])
        wrong = attended != expected
        if wrong.any():
            which, head, other = wrong.nonzero()[0].tolist()
            verb = "hears" if attended[which, head, other] else "does not hear"
            known = recognised_mistake(fn)
            hint = known[0] if known else "Head i gets i // (size of a group)."
            raise Broken(
                f"{hint} Of {HEADS} query heads on {kv_heads}, head {head} "
                f"{verb} {('key', 'value')[which]} head {other}.",
                attended[which].float(),
                expected.float(),
                ("head", "hears"),
                hint,
            )


def attended_heads(fn: Guarded, args: tuple, moved: int) -> Tensor:
    """Which query head moves with which head of ``args[moved]``."""
    before, columns = fn.raw(*args), []
    for head in range(args[moved].shape[1]):
        changed = list(args)
        changed[moved] = args[moved].clone()
        changed[moved][:, head] += draw(*args[moved][:, 0].shape, seed=23)
        gap = (fn.raw(*changed) - before).detach().abs()
        columns.append((gap > 1e-3).transpose(0, 1).flatten(1).any(1))
    return torch.stack(columns, 1)


GROUPED_QUERY_ATTENTION.before_reference(
    future_hidden(
        lambda: (*(draw(2, n, 5, 7, seed=n) for n in (6, 3, 3)), causal(5))
    )
)


@GROUPED_QUERY_ATTENTION.before_reference
def no_leak(fn: Guarded) -> None:
    """A masked key cannot leak into any row."""
    args = (*qkv(29), PATCHY)
    for moved, what in ((2, "value"), (1, "score")):
        sees = visible(fn, args, moved)
        how = f"which the mask hides: changing its {what} moves the row"
        require_hidden(fn, sees, args, how)


@GROUPED_QUERY_ATTENTION.contract
def multi_head(fn: Guarded) -> None:
    """With as many key heads as query heads it is multi-head attention."""
    for heads in (1, 3, 6):
        q, k, v = qkv(31, heads, heads)
        for mask in (None, PATCHY):
            expected = F.scaled_dot_product_attention(q, k, v, mask)
            why = f"With {heads} heads for {heads} each head is on its own."
            same(fn, fn(q, k, v, *if_any(mask)), expected, why)


@GROUPED_QUERY_ATTENTION.contract
def multi_query(fn: Guarded) -> None:
    """With one key head it is multi-query attention."""
    q, k, v = qkv(37, 1)
    for mask in (None, PATCHY):
        expected = F.scaled_dot_product_attention(
            q, k.expand(-1, HEADS, -1, -1), v.expand(-1, HEADS, -1, -1), mask
        )
        why = "With 1 key head all query heads share it."
        same(fn, fn(q, k, v, *if_any(mask)), expected, why)


def if_any(mask: Tensor | None) -> tuple:
    """A mask as a last argument, or nothing."""
    return () if mask is None else (mask,)


@GROUPED_QUERY_ATTENTION.contract
def right_scale(fn: Guarded) -> None:
    """The scores are divided by √d, however many share a key."""
    for d in (2, 11, 64):
        row = draw(1, 1, 1, d, seed=41)
        # The dot products are 1 and 0, and the values show the weights.
        k = torch.cat([row / (row * row).sum(), torch.zeros_like(row)], -2)
        v = torch.eye(2).expand(1, 1, 2, 2)
        weights = fn(row.repeat(1, 3, 1, 1), k, v)
        require_factor(weights[0, 0, 0], d**-0.5, f"d = {d}")


GROUPED_QUERY_ATTENTION.contract(
    mask_broadcasts(
        "A mask may be (query, key), (batch, 1, 1, key) or have all four axes",
        lambda: qkv(43),
        ((3, 5), (1, 5), (2, 1, 1, 5), (1, HEADS, 3, 5)),
        (2, HEADS, 3, 5),
    )
)


@GROUPED_QUERY_ATTENTION.contract
@risk(EMPTY)
def nobody_to_see(fn: Guarded) -> None:
    """A row that may attend to nothing gets zeros."""
    q, k, v = qkv(53)
    got = fn.raw(q, k, v, fully_masked())
    for head in range(HEADS):
        uniform = v[1, head // 3].mean(0)
        require_zeros_in_row_one(fn, got[1, head], uniform)


GROUPED_QUERY_ATTENTION.contract(
    fully_masked_row_has_finite_gradients(lambda: (*qkv(53), fully_masked()))
)


GROUPED_QUERY_ATTENTION.contract(
    alone_as_in_the_batch(
        "A sentence has the output that it has alone",
        lambda: (*qkv(59), PATCHY),
        why="In a batch a sentence has another output than alone: do `view` or "
        "`repeat` mix batch and heads?",
        batched=3,
    )
)


def with_a_hidden_key() -> tuple[Tensor, ...]:
    """Make arguments whose mask hides key 1."""
    mask = torch.tensor([True, False, True, True, True]).expand(3, 5)
    k, v = draw(1, 2, 5, 4, seed=61), draw(1, 2, 5, 7, seed=67)
    return torch.ones(1, 4, 3, 4), k, v, mask


GROUPED_QUERY_ATTENTION.contract(
    hidden_score_changes_nothing(
        with_a_hidden_key,
        lambda q, k, v, mask: (
            q,
            k.index_fill(-2, torch.tensor(1), 5e3),
            v,
            mask,
        ),
        "The score of key 1 was 10⁴: is it -∞ before the softmax, or only "
        "wiped out after it?",
    )
)


GROUPED_QUERY_ATTENTION.contract(
    half_precision(lambda: qkv(71), lambda: (*qkv(73), PATCHY))
)


GROUPED_QUERY_ATTENTION.contract(
    equivariance(
        "It takes transposed views, as `split_heads` returns",
        lambda: qkv(79),
        lambda *args: tuple(
            x.transpose(1, 2).contiguous().transpose(1, 2) for x in args
        ),
        why="The strides of the inputs matter.",
    )
)


# Known mistakes


def in_turns(x, q):
    """Heads 0, 1, 0, 1, ... of ``x``, one for each of ``q``."""
    return x.repeat(1, q.shape[1] // x.shape[1], 1, 1)


def a_mask_for_each_head(mask):
    """Whether heads have masks of their own."""
    return mask is not None and mask.ndim == 4 and mask.shape[1] > 1


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The key and value heads take turns, 0 1 0 1 0 1, as `repeat` deals "
    "them out. Neighbouring query heads share one, 0 0 0 1 1 1: use "
    "`repeat_interleave`.",
    symptom="converted weights write nonsense; trained from scratch it is fine",
)
def dealt_out_in_turns(q, k, v, mask=None):
    """`repeat` for `repeat_interleave`: heads 0, 1, 0, 1 for 0, 0, 1, 1."""
    return oracle(q, in_turns(k, q), in_turns(v, q), mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The key heads take turns, 0 1 0 1 0 1, as `repeat` deals them out. "
    "Neighbouring query heads share one, 0 0 0 1 1 1: use `repeat_interleave`.",
)
def keys_in_turns(q, k, v, mask=None):
    """`repeat` for the keys, and not for the values."""
    return oracle(q, in_turns(k, q), v, mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The value heads take turns, 0 1 0 1 0 1, as `repeat` deals them "
    "out. Neighbouring query heads share one, 0 0 0 1 1 1: use "
    "`repeat_interleave`.",
)
def values_in_turns(q, k, v, mask=None):
    """`repeat` for the values, and not for the keys."""
    return oracle(q, k, in_turns(v, q), mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The key and value heads are averaged: each group has its own.",
)
def averaged_heads(q, k, v, mask=None):
    """One head, the mean of all, is shared by everybody."""
    return oracle(q, k.mean(1, True), v.mean(1, True), mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="All query heads get key head 0: each group has its own.",
    symptom="like the right one with one key head, worse with more",
)
def first_head_for_all(q, k, v, mask=None):
    """Key head 0 is broadcast to all, and the others are never read."""
    return oracle(q, k[:, :1], v[:, :1], mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The groups are in the wrong order: the first query heads get key "
    "head 0.",
)
def groups_turned(q, k, v, mask=None):
    """The last key head goes to the first group."""
    return oracle(q, k.flip(1), v.flip(1), mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The mask's heads are grouped as `repeat` would have it: head i has "
    "mask i.",
)
def mask_grouped_otherwise(q, k, v, mask=None):
    """The masks of the heads 0, 2, 4, 1, 3, 5."""
    if a_mask_for_each_head(mask):
        mask = mask.unflatten(1, (-1, k.shape[1])).transpose(1, 2).flatten(1, 2)
    return oracle(q, k, v, mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The mask of a group's first head is used for all of the group: "
    "every query head has a mask of its own.",
)
def one_mask_a_group(q, k, v, mask=None):
    """Of each group's masks the first one is used."""
    if a_mask_for_each_head(mask):
        mask = each(mask[:, :: q.shape[1] // k.shape[1]], q.shape[1])
    return oracle(q, k, v, mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The mask of the first head is used for all: every query head has a "
    "mask of its own.",
    symptom="right until heads have masks of their own, as with local heads",
)
def one_mask_for_all_heads(q, k, v, mask=None):
    """Of a mask for each head the first one is used."""
    if a_mask_for_each_head(mask):
        mask = mask[:, :1]
    return oracle(q, k, v, mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The scores are divided by the root of the group's size times d: a "
    "key is d wide, however many share it.",
)
def scaled_by_the_group(q, k, v, mask=None):
    """The width of all queries that share a key."""
    return oracle(q / (q.shape[1] / k.shape[1]) ** 0.5, k, v, mask)


@GROUPED_QUERY_ATTENTION.mistake(
    hint="The scores are divided by the root of the model's width: a key is d "
    "wide.",
    symptom="attention stays softer than it should, the more heads the more",
)
def scaled_by_d_model(q, k, v, mask=None):
    """√d_model for √d_k: the width of all heads together."""
    return oracle(q / q.shape[1] ** 0.5, k, v, mask)


@GROUPED_QUERY_ATTENTION.mistake(
    symptom="every head draws the same map: many heads, no better than one",
)
def concatenated_first(q, k, v, mask=None):
    """The heads are laid side by side before attention: that is one head."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ k.mT).sum(1, keepdim=True) / (q[0, :, 0].numel()) ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    return masked_softmax(scores.expand(*q.shape[:3], -1), mask) @ v


def in_every_head(mistaken):
    """Make a mistake of attention in every head."""

    @functools.wraps(mistaken)
    def heads(q, k, v, mask=None):
        return mistaken(q, each(k, q.shape[1]), each(v, q.shape[1]), mask)

    return heads


for known in ATTENTION.mistakes:
    if known.hint:
        GROUPED_QUERY_ATTENTION.mistake(known.id, hint=known.hint)(
            in_every_head(known.make)
        )
