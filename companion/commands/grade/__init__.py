"""``python -m companion grade``: what a class has handed in, as a table.

exercises   what a chapter asks for
submission  whose a notebook is, and the code in it
process     runs a notebook apart, with limits, and checks its functions
pages       the table, and a page for each learner

Two tools for classes were read first, and neither fits. nbgrader 0.9 wants its
own order of folders and a database; what it exports are scores, without the
first message. Otter-Grader 7 wants Docker to keep a notebook apart. Neither
limits memory.
"""

import contextlib
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from companion import CHAPTERS
from companion.commands import STOPPED
from companion.commands.check import BAD, SHOWN, folded
from companion.commands.grade.exercises import exercises_of
from companion.commands.grade.pages import Graded, new_folder, write
from companion.commands.grade.process import Result, judge
from companion.commands.grade.submission import Submission, collect
from companion.commands.isolated import add_memory, note_if_unlimited
from companion.sanitize import sanitize

__all__ = ["add_options", "grade", "run"]


def add_options(parser: ArgumentParser) -> None:
    """Add what to grade, and where the table goes."""
    parser.description = (
        "Grades the notebooks of a class: one a learner, named by the file or "
        "by the folder it lies in. Writes a table, CSV and HTML, and a page "
        "for each learner. It runs the code it is given, each notebook in a "
        "process of its own with limits of time and memory. That is no "
        "sandbox, and a learner who wants to can forge a result."
    )
    add = parser.add_argument
    add("folder", type=Path, metavar="FOLDER", help="with what was handed in")
    add(
        "--to",
        type=Path,
        default=Path("grades"),
        metavar="FOLDER",
        help="a new folder for the table; default: %(default)s",
    )
    add_memory(parser)


def run(options: Namespace) -> int:
    """Grade, report, and write; return 0, or 130 after Ctrl-C.

    Raises:
        OSError: The folder cannot be read, or the table not be written.
        ValueError: There is no notebook, there is a table already, or the
            limit of memory is none.
    """
    submissions, notes = collect(options.folder)
    note_if_unlimited()
    with new_folder(options.to) as draft:
        for note in notes:
            print(sanitize(f"note: {note}"), file=sys.stderr)
        graded: list[Graded] = []
        # What was graded before Ctrl-C is not lost.
        with contextlib.suppress(KeyboardInterrupt):
            for submission in submissions:
                graded.append(grade(submission, options.memory))
                print("\n".join(_report(graded[-1])), flush=True)
        learners = write(draft, graded, notes)
    written = f"{options.to / 'index.html'}, {options.to / 'table.csv'}"
    print(f"{sanitize(written)}: {learners} learners")
    if rest := len(submissions) - len(graded):
        print(f"Stopped: {rest} notebooks are not graded.", file=sys.stderr)
        return STOPPED
    return 0


def grade(submission: Submission, memory: float) -> Graded:
    """Grade one notebook.

    Args:
        submission: What was handed in.
        memory: How many GiB it may take.

    Returns:
        What became of it; or why it could not be graded.

    Raises:
        ValueError: ``memory`` is not a positive number.
    """
    if submission.fault:
        return Graded(submission, fault=submission.fault)
    if not (chapter := _chapter_of(submission)):
        return Graded(
            submission,
            fault="No chapter asks for a function that is in it. Is it the "
            "notebook that was handed out?",
        )
    verdict = judge(submission, exercises_of(chapter), memory)
    return Graded(submission, chapter, verdict.results, verdict.remarks)


def _chapter_of(submission: Submission) -> str:
    """Read of which chapter it is, or find the one with most of its names."""
    if submission.chapter in CHAPTERS:
        return submission.chapter
    code = "\n".join(cell.source for cell in submission.cells)
    there = {
        chapter: sum(f"def {e.name}(" in code for e in exercises_of(chapter))
        for chapter in CHAPTERS
    }
    best = max(there, key=lambda chapter: there[chapter])
    return best if there[best] else ""


def _report(one: Graded) -> list[str]:
    """Write what a terminal shows of a notebook."""
    chapter = f", {one.chapter}" if one.chapter else ""
    name = f"{one.submission.who}: {one.submission.path.name}"
    lines = [sanitize(name) + chapter]
    if one.fault:
        lines += folded(f"✗ {one.fault}", 80, BAD, 2)
    for result in one.results:
        lines += folded(*_line(result), 2)
    return [*lines, ""]


def _line(result: Result) -> tuple[str, int, str]:
    name = result.exercise.name
    sign, colour = SHOWN[result.level]
    if not result.failed:
        return f"{sign} {name}: {result.score}", 80, colour
    return f"{sign} {name}: {result.score}. {result.message}", 80, colour
