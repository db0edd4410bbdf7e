"""The map of multi-head attention, and the step that is being looked at."""

from collections.abc import Sequence
from typing import NamedTuple

from companion.figures.kit.diagram import (
    WIDTH,
    drawing,
    equation,
    label,
    matrix,
)
from companion.figures.kit.digits import Number
from companion.figures.kit.play import Parts

Rows = list[list[float]]
Table = tuple[str, Rows, int | str | None]
"""Name, rows, and whose colour: a head's, that of columns or rows, or none."""

WIDE, HIGH = 92, 30
MIDDLES = {"X": (170, 6), "Q": (58, 72), "K": (170, 72), "V": (282, 72)}
HEADS, JOIN, OUTPUT = 158, 244, 316
"""How far down the heads, their outputs side by side, and the output are."""


class Stage(NamedTuple):
    """A step of multi-head attention.

    Attributes:
        boxes: The boxes of the map that it is.
        says: What happens, in a sentence or two.
        rows: Lines of tables.
        signs: What stands between the tables of a line.
        names: What the columns of the only table are called.
    """

    boxes: list[str]
    says: str
    rows: list[list[Table]]
    signs: Sequence[str] = ()
    names: Sequence[str] | None = None


def frame(
    stages: Sequence[Stage],
    step: int,
    words: Sequence[str],
    row: int,
    num_heads: int,
    *,
    everybody: bool,
) -> Parts:
    """Collect what changes with the step, and with one row or all."""
    stage = stages[step]
    return {
        "box@class": [
            "box now" if name in stage.boxes else "box"
            for name in _places(num_heads)
        ],
        "tables": _tables(stage, words, row, num_heads),
        # The same tables: which rows step back is a matter of style.
        "tables@class": "everybody" if everybody else "one",
        "says": stage.says,
    }


def body(
    parts: Parts,
    stages: Sequence[Stage],
    words: Sequence[str],
    row: int,
    num_heads: int,
) -> str:
    """Draw everything the figure shows without scripts."""
    every = "".join(
        f"<p>{stage.says}</p>{_tables(stage, words, row, num_heads)}"
        for stage in stages
    )
    return f"""<div class="controls"></div>
<div class="side">{_map(parts, num_heads)}<div class="step">
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>
<div data-part="tables" class="one">{parts["tables"]}</div></div></div>
<details><summary>All steps at once</summary>
<div class="everybody">{every}</div></details>"""


def _places(num_heads: int) -> dict[str, tuple[Number, Number]]:
    """Middle and top of each box."""
    heads = {
        f"head {i + 1}": (WIDTH * (i + 0.5) / num_heads, HEADS)
        for i in range(num_heads)
    }
    rest = {"side by side": (170, JOIN), "output": (170, OUTPUT)}
    return MIDDLES | heads | rest


def _map(parts: Parts, num_heads: int) -> str:
    places = _places(num_heads)
    wires = [
        _line(170, 6 + HIGH, places[name][0], places[name][1])
        for name in ("Q", "K", "V")
    ]
    for i in range(num_heads):
        x = places[f"head {i + 1}"][0]
        for name in ("Q", "K", "V"):
            middle = places[name][0]
            wires.append(
                _line(_column(middle, i, num_heads), 72 + HIGH, x, HEADS, i)
            )
        wires.append(
            _line(x, HEADS + HIGH, _column(170, i, num_heads), JOIN, i)
        )
    wires.append(_line(170, JOIN + HIGH, 170, OUTPUT))
    boxes = [
        _box(x, y, name, kind, num_heads)
        for (name, (x, y)), kind in zip(
            places.items(), parts["box@class"], strict=True
        )
    ]
    return drawing(
        OUTPUT + HIGH + 6,
        "X becomes Q, K and V; each head takes its own columns of the three "
        "and attends; the outputs lie side by side, and W_O mixes them.",
        *wires,
        *boxes,
        label(196, 306, "W_O", "note"),
    )


def _column(middle: Number, head: int, num_heads: int) -> float:
    """Where a head's columns are, in a box with this middle."""
    return middle - WIDE / 2 + WIDE * (head + 0.5) / num_heads


def _line(
    x1: Number, y1: Number, x2: Number, y2: Number, head: int | None = None
) -> str:
    hue = "" if head is None else f" hue{head}"
    return f'<path class="wire{hue}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'


def _box(x: Number, y: Number, name: str, kind: str, num_heads: int) -> str:
    """A box; a stripe of each head's colour where it holds all heads."""
    left = x - WIDE / 2
    stripes = ""
    if name in ("Q", "K", "V", "side by side"):
        each = WIDE / num_heads
        stripes = "".join(
            f'<rect class="stripe hue{i}" x="{left + i * each:g}" y="{y:g}" '
            f'width="{each:g}" height="{HIGH}"/>'
            for i in range(num_heads)
        )
    elif name.startswith("head"):
        stripes = (
            f'<rect class="stripe hue{int(name[5:]) - 1}" x="{left:g}" '
            f'y="{y:g}" width="{WIDE}" height="{HIGH}"/>'
        )
    return (
        f'<g data-part="box" class="{kind}"><rect class="frame" x="{left:g}" '
        f'y="{y:g}" width="{WIDE}" height="{HIGH}" rx="4"/>{stripes}'
        f"{label(x, y + 20, name)}</g>"
    )


def _tables(
    stage: Stage, words: Sequence[str], row: int, num_heads: int
) -> str:
    return "".join(
        equation(
            [_table(table, stage, words, row, num_heads) for table in line],
            stage.signs or [""] * (len(line) - 1),
        )
        for line in stage.rows
    )


def _table(
    table: Table,
    stage: Stage,
    words: Sequence[str],
    row: int,
    num_heads: int,
) -> str:
    name, rows, whose = table
    learned = name.startswith("W")
    by_word = name.startswith(("scores", "weights"))
    # Whoever asks asks them all: keys and values have no row of their own.
    asked = learned or name.startswith(("K", "V")) or "Cut" in stage.says

    def hue(i: int, j: int) -> int:
        if isinstance(whose, int):
            return whose
        at, size = (j, len(rows[0])) if whose == "columns" else (i, len(rows))
        return at * num_heads // size

    return matrix(
        rows,
        name,
        names=None if learned else words,
        columns=words if by_word else stage.names,
        chosen=None if asked else row,
        hue=None if whose is None else hue,
    )
