"""Questions as a page or a notebook shows them: as a quiz, or an interview."""

import json
from collections.abc import Collection, Sequence
from itertools import starmap
from pathlib import Path

from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import HERE as FIGURES
from companion.figures.kit.inline import inline, read_style
from companion.interview.model.bank import course, load
from companion.interview.model.markup import to_plain
from companion.interview.model.mock import GOOD, WEAK, pick
from companion.interview.model.question import Question, require
from companion.interview.model.words import ASKS, LANGUAGES, LEVEL
from companion.interview.web.card import card, facts, key

__all__ = ["mock", "quiz", "script", "show", "style"]

HERE = Path(__file__).parent
QUIZ = "cards", "progress", "quiz"
"""The scripts of a list of questions."""


def show(chapter: str, ids: Sequence[str] = ()) -> Figure:
    """Show a chapter's questions, to be answered in the page.

    Args:
        chapter: The chapter's word, one of ``companion.CHAPTERS``.
        ids: Which questions, in this order; empty means all.

    Returns:
        A figure that needs no kernel.

    Raises:
        ValueError: There is no such chapter, it has no such question, or the
            bank has a fault.

    Example:
        >>> print(show("rnn").text.splitlines()[0][:45])
        1. [junior, open] Why is a feed-forward netwo
    """
    questions = load(chapter)
    known = {question.id: question for question in questions}
    for each in ids:
        require("ids", each, known)
    chosen = [known[each] for each in ids] or questions
    return quiz(chosen, f"Interview questions: {chapter}")


def quiz(questions: Sequence[Question], label: str) -> Figure:
    """Show some questions as a list of cards."""
    return _figure(
        questions,
        label,
        scripts=QUIZ,
        data=[key(question) for question in questions],
    )


def mock(
    *,
    level: str = "senior",
    minutes: int = 30,
    chapters: Collection[str] = (),
    language: str = "both",
    seed: int = 0,
) -> Figure:
    """Show a mock interview: question by question, a clock, and a report.

    Once shown it needs no kernel. For one seed the bank page and the terminal
    pick the same questions.

    Args:
        level: The highest: junior, mid or senior.
        minutes: How long it may take, by the questions' own minutes.
        chapters: The topics; empty means all.
        language: both, en or zh.
        seed: From 0 to 2^32 − 1.

    Raises:
        ValueError: An argument is not one of these, no question fits, or the
            bank has a fault.
    """
    require("language", language, LANGUAGES)
    picked = pick(
        course(), level=level, minutes=minutes, chapters=chapters, seed=seed
    )
    return _figure(
        picked,
        "Mock interview",
        scripts=("cards", "progress", "session", "resume", "mock"),
        data={
            "keys": {question.id: key(question) for question in picked},
            "facts": [facts(question) for question in picked],
            "minutes": minutes,
            "seed": seed,
            "language": language,
        },
    )


def _figure(
    questions: Sequence[Question],
    label: str,
    scripts: Sequence[str],
    data: object,
) -> Figure:
    items = "".join(starmap(card, enumerate(questions, 1)))
    html = inline(
        "quiz",
        body=f'<ol class="questions">{items}</ol>',
        label=label,
        style=style("quiz"),
        script=script(*scripts),
        data=data,
    )
    return Figure(html, "\n".join(starmap(_listed, enumerate(questions, 1))))


def style(*names: str) -> str:
    """Read style sheets of this folder, one after the other."""
    return " ".join(read_style(HERE / f"{name}.css") for name in names)


def script(*names: str) -> str:
    """Read scripts of this folder, after what the figures' scripts share.

    Names in both languages, and from which mark on something is good, come
    from Python as constants.
    """
    paths = (FIGURES / "parts.js", *(HERE / f"{name}.js" for name in names))
    known = {
        "LEVELS": [[name, text.en, text.zh] for name, text in LEVEL.items()],
        "ASKS": [[name, text.en, text.zh] for name, text in ASKS.items()],
        "GOOD": GOOD,
        "WEAK": WEAK,
    }
    constants = "".join(
        f"const {name} = {json.dumps(value, ensure_ascii=False)};\n"
        for name, value in known.items()
    )
    return constants + "".join(
        path.read_text(encoding="utf-8") for path in paths
    )


def _listed(number: int, question: Question) -> str:
    prompt = question.prompt
    return (
        f"{number}. [{question.level}, {question.kind}] "
        f"{to_plain(prompt.en)}\n   {to_plain(prompt.zh)}"
    )
