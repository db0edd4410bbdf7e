"""``python -m companion check``: what is wrong with the code in a file.

It has each file judged in a process of its own; PyTorch is imported there, and
not here.

target     which files are asked for
file       a file or a notebook, as it was read, and the marks in it
process    starts the process, and notes what it says until it ends
imports    imports the file there, with its neighbours
names      tells by names what a thing may be
find       finds what is in it, and has each judged when that can be
judging    tries the contracts on one thing, and tells it as JSON
functions  judges functions by their names, in the call that fits
losses     judges what smooths labels
page       writes the page and the JSON
"""

import os
import shutil
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from companion.commands.check.process import Asked, Section, judged
from companion.commands.check.target import Target, targets
from companion.commands.isolated import (
    LEFT_OUT,
    add_memory,
    note_if_unlimited,
)
from companion.extras import extra
from companion.sanitize import sanitize
from companion.words import ENGLISH, LANGUAGES, say, wrapped

__all__ = [
    "add_options",
    "closing",
    "folded",
    "report",
    "run",
    "untried",
    "worst",
]

FAILS, NOTHING = 1, 2
"""The exit codes if there is a fault, and if nothing could be judged."""

GOOD, BAD, NAMED = "32", "31;1", "1"
"""The codes by which a terminal writes green, red, and bold."""

UNTRIED = "Not tried, for want of a name or mark"
NAMES = 8
"""How many of a file are named that were not tried."""

SHOWN = {
    "": ("✓", GOOD),
    "fault": ("✗", BAD),
    "risk": ("!", "33;1"),
    "note": ("·", "36;1"),
}
"""The worst that does not hold -> sign and colour."""


def add_options(parser: ArgumentParser) -> None:
    """Add what to check, and where to write a report."""
    parser.description = (
        "Tries the contracts on what it finds in a file, a folder, a notebook "
        "or a module: functions with the name of a component, what is marked "
        '@checks("attention") or # checks: attention, and modules by what they '
        "do. It runs the code it is given: each file is imported, in a process "
        "of its own with limits of time and memory, and what stands under "
        '`if __name__ == "__main__":` is not run. That is no sandbox: check no '
        "code that you would not run."
    )
    plain = parser.format_help

    def format_help() -> str:
        # Only who asks for help waits until PyTorch is imported.
        from companion.contracts import COMPONENTS

        parser.epilog = f"Components: {', '.join(sorted(COMPONENTS))}."
        return plain()

    parser.format_help = format_help
    add = parser.add_argument
    add(
        "target",
        metavar="WHAT",
        help="a file, a folder, a notebook, a module, or FILE.py:NAME and "
        "package.module:NAME",
    )
    add(
        "components",
        nargs="*",
        default=[],
        metavar="COMPONENT",
        help="default: all in it",
    )
    add(
        "--mask",
        choices=("shown", "hidden"),
        help="what True does to a key, in your masks",
    )
    add(
        "--lang",
        choices=LANGUAGES,
        default=ENGLISH,
        help="the language of the report",
    )
    add("--html", type=Path, metavar="FILE.html", help="write a page, too")
    add(
        "--json",
        type=Path,
        metavar="FILE.json",
        help="write it for machines, too; - writes it here, and nothing else",
    )
    add_memory(parser)


def run(options: Namespace) -> int:
    """Print a report on each part; return 1 if there is a fault, else 0.

    Raises:
        ModuleNotFoundError: PyTorch is missing.
        OSError: There is no such file, or a report cannot be written.
        ValueError: It is not Python, has nothing to check, or cannot be
            imported; or the limit of memory is none.
    """
    with extra("train"):
        # It is imported in another process, where nobody would tell.
        if find_spec("torch") is None:
            raise ModuleNotFoundError(name="torch")
    for path, suffix in ((options.html, ".html"), (options.json, ".json")):
        _require_place(path, suffix)
    found = targets(options.target)
    note_if_unlimited()
    asked = Asked(
        tuple(options.components),
        options.mask,
        options.memory,
        bool(options.html),
        options.lang,
    )
    quiet = str(options.json) == "-"
    show = _nowhere if quiet else _show
    sections = [
        _judged(target, asked, show, many=len(found) > 1) for target in found
    ]
    if len(sections) == 1:
        _require_something(sections[0], asked)
    _leave_out_judged(sections)
    for line in closing(sections, options.lang):
        show(f"{line}\n")
    if options.html or options.json:
        from companion.commands.check.page import write_html, write_json

        if options.html:
            write_html(options.html, options.target, sections, options.lang)
        if options.json:
            write_json(options.json, sections)
    if not any(section.parts for section in sections):
        if len(sections) > 1 and not any(s.unjudged for s in sections):
            failed, n = sum(bool(s.error) for s in sections), len(sections)
            raise ValueError(
                f"{options.target}: {failed} of its {n} files could not be "
                "imported, as told above, and there is nothing else to check"
                if failed
                else f"{options.target}: there is nothing to check in its {n} "
                "files"
            )
        return NOTHING
    levels = [worst(p["found"]) for s in sections for p in s.parts]
    return FAILS if "fault" in levels else 0


def _judged(target: Target, asked: Asked, show, *, many: bool) -> Section:
    """Have a file judged, and show each part of it as soon as it is."""
    headed = False

    def part(section: Section, found: dict) -> None:
        nonlocal headed
        if many and not headed:
            show(sanitize(f"— {section.target.title}\n\n"))
            headed = True
        lines = report(section, found, brief=many, lang=asked.lang)
        show("\n".join(lines) + "\n")

    def printed(text: str) -> None:
        show(text.replace(LEFT_OUT, say(LEFT_OUT, asked.lang)))

    return judged(target, asked, show=printed, part=part)


def _require_place(path: Path | None, suffix: str) -> None:
    """Refuse to write over what is no report, or where there is no folder.

    Raises:
        ValueError: The name is not that of a report.
        OSError: There is no such folder.
    """
    if path is None or str(path) == "-":
        return
    if path.suffix != suffix:
        raise ValueError(
            f"--{suffix[1:]}: expected the name of a file, *{suffix}, got "
            f"{path}"
        )
    if not path.parent.is_dir():
        raise NotADirectoryError(
            f"--{suffix[1:]}: there is no folder {path.parent} for {path.name}"
        )


def _require_something(section: Section, asked: Asked) -> None:
    """Refuse a file of which nothing that was asked for could be tried.

    Raises:
        ValueError: So it is.
    """
    if section.error and not section.parts:
        raise ValueError(section.error)
    have = {part["component"] for part in section.parts}
    missing = set(asked.components) - have
    if section.target.name and section.unjudged:
        return  # Of what the user named, the reason is told.
    if missing or not (section.parts or section.unjudged):
        what = f"no {min(missing)}" if missing else "nothing to check"
        raise ValueError(
            f"{section.target.title}: there is {what} in it. Call a function "
            "as its component is called, or write above it what it is, such as "
            f"# checks: {min(missing or ['attention'])}"
        )


def _leave_out_judged(sections: list[Section]) -> None:
    """Leave out what was judged elsewhere, as a part of a model."""
    names = {part["name"] for s in sections for part in s.parts}
    inside = {n.partition("(")[2].rstrip(")") for n in names if "(" in n}
    for section in sections:
        section.unjudged = [
            one for one in section.unjudged if one["name"] not in inside
        ]


def report(
    section: Section, part: dict, *, brief: bool = False, lang: str = ENGLISH
) -> list[str]:
    """Write the lines that a terminal shows, none wider than it.

    Args:
        section: The file.
        part: What of it was judged.
        brief: Whether what holds is only counted.
        lang: The language of the lines.
    """
    width, found = _width(), part["found"]
    fold = partial(folded, lang=lang)
    mark, colour = SHOWN[worst(found)]
    lines = [sanitize(f"{section.at(part['line'])} {part['name']}")]
    lines += fold(f"{mark} {found['headline']}", width, colour)
    for said in found.get("assumed", ()):
        lines += fold(f"({said})", width, "", 2, 3)
    for group in found["failed"]:
        sign, _ = SHOWN[group.get("level", "fault")]
        for name in group["names"]:
            lines += fold(f"{sign} {name}", width, NAMED, 2)
        lines += fold(group["message"], width, "", 4, 4)
        lines += fold(group.get("excuse", ""), width, "", 4, 4)
    # Beside what fails, a list of what holds would only be in the way.
    held = found["held"]
    if found["failed"] or brief:
        held = [f"{len(held)} hold"] if found["failed"] else []
    for line in held:
        lines += fold(f"✓ {line}", width, GOOD, 2)
    return [*lines, ""]


def worst(found: dict) -> str:
    """Return the level of the worst that does not hold; nothing if all does."""
    levels = [group.get("level", "fault") for group in found["failed"]]
    return next((level for level in SHOWN if level in levels), "")


def closing(sections: list[Section], lang: str = ENGLISH) -> list[str]:
    """Write what was not judged, and the total."""
    width, lines = _width(), []
    fold = partial(folded, lang=lang)
    for section in sections:
        for remark in section.remarks.values():
            told = f"{section.target.title}: {say(remark, lang)}"
            lines += fold(told, width, "")
        if section.error and len(sections) > 1:
            lines += fold(section.error, width, "")
    unjudged = [(s, one) for s in sections for one in s.unjudged]
    if lines and unjudged:
        lines.append("")
    if unjudged:
        lines += [say("Not judged:", lang)]
    for section, one in unjudged:
        reason = say(one["reason"], lang)
        name = say(one["name"], lang)  # It may be what is left of a file.
        where = f"{section.at(one['line'])} {name}: {reason}"
        sign = SHOWN[one["level"] or "note"][0]
        lines += fold(f"{sign} {where}", width, "", 2)
    if names := untried(sections):
        lines += [""] * bool(lines) + fold(names, width, "")
    return [*lines, *[""] * bool(lines), *fold(total(sections), width, NAMED)]


def untried(sections: list[Section]) -> str:
    """List the names of what was not tried; of many in a file the first."""
    found = []
    for section in sections:
        names = ", ".join(section.untried[:NAMES])
        if more := len(section.untried[NAMES:]):
            names += f" and {more} more"
        where = f"{section.target.title}: " if len(sections) > 1 else ""
        found += [where + names] * bool(names)
    return f"{UNTRIED}: {'; '.join(found)}." if found else ""


def total(sections: list[Section]) -> str:
    """Count files, parts and faults."""
    parts = [part for section in sections for part in section.parts]
    faulty = sum(worst(part["found"]) == "fault" for part in parts)
    left = sum(len(section.unjudged) for section in sections)
    broken = sum(bool(section.error) for section in sections)
    words = [
        counted(len(sections), "file"),
        f"{counted(len(parts), 'part')} judged",
        f"{faulty} with faults",
        f"{left} not judged",
    ]
    if number := sum(bool(o["level"]) for s in sections for o in s.unjudged):
        words.append(f"{number} of these with a risk")
    if broken:
        words.append(f"{counted(broken, 'file')} not imported")
    return ", ".join(words)


def counted(number: int, word: str) -> str:
    """Write how many there are."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def folded(
    text: str,
    width: int,
    colour: str,
    indent: int = 0,
    more: int | None = None,
    lang: str = ENGLISH,
) -> list[str]:
    """Fold ``text`` to plain lines of ``width``, in colour on a terminal."""
    more = indent + 2 if more is None else more
    lines = wrapped(
        sanitize(say(text, lang)),
        lang,
        width,
        indent=" " * indent,
        more=" " * more,
    )
    if not colour or not _coloured():
        return lines
    return [f"\033[{colour}m{line}\033[0m" for line in lines]


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 80)


def _show(text: str) -> None:
    print(text, end="", flush=True)


def _nowhere(text: str) -> None:
    pass


def _coloured() -> bool:
    """Decide whether to show colours, by the habit of https://no-color.org."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain
