"""What is tried on a recurrence, and the known ways to get it wrong.

Sizes are prime and differ: 2 sequences of 5 steps, inputs of width 7, states of
width 3.
"""

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import draw

SEQ, D_IN, HIDDEN = 5, 7, 3


def weights(d_in: int, hidden: int, seed: int) -> tuple[Tensor, ...]:
    """W, U and b that keep tanh away from ±1 and forget slowly."""
    turn = torch.linalg.qr(draw(hidden, hidden, seed=seed)).Q
    W = draw(hidden, d_in, seed=seed + 1) / d_in**0.5
    return W, 0.9 * turn, 0.5 * draw(hidden, seed=seed + 2)


def arguments(
    seed: int, batch: int = 2, seq: int = SEQ, d_in: int = D_IN
) -> tuple[Tensor, ...]:
    """x, h0, W, U and b."""
    x = draw(batch, seq, d_in, seed=seed)
    h0 = 0.5 * draw(batch, HIDDEN, seed=seed + 100)
    return x, h0, *weights(d_in, HIDDEN, seed + 200)


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    return {
        "for d_in = 7 and hidden = 3": arguments(2),
        # Where W is square, swapped and transposed weights show their numbers.
        "for d_in = hidden = 3": arguments(3, d_in=HIDDEN),
    }


def oracle(x: Tensor, h0: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    """``nn.RNN`` with these weights."""
    hidden, d_in = W.shape
    network = nn.RNN(d_in, hidden, batch_first=True)
    theirs = {
        "weight_ih_l0": W,
        "weight_hh_l0": U,
        "bias_ih_l0": b,
        "bias_hh_l0": torch.zeros_like(b),
    }
    args = (x, h0.unsqueeze(0))
    return torch.func.functional_call(network, theirs, args)[0]


def recur(x, h0, W, U, b, *, squash=torch.tanh, remember=True):
    """The recurrence with one thing wrong."""
    states, h = [], h0
    for x_t in x.unbind(1):
        new = squash(x_t @ W.T + h @ U.T + b)
        states.append(new)
        h = new if remember else h
    return torch.stack(states, 1)


def leaking(x, h0, W, U, b):
    """One state that runs through the rows of the batch."""
    rows, h = [], h0[:1]
    for row in x.split(1):
        rows.append(oracle(row, h, W, U, b))
        h = rows[-1][:, -1]
    return torch.cat(rows)


def with_states(change):
    """The right states, changed afterwards."""
    return lambda x, h0, W, U, b: change(oracle(x, h0, W, U, b), h0)


SUSPECTS = {
    "There is no tanh: h_t = tanh(W x_t + U h_{t-1} + b).": (
        lambda *args: recur(*args, squash=lambda z: z)
    ),
    "This is a sigmoid: a state comes out of tanh.": (
        lambda *args: recur(*args, squash=torch.sigmoid)
    ),
    "This is a ReLU: a state comes out of tanh.": (
        lambda *args: recur(*args, squash=torch.relu)
    ),
    "h is not passed on: every step starts from h0.": (
        lambda *args: recur(*args, remember=False)
    ),
    "The previous state is not used: U h_{t-1} is missing.": (
        lambda x, h0, W, U, b: (x @ W.T + b).tanh()
    ),
    "h0 is not used: the first step starts from zeros.": (
        lambda x, h0, W, U, b: oracle(x, torch.zeros_like(h0), W, U, b)
    ),
    "b is not used.": (
        lambda x, h0, W, U, b: oracle(x, h0, W, U, torch.zeros_like(b))
    ),
    "b is added after the tanh: it belongs inside.": (
        lambda x, h0, W, U, b: recur(
            x, h0, W, U, 0 * b, squash=lambda z: z.tanh() + b
        )
    ),
    "U is transposed: in a batch, U h is `h @ U.T`.": (
        lambda x, h0, W, U, b: oracle(x, h0, W, U.T, b)
    ),
    "W is transposed: in a batch, W x is `x @ W.T`.": (
        lambda x, h0, W, U, b: oracle(x, h0, W.T, U, b)
    ),
    "W and U are transposed: in a batch, W x is `x @ W.T`.": (
        lambda x, h0, W, U, b: oracle(x, h0, W.T, U.T, b)
    ),
    "W and U are swapped: W meets the input, U the state.": (
        lambda x, h0, W, U, b: oracle(x, h0, U, W, b)
    ),
    "W and U are swapped, and transposed: W meets the input, U the state.": (
        lambda x, h0, W, U, b: oracle(x, h0, U.T, W.T, b)
    ),
    "The state of one sequence runs on into the next: begin each at its own "
    "row of h0.": leaking,
    "The sequence is read backwards.": (
        lambda x, h0, W, U, b: oracle(x.flip(1), h0, W, U, b).flip(1)
    ),
    "The states are in reverse order.": with_states(lambda s, h0: s.flip(1)),
    "Every step shows the last state: store each state before the next one "
    "overwrites it.": with_states(lambda s, h0: s[:, -1:].expand_as(s)),
    "The states are one step late: h0 is not among them, h_T is.": (
        with_states(lambda s, h0: torch.cat([h0.unsqueeze(1), s[:, :-1]], 1))
    ),
    "Every step reads the first input.": (
        lambda x, h0, W, U, b: oracle(x[:, :1].expand_as(x), h0, W, U, b)
    ),
}
"""Hint -> the mistake it hints at."""

SHAPE_HINTS = {
    "Is this the last state only? Return all of them, joined by "
    "`torch.stack(states, dim=1)`.": (lambda x, h0, W, U, b: (len(x), len(b))),
    "Time comes before the batch: join the states with `dim=1`.": (
        lambda x, h0, W, U, b: (x.shape[1], len(x), len(b))
    ),
    "Is h0 among the states? There is one for each input.": (
        lambda x, h0, W, U, b: (len(x), x.shape[1] + 1, len(b))
    ),
}
"""Hint -> the shape of what was probably returned instead."""
