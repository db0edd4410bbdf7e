"""The picture of the position clocks, before any script moves it.

Across, everything is in per cent, so that the drawing fits any width while its
letters keep their size. ``clocks.js`` moves what has a class of its own.
"""

from collections import defaultdict
from math import pi

from torch import Tensor

from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.tables import table as numbers

LEFT, RIGHT = 9, 98  # Per cent of the width, where position 0 and the last are.
TOP, HEIGHT = 26, 130
CURVE_TOP, CURVE = 22, 110
LEVELS = 12


def body(
    table: Tensor, rates: list[float], places: tuple[int, int], sentence: str
) -> str:
    """Everything the figure shows without scripts.

    Args:
        table: The encodings, (position, dimension).
        rates: Radians a step, for each pair of dimensions.
        places: The two positions.
        sentence: The same in words.
    """
    a, b = places
    parts = (table[a] * table[b]).reshape(-1, 2).sum(1).tolist()
    clocks = "".join(
        _clock(i, rate, table[list(places), 2 * i : 2 * i + 2].tolist(), part)
        for i, (rate, part) in enumerate(zip(rates, parts, strict=True))
    )
    return f"""<div class="controls"></div>
<p class="legend"><span><i class="a"></i>position a</span>
<span><i class="b"></i>position b</span>
<span><i class="plus"></i>above 0</span>
<span><i class="minus"></i>below 0</span></p>
{_map(table, places)}
<p class="says" aria-live="polite">{sentence}</p>
<p class="heading">A clock for each pair of dimensions, the steps that a turn
takes, the cosine of the angle</p>
<div class="clocks">{clocks}</div>
{_curve(table, b - a)}
<details><summary>The numbers of a and b</summary>
{_table(table, places)}</details>
<details><summary>Every number of the map</summary>
{_all(table)}</details>"""


def across(position: int, length: int) -> str:
    """Where the middle of a position stands, in per cent of the width."""
    share = (position + 0.5) / length
    return f"{LEFT + (RIGHT - LEFT) * share:.2f}%"


def _map(table: Tensor, places: tuple[int, int]) -> str:
    """The encodings as tints, a column a position, with two markers."""
    length, d_model = table.shape
    marks = "".join(
        f'<svg class="spot {name}" x="{across(place, length)}">'
        f'<line y1="{TOP - 6}" y2="{TOP + HEIGHT}"/>'
        f'<text y="{TOP - 10}">{name}</text></svg>'
        for name, place in zip("ab", places, strict=True)
    )
    return (
        f'<svg class="map" height="{TOP + HEIGHT + 36}" role="img" aria-label='
        '"The encoding of each position; its numbers stand in the tables '
        f'below."><svg x="{LEFT}%" width="{RIGHT - LEFT}%" '
        f'y="{TOP}" height="{HEIGHT}" viewBox="0 0 {length} {d_model}" '
        f'preserveAspectRatio="none">{_tints(table)}</svg>'
        f"{_names(length, d_model)}{marks}</svg>"
    )


def _names(length: int, d_model: int) -> str:
    """Some numbers of positions and dimensions, and what they are."""
    steps = range(0, length, 8 * max(1, length // 64))
    positions = "".join(
        f'<text class="tick" x="{across(p, length)}" y="{TOP + HEIGHT + 16}">'
        f"{p}</text>"
        for p in steps
    )
    dimensions = "".join(
        f'<text class="tick side" x="{LEFT - 1}%" '
        f'y="{TOP + HEIGHT * (i + 0.5) / d_model + 4:.1f}">{i}</text>'
        for i in sorted({0, d_model // 2, d_model - 1})
    )
    return (
        f'{positions}{dimensions}<text class="tick" x="{(LEFT + RIGHT) / 2}%" '
        f'y="{TOP + HEIGHT + 32}">position (rows: dimensions, from fast hands '
        "to slow)</text>"
    )


def _tints(table: Tensor) -> str:
    """A path for each tint, which is far less than a rectangle a number."""
    paths = defaultdict(list)
    for position, row in enumerate(table.tolist()):
        for dimension, value in enumerate(row):
            level = round(LEVELS * abs(value))
            if level:
                sign = "minus" if value < 0 else "plus"
                paths[sign, level].append(f"M{position} {dimension}h1v1h-1z")
    return "".join(
        f'<path class="{sign}" fill-opacity="{0.9 * level / LEVELS:.2f}" '
        f'd="{"".join(cells)}"/>'
        for (sign, level), cells in sorted(paths.items())
    )


def hand(name: str, sine: float, cosine: float) -> str:
    """The hand of a clock: upwards at angle 0, and turning to the right."""
    x, y = f"{28 * sine:.2f}", f"{-28 * cosine:.2f}"
    return (
        f'<g class="hand {name}"><line x2="{x}" y2="{y}"/>'
        f'<circle cx="{x}" cy="{y}" r="{4 if name == "a" else 6.5}"/></g>'
    )


def _clock(i: int, rate: float, hands: list, part: float) -> str:
    """Pair i: its face, two hands, how long a turn takes, the cosine."""
    turn = 2 * pi / rate
    second = hand("b", *hands[1])  # Below the other hand, and larger.
    return (
        f'<div class="clock"><svg viewBox="-40 -40 80 80" role="img" '
        f'aria-label="Clock of dimensions {2 * i} and {2 * i + 1}">'
        '<circle class="face" r="37"/><path class="noon" d="M0 -37v5"/>'
        f"{second}{hand('a', *hands[0])}</svg>"
        f"<span>dims {2 * i}, {2 * i + 1}</span>"
        f"<span>turn: {fixed(turn, int(turn < 100))}</span>"
        f'<b class="part">{fixed(part)}</b></div>'
    )


def geometry(table: Tensor) -> dict[str, Number]:
    """What ``clocks.js`` needs to put its marks where the drawing has them."""
    lowest = min(0.0, (table @ table[0]).min().item())
    slope = CURVE / (table.shape[1] / 2 - lowest)  # Pixels a unit, downwards.
    return {"left": LEFT, "right": RIGHT, "top": CURVE_TOP, "slope": slope}


def _curve(table: Tensor, offset: int) -> str:
    """The dot product at every offset, with the present one marked."""
    length, d_model = table.shape
    slope, dots = geometry(table)["slope"], (table @ table[0]).tolist()
    below = [slope * (d_model / 2 - dot) for dot in dots]
    points = " ".join(
        f"{x} {y:.2f}" for x, y in enumerate(below[:0:-1] + below)
    )
    here = CURVE_TOP + below[abs(offset)]
    return (
        '<p class="heading">Dot product against the offset, b − a</p>'
        f'<svg class="curve" height="{CURVE_TOP + CURVE + 26}" role="img" '
        'aria-label="The dot product is largest at offset 0, and the same for '
        f'both signs of the offset.">{_axes(length, d_model, slope)}'
        f'<svg x="{LEFT}%" width="{RIGHT - LEFT}%" y="{CURVE_TOP}" '
        f'height="{CURVE}" viewBox="-0.5 0 {2 * length - 1} {CURVE}" '
        f'preserveAspectRatio="none"><polyline points="{points}"/></svg>'
        f'<svg class="here" x="{_aside(offset, length)}">'
        f'<line y1="{CURVE_TOP}" y2="{CURVE_TOP + CURVE}"/>'
        f'<circle cy="{here:.1f}" r="5"/>'
        f'<text class="at" y="{CURVE_TOP - 8}" '
        f'style="text-anchor: {anchor(offset, length)}">'
        f"offset {fixed(offset, 0)}</text></svg></svg>"
    )


def _axes(length: int, d_model: int, slope: float) -> str:
    """The line of 0, the largest value, three offsets."""
    levels = "".join(
        f'<line class="zero" x1="{LEFT}%" x2="{RIGHT}%" y1="{y:.1f}" '
        f'y2="{y:.1f}"/><text class="tick side" x="{LEFT - 1}%" '
        f'y="{y + 4:.1f}">{value}</text>'
        for value, y in (
            (0, CURVE_TOP + slope * d_model / 2),
            (d_model // 2, CURVE_TOP),
        )
    )
    offsets = "".join(
        f'<text class="tick" x="{_aside(offset, length)}" '
        f'y="{CURVE_TOP + CURVE + 20}">{fixed(offset, 0)}</text>'
        for offset in (1 - length, 0, length - 1)
    )
    return levels + offsets


def _aside(offset: int, length: int) -> str:
    """Where an offset stands, in per cent of the width."""
    return across(offset + length - 1, 2 * length - 1)


def anchor(offset: int, length: int) -> str:
    """Which end of its name stands at an offset; ``clocks.js`` asks alike."""
    if 2 * abs(offset) < length:
        return "middle"
    return "end" if offset > 0 else "start"


def _all(table: Tensor) -> str:
    """What the tints of the map stand for: a row each position."""
    length, d_model = table.shape
    drawn = numbers(
        "all",
        "Row: position. Column: dimension.",
        [str(i) for i in range(d_model)],
        [str(p) for p in range(length)],
        [
            "".join(f"<td>{fixed(v)}</td>" for v in row)
            for row in table.tolist()
        ],
    )
    # Wider than a phone: who has a keyboard only must be able to scroll it.
    named = 'role="region" tabindex="0" aria-label="Every number of the map"'
    return drawn.replace('class="scroll"', f'class="scroll" {named}', 1)


def _table(table: Tensor, places: tuple[int, int]) -> str:
    """The two vectors, dimension by dimension."""
    rows = "".join(
        f"<tr><th scope=row>{i}</th><td>{fixed(x, 3)}</td>"
        f"<td>{fixed(y, 3)}</td><td>{fixed(x * y, 3)}</td></tr>"
        for i, (x, y) in enumerate(table[list(places)].T.tolist())
    )
    heads = "".join(
        f"<th scope=col>{name}</th>" for name in ("dimension", "a", "b", "a·b")
    )
    return (
        '<div class="scroll"><table class="cells pair"><thead><tr>'
        f"{heads}</tr>"
        f"</thead><tbody>{rows}</tbody></table></div>"
    )
