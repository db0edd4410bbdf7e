"""Drawings with axes: where a number stands, the grid behind, marks."""

from collections.abc import Iterable, Mapping
from math import floor, log10
from typing import NamedTuple

from companion.figures.kit.digits import Number, fixed, short

__all__ = [
    "BOTTOM",
    "LEFT",
    "MARKS",
    "RIGHT",
    "TOP",
    "VIEW",
    "Plot",
    "mark",
    "power",
    "powers",
    "ticks_from_0",
]

LEFT, RIGHT, TOP, BOTTOM = 44, 326, 12, 176
VIEW = "0 0 340 212"
"""Where a plot has its edges, in pixels, and all that is seen of it."""
MARKS = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
    "square": "M-3.5 -3.5H3.5V3.5H-3.5Z",
    "triangle": "M0 -4.5L4.5 3.5H-4.5Z",
    "diamond": "M0 -5L5 0L0 5L-5 0Z",
}


class Plot(NamedTuple):
    """A drawing in which x and y run from a lowest to a highest number.

    Attributes:
        x0: The number at the left edge.
        x1: The number at the right edge.
        y0: The number at the lower edge.
        y1: The number at the upper edge.
        left: Pixels to the left edge; the others likewise.
    """

    x0: Number
    x1: Number
    y0: Number
    y1: Number
    left: Number = LEFT
    right: Number = RIGHT
    top: Number = TOP
    bottom: Number = BOTTOM

    def x(self, value: Number) -> float:
        """Turn a number along x into pixels from the left."""
        share = (value - self.x0) / ((self.x1 - self.x0) or 1)
        return self.left + (self.right - self.left) * share

    def y(self, value: Number) -> float:
        """Turn a number along y into pixels from above."""
        share = (value - self.y0) / (self.y1 - self.y0)
        return self.bottom - (self.bottom - self.top) * share

    def cut(self, value: Number) -> Number:
        """Bring a number along y to the edge if it lies outside."""
        return min(max(value, self.y0), self.y1)

    def at(self, x: Number, y: Number) -> str:
        """Write a point for a path."""
        return f"{fixed(self.x(x), 1)} {fixed(self.y(y), 1)}"

    def line(self, points: Iterable[tuple[Number, Number]]) -> str:
        """Write a path through points."""
        return "M" + "L".join(self.at(x, y) for x, y in points)

    def grid(
        self,
        rows: Mapping[Number, str],
        columns: Mapping[Number, str],
        name: str,
        *,
        below: Number = 34,
    ) -> str:
        """Draw lines with their numbers, the numbers along x, and its name.

        Args:
            rows: Number along y -> how it is written.
            columns: Number along x -> how it is written.
            name: What x is.
            below: How many pixels below the axis it stands.
        """
        lines = "".join(
            f'<line class="grid" x1="{self.left}" x2="{self.right}" '
            f'y1="{self.y(at):.1f}" y2="{self.y(at):.1f}"/>'
            f'<text class="tick" x="{self.left - 8}" '
            f'y="{self.y(at) + 4:.1f}">{written}</text>'
            for at, written in rows.items()
        )
        numbers = "".join(
            f'<text x="{self.x(at):.1f}" y="{self.bottom + 18}">{written}'
            "</text>"
            for at, written in columns.items()
        )
        middle = (self.left + self.right) // 2
        return (
            f'{lines}{numbers}<text class="name" x="{middle}" '
            f'y="{self.bottom + below}">{name}</text>'
        )


def mark(kind: str, x: Number, y: Number, shape: str) -> str:
    """Draw a shape of the class ``kind`` at a place in pixels."""
    return (
        f'<path class="{kind}" transform="translate({x:.1f},{y:.1f})" '
        f'd="{shape}"/>'
    )


def power(exponent: int) -> str:
    """Write a power of ten as SVG text; 1 and 10 are written out."""
    if exponent in (0, 1):
        return str(10**exponent)
    return f'10<tspan class="power" dy="-5">{fixed(exponent, 0)}</tspan>'


def powers(low: int, high: int, most: int = 4) -> dict[int, str]:
    """Write every power of ten, or every other where there are many."""
    step = 1 if high - low <= most else 2
    return {at: power(at) for at in range(high, low - 1, -step)}


def _nice(size: float) -> float:
    """Find the next 1, 2 or 5 times a power of ten."""
    unit = 10.0 ** floor(log10(size))
    return next(n * unit for n in (1, 2, 5, 10) if n * unit >= size * 0.999)


def ticks_from_0(high: float) -> dict[float, str]:
    """Choose about four numbers from 0 up, written with the same places."""
    step = _nice(high / 3)
    places = max(0, -floor(log10(step) + 1e-9))
    values = [i * step for i in range(int(high / step) + 1)]
    return {
        value: short(value) if value == 0 or places > 3
        else fixed(value, places)
        for value in values
    }  # fmt: skip
