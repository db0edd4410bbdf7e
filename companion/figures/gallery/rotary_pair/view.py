"""The dials, the curve and the tables of ``rotary``, before anything moves.

A dial has x to the right and y upwards, and turns counter-clockwise.
``rotary.js`` moves what has a class of its own.
"""

from math import atan2, degrees

from companion.figures.gallery.depth_curves.view import (
    BOTTOM,
    LEFT,
    MARKS,
    RIGHT,
    TOP,
    VIEW,
    Axis,
)
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.tables import table, tinted

UNIT, WEDGE, SPAN, LARGEST = 15, 18, 30, 10
"""Pixels a unit, the radius of the shaded angle, the largest position, and the
largest score there is: the product of the two lengths."""
AXIS = Axis(-7, 7, {value: fixed(value, 0) for value in (-5, 0, 5)})
BOX = {
    "unit": UNIT,
    "wedge": WEDGE,
    "left": LEFT,
    "right": RIGHT,
    "top": TOP,
    "bottom": BOTTOM,
    "low": AXIS.low,
    "high": AXIS.high,
    "largest": LARGEST,
}

Pair = list[float]


def legend() -> str:
    """What is whose hand."""
    return (
        '<p class="legend"><span><i class="q"></i>query q</span>'
        '<span><i class="k"></i>key k</span>'
        '<span><i class="pale"></i>pale: before the turn</span></p>'
    )


def dials(
    before: tuple[list[Pair], list[Pair]],
    after: tuple[list[Pair], list[Pair]],
    rates: list[float],
) -> str:
    """A dial for each pair; ``before`` and ``after`` are query and key."""
    pairs = zip(*before, *after, rates, strict=True)
    drawn = "".join(_dial(i, *parts) for i, parts in enumerate(pairs))
    return f'<div class="dials">{drawn}</div>'


def _dial(i: int, q: Pair, k: Pair, q_to: Pair, k_to: Pair, rate: float) -> str:
    hands = (
        f'<path class="wedge" d="{_wedge(q_to, k_to)}"/>'
        f'<g class="pale">{_hand("k", k)}{_hand("q", q)}</g>'
        f"{_hand('k', k_to)}{_hand('q', q_to)}"
    )
    lines = "".join(
        f"<p>{name} {_point(start, 0)} → "
        f'<b class="to {name}">{_point(end)}</b></p>'
        for name, start, end in (("q", q, q_to), ("k", k, k_to))
    )
    return (
        f'<div class="dial"><p class="title">Pair {i}: <i>θ</i> = {rate:g}</p>'
        f"<p>dims {2 * i} and {2 * i + 1}</p>"
        f'<svg viewBox="-44 -44 88 88" role="img" aria-label="Dial of pair {i};'
        f' the numbers stand below."><circle class="face" r="42"/>'
        f'<path class="cross" d="M-42 0H42M0 -42V42"/>{hands}</svg>{lines}'
        "</div>"
    )


def _hand(name: str, pair: Pair) -> str:
    x, y = f"{UNIT * pair[0]:.2f}", f"{-UNIT * pair[1]:.2f}"
    return (
        f'<g class="hand {name}"><line x2="{x}" y2="{y}"/>'
        f'<circle cx="{x}" cy="{y}" r="{3 if name == "q" else 5}"/></g>'
    )


def _point(pair: Pair, places: int = 2) -> str:
    return f"({fixed(pair[0], places)}, {fixed(pair[1], places)})"


def between(q: Pair, k: Pair) -> float:
    """Radians from q to k, counter-clockwise, at most half a turn."""
    return atan2(q[0] * k[1] - q[1] * k[0], q[0] * k[0] + q[1] * k[1])


def _wedge(q: Pair, k: Pair) -> str:
    """The smaller angle between two hands, as a path."""
    start, end = (
        f"{WEDGE * x / size:.2f} {-WEDGE * y / size:.2f}"
        for x, y in (q, k)
        for size in [(x * x + y * y) ** 0.5]
    )
    sweep = int(between(q, k) < 0)
    return f"M0 0L{start}A{WEDGE} {WEDGE} 0 0 {sweep} {end}Z"


def products_table(
    places: tuple[int, int],
    rates: list[float],
    after: tuple[list[Pair], list[Pair]],
) -> str:
    """How far each pair is turned, and what it adds to the score."""
    rows, total = [], 0.0
    for q, k, rate in zip(*after, rates, strict=True):
        turns = [*(degrees(place * rate) for place in places)]
        product = q[0] * k[0] + q[1] * k[1]
        total += product
        rows.append(
            "".join(
                f"<td>{fixed(angle, 1)}°</td>"
                for angle in (*turns, degrees(between(q, k)))
            )
            + tinted([product], LARGEST)
        )
    rows.append(f"<td colspan=3></td>{tinted([total], LARGEST)}")
    heads = "q turned", "k turned", "q to k", "q · k"
    names = *(f"pair {i}" for i in range(len(rates))), "score"
    return table("products", "The score is a sum", heads, names, rows)


def places_table(
    places: list[tuple[int, int]], scores: list[tuple[float, float]]
) -> str:
    """The two scores of each place: turned, and with the code added."""
    names = [f"{p} and {j}" for p, j in places]
    return table(
        "places",
        "The same offset elsewhere",
        ["turned (RoPE)", "code added"],
        names,
        [tinted(pair, LARGEST, 3) for pair in scores],
    )


def plot(curve: list[tuple[Number, Number]], offset: int, score: Number) -> str:
    """The score at every offset, with the present one marked."""
    path = "L".join(
        f"{fixed(_x(at), 1)} {fixed(AXIS.y(value), 1)}" for at, value in curve
    )
    x, y = fixed(_x(offset), 1), fixed(AXIS.y(score), 1)
    return (
        '<div class="plot"><p class="title">Score at each offset, turned</p>'
        f'<svg viewBox="{VIEW}" role="img" aria-label="The score against the '
        f'offset; the present one stands in the table below.">{_frame()}'
        f'<path class="curve" d="M{path}"/>'
        f'<path class="drop" d="M{x} {TOP}V{BOTTOM}"/><path class="mark" '
        f'transform="translate({x},{y})" d="{MARKS["circle"]}"/></svg></div>'
    )


def _x(offset: Number) -> float:
    return LEFT + (RIGHT - LEFT) * (offset + SPAN) / (2 * SPAN)


def _frame() -> str:
    rows = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" '
        f'y1="{fixed(AXIS.y(value), 1)}" y2="{fixed(AXIS.y(value), 1)}"/>'
        f'<text class="tick" x="{LEFT - 8}" y="{fixed(AXIS.y(value) + 4, 1)}">'
        f"{name}</text>"
        for value, name in AXIS.ticks.items()
    )
    columns = "".join(
        f'<text x="{fixed(_x(at), 1)}" y="{BOTTOM + 18}">{fixed(at, 0)}</text>'
        for at in range(-SPAN, SPAN + 1, SPAN // 2)
    )
    middle = (LEFT + RIGHT) // 2
    return (
        f'{rows}{columns}<text class="name" x="{middle}" y="{BOTTOM + 34}">'
        "offset j − p</text>"
    )
