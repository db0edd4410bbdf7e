"""Trained losses under the paper's schedule, one warm-up in front."""

from collections.abc import Mapping, Sequence
from statistics import median

from companion.figures.gallery.warmup_curves.view import (
    VIEW,
    Band,
    assembled,
    axes,
    loss_curve,
    loss_frame,
    rate_curve,
    rate_frame,
)
from companion.figures.kit.digits import Number, fixed, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of, table
from companion.training import noam

SPAN = 5
"""A point of a curve is the mean of so many steps."""
SEEDS = 3
TITLES = "Loss, in nats a token", "Rate, in powers of ten"
HEADS = "highest rate", "lowest loss", "middle", "highest"

Runs = dict[int, list[list[float]]]
"""Warm-up -> a run for each seed -> a loss for each step."""


def warmup_curves(
    losses: Mapping[int, Sequence[Sequence[Number]]],
    *,
    d_model: int,
    device: str,
) -> Figure:
    """Losses of runs that differ in their warm-up only, and their rates.

    A slider chooses the warm-up in front. The losses are those of ``losses``;
    the rates are equation 3 of Vaswani et al. (2017).

    Args:
        losses: ``{warmup: runs}``, a run for each seed, three at least. A run
            is a list of losses, one a step.
        d_model: The width that the schedule was computed with.
        device: What the runs were trained on, in a word.

    Raises:
        TypeError: a warm-up or ``d_model`` is not an int.
        ValueError: there is no warm-up, one has fewer than three runs, or
            runs are not of one length, a multiple of five, and finite.
    """
    runs = _checked(losses)
    bands = {warmup: band_of(runs[warmup]) for warmup in runs}
    rates = _rates(runs, d_model)
    frames, curves = _plots(bands, rates)
    says = [sentence(w, bands[w], rates[w], len(runs[w])) for w in runs]
    start = _best(bands)
    talk = f'<p class="says" aria-live="polite">{says[start]}</p>'
    talk += _table(bands, rates, start)
    html = inline(
        "warmup",
        body=_body(frames, curves, start, talk),
        label="Trained losses by warm-up, with their learning rates",
        caption=_caption(len(next(iter(runs.values()))), device),
        data={"warmups": list(runs), "start": start, "says": says,
              "frames": frames, "curves": curves},
        **figure_parts(__file__, sheets=["plot"]),
    )  # fmt: skip
    return Figure(html, f"Warm-up. {says[start]}")


def _checked(losses: Mapping) -> Runs:
    """The runs by rising warm-up, or an error that says what does not fit."""
    if not losses:
        raise ValueError("losses: expected at least one warm-up, got none")
    first = next(iter(losses.values()))
    steps = len(first[0]) if len(first) else 0
    if steps < SPAN or steps % SPAN:
        raise ValueError(
            f"losses: expected runs of a multiple of {SPAN} steps, got {steps}"
        )
    for warmup, runs in losses.items():
        if len(runs) < SEEDS:
            raise ValueError(
                f"losses[{warmup}]: expected at least {SEEDS} runs, got "
                f"{len(runs)}"
            )
    return {
        warmup: rows_of(f"losses[{warmup}]", losses[warmup], width=steps)
        for warmup in sorted(losses)
    }


def _rates(runs: Runs, d_model: int) -> dict[int, list[float]]:
    """Warm-up -> the rate of each step."""
    steps = range(1, len(next(iter(runs.values()))[0]) + 1)
    return {w: [noam(step, d_model, w) for step in steps] for w in runs}


def band_of(runs: Sequence[Sequence[Number]]) -> Band:
    """Lowest, middle and highest seed; each point is a mean of some steps."""
    starts = range(0, len(runs[0]), SPAN)
    points = [
        sorted(sum(run[i : i + SPAN]) / SPAN for run in runs) for i in starts
    ]
    return Band(
        steps=[i + (SPAN + 1) / 2 for i in starts],
        low=[losses[0] for losses in points],
        middle=[median(losses) for losses in points],
        high=[losses[-1] for losses in points],
    )


def sentence(warmup: int, band: Band, rates: list[float], seeds: int) -> str:
    """The chosen schedule in words: its highest rate, and its last losses."""
    steps, top = len(rates), max(rates)
    if warmup < steps:
        rate = (
            f"the rate is highest at step {warmup}, {short(top)}, and then "
            f"falls to {short(rates[-1])}"
        )
    else:
        rate = f"the rate rises up to the last step, {steps}, to {short(top)}"
    low, middle, high = _ends(band)
    return (
        f"Warm-up of {warmup}: {rate}. The last {SPAN} steps lose {middle} in "
        f"the middle of {seeds} seeds, from {low} to {high}."
    )


def _ends(band: Band) -> tuple[str, str, str]:
    return fixed(band.low[-1]), fixed(band.middle[-1]), fixed(band.high[-1])


def _best(bands: dict[int, Band]) -> int:
    """The place of the warm-up whose middle seed loses least at the end."""
    ends = [band.middle[-1] for band in bands.values()]
    return ends.index(min(ends))


def _plots(
    bands: dict[int, Band], rates: dict[int, list[float]]
) -> tuple[list[str], list[list[dict[str, str]]]]:
    """For the loss, then for the rate: what lies behind, and every curve."""
    steps = len(next(iter(rates.values())))
    high = loss_frame(list(bands.values()), steps)
    fast = rate_frame(list(rates.values()), steps)
    return [axes(high), axes(fast, powers=True)], [
        [loss_curve(band, high) for band in bands.values()],
        [rate_curve(line, fast) for line in rates.values()],
    ]


def _body(
    frames: list[str],
    curves: list[list[dict[str, str]]],
    chosen: int,
    talk: str,
) -> str:
    """Everything the figure shows without scripts."""
    drawn = "".join(
        f'<div class="plot"><p class="title">{title}</p><svg viewBox="{VIEW}" '
        f'role="img" aria-label="{title}, over steps; the numbers stand in the '
        f'table.">{assembled(frame, plot, chosen)}</svg></div>'
        for title, frame, plot in zip(TITLES, frames, curves, strict=True)
    )
    return (
        f'<div class="controls"></div><div class="both"><div>{drawn}</div>'
        f"<div>{talk}</div></div>"
    )


def _table(
    bands: dict[int, Band], rates: dict[int, list[float]], chosen: int
) -> str:
    rows = []
    for i, (warmup, band) in enumerate(bands.items()):
        mark = " data-chosen" if i == chosen else ""
        cells = short(max(rates[warmup])), *_ends(band)
        rows.append("".join(f"<td{mark}>{cell}</td>" for cell in cells))
    title = f"Highest rate, and loss of the last {SPAN} steps"
    return table("ends", title, HEADS, [str(w) for w in bands], rows)


def _caption(seeds: int, device: str) -> str:
    """What to see, how it is drawn and where it was measured."""
    return (
        f"Every loss was measured: {seeds} seeds a warm-up, on a {device}, and "
        f"each point is the mean of {SPAN} steps. The band reaches from the "
        "lowest seed to the highest, its line is the middle one; thin lines "
        "are the other warm-ups. Move the warm-up: a long one keeps the rate "
        "low, and a short one makes its peak ● high."
    )
