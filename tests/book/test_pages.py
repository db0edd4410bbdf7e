"""The built pages in a real browser, from disk and from a server.

With ``PICTURES=1`` pictures of every page, wide and light, narrow and dark, are
left in ``_build/screens`` for whoever wants to look.
"""

import os
import re
from pathlib import Path

import pytest
from support.contents import CHAPTERS, ROOT, TOC, every_chapter
from support.harness import DESKTOP, PHONE

from companion.interview import load

SCREENS = ROOT / "_build" / "screens"

pytestmark = pytest.mark.browser

ARROWS = ("ArrowDown", "ArrowUp", "ArrowUp")
# Kind of figure -> where the focus starts, and what is pressed there.
KEYS = {
    "unrolled": ("input[type=range]", ARROWS),
    "order": ("button.tile", ("ArrowRight", "ArrowRight")),
    "alignment": ("button[tabindex='0']", ARROWS),
    "plane": ("input:checked", ARROWS),
    "attend": ("button:has-text('Next')", ("Enter", "Enter")),
    "scores": ("input[type=range], button[tabindex='0']", ARROWS),
    "heads": ("button[tabindex='0']", ("ArrowRight", "ArrowLeft")),
    "clocks": ("input[type=range]", ARROWS),
    "rotary": ("input[type=range]", ARROWS),
    "ravine": ("button:has-text('Back')", ("Enter", "Enter")),
    "normplaces": ("button:has-text('Next')", ("Enter", "Enter")),
    "masks": ("input[type=radio]", ARROWS),
    "depth": ("input[type=range]", ARROWS),
    "flow": ("button:has-text('Next')", ("Enter", "Enter")),
    "noam": ("input[type=range]", ARROWS),
    "doctor": ("button:has-text('Run B')", ("Enter",)),
    "beam": ("button:has-text('Back')", ("Enter", "Enter")),
    "strips": ("input[type=range]", ARROWS),
    "merges": ("button:has-text('Next')", ("Enter", "Enter")),
    "cache": ("input[type=radio]", ARROWS),
    "sampling": ("input[type=range]", ARROWS),
    "objectives": ("[role=tab]", ("ArrowRight", "ArrowRight")),
    "todaysblock": ("input[type=radio]", ARROWS),
    "roofline": ("input[type=range]", ARROWS),
    "clinic": ("input[type=radio]", ARROWS),
}


@pytest.mark.parametrize(
    ("where", "size"),
    [("disk", PHONE), ("server", DESKTOP)],
    ids=["disk", "server"],
)
def test_a_page_is_quiet_and_asks_no_other_site(read, document, where, size):
    assert read(document, where=where, size=size).faults() == []


@pytest.mark.parametrize("where", ["disk", "server"])
def test_the_root_leads_to_the_landing_page(read, where):
    page = read("index", where=where, alone=True).page
    page.wait_for_url(f"**/{TOC['root']}.html")
    assert page.locator(".bd-article h1").count() == 1


def test_the_root_names_its_icon(built_book):
    """Without one, a browser asks the server for /favicon.ico."""
    root = (built_book / "index.html").read_text(encoding="utf-8")
    icon = re.search('rel="icon" href="([^"]+)"', root)
    assert (built_book / icon[1]).is_file()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_page_fits_the_screen_in_both_themes(read, document, size, theme):
    page = read(document, size=size, theme=theme).page
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= size["width"]
    # A picture of a long page takes seconds: one of each theme and each width.
    asked = os.environ.get("PICTURES")
    if asked and (theme == "light") == (size == DESKTOP):
        SCREENS.mkdir(parents=True, exist_ok=True)
        name = document.removeprefix("book/").replace("/", "-")
        name = f"{name}-{theme}-{width}.jpeg"
        page.screenshot(path=SCREENS / name, full_page=True, quality=80)


@every_chapter
def test_the_maths_is_rendered_without_an_error(read, document):
    page = read(document).page
    if "/labs/" in document and not page.locator(".math").count():
        return  # Its lesson has the formulas.
    page.wait_for_selector("mjx-container")
    raw = page.locator(".math:not(:has(mjx-container))")
    assert raw.count() == 0
    assert page.locator("mjx-merror, [data-mml-node=merror]").count() == 0
    # A sign that is repeated is drawn once, and called where it stands.
    assert page.locator("mjx-container use").count() > 5
    empty = """all => all.filter(each => each.checkVisibility()
      && !each.getBoundingClientRect().width).length"""
    assert page.locator("mjx-container use").evaluate_all(empty) == 0
    outlines = "all => all.map(each => each.getAttribute('d'))"
    paths = page.locator("mjx-container path, .signs path")
    drawn = [d for d in paths.evaluate_all(outlines) if d]
    assert len(drawn) == len(set(drawn))


@pytest.mark.parametrize("document", CHAPTERS[:1], indirect=True)
def test_chinese_is_drawn_with_real_glyphs(read, document):
    """Two characters without a glyph would be the same empty box."""
    drawn = """family => { const draw = text => {
      const canvas = document.createElement('canvas');
      const pen = canvas.getContext('2d');
      pen.font = '40px ' + family; pen.fillText(text, 20, 60);
      return canvas.toDataURL(); };
      return [draw('我'), draw('爱'), draw('\\u{10FFFE}')]; }"""
    page = read(document).page
    family = page.evaluate("getComputedStyle(document.body).fontFamily")
    assert len(set(page.evaluate(drawn, family))) == 3


@pytest.mark.parametrize("document", CHAPTERS[:1], indirect=True)
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_icons_are_drawn_without_a_script(read, document, size):
    page = read(document, size=size).page
    masks = page.locator(".bd-header-article i.fa-solid").evaluate_all(
        """all => all.filter(icon => icon.checkVisibility())
        .map(icon => getComputedStyle(icon, "::before").maskImage)"""
    )
    assert masks
    assert all(mask.startswith('url("data:image/svg') for mask in masks)


@every_chapter
def test_without_scripts_every_figure_is_a_picture(read, document):
    page = read(document, scripts=False).page
    for figure in page.locator("figure.companion").all():
        assert figure.bounding_box()["height"] > 40


@every_chapter
def test_the_figure_of_a_chapter_is_driven_by_keyboard(read, document):
    page = read(document, changed=True).page
    kinds = ", ".join(f"figure.companion-{kind}" for kind in KEYS)
    figure = page.locator(kinds).first
    if "/labs/" in document and not figure.count():
        # A lab may leave the figures to its lesson. It then has none at all.
        others = "figure.companion:not(.companion-quiz, .companion-check)"
        assert page.locator(f"{others} :is(button, input)").count() == 0
        return
    classes = figure.get_attribute("class")
    start, keys = next(v for k, v in KEYS.items() if f"-{k}" in classes)
    shown = "figure => JSON.stringify(figure.computed)"
    seen = {figure.evaluate(shown)}
    figure.locator(start).first.focus()
    for key in keys:
        page.keyboard.press(key)
        seen.add(figure.evaluate(shown))
    assert None not in seen
    assert len(seen) >= 2


@every_chapter
def test_a_quiz_answers_back(read, document):
    word = Path(document).name.split("_", 1)[1]
    page = read(document, changed=True).page
    choices = ", ".join(f"#{q.id}" for q in load(word) if q.kind == "choice")
    question = page.locator(choices).first
    question.locator("summary").first.press("Enter")
    question.get_by_role("radio").first.press("Space")
    question.get_by_role("button").press("Enter")
    verdict = question.locator(".verdict").inner_text()
    assert "Right." in verdict or "Not that one." in verdict
