"""The stored notebooks: run top to bottom, clean, and honest about it.

nbval compares outputs with a fresh run; it does not see a notebook that was
never run. These tests look at the files alone.
"""

import ast
import itertools
import re
from functools import cache
from pathlib import Path

import nbformat

from companion import CHAPTERS

BOOK = Path(__file__).parents[2] / "book"
PATHS = sorted(BOOK.rglob("[0-9]*.ipynb"))
REFERENCE = sorted(BOOK.glob("[!0-9]*.ipynb"))
"""Pages to look something up; they teach nothing and ask for nothing."""
LABS = [path for path in PATHS if path.parent.name == "labs"]
REMOTE = re.compile(r"""(src|href)=["']https?:|url\(["']?https?:|@import""")
CHECK = re.compile(r"\bcheck(_test)?\(")
IMPORT = re.compile(r"^(import|from) ", re.MULTILINE)
INSTALL = re.compile(r"^\s*[%!]?\s*(pip|conda|apt)\b", re.MULTILINE)
FOLDER = re.compile(r"(/home/|/root/|/Users/|/work/|/tmp/|[A-Z]:\\\\)")
TAGS = {
    "exercise",
    "hide-cell",
    "hide-input",
    "nbval-ignore-output",
    "raises-exception",
    "remove-cell",
    "solution",
}


def pytest_generate_tests(metafunc):
    if "notebook" in metafunc.fixturenames:
        _give(metafunc, "notebook", PATHS + REFERENCE)
    if "taught" in metafunc.fixturenames:
        _give(metafunc, "taught", PATHS)
    if "chapter" in metafunc.fixturenames:
        lessons = [path for path in PATHS if path not in LABS]
        metafunc.parametrize("chapter", lessons, ids=[p.stem for p in lessons])


@cache
def _notebook(path):
    return nbformat.read(path, as_version=4)


def _give(metafunc, name, paths):
    books = [_notebook(path) for path in paths]
    names = [str(path.relative_to(BOOK).with_suffix("")) for path in paths]
    metafunc.parametrize(name, books, ids=names)


def code(notebook):
    return [c for c in notebook.cells if c.cell_type == "code"]


def tagged(cell, tag):
    return tag in cell.metadata.get("tags", [])


def texts(cell):
    for output in cell.outputs:
        yield output.get("text", "")
        yield "\n".join(output.get("traceback", []))
        for mime, data in output.get("data", {}).items():
            if not mime.startswith("image/p"):
                yield data if isinstance(data, str) else str(data)


def test_every_cell_was_run_once_in_order(notebook):
    counts = [c.execution_count for c in code(notebook)]
    assert counts == list(range(1, len(counts) + 1))


def test_an_error_stands_only_where_it_is_meant(notebook):
    for cell in code(notebook):
        failed = any(o.output_type == "error" for o in cell.outputs)
        assert failed == tagged(cell, "raises-exception"), cell.source


def test_nothing_is_printed_to_stderr(notebook):
    for cell in code(notebook):
        assert all(o.get("name") != "stderr" for o in cell.outputs)


def test_no_output_names_a_folder_of_some_machine(notebook):
    for cell in code(notebook):
        assert not any(FOLDER.search(t) for t in texts(cell)), cell.source


def test_no_output_names_an_address_in_memory(notebook):
    for cell in code(notebook):
        assert not any(" at 0x" in t for t in texts(cell)), cell.source


def test_nothing_is_asked_of_another_site(notebook):
    for cell in notebook.cells:
        parts = texts(cell) if cell.cell_type == "code" else [cell.source]
        for text in parts:
            assert not REMOTE.search(text), cell.source


def test_outputs_need_no_widget_front_end(notebook):
    assert "widgets" not in notebook.metadata
    for cell in code(notebook):
        for output in cell.outputs:
            assert not any("widget" in m for m in output.get("data", {}))


def test_the_metadata_is_only_what_a_reader_needs(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        folded = {"jupyter"} if tagged(cell, "solution") else set()
        assert set(cell.metadata) - {"tags"} == folded
        if folded:
            assert cell.metadata.jupyter == {"source_hidden": True}
        assert set(cell.metadata.get("tags", [])) <= TAGS


def test_cell_ids_are_unique_words(notebook):
    ids = [c.id for c in notebook.cells]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9-]*", i) for i in ids)


def test_one_import_cell_and_no_install_cell(notebook):
    cells = code(notebook)
    imports = [
        c for c in cells if re.search(r"^(import|from) ", c.source, re.M)
    ]
    assert imports == cells[:1]
    assert not any(INSTALL.search(c.source) for c in cells)


def test_a_chapter_imports_only_modules_up_to_its_own(taught):
    word = taught.cells[0].id.removesuffix("-title")
    later = CHAPTERS[CHAPTERS.index(word) + 1 :]
    imports = (
        ast.unparse(node)
        for node in ast.walk(ast.parse(code(taught)[0].source))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    names = set(re.findall(r"\w+", " ".join(imports)))
    assert names.isdisjoint(later)


def test_code_fits_the_page(notebook):
    for cell in code(notebook):
        longest = max(cell.source.splitlines(), key=len)
        assert len(longest) <= 82, longest  # What the page shows.


def test_what_a_machine_may_change_is_checked_in_the_next_that_is_compared(
    notebook,
):
    waits = None
    for cell in code(notebook):
        if tagged(cell, "nbval-ignore-output"):
            waits = cell
        elif waits:
            assert "assert" in cell.source, waits.source
            waits = None
    assert waits is None


def signature(cell):
    function = ast.parse(cell.source).body[0]
    assert isinstance(function, ast.FunctionDef), cell.source
    return ast.unparse(function.args)


def test_what_runs_on_the_device_is_not_compared(notebook):
    """An accelerator adds in another order than the machine that stored it."""
    for cell in code(notebook):
        if "device()" in cell.source and cell.outputs:
            assert tagged(cell, "nbval-ignore-output"), cell.id


def test_a_solution_has_the_signature_of_its_stub(taught):
    stubs = [c for c in code(taught) if tagged(c, "exercise")]
    solutions = [c for c in code(taught) if tagged(c, "solution")]
    assert len(stubs) == len(solutions) >= 1
    for stub, solution in zip(stubs, solutions, strict=True):
        assert signature(stub) == signature(solution)
        assert "NotImplementedError" in stub.source
        assert ".passed" in solution.source
        assert "assert" in solution.source


def test_a_stub_is_told_what_is_missing(notebook):
    cells = code(notebook)
    for stub, after in itertools.pairwise(cells):
        if tagged(stub, "exercise"):
            assert CHECK.search(after.source)
            assert any("Nothing is written" in t for t in texts(after))


def test_every_chapter_has_its_parts(chapter):
    lab = BOOK / "labs" / chapter.name
    pages = [chapter, lab] if lab in LABS else [chapter]
    cells = [c for p in pages for c in nbformat.read(p, as_version=4).cells]
    everything = "\n".join(c.source for c in cells)
    outputs = "\n".join(
        t for c in cells if c.cell_type == "code" for t in texts(c)
    )
    assert sum(tagged(c, "exercise") for c in cells) >= 2
    assert ("The notes say" in everything) == (lab not in LABS)
    for part in (
        "source(",
        "assert ",
        "figures.",
        "interview.show(",
        "<details>",
    ):
        assert part in everything, part
    assert CHECK.search(everything)
    assert 'class="companion' in outputs
    assert "needs a kernel" in outputs


def test_the_number_of_notebooks_is_the_number_of_chapters():
    words = [p.stem.split("_", 1)[1] for p in PATHS if p not in LABS]
    assert words == list(CHAPTERS)
    assert {p.name for p in LABS} <= {p.name for p in PATHS if p not in LABS}
