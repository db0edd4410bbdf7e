"""The drawing of the two layers, and the vectors of a step."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from companion.figures.kit.diagram import drawing, label, matrix
from companion.figures.kit.digits import Number
from companion.figures.kit.play import Parts
from companion.figures.kit.tables import word

WAYS = ("post-LN", "pre-LN")
STREAM, BRANCH, WIDE = (40, 214), (116, 290), 94
"""Where the way of the word and the parts beside it are, and how wide."""
BOTTOM, TOP = 352, 34

BOXES = {
    "in": ("in", 0, 0),
    # name -> what is highlighted, the way, and its place: middle x, top y
    "attention after": ("attention", 0, 282),
    "norm 1 after": ("norm 1 after", 0, 214),
    "network after": ("network", 0, 144),
    "norm 2 after": ("norm 2 after", 0, 76),
    "norm 1 before": ("norm 1 before", 1, 302),
    "attention before": ("attention", 1, 254),
    "norm 2 before": ("norm 2 before", 1, 164),
    "network before": ("network", 1, 116),
}
SUMS = {
    "add 1 after": (0, 262),
    "add 2 after": (0, 124),
    "add 1 before": (1, 234),
    "add 2 before": (1, 96),
}
HIGH = 30

Rows = list[tuple[str, list[float]]]


class Stage(NamedTuple):
    """A step of the layer.

    Attributes:
        now: What is highlighted.
        says: What happens, in a sentence or two.
        tables: For each way, named vectors.
    """

    now: set[str]
    says: str
    tables: Mapping[str, Rows]


def frame(stage: Stage, features: Sequence[str]) -> Parts:
    """Collect what changes with the step."""
    boxes = [
        "box now" if BOXES[name][0] in stage.now else "box" for name in _drawn()
    ]
    sums = [
        "sum now" if name.rpartition(" ")[0] in stage.now else "sum"
        for name in SUMS
    ]
    return {
        "box@class": boxes,
        "sum@class": sums,
        "says": _worded(stage.says),
        "tables": _tables(stage, features),
    }


def body(parts: Parts, stages: Sequence[Stage], features: Sequence[str]) -> str:
    """Draw everything the figure shows without scripts."""
    every = "".join(
        f"<p>{_worded(stage.says)}</p>{_tables(stage, features)}"
        for stage in stages
    )
    return f"""<div class="side">{_picture(parts)}<div class="step">
<div class="controls"></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>
<div class="tables" data-part="tables">{parts["tables"]}</div></div></div>
<details><summary>All steps at once</summary>{every}</details>"""


def _worded(says: str) -> str:
    return " ".join(word(each) for each in says.split(" "))


def _drawn() -> list[str]:
    return [name for name in BOXES if name != "in"]


def _tables(stage: Stage, features: Sequence[str]) -> str:
    tables = "".join(
        matrix(
            [values for _, values in rows],
            way,
            names=[name for name, _ in rows],
            columns=features,
        )
        for way, rows in stage.tables.items()
    )
    return f'<div class="side">{tables}</div>'


def _picture(parts: Parts) -> str:
    wires = [_stream(way) for way in (0, 1)]
    wires += [_branch(0, 340, 262), _branch(0, 202, 124)]
    wires += [_branch(1, 340, 234), _branch(1, 202, 96)]
    boxes = [
        _box(name, kind)
        for name, kind in zip(_drawn(), parts["box@class"], strict=True)
    ]
    sums = [
        f'<g data-part="sum" class="{kind}"><circle cx="{STREAM[way]}" '
        f'cy="{y}" r="11"/>{label(STREAM[way], y + 5, "+")}</g>'
        for (way, y), kind in zip(
            SUMS.values(), parts["sum@class"], strict=True
        )
    ]
    names = [
        label((STREAM[way] + BRANCH[way]) / 2, 16, text, "way")
        for way, text in enumerate(
            ("post-LN: after the sum", "pre-LN: before the part")
        )
    ]
    foot = [label(STREAM[way], BOTTOM + 16, "x") for way in (0, 1)]
    return drawing(
        BOTTOM + 24,
        "Two layers, read from below. In both, the word's own way leads "
        "straight up, and what attention and network say is added to it. In "
        "post-LN a norm stands on this way after each sum; in pre-LN a norm "
        "stands beside it, before each part.",
        *wires,
        *boxes,
        *sums,
        *names,
        *foot,
    )


def _stream(way: int) -> str:
    x = STREAM[way]
    return (
        f'<path class="own" d="M{x} {BOTTOM}V{TOP + 6}"/>'
        f'<path class="own tip" d="M{x} {TOP - 4}l-6 11h12z"/>'
    )


def _branch(way: int, start: Number, end: Number) -> str:
    """From the way of the word to the parts beside it, and back to the sum."""
    x, beside = STREAM[way], BRANCH[way]
    return (
        f'<path class="wire" d="M{x} {start}H{beside}V{end}H{x + 19}"/>'
        f'<path class="tip" d="M{x + 12} {end}l8 -4v8z"/>'
    )


def _box(name: str, kind: str) -> str:
    _, way, y = BOXES[name]
    norm = name.startswith("norm")
    on_the_way = name.endswith("after") and norm
    x = STREAM[way] if on_the_way else BRANCH[way]
    wide = 62 if norm else WIDE
    text = {"a": "attention", "n": "feed-forward"}[name[0]]
    text = "norm" if norm else text
    tone = "norm" if norm else "part"
    return (
        f'<g data-part="box" class="{kind}"><rect class="{tone}" '
        f'x="{x - wide / 2:g}" y="{y}" width="{wide}" height="{HIGH}" rx="5"/>'
        f"{label(x, y + 20, text)}</g>"
    )
