"""What `make notebook` opens: a reader's notebooks, and JupyterLab on them."""

import os
import re
import shutil
import subprocess
import time
from types import SimpleNamespace

import nbformat
import open_jupyter
import pytest
from nbformat.sign import NotebookNotary
from support.contents import CHAPTERS, ROOT

NAMES = [name.removeprefix("book/") for name in CHAPTERS]
# A test opens one notebook after the other, and loads JupyterLab once.
EXPOSED = "--LabApp.expose_app_in_browser=True"
OPEN = """path => jupyterapp.commands.execute("docmanager:open", {
  path, kernelPreference: { shouldStart: false } }).then(() => true)"""
CLOSE = "jupyterapp.shell.currentWidget.dispose()"
CELLS = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook .jp-Cell"
# A colon fence, a role before its code, a link that is none, a label.
RAW = re.compile(r":::|\{[\w:-]+\}\s*(`|$)|\]\(|^\([\w-]+\)=", re.MULTILINE)


@pytest.fixture
def course(tmp_path):
    """A book of a lesson and its lab, and a reader's folder for them."""
    book = tmp_path / "book"
    (book / "labs").mkdir(parents=True)
    for name in ("references.bib", "03_attention.ipynb"):
        shutil.copy(ROOT / "book" / name, book)
    shutil.copy(ROOT / "book" / "labs" / "03_attention.ipynb", book / "labs")
    return SimpleNamespace(book=book, folder=tmp_path / "my notebooks")


def change(path, **added):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-1].update(added)
    nbformat.write(notebook, path)


def source(path, cell=-1):
    return nbformat.read(path, as_version=4).cells[cell].source


@pytest.mark.once
def test_what_the_reader_changed_stays_and_the_rest_follows_the_course(course):
    assert open_jupyter.lay_out(course.book, course.folder) == []
    lesson = course.folder / "03_attention.ipynb"
    lab = course.folder / "labs" / "03_attention.ipynb"
    change(lesson, source="my_own = 7")
    change(course.book / "03_attention.ipynb", source="new = 1")
    change(course.book / "labs" / "03_attention.ipynb", source="new = 2")
    assert open_jupyter.lay_out(course.book, course.folder) == [lesson]
    assert source(lesson) == "my_own = 7"
    assert source(lab) == "new = 2"
    # One that is put aside is written again.
    lesson.rename(course.folder / "mine.ipynb")
    assert open_jupyter.lay_out(course.book, course.folder) == [
        course.folder / "mine.ipynb"
    ]
    assert source(lesson) == "new = 1"


@pytest.mark.once
def test_what_the_reader_ran_keeps_its_outputs(course):
    open_jupyter.lay_out(course.book, course.folder)
    lesson = course.folder / "03_attention.ipynb"
    change(lesson, outputs=[], execution_count=99)
    before = lesson.read_bytes()
    assert open_jupyter.lay_out(course.book, course.folder) == []
    assert lesson.read_bytes() == before


@pytest.mark.once
def test_a_chapter_that_is_gone_goes_unless_it_is_the_reader_s(course):
    open_jupyter.lay_out(course.book, course.folder)
    lab = course.folder / "labs" / "03_attention.ipynb"
    (course.book / "labs" / "03_attention.ipynb").unlink()
    own = course.folder / "broken.ipynb"
    own.write_text("{ not a notebook")
    assert open_jupyter.lay_out(course.book, course.folder) == [own]
    assert not lab.exists()
    assert own.read_text() == "{ not a notebook"


@pytest.mark.once
def test_what_cannot_be_translated_is_named_and_nothing_is_written(
    course, monkeypatch, capsys
):
    notebook = nbformat.read(course.book / "03_attention.ipynb", as_version=4)
    notebook.cells[0].source = "{ref}`somewhere`"
    nbformat.write(notebook, course.book / "03_attention.ipynb")
    monkeypatch.setattr(open_jupyter, "ROOT", course.book.parent)
    assert open_jupyter.main(course.folder) == 1
    assert capsys.readouterr().out == (
        "Nothing was written: 03_attention.ipynb, cell attention-title: "
        "the role ref is not known\n"
    )
    assert not course.folder.exists()


@pytest.mark.once
def test_an_edition_is_trusted_and_another_notebook_is_not(course):
    open_jupyter.lay_out(course.book, course.folder)
    notary = NotebookNotary(data_dir=str(course.folder / open_jupyter.OWN))
    lesson = course.folder / "03_attention.ipynb"
    assert notary.check_signature(nbformat.read(lesson, as_version=4))
    change(lesson, source="else")
    assert not notary.check_signature(nbformat.read(lesson, as_version=4))


@pytest.mark.once
def test_make_clean_leaves_the_reader_s_notebooks(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for built in ("notebooks", "html", ".doctrees"):
        (tmp_path / "_build" / built).mkdir(parents=True)
    done = subprocess.run(
        ["make", "clean"], cwd=tmp_path, capture_output=True, text=True
    )
    assert [path.name for path in (tmp_path / "_build").iterdir()] == [
        open_jupyter.FOLDER.name
    ]
    assert "Your notebooks stay in _build/notebooks" in done.stdout


@pytest.fixture(scope="session")
def lab(chromium, tmp_path_factory):
    """A JupyterLab as `make notebook` starts it, at home with somebody else.

    Who lives there has a kernel of the same name that does not run.
    """
    home = tmp_path_factory.mktemp("somebody s home")
    kernel = home / ".local/share/jupyter/kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text('{"argv": ["false"], "display_name": "No"}')
    folder = home / "course" / "_build" / "notebooks"
    open_jupyter.lay_out(ROOT / "book", folder)
    log = home / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [*open_jupyter.command(folder), "--no-browser", EXPOSED],
            env=os.environ | {"HOME": str(home)},
            stdout=out,
            stderr=out,
        )
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    try:
        address = _address(log, server)
        yield SimpleNamespace(folder=folder, address=address, context=context)
    finally:
        context.close()
        server.terminate()
        server.wait()


def _address(log, server):
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        told = re.search(r"(http://127\S+)/lab\?(token=\w+)", log.read_text())
        if told:
            return "{}/lab/workspaces/{{}}/tree/{{}}?{}".format(*told.groups())
        time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture
def read(lab, request):
    """Open a notebook in JupyterLab, and wait until all of it is shown."""
    page = lab.context.new_page()

    def opened(name):
        # Each test its workspace: no other test's tabs.
        workspace = re.sub(r"\W", "", request.node.name)
        page.goto(lab.address.format(workspace, f"{name}.ipynb"))
        return page, shown(page, lab.folder / f"{name}.ipynb")

    yield opened
    page.close()


@pytest.fixture(scope="session")
def desk(lab):
    """A JupyterLab in which nothing is open."""
    page = lab.context.new_page()
    page.goto(lab.address.replace("/tree/{}", "").format("desk"))
    page.wait_for_function("window.jupyterapp?.restored")
    page.evaluate("jupyterapp.restored.then(() => true)")
    return page


@pytest.fixture
def glance(lab, desk):
    """Open a notebook there, without a kernel, and close it again."""

    def opened(name):
        desk.evaluate(OPEN, f"{name}.ipynb")
        return desk, shown(desk, lab.folder / f"{name}.ipynb")

    yield opened
    desk.evaluate(CLOSE)


def shown(page, file):
    """Wait until all of a notebook is shown, and return its cells."""
    cells = nbformat.read(file, as_version=4).cells
    prose = sum(cell.cell_type == "markdown" for cell in cells)
    page.wait_for_function(
        f"""document.querySelectorAll("{CELLS}").length === {len(cells)}
        && document.querySelectorAll(
          "{CELLS} .jp-MarkdownOutput:not(:empty)").length === {prose}""",
    )
    return cells


@pytest.mark.browser
@pytest.mark.parametrize("name", NAMES)
def test_jupyterlab_shows_no_raw_text_and_opens_a_solution_by_a_click(
    glance, name
):
    page, cells = glance(name)
    # To read it changes nothing that one would be asked to save.
    assert page.locator(".jp-mod-dirty").count() == 0
    shown = page.evaluate(
        f"""[...document.querySelectorAll("{CELLS} .jp-MarkdownOutput")].map(
          cell => {{
            const copy = cell.cloneNode(true);
            copy.querySelectorAll("pre, mjx-container").forEach(
              each => each.remove());
            // A role is followed by its code; other code may say anything.
            for (const each of copy.querySelectorAll("code"))
              each.textContent = "`";
            return copy.textContent;
          }})"""
    )
    assert [text for text in shown if RAW.search(text)] == []
    solutions = [
        at
        for at, cell in enumerate(cells)
        if "solution" in cell.metadata.get("tags", ())
    ]
    every = page.locator(CELLS)
    for at in solutions:
        folded = every.nth(at)
        assert folded.locator(".jp-InputArea-editor").count() == 0
        folded.locator(".jp-InputPlaceholder").click()
        first = cells[at].source.splitlines()[0]
        assert folded.locator(".cm-line").first.inner_text() == first


@pytest.mark.browser
def test_the_kernel_has_the_course_and_figures_are_trusted(read):
    page, _ = read("03_attention")
    # Nothing has run yet.
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].some(f => f.computed)"
    )
    first = page.locator(CELLS).nth(1)
    first.locator(".jp-InputPrompt").click()
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    # The stored count is 1.
    first.locator(".jp-InputPrompt", has_text="[2]:").wait_for()
    assert first.locator(".jp-OutputArea-output").count() > 0
    assert first.locator("[data-mime-type*=error]").count() == 0


@pytest.mark.browser
def test_a_link_leads_to_its_section_here_and_in_another_notebook(read):
    page, _ = read("03_attention")
    page.get_by_role("link", name="measures both").click()
    heading = page.get_by_role("heading", name="Vanishing, and spiking")
    _look_at(page, heading)
    page, _ = read("14_clinic")
    page.locator(
        "a[href='#case-2-nan-but-only-in-half-precision']"
    ).first.click()
    _look_at(page, page.get_by_role("heading", name="Case 2"))


def _look_at(page, heading):
    heading.wait_for()
    page.wait_for_function(
        """heading => { const { top } = heading.getBoundingClientRect();
          return top >= 0 && top < innerHeight; }""",
        arg=heading.element_handle(),
    )
