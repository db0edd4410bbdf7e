"""Asks one question in a terminal, and marks the answer.

A choice and a number are marked by their first answer, words and code by who
gave them: against the points, and with the contracts.
"""

import math
import re
from string import ascii_lowercase
from unicodedata import normalize

from rich.text import Text as Styled

from companion.interview.model.question import (
    Choice,
    Code,
    Numeric,
    Open,
    Question,
)
from companion.interview.model.toml import Text
from companion.interview.model.words import WORDS, written
from companion.interview.terminal.screen import Screen

__all__ = ["ask", "explain", "parse"]

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.I | re.ASCII)
_GROUPED = re.compile(r"[-+]?\d{1,3}([ ,]\d{3})+(\.\d*)?", re.ASCII)


def ask(screen: Screen, question: Question) -> float:
    """Put a question and return the mark of the answer, from 0 to 1.

    Raises:
        EOFError, KeyboardInterrupt: as ``Screen.ask``.
    """
    screen.show(question.prompt, style="bold")
    mark = _marked(screen, question.task)
    sign, style = {1.0: ("✓", "green"), 0.0: ("✗", "red")}.get(mark, ("◐", ""))
    screen.line(Styled(f"{sign} {100 * mark:.0f} %"), style=style)
    return mark


def explain(screen: Screen, question: Question) -> None:
    """Show the long answer, what is often said instead, and what comes next."""
    screen.heading(WORDS["short"])
    screen.show(question.short)
    screen.heading(WORDS["answer"])
    screen.show(question.answer)
    if isinstance(question.task, Open | Code):
        screen.heading(WORDS["slip"])
        screen.show(question.task.wrong, "✗ ")
        screen.show(question.task.why, "→ ")
    screen.heading(WORDS["follow"])
    for each in question.follow:
        screen.show(each, "· ")
    screen.heading(WORDS["section"])
    screen.line(screen.place(question.chapter, question.section))
    screen.line(Styled(f"[{question.proof}]"))


def parse(text: str) -> float | None:
    """Read a typed number, or None; the page does it in the same way.

    Full-width digits, a typographic minus, commas and blanks between thousands
    are numbers too.

    Example:
        >>> parse("1,024.5"), parse("−３"), parse("1/3")
        (1024.5, -3.0, None)
    """
    plain = normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").strip()
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "").replace(" ", "")
    number = float(plain) if _NUMBER.fullmatch(plain) else math.inf
    return number if math.isfinite(number) else None


def _marked(screen: Screen, task: Open | Choice | Numeric | Code) -> float:
    match task:
        case Open():
            return _open(screen, task)
        case Choice():
            return _choice(screen, task)
        case Numeric():
            return _numeric(screen, task)
        case Code():
            return _code(screen, task)


def _open(screen: Screen, task: Open) -> float:
    points = task.points
    screen.ask("Say it aloud, then Enter", "先说出你的回答，再按 Enter")
    for number, point in enumerate(points, 1):
        screen.show(point, f"{number}. ")
    while True:
        typed = screen.ask(
            "Which did you say? 1 3, a for all, Enter for none",
            "答到了哪几点？如 1 3，a 全部，Enter 没有",
        )
        hit = _ticked(typed, len(points))
        if hit is not None:
            return len(hit) / len(points)
        screen.say(
            f"Numbers from 1 to {len(points)}, please.",
            f"请输入 1 到 {len(points)} 的编号。",
        )


def _ticked(typed: str, total: int) -> set[int] | None:
    """Read the numbers of a line, or None if it has something else."""
    words = re.split(r"[\s,;、]+", normalize("NFKC", typed).strip().lower())
    known = {str(number): number for number in range(1, total + 1)}
    if words == ["a"]:
        return set(known.values())
    words = [word for word in words if word]
    return {known[w] for w in words} if known.keys() >= set(words) else None


def _choice(screen: Screen, task: Choice) -> float:
    options = dict(zip(ascii_lowercase, task.options, strict=False))
    for letter, option in options.items():
        screen.show(option.text, f"{letter}) ")
    while True:
        typed = screen.ask(
            "Your letter; Enter: I do not know", "选哪一项？Enter：不知道"
        )
        letter = normalize("NFKC", typed).strip().lower().rstrip(")")
        if not letter or letter in options:
            break
        screen.say(
            f"One of {', '.join(options)}, please.",
            f"请输入 {'、'.join(options)} 之一。",
        )
    for each, option in options.items():
        sign, style = ("✓", "green") if option.right else ("✗", "red")
        yours = screen.words("yours", "你选的")
        named = f"{sign} {each}" + (f" ({yours})" if each == letter else "")
        screen.line(Styled(named), style=style)
        screen.show(option.why, "  ")
    return float(bool(letter) and options[letter].right)


def _numeric(screen: Screen, task: Numeric) -> float:
    first = None
    while True:
        typed = screen.ask(
            "Your number; Enter: show it", "你的结果？Enter：看答案"
        )
        number = parse(typed)
        if number is not None and _near(task, number, task.value):
            return 1.0 if first is None else 0.0
        if not typed.strip():
            screen.line(Styled(written(task.value)), style="bold")
            return 0.0
        if number is None:
            screen.say(
                "Type a number, such as 0.25 or 1024.",
                "请输入一个数，例如 0.25 或 1024。",
            )
            continue
        first = number if first is None else first
        screen.say("Not yet.", "还不对。", "red")
        screen.show(_reason(task, number))


def _reason(task: Numeric, number: float) -> Text:
    for mistake in task.mistakes:
        if _near(task, number, mistake.value):
            return mistake.why
    return task.hint


def _near(task: Numeric, number: float, value: float) -> bool:
    return abs(number - value) <= task.tolerance + 1e-9 * abs(value)


def _code(screen: Screen, task: Code) -> float:
    screen.code(f"import torch\n\n# checks: {task.component}\n{task.stub}")
    screen.say(
        "Write it into a file, with the comment above it. Then run",
        "写到一个文件里，保留函数上面那行注释，再运行",
    )
    screen.command("check", "FILE.py")
    screen.ask("Enter: a solution", "Enter：看一种解法")
    screen.code(task.solution)
    marks = {"1": 1.0, "2": 0.5, "3": 0.0}
    while True:
        answer = screen.ask(
            "1: mine passed, 2: with help, 3: not",
            "1：一次通过，2：看了提示，3：没有",
        )
        mark = marks.get(normalize("NFKC", answer).strip())
        if mark is not None:
            return mark
        screen.say("1, 2 or 3, please.", "请输入 1、2 或 3。")
