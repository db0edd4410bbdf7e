"""Positions as digits that flip, as hands that turn, and as numbers."""

import math
from collections.abc import Sequence
from html import escape

from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

HANDS = 3
TOP, ROW = 52, 35
BITS, DIALS, BARS = 46, 126, 240
"""Middle of the first square, of the first dial and of the first bar."""
PITCH, WIDE = 36, 17


def clock_rows(turns: Sequence[Number] = (90, 45, 22.5)) -> Figure:
    """Draw positions 0 to 7 in binary, on three dials, and as six numbers.

    The fast digit flips at each step, the slow one after four. The fast hand
    turns by the first angle at each step. A hand is two numbers, how far its
    tip is to the right (the sine) and how far up (the cosine).

    Args:
        turns: By how many degrees each of three hands turns at a step.

    Raises:
        ValueError: there are not three hands.
    """
    if len(turns) != HANDS:
        raise ValueError(f"turns: expected three angles, got {len(turns)}")
    says = " ".join(_row_in_words(p, turns) for p in range(8))
    heads = [
        label(10, TOP - 18, "p", "note"),
        label(BITS + 18, TOP - 34, "binary", "title"),
        label(DIALS + PITCH, TOP - 34, "hands", "title"),
        label(BARS + 2.5 * WIDE, TOP - 34, "six numbers", "title"),
        *(
            label(x, TOP - 18, "fast → slow", "note")
            for x in (BITS + 22, DIALS + PITCH, BARS + 2.5 * WIDE)
        ),
    ]
    parts = [part for p in range(8) for part in _row(p, turns)]
    picture = drawing(
        TOP + 8 * ROW,
        "Eight rows, one for each position. The digits and the hands on the "
        "left change at every step, those on the right slowly.",
        *heads,
        *parts,
    )
    html = inline(
        "rows",
        body=f'{picture}<p class="unseen">{escape(says)}</p>',
        label="Positions 0 to 7: binary digits, clock hands, numbers",
        caption="The last digit of a binary number is written first here. Each "
        "hand is two numbers: how far its tip lies to the right, and how far "
        "up. Bars go up for a positive number, down for a negative one.",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Digits and hands. {says}")


def numbers(p: int, turns: Sequence[Number]) -> list[float]:
    """Give the tip of each hand at position p: right, then up, hand by hand.

    Example:
        >>> [round(n, 2) for n in numbers(1, [90, 45, 22.5])]
        [1.0, 0.0, 0.71, 0.71, 0.38, 0.92]
    """
    angles = [math.radians(p * turn) for turn in turns]
    return [wave(a) for a in angles for wave in (math.sin, math.cos)]


def _row_in_words(p: int, turns: Sequence[Number]) -> str:
    digits = " ".join(str(p >> i & 1) for i in range(HANDS))
    values = ", ".join(fixed(n) for n in numbers(p, turns))
    return f"Position {p}: digits {digits}; numbers {values}."


def _row(p: int, turns: Sequence[Number]) -> list[str]:
    y = TOP + ROW * (p + 0.5) - 4
    parts = [label(10, y + 5, str(p), "place")]
    for i in range(HANDS):
        bit = p >> i & 1
        x = BITS + 18 * i
        parts.append(
            f'<rect class="bit bit{bit}" x="{x - 8}" y="{y - 9:g}" width="17" '
            f'height="18"/>' + label(x + 0.5, y + 5, str(bit), f"bit{bit}")
        )
    tips = numbers(p, turns)
    for i in range(HANDS):
        x, right, up = DIALS + PITCH * i, tips[2 * i], tips[2 * i + 1]
        parts.append(
            f'<circle class="dial" cx="{x}" cy="{y:g}" r="15"/>'
            f'<line class="hand" x1="{x}" y1="{y:g}" '
            f'x2="{x + 14 * right:.1f}" y2="{y - 14 * up:.1f}"/>'
        )
    for i, value in enumerate(tips):
        x, high = BARS + WIDE * i, abs(14 * value)
        from_top = y - high if value > 0 else y
        sign = "minus" if value < 0 else "plus"
        parts.append(
            f'<rect class="bar {sign}" x="{x - 6}" y="{from_top:.1f}" '
            f'width="12" height="{high:.1f}"/>'
        )
    end = BARS + 5.5 * WIDE
    parts.append(
        f'<line class="zero" x1="{BARS - 9}" y1="{y:g}" x2="{end:g}" '
        f'y2="{y:g}"/>'
    )
    return parts
