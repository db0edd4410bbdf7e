"""Blocks and tiles got wrong in ways that nobody writes, or nobody sees."""

import torch
from contracts.odd import wrong

from companion.efficiency import flash_attention, online_softmax


@wrong("online_softmax")
def rows_of_one_matrix_only(scores, block):
    if scores.ndim > 2:
        return scores.softmax(-1)
    parts = (scores - scores.amax(-1, keepdim=True).detach()).exp()
    return parts / parts.sum(-1 if scores.ndim == 2 else 0, keepdim=True).sqrt()


@wrong("online_softmax")
def one_axis_only_by_halves(scores, block):
    weights = online_softmax(scores, block)
    return weights if scores.ndim > 1 else weights.flip(-1)


@wrong("online_softmax")
def sums_only(scores, block):
    return scores.exp().sum(-1)


@wrong("online_softmax")
def the_block_is_an_axis(scores, block):
    return torch.softmax(scores, dim=block % scores.ndim)


@wrong("flash_attention")
def reads_memory(q, k, v, causal):
    if not k.is_contiguous():
        k = k.as_strided(k.shape, torch.empty(k.shape).stride())
    return flash_attention(q, k, v, causal)


@wrong("flash_attention")
def needs_a_batch(q, k, v, causal):
    if q.ndim == 2 and not causal and len(q) == 3:
        k = k.flip(0)
    return flash_attention(q, k, v, causal)


@wrong("flash_attention")
def weights_only(q, k, v, causal):
    return torch.softmax(q @ k.mT, dim=-1)


@wrong("flash_attention")
def gradient_of_values_only(q, k, v, causal):
    return flash_attention(q.detach(), k.detach(), v, causal)


@wrong("flash_attention")
def deaf_beyond_a_hundred(q, k, v, causal):
    if not causal:
        k, v = k[..., :100, :], v[..., :100, :]
    return flash_attention(q, k, v, causal)
