"""Judge a learner's file in a process that can be killed."""

import ast
import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from companion.commands.check.file import File, parts_in, read
from companion.commands.check.target import Target
from companion.commands.isolated import (
    MEMORY,
    NO_MEMORY,
    Ended,
    IsolatedProcess,
    Late,
    Send,
    explained,
    time_limit,
)
from companion.words import ENGLISH

__all__ = ["Asked", "Section", "judged"]

LIMIT = 20.0
"""How many seconds a process has to import the file, and as many for each part.

``check`` stops a loop in Python earlier.
"""

PATIENCE = 4
"""How many times as long, if it computes for less: longer than ``check`` waits.
"""

ALTOGETHER = 300.0
"""How many seconds a file has with all that is in it."""


@dataclass(frozen=True)
class Asked:
    """What is asked of every file.

    Attributes:
        components: Only these; all, if empty.
        mask: What True means in masks, as ``check`` takes it.
        memory: How many GiB the code may take.
        pages: Whether a report is wanted as a page, too.
        lang: The language of what is told.
    """

    components: tuple[str, ...] = ()
    mask: str | None = None
    memory: float = MEMORY
    pages: bool = False
    lang: str = ENGLISH


@dataclass
class Section:
    """What became of a file.

    Attributes:
        target: Which file.
        file: It, as it was read; none if it could not be.
        parts: What was judged, in order.
        unjudged: What was not, with the reasons.
        untried: Names of what could be a component, and nothing says which.
        remarks: Cells of a notebook that did not run to their end.
        error: Why nothing of it could be judged, if so.
    """

    target: Target
    file: File | None = None
    parts: list[dict] = field(default_factory=list)
    unjudged: list[dict] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    remarks: dict[int, str] = field(default_factory=dict)
    error: str = ""

    def at(self, line: int) -> str:
        """Name a line of the file."""
        return self.file.at(line) if self.file else self.target.title


def judged(
    target: Target,
    asked: Asked,
    *,
    show: Callable[[str], object] = lambda text: None,
    part: Callable[[Section, dict], object] = lambda section, found: None,
) -> Section:
    """Judge a file in a process of its own.

    A part that ends the process, or does not end, is noted; the others are
    judged in a new one.

    Args:
        target: The file, and what of it.
        asked: What is asked.
        show: Gets what the code prints while it is checked.
        part: Told of each part that was judged, at once.

    Returns:
        What became of the file; ``error`` says what is wrong with it.

    Raises:
        ValueError: The limit of memory is no positive number.
    """
    section = Section(target)
    if target.path:
        try:
            section.file = read(target.path)
        except OSError as error:
            section.error = f"{target.path}: {error.strerror or error}"
            return section
        except ValueError as error:
            section.error = str(error)
            return section
        if target.root and not _defines(section.file):
            return section
        for cell, fault in section.file.faults.items():
            section.remarks[cell] = f"Cell {cell} was left out: {fault}"
    trial = _Trial(section, asked, show, part)
    while not trial.done:
        trial.go_on()
    return section


def _defines(file: File) -> bool:
    """Tell whether a file defines anything; else it need not be imported."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    marked = any("checks:" in line for line in file.lines)
    return marked or any(isinstance(one, kinds) for one in file.statements)


class _Trial:
    """One file, and what is known of it so far."""

    def __init__(
        self, section: Section, asked: Asked, show: Callable, part: Callable
    ):
        self.section, self.asked = section, asked
        self.show, self.part = show, part
        self.found: list[dict] = []
        self.finished: list[int] = []
        self.left_out: list[int] = []
        self.done = False
        self.end = time.monotonic() + ALTOGETHER

    def go_on(self) -> None:
        """Start a process, and note what it says until it ends."""
        args = (
            self.section.target,
            self.asked,
            [*self.left_out],
            [*self.finished],
        )
        at: dict = {}
        with IsolatedProcess(
            _judge, args, memory=self.asked.memory, show=self.show
        ) as child:
            try:
                child.begin()
                while not self.done:
                    left = self.end - time.monotonic()
                    message = child.receive(
                        max(min(LIMIT, left), 0), min(PATIENCE * LIMIT, left)
                    )
                    at = message.get("at", at)
                    self.note(message)
            except (Late, Ended) as reason:
                self.stopped(at, reason)
            except (KeyError, TypeError, AttributeError, IndexError):
                self.fail("its process sent what is no result")

    def note(self, message: dict) -> None:
        """Note what a message says."""
        if "error" in message:
            self.fail(explained(message["error"], self.asked.memory))
        if "path" in message:
            self.section.file = read(Path(message["path"]))
        if "candidates" in message:
            self.found = message["candidates"]
        self.section.untried = message.get("untried", self.section.untried)
        for cell, said in message.get("raised", {}).items():
            self.section.remarks[int(cell)] = f"Cell {cell} raised: {said}"
        for found in message.get("parts", ()):
            for group in found["found"]["failed"]:
                group["message"] = explained(
                    group["message"], self.asked.memory
                )
            self.section.parts.append(found)
            self.part(self.section, found)
        for left in message.get("unjudged", ()):
            reason = explained(left["reason"], self.asked.memory)
            self.section.unjudged.append({**left, "reason": reason})
        if "finished" in message:
            self.finished.append(message["finished"])
        self.done = self.done or "done" in message

    def stopped(self, at: dict, reason: Exception) -> None:
        """Note why the process ended before it was done."""
        if "part" in at:
            self.finished.append(at["part"])
            self.part_stopped(self.found[at["part"]], str(reason))
        elif "cell" in at:
            cell = at["cell"]
            self.left_out.append(cell)
            self.section.remarks[cell] = f"Cell {cell} was left out. {reason}"
        elif "rest" in at:
            left = {"name": REST, "line": 1, "level": "", "reason": str(reason)}
            self.section.unjudged.append(left)
            self.done = True
        elif isinstance(reason, Late) and "import" in at:
            self.fail(
                f"{self.section.target.title}: importing it had not ended "
                f"after {time_limit(LIMIT, PATIENCE * LIMIT)}, and was "
                "stopped. Does it train? Put that under `if "
                '__name__ == "__main__":`, which is not run'
            )
        else:
            self.fail(f"{self.section.target.title}: {reason}")
        if time.monotonic() > self.end and not self.done:
            self.fail(
                f"{self.section.target.title}: there was no more time after "
                f"{ALTOGETHER:g} seconds"
            )

    def part_stopped(self, one: dict, reason: str) -> None:
        """Note why a part did not come back: a fault of what the user named.

        Of any other nobody knows that its call, or its sizes, are right.
        """
        message = explained(reason, self.asked.memory)
        if not one["component"] and not self.section.target.name:
            left = {"name": one["name"], "line": one["line"], "level": ""}
            self.section.unjudged.append({**left, "reason": message})
            return
        failed = {
            "names": ["It comes back"],
            "message": message,
            "level": "fault",
        }
        name = one["component"] or one["name"]
        found = {
            "headline": f"{name}: the contracts could not be tried",
            "failed": [failed],
            "held": [],
            "untried": 0,
            "waiting": [],
            "assumed": [],
        }
        said = {**one, "how": "", "found": found, "page": ""}
        self.section.parts.append(said)
        self.part(self.section, said)

    def fail(self, reason: str) -> None:
        """Note why nothing more can be judged."""
        self.section.error = reason
        self.done = True


REST = "what else stands in its models"


def _judge(
    send: Send,
    target: Target,
    asked: Asked,
    left_out: list[int],
    finished: list[int],
) -> None:
    """Do what the other process does: import, find, judge, and send."""
    from companion.contracts.engine.modules.devices import on_the_cpu

    # What is the same on every machine needs no GPU, and must not take one.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        with on_the_cpu():
            _send_all(send, target, asked, left_out, finished)
    except ValueError as error:
        send({"error": str(error)})


def _send_all(
    send: Send,
    target: Target,
    asked: Asked,
    left_out: list[int],
    finished: list[int],
) -> None:
    import sys
    import warnings

    from companion.commands.check.find import Finder
    from companion.commands.check.imports import (
        imported,
        imported_by_name,
        run_cells,
    )
    from companion.contracts import COMPONENTS

    # What PyTorch warns of comes once for each call of a contract.
    warnings.simplefilter("ignore")
    send({"at": {"import": True}})
    here = Path.cwd()
    # No file beside it is taken for a module that is installed.
    near = {here, target.path.resolve().parent if target.path else here}
    sys.path[:] = [p for p in sys.path if Path(p).resolve() not in near]
    if target.path is None:
        module, path = imported_by_name(target.module)
        file = read(path)
        send({"path": str(path)})
    else:
        file = read(target.path)
        parts_in(file, COMPONENTS)  # A mark that is wrong comes first.
        module = imported(file, target.root)
        sys.path.append(str(here))
    if file.cells:
        os.chdir(file.path.resolve().parent)
        raised = run_cells(
            file, module, left_out, lambda n: send({"at": {"cell": n}})
        )
        os.chdir(here)
        send({"raised": raised})
    finder = Finder(
        file,
        module,
        components=list(asked.components),
        name=target.name,
        mask=asked.mask,
        pages=asked.pages,
        lang=asked.lang,
    )
    candidates = finder.candidates()
    send(
        {
            "candidates": [
                {"name": c.name, "line": c.line, "component": c.component}
                for c in candidates
            ]
        }
    )
    send({"untried": finder.untried()})
    for i, one in enumerate(candidates):
        if i not in finished:
            send({"at": {"part": i}})
            try:
                for found in finder.judged(one):
                    send(found)
            except Exception as error:
                send({"unjudged": [finder.unjudged(one, ours(error))]})
            send({"finished": i})
    send({"at": {"rest": True}})
    for found in finder.rest():
        send(found)
    send({"done": True})


def ours(error: Exception) -> str:
    """Say that it was the check that raised something, and where.

    Except for memory, which is missing for what the judged code has built.
    """
    said = f"{type(error).__name__}: {error}"
    if NO_MEMORY.search(said):
        return f"there was not enough memory. It raised {said}"
    at = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"the check itself raised {type(error).__name__}, in line {at.lineno} "
        f"of {Path(at.filename).name}: {error}. Please report it"
    )
