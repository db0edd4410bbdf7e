"""With a public home a page can be run, mended, reported and taken along."""

import os
import re
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import colab
import nbformat
import pytest
import yaml
from support.contents import ROOT

sys.path.append(str(ROOT / "book" / "_ext"))

import repository_links as extension
from reference import PAGES

HOME = "owner/name"
ADDRESS = re.compile(r'href="(https://[^"]+)"')
CHAPTERS = sorted((ROOT / "book").glob("[0-9]*.ipynb"))[:2]
PLAIN = (
    """# A page & 中文

## First

Words.

## Second *one*

"""
    + 99 * "Words.\n\n"
)


@pytest.fixture
def build(tmp_path, checkout):
    """Builds a book of two notebooks and a page; the home may come later."""
    book = checkout / "book"
    (book / "index.md").write_text(PLAIN + "```{toctree}\n:glob:\n0*\n```\n")
    for path in CHAPTERS:
        notebook = nbformat.read(path, as_version=4)
        notebook.cells = notebook.cells[:1]
        nbformat.write(notebook, book / path.name)
    options = {
        "extensions": "myst_nb,sphinx_book_theme,repository_links",
        "html_theme": "sphinx_book_theme",
        "html_context.default_mode": "auto",
        "html_static_path": str(ROOT / "book" / "assets"),
        "html_js_files": "section.js",
        "nb_execution_mode": "off",
    }
    command = [sys.executable, "-m", "sphinx", "-q", "-C", book]
    command += [tmp_path / "pages"]
    command += [f"-D{key}={value}" for key, value in options.items()]
    path = {"PYTHONPATH": str(ROOT / "book" / "_ext")}

    def built(repo):
        more = path | {"REPO": repo}
        subprocess.run(command, env=os.environ | more, check=True)
        return tmp_path / "pages"

    return built


def addresses(page):
    """Where the links of a page lead that leave the book, each once."""
    text = page.read_text(encoding="utf-8").replace("&amp;", "&")
    found = {*ADDRESS.findall(text)}
    return sorted(each for each in found if HOME in each)


@pytest.mark.once
def test_with_a_home_each_page_has_its_links_and_without_one_none(
    tmp_path, checkout, build
):
    pages = build("")
    names = [path.stem for path in CHAPTERS]
    for name in ("index", "search", "genindex", *names):
        assert addresses(pages / f"{name}.html") == []
        assert "mend" not in (pages / f"{name}.html").read_text("utf-8")

    pages = build(HOME)
    editions = colab.publish(checkout, tmp_path / "out", HOME, "0123abc")
    assert [path.stem for path in editions] == [*names, *names]
    for name in names:
        run, edit, report, take = addresses(pages / f"{name}.html")
        assert edit == f"https://github.com/owner/name/edit/main/{name}.ipynb"
        assert report.startswith("https://github.com/owner/name/issues/new?")
        assert run == (
            "https://colab.research.google.com/github/owner/name/blob/colab/"
            f"{name}.ipynb"
        )
        assert take == (
            f"https://raw.githubusercontent.com/owner/name/colab/{name}.ipynb"
        )
    edit, report = addresses(pages / "index.html")
    assert edit.endswith("/edit/main/index.md")
    asked = parse_qs(urlsplit(report).query)
    assert asked["title"] == ["Mistake in A page & 中文: "]
    version = colab.course_version(ROOT)
    assert asked["page"] == [f"A page & 中文 (index, version {version})"]
    form = ROOT / ".github" / "ISSUE_TEMPLATE" / asked["template"][0]
    fields = yaml.safe_load(form.read_text(encoding="utf-8"))["body"]
    assert {"page", "section"} <= {field["id"] for field in fields}
    # What has no source cannot be changed, or be wrong by itself.
    assert addresses(pages / "search.html") == []


@pytest.mark.browser
def test_a_report_names_the_section_that_is_on_the_screen(build, opened):
    page = opened(build(HOME) / "index.html").page
    page.evaluate(
        """addEventListener("click", (event) => {
      window.led = event.target.closest("a")?.href;
      event.preventDefault(); })"""
    )

    def section():
        page.locator(".dropdown-mend > button").press("Enter")
        page.get_by_role("link", name="Report a mistake").first.press("Enter")
        asked = parse_qs(urlsplit(page.evaluate("led")).query)
        assert asked["page"][0].startswith("A page & 中文 (index, ")
        return asked["section"]

    first = section()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_function("window.scrollY > 1000")
    assert section() == ["Second one (#second-one)"]
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_function("window.scrollY === 0")
    # The second time it is made anew.
    assert section() == first


@pytest.mark.browser
def test_without_scripts_the_links_stand_at_the_foot(build, opened):
    page = opened(build(HOME) / "index.html", scripts=False).page
    foot = page.locator("p.mend a")
    assert foot.all_inner_texts() == ["Suggest a change", "Report a mistake"]
    assert foot.last.is_visible()


@pytest.mark.once
def test_a_page_of_the_reference_is_changed_in_the_package():
    for module in PAGES:
        page = f"api/{module.replace('.', '/')}/index"
        path = extension.source(page, ROOT / "nothing")
        assert path.suffix == ".py"
        assert path.exists()
    assert extension.source("book/x", ROOT / "x.md") == ROOT / "x.md"
