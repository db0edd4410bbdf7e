"""Notebooks that reproduce, and a note of what ran them."""

import tomllib
from pathlib import Path

import nbformat
import notebooks
import pytest
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

pytestmark = pytest.mark.once

CELLS = (
    "import sys\nprint('a')\nsys.stdout.flush()\nprint('b')",
    "import ipywidgets\nipywidgets.IntSlider()",
)


@pytest.fixture
def write(tmp_path):
    """Write a notebook of one code cell for each text, and prose."""

    def written(*cells, name="01_word", prose="prose"):
        path = tmp_path / f"{name}.ipynb"
        cells = [new_markdown_cell(prose), *map(new_code_cell, cells)]
        nbformat.write(new_notebook(cells=cells), path)
        return path

    return written


def test_running_a_notebook_twice_gives_the_same_bytes(write):
    path = write(*CELLS)
    assert notebooks.main([str(path)]) == 0
    first = path.read_bytes()
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
    outputs = [c.outputs[0] for c in nbformat.read(path, 4).cells[1:]]
    assert outputs[0].text == "a\nb\n"
    assert list(outputs[1].data) == ["text/plain"]


def crash(*_):
    raise OSError("no space left")


@pytest.mark.parametrize("why", ["a cell fails", "the disk is full", "no file"])
def test_a_notebook_that_fails_stays_as_it_was(write, monkeypatch, capsys, why):
    path = write("1 / 0" if why == "a cell fails" else "1")
    if why == "the disk is full":
        monkeypatch.setattr(Path, "replace", crash)
    if why == "no file":
        path.unlink()
    before = [(p, p.read_bytes()) for p in path.parent.iterdir()]
    assert notebooks.main([str(path)]) == 1
    assert [(p, p.read_bytes()) for p in path.parent.iterdir()] == before
    assert "01_word.ipynb stays as it was" in capsys.readouterr().out


def test_prose_may_change_without_a_run_and_code_may_not(write):
    before = notebooks.digest(write("1"))
    assert notebooks.digest(write("1", prose="better")) == before
    assert notebooks.digest(write("2")) != before


def test_what_ran_a_notebook_is_noted_beside_it_and_once(write):
    for name, code in (("02_b", "2"), ("01_a", "1"), ("02_b", "3")):
        path = write(code, name=name)
        notebooks.note(path)
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "01_a.ipynb",
        "02_b.ipynb",
        "proved.toml",
    ]
    noted = tomllib.loads((path.parent / "proved.toml").read_text())
    assert list(noted) == ["01_a", "02_b"]
    assert noted["02_b"]["code"] == notebooks.digest(path)
    assert noted["01_a"]["torch"] in torch.__version__
