"""The map of attention, and beside it the step that is being looked at."""

import re
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

from companion.figures.kit.diagram import (
    arrow,
    box,
    drawing,
    equation,
    label,
    matrix,
)
from companion.figures.kit.play import Parts

Rows = list[list[float]]
PLACES = {
    "X": (170, 8),
    "Q": (60, 92),
    "K": (170, 92),
    "V": (280, 92),
    "QKᵀ": (115, 168),
    "÷ √dₖ": (115, 234),
    "softmax": (115, 300),
    "output": (198, 376),
}
"""Middle and top of each box of the map."""

WIRES = (
    (170, 50, 70, 60, 90),
    (170, 50, 90),
    (170, 50, 70, 280, 90),
    (60, 134, 150, 95, 166),
    (170, 134, 150, 135, 166),
    (115, 210, 232),
    (115, 276, 298),
    (115, 342, 358, 178, 374),
    (280, 134, 358, 218, 374),
)
_SUBSCRIPT = re.compile(r"_(\w)")


class Stage(NamedTuple):
    """A step of attention.

    Attributes:
        box: The box of the map that it is.
        says: What happens, in a sentence.
        operands: Name, rows, and whether a row belongs to the word that asks.
        result: What comes out.
        sign: What is done with the operands.
    """

    box: str
    says: str
    operands: list[tuple[str, Rows, bool]]
    result: Rows
    sign: str = "×"


def frame(
    stages: Sequence[Stage], step: int, words: Sequence[str], row: int | None
) -> Parts:
    """Collect what changes with the step, and with one row or all."""
    stage = stages[step]
    return {
        "box@class": [
            "box now" if name == stage.box else "box" for name in PLACES
        ],
        "equation": _equation(stage, words, row),
        "says": stage.says,
    }


def body(
    parts: Parts,
    stages: Sequence[Stage],
    words: Sequence[str],
    shapes: Mapping[str, str],
) -> str:
    """Draw everything the figure shows without scripts."""
    boxes = [
        box(x, y, name, shapes[name], wide=92 if y > 150 else 66)
        for name, (x, y) in PLACES.items()
    ]
    boxes[0] = boxes[0].replace('class="box"', 'class="box now"')
    names = [
        label(84, 66, "W_Q", "note"),
        label(188, 82, "W_K", "note"),
        label(254, 66, "W_V", "note"),
    ]
    picture = drawing(
        426,
        "X becomes Q, K and V; Q meets K in the scores, which are scaled and "
        "turned into weights; the weights average V.",
        *starmap(arrow, WIRES),
        *boxes,
        *names,
    )
    every = "".join(
        f"<p>{stage.says}</p>{_equation(stage, words, None)}"
        for stage in stages
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}<div class="step">
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>
<div data-part="equation">{parts["equation"]}</div></div></div>
<details><summary>All steps at once</summary>{every}</details>"""


def _equation(stage: Stage, words: Sequence[str], row: int | None) -> str:
    tables = [
        _table(name, rows, words, row if asks else None)
        for name, rows, asks in stage.operands
    ]
    name = {"÷ √dₖ": "scores", "softmax": "weights"}.get(stage.box, stage.box)
    everybody = stage.box in ("K", "V")
    tables.append(_table(name, stage.result, words, None if everybody else row))
    signs = [stage.sign, "="] if len(tables) > 2 else [stage.sign]
    return equation(tables, signs[: len(tables) - 1])


def _table(name: str, rows: Rows, words: Sequence[str], row: int | None) -> str:
    learned = name.startswith("W")
    by_word = name in ("QKᵀ", "scores", "weights", "Kᵀ")
    return matrix(
        rows,
        _SUBSCRIPT.sub(r"<sub>\1</sub>", name),
        names=None if learned or name == "Kᵀ" else words,
        columns=words if by_word else None,
        chosen=row,
    )
