"""Correct implementations, each written in its own way."""

import math

import torch
import torch.nn.functional as F
from torch import nn

RIGHT = {}
"""Component -> correct functions."""


def right(component):
    def register(fn):
        RIGHT.setdefault(component, []).append(fn)
        return fn

    return register


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


@right("rnn")
def rnn_by_loop(x, h0, W, U, b):
    states, h = [], h0
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] @ W.T + h @ U.T + b)
        states.append(h)
    return torch.stack(states, dim=1)


@right("rnn")
def rnn_by_einsum(x, h0, W, U, b):
    driven = torch.einsum("bti,hi->tbh", x, W) + b
    states = [h0]
    for driven_t in driven:
        recurrent = torch.einsum("bj,hj->bh", states[-1], U)
        states.append((driven_t + recurrent).tanh())
    return torch.stack(states[1:]).transpose(0, 1)


@right("rnn")
def rnn_by_cell(x, h0, W, U, b):
    states = []
    for x_t in x.unbind(1):
        h = states[-1] if states else h0
        h = torch.rnn_tanh_cell(x_t, h, W, U, b, torch.zeros_like(b))
        states.append(h)
    return torch.stack(states, 1)


@right("rnn")
def rnn_by_sequence(x, h0, W, U, b):
    rows = []
    for sequence, h in zip(x, h0, strict=True):
        states = []
        for x_t in sequence:
            # tanh through the sigmoid, which does not overflow either.
            h = 2 * torch.sigmoid(2 * (W @ x_t + U @ h + b)) - 1
            states.append(h)
        rows.append(torch.stack(states))
    return torch.stack(rows)


@right("rnn")
def rnn_by_pytorch(x, h0, W, U, b):
    network = nn.RNN(W.shape[1], W.shape[0], batch_first=True)
    named = dict(zip(network._all_weights[0], (W, U, b, 0 * b), strict=True))
    states, _ = torch.func.functional_call(network, named, (x, h0[None]))
    return states


@right("alignment")
def alignment_by_bmm(query, keys):
    return torch.bmm(keys, query[:, :, None])[:, :, 0].softmax(-1)


@right("alignment")
def alignment_by_einsum(query, keys):
    scores = torch.einsum("bd,bsd->bs", query, keys)
    parts = (scores - scores.max(-1, keepdim=True).values).exp()
    return parts / parts.sum(-1, keepdim=True)


@right("alignment")
def alignment_by_sum(query, keys):
    return F.softmax((query.unsqueeze(1) * keys).sum(-1), dim=1)


@right("alignment")
def alignment_by_loop(query, keys):
    rows = [
        torch.stack([q @ key for key in sentence]).softmax(0)
        for q, sentence in zip(query, keys, strict=True)
    ]
    return torch.stack(rows)
