"""The paper's learning rate: a straight line up, then the root of the step."""

from companion.figures.gallery.noam_curve.view import (
    ABOVE,
    DECADES,
    LAST,
    PLAIN,
    UNIT,
    branches,
    plots,
)
from companion.figures.kit.digits import Number, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.training import noam

WIDTHS = list(range(64, 1025, 64))
WARMUPS = [
    100, 150, 200, 300, 400, 600, 800, 1000,
    1500, 2000, 3000, 4000, 6000, 8000, 12_000, 16_000,
]  # fmt: skip
FACTORS = [0.1, 0.2, 0.5, 1, 2, 5]
START = 512, 4000, 1
NBSP = "\N{NO-BREAK SPACE}"
BRANCHES = (
    "rising: step · warmup<sup>−1.5</sup>",
    "falling: step<sup>−0.5</sup>",
)
CAPTION = """The rate is the smaller of two branches, and the broad line shows
which one that is. They cross at the end of the warm-up, and nowhere else. Move
<i>d_model</i>: in the first plot only the numbers beside the axis change, as it
scales the whole curve. The factor, which many programs put before the paper's
formula, does the same. Move the warm-up and look at the second plot, where both
axes count powers of ten: the peak slides along the falling branch, which stays
where it is."""


def noam_curve() -> Figure:
    """Equation 3 of Vaswani et al. (2017), with a slider for each number.

    The page computes what ``companion.training.noam`` does.
    """
    d_model, warmup, factor = START
    html = inline(
        "noam",
        body=_body(*START),
        label="Learning rate by step, in the schedule of the paper",
        caption=CAPTION,
        data={
            "widths": WIDTHS,
            "warmups": WARMUPS,
            "factors": FACTORS,
            "start": [
                WIDTHS.index(d_model),
                WARMUPS.index(warmup),
                FACTORS.index(factor),
            ],
            "box": [PLAIN.left, PLAIN.right, PLAIN.top, PLAIN.bottom],
            "last": LAST,
            "above": ABOVE,
            "unit": UNIT,
            "decades": DECADES,
        },
        **figure_parts(__file__, sheets=["plot"]),
    )
    return Figure(html, f"Learning rate. {sentence(*START)}")


def steps_shown(warmup: int) -> list[int]:
    """The steps that the table has."""
    return sorted({1, 100, 10_000, 100_000, warmup})


def sentence(d_model: int, warmup: int, factor: Number) -> str:
    """The peak in words, as ``noam.js`` writes it."""
    peak = factor * noam(warmup, d_model, warmup)
    return (
        f"d_model {d_model}, {warmup:,} steps of warm-up, factor {factor}: the "
        "rate rises in a straight line to its peak of "
        f"{short(peak / UNIT)}{NBSP}×{NBSP}10⁻⁴ at step {warmup:,}, which is "
        f"{factor} / √({d_model} · {warmup:,}). Then it falls with one over "
        f"the root of the step: at step {4 * warmup:,} half of the peak is "
        "left."
    )


def _body(d_model: int, warmup: int, factor: Number) -> str:
    """Everything the figure shows without scripts."""
    return (
        f'<div class="controls"></div><div class="plots">'
        f"{plots(d_model, warmup, factor)}</div>"
        f'{_legend()}<p class="says" aria-live="polite">'
        f"{sentence(d_model, warmup, factor)}</p>"
        f"{_table(d_model, warmup, factor)}"
    )


def _legend() -> str:
    kinds = ("rising", "falling", "rate")
    names = (*BRANCHES, "the rate: the smaller one")
    items = "".join(
        f'<li><svg viewBox="0 0 36 12" aria-hidden="true"><path class="{kind}"'
        f' d="M1 6H35"/></svg><span>{name}</span></li>'
        for kind, name in zip(kinds, names, strict=True)
    )
    return f'<ul class="legend">{items}</ul>'


def _table(d_model: int, warmup: int, factor: Number) -> str:
    rows = "".join(
        f"<tr><th scope=row>{step:,}</th>"
        f"{_cells(branches(step, d_model, warmup, factor))}</tr>"
        for step in steps_shown(warmup)
    )
    return (
        '<div class="scroll"><table class="cells"><caption>Rates × 10⁻⁴'
        "</caption><thead><tr><th scope=col>step</th>"
        "<th scope=col>rising</th><th scope=col>falling</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cells(pair: tuple[float, float]) -> str:
    # At the peak both are the same but for the last bit.
    low = min(pair) * (1 + 1e-9)
    return "".join(
        f'<td class="{"least" if rate <= low else "more"}">'
        f"{short(rate / UNIT)}</td>"
        for rate in pair
    )
