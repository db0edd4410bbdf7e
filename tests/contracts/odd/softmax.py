"""Softmax got wrong."""

import torch
from contracts.odd import wrong


@wrong("softmax")
def shares(scores, dim):
    return scores / scores.sum(dim, keepdim=True)


@wrong("softmax")
def divided_by_largest(scores, dim):
    return torch.exp(scores - scores.amax(dim, keepdim=True))


@wrong("softmax")
def sigmoid(scores, dim):
    return 1 / (1 + torch.exp(-scores))


@wrong("softmax")
def upside_down(scores, dim):
    shifted = scores - scores.amin(dim, keepdim=True)
    return torch.softmax(-shifted, dim)


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
