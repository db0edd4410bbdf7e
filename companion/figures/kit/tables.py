"""Tables of numbers: what callers pass, made fit for a page, and tinted."""

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite

from companion.figures.kit.digits import Number, fixed, heat


def tinted(values: Iterable[Number], top: Number = 1, places: int = 2) -> str:
    """Table cells; a number of the size ``top`` gets the strongest tint."""
    return "".join(
        f"<td {heat(v, top)}>{fixed(v, places)}</td>" for v in values
    )


def table(
    kind: str,
    title: str,
    columns: Sequence[str],
    names: Sequence[str],
    rows: Sequence[str],
) -> str:
    """A captioned table; ``rows`` are cells as HTML, one text for each name."""
    heads = "".join(f"<th scope=col>{word(name)}</th>" for name in columns)
    body = "".join(
        f"<tr><th scope=row>{word(name)}</th>{cells}</tr>"
        for name, cells in zip(names, rows, strict=True)
    )
    return (
        f'<div class="scroll"><table class="cells {kind}"><caption>{title}'
        f"</caption><thead><tr><td></td>{heads}</tr></thead><tbody>{body}"
        "</tbody></table></div>"
    )


def word(token: str) -> str:
    """A token as HTML, read out as Chinese where it is Chinese."""
    if any("\u4e00" <= letter <= "\u9fff" for letter in token):
        return f'<span lang="zh">{escape(token)}</span>'
    return escape(token)


def rows_of(
    name: str, values, *, height: int | None = None, width: int | None = None
) -> list[list[float]]:
    """A matrix as lists of numbers, rounded to four places.

    Rounding keeps the page small, and the same on every machine though the
    last bits of a float are not.

    Args:
        values: A tensor, an array or nested lists.
        height: How many rows there must be; any number without it.
        width: How long each row must be; any, but all alike, without it.

    Raises:
        ValueError: ``values`` is no such matrix, or not all finite.
    """
    rows = values.tolist() if hasattr(values, "tolist") else values
    shape = _shape(rows)
    if (
        len(shape) != 2
        or 0 in shape
        or "uneven" in shape
        or shape != (height or shape[0], width or shape[1])
    ):
        words = f"({height or 'any'}, {width or 'any'})"
        raise ValueError(f"{name}: expected shape {words}, got {shape}")
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if not isfinite(value):
                raise ValueError(
                    f"{name}: expected finite numbers, got {value} "
                    f"in row {i}, column {j}"
                )
    return [[round(float(value), 4) for value in row] for row in rows]


def largest(rows: list[list[float]]) -> float:
    """The size of the largest number: it gets the strongest tint."""
    return max(abs(value) for row in rows for value in row)


def _shape(values) -> tuple:
    """The shape of nested lists; ``"uneven"`` stands for unequal lengths."""
    if not isinstance(values, list | tuple):
        return ()
    inner = {_shape(value) for value in values}
    if len(inner) > 1:
        return (len(values), "uneven")
    return (len(values), *inner.pop()) if inner else (0,)
