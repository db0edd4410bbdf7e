"""Softmax, masked or not, and attention got wrong."""

import math

import torch
from contracts.odd import wrong
from contracts.right.attention import attention_by_matmul as right
from contracts.right.attention import masked_by_lowest

from companion.contracts.attention.attention import attend

# Softmax


@wrong("softmax")
def running_sum(scores, dim):
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    return parts / parts.cumsum(dim)


@wrong("softmax")
def three_axes_only(scores, dim):
    dim = dim % 3 if scores.ndim == 3 else -1
    return torch.softmax(scores, dim)


@wrong("softmax")
def padded(scores, dim):
    low = scores.masked_fill(torch.zeros_like(scores).bool(), -1e9)
    return torch.softmax(low, dim)


@wrong("softmax")
def divides_in_place(scores, dim):
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    parts /= parts.sum(dim, keepdim=True)
    return parts


@wrong("softmax")
def sums_only(scores, dim):
    return scores.exp().sum(dim, keepdim=True)


# The masked softmax


@wrong("masked_softmax")
def minus_a_billion(scores, mask):
    weights = scores.masked_fill(~mask, -1e9).softmax(-1)
    return weights.masked_fill(~mask, 0)


@wrong("masked_softmax")
def first_row_of_the_mask_alone(scores, mask):
    if mask.shape[-2] == 1:
        first = torch.zeros(scores.shape[-2:], dtype=torch.bool)
        first[0] = True
        mask = mask | ~first
    return masked_by_lowest(scores, mask)


@wrong("masked_softmax")
def overflows_where_masked(scores, mask):
    parts = scores.float().exp() * mask
    total = parts.sum(-1, keepdim=True).clamp(min=1e-30)
    return (parts / total).to(scores.dtype)


@wrong("masked_softmax")
def shares(scores, mask):
    parts = scores * mask
    total = parts.sum(-1, keepdim=True)
    return parts / total.masked_fill(total == 0, 1)


@wrong("masked_softmax")
def over_the_batch(scores, mask):
    if scores.ndim < 3:
        return masked_by_lowest(scores, mask)
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(0)
    return weights.masked_fill(~mask, 0)


# Attention


@wrong("attention")
def fixed_scale(q, k, v, mask=None):
    if q.shape[-1] in (4, 5, 7):
        return right(q, k, v, mask)
    return attend(q, k, v, mask, scale=11**-0.5)


@wrong("attention")
def deaf(q, k, v, mask=None):
    if mask is not None and mask.shape[-1] != mask.shape[-2]:
        mask = mask.clone()
        mask[..., 0, 2:] = False
    return right(q, k, v, mask)


@wrong("attention")
def nan_in_empty_rows(q, k, v, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, -torch.inf).softmax(-1)

    return attend(q, k, v, mask, weigh=weigh)


@wrong("attention")
def nan_in_the_gradient(q, k, v, mask=None):
    def weigh(scores, mask):
        bias = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
        return (scores + bias).softmax(-1).nan_to_num(0)

    return attend(q, k, v, mask, weigh=weigh)


@wrong("attention")
def overflows(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    if mask is not None:
        return masked_by_lowest(scores, mask) @ v
    return scores.exp() / scores.exp().sum(-1, keepdim=True) @ v


@wrong("attention")
def shared_out_afterwards(q, k, v, mask=None):
    def weigh(scores, mask):
        weights = scores.softmax(-1) * mask
        total = weights.sum(-1, keepdim=True)
        return weights / total.masked_fill(~mask.any(-1, keepdim=True), 1)

    return attend(q, k, v, mask, weigh=weigh)


@wrong("attention")
def reads_memory(q, k, v, mask=None):
    if not k.is_contiguous():
        k = k.as_strided(k.shape, torch.empty(k.shape).stride())
    return right(q, k, v, mask)


@wrong("attention")
def needs_a_batch(q, k, v, mask=None):
    if q.ndim == 2 and mask is None and q.shape[-1] == 11:
        return right(q, k.flip(0), v, mask)
    return right(q, k, v, mask)


@wrong("attention")
def first_row_alone(q, k, v, mask=None):
    if mask is not None and mask.shape[-2] == 1:
        first = torch.zeros(q.shape[-2], k.shape[-2], dtype=torch.bool)
        first[0] = True
        mask = mask | ~first
    return right(q, k, v, mask)


@wrong("attention")
def prefers_early_keys(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    scores = scores - torch.arange(k.shape[-2]).to(q.dtype) / 10
    if mask is None:
        return scores.softmax(-1) @ v
    return masked_by_lowest(scores, mask) @ v


@wrong("attention")
def prefers_late_queries(q, k, v, mask=None):
    place = torch.arange(q.shape[-2]).unsqueeze(-1) / 10
    return right(q * (1 + place).to(q.dtype), k, v, mask)


@wrong("attention")
def gradient_of_values_only(q, k, v, mask=None):
    return right(q.detach(), k.detach(), v, mask)


@wrong("attention")
def weights_only(q, k, v, mask=None):
    return torch.softmax(q @ k.transpose(-2, -1), dim=-1)
