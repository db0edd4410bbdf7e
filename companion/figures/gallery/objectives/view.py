"""The lanes and grids of the figure of the objectives, as HTML and SVG."""

from html import escape
from itertools import groupby

from companion.figures.gallery.objectives.parts import (
    Example,
    Grid,
    Lane,
    Piece,
)
from companion.figures.gallery.objectives.words import position
from companion.figures.kit.tables import word

CELL = 16
TICKS = 22
"""Room for the numbers beside a grid."""
Place = tuple[int, int]
"""A lane, and a position in it."""


def panel(example: Example, chosen: Place) -> str:
    """One tab: the text, the lanes, the grids, and one position looked at."""
    grids = "".join(_grid(grid, chosen) for grid in example.grids)
    return (
        f"{lanes(example, chosen)}"
        f'<p class="here">{escape(position(example, *chosen))}</p>'
        f'<div class="grids">{grids}</div>'
    )


def lanes(example: Example, chosen: Place | None = None) -> str:
    """The text, and under it what is read and what must be said."""
    marked = "".join(map(_mark, example.text))
    return (
        '<div class="text"><span class="title">The text</span>'
        f"<p>{marked}</p></div>"
        + "".join(
            _lane(example, number, chosen)
            for number in range(len(example.lanes))
        )
    )


def seen(example: Example, chosen: Place | None) -> list[list[bool]]:
    """For each lane, which of its positions the chosen one sees."""
    found = [[False] * len(lane.reads) for lane in example.lanes]
    for grid in example.grids:
        if chosen and grid.asks == chosen[0]:
            found[grid.seen] = grid.rows[chosen[1]]
    return found


def _mark(piece: Piece) -> str:
    tag = {"gone": "del", "chosen": "mark"}.get(piece.kind, "span")
    return f"<{tag}>{word(piece.text)}</{tag}> "


def _lane(example: Example, number: int, chosen: Place | None) -> str:
    lane, sees = example.lanes[number], seen(example, chosen)[number]
    cards = "".join(
        _card(lane, place, sees[place], chosen == (number, place))
        for place in range(len(lane.reads))
    )
    legend = (
        '<span class="legend">and must say, below: <b>●</b> a loss'
        f"{', ○ none' * (None in lane.says)}</span>"
        if lane.says
        else ""
    )
    return (
        f'<div class="lane"><p><span class="title">{lane.name}</span> '
        f'{legend}</p><div class="cards">{cards}</div></div>'
    )


def _card(lane: Lane, place: int, is_seen: bool, is_chosen: bool) -> str:
    """A position: what stands there, a note on it, and what is said there."""
    piece = lane.reads[place]
    flags = " data-seen" * is_seen + " data-chosen" * is_chosen
    notes = any(other.note for other in lane.reads)
    note = f"<i>{piece.note}</i>" * notes
    say = ""
    if lane.says:
        said = lane.says[place]
        say = (
            '<s class="none">○</s>'
            if said is None
            else f'<s class="loss">{word(said)}<b>●</b></s>'
        )
    return (
        f'<div class="tile {piece.kind}"{flags}>'
        f"<span>{word(piece.text)}</span>{note}{say}</div>"
    )


def _grid(grid: Grid, chosen: Place) -> str:
    """Squares for what is seen, dots for what is hidden; a row asks."""
    rows, columns = len(grid.rows), len(grid.rows[0])
    width, height = TICKS + columns * CELL, TICKS + rows * CELL
    ticks = "".join(
        f'<text x="{TICKS + (i + 0.5) * CELL:g}" y="15">{i + 1}</text>'
        for i in _ticks(columns)
    ) + "".join(
        f'<text x="9" y="{TICKS + (i + 0.5) * CELL + 5:g}">{i + 1}</text>'
        for i in _ticks(rows)
    )
    drawn = "".join(
        _row(grid, i, chosen == (grid.asks, i)) for i in range(rows)
    )
    return (
        f'<div style="--columns: {columns}"><p class="title">{grid.name}</p>'
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{_label(grid)}">{ticks}{drawn}</svg></div>'
    )


def _row(grid: Grid, i: int, chosen: bool) -> str:
    """A row of a grid, with a frame that shows when it is chosen."""
    top, left = TICKS + i * CELL, TICKS
    lines = {True: "", False: ""}  # Each is dashed: a square or a dot a cell.
    for is_seen, run in groupby(grid.rows[i]):
        length = CELL * len(list(run))
        lines[is_seen] += f"M{left} {top + CELL // 2}h{length}"
        left += length
    return (
        f"<g{' data-chosen' * chosen}>"
        f'<rect x="{TICKS}" y="{top}" width="{left - TICKS}" '
        f'height="{CELL}"/><path class="seen" d="{lines[True]}"/>'
        + f'<path class="dots" d="{lines[False]}"/>' * bool(lines[False])
        + "</g>"
    )


def _ticks(size: int) -> list[int]:
    return [0, *range(4, size, 5)]


def _label(grid: Grid) -> str:
    if grid.asks != grid.seen:
        return "Cross-attention: the decoder sees the whole encoder"
    if all(map(all, grid.rows)):
        return f"{grid.name}: every position sees every position"
    return f"{grid.name}: a position sees itself and those before it"
