"""Matrices side by side, with their shapes and the names of their rows."""

from collections.abc import Sequence

from companion.figures.kit.diagram import equation, matrix
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of


def matrices(
    named: Sequence[tuple[object, str] | tuple[object, str, Sequence[str]]],
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    between: Sequence[str] = (),
    mark: Sequence[tuple[int, int]] = (),
    caption: str = "",
) -> Figure:
    """Show matrices beside each other as tables, tinted by size.

    Args:
        named: Each matrix, of shape (row, column), with its name, and with
            names for its rows if they are its own.
        rows: A name for each row of every other matrix.
        columns: A name for each column of every matrix.
        between: A sign after each matrix but the last, such as ``×``.
        mark: Cells that get a frame in every matrix, as (row, column).
        caption: What the reader should see.

    Raises:
        ValueError: a matrix is none, is not finite, or does not fit the names;
            there are as many signs as matrices, or more.

    Example:
        >>> matrices([([[1, 2]], "a"), ([[3, 4]], "b")]).text
        'Matrices. a, 1 × 2: 1 2. b, 1 × 2: 3 4'
    """
    if len(between) >= len(named):
        raise ValueError(
            f"between: expected at most {len(named) - 1} signs for "
            f"{len(named)} matrices, got {len(between)}"
        )
    width = columns and len(columns)
    tables = []
    for values, name, *own in named:
        titles = own[0] if own else rows
        numbers = rows_of(
            name, values, height=titles and len(titles), width=width
        )
        tables.append((numbers, name, titles))
    parts = [
        matrix(values, name, names=titles, columns=columns, marked=mark)
        for values, name, titles in tables
    ]
    signs = [*between, *[""] * (len(parts) - 1 - len(between))]
    words = [
        f"{name}, {len(values)} × {len(values[0])}: "
        + " / ".join(" ".join(f"{v:g}" for v in row) for row in values)
        for values, name, _ in tables
    ]
    html = inline(
        "matrices",
        body=equation(parts, signs),
        label="Matrices: " + ", ".join(name for _, name, _ in tables),
        caption=caption,
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, "Matrices. " + ". ".join(words))
