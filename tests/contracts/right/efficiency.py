"""One pass and no score matrix, right in several ways."""

import math

import torch
import torch.nn.functional as F
from contracts.right import right
from torch.utils.checkpoint import checkpoint

from companion.efficiency import flash_attention, online_attention


@right("online_softmax")
def number_by_number(scores, block):
    """As printed in the paper; the block is of no use to it."""
    maximum = torch.full_like(scores[..., 0], -math.inf)
    total = torch.zeros_like(maximum)
    for score in scores.unbind(-1):
        larger = torch.maximum(maximum, score).detach()
        low = torch.where(larger == -math.inf, 0, larger)
        total = total * torch.exp(maximum - low) + torch.exp(score - low)
        maximum = larger
    return torch.exp(scores - maximum[..., None]) / total[..., None]


@right("online_softmax")
def by_logarithms(scores, block):
    """A running log of the sum, which is maximum and sum in one."""
    log = torch.full_like(scores[..., :1], torch.finfo(scores.dtype).min)
    for part in scores.split(block, -1):
        both = torch.cat([log, part], -1)
        log = both.logsumexp(-1, keepdim=True)
    return (scores - log).exp()


@right("online_softmax")
def halves_merged(scores, block):
    """A tree in place of a row: merging is associative."""

    def gathered(part):
        if part.shape[-1] <= block:
            top = part.amax(-1, keepdim=True).detach()
            top = top.clamp(min=torch.finfo(part.dtype).min)
            return top, (part - top).exp().sum(-1, keepdim=True)
        half = part.shape[-1] // 2
        (a, x), (b, y) = map(gathered, (part[..., :half], part[..., half:]))
        top = torch.maximum(a, b)
        return top, x * (a - top).exp() + y * (b - top).exp()

    top, total = gathered(scores)
    return (scores - top).exp() / total


@right("flash_attention")
def in_tiles_of_sixteen(q, k, v, causal):
    return flash_attention(q, k, v, causal, block=16)


@right("flash_attention")
def recomputed_row_by_row(q, k, v, causal):
    """Plain attention of a few queries, which a checkpoint computes twice."""

    def rows(part, start):
        scores = part @ k.mT / math.sqrt(q.shape[-1])
        if not causal:
            return scores.softmax(-1) @ v
        at = torch.arange(start, start + part.shape[-2]) + k.shape[-2]
        seen = torch.arange(k.shape[-2]) <= (at - q.shape[-2])[:, None]
        low = scores.masked_fill(~seen, torch.finfo(q.dtype).min)
        return low.softmax(-1).masked_fill(~seen, 0) @ v

    parts = q.split(13, -2)
    found = [
        checkpoint(rows, part, 13 * i, use_reentrant=False)
        for i, part in enumerate(parts)
    ]
    return torch.cat(found, -2)


@right("flash_attention")
def by_pytorch(q, k, v, causal):
    """Its own kernel, a checkpoint around it where it gets a mask."""
    if not causal:
        return checkpoint(
            F.scaled_dot_product_attention, q, k, v, use_reentrant=False
        )

    def masked(q, k, v):
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
        mask = mask.tril(k.shape[-2] - q.shape[-2])
        nobody = ~mask.any(-1, keepdim=True)
        output = F.scaled_dot_product_attention(q, k, v, mask | nobody)
        return output.masked_fill(nobody, 0)

    return checkpoint(masked, q, k, v, use_reentrant=False)


@right("flash_attention")
def blocks_of_keys_under_a_checkpoint(q, k, v, causal):
    if causal:
        return flash_attention(q, k, v, True, block=128)
    return checkpoint(online_attention, q, k, v, 32, use_reentrant=False)
