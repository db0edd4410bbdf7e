"""The two plots of ``noam``: plain axes, and axes in powers of ten."""

from math import log10

from companion.figures.kit.digits import Number, fixed, short
from companion.figures.kit.plot import (
    MARKS,
    VIEW,
    Plot,
    power,
)
from companion.training import noam

LAST = 20_000
ABOVE = 1.2
"""Where the plot ends, in peaks."""
UNIT = 1e-4
DECADES = 5, -10
"""The other plot: steps from 1 to 10⁵, rates from 10⁻¹⁰ to 1."""
RIGHT = 312  # Under the last step stand five digits.
PLAIN = Plot(0, LAST, 0, ABOVE, right=RIGHT)
POWERS = Plot(0, DECADES[0], DECADES[1], 0, right=RIGHT)


def branches(
    step: int, d_model: int, warmup: int, factor: Number
) -> tuple[float, float]:
    """The two rates of which the schedule takes the smaller."""
    scale = factor * d_model**-0.5
    return scale * step * warmup**-1.5, scale * step**-0.5


def plots(d_model: int, warmup: int, factor: Number) -> str:
    """Both plots as HTML, side by side where there is room."""
    peak = factor * noam(warmup, d_model, warmup)
    tops = (
        (PLAIN.x(warmup), PLAIN.y(1)),
        (POWERS.x(log10(warmup)), POWERS.y(log10(peak))),
    )
    names = "Rate × 10⁻⁴, plain axes", "Rate, axes in powers of ten"
    frames = _plain_frame(peak), _decade_frame()
    lines = paths(d_model, warmup, factor)
    drawn = zip(names, frames, lines, tops, strict=True)
    return "".join(_plot(*parts) for parts in drawn)


def paths(d_model: int, warmup: int, factor: Number) -> list[list[str]]:
    """Per plot: what is the smaller, the rising and the falling branch."""
    up = [(0, 0), (min(ABOVE * warmup, LAST), min(ABOVE, LAST / warmup))]
    first = warmup / ABOVE**2
    down = [_falling(first, warmup, i) for i in range(41)]
    rate = [(0, 0), *(_falling(warmup, warmup, i) for i in range(41))]
    straight = _straight(d_model, warmup, factor)
    return [
        [PLAIN.line(line) for line in (rate, up, down)],
        [POWERS.line(line) for line in straight],
    ]


def _falling(first: Number, warmup: int, i: int) -> tuple[float, float]:
    """Point ``i`` of 40 from ``first`` to the last step, in peaks."""
    step = first * (LAST / first) ** (i / 40)
    return step, (warmup / step) ** 0.5


def _straight(
    d_model: int, warmup: int, factor: Number
) -> list[list[tuple[Number, Number]]]:
    """The same three lines where both axes are powers of ten."""
    right, _ = DECADES
    pair = branches(1, d_model, warmup, factor)
    rise, fall = (log10(rate) for rate in pair)
    start = log10(warmup)
    peak = log10(factor * noam(warmup, d_model, warmup))
    over = min(right, -rise)  # Here the rising branch reaches a rate of 1.
    up = [(0, rise), (over, rise + over)]
    down = [(0, fall), (right, fall - right / 2)]
    rate = [up[0], (start, peak), down[1]]
    return [rate, up, down]


def _plot(
    name: str, frame: str, lines: list[str], top: tuple[float, float]
) -> str:
    kinds = zip(("rate", "rising", "falling"), lines, strict=True)
    drawn = "".join(f'<path class="{kind}" d="{d}"/>' for kind, d in kinds)
    x, y = (fixed(value, 1) for value in top)
    mark = (
        f'<path class="drop" d="M{x} {y}V{PLAIN.bottom}"/><path class="mark" '
        f'transform="translate({x},{y})" d="{MARKS["circle"]}"/>'
    )
    return (
        f'<div class="plot"><p class="title">{name}</p><svg viewBox="{VIEW}" '
        f'role="img" aria-label="Learning rate over steps. {name}; '
        f'the numbers stand in the table below.">{frame}{drawn}{mark}</svg>'
        "</div>"
    )


def _plain_frame(peak: float) -> str:
    rows = {share: short(share * peak / UNIT) for share in (0, 0.5, 1)}
    columns = {step: f"{step:,}" for step in (0, LAST // 2, LAST)}
    return PLAIN.grid(rows, columns, "step")


def _decade_frame() -> str:
    right, low = DECADES
    rows = {at: power(at) for at in range(low, 1, 2)}
    columns = {at: power(at) for at in range(right + 1)}
    return POWERS.grid(rows, columns, "step")
