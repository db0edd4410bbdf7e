"""Notebooks beside an accelerator: what runs, is compared, is measured."""

import device_notebooks
import nbformat
import notebooks
import pytest
import torch

pytestmark = pytest.mark.once
NO_CUDA = pytest.mark.skipif(
    torch.cuda.is_available(), reason="there is a GPU, and it would be used"
)
SMALL = "import torch\nprint(torch.arange(3).sum().item())"
THERE = (
    "import companion, torch\n"
    "print(torch.arange(3, device=companion.device()).sum().item())"
)
REFUSED = (
    "import companion, torch\n"
    "torch.ones(3, device=companion.device()) + torch.ones(3)[:, None]"
)


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Write a notebook whose cells are (source, what was stored, tags)."""
    monkeypatch.setattr(notebooks, "BOOK", tmp_path)

    def write(*cells):
        notebook = nbformat.v4.new_notebook()
        for number, (source, stored, tags) in enumerate(cells):
            cell = nbformat.v4.new_code_cell(source, id=f"cell-{number}")
            cell.metadata["tags"] = tags
            cell.outputs = [
                nbformat.v4.new_output("stream", name="stdout", text=stored)
            ]
            notebook.cells.append(cell)
        path = tmp_path / "page.ipynb"
        nbformat.write(notebook, path)
        return path

    return write


def told(capsys, device, path, failures=0):
    before = path.read_bytes()
    assert device_notebooks.main(device, [str(path)]) == failures
    assert path.read_bytes() == before, "nothing is stored"
    return capsys.readouterr().out


def test_an_unknown_device_is_told_in_a_line(book, capsys):
    said = told(capsys, "tpu", book((SMALL, "3\n", [])), failures=1)
    assert said == (
        "DEVICE: expected one of pretend, cuda, xpu, mps, got 'tpu'\n"
    )


@NO_CUDA
def test_where_the_device_is_not_nothing_is_measured(book, capsys):
    said = told(capsys, "cuda", book((SMALL, "another", [])))
    assert said == "page.ipynb, cuda: not measured, there is no cuda here\n"


def test_what_never_came_to_the_device_is_not_measured(
    book, capsys, monkeypatch
):
    path = book((SMALL, "3\n", []))
    monkeypatch.chdir(path.parent)
    assert device_notebooks.main("pretend", [path.name]) == 0
    said = capsys.readouterr().out
    assert "page.ipynb, pretend: runs; not measured, nothing came there" in said


@pytest.mark.parametrize("name", ["nowhere.ipynb", "/etc/hostname"])
def test_what_is_no_notebook_of_the_book_is_told_in_a_line(book, capsys, name):
    book((SMALL, "3\n", []))
    assert device_notebooks.main("pretend", [name]) == 1
    said = capsys.readouterr().out
    assert said == f"ONLY: expected a notebook of the book, got {name!r}\n"


def test_what_ran_on_the_device_is_said_with_its_bytes(book, capsys):
    said = told(capsys, "pretend", book((THERE, "3\n", [])))
    assert "page.ipynb, pretend: runs, 0 MB came there" in said


def test_another_output_than_stored_is_named_unless_it_is_not_compared(
    book, capsys
):
    path = book(
        (THERE, "3\n", []),
        (THERE, "4\n", []),
        (THERE, "5\n", ["nbval-ignore-output"]),
    )
    said = told(capsys, "pretend", path, failures=1)
    assert said.endswith("other outputs than stored: cell-1\n")


def test_tensors_of_two_devices_fail_as_beside_a_gpu(book, capsys):
    said = told(capsys, "pretend", book((REFUSED, "", [])), failures=1)
    assert "fails:" in said
    assert "device" in said
