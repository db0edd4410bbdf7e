"""The picture of an LSTM cell, and what changes in it with each word."""

from collections.abc import Mapping, Sequence

from companion.figures.kit.diagram import drawing, label, matrix, vector
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.play import Parts

CELL, VALVE, HIGH, BUS = 46, 128, 44, 226
"""The line of the cell; top and height of a gate; the line below the gates."""
GATES = {"forget": 62, "write": 134, "candidate": 206, "read": 286}
LETTERS = {"forget": "f", "write": "i", "candidate": "g", "read": "o"}


def sentence(
    text: str, states: Sequence[tuple[float, float]], step: int
) -> str:
    """Say what happens at a word."""
    old = states[step - 1][0] if step else 0.0
    c, h = states[step]
    return (
        f"{text}: the cell goes from {fixed(old)} to {fixed(c)}, and "
        f"{fixed(h)} is shown."
    )


def frame(
    words: Sequence[str],
    gloss: str,
    gates: Mapping[str, Sequence[Number]],
    states: Sequence[tuple[float, float]],
    step: int,
) -> Parts:
    """Collect what changes with the word."""
    old = states[step - 1] if step else (0.0, 0.0)
    (c, h), values = states[step], [gates[name][step] for name in GATES]
    full = [HIGH * abs(value) for value in values]
    return {
        "word": [words[step], gloss],
        "value": [fixed(value) for value in values],
        "valve@y": [f"{VALVE + HIGH - high:.1f}" for high in full],
        "valve@height": [f"{high:.1f}" for high in full],
        "state": [f"c = {fixed(old[0])}", f"c = {fixed(c)}", f"h = {fixed(h)}"],
        "from": f"h = {fixed(old[1])}",
        "table": matrix(
            [list(pair) for pair in states],
            "cell and output",
            names=words,
            columns=["c", "h"],
            chosen=step,
        ),
        "says": sentence(words[step], states, step),
    }


def body(parts: Parts) -> str:
    """Draw everything the figure shows without scripts."""
    f, i, g, o = GATES.values()
    meet = (i + g) / 2
    wires = [
        vector(8, CELL, 332, CELL, "cell"),
        vector(f, VALVE - 2, f, CELL + 13),
        _way(f"M{i} {VALVE}V96H{meet - 12:g}"),
        _way(f"M{g} {VALVE}V96H{meet + 12:g}"),
        vector(meet, 85, meet, CELL + 13),
        _way(f"M{o - 34} {CELL}V96"),
        _way(f"M{o - 34} 96H{o - 12}"),
        _way(f"M{o} {VALVE}V108"),
        _way(f"M{o + 12} 96H326"),
        vector(326, 96, 326, BUS - 2),
        _way(f"M14 {BUS}H{o}"),
        *[arrow_up(x) for x in GATES.values()],
    ]
    signs = [
        _round(f, CELL, "×"),
        _round(meet, CELL, "+"),
        _round(meet, 96, "×"),
        _round(o, 96, "×"),
        label(o - 34, 84, "tanh", "over"),
    ]
    valves = [
        _gate(x, name, parts, k) for k, (name, x) in enumerate(GATES.items())
    ]
    old, new, shown = parts["state"]
    written = [
        f'<text class="start strong" data-part="state" x="8" y="{CELL - 20}">'
        f"{old}</text>",
        f'<text class="end strong" data-part="state" x="332" y="{CELL - 20}">'
        f"{new}</text>",
        f'<text class="end strong" data-part="state" x="336" y="{BUS + 20}">'
        f"{shown}</text>",
        f'<text class="start note" data-part="from" x="8" y="{BUS + 42}">'
        f"{parts['from']}</text>",
        f'<text class="big" lang="zh" data-part="word" x="146" y="{BUS + 50}">'
        f"{parts['word'][0]}</text>",
        f'<text class="note" data-part="word" x="146" y="{BUS + 68}">'
        f"{parts['word'][1]}</text>",
        vector(146, BUS + 22, 146, BUS + 2),
        vector(24, BUS + 26, 24, BUS + 2),
    ]
    picture = drawing(
        BUS + 78,
        "The cell runs along the top. The forget gate multiplies it, the write "
        "gate times the candidate is added, and the read gate times tanh of "
        "the cell is the output.",
        *wires,
        *signs,
        *valves,
        *written,
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}<div data-part="table">{parts["table"]}</div></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""


def arrow_up(x: Number) -> str:
    """Draw the way from the line below into a gate."""
    return vector(x, BUS, x, VALVE + HIGH + 24)


def _way(path: str) -> str:
    return f'<path class="wire" d="{path}"/>'


def _round(x: Number, y: Number, sign: str) -> str:
    return (
        f'<circle class="sign" cx="{x:g}" cy="{y:g}" r="11"/>'
        f"{label(x, y + 5, sign)}"
    )


def _gate(x: Number, name: str, parts: Parts, k: int) -> str:
    kind = "candidate" if name == "candidate" else "valve"
    return (
        f'<rect class="empty" x="{x - 17}" y="{VALVE}" width="34" '
        f'height="{HIGH}" rx="3"/>'
        f'<rect class="{kind}" data-part="valve" x="{x - 17}" width="34" '
        f'y="{parts["valve@y"][k]}" height="{parts["valve@height"][k]}"/>'
        f'<text class="on" data-part="value" x="{x}" y="{VALVE + 27}">'
        f"{parts['value'][k]}</text>"
        f"{label(x, VALVE + HIGH + 17, f'{name} {LETTERS[name]}', 'over')}"
    )
