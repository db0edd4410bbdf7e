"""The built pages for everybody: with a keyboard, a screen reader, a phone."""

from itertools import pairwise
from pathlib import Path

import pytest
from support.contents import every_chapter, every_page_and_search
from support.harness import PHONE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def axe():
    """axe-core, as its wheel brings it: it stands in no file of this course."""
    import axe_playwright_python

    path = Path(axe_playwright_python.__file__).with_name("axe.min.js")
    return path.read_text(encoding="utf-8")


# What is folded is read too. A formula is a drawing with its words beside it,
# and of a thousand coloured words of code three of a colour are enough. Each
# question of the bank stands on the page of its chapter: here three of a kind.
UNFOLD = """() => {
  const kinds = {};
  for (const card of document.querySelectorAll(".bank .question")) {
    const { kind } = card.dataset;
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    if (kinds[kind] > 3) card.remove();
  }
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  document.querySelectorAll("mjx-container").forEach(one => one.remove());
  const seen = {};
  for (const word of document.querySelectorAll(".highlight span[class]")) {
    seen[word.className] = (seen[word.className] ?? 0) + 1;
    if (seen[word.className] > 3 && !word.children.length)
      word.replaceWith(word.textContent);
  }
}"""
# Contrast takes axe half a minute a page: of the texts on all pages that have
# one colour and ground, small or large (as WCAG 1.4.3 has it), in one kind of
# figure or none, it looks at one.
FAULTS = """async (known) => {
  const options = { resultTypes: ["violations"], preload: false };
  const context = {};
  const seen = new Set(known);
  if (known) {
    const grounds = new Map(), shares = new Map();
    const share = one => {
      if (!one) return 1;
      if (!shares.has(one))
        shares.set(one,
          share(one.parentElement) * getComputedStyle(one).opacity);
      return shares.get(one);
    };
    const ground = one => {
      if (!one) return "";
      if (!grounds.has(one)) {
        const { backgroundImage, backgroundColor } = getComputedStyle(one);
        const below = /^rgb\\(/.test(backgroundColor)
          ? "" : ground(one.parentElement);
        grounds.set(one, [backgroundImage, backgroundColor, below].join());
      }
      return grounds.get(one);
    };
    context.include = [...document.body.querySelectorAll("*")].filter(one => {
      if (![...one.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
        return false;
      const { color, fontSize, fontWeight } = getComputedStyle(one);
      const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24);
      const figure = one.closest("figure")?.className;
      const look = [color, large, share(one), ground(one), figure].join();
      return !seen.has(look) && one.checkVisibility() && seen.add(look);
    });
    options.runOnly = ["color-contrast"];
    if (!context.include.length) return [[], []];
  } else options.rules = { "color-contrast": { enabled: false } };
  const found = (await axe.run(known ? context : document, options)).violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200),
                 one.nodes[0].failureSummary.slice(0, 300)]);
  return [found, [...seen]];
}"""
THEME = "theme => document.documentElement.dataset.theme === theme"


@pytest.fixture(scope="session")
def looks():
    """The colours of text and ground that axe has looked at on some page."""
    return set()


@every_page_and_search
def test_axe_finds_no_serious_fault_in_either_theme(read, axe, looks, document):
    page = read(document, alone=True, reduced_motion="reduce").page
    page.evaluate(UNFOLD)
    page.evaluate(axe)
    assert page.evaluate(FAULTS)[0] == []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function(THEME, arg=theme)
        found, seen = page.evaluate(FAULTS, [*looks])
        assert found == []
        looks.update(seen)


def test_headings_are_in_order(read, document):
    page = read(document, scripts=False).page
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


def test_every_picture_has_words(read, document):
    page = read(document).page
    labels = page.locator("figure.companion").evaluate_all(
        "all => all.map(figure => figure.getAttribute('aria-label') ?? '')"
    )
    assert all(label.strip() for label in labels)
    words = page.locator(".bd-article :is(img, svg):not(svg svg)").evaluate_all(
        WORDS
    )
    assert [tag for tag, label in words if len(label) < 10] == []


@every_chapter
def test_a_map_says_in_figures_what_it_says_in_colour(read, document):
    page = read(document).page
    silent = page.locator('.companion td[style*="--heat"]').evaluate_all(
        "all => all.filter(cell => !/\\d/.test(cell.textContent)).length"
    )
    assert silent == 0


# What has got the focus, in its order, and its ring.
LISTEN = """() => {
  window.focused = [];
  window.listen = ({ target }) => {
    const { outlineWidth, outlineStyle } = getComputedStyle(target);
    const large = parseFloat(outlineWidth) >= 2;
    focused.push([target.tagName, large, outlineStyle]);
  };
  document.addEventListener("focusin", window.listen);
}"""
HEARD = """() => {
  document.removeEventListener("focusin", window.listen);
  return focused;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_has_the_focus_has_a_ring(read, document, theme):
    page = read(document, theme=theme).page
    page.evaluate(LISTEN)
    for _ in range(60):
        page.keyboard.press("Tab")
    focused = page.evaluate(HEARD)
    assert len(focused) > 9
    for tag, large, style in focused:
        assert (large, style) == (True, "solid"), tag


MOVING = """all => all.filter(element => {
  const look = getComputedStyle(element);
  const lasts = text => text.split(",").some(time => parseFloat(time) > 0.01);
  return (lasts(look.transitionDuration) && look.transitionProperty !== "none")
    || (lasts(look.animationDuration) && look.animationName !== "none")
    || look.scrollBehavior === "smooth";
}).map(element => element.outerHTML.slice(0, 90))"""


def test_nothing_moves_for_who_wants_no_motion(read, document):
    page = read(document, motion="reduce").page
    assert page.locator("html, body, body *").evaluate_all(MOVING) == []


BOXES = """all => all.map(one => {
  const box = one.getBoundingClientRect();
  return [box.left, box.right, box.height];
})"""


@every_chapter
def test_a_phone_shows_tables_and_the_way_on(read, document):
    page = read(document, size=PHONE).page
    width = PHONE["width"]
    ways = page.locator(".prev-next-area a").evaluate_all(BOXES)
    assert len(ways) == 2
    assert all(
        left >= 0 and right <= width and height >= 44
        for left, right, height in ways
    )
    tables = page.locator(".pst-scrollable-table-container")
    assert all(
        right <= width + 1 for _, right, *_ in tables.evaluate_all(BOXES)
    )
