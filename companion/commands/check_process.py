"""Import a learner's file and check it in a process that can be killed.

A thread that sits in C code cannot be stopped, and a crash takes its process
along. Neither reaches the process that asks.
"""

import ast
import contextlib
import io
import json
import multiprocessing
import os
import sys
import traceback
import warnings
from importlib.machinery import SourceFileLoader
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

from companion.commands.check_file import File, Part, parts_in, read

__all__ = ["build", "report_of", "verdict"]

STARTING = 120.0
"""How many seconds a process may take to import PyTorch."""

LIMIT = 20.0
"""How many seconds it then has to import the file, and as many to check it.

``check`` stops a loop in Python earlier.
"""


def verdict(file: File, part: Part) -> dict:
    """Check ``part`` in a process of its own.

    Returns:
        A report as ``report_of`` makes it.

    Raises:
        ValueError: The file cannot be imported, or the part not be built.
    """
    spawned = multiprocessing.get_context("spawn")
    receiver, sender = spawned.Pipe(duplex=False)
    process = spawned.Process(
        target=_judge,
        args=(sender, file.path, part.component, part.name),
        daemon=True,
    )
    process.start()
    sender.close()
    try:
        found = _received(receiver, file.path)
    finally:
        process.kill()
        process.join()
    if "error" in found:
        raise ValueError(found["error"])
    if "ended" in found:
        failed = {"names": ["It comes back"], "message": found["ended"]}
        headline = f"{part.component}: the contracts could not be tried"
        return {"headline": headline, "failed": [failed], "held": []}
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
    """Check ``fn``: a headline, failures by cause, and what holds, as JSON."""
    from torch import nn

    from companion.contracts import check

    report = check(component, fn.eval() if isinstance(fn, nn.Module) else fn)
    failed = [
        {"names": [f.contract for f in group], "message": group[0].message}
        for group in report.grouped()
    ]
    return {
        "headline": report.headline,
        "failed": failed,
        "held": report.held,
    }


class _Nothing(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


def _received(pipe: Connection, path: Path) -> dict:
    """Wait for what the process sends: a report, or why there is none."""
    try:
        if not pipe.poll(STARTING):
            return {"ended": f"It had not begun after {STARTING:g} seconds."}
        pipe.recv_bytes()
        if not pipe.poll(LIMIT):
            return {
                "error": f"{path}: importing it had not ended after {LIMIT:g} "
                "seconds. Does it train? Put that under `if __name__ == "
                '"__main__":`, which is not run'
            }
        # No pickle: what comes from a learner's process is only text.
        imported = json.loads(pipe.recv_bytes())
        if imported:
            return imported
        if not pipe.poll(LIMIT):
            return {
                "ended": f"It had not come back after {LIMIT:g} seconds, and "
                "its process was killed. Does it wait for something, or is "
                "there a step in C that never ends?"
            }
        return json.loads(pipe.recv_bytes())
    except EOFError:
        return {
            "ended": "Its process ended before there was a result: it crashed"
            ", or something in it called `os._exit`."
        }


def _judge(pipe: Connection, path: Path, component: str, name: str) -> None:
    """Do what the other process does: import, build, check, and send."""
    import torch

    from companion.contracts import COMPONENTS

    def send(message: dict) -> None:
        sys.stdout.flush()
        pipe.send_bytes(json.dumps(message).encode())

    send({})
    # Nothing is left behind, and no window waits to be closed.
    sys.dont_write_bytecode = True
    os.environ["MPLBACKEND"] = "agg"
    # Nor is a file beside it taken for a module that is installed.
    near = {path.resolve().parent, Path.cwd()}
    sys.path[:] = [p for p in sys.path if Path(p).resolve() not in near]
    torch.manual_seed(0)
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
