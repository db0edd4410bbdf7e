"""Run what was handed in, in a process that can be killed, and check it."""

import difflib
import linecache
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

from companion.commands.check import worst
from companion.commands.check.judging import report_of, told
from companion.commands.grade.exercises import Exercise
from companion.commands.grade.submission import Cell, Submission
from companion.commands.isolated import (
    Ended,
    IsolatedProcess,
    Late,
    Send,
    explained,
)
from companion.contracts.engine.levels import FAULT, LEVELS
from companion.sanitize import sanitize

__all__ = ["Result", "Verdict", "judge"]

LIMIT = 20.0
"""How many seconds a cell may take, and the check of an exercise."""

ALTOGETHER = 120.0
"""How many seconds a notebook may take."""

OVER = "It was not tried: the notebook had taken {:g} seconds."
"""What is said of the rest then."""


@dataclass(frozen=True)
class Result:
    """What became of an exercise.

    Attributes:
        exercise: The exercise.
        headline: The result in a line.
        held: The names of the contracts that hold.
        failed: The others by cause: their names, a message, and a level.
        untried: How many wait until the first one holds.
        code: The cell that the function stands in.
    """

    exercise: Exercise
    headline: str = ""
    held: list[str] = field(default_factory=list)
    failed: list[dict] = field(default_factory=list)
    untried: int = 0
    code: str = ""

    @property
    def level(self) -> str:
        """What the worst is that does not hold; nothing if all does."""
        return worst({"failed": self.failed})

    @property
    def passed(self) -> bool:
        """Whether there is no fault; with a risk or a note it has passed."""
        return self.level != FAULT

    @property
    def contracts(self) -> int | None:
        """How many contracts there are; None if none could be tried."""
        if not self.headline:
            return None
        failed = sum(len(group["names"]) for group in self.failed)
        return len(self.held) + failed + self.untried

    @property
    def score(self) -> str:
        """How many contracts hold, in words."""
        if self.contracts is None:
            return "not tried"
        return f"{len(self.held)} of {self.contracts}"

    @property
    def message(self) -> str:
        """The first thing to mend; nothing if all contracts hold."""
        return self.failed[0]["message"] if self.failed else ""


@dataclass
class Verdict:
    """What became of a notebook.

    Attributes:
        results: One for each exercise, in order.
        remarks: Cells that raised something or were left out, by number.
    """

    results: list[Result]
    remarks: dict[int, str]


def judge(
    submission: Submission, exercises: Sequence[Exercise], memory: float
) -> Verdict:
    """Run a notebook in a process of its own, and check its functions.

    A cell that does not end is left out, and an exercise that ends the process
    is noted; then the rest is tried in a new process.

    Args:
        submission: The notebook.
        exercises: What it was to hold.
        memory: How many GiB it may take.

    Returns:
        A result for every exercise, and remarks.

    Raises:
        ValueError: ``memory`` is not a positive number.
    """
    trial = _Trial(submission, exercises, memory)
    while trial.waiting and trial.left() > 0:
        trial.go_on()
    for name in trial.waiting:
        trial.fail(name, OVER.format(ALTOGETHER))
    results = [trial.results[exercise.name] for exercise in exercises]
    return Verdict(results, dict(sorted(trial.remarks.items())))


class _Trial:
    """One notebook, and what is known of it so far."""

    def __init__(
        self,
        submission: Submission,
        exercises: Sequence[Exercise],
        memory: float,
    ):
        self.cells, self.memory = submission.cells, memory
        self.exercises = {exercise.name: exercise for exercise in exercises}
        self.results: dict[str, Result] = {}
        self.remarks: dict[int, str] = {}
        self.left_out: list[int] = []
        self.end = time.monotonic() + ALTOGETHER

    @property
    def waiting(self) -> list[str]:
        """What has no result yet."""
        return [name for name in self.exercises if name not in self.results]

    def left(self) -> float:
        """How many seconds are left."""
        return self.end - time.monotonic()

    def go_on(self) -> None:
        """Start a process, and note what it says until it ends."""
        cells = [c for c in self.cells if c.number not in self.left_out]
        asked = [self.exercises[name] for name in self.waiting]
        # Which cell, or which exercise, it is at.
        at: int | str | None = None
        with (
            # What it writes is not left among what was handed in.
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as room,
            IsolatedProcess(
                _run, (cells, asked, room), memory=self.memory
            ) as child,
        ):
            try:
                child.begin()
                while (left := self.left()) > 0:
                    message = child.receive(min(LIMIT, left))
                    at = message.get("at", at)
                    if not self.note(message):
                        return
                self.stopped(at, OVER.format(ALTOGETHER))
            except (KeyError, TypeError, AttributeError, ValueError):
                self.stopped(at, "Its process sent what is no result.")
            except (Late, Ended) as reason:
                self.stopped(at, str(reason))

    def note(self, message: dict) -> bool:
        """Note what a message says; tell whether there will be another."""
        match message:
            case {"raised": str(text), "at": int(number)}:
                said = f"Cell {number} raised {text}"
                self.remarks[number] = explained(sanitize(said), self.memory)
            case {
                "found": {
                    "headline": str(headline),
                    "held": list(held),
                    "failed": list(failed),
                    "untried": int(untried),
                },
                "at": str(name),
            }:
                self.results[name] = Result(
                    self.exercises[name],
                    headline,
                    [str(contract) for contract in held],
                    [self.group(one) for one in failed],
                    untried,
                    self.code_of(name),
                )
            case {"missing": list(others), "at": str(name)}:
                self.fail(name, self.why_missing(name, others))
        return "done" not in message

    def group(self, said: dict) -> dict:
        """Take what a report says of failures with one cause."""
        return {
            "names": [str(name) for name in said["names"]],
            "message": explained(sanitize(said["message"]), self.memory),
            # What it sends is the learner's: any other word is a fault.
            "level": FAULT if said["level"] not in LEVELS else said["level"],
            "excuse": sanitize(said["excuse"]),
        }

    def stopped(self, at: int | str | None, reason: str) -> None:
        """Note why the process ended before it was done."""
        if isinstance(at, int):
            self.left_out.append(at)
            self.remarks[at] = f"Cell {at} was left out. {sanitize(reason)}"
        for name in self.waiting if at is None else [at]:
            if isinstance(name, str) and name in self.exercises:
                self.fail(name, reason)

    def fail(self, name: str, message: str) -> None:
        """Note an exercise of which no contract could be tried."""
        said = {"message": sanitize(message), "level": FAULT, "excuse": ""}
        failed = [{"names": [], **said}]
        self.results[name] = Result(
            self.exercises[name], failed=failed, code=self.code_of(name)
        )

    def code_of(self, name: str) -> str:
        """Find the last cell that defines a function of this name."""
        defines = re.compile(rf"^((def|class) +{name}\b|{name} *=)", re.M)
        found = [c.source for c in self.cells if defines.search(c.source)]
        return found[-1] if found else ""

    def why_missing(self, name: str, others: list) -> str:
        """Tell why there is no function of this name, as far as one can see."""
        for number, remark in self.remarks.items():
            [cell] = [c for c in self.cells if c.number == number]
            if cell.source == self.code_of(name):
                return remark
        taken = set(self.exercises)
        free = [str(n) for n in others if n not in taken]
        near = difflib.get_close_matches(name, free, 1)
        hint = f" Is it `{near[0]}`?" if near else ""
        return f"There is no function `{name}` in the notebook.{hint}"


class _Silent:
    """Stands for IPython, whose magics do nothing here."""

    def __getattr__(self, name: str):
        return lambda *args, **named: None


def _run(
    send: Send, cells: list[Cell], exercises: list[Exercise], room: str
) -> None:
    """Do what the other process does: run the cells, and check functions."""
    from companion.zoo import check_test

    # A notebook's own module, which a dataclass or a pickle looks up.
    module = sys.modules["__main__"] = ModuleType("__main__")
    space = vars(module)
    space |= {"get_ipython": _Silent, "display": lambda *args, **named: None}
    warnings.simplefilter("ignore")
    os.chdir(room)
    for cell in cells:
        send({"at": cell.number})
        try:
            _execute(cell, space)
        except BaseException as error:
            send({"at": cell.number, "raised": _said(error, cell)})
    for exercise in exercises:
        name, about = exercise.name, exercise.component
        send({"at": name})
        if name not in space:
            functions = [n for n, x in space.items() if callable(x)]
            send({"at": name, "missing": functions})
        elif exercise.sick:
            report = check_test(about, exercise.sick, space[name])
            send({"at": name, "found": told(report)})
        else:
            found = report_of(about, space[name], strict=exercise.strict)
            send({"at": name, "found": found})
    send({"done": True})


def _execute(cell: Cell, space: dict) -> None:
    """Run a cell as a notebook does, unless all it does is to check."""
    if re.fullmatch(r"\s*check(_test)?\([^()]*\)\s*", cell.source):
        return
    name = f"cell {cell.number}"
    lines = cell.source.splitlines(keepends=True)
    # From here a report quotes a line.
    linecache.cache[name] = (len(cell.source), None, lines, name)
    exec(compile(cell.source, name, "exec", dont_inherit=True), space)


def _said(error: BaseException, cell: Cell) -> str:
    """Tell what a cell raised, and in which of its lines."""
    from companion.contracts.engine.blame import text_of

    name, text = f"cell {cell.number}", text_of(error)
    steps = traceback.extract_tb(error.__traceback__)
    lines = [step.lineno for step in steps if step.filename == name]
    line = next(filter(None, lines), 0)
    if isinstance(error, SyntaxError) and error.filename == name:
        line, text = error.lineno or 0, f"{error.msg}."
    quoted = linecache.getline(name, line).strip()[:70]
    where = f" in line {line}, `{quoted}`" if quoted else ""
    return f"{type(error).__name__}{where}: {text}"
