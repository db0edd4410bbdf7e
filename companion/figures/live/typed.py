"""What a reader types, as tensors, or an error that names the place."""

import torch
from torch import Tensor


def matrix(name: str, text: str) -> Tensor:
    """A matrix as somebody typed it: a row a line, numbers apart by spaces.

    Raises:
        ValueError: a row has another length than the others, or holds what is
            not a number between -1000 and 1000.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [
        [_number(f"{name}, row {i}", part) for part in _parts(line)]
        for i, line in enumerate(lines, 1)
    ]
    if len({len(row) for row in rows}) != 1:
        lengths = ", ".join(str(len(row)) for row in rows) or "no rows"
        raise ValueError(f"{name}: expected rows of one length, got {lengths}")
    return torch.tensor(rows)


def _parts(line: str) -> list[str]:
    return line.replace(",", " ").split()


def _number(place: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{place}: {text!r} is not a number") from None
    if abs(value) > 1000 or value != value:
        raise ValueError(f"{place}: {text!r} is not between -1000 and 1000")
    return value


def words(name: str, text: str, most: int) -> list[str]:
    """The words of a line, some but not too many to show.

    Raises:
        ValueError: there are none, or more than ``most``.
    """
    found = text.split()
    if not 1 <= len(found) <= most:
        raise ValueError(
            f"{name}: expected 1 to {most} words, got {len(found)}"
        )
    return found
