"""Random queries and keys: what width and scale do to a softmax."""

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from companion.attention import softmax, softmax_jacobian
from companion.figures.gallery.saturation.view import (
    BINS,
    GEOMETRY,
    LIMIT,
    State,
    panels,
)
from companion.figures.gallery.score_matrix import movement
from companion.figures.kit.digits import fixed, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

WIDTHS = [4, 16, 64, 256, 1024]
SCALES = {"1": 0, "1/√dₖ": -0.5, "1/dₖ": -1}
"""Name -> the power of dₖ, in the order of ``softmax.js``."""
KEYS = 12
PAIRS = 2000
# With this seed the scores of the one query spread about as those of all pairs.
SEED = 3
START = 64, 6, "1/√dₖ"


class Draw(NamedTuple):
    """The raw dot products at one width."""

    few: list[float]
    """One query with each of twelve keys."""
    many: Tensor
    """Two thousand queries, each with a key of its own."""


def saturation() -> Figure:
    """Scores of random queries and keys, their softmax and its Jacobian, live.

    Every component has mean 0 and variance 1, so a raw score has variance d_k
    (Vaswani et al. 2017, footnote 4). The reader picks d_k, the number of keys
    and what the scores are multiplied by: 1, 1/√d_k or 1/d_k.
    """
    start = state(*START)
    html = inline(
        "saturation",
        body='<div class="controls"></div>'
        f'<p class="says" aria-live="polite">{sentence(start)}</p>'
        + panels(start),
        label="Random scores, their softmax weights and its Jacobian",
        caption=_caption(),
        data=_data(),
        **figure_parts(
            __file__, "softmax", "controls", sheets=["controls", "plot"]
        ),
    )
    return Figure(html, f"Saturation. {sentence(start)}")


def state(d_k: int, n: int, scale: str) -> State:
    """What the figure shows for ``n`` keys of width ``d_k``."""
    factor = d_k ** SCALES[scale]
    few, many = _draws()[d_k]
    scores = torch.tensor(few[:n], dtype=torch.float64) * factor
    weights = softmax(scores)
    return State(
        d_k,
        scale,
        scores.tolist(),
        weights.tolist(),
        softmax_jacobian(weights).tolist(),
        movement(weights).item(),
        _spread(many) * factor,
        counts(many * factor),
    )


def counts(scores: Tensor) -> list[int]:
    """How many scores lie in each bin from -12 to 12, and how many beyond."""
    bins = ((scores + LIMIT) * BINS / (2 * LIMIT)).floor() + 1
    bins = bins.clamp(0, BINS + 1).long()
    return torch.bincount(bins, minlength=BINS + 2).tolist()


def sentence(shown: State) -> str:
    """What the picture shows; ``saturation.js`` says it in the same words."""
    beyond = (shown.counts[0] + shown.counts[-1]) / PAIRS
    return (
        f"dₖ = {shown.d_k}, scale {shown.scale}: random scores have a standard "
        f"deviation of {short(shown.spread)}, and {fixed(100 * beyond, 1)}"
        f"\N{NO-BREAK SPACE}% of them lie beyond ±{LIMIT}. The best of "
        f"{len(shown.weights)} keys gets {fixed(max(shown.weights))} of the "
        "weight, and the weights follow their scores at a rate of at most "
        f"{_moves(shown)}."
    )


def _moves(shown: State) -> str:
    return f"‖J‖₂ = {short(shown.moves)}".replace(" ", "\N{NO-BREAK SPACE}")


@cache
def _draws() -> dict[int, Draw]:
    """Width -> raw scores; a narrow vector is the beginning of a wide one."""
    draw = torch.Generator().manual_seed(SEED)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64)

    few = normal(WIDTHS[-1]) * normal(KEYS, WIDTHS[-1])
    many = normal(PAIRS, WIDTHS[-1]) * normal(PAIRS, WIDTHS[-1])
    # Rounded, so that the page is the same on every machine.
    return {
        d_k: Draw(
            [round(score, 3) for score in few[:, :d_k].sum(1).tolist()],
            many[:, :d_k].sum(1),
        )
        for d_k in WIDTHS
    }


def _spread(scores: Tensor) -> float:
    return round(scores.std().item(), 3)


def _data() -> dict:
    """All that ``saturation.js`` needs for every setting."""
    d_k, n, scale = START
    draws = _draws()
    return {
        "widths": WIDTHS,
        "few": [draws[d_k].few for d_k in WIDTHS],
        "spreads": [_spread(draws[d_k].many) for d_k in WIDTHS],
        "counts": [
            [counts(draws[d_k].many * d_k**power) for power in SCALES.values()]
            for d_k in WIDTHS
        ],
        "start": [WIDTHS.index(d_k), n, list(SCALES).index(scale)],
        "drawing": GEOMETRY,
    }


def _caption() -> str:
    """What to see, in numbers measured here and now."""
    sharp, right, flat = (state(WIDTHS[-1], KEYS, name) for name in SCALES)
    same = [state(d_k, KEYS, "1/√dₖ").moves for d_k in WIDTHS]
    return (
        "Row i, column j of the map tells how weight i moves with score j: a "
        "score lifts its own weight, in blue, and lowers the others, in orange."
        "<details><summary>When you have tried: what one sees</summary>"
        f"Take dₖ = {WIDTHS[-1]} and {KEYS} keys. With scale 1 one key gets "
        f"{fixed(max(sharp.weights))} of the weight, {_moves(sharp)}, and the "
        "map is blank: hardly any gradient passes this softmax. With 1/dₖ the "
        f"best key gets {fixed(max(flat.weights))}, where equal weights are "
        f"{fixed(1 / KEYS)} each: gradient passes, {_moves(flat)}, but the "
        "query hardly chooses. With 1/√dₖ the best key gets "
        f"{fixed(max(right.weights))}, {_moves(right)}; over all five widths "
        f"it lies between {short(min(same))} and {short(max(same))}.</details>"
    )
