"""One alignment in a plane: states as arrows, a question, and its context."""

from collections.abc import Sequence
from html import escape, unescape

import torch
from jaxtyping import Float
from torch import Tensor

from companion.figures.kit.diagram import drawing, label, tie
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played
from companion.figures.kit.tables import rows_of
from companion.seq2seq import dot_alignment

CENTRE, SIDE = 130, 96
"""Where the plane has its middle, and how far a state may be from it."""
CAPTION = """Left, a line is as thick as its weight. Right, each arrow is a
state of the encoder, and the dashed one is the decoder's state, which asks.
The square is the plain average of the states; the dot is the context."""

Point = Sequence[Number]


def alignment_plane(
    words: Sequence[str],
    states: Float[Tensor, "seq 2"],
    target: Sequence[str],
    queries: Float[Tensor, "target 2"],
    *,
    glosses: Sequence[str],
    order: Sequence[int],
    start: int = 0,
) -> Figure:
    """Draw which context each target word mixes from the encoder's states.

    The weights are ``dot_alignment``'s. A reader picks the target word, and
    sees the same source in a second order, in which each state moves along
    with its word.

    Args:
        words: The source.
        states: Two numbers for each word of the source.
        target: The words that are written.
        queries: The decoder's state before each of them.
        glosses: What each word of the source means.
        order: The second order, as indices of ``words``.
        start: Index of the target word that is shown first.

    Raises:
        ValueError: the parts do not fit each other, or ``order`` is none.

    Example:
        >>> alignment_plane(
        ...     ["小", "猫"],
        ...     torch.eye(2),
        ...     ["cat"],
        ...     torch.zeros(1, 2),
        ...     glosses=["little", "cat"],
        ...     order=[1, 0],
        ... ).text
        'Alignment in a plane. “cat” takes 0.50 of 小, 0.50 of 猫: its context \
is (0.50, 0.50).'
    """
    states = torch.as_tensor(
        rows_of("states", states, height=len(words), width=2)
    )
    rows_of("queries", queries, height=len(target), width=2)
    if sorted(order) != [*range(len(words))]:
        raise ValueError(
            f"order: expected {len(words)} indices, each once, got {[*order]}"
        )
    orders = [[*range(len(words))], [*order]]

    def show(asks: int, turn: int) -> Parts:
        at = orders[turn]
        return _frame(
            [words[j] for j in at],
            [glosses[j] for j in at],
            states[at],
            target,
            queries,
            asks,
        )

    controls = [
        choice("The decoder is about to write", target, start),
        choice("Source", ["".join(words[j] for j in at) for at in orders], 0),
    ]
    html = played(
        "plane",
        show,
        controls,
        _body,
        module=__file__,
        label="One alignment in a plane",
        caption=CAPTION,
        sheets=["diagram"],
    )
    said = unescape(show(start, 0)["says"])
    return Figure(html, f"Alignment in a plane. {said}")


def _body(parts: Parts) -> str:
    return f"""<div class="controls"></div>
<div class="side"><div class="half" data-part="lines">{parts["lines"]}</div>
<div class="half" data-part="plane">{parts["plane"]}</div></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""


def _frame(words, glosses, states, target, queries, asks: int) -> Parts:
    query = queries[asks]
    weights = dot_alignment(query[None], states[None])[0]
    context = [round(x, 4) for x in (weights @ states).tolist()]
    shares = [round(w, 4) for w in weights.tolist()]
    says = _sentence(words, target[asks], shares, context)
    return {
        "lines": _lines(words, glosses, shares, target, asks, says),
        "plane": _plane(words, states.tolist(), query.tolist(), context),
        "says": says,
    }


def _sentence(words, asking: str, shares, context) -> str:
    taken = ", ".join(
        f"{fixed(w)} of {escape(word)}"
        for word, w in zip(words, shares, strict=True)
    )
    return (
        f"“{escape(asking)}” takes {taken}: its context is {_point(context)}."
    )


def _point(point: Point) -> str:
    return f"({', '.join(fixed(x) for x in point)})"


def _lines(words, glosses, shares, target, asks: int, says: str) -> str:
    """The target above, the source below, and a line for each weight."""
    above = [340 * (i + 0.5) / len(target) for i in range(len(target))]
    below = [340 * (j + 0.5) / len(words) for j in range(len(words))]
    parts = [
        tie(above[asks], 50, x, 130, w)
        for x, w in zip(below, shares, strict=True)
    ]
    parts += [
        label(x, 36, word, "target asking" if i == asks else "target")
        for i, (x, word) in enumerate(zip(above, target, strict=True))
    ]
    for x, word, gloss, w in zip(below, words, glosses, shares, strict=True):
        parts += [
            label(x, 164, word, "big"),
            label(x, 184, gloss, "note"),
            label(x, 206, fixed(w), "weight"),
        ]
    return drawing(216, says, *parts)


def _plane(words, states, query: Point, context: Point) -> str:
    """The states as arrows from the middle, the question, and the context."""
    far = max(abs(x) for point in [*states, query] for x in point)
    unit = SIDE / far

    def at(point: Point) -> tuple[Number, Number]:
        return 170 + unit * point[0], CENTRE - unit * point[1]

    ring = " ".join(f"{x:g},{y:g}" for x, y in map(at, _around(states)))
    parts = [f'<polygon class="hull" points="{ring}"/>']
    for word, state in zip(words, states, strict=True):
        x, y = at(state)
        parts.append(_arrow((170, CENTRE), (x, y), "state"))
        size = max(abs(n) for n in state) or 1
        parts.append(
            label(
                x + 20 * state[0] / size,
                y + 7 - 20 * state[1] / size,
                word,
                "middling",
            )
        )
    middle = at([sum(axis) / len(states) for axis in zip(*states, strict=True)])
    parts.append(
        f'<rect class="average" x="{middle[0] - 5:g}" y="{middle[1] - 5:g}" '
        'width="10" height="10"/>'
    )
    parts.append(_arrow((170, CENTRE), at(query), "asks"))
    parts.append(label(*_beyond(at(query), (170, CENTRE)), "asks", "asking"))
    x, y = at(context)
    parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="8"/>')
    parts.append(label(170, 278, f"context {_point(context)}", "weight"))
    return drawing(288, f"The context {_point(context)} in the plane.", *parts)


def _arrow(
    a: tuple[Number, Number], b: tuple[Number, Number], kind: str
) -> str:
    """A straight arrow from a to b."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    size = (dx * dx + dy * dy) ** 0.5 or 1
    ux, uy = 8 * dx / size, 8 * dy / size
    wing = [(-ux - uy / 2, -uy + ux / 2), (-ux + uy / 2, -uy - ux / 2)]
    tip = " ".join(f"{b[0] + x:.1f},{b[1] + y:.1f}" for x, y in [(0, 0), *wing])
    return (
        f'<line class="{kind}" x1="{a[0]:g}" y1="{a[1]:g}" '
        f'x2="{b[0] - ux / 2:.1f}" y2="{b[1] - uy / 2:.1f}"/>'
        f'<polygon class="{kind}" points="{tip}"/>'
    )


def _beyond(
    point: tuple[Number, Number], middle: tuple[Number, Number]
) -> tuple[Number, Number]:
    """Where a label stands that is to leave the way to a point free."""
    below = point[1] >= middle[1]
    return point[0], point[1] + (18 if below else -8)


def _around(points: Sequence[Point]) -> list[Point]:
    """The points in the order of their directions, as a ring of states lies."""
    return sorted(points, key=lambda p: torch.atan2(*torch.tensor(p)).item())
