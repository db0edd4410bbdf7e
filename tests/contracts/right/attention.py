"""Softmax and scaled dot-product attention, right in several ways."""

import math

import torch
import torch.nn.functional as F
from contracts.right import right

right("softmax")(torch.softmax)


@right("softmax")
def softmax_by_hand(scores, dim):
    exponentials = (scores - scores.amax(dim, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


@right("softmax")
def softmax_by_logarithm(scores, dim):
    return torch.exp(scores - scores.logsumexp(dim, keepdim=True))


@right("softmax")
def softmax_by_loop(scores, dim):
    moved = scores.movedim(dim, -1)
    rows = []
    for row in moved.reshape(-1, moved.shape[-1]):
        parts = torch.exp(row - row.max())
        rows.append(parts / parts.sum())
    return torch.stack(rows).reshape(moved.shape).movedim(-1, dim)


@right("masked_softmax")
def masked_by_lowest(scores, mask):
    low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return low.softmax(-1).masked_fill(~mask, 0)


@right("masked_softmax")
def masked_by_infinity(scores, mask):
    # A row of nothing but -inf is left as it was, and wiped out afterwards.
    nobody = ~mask.any(-1, keepdim=True)
    weights = scores.masked_fill(~mask & ~nobody, -torch.inf).softmax(-1)
    return torch.where(mask & ~nobody, weights, 0.0)


@right("masked_softmax")
def masked_by_nan_to_num(scores, mask):
    # masked_fill stops the gradient before the NaN can reach the scores.
    return scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


@right("masked_softmax")
def masked_by_hand(scores, mask):
    low = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    parts = (low - low.amax(-1, keepdim=True)).exp() * mask
    return parts / parts.sum(-1, keepdim=True).clamp(min=1)


@right("attention")
def attention_by_matmul(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is None:
        return torch.matmul(torch.softmax(scores, dim=-1), v)
    return torch.matmul(masked_by_lowest(scores, mask), v)


@right("attention")
def attention_by_einsum(q, k, v, mask=None):
    scores = torch.einsum("...id,...jd->...ij", q * q.shape[-1] ** -0.5, k)
    if mask is not None:
        weights = masked_by_hand(scores, mask)
    else:
        weights = F.softmax(scores, -1)
    return torch.einsum("...ij,...jd->...id", weights, v)


@right("attention")
def attention_by_pytorch(q, k, v, mask=None):
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v)
    nobody = ~mask.any(-1, keepdim=True)
    output = F.scaled_dot_product_attention(q, k, v, mask | nobody)
    return output.masked_fill(nobody, 0)


@right("attention")
def attention_by_loop(q, k, v, mask=None):
    lead, seen = q.shape[:-2], torch.ones(q.shape[-2], k.shape[-2]).bool()
    mask = (seen if mask is None else mask).expand(*lead, *seen.shape)
    q, k, v, mask = (
        x.reshape(math.prod(lead), *x.shape[-2:]) for x in (q, k, v, mask)
    )
    blocks = []
    for queries, keys, values, allowed in zip(q, k, v, mask, strict=True):
        rows = []
        for query, may in zip(queries, allowed, strict=True):
            row = torch.zeros_like(values[0])
            if may.any():
                scores = (keys[may] * query).sum(-1) / query.numel() ** 0.5
                row = scores.softmax(0) @ values[may]
            rows.append(row)
        blocks.append(torch.stack(rows))
    return torch.stack(blocks).reshape(*lead, *blocks[0].shape)
