"""The two plots of ``warmup``: the loss as a band, and the rate below it."""

from math import ceil, floor, log10
from typing import NamedTuple

from companion.figures.kit.digits import Number
from companion.figures.kit.plot import MARKS, power

LEFT, RIGHT, TOP, BOTTOM = 62, 306, 14, 140
VIEW = "0 0 320 176"


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


class Band(NamedTuple):
    """Losses over steps: the lowest seed, the middle one, the highest."""

    steps: list[float]
    low: list[float]
    middle: list[float]
    high: list[float]


def loss_frame(bands: list[Band], steps: int) -> Frame:
    """From 0 to above the highest loss of all."""
    return Frame(0.0, float(ceil(max(max(b.high) for b in bands))), steps)


def rate_frame(lines: list[list[float]], steps: int) -> Frame:
    """All rates, one a step, in powers of ten."""
    logs = [log10(rate) for rates in lines for rate in rates]
    return Frame(float(floor(min(logs))), float(ceil(max(logs))), steps)


def axes(frame: Frame, *, powers: bool = False) -> str:
    """What lies behind the lines: a number upwards, and the steps."""
    low, high = int(frame.low), int(frame.high)
    every = 2 if high - low > 6 else 1
    rows = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{_y(frame, at)}" '
        f'y2="{_y(frame, at)}"/><text class="tick" x="{LEFT - 8}" '
        f'dy="4" y="{_y(frame, at)}">{power(at) if powers else at}</text>'
        for at in range(low, high + 1, every)
    )
    return (
        f'{rows}<text x="{LEFT}" y="{BOTTOM + 18}">1</text>'
        f'<text class="name" x="{(LEFT + RIGHT) // 2}" y="{BOTTOM + 18}">step'
        f'</text><text x="{RIGHT}" y="{BOTTOM + 18}">{frame.steps}</text>'
    )


def loss_curve(band: Band, frame: Frame) -> dict[str, str]:
    """The middle as a path, and around it the band of all seeds."""
    low, middle, high = (
        [_point(frame, *at) for at in zip(band.steps, losses, strict=True)]
        for losses in (band.low, band.middle, band.high)
    )
    around = f"{_path([*high, *low[::-1]])}Z"
    return {
        "line": _path(middle),
        "front": f'<path class="band" d="{around}"/>',
    }


def rate_curve(rates: list[float], frame: Frame) -> dict[str, str]:
    """The rates, one a step, as a path, and a mark on the highest."""
    points = [
        _point(frame, step, log10(rate)) for step, rate in enumerate(rates, 1)
    ]
    top = points[rates.index(max(rates))].replace(" ", ",")
    return {
        "line": _path(points),
        "front": f'<path class="mark" transform="translate({top})" '
        f'd="{MARKS["circle"]}"/>',
    }


def assembled(frame: str, curves: list[dict[str, str]], chosen: int) -> str:
    """A plot with the chosen curve in front, as ``warmup.js`` has it."""
    others = "".join(
        f'<path class="other" d="{curve["line"]}"/>'
        for i, curve in enumerate(curves)
        if i != chosen
    )
    line, front = curves[chosen].values()
    return f'{frame}{others}<path class="line" d="{line}"/>{front}'


def _path(points: list[str]) -> str:
    return f"M{'L'.join(points)}"


def _point(frame: Frame, step: Number, value: Number) -> str:
    return f"{frame.x(step):.1f} {_y(frame, value)}"


def _y(frame: Frame, value: Number) -> str:
    return f"{frame.y(float(value)):.1f}"
