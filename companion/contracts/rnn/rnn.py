"""A recurrent network, h_t = tanh(W x_t + U h_{t-1} + b).

Steps are counted from 0, as in the tensors. Sizes are prime and differ: 2
sequences of 5 steps, inputs of width 7, states of width 3.
"""

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    batch_independence,
    part_as_in_the_whole,
)
from companion.contracts.engine.guard import Guarded

__all__ = ["RNN"]

SEQ, D_IN, HIDDEN = 5, 7, 3


def weights(d_in: int, hidden: int, seed: int) -> tuple[Tensor, ...]:
    """Draw W, U and b that keep tanh away from ±1 and forget slowly."""
    turn = torch.linalg.qr(draw(hidden, hidden, seed=seed)).Q
    W = draw(hidden, d_in, seed=seed + 1) / d_in**0.5
    return W, 0.9 * turn, 0.5 * draw(hidden, seed=seed + 2)


def arguments(
    seed: int, batch: int = 2, seq: int = SEQ, d_in: int = D_IN
) -> tuple[Tensor, ...]:
    """Draw x, h0, W, U and b."""
    x = draw(batch, seq, d_in, seed=seed)
    h0 = 0.5 * draw(batch, HIDDEN, seed=seed + 100)
    return x, h0, *weights(d_in, HIDDEN, seed + 200)


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    return {
        "for d_in = 7 and hidden = 3": arguments(2),
        # Where W is square, swapped and transposed weights show their numbers.
        "for d_in = hidden = 3": arguments(3, d_in=HIDDEN),
    }


def oracle(x: Tensor, h0: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    """Run ``nn.RNN`` with these weights."""
    hidden, d_in = W.shape
    network = nn.RNN(d_in, hidden, batch_first=True)
    named = {
        "weight_ih_l0": W,
        "weight_hh_l0": U,
        "bias_ih_l0": b,
        "bias_hh_l0": torch.zeros_like(b),
    }
    args = (x, h0.unsqueeze(0))
    return torch.func.functional_call(network, named, args)[0]


RNN = Component(
    name="rnn",
    signature="rnn(x, h0, W, U, b)",
    returns="all hidden states (batch, seq, hidden)",
    axes=("step", "unit"),
    shape=lambda x, h0, W, U, b: (*x.shape[:2], len(b)),
    oracle=oracle,
    reference="nn.RNN",
    cases=cases,
    shape_hints={
        "Is this the last state only? Return all of them, joined by "
        "`torch.stack(states, dim=1)`.": (
            lambda x, h0, W, U, b: (len(x), len(b))
        ),
        "Time comes before the batch: join the states with `dim=1`.": (
            lambda x, h0, W, U, b: (x.shape[1], len(x), len(b))
        ),
        "Is h0 among the states? There is one for each input.": (
            lambda x, h0, W, U, b: (len(x), x.shape[1] + 1, len(b))
        ),
    },
)


def moved_by(fn: Guarded, args: tuple) -> Tensor:
    """Return which state moves with which input: True in (step, input)."""
    x, *rest = args
    before, moved = fn(*args), []
    for step in range(x.shape[1]):
        changed = x.clone()
        changed[:, step] += 1
        gap = (fn(changed, *rest) - before).detach().abs()
        moved.append((gap > 1e-3).any(-1).any(0))
    return torch.stack(moved, -1)


def require_none(wrong: Tensor, moves: Tensor, message: str) -> None:
    """Raise Broken at the first True of ``wrong``."""
    if wrong.any():
        state, step = wrong.nonzero()[0].tolist()
        raise Broken(
            message.format(state=state, step=step),
            moves.float(),
            torch.ones_like(moves).tril().float(),
            ("state", "input"),
        )


@RNN.contract
def causality(fn: Guarded) -> None:
    """A later input moves no earlier state."""
    moves = moved_by(fn, arguments(5))
    require_none(
        moves.triu(1),
        moves,
        "State {state} moves with input {step}, which is in its future: "
        "in which order are the inputs read, and the states stored?",
    )


@RNN.contract
def memory(fn: Guarded) -> None:
    """Every input moves its own state and all later ones."""
    moves = moved_by(fn, arguments(7))
    require_none(
        ~moves & torch.ones_like(moves).tril(),
        moves,
        "State {state} does not move with input {step}: is each state "
        "made of this step's input and of the state before it?",
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
    """Raise Broken for the first of ``steps`` states that did not move."""
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
    """Raise Broken unless a single weight [0, 2] leads from 2 to unit 0."""
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


RNN.contract(
    part_as_in_the_whole(
        "It takes any length and any number of sequences, 1 included",
        lambda: arguments(23, batch=3, seq=11),
        lambda batch, seq, x, h0, *w: (x[:batch, :seq], h0[:batch], *w),
        why="The first {seq} steps of the first {batch} sequences, run alone, "
        "give other states than in the whole.",
    )
)
RNN.contract(
    batch_independence(
        "One sequence does not touch another",
        lambda: arguments(29),
        lambda x, h0, *w: (
            torch.stack([x[0] + 1, x[1]]),
            torch.stack([h0[0] + 1, h0[1]]),
            *w,
        ),
        why="does a state run on from one row of the batch to the next?",
        unit="sequence",
    )
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


# Known mistakes, in the order in which they are recognised


def steps(x, h0, step):
    """Return all states of ``step(x_t, h)``, one after another."""
    states, h = [], h0
    for x_t in x.unbind(1):
        h = step(x_t, h)
        states.append(h)
    return torch.stack(states, 1)


def squashed_by(squash):
    """Make a recurrence with another function than tanh."""
    return lambda x, h0, W, U, b: steps(
        x, h0, lambda x_t, h: squash(x_t @ W.T + h @ U.T + b)
    )


RNN.mistake(
    "linear", hint="There is no tanh: h_t = tanh(W x_t + U h_{t-1} + b)."
)(squashed_by(lambda z: z))
RNN.mistake("sigmoid", hint="This is a sigmoid: a state comes out of tanh.")(
    squashed_by(torch.sigmoid)
)
RNN.mistake("relu", hint="This is a ReLU: a state comes out of tanh.")(
    squashed_by(torch.relu)
)


@RNN.mistake(
    hint="h is not passed on: every step starts from h0.",
    symptom="it learns what stands at a step, and nothing of what came before",
)
def forgets_between_steps(x, h0, W, U, b):
    """The new state gets a new name, and the next step reads the old one."""
    return torch.tanh(x @ W.T + (h0 @ U.T + b).unsqueeze(1))


RNN.mistake(
    "without-memory",
    hint="The previous state is not used: U h_{t-1} is missing.",
)(lambda x, h0, W, U, b: torch.tanh(x @ W.T + b))


@RNN.mistake(
    hint="h0 is not used: the first step starts from zeros.",
    symptom="a decoder ignores what it was told, and writes the average",
)
def starts_from_zero(x, h0, W, U, b):
    """h0 is taken, and a state of zeros is made anyway."""
    return oracle(x, torch.zeros_like(h0), W, U, b)


RNN.mistake("without-bias", hint="b is not used.")(
    lambda x, h0, W, U, b: oracle(x, h0, W, U, torch.zeros_like(b))
)
RNN.mistake(
    "bias-outside", hint="b is added after the tanh: it belongs inside."
)(
    lambda x, h0, W, U, b: steps(
        x, h0, lambda x_t, h: (x_t @ W.T + h @ U.T).tanh() + b
    )
)


@RNN.mistake(
    hint="U is transposed: in a batch, U h is `h @ U.T`.",
    symptom="learns, until another library reads its weights",
)
def transposed_memory(x, h0, W, U, b):
    """`h @ U` for `h @ U.T`: U is square, so nothing complains."""
    return oracle(x, h0, W, U.T, b)


@RNN.mistake(
    hint="W is transposed: in a batch, W x is `x @ W.T`.",
    symptom="learns, until another library reads its weights",
)
def reshaped_for_a_transpose(x, h0, W, U, b):
    """`reshape` turns (hidden, d_in) into (d_in, hidden), not the numbers."""
    W = W.reshape(W.shape[1], W.shape[0])
    return steps(x, h0, lambda x_t, h: torch.tanh(x_t @ W + h @ U.T + b))


RNN.mistake(
    "both-transposed",
    hint="W and U are transposed: in a batch, W x is `x @ W.T`.",
)(lambda x, h0, W, U, b: oracle(x, h0, W.T, U.T, b))
RNN.mistake(
    "swapped", hint="W and U are swapped: W meets the input, U the state."
)(lambda x, h0, W, U, b: oracle(x, h0, U, W, b))
RNN.mistake(
    "swapped-and-transposed",
    hint="W and U are swapped, and transposed: W meets the input, U the state.",
)(lambda x, h0, W, U, b: oracle(x, h0, U.T, W.T, b))


@RNN.mistake(
    hint="The state of one sequence runs on into the next: begin each at its "
    "own row of h0.",
    symptom="the answer depends on which sentences share a batch",
)
def runs_on(x, h0, W, U, b):
    """The state is not reset: a sentence goes on from the one before it."""
    rows, h = [], h0[:1]
    for row in x.split(1):
        rows.append(oracle(row, h, W, U, b))
        h = rows[-1][:, -1]
    return torch.cat(rows)


RNN.mistake("backwards", hint="The sequence is read backwards.")(
    lambda x, h0, W, U, b: oracle(x.flip(1), h0, W, U, b).flip(1)
)
RNN.mistake("reversed", hint="The states are in reverse order.")(
    lambda *args: oracle(*args).flip(1)
)


@RNN.mistake(
    hint="Every step shows the last state: store each state before the next "
    "one overwrites it.",
    symptom="all encoder states are alike, and attention has nothing to choose",
)
def overwritten(x, h0, W, U, b):
    """The list holds one tensor many times, and each step writes into it."""
    states, h = [], h0.clone()
    for x_t in x.unbind(1):
        h.copy_(torch.tanh(x_t @ W.T + h @ U.T + b))
        states.append(h)
    return torch.stack(states, 1)


@RNN.mistake(
    hint="The states are one step late: h0 is not among them, h_T is.",
    symptom="the answer comes one step late, and the last word is never read",
)
def one_step_late(x, h0, W, U, b):
    """Stores the state before the step and not after it."""
    states = oracle(x, h0, W, U, b)
    return torch.cat([h0.unsqueeze(1), states[:, :-1]], 1)


RNN.mistake("first-input-only", hint="Every step reads the first input.")(
    lambda x, *rest: oracle(x[:, :1].expand_as(x), *rest)
)


@RNN.mistake(
    symptom="the loss falls, but nothing further back than a step is learnt"
)
def cut_in_time(x, h0, W, U, b):
    """`detach` at each step: right forward, and no gradient through time."""
    return steps(
        x, h0, lambda x_t, h: (x_t @ W.T + h.detach() @ U.T + b).tanh()
    )


@RNN.mistake(symptom="NaN as soon as one input is large")
def tanh_by_hand(x, h0, W, U, b):
    """The tanh as the textbook prints it: ∞/∞ for a large number."""

    def tanh(z):
        return (z.exp() - (-z).exp()) / (z.exp() + (-z).exp())

    return squashed_by(tanh)(x, h0, W, U, b)
