"""Scaled dot-product attention got wrong."""

import math

import torch
from contracts.odd import wrong
from contracts.right.attention import attention_by_matmul as right
from contracts.right.attention import masked_by_lowest

from companion.zoo.attention import attend


@wrong("attention")
def scaled_by_d_v(q, k, v, mask=None):
    return attend(q, k, v, mask, scale=v.shape[-1] ** -0.5)


@wrong("attention")
def scaled_by_length(q, k, v, mask=None):
    return attend(q, k, v, mask, scale=k.shape[-2] ** -0.5)


@wrong("attention")
def multiplied(q, k, v, mask=None):
    return attend(q, k, v, mask, scale=math.sqrt(k.shape[-1]))


@wrong("attention")
def fixed_scale(q, k, v, mask=None):
    if q.shape[-1] in (4, 5, 7):
        return right(q, k, v, mask)
    return attend(q, k, v, mask, scale=11**-0.5)


@wrong("attention")
def over_the_batch(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    if mask is not None:
        return masked_by_lowest(scores, mask) @ v
    return torch.softmax(scores, 0) @ v


@wrong("attention")
def no_softmax(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    return (scores if mask is None else scores * mask) @ v


@wrong("attention")
def sigmoid(q, k, v, mask=None):
    weights = torch.sigmoid(q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]))
    return (weights if mask is None else weights * mask) @ v


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


@wrong("attention")
def swapped(q, k, v, mask=None):
    return right(q, v, k, mask)


@wrong("attention")
def not_transposed(q, k, v, mask=None):
    return right(q, k.transpose(-2, -1), v, mask)
