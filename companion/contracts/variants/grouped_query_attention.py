"""Contracts of grouped-query attention: query heads that share keys.

With as many key and value heads as query heads it is multi-head attention, and
with a single one multi-query attention (Ainslie et al., 2023; Shazeer, 2019).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import require_factor
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import (
    PATCHY,
    causal,
    fully_masked,
    require_finite_gradients,
    require_hidden,
    require_zeros_in_row_one,
    visible,
)
from companion.contracts.engine.universal import recognised_mistake
from companion.contracts.variants.grouped_query_attention_cases import (
    HEADS,
    SUSPECTS,
    cases,
    groups,
    oracle,
    qkv,
)

GROUPED_QUERY_ATTENTION = Component(
    name="grouped_query_attention",
    signature="grouped_query_attention(q, k, v, mask=None)",
    returns="the output (batch, head, query, d_v), one head for each of q's",
    axes=("row", "feature"),
    shape=lambda q, k, v, mask=None: (*q.shape[:-1], v.shape[-1]),
    oracle=oracle,
    reference="F.scaled_dot_product_attention(…, enable_gqa=True)",
    cases=cases,
    suspects=SUSPECTS,
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
        heard = torch.stack([heads_heard(fn, args, i) for i in (1, 2)])
        wrong = heard != expected
        if wrong.any():
            which, head, other = wrong.nonzero()[0].tolist()
            verb = "hears" if heard[which, head, other] else "does not hear"
            known = recognised_mistake(fn)
            hint = known[0] if known else "Head i gets i // (size of a group)."
            raise Broken(
                f"{hint} Of {HEADS} query heads on {kv_heads}, head {head} "
                f"{verb} {('key', 'value')[which]} head {other}.",
                heard[which].float(),
                expected.float(),
                ("head", "hears"),
                hint,
            )


def heads_heard(fn: Guarded, args: tuple, moved: int) -> Tensor:
    """Which query head moves with which head of ``args[moved]``."""
    before, columns = fn.raw(*args), []
    for head in range(args[moved].shape[1]):
        changed = list(args)
        changed[moved] = args[moved].clone()
        changed[moved][:, head] += draw(*args[moved][:, 0].shape, seed=23)
        gap = (fn.raw(*changed) - before).detach().abs()
        columns.append((gap > 1e-3).transpose(0, 1).flatten(1).any(1))
    return torch.stack(columns, 1)


@GROUPED_QUERY_ATTENTION.before_reference
def future(fn: Guarded) -> None:
    """With a causal mask no row sees its future."""
    q, k, v = (draw(2, n, 5, 7, seed=n) for n in (6, 3, 3))
    args = (q, k, v, causal(5))
    require_hidden(fn, visible(fn, args, 2), args, "which is in its future")


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


@GROUPED_QUERY_ATTENTION.contract
def broadcasts(fn: Guarded) -> None:
    """A mask may be (query, key), (batch, 1, 1, key) or have all four axes."""
    args = qkv(43)
    for shape in ((3, 5), (1, 5), (2, 1, 1, 5), (1, HEADS, 3, 5)):
        mask = draw(*shape, seed=47) > 0
        mask[..., 2] = True
        why = f"A mask of shape {shape} is not spread over the scores."
        same(fn, fn(*args, mask), oracle(*args, mask), why)


@GROUPED_QUERY_ATTENTION.contract
def nobody_to_see(fn: Guarded) -> None:
    """A row that may attend to nothing gets zeros."""
    q, k, v = qkv(53)
    got = fn.raw(q, k, v, fully_masked())
    for head in range(HEADS):
        uniform = v[1, head // 3].mean(0)
        require_zeros_in_row_one(fn, got[1, head], uniform)


@GROUPED_QUERY_ATTENTION.contract
def nobody_to_see_gradient(fn: Guarded) -> None:
    """A row that may attend to nothing has finite gradients."""
    require_finite_gradients(fn, *qkv(53), fully_masked())


@GROUPED_QUERY_ATTENTION.contract
def sentences_apart(fn: Guarded) -> None:
    """A sentence has the output that it has alone."""
    args = (*qkv(59), PATCHY)
    alone = [fn(*(x[i : i + 1] for x in args[:3]), PATCHY) for i in (0, 1)]
    why = (
        "In a batch a sentence has another output than alone: do `view` or "
        "`repeat` mix batch and heads?"
    )
    same(fn, fn(*args), torch.cat(alone), why)


@GROUPED_QUERY_ATTENTION.contract
def however_large(fn: Guarded) -> None:
    """A hidden score of 10⁴ changes nothing."""
    q = torch.ones(1, 4, 3, 4)
    k, v = draw(1, 2, 5, 4, seed=61), draw(1, 2, 5, 7, seed=67)
    loud = k.clone()
    loud[:, :, 1] = 5e3
    mask = torch.tensor([True, False, True, True, True]).expand(3, 5)
    why = (
        "The score of key 1 was 10⁴: is it -∞ before the softmax, or only "
        "wiped out after it?"
    )
    got, expected = fn.raw(q, loud, v, mask), fn(q, k, v, mask)
    finite(fn, got, why, expected)
    same(fn, got, expected, why)


@GROUPED_QUERY_ATTENTION.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    require_half_precision(fn, *qkv(71))
    require_half_precision(fn, *qkv(73), PATCHY)


@GROUPED_QUERY_ATTENTION.contract
def transposed_views(fn: Guarded) -> None:
    """It takes transposed views, as `split_heads` returns."""
    args = qkv(79)
    views = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in args)
    why = "The strides of the inputs matter."
    same(fn, fn(*views), fn(*args), why)
