"""A query and a key turned by their positions: RoPE, with two dials."""

import torch
from torch import Tensor

from companion.figures.gallery.rotary_pair.view import (
    BOX,
    SPAN,
    dials,
    legend,
    places_table,
    plot,
    products_table,
)
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.positions import frequencies, rotate, sinusoids

QUERY = [2.0, 1.0, 1.0, 2.0]
KEY = [1.0, 2.0, 2.0, -1.0]
START = 2, 4
STEPS = 0, 1, 10, 100, 1000
"""The table has both positions so many steps on."""


def rotary_pair() -> Figure:
    """Sliders for where a query and a key stand; their score is RoPE's.

    Two pairs of numbers are two dials. ``companion.positions.rotate`` turns
    query and key (equation 34 of Su et al. 2021), and the score is the sum of
    the dot products of the pairs. Beside it stands the score with the
    sinusoidal code added instead (Vaswani et al. 2017, section 3.5). Neither
    is divided by √d.
    """
    text = sentence(*START)
    html = inline(
        "rotary",
        body=_body(*START, text),
        label="A query and a key, turned by their positions",
        caption=_caption(),
        data={
            "query": QUERY,
            "key": KEY,
            "rates": frequencies(len(QUERY)).tolist(),
            "start": START,
            "steps": STEPS,
            "span": SPAN,
            "box": BOX,
        },
        **figure_parts(__file__),
    )
    return Figure(html, f"Rotary pair. {text}")


def turned(vector: list[float], position: Number) -> Tensor:
    """The pairs of a vector after the turn of a position: (pair, 2)."""
    rows = torch.tensor([vector], dtype=torch.float64)
    return rotate(rows, torch.tensor([position])).reshape(-1, 2)


def products(p: Number, j: Number) -> list[float]:
    """Query at p times key at j, pair by pair; their sum is the score."""
    return (turned(QUERY, p) * turned(KEY, j)).sum(1).tolist()


def added(p: int, j: int) -> float:
    """The score with a sinusoidal code added to query and key."""
    vectors = torch.tensor([QUERY, KEY], dtype=torch.float64)
    codes = sinusoids(torch.tensor([p, j]), len(QUERY), dtype=torch.float64)
    return (vectors + codes).prod(0).sum().item()


def sentence(p: int, j: int) -> str:
    """The score here and one step on, as ``rotary.js`` writes it."""
    parts, moved = products(p, j), sum(products(p + 1, j + 1))
    one, two = map(fixed, parts)
    return (
        f"Query at {p}, key at {j}, offset {fixed(j - p, 0)}: the pairs give "
        f"{one} and {two}, so the score is {fixed(sum(parts))}. One step on, "
        f"at {p + 1} and {j + 1}, it is {fixed(moved)}. With the sinusoidal "
        f"code added instead it is {fixed(added(p, j))} here and "
        f"{fixed(added(p + 1, j + 1))} there."
    )


def _body(p: int, j: int, text: str) -> str:
    """Everything the figure shows without scripts."""
    rates = frequencies(len(QUERY)).tolist()
    before = turned(QUERY, 0).tolist(), turned(KEY, 0).tolist()
    after = turned(QUERY, p).tolist(), turned(KEY, j).tolist()
    curve = [(at / 4, sum(products(0, at / 4))) for at in _quarters()]
    places = [(p + step, j + step) for step in STEPS]
    scores = [(sum(products(*at)), added(*at)) for at in places]
    return (
        f'<div class="controls"></div>{legend()}<div class="panels">'
        f"{dials(before, after, rates)}{plot(curve, j - p, scores[0][0])}"
        f'</div><p class="says" aria-live="polite">{text}</p>'
        f'<div class="panels">{products_table((p, j), rates, after)}'
        f"{places_table(places, scores)}</div>"
    )


def _quarters() -> range:
    """Every offset the sliders can make, in quarters of a step."""
    return range(-4 * SPAN, 4 * SPAN + 1)


def _caption() -> str:
    """What to see, in numbers computed here and now."""
    fast, slow = (
        fixed(rate, 1)
        for rate in torch.rad2deg(frequencies(len(QUERY))).tolist()
    )
    offset = START[1] - START[0]
    ahead, behind = (sum(products(0, at)) for at in (offset, -offset))
    return (
        f"A step turns pair 0 by {fast}° and pair 1 by {slow}°, "
        "counter-clockwise. The third slider moves both positions: each shaded "
        "angle turns and keeps its size, so the score stays. Move one position "
        "alone: the score follows the curve, fast waves from pair 0 and a slow "
        f"slope from pair 1. Ahead is not behind: the score is {fixed(ahead)} "
        f"at offset {offset} and {fixed(behind)} at {fixed(-offset, 0)}."
    )
