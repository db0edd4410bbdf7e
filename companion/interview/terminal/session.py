"""A row of questions in a terminal, remembered answer by answer."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.text import Text as Styled

from companion.interview.model.bank import retired
from companion.interview.model.progress import (
    Answer,
    Interview,
    Progress,
    place,
)
from companion.interview.model.question import Question
from companion.interview.model.words import ASKS, CHAPTER, LEVEL
from companion.interview.terminal.ask import ask, explain
from companion.interview.terminal.screen import Screen

__all__ = ["STOPPED", "Session", "answers_of", "clock", "opened", "title"]

STOPPED = 130
"""The exit code after Ctrl-C, as shells say it."""


class Session:
    """Ask, remember, and end politely whenever the learner wants.

    Where nothing can be remembered the learner is told once, and it goes on.

    Args:
        screen: Where to print and to ask.
        source: quiz, mock or review.

    Attributes:
        marks: What was answered so far, by question.
        seconds: What each of these took.
        clock: How many seconds of the interview have passed.
        status: The exit code of the process.
    """

    def __init__(self, screen: Screen, source: str):
        self.screen, self.source = screen, source
        self.marks: dict[str, float] = {}
        self.seconds: dict[str, float] = {}
        self.clock = 0.0
        self.status = 0
        self.progress: Progress | None = None
        try:
            self.progress = opened(screen)
        except (OSError, ValueError) as error:
            self._forget(error)

    def answers(self) -> list[Answer]:
        """Read what was ever answered, in order; none if it is lost."""
        try:
            return [] if self.progress is None else _answers(self.progress)
        except OSError as error:
            self._forget(error)
            return []

    def waiting(self) -> Interview | None:
        """Read the interview that was begun and is not over, if any is."""
        try:
            return None if self.progress is None else self.progress.waiting()
        except OSError as error:
            self._forget(error)
            return None

    def go_on(
        self, interview: Interview, questions: Sequence[Question]
    ) -> None:
        """Take up what was answered of these questions, and the clock."""
        for name in (question.id for question in questions):
            if name in interview.marks:
                self.marks[name] = interview.marks[name]
                self.seconds[name] = interview.seconds[name]
        self.clock = interview.clock

    def finish(self) -> None:
        """Let the interview wait no more: it is over.

        One that waits because another was begun in vain goes on waiting.
        """
        try:
            if self.progress is not None and self.marks:
                self.progress.finish()
        except OSError as error:
            self._forget(error)

    def ask_all(
        self,
        questions: Sequence[Question],
        *,
        then: Callable[[Screen, Question], None] = explain,
        minutes: int = 0,
    ) -> bool:
        """Ask one after the other; return whether it came to the end.

        Args:
            questions: Which, and in which order. Those that were answered
                before it went on come first, and are not asked again.
            then: What is shown after an answer was marked.
            minutes: Of how many the time is shown, if it is an interview; 0:
                it is none.
        """
        begin = time.monotonic() - self.clock
        names = tuple(question.id for question in questions)
        done = sum(name in self.marks for name in names)

        def step(number: int, question: Question) -> None:
            start = time.monotonic()
            of = f"{clock(start - begin)} / {clock(60.0 * minutes)}"
            place = f"{number}/{len(questions)}"
            title(self.screen, place, question, of if minutes else "")
            mark = ask(self.screen, question)
            now = time.monotonic()
            self.seconds[question.id], self.clock = now - start, now - begin
            self._remember(question, mark, names if minutes else ())
            then(self.screen, question)

        return self._one_by_one(questions, step, done)

    def explain_all(self, questions: Sequence[Question]) -> bool:
        """Show the answers one after the other; return whether all were."""

        def step(number: int, question: Question) -> None:
            title(self.screen, f"{number}/{len(questions)}", question)
            self.screen.show(question.prompt, style="bold")
            explain(self.screen, question)

        return self._one_by_one(questions, step)

    def close(self) -> None:
        """Print what was done, and where it is remembered."""
        given = list(self.marks.values())
        if given:
            mean = 100 * sum(given) / len(given)
            self.screen.console.print()
            self.screen.say(
                f"Answered: {len(given)}, on average {mean:.0f} %",
                f"答了 {len(given)} 题，平均 {mean:.0f} %",
                "bold",
            )
        if self.progress is not None:
            if given:
                path = str(self.progress.path)
                self.screen.say(f"Remembered in {path}", f"已记录在 {path}")
            self.progress.close()

    def _one_by_one(
        self,
        questions: Sequence[Question],
        step: Callable[[int, Question], None],
        done: int = 0,
    ) -> bool:
        try:
            for number, question in enumerate(questions[done:], done + 1):
                step(number, question)
                if number < len(questions):
                    self.screen.ask(
                        "Enter: next, q: stop", "Enter：下一题，q：结束"
                    )
            return True
        except EOFError:
            self.screen.console.print()
        except KeyboardInterrupt:
            self.screen.console.print()
            self.status = STOPPED
        return False

    def _remember(
        self, question: Question, mark: float, names: tuple[str, ...]
    ) -> None:
        self.marks[question.id] = mark
        if self.progress is not None:
            language, now = self.screen.language, time.time()
            answer = Answer(question.id, now, mark, language, self.source)
            # An interview goes on where this process may not.
            interview = Interview(
                names, self.marks, self.seconds, self.clock, now
            )
            try:
                self.progress.add(answer, interview if names else None)
            except OSError as error:
                self._forget(error)

    def _forget(self, error: Exception) -> None:
        if self.progress is not None:
            self.progress.close()
            self.progress = None
        self.screen.say(
            f"Your answers are not remembered from here on: {error}",
            f"从现在起不再记录你的回答：{error}",
            "yellow",
        )


def clock(seconds: float) -> str:
    """Write minutes and seconds, as 1:05."""
    whole, rest = divmod(int(seconds), 60)
    return f"{whole}:{rest:02}"


def title(
    screen: Screen, number: str, question: Question, time: str = ""
) -> None:
    """Print a line on a question: its number, chapter, level and minutes."""
    chapter = CHAPTER[question.chapter]
    level = LEVEL[question.level]
    asks = ASKS[question.asks]
    screen.console.print()
    parts = [
        number,
        screen.words(chapter.en, chapter.zh),
        screen.words(level.en, level.zh),
        screen.words(asks.en, asks.zh),
        screen.words(f"{question.minutes} min", f"{question.minutes} 分钟"),
        time,
    ]
    shown = " | ".join(part for part in parts if part)
    screen.line(Styled(shown), style="dim")


def answers_of(screen: Screen) -> list[Answer]:
    """Read what was ever answered, in the order it was given.

    Raises:
        ValueError, OSError: as ``Progress``.
    """
    progress = opened(screen)
    try:
        return _answers(progress)
    finally:
        progress.close()


def _answers(progress: Progress) -> list[Answer]:
    """Read the answers; one to a question that is gone counts for its heir."""
    heirs = retired()
    return [
        replace(answer, question=heirs.get(answer.question, answer.question))
        for answer in progress.answers()
    ]


def opened(screen: Screen) -> Progress:
    """Open the learner's answers; tell if a damaged file was kept aside.

    Raises:
        ValueError, OSError: as ``Progress``.
    """
    progress = Progress(place())
    if progress.kept is not None:
        _tell_kept(screen, progress.kept)
    return progress


def _tell_kept(screen: Screen, kept: Path) -> None:
    screen.say(
        f"The file of your answers was damaged. It is kept as {kept}; "
        "a new one begins.",
        f"记录文件已损坏，原文件保留为 {kept}；现在开始一个新文件。",
        "yellow",
    )
