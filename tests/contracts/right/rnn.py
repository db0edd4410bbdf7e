"""A recurrence and its alignment, right in several ways."""

import torch
import torch.nn.functional as F
from contracts.right import right
from torch import nn


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
