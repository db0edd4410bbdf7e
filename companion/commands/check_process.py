"""Runs one function of a learner in a process of its own, which can be killed.

A thread that sits in C code cannot be stopped, and a crash takes its process
along. Neither reaches the one that asks.
"""

import ast
import json
import multiprocessing
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

from companion.commands.check_file import File, needed, read
from companion.commands.check_parts import Part, parts_in, unmarked

STARTING = 120.0
"""How many seconds a process may take to import PyTorch."""

LIMIT = 20.0
"""How many seconds it then has. ``check`` stops a loop in Python earlier."""


def verdict(file: File, part: Part) -> dict:
    """What ``check`` says of ``part``, as ``told`` puts it.

    Raises:
        ValueError: what the part needs cannot be run.
    """
    spawned = multiprocessing.get_context("spawn")
    ours, theirs = spawned.Pipe(duplex=False)
    process = spawned.Process(
        target=_judge,
        args=(theirs, file.path, part.component, part.name),
        daemon=True,
    )
    process.start()
    theirs.close()
    try:
        found = _received(ours)
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


def built(file: File, part: Part) -> object:
    """What is to be checked, made by the statements that it needs.

    Raises:
        ValueError: one of them raises something.
    """
    body = [unmarked(s) for s in needed(file, part.made)]
    # A dataclass looks its module up.
    module = ModuleType(f"checked_{file.path.stem}")
    module.__file__ = str(file.path)
    sys.modules[module.__name__] = module
    path, line = str(file.path), part.line
    program = compile(ast.Module(body, []), path, "exec", dont_inherit=True)
    made = compile(ast.Expression(part.made), path, "eval", dont_inherit=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program, module.__dict__)
            return eval(made, module.__dict__)
    except BaseException as error:
        raise ValueError(_broken(file, line, error)) from None


def told(component: str, fn: object) -> dict:
    """A report as what can be sent: headline, failures by cause, held."""
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


def _received(pipe: Connection) -> dict:
    """The one thing that the process sends, or why it did not."""
    try:
        if not pipe.poll(STARTING):
            return {"ended": f"It had not begun after {STARTING:g} seconds."}
        pipe.recv_bytes()
        if not pipe.poll(LIMIT):
            return {
                "ended": f"It had not come back after {LIMIT:g} seconds, and "
                "its process was killed. Does it wait for something, or is "
                "there a step in C that never ends?"
            }
        # No pickle: what comes from a learner's process is only text.
        return json.loads(pipe.recv_bytes())
    except EOFError:
        return {
            "ended": "Its process ended before there was a result: it crashed"
            ", or something in it called `os._exit`."
        }


def _judge(pipe: Connection, path: Path, component: str, name: str) -> None:
    """What the other process does: it builds, checks, and sends."""
    import torch

    from companion.contracts import COMPONENTS

    pipe.send_bytes(b"ready")
    _without_neighbours(path)
    torch.manual_seed(0)
    file = read(path)
    parts = {(p.component, p.name): p for p in parts_in(file, COMPONENTS)}
    try:
        result = told(component, built(file, parts[component, name]))
    except ValueError as error:
        result = {"error": str(error)}
    sys.stdout.flush()
    pipe.send_bytes(json.dumps(result).encode())


def _without_neighbours(path: Path) -> None:
    """Python finds no file of the learner's any more: nothing is imported."""
    near = {path.resolve().parent, Path.cwd()}
    sys.path[:] = [p for p in sys.path if Path(p).resolve() not in near]


def _broken(file: File, line: int, error: BaseException) -> str:
    """Which line of the file raised, and what."""
    steps = traceback.extract_tb(error.__traceback__)
    lines = [s.lineno for s in steps if s.filename == str(file.path)]
    line = lines[0] if lines else line
    text = file.lines[line - 1].strip()
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    told = f"{file.at(line)}: `{text}` raised {said}"
    beside = getattr(error, "name", None) if _is_import(error) else None
    if beside and _lies_beside(file, beside):
        told += (
            f". {beside.partition('.')[0]} is a file of yours, and importing it"
            " would run all of it: copy what is needed"
        )
    return told


def _is_import(error: BaseException) -> bool:
    return isinstance(error, ModuleNotFoundError)


def _lies_beside(file: File, module: str) -> bool:
    first = file.path.resolve().parent / module.partition(".")[0]
    return first.is_dir() or first.with_suffix(".py").exists()
