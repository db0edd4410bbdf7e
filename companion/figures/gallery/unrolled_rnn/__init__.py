"""The unrolled RNN: how much of the last state each input still moves."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from companion.figures.gallery.unrolled_rnn.view import body, frame
from companion.figures.kit.digits import fixed, lowered, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, played, slider
from companion.rnn import gradient_to_inputs, unroll

GAINS = {"min": 0.5, "max": 2.0, "step": 0.05}
START = 0.8


class SmallRNN(NamedTuple):
    """One sentence and the weights that read it: h = tanh(W x + U h' + b).

    ``U`` is orthogonal: it turns a state and keeps its length, so that the
    figure's gain is the largest (and the smallest) singular value of gain · U.
    """

    x: Float[Tensor, "seq d_in"]
    h0: Float[Tensor, " hidden"]
    W: Float[Tensor, "hidden d_in"]
    U: Float[Tensor, "hidden hidden"]
    b: Float[Tensor, " hidden"]


def small_rnn(
    length: int = 20, hidden: int = 8, d_in: int = 3, seed: int = 1
) -> SmallRNN:
    """An RNN that starts in the straight part of tanh: its inputs are tiny.

    ``W`` has Frobenius norm 1, so the last input reaches the last state with
    a gradient of about 1, and every other input is easy to compare with it.
    """
    draw = torch.Generator().manual_seed(seed)
    options = {"generator": draw, "dtype": torch.float64}
    U = torch.linalg.qr(torch.randn(hidden, hidden, **options)).Q
    W = torch.randn(hidden, d_in, **options)
    x = torch.randn(length, d_in, **options) / 1000
    nothing = torch.zeros(hidden, dtype=torch.float64)
    return SmallRNN(x, nothing, W / W.norm(), U, nothing)


def unrolled_rnn(rnn: SmallRNN | None = None) -> Figure:
    """The RNN drawn step by step, with a slider for the gain of ``U``.

    Under each input stands ``gradient_to_inputs`` on a logarithmic scale, and
    what an RNN without tanh would have there.

    Args:
        rnn: What to draw; ``small_rnn()`` without it.
    """
    # The page gets rounded numbers, so what stands in it is computed from them.
    rnn = SmallRNN(*(_rounded(part) for part in rnn or small_rnn()))
    count = round((GAINS["max"] - GAINS["min"]) / GAINS["step"]) + 1
    gains = [GAINS["min"] + i * GAINS["step"] for i in range(count)]

    def show(i: int) -> Parts:
        gradients, sizes = _measure(rnn, gains[i])
        linear = _without_tanh(rnn, gains[i])
        says = _sentence(gains[i], gradients, sizes)
        return frame(gradients, sizes, linear) | {"says": says}

    start = round((START - GAINS["min"]) / GAINS["step"])
    control = slider(
        "Gain: how much U stretches the state",
        [fixed(gain) for gain in gains],
        start,
    )
    html = played(
        "unrolled",
        show,
        [control],
        body,
        module=__file__,
        label="Unrolled RNN with a slider for its gain",
        caption=_caption(rnn),
    )
    return Figure(html, f"Unrolled RNN. {show(start)['says']}")


def _rounded(numbers: Tensor) -> Tensor:
    return numbers.double().round(decimals=9)


def _measure(rnn: SmallRNN, gain: float) -> tuple[list, list]:
    """For each step: the gradient that reaches x, and the mean size of h."""
    x, h0, W, U, b = rnn
    gradients = gradient_to_inputs(x, h0, W, gain * U, b)
    states = unroll(x[None], h0[None], W, gain * U, b)[0]
    return gradients.tolist(), states.abs().mean(dim=1).tolist()


def _without_tanh(rnn: SmallRNN, gain: float) -> list:
    steps = len(rnn.x)
    return [gain ** (steps - 1 - t) * rnn.W.norm().item() for t in range(steps)]


def _sentence(gain: float, gradients: list, sizes: list) -> str:
    """What the picture shows, in words."""
    steps = len(sizes)
    first, last = lowered("x", 1), lowered("x", steps)
    state = lowered("h", steps)
    ratio = gradients[0] / gradients[-1] if gradients[-1] else 0
    if not ratio:
        how = "not at all"
    elif short(ratio) == "1.00":
        how = f"as strongly as {last} does"
    elif ratio < 1:
        how = f"{short(1 / ratio)} times more weakly than {last} does"
    else:
        how = f"{short(ratio)} times more strongly than {last} does"
    return (
        f"Gain {fixed(gain)}: {first} reaches {state} {how}. "
        f"The numbers in {state} have a mean size of {short(sizes[-1])}."
    )


def _caption(rnn: SmallRNN) -> str:
    """What to see, in numbers measured here and now."""
    first = lowered("x", 1)
    weak, strong = (_measure(rnn, gain)[0][0] for gain in (0.8, 2.0))
    return (
        "Every step back multiplies the gradient by the gain and by the slope "
        "of tanh, 1 − h². While the states are small that slope is close to 1, "
        "and the bars follow the dashes: a straight line on this logarithmic "
        "scale. Full states flatten tanh, and the bars fall short of the "
        f"dashes. At gain 0.8 the bar of {first} stands at {short(weak)}; at "
        f"gain 2.0 it stands at {short(strong)}, and its dash at "
        f"{short(_without_tanh(rnn, 2.0)[0])}."
    )
