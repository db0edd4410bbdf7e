"""Attention tile by tile: three numbers a row stay, tiles come and go."""

from collections.abc import Sequence

import torch
from torch import Tensor

from companion.efficiency import Running, merge, running
from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps

LEFT, CELL, HIGH, TOP = 26, 31, 32, 62
"""Where the tiles begin, how wide and high a cell is, where the rows begin."""
GAP = 12
COLUMNS = (38, 38, 44, 44)
"""How wide the columns for maximum, sum, weighed values and output are."""
CAPTION = """In the square stands e to the power of each score, only for the
tile at work; what is pale was used and forgotten, and what is empty was never
computed so far. At the right is all that is kept of a row. Framed in plum:
what this tile reads, and the rows that it changes."""


def tile_sweep(
    exponentials: Sequence[Sequence[Number]],
    values: Sequence[Number],
    block: int,
) -> Figure:
    """Sweep over the tiles of attention, with the rescaling and without it.

    Args:
        exponentials: e to the power of each score, (row, key); at most 4 keys.
        values: One number for each key.
        block: Rows and columns of a tile, a divisor of both.

    Raises:
        ValueError: The numbers do not fit each other, or are not above 0.

    Example:
        >>> tile_sweep([[1, 2], [3, 1]], [10, 20], 1).text
        'Tiles. Nothing is read so far: 4 tiles of 1 × 1 are to come.'
    """
    n, m = len(exponentials), len(values)
    if (
        not 1 <= m <= 4
        or not 1 <= n <= 4
        or any(len(row) != m or min(row) <= 0 for row in exponentials)
        or block < 1
        or n % block
        or m % block
    ):
        raise ValueError(
            "exponentials, values, block: expected at most 4 rows of as many "
            "numbers above 0 as there are values, at most 4, and a divisor of "
            f"both, got {exponentials}, {values} and {block}"
        )
    tiles = [(i, j) for i in range(0, n, block) for j in range(0, m, block)]

    def show(forget: int, step: int) -> Parts:
        return _frame(
            exponentials, values, tiles, block, step, forget=bool(forget)
        )

    controls = [
        choice("The sums so far are", ["rescaled", "left as they are"], 0),
        steps([len(tiles) + 1] * 2, ["Start", "Back", "Next"]),
    ]
    html = played(
        "sweep",
        show,
        controls,
        lambda parts: _body(parts, exponentials, values),
        module=__file__,
        label="Attention, tile by tile",
        caption=CAPTION,
        sheets=["diagram"],
    )
    says = _frame(exponentials, values, tiles, block, 0, forget=False)["says"]
    return Figure(html, f"Tiles. {says}")


def summaries(
    exponentials: Sequence[Sequence[Number]],
    values: Sequence[Number],
    rows: range,
    starts: Sequence[int],
    block: int,
    *,
    forget: bool = False,
) -> list[Running]:
    """List what is known of these rows after each of their tiles.

    Args:
        exponentials: e to the power of each score.
        values: One number for each key.
        rows: Which rows.
        starts: The first key of each tile.
        block: Keys of a tile.
        forget: Leave out the rescaling, the mistake that is shown.
    """
    scores = torch.tensor([exponentials[i] for i in rows]).double().log()
    v = torch.tensor(values).double().unsqueeze(-1)
    found: list[Running] = []
    for at in starts:
        part = running(scores[:, at : at + block], v[at : at + block])
        found.append(_joined(found[-1], part, forget) if found else part)
    return found


def _joined(so_far: Running, part: Running, forget: bool) -> Running:
    merged = merge(so_far, part)
    if not forget:
        return merged
    lower = (part.maximum - merged.maximum).exp()
    return Running(
        merged.maximum,
        so_far.total + part.total * lower,
        so_far.output + part.output * lower.unsqueeze(-1),
    )


def plain(value: Number) -> str:
    """Write a number with two decimals at most.

    Example:
        >>> plain(27.5), plain(2.0), plain(22.857)
        ('27.5', '2', '22.86')
    """
    return fixed(value, 2).rstrip("0").rstrip(".")


def _frame(
    exponentials: Sequence[Sequence[Number]],
    values: Sequence[Number],
    tiles: Sequence[tuple[int, int]],
    block: int,
    step: int,
    *,
    forget: bool,
) -> Parts:
    n, m = len(exponentials), len(values)
    now = tiles[step - 1] if step else (-1, -1)
    kinds, kept = [], []
    for i in range(n):
        first = i - i % block
        begun = [t for t in tiles[:step] if t[0] == first]
        for j in range(m):
            tile = (first, j - j % block)
            if step and tile == now:
                kinds.append("now")
            else:
                kinds.append("gone" if tile in begun else "later")
        if not begun:
            kept.append(["", "", "", ""])
            continue
        rows = range(first, first + block)
        starts = [j for _, j in begun]
        known = summaries(
            exponentials, values, rows, starts, block, forget=forget
        )
        kept.append(
            _numbers(known[-1], i - first, done=len(begun) * block == m)
        )
    here = [
        "now" if step and now[0] <= i < now[0] + block else "kept"
        for i in range(n)
    ]
    return {
        "cell@class": kinds,
        "key@class": [
            "now" if step and now[1] <= j < now[1] + block else "later"
            for j in range(m)
        ],
        "row@class": here,
        "number": [text for row in kept for text in row],
        "says": _says(exponentials, values, tiles, block, step, forget=forget),
    }


def _numbers(known: Running, row: int, *, done: bool) -> list[str]:
    total, output = float(known.total[row]), float(known.output[row])
    largest = float(known.maximum[row].exp())
    out = plain(output / total) if done else ""
    return [
        f"ln {plain(largest)}",
        plain(total),
        plain(output),
        out,
    ]


def _says(
    exponentials: Sequence[Sequence[Number]],
    values: Sequence[Number],
    tiles: Sequence[tuple[int, int]],
    block: int,
    step: int,
    *,
    forget: bool,
) -> str:
    if not step:
        return (
            f"Nothing is read so far: {len(tiles)} tiles of {block} × {block} "
            "are to come."
        )
    first, at = tiles[step - 1]
    starts = [j for i, j in tiles[:step] if i == first]
    rows = range(first, first + block)
    known = summaries(exponentials, values, rows, starts, block, forget=forget)
    m = len(values)
    says = f"Tile {step} of {len(tiles)}: "
    if len(starts) == 1:
        says += "these rows begin here, so there is nothing to rescale."
    else:
        factor = (known[-2].maximum - known[-1].maximum).exp().tolist()
        parts = " and ".join(plain(each) for each in factor)
        says += (
            f"the old sums should be multiplied by {parts}, and are left as "
            "they are."
            if forget
            else f"the old sums are multiplied by {parts}, and what is new is "
            "added."
        )
    if at + block == m:
        outputs = (known[-1].output[:, 0] / known[-1].total).tolist()
        right = _attend(exponentials, values, rows)
        told = " and ".join(map(plain, outputs))
        says += f" All keys are read; divided, the rows are {told}"
        if [round(x, 6) for x in outputs] != [round(x, 6) for x in right]:
            says += f", where {' and '.join(map(plain, right))} are right"
        says += "."
    return says


def _attend(
    exponentials: Sequence[Sequence[Number]],
    values: Sequence[Number],
    rows: range,
) -> list[float]:
    """Compute the output of rows the usual way."""
    parts: Tensor = torch.tensor([exponentials[i] for i in rows]).double()
    v = torch.tensor(values).double()
    return (parts @ v / parts.sum(-1)).tolist()


def _body(
    parts: Parts,
    exponentials: Sequence[Sequence[Number]],
    values: Sequence[Number],
) -> str:
    n, m = len(exponentials), len(values)
    grid, heads = "", ""
    for j, value in enumerate(values):
        x = LEFT + CELL * j
        heads += (
            f'<g data-part="key" class="{parts["key@class"][j]}">'
            + _cell(x, 28, CELL, plain(value))
            + "</g>"
        )
    for i, row in enumerate(exponentials):
        for j, number in enumerate(row):
            kind = parts["cell@class"][i * m + j]
            grid += (
                f'<g data-part="cell" class="{kind}">'
                + _cell(LEFT + CELL * j, TOP + HIGH * i, CELL, plain(number))
                + "</g>"
            )
    kept, numbers = "", iter(parts["number"])
    edges = [LEFT + CELL * m + GAP]
    for wide in COLUMNS:
        edges.append(edges[-1] + wide)
    for i in range(n):
        cells = ""
        for x, wide in zip(edges, COLUMNS, strict=False):
            middle = x + wide / 2
            cells += (
                f'<rect x="{x + 1:g}" y="{TOP + HIGH * i + 1:g}" '
                f'width="{wide - 2:g}" height="{HIGH - 2}" rx="3"/>'
                f'<text data-part="number" x="{middle:g}" '
                f'y="{TOP + HIGH * i + 21:g}">{next(numbers)}</text>'
            )
        kept += (
            f'<g data-part="row" class="{parts["row@class"][i]}">'
            + label(LEFT / 2, TOP + HIGH * i + 21, f"q{i + 1}", "word")
            + cells
            + "</g>"
        )
    titles = "".join(
        label(x + wide / 2, TOP - 8, title, "note")
        for x, wide, title in zip(
            edges, COLUMNS, ("m", "ℓ", "a", "a / ℓ"), strict=False
        )
    )
    picture = drawing(
        TOP + HIGH * n + 4,
        "A square of scores, of which one tile is at work, under the values of "
        "its keys; beside it the numbers that are kept of each row.",
        label(LEFT + CELL * m / 2, 18, "values of the keys", "note"),
        label(sum((edges[0], edges[-1])) / 2, 18, "kept of each row", "note"),
        heads,
        titles,
        grid,
        kept,
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p></div>"""


def _cell(x: Number, y: Number, wide: Number, text: str) -> str:
    high = HIGH if wide == CELL and y >= TOP else 26
    return (
        f'<rect x="{x + 1:g}" y="{y + 1:g}" width="{wide - 2:g}" '
        f'height="{high - 2}" rx="3"/>'
        f"{label(x + wide / 2, y + high / 2 + 5, text)}"
    )
