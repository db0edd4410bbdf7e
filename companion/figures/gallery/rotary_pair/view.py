"""The dials, the curve and the tables of ``rotary``, before anything moves.

A dial has x to the right and y upwards, and turns counter-clockwise.
``rotary.js`` moves what has a class of its own.
"""

from math import atan2, degrees

from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.plot import MARKS, VIEW, Plot
from companion.figures.kit.tables import table, tinted

UNIT, WEDGE, SPAN, LARGEST = 15, 18, 30, 10
"""Pixels a unit, the radius of the shaded angle, the largest position, and the
largest score there is: the product of the two lengths."""
PLOT = Plot(-SPAN, SPAN, -7, 7)
BOX = {
    "unit": UNIT,
    "wedge": WEDGE,
    "left": PLOT.left,
    "right": PLOT.right,
    "top": PLOT.top,
    "bottom": PLOT.bottom,
    "low": PLOT.y0,
    "high": PLOT.y1,
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
    x, y = fixed(PLOT.x(offset), 1), fixed(PLOT.y(score), 1)
    grid = PLOT.grid(
        {value: fixed(value, 0) for value in (-5, 0, 5)},
        {at: fixed(at, 0) for at in range(-SPAN, SPAN + 1, SPAN // 2)},
        "offset j − p",
    )
    return (
        '<div class="plot"><p class="title">Score at each offset, turned</p>'
        f'<svg viewBox="{VIEW}" role="img" aria-label="The score against the '
        f'offset; the present one stands in the table below.">{grid}'
        f'<path class="curve" d="{PLOT.line(curve)}"/>'
        f'<path class="drop" d="M{x} {PLOT.top}V{PLOT.bottom}"/>'
        f'<path class="mark" transform="translate({x},{y})" '
        f'd="{MARKS["circle"]}"/></svg></div>'
    )
