"""``python -m companion check``: what is wrong with the code in a file."""

import os
import shutil
import sys
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Collection
from pathlib import Path

from companion.commands.check_file import File, Part, parts_in, read
from companion.commands.check_process import verdict
from companion.commands.isolated import add_memory, note_if_unlimited
from companion.contracts import COMPONENTS
from companion.sanitize import sanitize

__all__ = ["add_options", "chosen", "folded", "report", "run"]

FAILS = 1
"""The exit code if a contract does not hold."""

GOOD, BAD, NAMED = "32", "31;1", "1"
"""The codes by which a terminal writes green, red, and bold."""


def add_options(parser: ArgumentParser) -> None:
    """Add the file, and which of its components to check."""
    parser.description = (
        "Tries the contracts on functions of a file: those with the name of a "
        'component, and what is marked @checks("attention") or '
        "# checks: attention. It runs the code it is given: the file is "
        "imported, in a process of its own with limits of time and memory, and "
        'what stands under `if __name__ == "__main__":` is not run. That is no '
        "sandbox: check no code that you would not run."
    )
    parser.epilog = f"Components: {', '.join(sorted(COMPONENTS))}."
    add = parser.add_argument
    add("file", type=Path, metavar="FILE.py")
    add("components", nargs="*", metavar="COMPONENT", help="default: all in it")
    add_memory(parser)


def run(options: Namespace) -> int:
    """Print a report on each; return 0 if all contracts hold, else 1.

    Raises:
        OSError: There is no such file.
        ValueError: It is not Python, has nothing to check, or cannot be
            imported; or the limit of memory is none.
    """
    file = read(options.file)
    parts = chosen(file, options.components)
    note_if_unlimited()
    fails = False
    for part in parts:
        found = verdict(file, part, memory=options.memory, show=_show)
        fails = fails or bool(found["failed"])
        print("\n".join(report(file, part, found)), flush=True)
    return FAILS if fails else 0


def chosen(file: File, components: Collection[str]) -> list[Part]:
    """Choose the parts of a file that are asked for; all, if none is named.

    Raises:
        ValueError: There is no such component, or none of it in the file.
    """
    if unknown := set(components) - set(COMPONENTS):
        raise ValueError(
            f"components: expected some of {', '.join(sorted(COMPONENTS))}, "
            f"got {min(unknown)!r}"
        )
    parts = parts_in(file, COMPONENTS)
    parts = [p for p in parts if not components or p.component in components]
    missing = set(components) - {part.component for part in parts}
    if missing or not parts:
        what = f"no {min(missing)}" if missing else "nothing to check"
        raise ValueError(
            f"{file.path}: there is {what} in it. Call a function as its "
            "component is called, or write above it what it is, such as "
            f"# checks: {min(missing or ['attention'])}"
        )
    return parts


def report(file: File, part: Part, found: dict) -> list[str]:
    """Write the lines that a terminal shows, none wider than it."""
    width = min(shutil.get_terminal_size().columns, 80)
    mark, colour = ("✗", BAD) if found["failed"] else ("✓", GOOD)
    lines = [sanitize(f"{file.at(part.line)} {part.name}")]
    lines += folded(f"{mark} {found['headline']}", width, colour)
    for group in found["failed"]:
        for name in group["names"]:
            lines += folded(f"✗ {name}", width, NAMED, 2)
        lines += folded(group["message"], width, "", 4, 4)
    # Beside what fails, a list of what holds would only be in the way.
    held = [f"{len(found['held'])} hold"] if found["failed"] else found["held"]
    for line in held:
        lines += folded(f"✓ {line}", width, GOOD, 2)
    return [*lines, ""]


def folded(
    text: str, width: int, colour: str, indent: int = 0, more: int | None = None
) -> list[str]:
    """Fold ``text`` to plain lines of ``width``, in colour on a terminal."""
    more = indent + 2 if more is None else more
    lines = textwrap.wrap(
        sanitize(text),
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * more,
        break_on_hyphens=False,
    )
    if not colour or not _coloured():
        return lines
    return [f"\033[{colour}m{line}\033[0m" for line in lines]


def _show(text: str) -> None:
    print(text, end="", flush=True)


def _coloured() -> bool:
    """Decide whether to show colours, by the habit of https://no-color.org."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
