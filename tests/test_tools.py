"""The tools behind make: notebooks that reproduce, a server that explains."""

import threading
import urllib.request

import nbformat
import notebooks
import pytest
import serve
from nbformat.v4 import new_code_cell, new_notebook

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


def test_the_server_finds_a_free_port_and_serves_the_folder(tmp_path):
    (tmp_path / "page.html").write_text("注意力", encoding="utf-8")
    with serve.server(str(tmp_path)) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{pages.server_port}/page.html"
        with urllib.request.urlopen(url) as answer:
            assert answer.read().decode() == "注意力"
        pages.shutdown()


def test_an_occupied_port_is_named(tmp_path):
    with serve.server(str(tmp_path)) as pages:
        taken = str(pages.server_port)
        with pytest.raises(ValueError, match=f"PORT: {taken} is not free"):
            serve.server(str(tmp_path), taken)


@pytest.mark.parametrize("port", ["http", "-1", "65536"])
def test_a_port_that_is_none_is_refused(tmp_path, port):
    with pytest.raises(ValueError, match=f"up to 65535, got '{port}'"):
        serve.server(str(tmp_path), port)
