"""The book's own letters, from disk and over HTTP, at the first visit."""

import pytest
from support.contents import CHAPTERS
from support.harness import DESKTOP, PHONE, SHIFTS

pytestmark = pytest.mark.browser

# One line of text that breaks elsewhere, near the top of a phone.
ONE_LINE = 0.035
FONT = {
    ".bd-article h1": "Source Serif 4",
    ".bd-article section > p:not(.reading-time)": "Source Serif 4",
    ".bd-article em": "Source Serif 4",
    ".bd-article pre > span": "JetBrains Mono",
    # Its file names the lightest of its weights.
    ".bd-sidebar-primary .caption-text": "Source Sans 3 ExtraLight",
}
FULL = "performance.getEntriesByName('first-contentful-paint').length"


def used(page, selector):
    """The fonts that the first such text is drawn with, says the browser."""
    shown = page.locator(selector).locator("visible=true").first
    shown.evaluate("element => { element.dataset.asked = 'yes'; }")
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send(
        "DOM.querySelector", {"nodeId": root, "selector": "[data-asked]"}
    )["nodeId"]
    fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})
    shown.evaluate("element => { delete element.dataset.asked; }")
    return {
        (font["familyName"], font["isCustomFont"]) for font in fonts["fonts"]
    }


@pytest.mark.parametrize("document", ["book/03_attention"], indirect=True)
@pytest.mark.parametrize("where", ["disk", "server"])
def test_a_first_visit_is_drawn_in_the_books_own_letters(read, document, where):
    page = read(document, where=where, alone=True).page
    for selector, family in FONT.items():
        assert (family, True) in used(page, selector), selector
    assert any("CJK" in family for family, _ in used(page, ".bd-article h1"))


def test_from_disk_no_font_is_asked_for(read, document):
    """They come with a script: a browser may refuse a file to a file."""
    visit = read(document, where="disk", size=PHONE)
    assert not [url for url in visit.requests if url.endswith(".woff2")]


@pytest.fixture
def late(pages, homes):
    """Visit a page whose fonts arrive once it is read; measure what moved."""

    def visit(document, size):
        context = pages.browser.new_context(viewport=size)
        page = context.new_page()
        page.add_init_script(SHIFTS)
        held = []
        page.route("**/*.woff2", lambda route: held.append(route))
        address = f"{homes['server']}/{document}.html"
        page.goto(address, wait_until="domcontentloaded")
        page.wait_for_function(FULL)
        page.wait_for_timeout(200)
        first = used(page, ".bd-article p:not(.reading-time)")
        for route in held:
            route.continue_()
        page.unroute("**/*.woff2")
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(100)
        then = used(page, ".bd-article p:not(.reading-time)")
        moved = page.evaluate("shifts.reduce((sum, each) => sum + each, 0)")
        context.close()
        assert not any(custom for _, custom in first), "they were not late"
        assert any(custom for _, custom in then), "they never came"
        return moved

    return visit


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_late_fonts_hardly_move_a_line(late, size):
    """What stands in for them is as wide. A page has at most one line off."""
    moved = [late(document, size) for document in CHAPTERS]
    assert max(moved) <= ONE_LINE
    assert sum(moved) / len(moved) <= 0.01
