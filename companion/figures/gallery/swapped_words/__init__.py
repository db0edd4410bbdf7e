"""Two sentences of the same words in another order: is each word changed?"""

from collections.abc import Sequence
from html import escape

import torch

from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of

LEFT, PITCH, WIDE, HIGH = 62, 108, 44, 24
"""Middle of the first word, from word to word, and the size of one number."""
FIRST, SECOND = 44, 168
"""Where the words of the two sentences stand, from above."""


def swapped_words(
    words: Sequence[str],
    order: Sequence[int],
    panels: Sequence[tuple[str, object, object]],
    *,
    glosses: Sequence[str],
) -> Figure:
    """Draw what three words become in two orders, and which of them differ.

    Args:
        words: Three words.
        order: The second sentence, as indices of words.
        panels: A title, and two numbers for each place: what comes out for the
            first sentence, and what for the second.
        glosses: What each word means.

    Raises:
        ValueError: the numbers do not fit the words.

    Example:
        >>> same = [[1, 0], [0, 1], [1, 1]]
        >>> swapped_words(
        ...     "abc", [2, 1, 0], [("Bag", same, same[::-1])], glosses="xyz"
        ... ).text
        'Two orders. Bag: a the same, b the same, c the same.'
    """
    if len(words) != 3 or sorted(order) != [0, 1, 2] or len(glosses) != 3:
        raise ValueError(
            f"words: expected three, in two orders, got {len(words)} and the "
            f"order {[*order]}"
        )
    drawn = [
        (
            title,
            rows_of(f"first of {title!r}", one, height=3, width=2),
            rows_of(f"second of {title!r}", two, height=3, width=2),
        )
        for title, one, two in panels
    ]
    says = " ".join(_sentence(words, order, *panel) for panel in drawn)
    pictures = "".join(
        _picture(words, order, glosses, *panel) for panel in drawn
    )
    html = inline(
        "swapped",
        body=f'<div class="side">{pictures}</div>'
        f'<p class="unseen">{escape(says)}</p>',
        label="What the words of two sentences become",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Two orders. {says}")


def same(
    one: Sequence[Sequence[Number]],
    two: Sequence[Sequence[Number]],
    order: Sequence[int],
) -> list[bool]:
    """Tell of each word whether both sentences make the same of it."""
    back = torch.tensor(order).argsort()
    first, second = torch.tensor(one), torch.tensor(two)[back]
    return (first - second).abs().amax(-1).lt(1e-3).tolist()


def _sentence(words, order, title, one, two) -> str:
    said = ", ".join(
        f"{word} {'the same' if alike else 'another'}"
        for word, alike in zip(words, same(one, two, order), strict=True)
    )
    return f"{title}: {said}."


def _picture(words, order, glosses, title, one, two) -> str:
    top = max(abs(value) for row in (*one, *two) for value in row) or 1
    parts = [label(170, 16, title, "title")]
    signs = []
    low, high = FIRST + 20 + HIGH, SECOND - 24
    for word, alike in enumerate(same(one, two, order)):
        a, b = _at(word), _at(order.index(word))
        kind = "alike" if alike else "apart"
        parts.append(
            f'<line class="{kind}" x1="{a}" y1="{low + 2}" x2="{b}" '
            f'y2="{high}"/>'
        )
        # A third of the way down, where no two lines cross.
        x, y = a + (b - a) * 0.3, low + (high - low) * 0.34
        signs.append(
            f'<circle class="ground {kind}" cx="{x:g}" cy="{y:g}" r="9"/>'
            + label(x, y + 5, "=" if alike else "≠", f"sign {kind}")
        )
    parts += signs
    for place in range(3):
        x = _at(place)
        parts += [
            label(x, FIRST, f"{words[place]} {glosses[place]}", "word"),
            _numbers(x, FIRST + 12, one[place], top),
            label(
                x,
                SECOND - 6,
                f"{words[order[place]]} {glosses[order[place]]}",
                "word",
            ),
            _numbers(x, SECOND + 6, two[place], top),
        ]
    return drawing(
        SECOND + HIGH + 14, _sentence(words, order, title, one, two), *parts
    )


def _at(place: int) -> int:
    return LEFT + PITCH * place


def _numbers(x: Number, y: Number, row: Sequence[Number], top: Number) -> str:
    """A vector of two numbers, tinted by size."""
    return "".join(
        f'<rect class="{"minus" if value < 0 else "plus"}" '
        f'x="{x + (i - 1) * WIDE:g}" y="{y:g}" width="{WIDE}" '
        f'height="{HIGH}" fill-opacity="{0.5 * abs(value) / top:.2f}"/>'
        + label(x + (i - 0.5) * WIDE, y + 17, fixed(value), "number")
        for i, value in enumerate(row)
    )
