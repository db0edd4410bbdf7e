"""The recurrence got wrong."""

import torch
from right.rnn import rnn_by_loop as right

from wrong import wrong


def recur(x, h0, step):
    states, h = [], h0
    for x_t in x.unbind(1):
        h = step(x_t, h)
        states.append(h)
    return torch.stack(states, 1)


@wrong("rnn", "There is no tanh.* At batch .*, step .*, unit")
def linear(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: x_t @ W.T + h @ U.T + b)


@wrong("rnn", "This is a sigmoid.* At batch")
def sigmoid(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W.T + h @ U.T + b).sigmoid())


@wrong("rnn", "W and U are swapped.* Here it raised RuntimeError in line")
def swapped(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ U.T + h @ W.T + b).tanh())


@wrong("rnn", "W is transposed.* Here it raised RuntimeError in line")
def transposed_input(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W + h @ U.T + b).tanh())


@wrong("rnn", "The previous state is not used.* At batch")
def without_memory(x, h0, W, U, b):
    return torch.tanh(x @ W.T + b)


@wrong("rnn", "b is not used. At batch")
def without_bias(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W.T + h @ U.T).tanh())


@wrong("rnn", "b is added after the tanh.* At batch")
def bias_outside(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W.T + h @ U.T).tanh() + b)


@wrong("rnn", "The sequence is read backwards. At batch")
def backwards(x, h0, W, U, b):
    return right(x.flip(1), h0, W, U, b).flip(1)


@wrong("rnn", "This is not what nn.RNN returns.* At batch")
def other_at_every_step(x, h0, W, U, b):
    states, h = [], h0
    for t, x_t in enumerate(x.unbind(1)):
        h = torch.tanh(x_t @ W.T + h @ U.T + b * (1 + t / 10))
        states.append(h)
    return torch.stack(states, 1)


@wrong("rnn", "This is not what nn.RNN returns.* At batch")
def running_sum(x, h0, W, U, b):
    # Reads the order of the inputs nowhere.
    return torch.tanh(x.cumsum(1) @ W.T + (h0 @ U.T + b).unsqueeze(1))


@wrong("rnn", "^Started again from state 3.* At batch")
def one_step_is_special(x, h0, W, U, b):
    states = right(x, h0, W, U, b)
    return states + 0.1 if x.shape[1] == 1 and len(b) == 3 else states


@wrong("rnn", "Is this the last state only")
def last_only(x, h0, W, U, b):
    return right(x, h0, W, U, b)[:, -1]


@wrong("rnn", "Time comes before the batch")
def time_first(x, h0, W, U, b):
    return right(x, h0, W, U, b).transpose(0, 1)


@wrong("rnn", "Is h0 among the states")
def with_h0(x, h0, W, U, b):
    return torch.cat([h0.unsqueeze(1), right(x, h0, W, U, b)], 1)
