"""``python -m companion handout``: all an exercise needs, no solutions."""

import re
from functools import cache

import nbformat
import pytest

from companion import CHAPTERS
from companion.commands import main
from companion.commands.grade import exercises as book
from companion.commands.grade.exercises import (
    exercises_of,
    notebooks_of,
    read_notebook,
    tagged,
)
from companion.commands.handout import handout

pytestmark = pytest.mark.once


@cache
def solutions(chapter):
    """The cells of the book that hold a chapter's solutions, in order."""
    pages = map(read_notebook, notebooks_of(chapter))
    cells = [c for page in pages for c in page.cells if tagged(c, "solution")]
    return [cell.source for cell in cells]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_handout_asks_for_every_exercise_and_holds_no_solution(chapter):
    made = handout(chapter)
    nbformat.validate(made)
    stubs = [cell.source for cell in made.cells if tagged(cell, "exercise")]
    asked = exercises_of(chapter)
    assert len(stubs) == len(asked) == len(solutions(chapter))
    for stub, exercise in zip(stubs, asked, strict=True):
        assert stub.startswith(f"def {exercise.name}(")
        assert stub.endswith("raise NotImplementedError")
    text = "\n".join(cell.source for cell in made.cells)
    assert "_solution" not in text
    assert set(re.findall("<summary>(.*?)</summary>", text)) == {
        *("Hint 1", "Hint 2", "Hint 3")
    }
    assert ".ipynb" not in text
    assert not any(cell.get("outputs") for cell in made.cells)


def test_the_answer_on_paper_and_its_proof_are_left_out():
    """Chapter 03 has one: a weight of 0.30."""
    [lesson, _] = map(read_notebook, notebooks_of("attention"))
    answer = "$e^2/(3e^2 + e) = 0.30$"
    assert answer in "".join(cell.source for cell in lesson.cells)
    assert answer not in "".join(c.source for c in handout("attention").cells)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_handout_holds_all_that_a_solution_needs(chapter):
    """Each solution of the book asserts that its check passes.

    It comes below the check of its stub, as in the book: names of the lesson
    may stand for something else in the lab.
    """
    space = {"__name__": "__main__"}
    left = solutions(chapter)
    asked = False
    for cell in handout(chapter).cells:
        if cell.cell_type != "code":
            continue
        exec(cell.source, space)
        if asked:
            exec(left.pop(0), space)
        asked = tagged(cell, "exercise")
    assert not left


def test_it_is_written_once_and_what_a_teacher_changed_is_kept(
    tmp_path, capsys
):
    to = tmp_path / "a class"
    assert main(["handout", "masks", "--to", str(to)]) == 0
    [path] = to.iterdir()
    assert path.name == "masks-exercises.ipynb"
    assert capsys.readouterr().out == f"{path}: 3 exercises\n"
    written = nbformat.read(path, as_version=4)
    assert written == handout("masks")
    path.write_text("changed")
    assert main(["handout", "masks", "--to", str(to)]) == 2
    assert capsys.readouterr().err == f"error: {path}: File exists\n"
    assert path.read_text() == "changed"


@pytest.mark.bad_input
def test_without_a_checkout_it_says_what_is_needed(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(book, "BOOK", tmp_path / "nowhere")
    assert main(["handout", "masks", "--to", str(tmp_path / "to")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: the exercises are taken from the notebooks")
    assert said.endswith("nowhere: use a checkout of the course\n")
    assert list(tmp_path.iterdir()) == []
