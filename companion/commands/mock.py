"""``python -m companion mock``: an interview with a report at its end.

What was answered is kept as it is answered, so that an interview which a closed
window or Ctrl-C broke off goes on the next time.
"""

import secrets
from argparse import ArgumentParser, Namespace

from companion import CHAPTERS
from companion.commands.asking import add_language, screen_of
from companion.interview.model.bank import course
from companion.interview.model.mock import GOOD, pick
from companion.interview.model.question import LEVELS, Question
from companion.interview.model.toml import Text
from companion.interview.terminal.report import show_report
from companion.interview.terminal.resume import offer
from companion.interview.terminal.screen import Screen
from companion.interview.terminal.session import Session

__all__ = ["add_options", "run"]


def add_options(parser: ArgumentParser) -> None:
    """Add how hard, how long, and of what."""
    parser.description = (
        "A mock interview: from junior upwards in one topic after the other. "
        "It shows the time and never judges it. At the end it says what to "
        "read again. One that Ctrl-C or a closed window broke off goes on "
        "the next time; q ends it."
    )
    add = parser.add_argument
    add("--level", choices=LEVELS, default="senior", help="default: senior")
    add("--minutes", type=int, default=30, help="default: 30")
    add(
        "--topics",
        nargs="+",
        choices=CHAPTERS,
        default=(),
        metavar="CHAPTER",
        help=f"{', '.join(CHAPTERS)}; default: all",
    )
    add("--seed", type=int, help="the same seed asks the same questions")
    add_language(parser)


def run(options: Namespace) -> int:
    """Ask, or go on asking, then report; return 0, or 130 after Ctrl-C.

    Raises:
        ValueError: The minutes are too few for any question, or the seed is
            out of range.
    """
    seed = secrets.randbelow(10_000) if options.seed is None else options.seed
    questions = pick(
        course(),
        level=options.level,
        minutes=options.minutes,
        chapters=options.topics,
        seed=seed,
    )
    screen = screen_of(options)
    session = Session(screen, "mock")
    try:
        waited = offer(session, course())
    except EOFError:
        session.close()
        return 0
    questions = waited or questions
    total = sum(question.minutes for question in questions)
    if not waited:
        screen.say(
            f"{len(questions)} questions, {total} minutes. Seed {seed}",
            f"{len(questions)} 题，{total} 分钟。种子 {seed}",
        )
    whole = session.ask_all(questions, then=_nothing, minutes=total)
    show_report(session, questions)
    if whole or not session.status:
        session.finish()
    elif session.waiting():
        screen.say(
            "The interview waits: mock goes on with it.",
            "这场面试已保存：再运行 mock 即可继续。",
            "bold",
        )
    marks = session.marks
    missed = [q for q in questions if marks.get(q.id, GOOD) < GOOD]
    if whole and missed:
        screen.heading(Text("What was missing", "还差什么"))
        session.explain_all(missed)
    session.close()
    return session.status


def _nothing(screen: Screen, question: Question) -> None:
    """Explain nothing: an interviewer does not before the end."""
