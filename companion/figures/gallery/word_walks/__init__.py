"""Word vectors laid tip to tail: two orders of the same words, one end."""

from collections.abc import Sequence
from html import escape
from itertools import accumulate

from companion.figures.kit.diagram import drawing, label, vector
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of

LEFT, BOTTOM, SIDE = 34, 258, 236
TONES = 4


def word_walks(
    vectors: object,
    words: Sequence[str],
    orders: Sequence[Sequence[int]],
    *,
    glosses: Sequence[str],
) -> Figure:
    """Draw each sentence as a walk along the vectors of its words.

    Args:
        vectors: Two numbers, not negative, for each word.
        words: At most four different words.
        orders: Two sentences, as indices of words.
        glosses: What each sentence means.

    Raises:
        ValueError: the vectors do not fit the words, or there are not two
            sentences with a meaning each.

    Example:
        >>> walk = word_walks(
        ...     [[2, 0], [0, 2]], ["a", "b"], [[0, 1], [1, 0]], glosses="xy"
        ... )
        >>> walk.text
        'Word vectors tip to tail. ab and ba end at (2, 2); the mean is (1, 1).'
    """
    points = rows_of("vectors", vectors, height=len(words), width=2)
    if len(words) > TONES:
        raise ValueError(f"words: expected at most {TONES}, got {len(words)}")
    if len(orders) != 2 or len(glosses) != 2:
        raise ValueError(
            f"orders, glosses: expected two of each, got {len(orders)} and "
            f"{len(glosses)}"
        )
    walks = [[points[i] for i in order] for order in orders]
    sentences = ["".join(words[i] for i in order) for order in orders]
    says = _sentence(sentences, walks)
    html = inline(
        "walks",
        body=_drawing(words, orders, walks, says)
        + _legend(sentences, glosses)
        + f'<p class="unseen">{escape(says)}</p>',
        label="Word vectors of two sentences, laid tip to tail",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Word vectors tip to tail. {says}")


def _ends(walk: list[list[float]]) -> list[tuple[float, float]]:
    """Where each arrow of a walk ends."""
    return list(
        zip(
            *(accumulate(axis) for axis in zip(*walk, strict=True)), strict=True
        )
    )


def _sentence(sentences, walks) -> str:
    ends = [_ends(walk)[-1] for walk in walks]
    mean = [value / len(walks[0]) for value in ends[0]]
    one, other = (_point(end) for end in ends)
    where = f"at {one}" if one == other else f"at {one} and {other}"
    return f"{' and '.join(sentences)} end {where}; the mean is {_point(mean)}."


def _point(values: Sequence[Number]) -> str:
    x, y = (
        f"{value:.0f}" if float(value).is_integer() else fixed(value)
        for value in values
    )
    return f"({x}, {y})"


def _drawing(words, orders, walks, says) -> str:
    top = max(max(point) for walk in walks for point in _ends(walk))
    unit = SIDE / top

    def at(point: Sequence[Number]) -> tuple[float, float]:
        return LEFT + unit * point[0], BOTTOM - unit * point[1]

    ticks = range(1, int(top) + 1)
    parts = [
        f'<path class="grid" d="M{at((t, 0))[0]:g} {BOTTOM}v{-SIDE}'
        f'M{LEFT} {at((0, t))[1]:g}h{SIDE}"/>'
        for t in ticks
    ]
    parts += [label(at((t, 0))[0], BOTTOM + 18, str(t), "note") for t in ticks]
    parts += [
        label(LEFT - 12, at((0, t))[1] + 4, str(t), "note") for t in ticks
    ]
    for number, (order, walk) in enumerate(zip(orders, walks, strict=True)):
        here = (0.0, 0.0)
        for index, end in zip(order, _ends(walk), strict=True):
            start, stop = at(here), at(end)
            kind = f"tone{index} walk{number}"
            parts.append(vector(*start, *stop, kind))
            aside = _aside(start, stop, number)
            parts.append(label(*aside, words[index], f"word tone{index}"))
            here = end
    end = at(_ends(walks[0])[-1])
    mean = at([value / len(walks[0]) for value in _ends(walks[0])[-1]])
    parts += [
        f'<circle class="mean" cx="{mean[0]:g}" cy="{mean[1]:g}" r="7"/>',
        label(mean[0] + 14, mean[1] + 20, "mean", "start"),
        f'<circle class="end" cx="{end[0]:g}" cy="{end[1]:g}" r="5"/>',
        label(end[0] + 12, end[1] + 4, "sum", "start"),
    ]
    return drawing(BOTTOM + 26, says, *parts)


def _aside(start, stop, number) -> tuple[float, float]:
    """A place beside the middle of an arrow, within the grid."""
    x, y = (start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2
    if start[1] == stop[1]:
        return x, y - 10 if number == 0 else y + 24
    return x + (20 if number == 0 else -20), y + (14 if number == 0 else 0)


def _legend(sentences, glosses) -> str:
    items = "".join(
        f'<span><i class="walk{number}"></i><span lang="zh">{escape(text)}'
        f"</span> {escape(gloss)}</span> "
        for number, (text, gloss) in enumerate(
            zip(sentences, glosses, strict=True)
        )
    )
    return f'<p class="legend">{items}</p>'
