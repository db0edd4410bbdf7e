"""Two positions under the sinusoidal encoding, as vectors and as clocks."""

import torch
from torch import Tensor

from companion.figures.gallery.position_clocks.view import body, geometry
from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.positions import frequencies, sinusoidal

START = (3, 10)


def position_clocks(d_model: int = 16, length: int = 64) -> Figure:
    """Pick two positions; each pair of dimensions shows them as clock hands.

    A pair holds sin and cos of position · frequency, the hand of a clock which
    turns slower from pair to pair (Vaswani et al. 2017, section 3.5). The
    product of two hands is the cosine of the angle between them, so the dot
    product of two encodings depends on their offset only.

    Raises:
        TypeError, ValueError: ``d_model`` is no even number, or ``length`` is
            too short for the positions the figure starts with.
    """
    if d_model % 2:
        raise ValueError(f"d_model: expected an even number, got {d_model}")
    if length <= START[1] + 1:
        raise ValueError(
            f"length: expected at least {START[1] + 2} positions, got {length}"
        )
    table = sinusoidal(length, d_model, dtype=torch.float64)
    sentence = _sentence(table, *START)
    rates = frequencies(d_model).tolist()
    html = inline(
        "clocks",
        body=body(table, rates, START, sentence),
        label="Sinusoidal positions as clocks",
        caption=_caption(table),
        data={
            "rates": rates,
            "length": length,
            "start": START,
            "drawing": geometry(table),
        },
        **figure_parts(__file__),
    )
    return Figure(html, f"Position clocks. {sentence}")


def twin(a: int, b: int, length: int) -> tuple[int, int] | None:
    """Two other positions with the product a · b, and so at another distance.

    ``clocks.js`` looks in the same order: near the smaller position first.
    """
    small = min(a, b)
    for p in [*range(small - 1, 0, -1), *range(small + 1, length)]:
        q, rest = divmod(a * b, p)
        if not rest and p < q < length:
            return p, q
    return None


def _sentence(table: Tensor, a: int, b: int) -> str:
    """What the picture shows; ``clocks.js`` says it in the same words."""
    length, d_model = table.shape
    step = 1 if max(a, b) + 1 < length else -1
    if min(a, b) + step < 0:  # Position 0 and the last: no room for a step.
        step = 0
    dot, moved = table[a] @ table[b], table[a + step] @ table[b + step]
    way = {1: "One step on", -1: "One step back", 0: "Where they are"}[step]
    other = twin(a, b, length)
    same = (
        f" But {_times(*other)} too, at offset {other[1] - other[0]}."
        if other
        else ""
    )
    return (
        f"Positions {a} and {b}, offset {fixed(b - a, 0)}: the dot product of "
        f"their encodings is {fixed(dot.item())}, the sum of the "
        f"{d_model // 2} cosines. {way}, at {a + step} and {b + step}, it is "
        f"{fixed(moved.item())}. The bare index has {_times(a, b)} here "
        f"and {_times(a + step, b + step)} there.{same}"
    )


def _times(p: int, q: int) -> str:
    """A product that no line break cuts."""
    return f"{p} × {q} = {p * q}".replace(" ", "\N{NO-BREAK SPACE}")


def _caption(table: Tensor) -> str:
    """What to see, in numbers measured here and now."""
    d_model = table.shape[1]
    near = (table[0] @ table[1]).item()
    return (
        "The dot product depends on the offset only. Move both positions "
        "together: every hand turns, no angle between two hands changes. The "
        "first clocks tell neighbours apart, the last ones hardly move in a "
        "sentence. At offset "
        f"0 the dot product is {fixed(d_model / 2)}, at offset 1 it is "
        f"{fixed(near)}, and the sign of the offset makes no difference."
    )
