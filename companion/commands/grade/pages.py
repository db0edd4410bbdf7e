"""The table of a class, as CSV and HTML, and a page for each learner.

Whatever a learner wrote is escaped: by Jinja, or by ``prose``.
"""

import csv
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from companion.commands.check import SHOWN
from companion.commands.grade.process import Result
from companion.commands.grade.submission import Submission
from companion.contracts.engine.levels import FAULT
from companion.contracts.engine.page import prose
from companion.figures.kit.inline import read_style, system_style
from companion.sanitize import sanitize

__all__ = ["Graded", "Row", "new_folder", "write"]

HERE = Path(__file__).parent
LEARNERS = "learners"
"""The folder of the pages for learners."""

FORMULA = ("=", "+", "-", "@", "\t")
"""What begins so, a spreadsheet would compute."""


@dataclass(frozen=True)
class Graded:
    """What became of a notebook.

    Attributes:
        submission: The notebook.
        chapter: The chapter of its exercises.
        results: One for each exercise.
        remarks: Cells that raised something or were left out, by number.
        fault: Why it could not be graded, if so.
    """

    submission: Submission
    chapter: str = ""
    results: Sequence[Result] = ()
    remarks: dict[int, str] = field(default_factory=dict)
    fault: str = ""


class Row(NamedTuple):
    """A line of the table.

    Attributes:
        who: The learner.
        notebook: The name of the file.
        chapter: The chapter; nothing if the notebook could not be read.
        exercise: The heading of the exercise.
        function: What it asks for.
        held: How many contracts hold.
        contracts: How many there are; nothing if none could be tried.
        level: "fault", "risk" or "note", the worst that does not hold; nothing
            if all holds.
        message: The first thing to mend.
    """

    who: str
    notebook: str
    chapter: str
    exercise: str
    function: str
    held: int | str
    contracts: int | str
    level: str
    message: str

    @property
    def sign(self) -> str:
        """The level as a sign."""
        return SHOWN[self.level][0]

    @property
    def kind(self) -> str:
        """The class that colours the line: passed, or not."""
        return "fails" if self.level == FAULT else "holds"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that is there with all that is in it, or not at all.

    Args:
        folder: Where to; there must be nothing of this name.

    Yields:
        A draft of it, to write into.

    Raises:
        OSError: It cannot be made.
        ValueError: There is something of this name.
    """
    if folder.exists():
        raise ValueError(
            f"{folder}: it is there already; name a new folder with --to"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".grades-", dir=folder.parent))
    try:
        yield draft
        draft.chmod(0o755)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def write(
    folder: Path, graded: Sequence[Graded], notes: Sequence[str] = ()
) -> int:
    """Write the table and the pages into a folder.

    Args:
        folder: Where to.
        graded: What became of each notebook.
        notes: What else is to be said of what was handed in.

    Returns:
        How many learners there are.

    Raises:
        OSError: It cannot be written.
    """
    learners: dict[str, list[Graded]] = {}
    for one in graded:
        learners.setdefault(one.submission.who, []).append(one)
    files = _file_names(list(learners))
    rows = [row for one in graded for row in _rows(one)]
    # With a mark at its beginning, a spreadsheet reads it as UTF-8.
    with (folder / "table.csv").open(
        "w", encoding="utf-8-sig", newline=""
    ) as file:
        table = csv.writer(file)
        table.writerow(Row._fields)
        table.writerows([[_cell(value) for value in row] for row in rows])
    pages = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, finalize=_finalize
    )
    pages.filters["prose"] = _prose
    shared = {"style": Markup(_style()), "folder": LEARNERS, "signs": SHOWN}
    (folder / LEARNERS).mkdir()
    for who, theirs in learners.items():
        page = pages.get_template("learner.html")
        text = page.render(who=who, graded=theirs, **shared)
        path = folder / LEARNERS / files[who]
        path.write_text(text, encoding="utf-8")
    text = pages.get_template("table.html").render(
        rows=rows, files=files, notes=notes, **shared
    )
    (folder / "index.html").write_text(text, encoding="utf-8")
    return len(learners)


def _rows(one: Graded) -> list[Row]:
    who, notebook = one.submission.who, sanitize(one.submission.path.name)
    if one.fault:
        fault = sanitize(one.fault)
        return [Row(who, notebook, "", "", "", "", "", FAULT, fault)]
    return [
        Row(
            who,
            notebook,
            one.chapter,
            result.exercise.title,
            result.exercise.name,
            len(result.held) if result.contracts else "",
            result.contracts or "",
            result.level,
            result.message,
        )
        for result in one.results
    ]


def _cell(value: int | str) -> int | str:
    """Write a cell of the CSV so that no spreadsheet computes it."""
    dangerous = isinstance(value, str) and value.startswith(FORMULA)
    return f"'{value}" if dangerous else value


def _prose(message: str) -> Markup:
    """Show a message as a notebook does."""
    return Markup(prose(sanitize(message)))


def _finalize(value: object) -> object:
    """Write whatever a page shows as plain text, which Jinja then escapes."""
    return sanitize(value) if type(value) is str else value


def _file_names(learners: Sequence[str]) -> dict[str, str]:
    """Give each learner a file; names may differ in case or signs alone."""
    files: dict[str, str] = {}
    for who in learners:
        stem = re.sub(r"[^\w.-]+", "-", who).strip("-.")[:80] or "x"
        taken = {file.casefold() for file in files.values()}
        names = (f"{stem}{n}.html" for n in ("", *range(2, len(learners) + 2)))
        files[who] = next(n for n in names if n.casefold() not in taken)
    return files


def _style() -> str:
    """Read the style, in which the course's palette follows the system."""
    return system_style() + read_style(HERE / "grades.css")
