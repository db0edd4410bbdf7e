"""The three plots of ``doctor``."""

from math import ceil, floor, inf, isfinite, log10
from typing import NamedTuple

from companion.figures.gallery.depth_curves.view import MARKS
from companion.figures.kit.digits import Number, fixed, short

LEFT, RIGHT, TOP, BOTTOM = 62, 306, 14, 140
VIEW = "0 0 320 176"
DECADES = 8
CALM = 1.5
"""A loss is drawn up to this many times its first one: the rest is cut off."""
KINDS = ("train", "valid")
SIGNS = {
    "▴": (TOP - 2, "M-5 0H5L0 -8Z"),
    "▾": (BOTTOM + 1, "M-5 -8H5L0 0Z"),
    "✕": (TOP + 8, "M-5 -5L5 5M5 -5L-5 5"),
}
"""Where a mark stands, and its shape."""
APART = 14

Line = list[tuple[Number, float]]
"""Steps and numbers, which may be NaN or infinite."""


class Frame(NamedTuple):
    """Where a number stands: from ``low`` to ``high``, over so many steps."""

    low: float
    high: float
    steps: int

    def x(self, step: Number) -> float:
        """Pixels from the left; the first step is 1."""
        share = (step - 1) / max(self.steps - 1, 1)
        return LEFT + (RIGHT - LEFT) * share

    def y(self, value: float) -> float:
        """Pixels from above, at the edge for what lies outside."""
        value = min(max(value, self.low), self.high)
        share = (value - self.low) / (self.high - self.low)
        return BOTTOM - (BOTTOM - TOP) * share


def plot_of(
    lines: list[Line], steps: int, *, powers: bool = False, cut: bool = False
) -> dict:
    """A plot with one line or two; ``powers`` puts it in powers of ten.

    ``cut`` leaves out what is far above the first numbers.
    """
    if powers:
        lines = [[(step, _log(n)) for step, n in line] for line in lines]
    numbers = [n for line in lines for _, n in line if isfinite(n)]
    starts = [line[0][1] for line in lines if isfinite(line[0][1])]
    most = CALM * max(starts, default=inf) if cut else inf
    low, high, ticks = _powers(numbers) if powers else _plain(numbers, most)
    frame = Frame(low, high, steps)
    drawn = (
        f'<g class="{kind}">{_line(line, frame, kind)}</g>'
        for kind, line in zip(KINDS, lines, strict=False)
    )
    return {"view": VIEW, "svg": _frame(frame, ticks) + "".join(drawn)}


def _log(number: float) -> float:
    """A power of ten; 0 lies below all of them."""
    return -400.0 if number == 0 else log10(number) if number > 0 else number


def _plain(
    numbers: list[float], most: float
) -> tuple[float, float, dict[float, str]]:
    """From 0 to the highest number, or to ``most``."""
    top = min(max(numbers, default=1.0), most)
    high = top * 1.08 if top > 0 else 1.0
    step = _nice(high / 3)
    values = [i * step for i in range(int(high / step) + 1)]
    ticks = {value: _tick(value, step) for value in values}
    return 0.0, high, ticks


def _tick(value: float, step: float) -> str:
    """As many places as the step between ticks has, if they are few."""
    places = max(0, -floor(log10(step) + 1e-9))
    if value == 0 or places > 3:
        return short(value)
    return fixed(value, places)


def _nice(size: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(size))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= size * 0.999)


def _powers(logs: list[float]) -> tuple[float, float, dict[float, str]]:
    inside = [log for log in logs if log > -400] or [0.0]
    high = ceil(max(inside) + 1e-9)
    low = max(floor(min(inside)), high - DECADES)
    step = 1 if high - low < 5 else 2
    ticks = {float(p): _power(p) for p in range(high, low - 1, -step)}
    return float(low), float(high), ticks


def _power(exponent: int) -> str:
    if exponent in (0, 1):
        return str(10**exponent)
    name = fixed(exponent, 0)
    return f'10<tspan class="power" dy="-5">{name}</tspan>'


def _frame(frame: Frame, ticks: dict[float, str]) -> str:
    rows = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{frame.y(at):.1f}" '
        f'y2="{frame.y(at):.1f}"/><text class="tick" x="{LEFT - 7}" '
        f'y="{frame.y(at) + 4:.1f}">{name}</text>'
        for at, name in ticks.items()
    )
    middle = (LEFT + RIGHT) // 2
    return (
        f'{rows}<text x="{LEFT}" y="{BOTTOM + 18}">1</text>'
        f'<text class="name" x="{middle}" y="{BOTTOM + 18}">step</text>'
        f'<text x="{RIGHT}" y="{BOTTOM + 18}">{frame.steps:,}</text>'
    )


def _line(line: Line, frame: Frame, kind: str) -> str:
    """The line as far as it is in the picture, and marks where it leaves."""
    path, marks, pen = "", [], False
    for step, number in line:
        if isfinite(number):
            at = f"{frame.x(step):.1f} {frame.y(number):.1f}"
            path += f"{'L' if pen else 'M'}{at}"
        pen = isfinite(number)
    if kind == "valid":
        marks += [
            _mark("small", frame.x(step), frame.y(n), MARKS["square"])
            for step, n in line
            if isfinite(n)
        ]
    marks += _accidents(line, frame)
    return f'<path class="line" d="{path}"/>{"".join(marks)}'


def _accidents(line: Line, frame: Frame) -> list[str]:
    """A mark where the line leaves the picture, and not two in one place."""
    marks, last, before = [], {}, ""
    for step, number in line:
        sign, x = _sign(number, frame), frame.x(step)
        if sign and sign != before and x - last.get(sign, -APART) >= APART:
            marks.append(_mark("left", x, *SIGNS[sign]))
            last[sign] = x
        before = sign
    return marks


def _sign(number: float, frame: Frame) -> str:
    if number != number:
        return "✕"
    if number > frame.high:
        return "▴"
    return "▾" if number < frame.low else ""


def _mark(kind: str, x: Number, y: Number, shape: str) -> str:
    return (
        f'<path class="{kind}" transform="translate({x:.1f},{y:.1f})" '
        f'd="{shape}"/>'
    )
