"""The recurrence got wrong."""

import torch
from contracts.odd import wrong
from contracts.right.rnn import rnn_by_loop as right


def recur(x, h0, step):
    states, h = [], h0
    for x_t in x.unbind(1):
        h = step(x_t, h)
        states.append(h)
    return torch.stack(states, 1)


@wrong("rnn")
def swapped(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ U.T + h @ W.T + b).tanh())


@wrong("rnn")
def transposed_input(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W + h @ U.T + b).tanh())


@wrong("rnn")
def other_at_every_step(x, h0, W, U, b):
    states, h = [], h0
    for t, x_t in enumerate(x.unbind(1)):
        h = torch.tanh(x_t @ W.T + h @ U.T + b * (1 + t / 10))
        states.append(h)
    return torch.stack(states, 1)


@wrong("rnn")
def running_sum(x, h0, W, U, b):
    # Reads the order of the inputs nowhere.
    return torch.tanh(x.cumsum(1) @ W.T + (h0 @ U.T + b).unsqueeze(1))


@wrong("rnn")
def one_step_is_special(x, h0, W, U, b):
    states = right(x, h0, W, U, b)
    return states + 0.1 if x.shape[1] == 1 and len(b) == 3 else states


@wrong("rnn")
def last_only(x, h0, W, U, b):
    return right(x, h0, W, U, b)[:, -1]


@wrong("rnn")
def time_first(x, h0, W, U, b):
    return right(x, h0, W, U, b).transpose(0, 1)


@wrong("rnn")
def with_h0(x, h0, W, U, b):
    return torch.cat([h0.unsqueeze(1), right(x, h0, W, U, b)], 1)
