"""The plots of ``depth``: frames, lines and the marks at their ends."""

from itertools import pairwise
from typing import NamedTuple

from companion.figures.kit.digits import Number
from companion.figures.kit.plot import MARKS, Plot, mark

LINES = ("circle", "square", "triangle", "diamond")
"""The mark at the ends of each line; its colour and dashes are in the style."""

Point = tuple[Number, Number]


class Axis(NamedTuple):
    """What stands upwards: the lowest value, the highest, and their names."""

    low: Number
    high: Number
    ticks: dict[Number, str]


def sample(number: int) -> str:
    """A short piece of a line, for a legend."""
    mark = MARKS[LINES[number]]
    return (
        f'<svg class="sample line{number}" viewBox="0 0 36 12" '
        'aria-hidden="true">'
        f'<path class="line" d="M1 6H35"/>'
        f'<path class="mark" transform="translate(18,6)" d="{mark}"/></svg>'
    )


class Drawn(NamedTuple):
    """A frame and the lines in it, as SVG."""

    frame: str
    lines: list[str]


def panel(lines: list[list[Point]], depth: int, axis: Axis) -> Drawn:
    """Draw a plot over the layers 0 … depth."""
    plot = Plot(0, depth, axis.low, axis.high)
    middle = [depth // 2] if depth % 2 == 0 and depth > 1 else []
    columns = {at: str(at) for at in (0, *middle, depth)}
    return Drawn(
        plot.grid(axis.ticks, columns, "layer"),
        [_line(number, points, plot) for number, points in enumerate(lines)],
    )


def assembled(drawn: Drawn, chosen: int | None = None) -> str:
    """Put a plot together, the chosen line last, above the others."""
    lines = dict(enumerate(drawn.lines))
    if chosen is not None:
        lines[chosen] = lines.pop(chosen).replace(
            f'class="line{chosen}"', f'class="line{chosen} chosen"', 1
        )
    return drawn.frame + "".join(lines.values())


def _line(number: int, points: list[Point], plot: Plot) -> str:
    path, left = _path(points, plot)
    marks = [
        mark("mark", plot.x(at), plot.y(value), MARKS[LINES[number]])
        for at, value in sorted({points[0], points[-1]})
        if value >= plot.y0
    ]
    if left:
        marks.append(mark("mark", plot.x(left), plot.bottom, "M-5 -9H5L0 -1Z"))
    return (
        f'<g class="line{number}"><path class="line" d="{path}"/>'
        f"{''.join(marks)}</g>"
    )


def _path(points: list[Point], plot: Plot) -> tuple[str, Number | None]:
    """The line as far as it is in the plot, and where it leaves it below."""
    path, pen, left = "", None, None
    for a, b in pairwise(points):
        if a[1] < plot.y0 and b[1] < plot.y0:
            continue
        start, end = _cut(a, b, plot.y0), _cut(b, a, plot.y0)
        if pen != start:
            path += f"M{plot.at(*start)}"
        path += f"L{plot.at(*end)}"
        pen = end
        for whole, piece in ((a, start), (b, end)):
            left = piece[0] if piece != whole else left
    return path, left


def _cut(point: Point, other: Point, low: Number) -> Point:
    """``point``, or where the line to ``other`` passes ``low`` above it."""
    if point[1] >= low:
        return point
    share = (low - point[1]) / (other[1] - point[1])
    return point[0] + share * (other[0] - point[0]), low
