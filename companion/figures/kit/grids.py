"""What callers pass as tables of numbers, made fit for a page."""

from math import isfinite


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
