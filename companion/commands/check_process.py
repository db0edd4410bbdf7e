"""Import a learner's file and check it in a process that can be killed."""

import ast
import contextlib
import io
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from companion.commands.check_file import File, Part, parts_in, read
from companion.commands.isolated import (
    MEMORY,
    Ended,
    IsolatedProcess,
    Late,
    Send,
    explained,
)

if TYPE_CHECKING:
    from companion.contracts import Report

__all__ = ["build", "report_of", "told", "verdict"]

LIMIT = 20.0
"""How many seconds a process has to import the file, and as many to check it.

``check`` stops a loop in Python earlier.
"""


def verdict(
    file: File,
    part: Part,
    *,
    memory: float = MEMORY,
    show: Callable[[str], object] = lambda text: None,
) -> dict:
    """Check ``part`` in a process of its own.

    Args:
        file: The learner's file.
        part: What of it is to be checked.
        memory: How many GiB it may take.
        show: Gets what it prints while it is checked.

    Returns:
        A report as ``report_of`` makes it.

    Raises:
        ValueError: The file cannot be imported, or the part not be built.
    """
    args = (file.path, part.component, part.name)
    try:
        with IsolatedProcess(_judge, args, memory=memory, show=show) as child:
            child.begin()
            try:
                imported = child.receive(LIMIT)
            except Late:
                raise ValueError(
                    f"{file.path}: importing it had not ended after {LIMIT:g} "
                    "seconds. Does it train? Put that under `if __name__ == "
                    '"__main__":`, which is not run'
                ) from None
            if imported:
                raise ValueError(explained(imported["error"], memory))
            found = child.receive(LIMIT)
    except (Late, Ended) as reason:
        failed = {"names": ["It comes back"], "message": str(reason)}
        headline = f"{part.component}: the contracts could not be tried"
        return {"headline": headline, "failed": [failed], "held": []}
    for group in found["failed"]:
        group["message"] = explained(group["message"], memory)
    return found


def build(file: File, part: Part) -> object:
    """Import ``file`` and make what is to be checked.

    Other files beside it can be imported, but none in place of a module that is
    installed. What it prints is not shown.

    Raises:
        ValueError: A line raises something; the message names the line.
    """
    from companion.contracts import checks

    name = f"checked_{file.path.stem}"
    # A mark needs no import, and a dataclass looks its module up.
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(__file__=str(file.path), checks=checks)
    folder = str(file.path.resolve().parent)
    sys.path.append(folder)
    expression = compile(
        ast.Expression(part.expression), file.path, "eval", dont_inherit=True
    )
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(_Nothing()):
            warnings.simplefilter("ignore")
            SourceFileLoader(name, str(file.path)).exec_module(module)
            return eval(expression, module.__dict__)
    except BaseException as error:
        raise ValueError(_broken(file, part.line, error)) from None
    finally:
        sys.path.remove(folder)


def report_of(component: str, fn: object) -> dict:
    """Check ``fn``, and tell what the report says as JSON."""
    from torch import nn

    from companion.contracts import check

    return told(
        check(component, fn.eval() if isinstance(fn, nn.Module) else fn)
    )


def told(report: "Report") -> dict:
    """Tell what a report says as JSON: failures by cause, and what holds."""
    failed = [
        {"names": [f.contract for f in group], "message": group[0].message}
        for group in report.grouped()
    ]
    return {
        "headline": report.headline,
        "failed": failed,
        "held": report.held,
        "untried": len(report.untried),
    }


class _Nothing(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


def _judge(send: Send, path: Path, component: str, name: str) -> None:
    """Do what the other process does: import, build, check, and send."""
    from companion.contracts import COMPONENTS

    # No file beside it is taken for a module that is installed.
    near = {path.resolve().parent, Path.cwd()}
    sys.path[:] = [p for p in sys.path if Path(p).resolve() not in near]
    file = read(path)
    parts = {(p.component, p.name): p for p in parts_in(file, COMPONENTS)}
    try:
        built = build(file, parts[component, name])
    except ValueError as error:
        send({"error": str(error)})
        return
    send({})
    send(report_of(component, built))


def _broken(file: File, line: int, error: BaseException) -> str:
    """Say which line of the file raised, and what."""
    steps = traceback.extract_tb(error.__traceback__)
    lines = [s.lineno for s in steps if s.filename == str(file.path)]
    line = next(filter(None, lines), line)
    text = file.lines[line - 1].strip()
    raised = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"{file.at(line)}: `{text}` raised {raised}"
