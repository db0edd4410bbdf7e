"""Diagrams: boxes, arrows and labels in one drawing, matrices beside it.

A drawing is 340 units wide, the width of a phone, so that its letters, 13 units
high, are legible there; its style sheet says how wide it may grow. A matrix is
an HTML table: it wraps, it is read aloud, and it can be copied.
"""

import math
from collections.abc import Callable, Sequence
from html import escape

from companion.figures.kit.digits import Number, fixed, heat
from companion.figures.kit.tables import word

__all__ = [
    "arrow",
    "box",
    "drawing",
    "equation",
    "label",
    "matrix",
    "shape_of",
    "tie",
    "vector",
]

WIDTH = 340


def drawing(height: Number, says: str, *parts: str) -> str:
    """Put ``parts`` into one picture that a screen reader calls ``says``."""
    return (
        f'<svg class="diagram" viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-label="{escape(says)}">{"".join(parts)}</svg>'
    )


def label(x: Number, y: Number, text: str, kind: str = "") -> str:
    """Write ``text`` with its middle at x and its foot at y."""
    named = f' class="{kind}"' if kind else ""
    tongue = ' lang="zh"' if "span" in word(text) else ""
    return f'<text{named}{tongue} x="{x:g}" y="{y:g}">{escape(text)}</text>'


def tie(
    x1: Number,
    y1: Number,
    x2: Number,
    y2: Number,
    weight: Number,
    hue: str = "",
) -> str:
    """Draw a line as thick as a weight between 0 and 1 is large."""
    kind = f"tie {hue}".strip()
    return (
        f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" '
        f'stroke-width="{1 + 13 * weight:.1f}"/>'
    )


def arrow(x: Number, y: Number, *turns: Number) -> str:
    """Draw an arrow that starts and ends downwards.

    Args:
        x: Where it starts, across.
        y: Where it starts, from above.
        turns: To which y it goes down; then, in turns, to which x and y.
    """
    path = "".join(f"{'HV'[i % 2]}{to:g}" for i, to in enumerate(turns, 1))
    across = turns[-2] if len(turns) > 1 else x
    return (
        f'<path class="wire" d="M{x:g} {y:g}{path}"/>'
        f'<path class="tip" d="M{across:g} {turns[-1]:g}l-4 -7h8z"/>'
    )


def vector(
    x1: Number, y1: Number, x2: Number, y2: Number, kind: str = ""
) -> str:
    """Draw a straight arrow from one point to another, in any direction."""
    along = math.hypot(x2 - x1, y2 - y1)
    x, y = 8 * (x2 - x1) / along, 8 * (y2 - y1) / along
    # The tip is a triangle; the shaft ends at its foot.
    foot_x, foot_y = x2 - x, y2 - y
    return (
        f'<path class="vector {kind}" d="M{x1:g} {y1:g}L{foot_x:.1f} '
        f'{foot_y:.1f}"/><path class="point {kind}" d="M{x2:g} {y2:g}L'
        f"{foot_x - y / 2:.1f} {foot_y + x / 2:.1f}L{foot_x + y / 2:.1f} "
        f'{foot_y - x / 2:.1f}z"/>'
    )


def box(x: Number, y: Number, name: str, note: str, *, wide: Number) -> str:
    """Draw a box around ``name`` with its middle at x and its top at y.

    A figure that is played sets the class of each: ``data-part="box"``.
    """
    return (
        f'<g data-part="box" class="box"><rect x="{x - wide / 2:g}" y="{y:g}" '
        f'width="{wide:g}" height="42" rx="5"/>'
        f"{label(x, y + 18, name)}{label(x, y + 34, note, 'note')}</g>"
    )


def shape_of(rows: Sequence[Sequence[Number]]) -> str:
    """Write a matrix's shape: ``4 × 2``."""
    return f"{len(rows)} × {len(rows[0])}"


def matrix(
    rows: Sequence[Sequence[Number]],
    name: str,
    *,
    names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    marked: Sequence[tuple[int, int]] = (),
    chosen: int | None = None,
    places: int = 2,
    hue: Callable[[int, int], int] | None = None,
) -> str:
    """Write a matrix as a table, tinted by size, with its shape above.

    Args:
        rows: The numbers; whole ones are written without decimals.
        name: What the matrix is called.
        names: A name for each row.
        columns: A name for each column.
        marked: Cells with a frame, as (row, column).
        chosen: The row that is looked at; the others step back.
        places: Decimals of numbers that are not whole.
        hue: Which of four colours a cell has, 0 to 3, by its row and column;
            without it the sign decides.
    """
    top = max((abs(value) for row in rows for value in row), default=1) or 1
    whole = all(float(value).is_integer() for row in rows for value in row)
    digits = 0 if whole else places
    head = "".join(f"<th scope=col>{word(each)}</th>" for each in columns or ())
    corner = "<td></td>" if names and columns else ""
    body = ""
    for i, row in enumerate(rows):
        cells = "".join(
            f"<td {_tint(value, top, (i, j) in marked, hue and hue(i, j))}>"
            f"{fixed(value, digits)}</td>"
            for j, value in enumerate(row)
        )
        title = f"<th scope=row>{word(names[i])}</th>" if names else ""
        step = "" if chosen in (None, i) else " class=back"
        body += f"<tr{step}>{title}{cells}</tr>"
    return (
        f'<table class="cells"><caption>{name} <span class="shape">'
        f"{shape_of(rows)}</span></caption>"
        + (f"<thead><tr>{corner}{head}</tr></thead>" if columns else "")
        + f"<tbody>{body}</tbody></table>"
    )


def equation(tables: Sequence[str], signs: Sequence[str]) -> str:
    """Put matrices in a row; a sign stays with the matrix that follows it."""
    parts = tables[:1] + [
        f'<div class="term"><span class="sign">{sign}</span>{table}</div>'
        for table, sign in zip(tables[1:], signs, strict=True)
    ]
    return f'<div class="side">{"".join(parts)}</div>'


def _tint(value: Number, top: Number, marked: bool, hue: int | None) -> str:
    """``heat`` with other classes; blue needs none."""
    sign, rest = heat(value, top).removeprefix('class="').split('" ', 1)
    kind = sign.replace("plus", "") if hue is None else f"hue{hue}"
    kind = f"{'marked ' * marked}{kind}".strip()
    return f'class="{kind}" {rest}' if kind else rest
