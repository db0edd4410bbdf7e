"""Curves over the steps of a run, with marks where a line leaves its plot."""

from math import ceil, floor, inf, isfinite, log10

from companion.figures.kit.digits import Number
from companion.figures.kit.plot import MARKS, Plot, mark, powers, ticks_from_0

__all__ = ["POINTS", "VIEW", "Line", "curves", "spread", "thinned"]

VIEW = "0 0 320 176"
EDGES = {"left": 62, "right": 306, "top": 14, "bottom": 140}
POINTS = 200
DECADES = 8
CALM = 1.5
"""A loss is drawn up to this many times its first one: the rest is cut off."""
KINDS = ("train", "valid")
SIGNS = {
    "▴": (EDGES["top"] - 2, "M-5 0H5L0 -8Z"),
    "▾": (EDGES["bottom"] + 1, "M-5 -8H5L0 0Z"),
    "✕": (EDGES["top"] + 8, "M-5 -5L5 5M5 -5L-5 5"),
}
"""Where a mark stands, and its shape."""
APART = 14
ZERO = -400.0
"""What stands for the logarithm of 0: it lies below all powers of ten."""

Line = list[tuple[Number, float]]
"""Steps and numbers, which may be NaN or infinite."""


def thinned(numbers: list[float]) -> Line:
    """Choose at most ``POINTS`` of the numbers, each with its step.

    Of each stretch the last number stands for all, but one that is not finite
    comes before it, so that no accident is lost.
    """
    count = len(numbers)
    pieces = min(count, POINTS)
    line = []
    for i in range(pieces):
        steps = range(count * i // pieces, count * (i + 1) // pieces)
        bad = [step for step in steps if not isfinite(numbers[step])]
        chosen = bad[0] if bad else steps[-1]
        line.append((chosen + 1, numbers[chosen]))
    return line


def spread(numbers: list[float], steps: int) -> Line:
    """Spread numbers evenly over a run, the last one at its last step."""
    count = len(numbers)
    line = [(steps * (i + 1) / count, n) for i, n in enumerate(numbers)]
    every = max(1, -(-count // POINTS))
    return line[::-1][::every][::-1]


def curves(
    lines: list[Line], steps: int, *, decades: bool = False, cut: bool = False
) -> str:
    """Draw one line or two over the steps of a run.

    Args:
        lines: The numbers of training, and of validation.
        steps: The length of the run.
        decades: Draw powers of ten.
        cut: Leave out what is far above the first numbers.
    """
    if decades:
        lines = [[(step, _log(n)) for step, n in line] for line in lines]
    numbers = [n for line in lines for _, n in line if isfinite(n)]
    if decades:
        inside = [log for log in numbers if log > ZERO] or [0.0]
        high = ceil(max(inside) + 1e-9)
        low = max(floor(min(inside)), high - DECADES)
        ticks = powers(low, high)
    else:
        starts = [line[0][1] for line in lines if isfinite(line[0][1])]
        most = CALM * max(starts, default=inf) if cut else inf
        top = min(max(numbers, default=1.0), most)
        low, high = 0.0, top * 1.08 if top > 0 else 1.0
        ticks = ticks_from_0(high)
    plot = Plot(1, max(steps, 2), low, high, **EDGES)
    grid = plot.grid(ticks, {1: "1", steps: f"{steps:,}"}, "step", below=18)
    return grid + "".join(
        f'<g class="{kind}">{_line(line, plot, kind)}</g>'
        for kind, line in zip(KINDS, lines, strict=False)
    )


def _log(number: float) -> float:
    return ZERO if number == 0 else log10(number) if number > 0 else number


def _line(line: Line, plot: Plot, kind: str) -> str:
    """The line as far as it is in the picture, and marks where it leaves."""
    path, pen = "", False
    for step, number in line:
        if isfinite(number):
            at = f"{plot.x(step):.1f} {plot.y(plot.cut(number)):.1f}"
            path += f"{'L' if pen else 'M'}{at}"
        pen = isfinite(number)
    marks = _accidents(line, plot)
    if kind == "valid":
        places = [(step, plot.cut(n)) for step, n in line if isfinite(n)]
        marks = [
            mark("small", plot.x(step), plot.y(n), MARKS["square"])
            for step, n in places
        ] + marks
    return f'<path class="line" d="{path}"/>{"".join(marks)}'


def _accidents(line: Line, plot: Plot) -> list[str]:
    """A mark where the line leaves the picture, and not two in one place."""
    marks, last, before = [], {}, ""
    for step, number in line:
        sign, x = _sign(number, plot), plot.x(step)
        if sign and sign != before and x - last.get(sign, -APART) >= APART:
            y, shape = SIGNS[sign]
            marks.append(mark("left", x, y, shape))
            last[sign] = x
        before = sign
    return marks


def _sign(number: float, plot: Plot) -> str:
    if number != number:
        return "✕"
    if number > plot.y1:
        return "▴"
    return "▾" if number < plot.y0 else ""
