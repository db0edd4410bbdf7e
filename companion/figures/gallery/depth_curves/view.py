"""The plots of ``depth``: frames, lines and the marks at their ends."""

from itertools import pairwise
from typing import NamedTuple

from companion.figures.kit.digits import Number

LEFT, RIGHT, TOP, BOTTOM = 44, 326, 12, 176
VIEW = "0 0 340 212"
LINES = ("circle", "square", "triangle", "diamond")
"""The mark at the ends of each line; its colour and dashes are in the style."""
MARKS = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "square": "M-3.5 -3.5H3.5V3.5H-3.5Z",
    "triangle": "M0 -4.5L4.5 3.5H-4.5Z",
    "diamond": "M0 -5L5 0L0 5L-5 0Z",
}

Point = tuple[Number, Number]


class Axis(NamedTuple):
    """What stands upwards: the lowest value, the highest, and their names."""

    low: Number
    high: Number
    ticks: dict[Number, str]

    def y(self, value: Number) -> float:
        """Pixels from above."""
        share = (value - self.low) / (self.high - self.low)
        return BOTTOM - share * (BOTTOM - TOP)


def sample(number: int) -> str:
    """A short piece of a line, for a legend."""
    mark = MARKS[LINES[number]]
    return (
        f'<svg class="sample line{number}" viewBox="0 0 36 12" '
        'aria-hidden="true">'
        f'<path class="line" d="M1 6H35"/>'
        f'<path class="mark" transform="translate(18,6)" d="{mark}"/></svg>'
    )


class Plot(NamedTuple):
    """A frame and the lines in it, as SVG."""

    frame: str
    lines: list[str]


def panel(lines: list[list[Point]], depth: int, axis: Axis) -> Plot:
    """Draw a plot over the layers 0 … depth."""
    drawn = [
        _line(number, points, depth, axis)
        for number, points in enumerate(lines)
    ]
    return Plot(_frame(depth, axis), drawn)


def assembled(plot: Plot, chosen: int | None = None) -> str:
    """Put a plot together, the chosen line last, above the others."""
    lines = dict(enumerate(plot.lines))
    if chosen is not None:
        front = lines.pop(chosen)
        lines[chosen] = front.replace(
            f'class="line{chosen}"', f'class="line{chosen} chosen"', 1
        )
    return plot.frame + "".join(lines.values())


def _frame(depth: int, axis: Axis) -> str:
    rows = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{axis.y(at):.1f}" '
        f'y2="{axis.y(at):.1f}"/><text class="tick" x="{LEFT - 8}" '
        f'y="{axis.y(at) + 4:.1f}">{name}</text>'
        for at, name in axis.ticks.items()
    )
    middle = [depth // 2] if depth % 2 == 0 and depth > 1 else []
    columns = "".join(
        f'<text x="{_x(at, depth):.1f}" y="{BOTTOM + 18}">{at}</text>'
        for at in (0, *middle, depth)
    )
    middle_x = (LEFT + RIGHT) // 2
    return (
        f'{rows}{columns}<text class="name" x="{middle_x}" '
        f'y="{BOTTOM + 34}">layer</text>'
    )


def _x(layer: Number, depth: int) -> float:
    return LEFT + (RIGHT - LEFT) * layer / depth


def _line(number: int, points: list[Point], depth: int, axis: Axis) -> str:
    path, left = _path(points, depth, axis)
    ends = {points[0], points[-1]}
    marks = [
        _mark(MARKS[LINES[number]], _x(at, depth), axis.y(value))
        for at, value in sorted(ends)
        if value >= axis.low
    ]
    if left:
        marks.append(_mark("M-5 -9H5L0 -1Z", _x(left, depth), BOTTOM))
    return (
        f'<g class="line{number}"><path class="line" d="{path}"/>'
        f"{''.join(marks)}</g>"
    )


def _mark(shape: str, x: Number, y: Number) -> str:
    return (
        f'<path class="mark" transform="translate({x:.1f},{y:.1f})" '
        f'd="{shape}"/>'
    )


def _path(
    points: list[Point], depth: int, axis: Axis
) -> tuple[str, Number | None]:
    """The line as far as it is in the plot, and where it leaves it below."""
    path, pen, left = "", None, None
    for a, b in pairwise(points):
        if a[1] < axis.low and b[1] < axis.low:
            continue
        start, end = _cut(a, b, axis.low), _cut(b, a, axis.low)
        if pen != start:
            path += f"M{_at(start, depth, axis)}"
        path += f"L{_at(end, depth, axis)}"
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


def _at(point: Point, depth: int, axis: Axis) -> str:
    return f"{_x(point[0], depth):.1f} {axis.y(point[1]):.1f}"
