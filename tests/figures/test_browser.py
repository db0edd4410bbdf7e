"""What every figure does in Chromium: from disk, by keyboard, on a phone.

A figure is loaded once for each kind of reader and asked many things; what
only one figure does is asked in the file with its name.
"""

from pathlib import Path
from types import SimpleNamespace

import axe_playwright_python
import pytest
from figures.browser import (
    INK,
    LAPTOP,
    PHONE,
    computed,
    enter,
    focused,
    press,
    settled,
)
from figures.registry import LIVE, MOVING, STILL, html_of

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
LOOKS = """all => all.map(e => { const s = getComputedStyle(e);
  return [s.color, s.padding, s.fontSize, s.minWidth, s.textAlign,
          s.backgroundColor, s.borderColor, s.width].join(); })"""
# A style that a script has touched is written with other spaces.
DRAWN = """all => all.map(e => [e.tagName, e.textContent,
  (e.getAttribute('style') ?? '').replaceAll(' ', '').replace(/;$/, ''),
  ...['class', 'd', 'x', 'y', 'x2', 'y1', 'y2', 'cx', 'cy', 'points', 'height',
      'transform', 'fill-opacity'].map(name => e.getAttribute(name))])"""
RING = """[document.activeElement, document.activeElement.closest('label')]
  .some(e => e && parseFloat(getComputedStyle(e).outlineWidth) >= 2
    && getComputedStyle(e).outlineStyle !== 'none')"""


def pytest_generate_tests(metafunc):
    if "name" in metafunc.fixturenames:
        moving = "example" in metafunc.fixturenames
        names = [*MOVING] if moving else [*MOVING, *STILL, *LIVE]
        metafunc.parametrize("name", names, scope="module")


@pytest.fixture(scope="module")
def example(name):
    """What the registry says of a figure that moves."""
    return MOVING[name]


@pytest.fixture(scope="module")
def desk(name, tabs):
    """The figure on a laptop, and how it looked when it came."""
    page = tabs(html_of(name), tab="desk")
    if name in MOVING:
        settled(page)
    return SimpleNamespace(page=page, **seen(page, name))


@pytest.fixture(scope="module")
def phone(name, tabs):
    """The figure on a phone, in the dark."""
    page = tabs(
        html_of(name),
        tab="phone",
        theme="dark",
        width=PHONE,
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
    )
    if name in MOVING:
        settled(page)
    return page


@pytest.fixture(scope="module")
def paper(name, tabs):
    """The figure where scripts do not run."""
    page = tabs(html_of(name), tab="paper", java_script_enabled=False)
    return SimpleNamespace(page=page, **seen(page, name))


def seen(page, name):
    figure = page.locator("figure").first
    drawn = MOVING[name].drawn if name in MOVING else "svg *"
    return {
        "looks": figure.locator("*").evaluate_all(LOOKS),
        "drawn": figure.locator(drawn).evaluate_all(DRAWN),
    }


def put_on(page, theme):
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")


def crowd(page, name):
    """Bring the figure to where it holds most; then to where it came from."""
    yield page
    if name in MOVING and MOVING[name].widest:
        enter(page)
        press(page, *MOVING[name].widest)
        yield page
        page.reload()
        settled(page)


@pytest.mark.usefixtures("reader")
def test_a_page_never_scrolls_sideways(desk, name):
    for page in crowd(desk.page, name):
        for width, theme in [
            (320, "light"), (320, "dark"), (PHONE, "dark"), (LAPTOP, "light"),
        ]:  # fmt: skip
            page.set_viewport_size({"width": width, "height": 800})
            put_on(page, theme)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width


@pytest.mark.usefixtures("reader", "example")
def test_a_phone_needs_no_scrolling_inside_the_figure_either(phone, name):
    for page in crowd(phone, name):
        overflows = page.locator(".companion, .companion .scroll").evaluate_all(
            "all => all.filter(e => e.checkVisibility())"
            ".map(e => e.scrollWidth - e.clientWidth)"
        )
        assert max(overflows) <= 0


@pytest.mark.usefixtures("reader", "example")
def test_nothing_drawn_is_cut_off_on_a_phone(phone, name):
    for page in crowd(phone, name):
        parts = "svg text, td, th, button, .tile"
        edges = page.locator(f"figure :is({parts}):visible").evaluate_all(
            "all => all.map(e => e.getBoundingClientRect())"
            ".map(r => [r.left, r.right])"
        )
        assert min(left for left, _ in edges) >= 16
        assert max(right for _, right in edges) <= PHONE - 16


@pytest.mark.usefixtures("reader", "example")
def test_the_words_of_a_drawing_are_legible_on_a_phone(phone):
    sizes = phone.locator(
        "figure :is(svg text, .token, .box *, .tile > span)"
    ).evaluate_all(
        """all => all.filter(e => e.checkVisibility())
            .map(e => parseFloat(getComputedStyle(e).fontSize)
              * (e.getScreenCTM ? e.getScreenCTM().a : 1))"""
    )
    assert min(sizes, default=11) >= 11


@pytest.mark.usefixtures("reader", "example")
def test_a_finger_can_hit_each_control(phone):
    sliders, rest = "input[type=range]", "button, summary, fieldset label"
    targets = phone.locator(f"figure :is({sliders}, {rest}):visible")
    for target in targets.all():
        assert target.bounding_box()["height"] >= 44


@pytest.mark.usefixtures("reader")
def test_who_asks_for_less_motion_gets_none(phone):
    moving = phone.locator("figure *").evaluate_all(
        "all => all.map(e => getComputedStyle(e)).filter(s => "
        "s.transitionDuration !== '0s' || s.animationName !== 'none').length"
    )
    assert moving == 0


@pytest.mark.usefixtures("reader")
def test_the_ink_follows_the_theme(desk):
    for theme, ink in INK.items():
        put_on(desk.page, theme)
        for part in desk.page.locator("figure, .says").all():
            assert part.evaluate("e => getComputedStyle(e).color") == ink


@pytest.mark.usefixtures("example")
def test_what_is_said_is_announced(desk):
    live = desk.page.locator("figure .says[aria-live=polite]")
    assert live.count() or desk.page.locator(".verdict[aria-live]").count()


@pytest.mark.usefixtures("example")
def test_controls_have_names_and_keep_their_keys_in_jupyterlab(desk):
    controls = desk.page.locator(
        "figure :is(input, button, select, [role=tab], [role=grid])"
    )
    assert controls.count()
    for name, keeps, takes_arrows in controls.evaluate_all(
        """all => all.map(e => [e.ariaLabel || e.labels?.[0]?.textContent
            || e.textContent, e.dataset.lmSuppressShortcuts === "true",
            e.matches("input, [tabindex], [role]")])"""
    ):
        assert name.strip()
        assert keeps or not takes_arrows


@pytest.mark.usefixtures("example")
def test_the_script_first_draws_what_stands_there_without_it(desk, paper):
    assert desk.drawn == paper.drawn


@pytest.mark.usefixtures("example")
def test_without_scripts_there_is_a_picture_and_no_dead_control(paper):
    for width in (PHONE, LAPTOP):
        paper.page.set_viewport_size({"width": width, "height": 800})
        dead = "figure :is(input, button, select)"
        assert paper.page.locator(dead).count() == 0
        for part in (".says, .symptom", "figcaption", "td, svg, .box, .track"):
            assert paper.page.locator(f"figure :is({part})").first.is_visible()
        wide = paper.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


def test_axe_finds_no_serious_fault(reader, name, example):
    page = reader(html_of(name), theme="dark")
    enter(page)
    press(page, *example.widest)
    page.add_style_tag(content="figure { background: var(--paper) }")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run('figure', { preload: false })")
    serious = {"serious", "critical"}
    faults = [f["id"] for f in found["violations"] if f["impact"] in serious]
    assert faults == []


def test_a_figure_looks_the_same_with_another_one_below_it(reader, desk, name):
    names = [*MOVING]
    other = names[(names.index(name) + 1) % len(names)] if name in names else (
        "score_matrix"
    )  # fmt: skip
    page = reader(html_of(name) + html_of(other))
    if name in MOVING:
        settled(page)
    looks = page.locator("figure").first.locator("*").evaluate_all(LOOKS)
    assert looks == desk.looks


def test_the_same_figure_twice_on_a_page_works_twice(reader, name, example):
    page = reader(html_of(name) * 2)
    settled(page)
    first, second = page.locator("figure").all()
    before = [first.inner_text(), second.inner_text()]
    counts = [f.locator("input, button").count() for f in (first, second)]
    assert counts[0] == counts[1] > 0
    ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(set(ids)) == len(ids)
    control, key = example.moves
    first.locator(control).first.press(key)
    assert first.inner_text() != before[0]
    assert second.inner_text() == before[1]


def test_tab_reaches_each_control_shows_where_it_is_and_leaves_again(
    reader, name, example
):
    page = reader(html_of(name))
    settled(page)
    page.locator("#before").focus()
    reached = []
    for _ in example.stops:
        press(page, "Tab")
        reached.append(focused(page, "tagName"))
        assert focused(page, "closest('figure') !== null")
        for theme in INK:
            put_on(page, theme)
            assert page.evaluate(RING)
    assert tuple(reached) == example.stops
    press(page, "Tab")
    assert focused(page, "id") == "after"


def test_a_key_makes_the_figure_say_something_else(reader, name, example):
    page = reader(html_of(name))
    before = vars(computed(page))
    control, key = example.moves
    page.locator(f"figure {control}").first.press(key)
    assert vars(computed(page)) != before
