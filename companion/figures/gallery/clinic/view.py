"""The picture of a case: curves, lines of text, or a matrix."""

from collections.abc import Mapping
from html import escape

from companion.figures.kit.curves import VIEW, curves, thinned
from companion.figures.kit.digits import short
from companion.figures.kit.tables import table, tinted, word

CURVES, SIDE = 2, 9
"""At most so many curves, and so many rows or columns of a matrix."""
STYLES = ("solid", "dashed")


def picture(place: str, case: Mapping) -> str:
    """The picture of a case as HTML, or nothing.

    Raises:
        ValueError: it is empty, too large, or not a number a point.
    """
    found = next((kind for kind in PICTURES if kind in case), None)
    if found is None:
        return ""
    return PICTURES[found](f"{place}[{found!r}]", case[found])


def _curves(place: str, named: Mapping) -> str:
    """Lines over the steps, from 0 up; their ends are told in words."""
    lists = {name: [float(n) for n in curve] for name, curve in named.items()}
    lengths = {len(numbers) for numbers in lists.values()}
    if not 1 <= len(lists) <= CURVES or len(lengths) > 1 or min(lengths) < 2:
        raise ValueError(
            f"{place}: expected 1 or {CURVES} curves of one length, 2 at "
            f"least, got lengths {[len(n) for n in lists.values()]}"
        )
    drawn = curves([thinned(n) for n in lists.values()], min(lengths))
    told = "; ".join(
        f"{name} ({style}) from {short(numbers[0])} to {short(numbers[-1])}"
        for (name, numbers), style in zip(lists.items(), STYLES, strict=False)
    )
    return (
        f'<div class="plot"><svg viewBox="{VIEW}" role="img" '
        f'aria-label="Curves; told in words below.">{drawn}</svg>'
        f'<p class="legend">{escape(told)}</p></div>'
    )


def _lines(place: str, lines: Mapping) -> str:
    """Texts below each other, each with its name."""
    if not lines:
        raise ValueError(f"{place}: expected a text at least, got none")
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{word(text)}</dd></div>"
        for name, text in lines.items()
    )
    return f'<dl class="lines">{rows}</dl>'


def _matrix(place: str, matrix) -> str:
    """Numbers as a table, tinted by their size."""
    rows = [[float(n) for n in row] for row in matrix]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not 1 <= len(rows) <= SIDE or max(widths) > SIDE:
        raise ValueError(
            f"{place}: expected {SIDE} rows and columns at most, got "
            f"{len(rows)} rows of {sorted(widths)} numbers"
        )
    top = max(abs(n) for row in rows for n in row)
    whole = all(n.is_integer() for row in rows for n in row)
    places = 0 if whole else 2
    return table(
        "seen",
        "A row is what comes out, a column what goes in",
        [str(i) for i in range(1, max(widths) + 1)],
        [str(i) for i in range(1, len(rows) + 1)],
        [tinted(row, top, places) for row in rows],
    )


PICTURES = {"curves": _curves, "lines": _lines, "matrix": _matrix}
"""What a case may show: key -> how it is drawn."""
