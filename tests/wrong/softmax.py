"""Softmax got wrong."""

import torch

from wrong import wrong


@wrong("softmax", "`dim` is not used.*last axis. At batch 1, row 1, column 1")
def ignores_dim(scores, dim):
    return torch.softmax(scores, dim=-1)


@wrong("softmax", "All numbers share one sum.* At batch")
def one_sum(scores, dim):
    parts = (scores - scores.max()).exp()
    return parts / parts.sum()


@wrong("softmax", "^Row 0, column 0 is NaN. `exp` makes ∞ of a large score")
def overflows(scores, dim):
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


@wrong("softmax", "^Row 1, column 0 is NaN.*each row's own largest score")
def one_maximum(scores, dim):
    parts = (scores - scores.max()).exp()
    return parts / parts.sum(dim, keepdim=True)


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


@wrong("softmax", "^Large scores are not told apart. At row 0, column 1")
def clipped(scores, dim):
    return torch.softmax(scores.clamp(-30, 30), dim)


@wrong("softmax", "^It raised RuntimeError.*float16 ends at 65504")
def padded(scores, dim):
    low = scores.masked_fill(torch.zeros_like(scores).bool(), -1e9)
    return torch.softmax(low, dim)


@wrong("softmax", "^The gradient of `scores` is wrong.*halfway")
def half_a_gradient(scores, dim):
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    return parts / parts.sum(dim, keepdim=True).detach()


@wrong("softmax", r"^backward\(\) raised RuntimeError.*in place")
def divides_in_place(scores, dim):
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    parts /= parts.sum(dim, keepdim=True)
    return parts


@wrong("softmax", r"^It returned shape \(2, 3, 1\): expected \(2, 3, 5\)")
def sums_only(scores, dim):
    return scores.exp().sum(dim, keepdim=True)
