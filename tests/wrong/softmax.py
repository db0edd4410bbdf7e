"""Softmax got wrong."""

import torch

from wrong import wrong


@wrong("softmax", "There is no `exp`.* At batch .* yours is")
def shares(scores, dim):
    return scores / scores.sum(dim, keepdim=True)


@wrong("softmax", "These are exponentials, divided by the largest.* At batch")
def divided_by_largest(scores, dim):
    return torch.exp(scores - scores.amax(dim, keepdim=True))


@wrong("softmax", "This is a sigmoid.* At batch")
def sigmoid(scores, dim):
    return 1 / (1 + torch.exp(-scores))


@wrong("softmax", "The sign is turned round.* At batch")
def upside_down(scores, dim):
    shifted = scores - scores.amin(dim, keepdim=True)
    return torch.softmax(-shifted, dim)


@wrong("softmax", "This is not what torch.softmax returns .* At batch")
def running_sum(scores, dim):
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    return parts / parts.cumsum(dim)


@wrong("softmax", "^For shape .* and dim .* is not what it is with that axis")
def three_axes_only(scores, dim):
    dim = dim % 3 if scores.ndim == 3 else -1
    return torch.softmax(scores, dim)


@wrong("softmax", "^It raised RuntimeError.*float16 ends at 65504")
def padded(scores, dim):
    low = scores.masked_fill(torch.zeros_like(scores).bool(), -1e9)
    return torch.softmax(low, dim)


@wrong("softmax", r"^backward\(\) raised RuntimeError.*in place")
def divides_in_place(scores, dim):
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    parts /= parts.sum(dim, keepdim=True)
    return parts


@wrong("softmax", r"^It returned shape \(2, 3, 1\): expected \(2, 3, 5\)")
def sums_only(scores, dim):
    return scores.exp().sum(dim, keepdim=True)
