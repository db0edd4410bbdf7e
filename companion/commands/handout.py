"""``python -m companion handout``: the exercises of a chapter, for a class."""

import ast
import re
import symtable
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from companion import CHAPTERS
from companion.commands.grade.exercises import (
    BOOK,
    exercises_of,
    notebooks_of,
    read_notebook,
    tagged,
)

__all__ = ["add_options", "handout", "run"]

INTRODUCTION = """\
# {title}: exercises

Write each function in its cell, run the cell below it, and read what it says.
The hints open one at a time. Keep the names of the functions, because your
teacher's command finds by them what you wrote. Hand in this notebook, with all
exercises in one file."""

ANSWER = re.compile(r"<details><summary>(?!Hint \d).*?</details>\s*", re.DOTALL)
"""What unfolds and is no hint."""

NOTEBOOK = re.compile(r"\[([^\]]+)\]\([^)]*\.ipynb[^)]*\)")
"""A link to another notebook, which a learner does not have."""


def add_options(parser: ArgumentParser) -> None:
    """Add which chapter, and where to."""
    parser.description = (
        "Writes the exercises of a chapter as one notebook, those of its "
        "lesson and of its lab: stubs, checks and hints, without solutions. "
        "What learners hand in, `python -m companion grade` reads."
    )
    parser.add_argument(
        "chapter",
        choices=CHAPTERS,
        metavar="CHAPTER",
        help=", ".join(CHAPTERS),
    )
    parser.add_argument(
        "--to",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where to write it; default: here",
    )


def run(options: Namespace) -> int:
    """Write the notebook, say where it lies, and return 0.

    Raises:
        FileExistsError: There is a file of this name.
        OSError: It cannot be written.
        ValueError: There is no book beside the package.
    """
    notebook = handout(options.chapter)
    options.to.mkdir(parents=True, exist_ok=True)
    path = options.to / f"{options.chapter}-exercises.ipynb"
    with path.open("x", encoding="utf-8") as file:
        file.write(nbformat.writes(notebook) + "\n")
    print(f"{path}: {len(exercises_of(options.chapter))} exercises")
    return 0


def handout(chapter: str) -> NotebookNode:
    """Make a notebook of the exercises of a chapter, without solutions.

    Args:
        chapter: Its word, such as ``attention``.

    Returns:
        The notebook. Its metadata names the chapter.

    Raises:
        ValueError: There is no book beside the package.

    Example:
        >>> handout("attention").metadata.companion.chapter
        'attention'
    """
    made = new_notebook(metadata={"companion": {"chapter": chapter}})
    seen: set[str] = set()
    for path in notebooks_of(chapter):
        page = read_notebook(path)
        if path.parent == BOOK:
            title = page.cells[0].source.partition("\n")[0].lstrip("# ")
            text = INTRODUCTION.format(title=title)
            made.cells.append(new_markdown_cell(text, id="title"))
            made.metadata |= page.metadata
        for cell in _cells_of(page.cells, seen):
            # The lesson and its lab may use the same word.
            cell.id = f"{path.parent.name}-{cell.id}"[:64]
            made.cells.append(cell)
    return made


def _cells_of(
    cells: list[NotebookNode], seen: set[str]
) -> Iterator[NotebookNode]:
    """Take the sections with exercises, after what they need from above."""
    above: list[NotebookNode] = []
    taken: list[NotebookNode] = []
    needed: set[str] = set()
    for section in _sections(cells):
        if any(tagged(cell, "exercise") for cell in section):
            kept, used = _without_solutions(section)
            taken += kept
            needed |= used
        else:
            above += section
    setup = [line for line in _setup(above, needed) if line not in seen]
    seen |= set(setup)
    if setup:
        yield new_code_cell("\n".join(setup), id="needs")
    yield from taken


def _sections(cells: list[NotebookNode]) -> list[list[NotebookNode]]:
    """Part the cells where a heading of the second rank stands."""
    parts: list[list[NotebookNode]] = [[]]
    for cell in cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            parts.append([])
        parts[-1].append(cell)
    return parts


def _without_solutions(
    section: list[NotebookNode],
) -> tuple[list[NotebookNode], set[str]]:
    """Take the prose, the stubs, what looks at them, and what is given.

    Returns:
        The cells, and the names that they and the solutions read.
    """
    code = [cell for cell in section if cell.cell_type == "code"]
    stubs = {n for c in code if tagged(c, "exercise") for n in _bound(c.source)}
    kept, needed = [], set()
    for cell in reversed(section):
        if cell.cell_type == "markdown":
            text = NOTEBOOK.sub(r"\1", ANSWER.sub("", cell.source)).strip()
            kept.append(new_markdown_cell(text, id=cell.id))
            continue
        bound, used = _bound(cell.source), _used(cell.source)
        solution = tagged(cell, "solution")
        if solution or bound & (needed | stubs) or used & stubs:
            # What a solution needs, whoever writes one needs, too.
            needed = (needed | used) - bound
            tags = {"tags": ["exercise"]} if tagged(cell, "exercise") else {}
            kept += [new_code_cell(cell.source, id=cell.id, metadata=tags)] * (
                not solution
            )
    return kept[::-1], needed


def _setup(cells: list[NotebookNode], needed: set[str]) -> list[str]:
    """Find what defines the names that are needed, and what that needs."""
    needed, lines = set(needed), []
    for cell in reversed(cells):
        if cell.cell_type != "code":
            continue
        for statement in reversed(ast.parse(cell.source).body):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                statement.names = [
                    alias
                    for alias in statement.names
                    if (alias.asname or alias.name.partition(".")[0]) in needed
                ]
                if statement.names:
                    lines.append(ast.unparse(statement))
                continue
            text = ast.unparse(statement)
            if _bound(text) & needed:
                lines.append(text)
                needed = (needed - _bound(text)) | _used(text)
    return lines[::-1]


def _used(source: str) -> set[str]:
    """Name what a cell reads of what cells share."""
    found, tables = set(), [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        top = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (top or symbol.is_global())
        }
    return found


def _bound(source: str) -> set[str]:
    """Name what a cell leaves to the cells below it."""
    table = symtable.symtable(source, "cell", "exec")
    return {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_assigned() or symbol.is_imported()
    }
