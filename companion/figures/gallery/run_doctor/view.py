"""Where ``warmup_curves`` draws."""

from typing import NamedTuple

from companion.figures.kit.digits import Number

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
