"""What proved a page, and how to cite it: at the foot of each page."""

import os
import shutil
import sys
import tomllib

import pytest
from notebooks import digest
from sphinx.application import Sphinx
from support.contents import NOTEBOOKS, ROOT

sys.path.append(str(ROOT / "book" / "_ext"))
import provenance

PROVED = tomllib.loads((ROOT / "book" / "proved.toml").read_text("utf-8"))


@pytest.mark.parametrize("chapter", NOTEBOOKS)
def test_the_code_of_a_notebook_is_the_code_that_was_run(chapter):
    path = ROOT / f"{chapter}.ipynb"
    assert PROVED[chapter.removeprefix("book/")]["code"] == digest(path), (
        f"the code of {path.name} has changed since it was run: "
        f"make notebooks ONLY={chapter}.ipynb"
    )


@pytest.mark.browser
def test_a_page_says_what_proved_it_and_how_to_cite_it(read, document):
    page = read(document, scripts=False).page
    foot = page.locator(".provenance")
    proof = foot.locator("p").first.inner_text()
    entry = PROVED.get(document.removeprefix("book/")) or min(
        PROVED.values(), key=lambda chapter: chapter["date"]
    )
    for part in ("date", "Python", "torch", "numpy", "device"):
        assert entry[part] in proof
    bibtex = foot.locator("details pre").text_content()
    title = page.locator("h1").first.evaluate("e => e.firstChild.textContent")
    assert title.strip() in bibtex
    assert title.strip() in foot.locator("details p").text_content()
    assert bibtex.startswith("@misc{")
    assert bibtex.count("{") == bibtex.count("}")


def test_a_page_whose_foot_is_out_of_date_is_written_again(
    tmp_path, monkeypatch
):
    told = tmp_path / "CITATION.cff"
    shutil.copy(provenance.CITATION, told)
    monkeypatch.setattr(provenance, "CITATION", told)
    (tmp_path / "index.rst").write_text("Title\n=====\n", encoding="utf-8")
    page = tmp_path / "out" / "index.html"

    def build():
        Sphinx(
            tmp_path,
            None,
            page.parent,
            tmp_path / "trees",
            "html",
            confoverrides={"extensions": ["provenance"]},
            status=None,
        ).build()
        return page.read_text(encoding="utf-8")

    first = build()
    assert "provenance" in first
    page.write_text("kept", encoding="utf-8")
    assert build() == "kept"
    later = page.stat().st_mtime + 1
    os.utime(told, (later, later))
    assert build() == first
