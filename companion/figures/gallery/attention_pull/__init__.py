"""One step of attention: a word listens, and what it hears pulls a dot."""

from collections.abc import Sequence
from html import escape

from companion.figures.kit.diagram import drawing, label, tie
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of

ORIGIN, SIDE, BOTTOM = 58, 190, 232


def attention_pull(
    words: Sequence[str],
    weights: object,
    values: object,
    *,
    ask: int,
    glosses: Sequence[str],
    axes: tuple[str, str],
) -> Figure:
    """Draw how one word listens to all, and where that pulls its output.

    Args:
        words: The sentence.
        weights: How much the asking word listens to each; they sum to 1.
        values: Two numbers, not negative, that each word hands over.
        ask: Index of the word that asks.
        glosses: What each word means.
        axes: What the two numbers of a value are called.

    Raises:
        ValueError: the weights or the values do not fit the words.
    """
    count = len(words)
    (shares,) = rows_of("weights", [_plain(weights)], height=1, width=count)
    points = rows_of("values", values, height=count, width=2)
    output = [
        sum(w * point[axis] for w, point in zip(shares, points, strict=True))
        for axis in (0, 1)
    ]
    says = _sentence(words, shares, ask, output, axes)
    body = (
        '<div class="side">'
        + _sentence_drawing(words, glosses, shares, ask, says)
        + _plane(words, shares, points, output, axes)
        + f'</div><p class="unseen">{escape(says)}</p>'
    )
    html = inline(
        "pull",
        body=body,
        label=f"How {words[ask]} attends to each word",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"One step of attention. {says}")


def _plain(values: object) -> list:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _sentence(words, shares, ask, output, axes) -> str:
    heard = ", ".join(
        f"{fixed(w)} on {word}" for word, w in zip(words, shares, strict=True)
    )
    x, y = (fixed(value) for value in output)
    return (
        f"{words[ask]} puts {heard}; its output is {x} {axes[0]} and "
        f"{y} {axes[1]}."
    )


def _sentence_drawing(words, glosses, shares, ask, says) -> str:
    """The asking word above, all words below, and a tie to each."""
    across = [340 * (j + 0.5) / len(words) for j in range(len(words))]
    parts = [
        tie(across[ask], 62, x, 122, w)
        for x, w in zip(across, shares, strict=True)
    ]
    parts += [
        label(across[ask], 18, "asks", "note"),
        label(across[ask], 50, words[ask], "big asking"),
    ]
    for x, text, gloss, w in zip(across, words, glosses, shares, strict=True):
        parts += [
            label(x, 158, text, "big"),
            label(x, 178, gloss, "note"),
            label(x, 200, fixed(w), "weight"),
        ]
    return drawing(212, says, *parts)


def _plane(words, shares, points, output, axes) -> str:
    """The values as points, and the dot that their weights hold in place."""
    unit = SIDE / max(max(point) for point in points)

    def at(point: Sequence[Number]) -> tuple[float, float]:
        return ORIGIN + unit * point[0], BOTTOM - unit * point[1]

    spots: dict[tuple, list[int]] = {}
    for j, point in enumerate(points):
        spots.setdefault(at(point), []).append(j)
    dot = at(output)
    end = ORIGIN + SIDE + 22
    top = BOTTOM - SIDE - 14
    ring = " ".join(f"{x:g},{y:g}" for x, y in _hull([*spots]))
    parts = [
        f'<polygon class="hull" points="{ring}"/>',
        f'<path class="wire" d="M{ORIGIN} {top}V{BOTTOM}H{end}"/>',
        label(338, BOTTOM + 5, axes[0], "axis end"),
        label(ORIGIN, top - 8, axes[1], "axis"),
    ]
    parts += [
        tie(*dot, *spot, sum(shares[j] for j in here))
        for spot, here in spots.items()
    ]
    for (x, y), here in spots.items():
        names = " ".join(words[j] for j in here)
        low = y > BOTTOM - 10
        parts.append(f'<circle class="value" cx="{x:g}" cy="{y:g}" r="5"/>')
        parts.append(
            label(x, y + 26, names, "middling")
            if low
            else label(x - 24, y + 6, names, "middling")
        )
    x, y = (fixed(value) for value in output)
    parts += [
        f'<circle class="dot" cx="{dot[0]:.1f}" cy="{dot[1]:.1f}" r="8"/>',
        label(dot[0] + 14, dot[1] - 2, f"output ({x}, {y})", "start"),
    ]
    says = f"The values in a plane, and the output at {x}, {y}."
    return drawing(BOTTOM + 34, says, *parts)


def _hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The convex hull, by Andrew's monotone chain."""

    def half(ordered: list) -> list:
        chain: list = []
        for p in ordered:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    ordered = sorted(set(points))
    return half(ordered) + half(ordered[::-1]) if len(ordered) > 2 else ordered


def _turn(a: tuple, b: tuple, c: tuple) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
