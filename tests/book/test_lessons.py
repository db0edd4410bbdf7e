"""Lessons and labs: what folds, how long a page takes, where links lead."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from docutils import nodes
from docutils.utils import new_document
from support.contents import CHAPTERS, ROOT

sys.path.append(str(ROOT / "book" / "_ext"))
import lessons

LABS = [Path(page).name for page in CHAPTERS if "labs/" in page]
# Every section of the chapters' first edition that has a lab now.
FIRST_EDITION = tomllib.loads(
    (ROOT / "tests" / "book" / "first_edition.toml").read_text("utf-8")
)


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("assert 1", 1),
        ("x = 2\nfor y in (3, 5):\n    assert x < y\nassert x", 2),
        ("torch.testing.assert_close(a, b)\nassert a.any()", 2),
        ("x = 2", 0),
        ("x = [\n    1,\n    2,\n    3,\n    5,\n    7,\n]\nassert x", 0),
        ("for x in y:\n    f(x)\n" + "    assert x\n" * 9, 9),
        ("def f():\n    assert 1", 0),
        ("%pip install x\nassert 1", 0),
    ],
)
def test_a_cell_that_only_asserts_is_known_by_its_code(code, count):
    assert lessons.checks(code) == count


def test_a_listing_is_named_without_its_annotations():
    code = "def f(q: 'a b', *, k: int = 3) -> int:\n    pass\n"
    assert (
        lessons.signature(code + "class C(D):\n    x = 1")
        == "f(q, *, k=3), class C"
    )


def test_the_time_is_that_of_words_formulas_code_and_figures():
    tree = new_document("page")
    tree += nodes.paragraph("", "word " * 360)  # 2 minutes
    tree += nodes.math_block("", "x")  # 12 seconds
    code = nodes.container(classes=["cell"])
    code += nodes.container(
        "", nodes.literal_block("", "1\n" * 12), classes=["cell_input"]
    )  # 48 seconds
    output = nodes.container(classes=["cell_output"])
    output += nodes.raw("", "<figure>", format="html")  # 1 minute
    code += output
    tree += code
    folded = nodes.container(classes=["cell"])
    folded += nodes.container(
        "", nodes.literal_block("", "assert 1\n" * 90), classes=["cell_input"]
    )
    tree += folded
    tree += nodes.title("", "1. Write it (easy, 10 minutes)")
    # 4 minutes; the title's words and its minutes.
    assert lessons.minutes(tree) == (5, 10)
    tree += nodes.paragraph("", "word " * 180)
    assert lessons.minutes(tree) == (10, 10)


@pytest.mark.browser
@pytest.mark.parametrize("document", CHAPTERS[:1], indirect=True)
def test_checks_and_listings_open_by_keyboard(read, document):
    page = read(document, alone=True).page
    for kind in ("checks", "listing"):
        fold = page.locator(f"details.{kind}").first
        assert not fold.locator("pre").first.is_visible()
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert fold.locator("pre").first.is_visible()


@pytest.mark.browser
@pytest.mark.parametrize("document", CHAPTERS[:1], indirect=True)
def test_folds_open_without_scripts(read, document):
    page = read(document, scripts=False, alone=True).page
    fold = page.locator("details.checks").first
    fold.locator("summary").click()
    assert fold.locator("pre").first.is_visible()
    assert re.fullmatch(r"✓ \d+ checks?", fold.locator("summary").inner_text())


@pytest.mark.browser
@pytest.mark.parametrize("chapter", LABS)
def test_every_old_address_leads_to_a_section(read, chapter):
    page = read(f"book/{chapter}", alone=True).page
    lesson = page.url
    for old in FIRST_EDITION[chapter]:
        page.goto(f"{lesson}#{old}")
        page.wait_for_function(
            "document.getElementById(decodeURIComponent(location.hash.slice(1)))"
        )
        page.goto("about:blank")
