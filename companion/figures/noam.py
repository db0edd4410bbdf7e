"""The paper's learning rate: a straight line up, then the root of the step."""

from companion.figures.digits import short
from companion.figures.figure import Figure
from companion.figures.inline import figure_parts, inline
from companion.figures.noam_drawing import (
    ABOVE,
    BOTTOM,
    DECADES,
    LAST,
    LEFT,
    RIGHT,
    TOP,
    UNIT,
    branches,
    plots,
)
from companion.training import noam

WIDTHS = list(range(64, 1025, 64))
WARMUPS = [
    100, 150, 200, 300, 400, 600, 800, 1000,
    1500, 2000, 3000, 4000, 6000, 8000, 12_000, 16_000,
]  # fmt: skip
START = 512, 4000
NBSP = "\N{NO-BREAK SPACE}"
BRANCHES = (
    "rising: step · warmup<sup>−1.5</sup>",
    "falling: step<sup>−0.5</sup>",
)
CAPTION = """The rate is the smaller of two branches, and the broad line shows
which one that is. They cross at the end of the warm-up, and nowhere else. Move
<i>d_model</i>: in the first plot only the numbers beside the axis change: it
scales the whole curve. Move the warm-up and look at the second plot, where both
axes count powers of ten: the peak slides along the falling branch, which stays
where it is."""


def noam_curve() -> Figure:
    """Equation 3 of Vaswani et al. (2017), with sliders for its two numbers.

    The page computes what ``companion.training.noam`` does.
    """
    d_model, warmup = START
    html = inline(
        "noam",
        body=_body(d_model, warmup),
        label="Learning rate by step, in the schedule of the paper",
        caption=CAPTION,
        data={
            "widths": WIDTHS,
            "warmups": WARMUPS,
            "start": [WIDTHS.index(d_model), WARMUPS.index(warmup)],
            "box": [LEFT, RIGHT, TOP, BOTTOM],
            "last": LAST,
            "above": ABOVE,
            "unit": UNIT,
            "decades": DECADES,
        },
        **figure_parts("noam"),
    )
    return Figure(html, f"Learning rate. {sentence(d_model, warmup)}")


def steps_shown(warmup: int) -> list[int]:
    """The steps that the table has."""
    return sorted({1, 100, 10_000, 100_000, warmup})


def sentence(d_model: int, warmup: int) -> str:
    """The peak in words, as ``noam.js`` writes it."""
    peak = noam(warmup, d_model, warmup)
    return (
        f"d_model {d_model}, {warmup:,} steps of warm-up: the rate rises in a "
        f"straight line to its peak of {short(peak / UNIT)}{NBSP}×{NBSP}10⁻⁴ "
        f"at step {warmup:,}, which is 1 / √({d_model} · {warmup:,}). Then it "
        f"falls with the root of the step: at step {4 * warmup:,} half of the "
        "peak is left."
    )


def _body(d_model: int, warmup: int) -> str:
    """Everything the figure shows without scripts."""
    return (
        f'<div class="controls"></div><div class="plots">'
        f"{plots(d_model, warmup)}</div>"
        f'{_legend()}<p class="says" aria-live="polite">'
        f"{sentence(d_model, warmup)}</p>{_table(d_model, warmup)}"
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


def _table(d_model: int, warmup: int) -> str:
    rows = "".join(
        f"<tr><th scope=row>{step:,}</th>{_cells(step, d_model, warmup)}</tr>"
        for step in steps_shown(warmup)
    )
    return (
        '<div class="scroll"><table class="cells"><caption>Rates × 10⁻⁴'
        "</caption><thead><tr><th scope=col>step</th>"
        "<th scope=col>rising</th><th scope=col>falling</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cells(step: int, d_model: int, warmup: int) -> str:
    pair = branches(step, d_model, warmup)
    # At the peak both are the same but for the last bit.
    low = min(pair) * (1 + 1e-9)
    return "".join(
        f'<td class="{"least" if rate <= low else "more"}">'
        f"{short(rate / UNIT)}</td>"
        for rate in pair
    )
