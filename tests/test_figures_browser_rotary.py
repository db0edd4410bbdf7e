"""The figure of a turned query and key as a reader has it, in Chromium."""

from functools import cache
from math import atan2, cos, sin

import pytest
import test_figures_browser
import torch
from test_figures_browser import (
    DRAWN,
    LAPTOP,
    LOOKS,
    PHONE,
    close,
    computed,
    enter,
    focused,
    press,
)

from companion.figures import position_clocks, rotary_pair
from companion.figures.gallery.rotary_pair import (
    KEY,
    QUERY,
    STEPS,
    added,
    products,
    sentence,
    turned,
)

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader

MOVED = """all => all.map(e => [e.tagName,
  ...["x2", "y2", "cx", "cy", "d", "transform"].map(n => e.getAttribute(n))])"""
PARTS = ".says, .to, td, tbody th"
# What the keyboard does, and where query and key then stand.
MOVES = [
    ([], 2, 4),
    (["Home"], 0, 4),
    (["End", "Tab", "Home"], 30, 0),
    (["ArrowRight"] * 5 + ["Tab", "ArrowLeft"], 7, 3),
    (["ArrowRight"] * 2, 4, 4),
    (["Tab", "End"], 2, 30),
    (["Tab", "Tab", "ArrowRight", "ArrowRight"], 4, 6),
    (["Tab", "Tab", "End"], 28, 30),
    (["ArrowRight"] * 4 + ["Tab", "Tab", "Home"], 2, 0),
]


@cache
def html():
    return rotary_pair().html


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, PHONE, LAPTOP])
def test_a_page_never_scrolls_sideways(reader, theme, width):
    page = reader(html(), theme=theme, width=width)
    computed(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_needs_no_scrolling_inside_the_figure_at_any_place(reader):
    page = reader(html(), width=PHONE)
    enter(page)
    for keys in ([], ["End", "Tab", "Home"], ["End"]):
        press(page, *keys)
        for box in page.locator(".companion, .companion .scroll").all():
            assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_the_figure_looks_the_same_with_another_one_below_it(reader):
    looks = []
    for page in (html(), html() + position_clocks().html):
        opened = reader(page)
        computed(opened)
        parts = opened.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


def test_the_script_first_draws_what_stands_there_without_it(reader):
    drawn, moved = [], []
    for scripts in (True, False):
        page = reader(html(), java_script_enabled=scripts)
        if scripts:
            computed(page)
        drawn.append(page.locator(PARTS).evaluate_all(DRAWN))
        moved.append(page.locator("figure svg *").evaluate_all(MOVED))
    assert len(drawn[0]) > 30
    assert drawn[0] == drawn[1]
    assert moved[0] == moved[1]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(reader, width):
    page = reader(html(), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    for part in (".says", "figcaption", "table", "svg"):
        assert page.locator(part).first.is_visible()
    assert page.locator(".says").inner_text() == sentence(2, 4)


def test_the_figure_twice_on_a_page_works_twice(reader):
    page = reader(html() * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    first.locator("input").first.press("ArrowLeft")
    said = [f.locator(".says").inner_text() for f in (first, second)]
    assert said == [sentence(1, 4), sentence(2, 4)]


def test_tab_reaches_each_slider_and_leaves_again(reader):
    page = reader(html())
    enter(page)
    for name in ("Query at p", "Key at j", "Both, the offset kept"):
        assert focused(page, "labels[0].textContent") == name
        assert focused(page, "type") == "range"
        assert focused(page, "dataset.lmSuppressShortcuts") == "true"
        press(page, "Tab")
    assert focused(page, "id") == "after"


def test_a_finger_can_hit_each_slider(reader):
    page = reader(html(), width=PHONE, has_touch=True, is_mobile=True)
    computed(page)
    boxes = [c.bounding_box() for c in page.locator("figure input").all()]
    assert len(boxes) == 3
    assert all(min(box["height"], box["width"]) >= 44 for box in boxes)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_has_the_focus_has_a_ring(reader, theme):
    page = reader(html(), theme=theme)
    enter(page)
    for _ in range(3):
        style = "getComputedStyle(document.activeElement)"
        assert page.evaluate(f"parseFloat({style}.outlineWidth)") >= 2
        assert page.evaluate(f"{style}.outlineStyle") != "none"
        press(page, "Tab")


def test_nothing_moves_by_itself_where_motion_is_unwanted(reader):
    page = reader(html(), reduced_motion="reduce")
    enter(page)
    press(page, "End")
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.locator(".says").inner_text() == sentence(30, 4)


@pytest.mark.parametrize(("keys", "p", "j"), MOVES)
def test_the_page_computes_what_the_package_does(reader, keys, p, j):
    page = reader(html())
    enter(page)
    press(page, *keys)
    shown, exact = computed(page), {"rtol": 0, "atol": 1e-9}
    assert (shown.p, shown.j) == (p, j)
    close(shown.q, turned(QUERY, p), **exact)
    close(shown.k, turned(KEY, j), **exact)
    close(shown.products, products(p, j), **exact)
    assert shown.score == pytest.approx(sum(products(p, j)))
    for place, step in zip(shown.places, STEPS, strict=True):
        at = p + step, j + step
        assert place["score"] == pytest.approx(sum(products(*at)), abs=1e-9)
        assert place["added"] == pytest.approx(added(*at), abs=1e-9)
    assert page.locator(".says").inner_text() == sentence(p, j)


@pytest.mark.parametrize(("keys", "p", "j"), MOVES)
def test_hands_and_shaded_angles_follow_the_sliders(reader, keys, p, j):
    page = reader(html())
    enter(page)
    press(page, *keys)
    for name, vector, place in (("q", QUERY, p), ("k", KEY, j)):
        tips = page.locator(f"svg > .hand.{name} circle").evaluate_all(
            "all => all.map(e => ['cx', 'cy'].map(n => "
            "Number(e.getAttribute(n))))"
        )
        hands = 15 * turned(vector, place) * torch.tensor([1, -1])
        close(tips, hands, rtol=0, atol=0.0051)
    paths = page.locator(".wedge").evaluate_all(
        "all => all.map(e => e.getAttribute('d'))"
    )
    for path, q, k in zip(paths, turned(QUERY, p), turned(KEY, j), strict=True):
        start, arc = path.removeprefix("M0 0L").removesuffix("Z").split("A")
        *_, sweep, x, y = map(float, arc.split(" "))
        close(list(map(float, start.split())), rim(q), rtol=0, atol=0.0051)
        close([x, y], rim(k), rtol=0, atol=0.0051)
        ahead = atan2(k[1], k[0]) - atan2(q[1], q[0])
        assert bool(sweep) == (sin(ahead) < 0)


def rim(pair):
    """Where a hand leaves the shaded angle; y points down in a drawing."""
    return 18 * pair / pair.norm() * torch.tensor([1, -1])


@pytest.mark.parametrize(("keys", "p", "j"), MOVES)
def test_the_mark_stands_on_the_curve_at_the_offset(reader, keys, p, j):
    page = reader(html())
    enter(page)
    press(page, *keys)
    path = page.locator(".curve").get_attribute("d").removeprefix("M")
    point = path.split("L")[4 * (j - p + 30)]
    mark = page.locator(".mark").get_attribute("transform")
    assert mark == f"translate({point.replace(' ', ',')})"
    x, _ = point.split(" ")
    assert page.locator(".drop").get_attribute("d") == f"M{x} 12V176"


def test_the_tables_follow_the_sliders(reader):
    page = reader(html())
    enter(page)
    press(page, "Home", "Tab", "Home")  # Both at 0: nothing is turned.
    rows = page.locator(".products tbody tr").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    assert cells == [
        ["0.0°", "0.0°", "36.9°", "4.00"],
        ["0.0°", "0.0°", "−90.0°", "0.00"],
        ["", "4.00"],
    ]
    names = page.locator(".places tbody th").all_inner_texts()
    assert names == ["0 and 0", *(f"{s} and {s}" for s in STEPS[1:])]
    assert page.locator(".places tr:first-child td").all_inner_texts()[-2:] == [
        "4.000",
        "10.000",
    ]
    press(page, "ArrowRight")  # The key at 1, by hand.
    total = page.locator(".products tr:last-child td").last.inner_text()
    assert float(total.replace("−", "-")) == pytest.approx(
        4 * cos(1) - 3 * sin(1) + 5 * sin(0.01), abs=0.00501
    )


def test_the_score_stays_when_both_move_and_not_when_one_does(reader):
    page = reader(html())
    enter(page)
    start = computed(page)
    press(page, "Tab", "Tab")
    codes = {start.added}
    for step in range(1, 8):
        press(page, "ArrowRight")
        shown = computed(page)
        assert (shown.p, shown.j) == (2 + step, 4 + step)
        assert shown.score == pytest.approx(start.score)
        close(shown.angles, start.angles, rtol=0, atol=1e-9)
        codes.add(round(shown.added, 2))
    assert len(codes) == 8
    press(page, "Shift+Tab", "ArrowRight")
    assert abs(computed(page).score - start.score) > 0.05


def test_each_slider_says_where_it_stands(reader):
    page = reader(html())
    enter(page)
    press(page, "ArrowRight", "Tab", "Tab", "ArrowRight")
    inputs = page.locator("figure input").all()
    said = [i.get_attribute("aria-valuetext") for i in inputs]
    assert said == ["4", "5", "4 and 5"]
    assert page.locator("output").all_inner_texts() == said


def test_both_stop_at_the_ends_and_rest_where_there_is_no_room(reader):
    page = reader(html())
    enter(page)
    press(page, "Home", "Tab", "End")
    both = page.get_by_label("Both, the offset kept")
    assert both.is_disabled()
    press(page, "ArrowLeft")
    assert both.is_enabled()
    press(page, "Tab", "End", "ArrowRight")
    shown = computed(page)
    assert (shown.p, shown.j) == (1, 30)
    press(page, "Home", "ArrowLeft")
    shown = computed(page)
    assert (shown.p, shown.j) == (0, 29)


def test_a_drag_of_both_moves_query_and_key(reader):
    page = reader(html(), width=PHONE)
    computed(page)
    box = page.get_by_label("Both, the offset kept").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) * 2 / 28, middle)
    page.mouse.down()
    for share in (0.3, 0.6, 0.9):
        page.mouse.move(box["x"] + box["width"] * share, middle)
    page.mouse.up()
    shown = computed(page)
    assert shown.j - shown.p == 2
    assert shown.p > 20
    assert page.locator(".says").inner_text() == sentence(shown.p, shown.j)
