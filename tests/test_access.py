"""The built pages for everybody: with a keyboard, a screen reader, a phone."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import test_book
import torch
from proved import digest, note
from test_book import CHAPTERS, DESKTOP, PAGES, PHONE, ROOT

base, visit = test_book.base, test_book.visit
browser = pytest.mark.browser
every_page = pytest.mark.parametrize("document", PAGES)
every_chapter = pytest.mark.parametrize("document", CHAPTERS)
SEARCH = "search"

# What is folded is read too. Of a thousand coloured words of code, three of a
# colour are enough, and a formula is a drawing with its words beside it.
UNFOLD = """() => {
  document.querySelectorAll("details").forEach(fold => { fold.open = true; });
  const seen = {};
  for (const word of document.querySelectorAll(".highlight span[class]")) {
    seen[word.className] = (seen[word.className] ?? 0) + 1;
    if (seen[word.className] > 3 && !word.children.length)
      word.replaceWith(word.textContent);
  }
}"""
RUN = """async () => {
  const options = { resultTypes: ["violations"], preload: false };
  const found = await axe.run({ exclude: ["mjx-container"] }, options);
  return found.violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200),
                 one.nodes[0].failureSummary.slice(0, 300)]);
}"""


@pytest.fixture(scope="session")
def axe():
    """axe-core, as its wheel brings it: it stands in no file of this course."""
    import axe_playwright_python

    path = Path(axe_playwright_python.__file__).with_name("axe.min.js")
    return path.read_text(encoding="utf-8")


@browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("document", [*PAGES, SEARCH])
def test_axe_finds_no_serious_fault(visit, axe, document, theme):
    page = visit(document, theme=theme).page
    page.evaluate(UNFOLD)
    page.evaluate(axe)
    assert page.evaluate(RUN) == []


@browser
@every_page
def test_headings_are_in_order(visit, document):
    page = visit(document, java_script_enabled=False).page
    levels = page.locator(".bd-article :is(h1, h2, h3, h4, h5)").evaluate_all(
        "all => all.map(heading => Number(heading.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert levels[0] == 1
    for above, below in pairwise(levels):
        assert below <= above + 1


WORDS = """all => all
  .filter(one => !one.closest("[aria-hidden=true], mjx-container"))
  .map(one => [one.outerHTML.slice(0, 120), one.alt
    ?? one.closest("[role=img]")?.getAttribute("aria-label")
    ?? one.querySelector("title")?.textContent ?? ""])"""


@browser
@every_page
def test_every_picture_is_told_in_words(visit, document):
    page = visit(document).page
    for figure in page.locator("figure.companion").all():
        assert figure.get_attribute("aria-label").strip()
    words = page.locator(".bd-article :is(img, svg):not(svg svg)").evaluate_all(
        WORDS
    )
    assert [tag for tag, told in words if len(told) < 10] == []


@browser
@every_chapter
def test_a_map_says_in_figures_what_it_says_in_colour(visit, document):
    page = visit(document).page
    silent = page.locator('.companion td[style*="--heat"]').evaluate_all(
        "all => all.filter(cell => !/\\d/.test(cell.textContent)).length"
    )
    assert silent == 0


OUTLINE = """() => {
  const at = document.activeElement, look = getComputedStyle(at);
  return [at.tagName, parseFloat(look.outlineWidth), look.outlineStyle];
}"""


@browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@every_page
def test_what_has_the_focus_has_a_ring(visit, document, theme):
    page = visit(document, theme=theme).page
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, width, style = page.evaluate(OUTLINE)
        if tag == "BODY":
            break
        assert (width >= 2, style) == (True, "solid"), tag


MOVING = """all => all.filter(element => {
  const look = getComputedStyle(element);
  const lasts = text => text.split(",").some(time => parseFloat(time) > 0.01);
  return (lasts(look.transitionDuration) && look.transitionProperty !== "none")
    || (lasts(look.animationDuration) && look.animationName !== "none")
    || look.scrollBehavior === "smooth";
}).map(element => element.outerHTML.slice(0, 90))"""


@browser
@every_page
def test_nothing_moves_for_who_wants_no_motion(visit, document):
    page = visit(document, reduced_motion="reduce").page
    assert page.locator("html, body, body *").evaluate_all(MOVING) == []


@browser
@every_chapter
def test_a_phone_shows_notes_tables_and_the_way_on(visit, document):
    page = visit(document, viewport=PHONE).page
    for beside in page.locator("aside.margin").all():
        box = beside.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
        assert beside.evaluate("e => getComputedStyle(e).float") == "none"
    for way in page.locator(".prev-next-area a").all():
        box = way.bounding_box()
        assert 0 <= box["x"] <= PHONE["width"] - box["width"]
        assert box["height"] >= 44
    assert page.locator(".prev-next-area a").count() == 2
    wide = "e => e.getBoundingClientRect().right > innerWidth + 1"
    for box in page.locator(".pst-scrollable-table-container").all():
        assert not box.evaluate(wide)


# What proved it.


def entries():
    text = (ROOT / "book" / "proved.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "book").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_what_is_said_to_be_proved_is_the_code_that_stands_there(path):
    assert entries()[path.stem]["code"] == digest(path), (
        f"the code of {path.name} has changed since it was run: "
        f"make notebooks ONLY=book/{path.name}"
    )


def test_prose_may_change_without_a_run_and_code_may_not(tmp_path):
    path = tmp_path / "01_word.ipynb"
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_markdown_cell("prose"),
        nbformat.v4.new_code_cell("1 + 1"),
    ]
    nbformat.write(book, path)
    before = digest(path)
    book.cells[0].source = "better prose"
    nbformat.write(book, path)
    assert digest(path) == before
    book.cells[1].source = "1 + 2"
    nbformat.write(book, path)
    assert digest(path) != before


def test_what_ran_a_notebook_is_noted_beside_it_and_once(tmp_path):
    for name, code in (("02_b", "2"), ("01_a", "1"), ("02_b", "3")):
        book = nbformat.v4.new_notebook()
        book.cells = [nbformat.v4.new_code_cell(code)]
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


@browser
@every_page
def test_a_page_says_what_proved_it_and_how_to_cite_it(visit, document):
    page = visit(document, java_script_enabled=False).page
    foot = page.locator(".provenance")
    said = foot.locator("p").first.inner_text()
    name = Path(document).name
    entry = entries().get(name) or min(
        entries().values(), key=lambda chapter: chapter["date"]
    )
    for part in ("date", "Python", "torch", "numpy", "device"):
        assert entry[part] in said
    foot.locator("summary").click()
    bibtex = foot.locator("pre").inner_text()
    title = page.locator("h1").first.evaluate("e => e.firstChild.textContent")
    assert title.strip() in bibtex
    assert title.strip() in foot.locator("details p").inner_text()
    assert bibtex.startswith("@misc{")
    assert bibtex.count("{") == bibtex.count("}")


# The search.


@browser
@pytest.mark.parametrize("where", ["disk", "server"])
@pytest.mark.parametrize(
    ("words", "chapter"),
    [
        ("学习率", "09_training"),
        ("注意力", "03_attention"),
        ("位置编码", "05_positions"),
        ("掩码", "06_masks"),
        ("标签平滑", "09_training"),
        ("learning rate", "09_training"),
        ("attention", "03_attention"),
    ],
)
def test_the_search_finds_words_of_both_languages(visit, where, words, chapter):
    seen = visit(SEARCH, where=where)
    page = seen.page
    page.goto(f"{page.url}?q={words}")
    page.wait_for_selector("ul.search li")
    page.wait_for_function(
        "/found/.test(document.querySelector('.search-summary').innerText)"
    )
    found = page.locator("ul.search li > a").evaluate_all(
        "all => all.map(link => link.getAttribute('href'))"
    )
    assert any(re.search(rf"{chapter}\.html", address) for address in found)
    assert seen.complaints == []


@browser
def test_the_search_does_not_find_what_is_not_there(visit):
    page = visit(SEARCH).page
    page.goto(f"{page.url}?q=习学率")
    summary = page.locator(".search-summary")
    page.wait_for_function(
        "/did not match/.test(document.querySelector("
        "'#search-results').innerText)"
    )
    assert summary.count() == 1
    assert page.locator("ul.search li").count() == 0


@browser
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_icons_are_drawn_without_a_script(visit, viewport):
    page = visit(CHAPTERS[0], viewport=viewport).page
    masks = page.locator(".bd-header-article i.fa-solid").evaluate_all(
        """all => all.filter(icon => icon.checkVisibility())
        .map(icon => getComputedStyle(icon, "::before").maskImage)"""
    )
    assert masks
    assert all(mask.startswith('url("data:image/svg') for mask in masks)
