"""The masked softmax got wrong."""

import torch
from contracts.odd import wrong

SEES = "^Row 0 sees key 1, which is in its future. "


def right(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(-1)
    return weights.masked_fill(~mask, 0)


@wrong("masked_softmax")
def upside_down(scores, mask):
    return right(scores, ~mask)


@wrong("masked_softmax")
def transposed(scores, mask):
    if mask.shape[-1] == mask.shape[-2]:
        mask = mask.transpose(-2, -1)
    return right(scores, mask)


@wrong("masked_softmax")
def unused(scores, mask):
    return torch.softmax(scores, dim=-1)


@wrong("masked_softmax")
def filled_with_zero(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, 0), dim=-1)


@wrong("masked_softmax")
def added(scores, mask):
    return torch.softmax(scores + mask.to(scores.dtype), dim=-1)


@wrong("masked_softmax")
def over_the_queries(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(-2)
    return weights.masked_fill(~mask, 0)


@wrong("masked_softmax")
def minus_a_billion(scores, mask):
    weights = scores.masked_fill(~mask, -1e9).softmax(-1)
    return weights.masked_fill(~mask, 0)


@wrong("masked_softmax")
def first_row_alone(scores, mask):
    if mask.shape[-2] == 1:
        first = torch.zeros(scores.shape[-2:], dtype=torch.bool)
        first[0] = True
        mask = mask | ~first
    return right(scores, mask)


@wrong("masked_softmax")
def overflows(scores, mask):
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
        return right(scores, mask)
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(0)
    return weights.masked_fill(~mask, 0)
