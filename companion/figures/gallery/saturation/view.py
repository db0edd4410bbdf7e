"""The panels of ``saturation``: histogram, weights and Jacobian."""

from math import ceil
from typing import NamedTuple

from companion.figures.kit.digits import Number, fixed, lowered, short
from companion.figures.kit.tables import table, tinted

LEFT, RIGHT, TOP, BOTTOM = 44, 336, 22, 176
VIEW = "0 0 340 226"
LIMIT, BINS = 12, 49
"""The axis runs from -LIMIT to LIMIT; the middle bin has 0 in its middle."""
SIDE, GAP = 3, 1
"""What lies beyond has a bar at either end, in bins: its width, and the gap."""
BIN = (RIGHT - LEFT) / (BINS + 2 * (SIDE + GAP))
GEOMETRY = {
    "box": [LEFT, RIGHT, TOP, BOTTOM],
    "limit": LIMIT,
    "bins": BINS,
    "side": SIDE,
    "gap": GAP,
}
STRONGEST = 25
"""No entry of J exceeds 1/4, and the map writes hundredths."""


class State(NamedTuple):
    """What one setting of the controls shows."""

    d_k: int
    scale: str
    scores: list[float]
    weights: list[float]
    jacobian: list[list[float]]
    moves: float
    """‖J‖₂, the largest rate at which the weights follow the scores."""
    spread: float
    """Standard deviation of the scores of the many pairs."""
    counts: list[int]
    """How many of them lie in each bin; the first and last lie beyond."""


def panels(shown: State) -> str:
    """All panels as HTML; ``saturation.js`` draws the same ones anew."""
    return (
        f'<div class="panels">{_histogram(shown)}{_weights(shown)}</div>'
        f"{_jacobian(shown)}"
    )


def top_of(counts: list[int]) -> int:
    """Where the upward axis ends: tenths of all scores, rounded up."""
    return ceil(10 * max(counts) / sum(counts))


def bars(counts: list[int]) -> list[str]:
    """Paths of the bars: those on the axis, and the two for the rest."""
    first, *within, last = counts
    start = SIDE + GAP
    ends = (0, first), (BINS + SIDE + 2 * GAP, last)
    high = top_of(counts) * sum(counts) / 10
    return [
        "".join(_bar(at, 1, n / high) for at, n in enumerate(within, start)),
        "".join(_bar(at, SIDE, n / high) for at, n in ends),
    ]


def strokes(scores: list[float]) -> str:
    """A stroke below the axis for the score of each key."""
    return "".join(f"M{fixed(place(s), 1)} {BOTTOM + 2}v12" for s in scores)


def place(score: Number) -> float:
    """Pixels from the left; what lies beyond stands below the bar for that."""
    bins = (score / LIMIT + 1) * BINS / 2
    if abs(score) > LIMIT:
        bins = -GAP - SIDE / 2 if score < 0 else BINS + GAP + SIDE / 2
    return LEFT + BIN * (SIDE + GAP + bins)


def _bar(at: int, width: int, share: float) -> str:
    if not share:
        return ""
    x = LEFT + BIN * at
    y = BOTTOM - (BOTTOM - TOP) * share
    wide = fixed(BIN * width - 0.8, 1)
    return f"M{fixed(x, 1)} {BOTTOM}V{fixed(y, 1)}h{wide}V{BOTTOM}z"


def _histogram(shown: State) -> str:
    within, beyond = bars(shown.counts)
    total = sum(shown.counts)
    return (
        f'<div class="plot"><p class="title">Scores of {total:,} random pairs'
        f'</p><svg viewBox="{VIEW}" role="img" aria-label="Histogram of scores '
        f"from −{LIMIT} to {LIMIT}, with a bar at either end for those beyond; "
        'the sentence above tells how wide it is.">'
        f'{_frame(top_of(shown.counts))}<path class="within" d="{within}"/>'
        f'<path class="beyond" d="{beyond}"/>'
        f'<path class="keys" d="{strokes(shown.scores)}"/></svg></div>'
    )


def _frame(top: int) -> str:
    """The axes; of the upward one the script changes the words only."""
    rows = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y + 4}">{share} %</text>'
        for share, y in (
            (0, BOTTOM),
            (5 * top, (TOP + BOTTOM) // 2),
            (10 * top, TOP),
        )
    )
    far, half = 2 * LIMIT, LIMIT // 2
    names = {at: fixed(at, 0) for at in (-half, 0, half)}
    names |= {-far: f"&lt; −{LIMIT}", far: f"&gt; {LIMIT}"}
    columns = "".join(
        f'<text x="{fixed(place(at), 1)}" y="{BOTTOM + 28}">{name}</text>'
        for at, name in names.items()
    )
    return (
        f'{rows}{columns}<text class="name" x="{(LEFT + RIGHT) // 2}" '
        f'y="{BOTTOM + 45}">z = q · k · scale (strokes: the keys)</text>'
    )


def _weights(shown: State) -> str:
    rows = [
        f"<td>{fixed(score)}</td><td class=share><div><i>"
        f'<b style="width: {fixed(100 * weight, 1)}%"></b></i>'
        f"<span>{fixed(weight)}</span></div></td>"
        for score, weight in zip(shown.scores, shown.weights, strict=True)
    ]
    names = _names("k", len(rows))
    title = "One query and its keys"
    return table("weights", title, ["z", "weight p"], names, rows)


def _jacobian(shown: State) -> str:
    rows = [
        tinted([100 * entry for entry in row], STRONGEST, 0)
        for row in shown.jacobian
    ]
    title = (
        "Jacobian J in hundredths, ‖J‖₂\N{NO-BREAK SPACE}= "
        f'<b class="norm">{short(shown.moves)}</b>'
    )
    n = len(rows)
    return table("jacobian", title, _names("z", n), _names("p", n), rows)


def _names(letter: str, number: int) -> list[str]:
    return [lowered(letter, i) for i in range(1, number + 1)]
