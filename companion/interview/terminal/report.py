"""The report of a mock interview, and the table of what was answered."""

from collections.abc import Sequence

from rich import box
from rich.table import Table as Grid
from rich.text import Text as Styled

from companion import CHAPTERS
from companion.interview.model.mock import Report, report
from companion.interview.model.progress import Answer
from companion.interview.model.question import Question
from companion.interview.model.toml import Text
from companion.interview.model.words import ASKS, CHAPTER
from companion.interview.terminal.screen import Screen
from companion.interview.terminal.session import Session, clock

__all__ = ["show_report", "show_stats"]


def show_report(session: Session, questions: Sequence[Question]) -> None:
    """Print what went well, what did not, and what to read again."""
    screen, marks = session.screen, session.marks
    if not marks:
        screen.say(
            "Nothing was answered, so there is nothing to report.",
            "没有作答，所以没有报告。",
        )
        return
    found = report(questions, marks)
    grid = _grid(screen, ("Question", "题目"), ("Minutes", "用时"), _MARK)
    for question in questions:
        took = session.seconds.get(question.id)
        grid.add_row(
            question.id,
            _time(took, question.minutes),
            _per_cent(marks.get(question.id)),
        )
    grid.add_section()
    planned = sum(question.minutes for question in questions)
    took = sum(session.seconds.values())
    grid.add_row("", _time(took, planned), _per_cent(found.mark), style="bold")
    screen.console.print(grid)
    _show_found(screen, found)


def _show_found(screen: Screen, found: Report) -> None:
    for heading, names in (
        (Text("Strengths", "强项"), found.strengths),
        (Text("Gaps", "弱项"), found.gaps),
    ):
        if names:
            screen.heading(heading)
            named = [_named(screen, name) for name in names]
            screen.line(Styled(", ".join(named)))
    if found.reread:
        screen.heading(Text("Read again", "建议重读"))
        for chapter, sections in found.reread:
            for section in sections:
                screen.line(screen.place(chapter, section), "· ")


def show_stats(
    screen: Screen,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    due: Sequence[Question],
) -> None:
    """Print a line a chapter: answered, the mean of the last marks, due."""
    last = {answer.question: answer.mark for answer in answers}
    late = {question.id for question in due}
    grid = _grid(
        screen, ("Chapter", "章节"), ("Done", "已答"), _MARK, ("Due", "到期")
    )
    for chapter in CHAPTERS:
        ids = [q.id for q in questions if q.chapter == chapter]
        grid.add_row(chapter, *_row(ids, last, late))
    grid.add_section()
    every = [question.id for question in questions]
    grid.add_row("", *_row(every, last, late), style="bold")
    screen.console.print(grid)


_MARK = ("Mark", "得分")


def _row(
    ids: Sequence[str], last: dict[str, float], late: set[str]
) -> tuple[str, ...]:
    marks = [last[each] for each in ids if each in last]
    mean = sum(marks) / len(marks) if marks else None
    waiting = sum(each in late for each in ids)
    return f"{len(marks)}/{len(ids)}", _per_cent(mean), str(waiting or "")


def _grid(screen: Screen, *columns: tuple[str, str]) -> Grid:
    grid = Grid(box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    for number, (en, zh) in enumerate(columns):
        heading = screen.words(en, zh).replace(" · ", "\n")
        if number:
            grid.add_column(heading, justify="right", no_wrap=True)
        else:
            grid.add_column(heading, overflow="fold")
    return grid


def _time(seconds: float | None, minutes: int) -> str:
    return (
        "" if seconds is None else f"{clock(seconds)} / {clock(60.0 * minutes)}"
    )


def _per_cent(mark: float | None) -> str:
    return "" if mark is None else f"{100 * mark:.0f} %"


def _named(screen: Screen, name: str) -> str:
    named = {**CHAPTER, **ASKS}[name]
    return screen.words(named.en, named.zh)
