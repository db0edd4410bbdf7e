"""Cases of the clinic: a symptom, three guesses, the test that decides."""

import re
from collections.abc import Mapping, Sequence
from html import escape

from companion.figures.gallery.clinic.view import PICTURES, picture
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

MOST = 12
GUESSES = 3
TEXTS = ("name", "symptom", "test", "sick", "healthy", "cure")
CAPTION = """Every number was measured in this chapter. Choose a case by a click
or with the arrow keys, read the symptom, choose what you think it is, and run
the test. ✕ is what the test gives for the sick one, ✓ for a healthy one."""


def clinic(cases: Sequence[Mapping]) -> Figure:
    """Cases to diagnose: the reader guesses, then the test decides.

    Args:
        cases: 1 to 12. Each has the texts ``name``, ``symptom``, ``test`` (the
            one that decides), ``sick`` and ``healthy`` (what it gives), and
            ``cure``; three different ``guesses``, and ``right``, the index of
            the one that is. It may have one picture: ``curves``, one or two
            lists of numbers by name; ``lines``, texts by name; or ``matrix``,
            9 rows and columns at most. `` `code` `` in a text is set as code.

    Raises:
        TypeError: a text is no string.
        ValueError: there are too few cases or too many, a case lacks
            something or has something unknown, its guesses are not three
            different ones, or its picture does not fit.
    """
    if not 1 <= len(cases) <= MOST:
        raise ValueError(f"cases: expected 1 to {MOST}, got {len(cases)}")
    for number, case in enumerate(cases):
        _require(f"cases[{number}]", case)
    html = inline(
        "clinic",
        body=_body(cases),
        label="The clinic: cases to diagnose",
        caption=CAPTION,
        data={
            "right": [case["right"] for case in cases],
            "verdicts": [_verdicts(case) for case in cases],
        },
        **figure_parts(__file__, "controls", sheets=["controls", "plot"]),
    )
    first = cases[0]
    return Figure(html, f"The clinic. {first['name']}. {first['symptom']}")


def _verdicts(case: Mapping) -> list[str]:
    """What is said of each guess."""
    right = case["right"]
    return [
        f"Right: {guess}"
        if i == right
        else f"You said: {guess} It is: {_text(case['guesses'][right])}"
        for i, guess in enumerate(map(_text, case["guesses"]))
    ]


def _require(place: str, case: Mapping) -> None:
    """Raises an error that says what does not fit."""
    needed = {*TEXTS, "guesses", "right"}
    missing, unknown = needed - set(case), set(case) - needed - set(PICTURES)
    if missing or unknown:
        raise ValueError(
            f"{place}: expected {', '.join(sorted(needed))} and one of "
            f"{', '.join(PICTURES)} at most, got {', '.join(sorted(case))}"
        )
    for key in TEXTS:
        if not isinstance(case[key], str):
            kind = type(case[key]).__name__
            raise TypeError(f"{place}[{key!r}]: expected a text, got a {kind}")
    if sum(kind in case for kind in PICTURES) > 1:
        raise ValueError(
            f"{place}: expected one picture at most, got several of "
            f"{', '.join(PICTURES)}"
        )
    _require_guesses(place, case)


def _require_guesses(place: str, case: Mapping) -> None:
    guesses = case["guesses"]
    if len(guesses) != GUESSES or len({*guesses}) != GUESSES:
        raise ValueError(
            f"{place}['guesses']: expected {GUESSES} different ones, got "
            f"{guesses}"
        )
    if case["right"] not in range(GUESSES):
        raise ValueError(
            f"{place}['right']: expected 0, 1 or 2, got {case['right']!r}"
        )


def _body(cases: Sequence[Mapping]) -> str:
    """Everything, to read without scripts: a case below the other."""
    names = "".join(
        f"<li><b>{number}</b> <span>{_text(case['name'])}</span></li>"
        for number, case in enumerate(cases)
    )
    sections = "".join(
        _section(number, case) for number, case in enumerate(cases)
    )
    return f'<ul class="cases">{names}</ul>{sections}'


def _section(number: int, case: Mapping) -> str:
    guesses = "".join(f"<li>{_text(guess)}</li>" for guess in case["guesses"])
    return (
        f'<section><p class="title">Patient {number}: {_text(case["name"])}</p>'
        f'<p class="symptom">{_text(case["symptom"])}</p>'
        f"{picture(f'cases[{number}]', case)}"
        f'<ul class="guesses">{guesses}</ul>'
        f"<details><summary>The test that decides</summary>{_answer(case)}"
        "</details></section>"
    )


def _answer(case: Mapping) -> str:
    """What shows once the test was run."""
    right = case["guesses"][case["right"]]
    numbers = "".join(
        f'<div class="{kind}"><dt>{kind}</dt><dd>{mark} {_text(case[kind])}'
        "</dd></div>"
        for kind, mark in (("sick", "✕"), ("healthy", "✓"))
    )
    return (
        f'<p class="verdict" aria-live="polite">It is: {_text(right)}</p>'
        f"<p><b>The test.</b> {_text(case['test'])}</p>"
        f'<dl class="numbers">{numbers}</dl>'
        f"<p><b>The cure.</b> {_text(case['cure'])}</p>"
    )


def _text(text: str) -> str:
    """A text as HTML: what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
