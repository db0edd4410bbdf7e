"""Where each word of an answer attended: as text, as SVG, as a page."""

import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from unicodedata import east_asian_width

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from companion import figures

__all__ = ["KINDS", "as_text", "check_kind", "columns", "save"]

Rows = Sequence[Sequence[float]]
KINDS = (".svg", ".html")
FAINT = 0.05
"""A smaller share is shown as a dot, so that the large ones are seen."""


def check_kind(path: Path) -> None:
    """Refuse a file of a kind that is not drawn.

    Args:
        path: Where the picture goes.

    Raises:
        ValueError: The name of the file ends in something else.
    """
    if path.suffix not in KINDS:
        raise ValueError(
            f"attention: expected a file that ends in {' or '.join(KINDS)}, "
            f"got {path}"
        )


def as_text(source: Sequence[str], target: Sequence[str], rows: Rows) -> str:
    """Write a table for a terminal: a row for each target token, in per cent.

    A Chinese character is as wide as two Latin ones there.

    Args:
        source: The tokens that were read.
        target: The tokens that were written.
        rows: How much each target token attended to each of the source.
    """
    name = max(map(columns, target))
    widths = [max(3, columns(token)) for token in source]
    lines = [_line("", name, source, widths)]
    for token, row in zip(target, rows, strict=True):
        cells = [f"{100 * w:.0f}" if w >= FAINT else "·" for w in row]
        lines.append(_line(token, name, cells, widths))
    return "\n".join(lines)


def save(
    path: Path, source: Sequence[str], target: Sequence[str], rows: Rows
) -> None:
    """Save the same as a picture, ``.svg``, or as a page, ``.html``.

    Raises:
        ValueError: The name of the file ends in something else.
        OSError: It cannot be written.
    """
    check_kind(path)
    with figures.style():
        canvas = _drawn(source, target, rows)
        if path.suffix == ".svg":
            _write(canvas, path)
            return
        written = " ".join(target)
        shown = figures.plot(
            canvas,
            caption="Each row says where the model looked as it wrote a token.",
            alt=f"Attention from {written} to {' '.join(source)}",
        )
    title = f"<meta charset=utf-8><title>{escape(written)}</title>"
    path.write_text(f"<!doctype html>{title}{shown.html}", encoding="utf-8")


def columns(text: str) -> int:
    """Count the columns of a terminal that a text takes.

    Example:
        >>> columns("cat"), columns("小猫")
        (3, 4)
    """
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _line(
    name: str, width: int, cells: Sequence[str], widths: Sequence[int]
) -> str:
    start = name + " " * (width - columns(name))
    padded = (
        " " * (wide - columns(cell)) + cell
        for cell, wide in zip(cells, widths, strict=True)
    )
    return "  ".join([start, *padded])


def _drawn(source: Sequence[str], target: Sequence[str], rows: Rows) -> Figure:
    size = 1.5 + 0.6 * len(source), 0.8 + 0.4 * len(target)
    canvas, axes = plt.subplots(figsize=size)
    figures.heatmap(axes, rows, target, source)
    return canvas


def _write(canvas: Figure, path: Path) -> None:
    # Text stays text, for matplotlib's own font has no Chinese.
    text = {"svg.fonttype": "none", "font.family": "sans-serif"}
    with matplotlib.rc_context(text), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        canvas.savefig(path)
    plt.close(canvas)
