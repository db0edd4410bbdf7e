"""A citation shows its work, to a mouse and to a keyboard."""

import pytest
from support.contents import every_chapter
from support.harness import DESKTOP, PHONE

pytestmark = pytest.mark.browser

PAGE, WORK = "book/03_attention", "Attention is all you need"
CITED = ".bibtex-citation a"
CARD = "#cited-work"


@pytest.fixture
def page(read):
    return read(PAGE, alone=True).page


def test_a_mouse_sees_the_work_and_may_move_onto_it(page):
    link, card = page.locator(CITED).first, page.locator(CARD)
    link.hover()
    card.wait_for()
    assert WORK in card.inner_text()
    box = card.bounding_box()
    page.mouse.move(box["x"] + 40, box["y"] + box["height"] / 2, steps=5)
    page.wait_for_timeout(500)
    assert card.is_visible()
    page.mouse.move(5, 5)
    card.wait_for(state="hidden")


def test_a_mouse_that_passes_by_sees_nothing(page):
    page.locator(CITED).first.hover()
    page.mouse.move(5, 5)
    page.wait_for_timeout(500)
    # It was never given a place.
    assert page.locator(CARD).get_attribute("style") is None


def test_escape_puts_the_work_away_for_a_mouse(page):
    link, card = page.locator(CITED).first, page.locator(CARD)
    link.hover()
    card.wait_for()
    page.keyboard.press("Escape")
    assert not card.is_visible()


def test_a_keyboard_sees_the_work_and_a_screen_reader_hears_it(page):
    link, card = page.locator(CITED).first, page.locator(CARD)
    link.focus()
    page.keyboard.press("Shift+Tab")
    assert not card.is_visible()
    page.keyboard.press("Tab")
    assert card.is_visible()
    assert card.get_attribute("role") == "tooltip"
    described = link.get_attribute("aria-describedby")
    assert WORK in page.locator(f"#{described}").inner_text()
    # Or the browser would show and say the same a second time.
    assert link.get_attribute("title") is None
    page.keyboard.press("Escape")
    assert not card.is_visible()
    assert link.get_attribute("aria-describedby") is None
    assert link.evaluate("link => link === document.activeElement")
    page.keyboard.press("Enter")
    page.wait_for_url("**/references.html#*")


# Where each link that is seen stands when it has the focus, and its card.
SHOWN = """(links) => links.filter((link) => link.checkVisibility())
  .map((link) => {
    link.focus();
    const card = document.querySelector("#cited-work");
    const sides = ({ left, right, top, bottom }) => [left, right, top, bottom];
    return [link.innerText.slice(-4), card.innerText,
      ...[link, card].map((each) => sides(each.getBoundingClientRect()))];
  })"""


@every_chapter
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_citation_names_its_work_within_the_screen(read, document, size):
    page = read(document, size=size, motion="reduce").page
    for year, said, at, over in page.locator(CITED).evaluate_all(SHOWN):
        (_, _, top, bottom), (left, right, upper, lower) = at, over
        assert year in said
        assert 0 <= left < right <= size["width"]
        assert upper >= bottom or lower <= top
        assert 0 <= upper < lower <= size["height"]
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= size["width"]


def test_without_scripts_a_citation_has_its_title_and_leads_to_its_entry(read):
    page = read(PAGE, scripts=False, alone=True).page
    link = page.locator(CITED).first
    assert WORK in link.get_attribute("title")
    link.click()
    name = page.url.partition("#")[2]
    assert WORK.lower() in page.locator(f"#{name}").inner_text().lower()


def test_no_work_is_printed_over_the_text(page):
    page.locator(CITED).first.focus()
    page.emulate_media(media="print")
    assert not page.locator(CARD).is_visible()
