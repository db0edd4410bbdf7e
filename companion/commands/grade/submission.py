"""What was handed in: whose it is, and the code in it. Nothing of it is run."""

import ast
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import nbformat
from nbformat import NotebookNode

from companion.sanitize import sanitize

__all__ = ["Cell", "Submission", "collect", "read"]

LARGEST = 64 * 2**20
"""How many bytes a notebook may have; outputs without end make more."""


NONE = "There is no notebook in this folder."


@dataclass(frozen=True)
class Cell:
    """A code cell.

    Attributes:
        number: Its place among all cells, from 1.
        source: Its text, in which magics are Python.
    """

    number: int
    source: str


@dataclass(frozen=True)
class Submission:
    """A notebook that was handed in.

    Attributes:
        who: Whose it is: the name of the folder it lies in, or its own.
        path: Where it lies.
        chapter: The chapter that its handout names, if it does.
        cells: Its code.
        fault: Why it cannot be read, if it cannot.
    """

    who: str
    path: Path
    chapter: str = ""
    cells: tuple[Cell, ...] = ()
    fault: str = ""


def collect(folder: Path) -> tuple[list[Submission], list[str]]:
    """Read all notebooks of a folder: one a learner, or a folder a learner.

    Args:
        folder: Where they lie, at any depth.

    Returns:
        The notebooks, by name; a folder without one stands for one that cannot
        be read. And a line for each file that is no notebook, and for each
        learner with two of one chapter.

    Raises:
        OSError: There is no such folder, or it cannot be read.
        ValueError: There is no notebook in it.
    """
    files = sorted(
        path
        for path in [*folder.iterdir(), *folder.glob("*/**/*")]
        if path.is_file() and not _hidden(path.relative_to(folder))
    )
    notebooks = [path for path in files if path.suffix.lower() == ".ipynb"]
    if not notebooks:
        raise ValueError(f"{folder}: there is no notebook in it, no *.ipynb")
    found = [read(path, _who(path.relative_to(folder))) for path in notebooks]
    found += [
        Submission(sanitize(path.name), path, fault=NONE)
        for path in folder.iterdir()
        if path.is_dir()
        and not _hidden(path.relative_to(folder))
        and not any(path in notebook.parents for notebook in notebooks)
    ]
    notes = [
        f"{path}: this is no notebook, and is not graded"
        for path in files
        if path not in notebooks
    ]
    many = Counter((one.who, one.chapter) for one in found)
    notes += [
        f"{who}: {number} notebooks of one chapter; each is graded"
        for (who, _), number in many.items()
        if number > 1
    ]
    return sorted(found, key=lambda one: (one.who, str(one.path))), notes


def read(path: Path, who: str) -> Submission:
    """Read a notebook.

    Args:
        path: Where it lies.
        who: Whose it is.

    Returns:
        What is in it, or why it cannot be read.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(
                f"it is larger than {LARGEST >> 20} MiB: clear its outputs"
            )
        text = path.read_bytes().decode("utf-8-sig")
        if not text.strip():
            return Submission(who, path, fault="The file is empty.")
        notebook = cast(NotebookNode, nbformat.reads(text, as_version=4))
        cells = tuple(
            Cell(number, _python(str(cell.source)))
            for number, cell in enumerate(notebook.cells, 1)
            if cell.cell_type == "code"
        )
        named = notebook.metadata.get("companion", {})
        chapter = str(named.get("chapter", ""))
    except UnicodeDecodeError:
        return Submission(who, path, fault="It is not UTF-8 text.")
    except OSError as error:
        return Submission(who, path, fault=f"It is closed: {error.strerror}.")
    # What a file holds that looks like a notebook and is none, nobody knows.
    except Exception as error:
        said = " ".join(str(error).split())[:120] or type(error).__name__
        fault = f"It cannot be read as a notebook: {said}"
        return Submission(who, path, fault=fault)
    return Submission(who, path, chapter, cells)


def _who(path: Path) -> str:
    """Name a learner by the outermost folder, or else by the file."""
    return sanitize(path.parts[0] if len(path.parts) > 1 else path.stem)


def _hidden(path: Path) -> bool:
    """Tell what editors and archives leave behind."""
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _python(source: str) -> str:
    """Turn magics into Python, and leave everything else as it is."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        # It takes half a second to import, and few notebooks need it.
        from IPython.core.inputtransformer2 import TransformerManager

        return TransformerManager().transform_cell(source)
    return source
