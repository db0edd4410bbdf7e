"""Curves of training runs: guess what is wrong, then hear the doctor."""

from collections.abc import Mapping
from html import escape
from math import isfinite

from companion.figures.kit.curves import VIEW, curves, spread, thinned
from companion.figures.kit.digits import Number, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, buttons, guess, played

MOST = 7
LISTS = ("loss", "gradient", "rate")
TITLES = (
    "Loss: training, and validation",
    "Gradient norm, in powers of ten",
    "Learning rate",
)
CAPTION = """Every curve was measured. Choose a run, read its plots, choose what
you think is wrong, and ask. The solid line of the first plot is the
training loss, the dashed one with squares the validation loss, where there is
one. A ▴ or a ▾ marks where a line leaves the picture, and a ✕ where a number is
no number any more."""


def run_doctor(runs: Mapping) -> Figure:
    """Runs to diagnose: the reader guesses, then the doctor answers.

    Args:
        runs: ``{name: run}``, seven at most. A run has the lists ``loss``,
            ``gradient`` and ``rate`` with a number a step; ``valid``, losses
            spread evenly over the run, the last one at its end, or None; the
            diagnosis ``finding`` in two or three words, and ``why``. Numbers
            may be NaN or infinite.

    Raises:
        ValueError: there are no runs or more than seven, a run lacks
            something, or its lists are not of one length, two numbers at
            least.
    """
    checked = _checked(runs)
    findings = sorted({run["finding"] for run in checked.values()})
    names = list(checked)
    plots = [_plots(run) for run in checked.values()]
    readings = [_reading(name, run) for name, run in checked.items()]

    def frame(run: int, said: int) -> Parts:
        says = readings[run]
        if said:
            says = _verdict(names[run], checked[names[run]], findings[said - 1])
        return {"plot": plots[run], "says": escape(says)}

    html = played(
        "doctor",
        frame,
        [
            buttons(names, 0),
            guess(
                "Your diagnosis",
                findings,
                "Ask the doctor",
                [findings.index(run["finding"]) for run in checked.values()],
            ),
        ],
        lambda parts: _body(parts, checked),
        module=__file__,
        label="Run doctor: curves of training runs to diagnose",
        caption=CAPTION,
        sheets=["plot"],
    )
    return Figure(html, f"Run doctor. {readings[0]}")


def _checked(runs: Mapping) -> dict[str, dict]:
    """The runs as plain numbers, or an error that says what does not fit."""
    if not 1 <= len(runs) <= MOST:
        raise ValueError(f"runs: expected 1 to {MOST}, got {len(runs)}")
    return {
        str(name): _run(f"runs[{name!r}]", run) for name, run in runs.items()
    }


def _run(place: str, run: Mapping) -> dict:
    for key in (*LISTS, "finding", "why"):
        if key not in run:
            raise ValueError(f"{place}: expected {key!r}, got {sorted(run)}")
    valid = run.get("valid")
    lists = {key: _numbers(run[key]) for key in LISTS}
    lengths = {len(numbers) for numbers in lists.values()}
    if len(lengths) > 1 or min(lengths) < 2:
        raise ValueError(
            f"{place}: expected {', '.join(LISTS)} of one length, at least 2, "
            f"got {', '.join(str(len(lists[key])) for key in LISTS)}"
        )
    return lists | {
        "valid": [] if valid is None else _numbers(valid),
        "finding": str(run["finding"]),
        "why": str(run["why"]),
    }


def _numbers(values) -> list[float]:
    values = values.tolist() if hasattr(values, "tolist") else values
    return [float(value) for value in values]


def _plots(run: dict) -> list[str]:
    steps = len(run["loss"])
    loss, gradient, rate = (thinned(run[key]) for key in LISTS)
    valid = spread(run["valid"], steps)
    return [
        curves([loss, valid] if valid else [loss], steps, cut=True),
        curves([gradient], steps, decades=True),
        curves([rate], steps),
    ]


def _verdict(name: str, run: dict, guess: str) -> str:
    finding = run["finding"]
    if guess == finding:
        return f"Right. {name}: {finding}. {run['why']}"
    return (
        f"You said: {guess}. The doctor says of {name}: {finding}. {run['why']}"
    )


def _reading(name: str, run: dict) -> str:
    """The curves in words, without what they mean."""
    loss = run["loss"]
    words = (
        f"{name}, {len(loss)} steps: the training loss goes from "
        f"{_told(loss[0])} to {_told(loss[-1])}{_validation(run['valid'])}"
    )
    sizes = [size for size in run["gradient"] if isfinite(size)]
    if sizes:
        words += (
            f". The gradient lies between {_told(min(sizes))} and "
            f"{_told(max(sizes))}"
        )
    lost = sum(not isfinite(number) for key in LISTS for number in run[key])
    if lost:
        verb = "numbers are" if lost > 1 else "number is"
        words += f"; {lost} {verb} NaN or infinite"
    return f"{words}{_highest(run['rate'])}. What is wrong?"


def _validation(valid: list[float]) -> str:
    if not valid:
        return ""
    best = min((loss for loss in valid if isfinite(loss)), default=valid[-1])
    return (
        f", the validation loss ends at {_told(valid[-1])}, at best it was "
        f"{_told(best)}"
    )


def _highest(rates: list[float]) -> str:
    rates = [rate for rate in rates if isfinite(rate)]
    return f". The highest rate is {_told(max(rates))}" if rates else ""


def _told(number: Number) -> str:
    return short(number) if isfinite(number) else str(number).replace("-", "−")


def _body(parts: Parts, runs: dict[str, dict]) -> str:
    """Everything the figure shows without scripts: the first run, and all."""
    plots = "".join(
        f'<div class="plot"><p class="title">{title}</p><svg viewBox="{VIEW}" '
        f'role="img" aria-label="{title}; told in words below." '
        f'data-part="plot">{plot}</svg></div>'
        for title, plot in zip(TITLES, parts["plot"], strict=True)
    )
    answers = "".join(
        f"<dt>{escape(name)}: {escape(run['finding'])}</dt>"
        f"<dd>{escape(run['why'])}</dd>"
        for name, run in runs.items()
    )
    return (
        f'<div class="controls"></div><div class="plots">{plots}'
        '<div class="talk"><p class="says" aria-live="polite" '
        f'data-part="says">{parts["says"]}</p>'
        '<div class="guess"></div></div></div><details><summary>All '
        f"diagnoses</summary><dl>{answers}</dl></details>"
    )
