"""The drawing of the layer, whose parts are exchanged, and the numbers."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from companion.figures.kit.diagram import drawing, label, matrix
from companion.figures.kit.digits import Number
from companion.figures.kit.play import Parts

STREAM, BRANCH, WIDE, HIGH = 84, 238, 164, 30
BOTTOM, TOP = 396, 16


class Table(NamedTuple):
    """A few numbers, before and after.

    Attributes:
        name: What is counted.
        columns: What stands above the numbers.
        rows: What stands beside them.
        numbers: A list for each row.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[str]
    numbers: Sequence[Sequence[Number]]


class Stage(NamedTuple):
    """One exchange.

    Attributes:
        name: What the reader presses.
        new: What is exchanged in it.
        says: What for, in a sentence or two.
        table: A number for it.
    """

    name: str
    new: set[str]
    says: str
    table: Table


class Box(NamedTuple):
    """A part of the layer: its middle across, its top, its text, its kind."""

    x: Number
    y: Number
    text: str
    kind: str
    shows: set[str]


def frame(stages: Sequence[Stage], step: int) -> Parts:
    """Collect what changes with the step."""
    changed = set().union(*(stage.new for stage in stages[: step + 1]))
    return {
        "picture": picture(changed, stages[step].new),
        "says": escape(stages[step].says),
        "numbers": _numbers(stages[step].table),
    }


def body(parts: Parts, stages: Sequence[Stage]) -> str:
    """Draw everything the figure shows without scripts."""
    every = "".join(
        f"<p><b>{escape(stage.name)}.</b> {escape(stage.says)}</p>"
        f"{_numbers(stage.table)}"
        for stage in stages
    )
    return f"""<div class="side"><div data-part="picture">{parts["picture"]}
</div><div class="step"><div class="controls"></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>
<div data-part="numbers">{parts["numbers"]}</div></div></div>
<details><summary>All exchanges at once</summary>{every}</details>"""


def boxes(changed: set[str]) -> list[Box]:
    """List the parts of the layer after these exchanges, from below."""
    pre = "pre" in changed
    norm = "RMSNorm" if "rms" in changed else "LayerNorm"
    network = "SwiGLU, 8/3 d" if "swiglu" in changed else "ReLU, 4 d"
    attention = "attention"
    if "rope" in changed:
        attention += " + RoPE"
    if "grouped" in changed:
        attention = "shared keys + RoPE"
    across = BRANCH if pre else STREAM
    tops = (300, 254, 154, 108) if pre else (198, 262, 52, 116)
    norms = {"pre", "rms"}
    found = [
        Box(across, tops[0], norm, "norm", norms),
        Box(BRANCH, tops[1], attention, "part", {"rope", "grouped"}),
        Box(across, tops[2], norm, "norm", norms),
        Box(BRANCH, tops[3], network, "part", {"swiglu"}),
    ]
    if "rope" not in changed:
        found.append(Box(BRANCH, 350, "sinusoids", "part", set()))
    return found


def picture(changed: set[str], new: set[str]) -> str:
    """Draw the layer; what is new has a bold frame."""
    pre = "pre" in changed
    drawn = boxes(changed)
    branches = ((342, 234), (196, 88)) if pre else ((310, 242), (174, 96))
    wires = [
        f'<path class="own" d="M{STREAM} {BOTTOM}V{TOP + 8}"/>',
        f'<path class="own tip" d="M{STREAM} {TOP - 2}l-6 11h12z"/>',
        *(_branch(*each) for each in branches),
    ]
    sums = [_sum(end) for _, end in branches]
    if len(drawn) == 5:
        wires.append(_wire(f"M{BRANCH} 365H{STREAM + 19}", 365))
        sums.append(_sum(365))
    shapes = [_box(box, now=bool(box.shows & new)) for box in drawn]
    plain = "plain" in changed
    note = label(
        BRANCH,
        BOTTOM + 16,
        "no biases" if plain else "biases everywhere",
        "note now" if "plain" in new else "note",
    )
    words = ", ".join(box.text for box in drawn)
    return drawing(
        BOTTOM + 24,
        f"A layer, read from below. Norms stand "
        f"{'before each part' if pre else 'after each sum'}. Its parts: "
        f"{words}; {'no biases' if plain else 'with biases'}.",
        *wires,
        *shapes,
        *sums,
        label(STREAM, BOTTOM + 16, "words"),
        note,
    )


def _numbers(table: Table) -> str:
    named = any(table.rows)
    return '<div class="scroll">{}</div>'.format(
        matrix(
            table.numbers,
            escape(table.name),
            names=table.rows if named else None,
            columns=table.columns if any(table.columns) else None,
            places=3 if table.name.startswith(("how", "(")) else 2,
        )
    )


def _branch(start: Number, end: Number) -> str:
    path = f"M{STREAM} {start}H{BRANCH}V{end}H{STREAM + 19}"
    return _wire(path, end)


def _wire(path: str, end: Number) -> str:
    return (
        f'<path class="wire" d="{path}"/>'
        f'<path class="tip" d="M{STREAM + 12} {end}l8 -4v8z"/>'
    )


def _sum(y: Number) -> str:
    return (
        f'<g class="sum"><circle cx="{STREAM}" cy="{y}" r="11"/>'
        f"{label(STREAM, y + 5, '+')}</g>"
    )


def _box(box: Box, *, now: bool) -> str:
    wide = 92 if box.kind == "norm" else WIDE
    return (
        f'<g class="box{" now" * now}"><rect class="{box.kind}" '
        f'x="{box.x - wide / 2:g}" y="{box.y}" width="{wide}" '
        f'height="{HIGH}" rx="5"/>{label(box.x, box.y + 20, box.text)}</g>'
    )
