"""Notebooks that reproduce, and a note of what ran them."""

import tomllib

import nbformat
import notebooks
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from proved import digest, note

pytestmark = pytest.mark.once

CELLS = (
    "import sys\nprint('a')\nsys.stdout.flush()\nprint('b')",
    "import ipywidgets\nipywidgets.IntSlider()",
)


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "01_word.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(c) for c in CELLS]), path)
    return path


def test_running_a_notebook_twice_gives_the_same_bytes(notebook):
    assert notebooks.main([str(notebook)]) == 0
    first = notebook.read_bytes()
    assert notebooks.main([str(notebook)]) == 0
    assert notebook.read_bytes() == first
    outputs = [c.outputs[0] for c in nbformat.read(notebook, 4).cells]
    assert outputs[0].text == "a\nb\n"
    assert list(outputs[1].data) == ["text/plain"]


def test_a_notebook_that_fails_stays_as_it_was(tmp_path, capsys):
    path = tmp_path / "02_broken.ipynb"
    cells = [new_code_cell("1 / 0")]
    nbformat.write(new_notebook(cells=cells), path)
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert "02_broken.ipynb stays as it was" in capsys.readouterr().out


def test_a_notebook_that_is_not_there_is_named(tmp_path, capsys):
    assert notebooks.main([str(tmp_path / "09_nowhere.ipynb")]) == 1
    assert "09_nowhere.ipynb stays as it was" in capsys.readouterr().out


def test_a_crash_while_storing_leaves_the_old_file(notebook, monkeypatch):
    before = notebook.read_bytes()

    def crash(*_):
        raise OSError("no space left")

    monkeypatch.setattr(notebooks.os, "replace", crash)
    assert notebooks.main([str(notebook)]) == 1
    assert notebook.read_bytes() == before
    assert list(notebook.parent.iterdir()) == [notebook]


def test_prose_may_change_without_a_run_and_code_may_not(tmp_path):
    path = tmp_path / "01_word.ipynb"
    book = new_notebook(cells=[new_markdown_cell("prose"), new_code_cell("1")])
    nbformat.write(book, path)
    before = digest(path)
    book.cells[0].source = "better prose"
    nbformat.write(book, path)
    assert digest(path) == before
    book.cells[1].source = "2"
    nbformat.write(book, path)
    assert digest(path) != before


def test_what_ran_a_notebook_is_noted_beside_it_and_once(tmp_path):
    for name, code in (("02_b", "2"), ("01_a", "1"), ("02_b", "3")):
        book = new_notebook(cells=[new_code_cell(code)])
        nbformat.write(book, tmp_path / f"{name}.ipynb")
        note(tmp_path / f"{name}.ipynb")
    noted = tomllib.loads((tmp_path / "proved.toml").read_text())
    assert list(noted) == ["01_a", "02_b"]
    assert noted["02_b"]["code"] == digest(tmp_path / "02_b.ipynb")
    assert noted["01_a"]["torch"] in torch.__version__
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [
        ".ipynb",
        ".ipynb",
        ".toml",
    ]
