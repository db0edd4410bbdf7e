"""A mock interview that was broken off, offered again in a terminal."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from unicodedata import normalize

from companion.interview.model.question import Question
from companion.interview.model.toml import Text
from companion.interview.terminal.session import Session, clock

__all__ = ["ago", "offer"]

HOUR, DAY = 3600, 86_400


def offer(session: Session, bank: Sequence[Question]) -> list[Question]:
    """Ask whether to go on with the interview that waits.

    Args:
        session: Takes up what was answered, if it goes on.
        bank: All questions; one that is gone is not asked.

    Returns:
        The questions of the interview, those that were answered first; none if
        no interview waits, or if a new one is to begin. The old one then waits
        until the first answer in the new one.

    Raises:
        EOFError, KeyboardInterrupt: as ``Screen.ask``.
    """
    waits = session.waiting()
    known = {question.id: question for question in bank}
    asked = [known[n] for n in waits.questions if n in known] if waits else []
    if not waits or not asked:
        return []
    screen, when = session.screen, ago(time.time() - waits.at, waits.at)
    done = sum(question.id in waits.marks for question in asked)
    total = sum(question.minutes for question in asked)
    passed = f"{clock(waits.clock)} / {clock(60.0 * total)}"
    screen.say(
        f"An interview waits, left {when.en}: {done} of {len(asked)} "
        f"answered, {passed}.",
        f"有一场面试没有做完（{when.zh}）：已答 {done} / {len(asked)} 题，"
        f"{passed}。",
    )
    while True:
        typed = screen.ask(
            "Enter: go on, n: begin anew, q: stop",
            "Enter：继续，n：重新开始，q：结束",
        )
        match normalize("NFKC", typed).strip().lower():
            case "":
                session.go_on(waits, asked)
                return asked
            case "n":
                return []
        screen.say("Enter, n or q, please.", "请按 Enter，或输入 n、q。")


def ago(seconds: float, at: float) -> Text:
    """Say when something was: how long ago, or, after a day, the date.

    Args:
        seconds: How long ago. A clock that was put back counts as no time.
        at: When, in seconds since 1970, UTC.

    Example:
        >>> ago(720.0, 0.0).en, ago(7300.0, 0.0).en, ago(-5.0, 0.0).zh
        ('12 min ago', '2 h ago', '0 分钟前')
    """
    seconds = max(0.0, seconds)
    if seconds < HOUR:
        minutes = int(seconds // 60)
        return Text(f"{minutes} min ago", f"{minutes} 分钟前")
    if seconds < DAY:
        hours = int(seconds // HOUR)
        return Text(f"{hours} h ago", f"{hours} 小时前")
    day = f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M}"
    return Text(f"on {day}", day)
