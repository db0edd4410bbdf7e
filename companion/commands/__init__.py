"""The command line: ``python -m companion train``, ``check``, ``quiz``.

train      reads the options of a run, trains, and draws its curve
translate  asks a trained model, and shows where it attended
check      tries the contracts on a file, a folder, a notebook or a module
isolated   the process for code of others, with limits of time and memory
curve      the picture of a run
alignment  attention as text, as SVG and as a page
handout    writes the exercises of a chapter without solutions
grade      grades the notebooks of a class: a table, a page for each learner
quiz       asks questions of the bank; ``mock`` those of an interview,
           ``review`` what is due today; ``stats`` says how it went
asking     what these four share
anki       the bank as a deck
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

from companion import __version__
from companion.extras import extra
from companion.sanitize import sanitize

__all__ = ["COMMANDS", "STOPPED", "WRONG", "main", "rank"]

COMMANDS = {
    "train": "train a model, or go on with a run that was stopped",
    "translate": "translate a sentence with a trained model",
    "check": "say what is wrong with a Transformer, in a file or a folder",
    "handout": "write the exercises of a chapter for a class",
    "grade": "grade what a class has handed in",
    "quiz": "answer interview questions",
    "mock": "a mock interview, with a report",
    "review": "answer again what is due today",
    "stats": "what you have answered, and how well",
    "anki": "write the questions as a deck for Anki",
}
EXTRAS = {
    "train": "train",
    "translate": "train",
    "handout": "class",
    "grade": "class",
}
"""Command -> the extra that it needs; the others need ``interview``."""
WRONG, STOPPED = 2, 130
"""Exit codes: something does not fit; Ctrl-C, as shells say it."""
MENDABLE = (
    ValueError,
    TypeError,
    OSError,
    FloatingPointError,
    ModuleNotFoundError,
)


def main(arguments: Sequence[str]) -> int:
    """Run one command.

    What the user can mend is reported in one line, without a traceback.

    Args:
        arguments: What stands behind ``python -m companion``.

    Returns:
        The code that the process ends with.

    Raises:
        SystemExit: ``arguments`` are not those of a command, or ask for help.
    """
    try:
        return _run(list(arguments))
    except MENDABLE as error:
        process = f"process {rank()}: " if rank() else ""
        reason = sanitize(_reason(error))
        print(f"{process}error: {reason}", file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        return STOPPED


def _reason(error: Exception) -> str:
    """Put the name of a file that cannot be read first, and no number."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def rank() -> int:
    """Read which process of a run this is from what ``torchrun`` sets."""
    return int(os.environ.get("RANK", 0))


def _run(arguments: list[str]) -> int:
    parser = ArgumentParser(
        prog="python -m companion",
        description="Train a Transformer on this machine and try it, check "
        "your own, or prepare for an interview.",
    )
    parser.add_argument(
        "--version", action="version", version=f"companion {__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, line in COMMANDS.items():
        one = commands.add_parser(
            name, help=line, description=line, allow_abbrev=False
        )
        # Only the command that is asked for is imported: it brings PyTorch.
        if arguments[:1] == [name]:
            with extra(EXTRAS.get(name, "interview")):
                module = import_module(f"companion.commands.{name}")
            module.add_options(one)
            one.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    return options.run(options)
