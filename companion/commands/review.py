"""``python -m companion review``: what is due today."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from companion.commands.asking import add_language, screen_of
from companion.interview.model.bank import course
from companion.interview.model.review import due, next_due
from companion.interview.terminal.screen import Screen
from companion.interview.terminal.session import Session, answers_of

__all__ = ["add_options", "run"]


def add_options(parser: ArgumentParser) -> None:
    """Add in which language."""
    parser.description = (
        "Asks again what is due today. A question you answered comes back "
        "after days, then weeks, then months; one you missed, tomorrow."
    )
    add_language(parser)


def run(options: Namespace) -> int:
    """Ask what is due; return 0, or 130 after Ctrl-C.

    Raises:
        ValueError, OSError: The answers cannot be read.
    """
    screen, questions = screen_of(options), course()
    answers, now = answers_of(screen), datetime.now(UTC)
    ready = due(questions, answers, now)
    if not ready:
        _say_when(screen, next_due(questions, answers, now))
        return 0
    session = Session(screen, "review")
    session.ask_all(ready)
    session.close()
    return session.status


def _say_when(screen: Screen, later: datetime | None) -> None:
    if later is None:
        screen.say(
            "Nothing to review yet. Begin with:",
            "还没有可复习的题。先运行：",
        )
        screen.command("quiz")
    else:
        day = f"{later.astimezone():%Y-%m-%d}"
        screen.say(
            f"Nothing is due today. Next: {day}",
            f"今天没有到期的题。下一次：{day}",
        )
