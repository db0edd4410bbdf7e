"""The exercises of a chapter, as its notebooks hold them: lesson and lab.

An exercise is a cell with the tag ``exercise``: a function that raises
``NotImplementedError``. A cell below it, ``check("softmax", my_softmax)``, says
what the function claims to be.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import nbformat
from nbformat import NotebookNode

__all__ = [
    "BOOK",
    "Exercise",
    "exercises_of",
    "notebooks_of",
    "read_notebook",
    "tagged",
]

BOOK = Path(__file__).parents[3] / "book"
"""Where a checkout of the course keeps its chapters."""

TIME = re.compile(r" *\([^()]*minutes\)$")
"""How hard an exercise is and how long it takes, at the end of its heading."""


@dataclass(frozen=True)
class Exercise:
    """A function that a learner is asked for.

    Attributes:
        name: What the function is called.
        title: The heading above it, without the time it takes.
        component: What it claims to be; or what it tests.
        sick: The known mistake that it has to find, if it is a test.
        strict: Whether risks and notes count as faults.
    """

    name: str
    title: str
    component: str
    sick: str = ""
    strict: bool = False


def notebooks_of(chapter: str) -> list[Path]:
    """List the notebooks of a chapter: its lesson and its lab.

    Args:
        chapter: Its word, such as ``attention``.

    Raises:
        ValueError: There is no book beside the package.

    Example:
        >>> [path.parent.name for path in notebooks_of("attention")]
        ['book', 'labs']
    """
    found = [
        path
        for folder in (BOOK, BOOK / "labs")
        for path in folder.glob(f"[0-9]*_{chapter}.ipynb")
    ]
    if not found:
        raise ValueError(
            f"the exercises are taken from the notebooks of the chapters, and "
            f"there are none in {BOOK}: use a checkout of the course"
        )
    return found


def exercises_of(chapter: str) -> list[Exercise]:
    """Read the exercises of a chapter.

    Args:
        chapter: Its word, such as ``attention``.

    Raises:
        ValueError: There is no book beside the package.

    Example:
        >>> [exercise.name for exercise in exercises_of("seq2seq")]
        ['my_alignment', 'repaired']
    """
    return [
        exercise
        for path in notebooks_of(chapter)
        for exercise in _exercises_in(read_notebook(path).cells)
    ]


def read_notebook(path: Path) -> NotebookNode:
    """Read a notebook of the book."""
    return cast(NotebookNode, nbformat.read(path, as_version=4))


def tagged(cell: NotebookNode, tag: str) -> bool:
    """Tell whether a cell has a tag."""
    return tag in cell.metadata.get("tags", ())


def _exercises_in(cells: list[NotebookNode]) -> list[Exercise]:
    found, title = [], ""
    for i, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            for line in cell.source.splitlines():
                title = line.lstrip("# ") if line.startswith("#") else title
        elif tagged(cell, "exercise"):
            stub = ast.parse(cell.source).body[0]
            assert isinstance(stub, ast.FunctionDef)
            component, sick, strict = next(
                asked
                for below in cells[i + 1 :]
                if below.cell_type == "code"
                and (asked := _asked(below.source, stub.name))
            )
            short = TIME.sub("", title)
            found.append(Exercise(stub.name, short, component, sick, strict))
    return found


def _asked(source: str, name: str) -> tuple[str, str, bool] | None:
    """Read what ``check`` or ``check_test`` asks of the function ``name``."""
    match ast.parse(source).body:
        case [
            ast.Expr(
                ast.Call(
                    ast.Name("check" | "check_test"),
                    [ast.Constant(component), *sick, ast.Name(given)],
                    named,
                )
            )
        ] if given == name:
            words = [c.value for c in sick if isinstance(c, ast.Constant)]
            strict = any(keyword.arg == "strict" for keyword in named)
            return str(component), "".join(map(str, words)), strict
    return None
