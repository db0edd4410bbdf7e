"""``python -m companion stats``: what was answered, and how well."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from companion.commands.asking import add_language, screen_of
from companion.interview.model.bank import course
from companion.interview.model.review import due
from companion.interview.terminal.report import show_stats
from companion.interview.terminal.session import answers_of

__all__ = ["add_options", "run"]


def add_options(parser: ArgumentParser) -> None:
    """Add in which language."""
    parser.description = (
        "A line for each chapter: questions answered, the mean of their last "
        "marks, and how many are due for review today."
    )
    add_language(parser)


def run(options: Namespace) -> int:
    """Print the table; return 0.

    Raises:
        ValueError, OSError: The answers cannot be read.
    """
    screen, questions = screen_of(options), course()
    answers = answers_of(screen)
    ready = due(questions, answers, datetime.now(UTC))
    show_stats(screen, questions, answers, ready)
    if not answers:
        screen.say(
            "Nothing answered yet. Begin with:",
            "还没有回答过。先运行：",
        )
        screen.command("quiz")
    elif ready:
        screen.say(
            f"Due today: {len(ready)}. To answer:",
            f"今天到期 {len(ready)} 题。回答：",
        )
        screen.command("review")
    return 0
