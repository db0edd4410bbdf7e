"""Contracts of a recurrent network, h_t = tanh(W x_t + U h_{t-1} + b).

Steps are counted from 0, as in the tensors.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    finite,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.rnn.rnn_cases import (
    HIDDEN,
    SEQ,
    SHAPE_HINTS,
    SUSPECTS,
    arguments,
    cases,
    oracle,
)

RNN = Component(
    name="rnn",
    signature="rnn(x, h0, W, U, b)",
    returns="all hidden states (batch, seq, hidden)",
    axes=("step", "unit"),
    shape=lambda x, h0, W, U, b: (*x.shape[:2], len(b)),
    oracle=oracle,
    reference="nn.RNN",
    cases=cases,
    suspects=SUSPECTS,
    shape_hints=SHAPE_HINTS,
)


def who_moves(fn: Guarded, args: tuple) -> Tensor:
    """Which state moves with which input: True in (step, input)."""
    x, *rest = args
    before, moved = fn(*args), []
    for step in range(x.shape[1]):
        changed = x.clone()
        changed[:, step] += 1
        gap = (fn(changed, *rest) - before).detach().abs()
        moved.append((gap > 1e-3).any(-1).any(0))
    return torch.stack(moved, -1)


@RNN.contract
def causality(fn: Guarded) -> None:
    """A later input moves no earlier state."""
    moves = who_moves(fn, arguments(5))
    leaks = moves.triu(1)
    if leaks.any():
        step, later = leaks.nonzero()[0].tolist()
        raise Broken(
            f"State {step} moves with input {later}, which is in its future: "
            "in which order are the inputs read, and the states stored?",
            moves.float(),
            torch.ones_like(moves).tril().float(),
            ("state", "input"),
        )


@RNN.contract
def memory(fn: Guarded) -> None:
    """Every input moves its own state and all later ones."""
    moves = who_moves(fn, arguments(7))
    deaf = ~moves & torch.ones_like(moves).tril()
    if deaf.any():
        step, earlier = deaf.nonzero()[0].tolist()
        raise Broken(
            f"State {step} does not move with input {earlier}: is each state "
            "made of this step's input and of the state before it?",
            moves.float(),
            torch.ones_like(moves).tril().float(),
            ("state", "input"),
        )


@RNN.contract
def same_at_every_step(fn: Guarded) -> None:
    """Starting again from a state gives the same rest."""
    x, h0, *w = arguments(11)
    states = fn(x, h0, *w)
    for step in range(1, SEQ):
        rest = fn(x[:, step:], states[:, step - 1], *w)
        why = (
            f"Started again from state {step - 1}: is each step the same "
            "function of its input and the state before?"
        )
        same(fn, rest, states[:, step:], why)


@RNN.contract
def starts_from_h0(fn: Guarded) -> None:
    """The first state depends on h0."""
    x, h0, *w = arguments(13)
    require_moved(fn, (x, h0, *w), (x, h0 + 1, *w), "h0", 1)


@RNN.contract
def bias_counts(fn: Guarded) -> None:
    """Every state depends on b."""
    *rest, b = arguments(17)
    require_moved(fn, (*rest, b), (*rest, b + 1), "b", SEQ)


def require_moved(
    fn: Guarded, args: tuple, changed: tuple, name: str, steps: int
) -> None:
    """Raises Broken for the first of ``steps`` states that did not move."""
    before, after = fn(*args), fn(*changed)
    for step in range(steps):
        if furthest(after[:, step], before[:, step]) is None:
            raise Broken(
                f"State {step} stays as it was when `{name}` changes.", after
            )


@RNN.contract
def order_matters(fn: Guarded) -> None:
    """The order of the inputs matters."""
    x, *rest = arguments(19)
    swapped = x[:, [1, 0, *range(2, SEQ)]]
    before, after = fn(x, *rest)[:, -1], fn(swapped, *rest)[:, -1]
    if furthest(after, before) is None:
        raise Broken(
            "Inputs 0 and 1 changed places, and the last state did not move: "
            "a sum or a mean forgets the order.",
            after,
        )


@RNN.contract
def reads_w_by_rows(fn: Guarded) -> None:
    """W[i, j] leads from input j to unit i."""
    require_path(fn, "W", "input")


@RNN.contract
def reads_u_by_rows(fn: Guarded) -> None:
    """U[i, j] leads from unit j to unit i."""
    starts_from_h0(fn)  # Else no path through U can be seen.
    require_path(fn, "U", "unit")


def require_path(fn: Guarded, name: str, source: str) -> None:
    """Raises Broken unless a single weight [0, 2] leads from 2 to unit 0."""
    args = {
        "x": torch.zeros(1, 1, HIDDEN),
        "h0": torch.zeros(1, HIDDEN),
        "W": torch.zeros(HIDDEN, HIDDEN),
        "U": torch.zeros(HIDDEN, HIDDEN),
        "b": torch.zeros(HIDDEN),
    }
    args[name][0, 2] = 1
    before = fn(*args.values())
    args["x" if name == "W" else "h0"][..., 2] = 1
    moved = (fn(*args.values()) - before).detach()[0, 0].abs() > 1e-3
    if moved.tolist() != [True, False, False]:
        units = moved.nonzero().flatten().tolist()
        raise Broken(
            f"{name}[0, 2] is the only weight, so {source} 2 should move unit "
            f"0 alone, but it moves {units or 'none'}: is {name} transposed, "
            "or are W and U swapped?"
        )


@RNN.contract
def any_length(fn: Guarded) -> None:
    """It takes any length and any number of sequences, 1 included."""
    x, h0, *w = arguments(23, batch=3, seq=11)
    states = fn(x, h0, *w)
    for batch, seq in ((3, 1), (1, 11), (1, 1), (2, 5)):
        why = (
            f"The first {seq} steps of the first {batch} sequences, run alone, "
            "give other states than in the whole."
        )
        got = fn(x[:batch, :seq], h0[:batch], *w)
        same(fn, got, states[:batch, :seq], why)


@RNN.contract
def batch_apart(fn: Guarded) -> None:
    """One sequence does not touch another."""
    x, h0, *w = arguments(29)
    moved, start = x.clone(), h0.clone()
    moved[0] += 1
    start[0] += 1
    before, after = fn(x, h0, *w), fn(moved, start, *w)
    if furthest(after[1], before[1]) is not None:
        raise Broken(
            "Only sequence 0 was changed, and sequence 1 moved: does a state "
            "run on from one row of the batch to the next?",
            after[1],
            before[1],
        )


@RNN.contract
def bounded(fn: Guarded) -> None:
    """Every state lies between −1 and 1."""
    x, *rest = arguments(31)
    got = fn(10 * x, *rest)
    same(fn, got, got.clamp(-1, 1), "A tanh never leaves this range.")


@RNN.contract
def far_inputs(fn: Guarded) -> None:
    """Inputs of ±10⁴ give finite states."""
    x, h0, W, U, b = arguments(37)
    got = fn.raw(1e4 * x.sign(), h0, W, U, b)
    expected = oracle(1e4 * x.sign(), h0, W, U, b)
    why = "`exp` of a large number is ∞: use `torch.tanh`."
    finite(fn, got, why, expected)
    same(fn, got, expected, "Far from 0, tanh is ±1.")


@RNN.contract
def gradient_through_time(fn: Guarded) -> None:
    """The gradient of the last state reaches the first input."""
    memory(fn)  # Else there is no path, and nothing cuts it.
    x, *rest = arguments(41)
    x = x.clone().requires_grad_()
    last = fn(x, *rest)[:, -1].sum()
    steps = torch.zeros(SEQ)
    if last.requires_grad:
        (found,) = torch.autograd.grad(last, x)
        steps = found.norm(dim=(0, 2))
    if (steps == 0).any():
        stuck = int((steps == 0).nonzero()[-1])
        raise Broken(
            f"It does not reach input {stuck}: `.detach()`, `.data` and "
            "`no_grad` between two steps cut it."
        )
