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


@wrong("rnn", "U is transposed.* At batch")
def transposed_memory(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W.T + h @ U + b).tanh())


@wrong("rnn", "W is transposed.* At batch")
def reshaped(x, h0, W, U, b):
    W = W.reshape(W.shape[1], W.shape[0])
    return recur(x, h0, lambda x_t, h: (x_t @ W + h @ U.T + b).tanh())


@wrong("rnn", "h is not passed on: every step starts from h0")
def not_passed_on(x, h0, W, U, b):
    return torch.tanh(x @ W.T + (h0 @ U.T + b).unsqueeze(1))


@wrong("rnn", "The previous state is not used.* At batch")
def without_memory(x, h0, W, U, b):
    return torch.tanh(x @ W.T + b)


@wrong("rnn", "h0 is not used.* At batch")
def starts_from_zero(x, h0, W, U, b):
    return right(x, torch.zeros_like(h0), W, U, b)


@wrong("rnn", "b is not used. At batch")
def without_bias(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W.T + h @ U.T).tanh())


@wrong("rnn", "b is added after the tanh.* At batch")
def bias_outside(x, h0, W, U, b):
    return recur(x, h0, lambda x_t, h: (x_t @ W.T + h @ U.T).tanh() + b)


@wrong("rnn", "The state of one sequence runs on into the next.* At batch 1")
def runs_on(x, h0, W, U, b):
    states, h = torch.zeros(*x.shape[:2], len(b)), h0[0]
    for i in range(x.shape[0]):
        for t in range(x.shape[1]):
            h = torch.tanh(W @ x[i, t] + U @ h + b)
            states[i, t] = h
    return states


@wrong("rnn", "The sequence is read backwards. At batch")
def backwards(x, h0, W, U, b):
    return right(x.flip(1), h0, W, U, b).flip(1)


@wrong("rnn", "Every step shows the last state.* At batch")
def overwritten(x, h0, W, U, b):
    states, h = [], h0.clone()
    for x_t in x.unbind(1):
        h.copy_(torch.tanh(x_t @ W.T + h @ U.T + b))
        states.append(h)
    return torch.stack(states, 1)


@wrong("rnn", "The states are one step late.* At batch")
def late(x, h0, W, U, b):
    states = right(x, h0, W, U, b)
    return torch.cat([h0.unsqueeze(1), states[:, :-1]], 1)


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


@wrong("rnn", "^Batch 0, step 0, unit 0 is NaN. `exp` of a large number")
def overflows(x, h0, W, U, b):
    def tanh(z):
        return (z.exp() - (-z).exp()) / (z.exp() + (-z).exp())

    return recur(x, h0, lambda x_t, h: tanh(x_t @ W.T + h @ U.T + b))


@wrong("rnn", "^It does not reach input 3: `.detach")
def cut_in_time(x, h0, W, U, b):
    return recur(
        x, h0, lambda x_t, h: (x_t @ W.T + h.detach() @ U.T + b).tanh()
    )


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
