"""Lessons and labs: what folds, how long a page takes, where links lead."""

import json
import re
import sys
import tomllib
from html import unescape
from pathlib import Path

import pytest
from docutils import nodes
from docutils.utils import new_document
from support.contents import CHAPTERS, ROOT

sys.path.append(str(ROOT / "book" / "_ext"))
import lessons

LABS = [Path(page).name for page in CHAPTERS if "labs/" in page]
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
    tree += nodes.title("", "2. 再写一遍（中等，15 分钟）")
    tree += nodes.paragraph("", "词" * 1026)  # 3 minutes
    assert lessons.minutes(tree) == (10, 25)
    tree += nodes.paragraph("", "词" * 684)  # 2 minutes
    assert lessons.minutes(tree) == (15, 25)


@pytest.mark.browser
@pytest.mark.parametrize("document", [f"book/labs/{LABS[0]}"], indirect=True)
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


def anchors(page):
    """What of a built page an address may name."""
    if not page.exists():
        return set()
    found = re.findall(r'\sid="([^"]+)"', page.read_text(encoding="utf-8"))
    return {unescape(each) for each in found}


def led(page):
    """Where the script of a built page sends its old addresses."""
    found = re.search(r"const moved = (\{.*?\});", page.read_text("utf-8"))
    return json.loads(found[1]) if found else {}


def elsewhere(page, address):
    """Whether an address names a section of a third page."""
    name, _, section = address.partition("#")
    return section in anchors(page.parent / name) if section else False


@pytest.mark.once
@pytest.mark.parametrize("chapter", FIRST_EDITION)
def test_every_old_address_leads_to_a_section(built_book, chapter):
    page = built_book / "book" / f"{chapter}.html"
    here = anchors(page)
    there = here | anchors(page.parent / "labs" / page.name)
    moved = led(page)
    bank = ROOT / "companion" / "interview" / "bank" / "ids.txt"
    questions = [
        each
        for each in bank.read_text(encoding="utf-8").split()
        if each.startswith(f"{chapter[3:]}-")
    ]
    assert questions
    lost = [
        old
        for old in FIRST_EDITION[chapter] + questions
        if old not in here
        and moved.get(old) not in there
        and not elsewhere(page, moved.get(old, ""))
    ]
    assert lost == [], "name where each went in book/moved.toml"


PAGES = tomllib.loads((ROOT / "book" / "moved.toml").read_text("utf-8"))[
    "pages"
]


@pytest.mark.browser
@pytest.mark.parametrize("old", PAGES)
@pytest.mark.parametrize("folder", ["book", "book/labs"])
def test_a_chapter_is_found_under_its_old_number(read, built_book, old, folder):
    page = read(f"{folder}/{PAGES[old]}", alone=True).page
    page.goto((built_book / folder / f"{old}.html").as_uri() + "#exercises")
    page.wait_for_url(f"**/{folder}/{PAGES[old]}.html#exercises")


@pytest.mark.browser
@pytest.mark.parametrize("chapter", [c for c in LABS if c in FIRST_EDITION])
def test_an_old_address_opens_where_its_section_went(read, built_book, chapter):
    page = read(f"book/{chapter}", alone=True).page
    lesson, here = page.url, anchors(built_book / "book" / f"{chapter}.html")
    moved = led(built_book / "book" / f"{chapter}.html")
    old = [each for each in FIRST_EDITION[chapter] if each in moved]
    at_home = [each for each in old if moved[each] in here]
    far = [each for each in old if "#" in moved[each]]
    in_lab = [each for each in old if moved[each] not in here]
    in_lab = [each for each in in_lab if each not in far]
    assert in_lab
    for each in [*at_home[:1], *in_lab[:1], *in_lab[-1:]]:
        page.goto("about:blank")
        page.goto(f"{lesson}#{each}")
        page.wait_for_function(
            "document.getElementById(decodeURIComponent(location.hash.slice(1)))"
        )
        assert page.url.endswith(f"#{moved[each]}")
        assert ("/labs/" in page.url) == (each in in_lab)
    for each in far:
        page.goto("about:blank")
        page.goto(f"{lesson}#{each}")
        page.wait_for_url(f"**/book/{moved[each]}")


@pytest.mark.browser
@pytest.mark.parametrize(
    "document", ["book/03_attention", "book/labs/03_attention"], indirect=True
)
def test_the_contents_show_the_lab_of_the_chapter_that_is_read(read, document):
    links = read(document).page.locator("nav.bd-links a:visible")
    labs = [text for text in links.all_inner_texts() if "the lab" in text]
    assert [text[:2] for text in labs] == ["03"]
