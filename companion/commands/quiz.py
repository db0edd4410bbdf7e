"""``python -m companion quiz``: questions in the terminal, one by one."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from companion import CHAPTERS
from companion.commands.asking import add_language, screen_of
from companion.interview.model.bank import course
from companion.interview.model.progress import Answer
from companion.interview.model.question import ASKS, LEVELS, Question
from companion.interview.terminal.session import Session

__all__ = ["add_options", "chosen", "in_turn", "run"]


def add_options(parser: ArgumentParser) -> None:
    """Add which questions, and in which language."""
    parser.description = (
        "Asks interview questions. Those you never answered come first, then "
        "the ones that went worst. Stop when you like: q, Ctrl-D or Ctrl-C."
    )
    add = parser.add_argument
    for name, among in (
        ("chapter", CHAPTERS),
        ("level", LEVELS),
        ("kind", ASKS),
    ):
        # Without a metavar, argparse repeats the list on every line.
        add(
            f"--{name}",
            nargs="+",
            choices=among,
            default=among,
            metavar=name.upper(),
            help=f"{', '.join(among)}; default: all",
        )
    add_language(parser)


def run(options: Namespace) -> int:
    """Ask; return 0, or 130 after Ctrl-C.

    Raises:
        ValueError: No question is of that chapter, level and kind.
    """
    questions = chosen(options)
    session = Session(screen_of(options), "quiz")
    session.ask_all(in_turn(questions, session.answers()))
    session.close()
    return session.status


def chosen(options: Namespace) -> list[Question]:
    """Choose the questions that the options ask for.

    Raises:
        ValueError: There are none.
    """
    questions = [
        question
        for question in course()
        if question.chapter in options.chapter
        and question.level in options.level
        and question.asks in options.kind
    ]
    if not questions:
        raise ValueError(
            "no question of chapter "
            f"{', '.join(options.chapter)}, level {', '.join(options.level)} "
            f"and kind {', '.join(options.kind)}: leave one of them out"
        )
    return questions


def in_turn(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> list[Question]:
    """Put what was never answered first, then what went worst."""
    last = {answer.question: answer.mark for answer in answers}
    return sorted(questions, key=lambda q: (q.id in last, last.get(q.id, 0.0)))
