"""The drawing of encoder and decoder: boxes, and every arrow there can be."""

from collections.abc import Sequence
from typing import NamedTuple

from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import lowered
from companion.figures.kit.play import Parts

FIRST, PITCH, WIDE, HIGH = 46, 83, 58, 40
"""Middle of the first box, from box to box, and the size of one."""
TOP, MIX, BOTTOM = 36, 132, 222
"""Where the decoder's boxes, the mixtures and the encoder's boxes begin."""


class Wire(NamedTuple):
    """An arrow.

    Attributes:
        start: The state that it leaves, such as ``h1``.
        end: The state that it reaches.
        way: The only way of handing over that has it; empty if all have.
        step: The word it is first used for; 0 while the encoder reads.
        path: How it is drawn.
    """

    start: str
    end: str
    way: str
    step: int
    path: str


def wires_of(weights: list[list[float]]) -> list[Wire]:
    """Collect every arrow, for weights of shape (target, source)."""
    wires = [
        *_reading(len(weights[0])),
        *_writing(len(weights[0]), len(weights)),
    ]
    for i, shares in enumerate(weights, 1):
        wires += _mixing(i, shares)
    return wires


def picture(
    wires: Sequence[Wire],
    source: Sequence[str],
    target: Sequence[str],
    parts: Parts,
) -> str:
    """Draw all boxes and arrows, each of the class that ``parts`` says."""
    boxes = [
        _box(at(i), TOP, lowered("s", i), reads, word, TOP - 10)
        for i, (reads, word) in enumerate(
            zip(["⟨start⟩", *target], target, strict=False), 1
        )
    ]
    boxes += [
        _box(at(j), BOTTOM, lowered("h", j), "", word, BOTTOM + HIGH + 24)
        for j, word in enumerate(source, 1)
    ]
    arrows = [
        f'<g data-part="arrow" class="{kind}">{wire.path}</g>'
        for wire, kind in zip(wires, parts["arrow@class"], strict=True)
    ]
    boxes = [
        f'<g data-part="box" class="{kind}">{inner}</g>'
        for inner, kind in zip(boxes, parts["box@class"], strict=True)
    ]
    return drawing(
        BOTTOM + HIGH + 34,
        "Below, the states of the encoder, each after the one before it; "
        "above, those of the decoder; between them, what is handed over.",
        *arrows,
        *boxes,
    )


def at(i: int) -> int:
    """The middle of the i-th box of a row."""
    return FIRST + PITCH * (i - 1)


def _reading(n: int) -> list[Wire]:
    y = BOTTOM + HIGH / 2
    return [
        Wire(f"h{j}", f"h{j + 1}", "", 0, _beside(j, y)) for j in range(1, n)
    ]


def _writing(n: int, m: int) -> list[Wire]:
    """The memory that is handed over, and the decoder's own; then C again."""
    y = TOP + HIGH / 2
    memory = f"M{at(n)} {BOTTOM}V{BOTTOM - 18}H{at(1) - 14}V{TOP + HIGH + 2}"
    named = label(at(1) + 20, BOTTOM - 24, "memory", "note")
    wires = [Wire(f"h{n}", "s1", "", 1, _up(memory) + named)]
    wires += [
        Wire(f"s{i}", f"s{i + 1}", "", i + 1, _beside(i, y))
        for i in range(1, m)
    ]
    high, way = MIX + 24, "handed over at each step"
    for i in range(1, m + 1):
        told = f"M{at(n) + 10} {BOTTOM}V{high}H{at(i) + 10}V{TOP + HIGH + 2}"
        wires.append(Wire(f"h{n}", f"s{i}", way, i, _up(told)))
    return wires


def _mixing(i: int, shares: list[float]) -> list[Wire]:
    """From every state of the encoder to one mixture, and who asks for it."""
    x, way = at(i), "made anew"
    wires = [
        Wire(f"h{j}", f"s{i}", way, i, _tie(at(j), x, share))
        for j, share in enumerate(shares, 1)
    ]
    if i > 1:
        left = at(i - 1) + 12
        asks = f"M{left} {TOP + HIGH}Q{left + 4} {MIX} {x - 14} {MIX}"
        question = f'<path class="question" d="{asks}"/>' + label(
            at(i - 1) + 4, MIX - 12, "asks", "note"
        )
        wires.append(Wire("asks", "asks", way, i, question))
    name = label(x + 30, MIX + 5, lowered("C", i), "start")
    mixture = (
        _up(f"M{x} {MIX - 12}V{TOP + HIGH + 2}")
        + f'<circle class="mix" cx="{x}" cy="{MIX}" r="12"/>'
        + label(x, MIX + 5, "+")
        + name
    )
    return [*wires, Wire("mix", "mix", way, i, mixture)]


def _tie(x1: int, x2: int, share: float) -> str:
    return (
        f'<line class="tie" x1="{x1}" y1="{BOTTOM}" x2="{x2}" y2="{MIX + 12}" '
        f'stroke-width="{1 + 9 * share:.1f}"/>'
    )


def _beside(i: int, y: float) -> str:
    """An arrow from the i-th box to the next."""
    x = at(i + 1) - WIDE / 2
    return (
        f'<path class="wire" d="M{at(i) + WIDE / 2:g} {y:g}H{x - 3:g}"/>'
        f'<path class="tip" d="M{x:g} {y:g}l-7 -4v8z"/>'
    )


def _up(path: str) -> str:
    """A line that ends upwards, with a tip there."""
    y = path.rpartition("V")[2]
    x = path.rpartition("H")[2].partition("V")[0]
    if "H" not in path:
        x = path[1:].partition(" ")[0]
    return (
        f'<path class="wire" d="{path}"/>'
        f'<path class="tip" d="M{x} {y}l-4 7h8z"/>'
    )


def _box(x: int, y: int, name: str, note: str, word: str, foot: int) -> str:
    inner = label(x, y + (17 if note else 25), name)
    inner += label(x, y + 33, note, "note") if note else ""
    return (
        f'<rect x="{x - WIDE / 2:g}" y="{y}" '
        f'width="{WIDE}" height="{HIGH}" rx="5"/>{inner}'
        f"{label(x, foot, word, 'word')}"
    )
