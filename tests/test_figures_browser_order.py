"""The figure whose words move, as a reader has it, in Chromium."""

from functools import cache
from itertools import permutations

import pytest
import test_figures_browser
from test_figures_browser import (
    DRAWN,
    LAPTOP,
    LOOKS,
    PHONE,
    computed,
    focused,
    press,
)

from companion.figures import score_matrix, word_order
from companion.figures.gallery.word_order import (
    START,
    VECTORS,
    combined,
    sentence,
)
from companion.figures.kit.digits import fixed

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader


@cache
def html_of(maker=word_order):
    return maker().html


def tile(page, word):
    return page.locator(".words .tile").filter(has_text=word)


def shows(page, words):
    """Everything on the page is what Python says of this order."""
    bag, mean, concat = combined(tuple(words))
    now = computed(page)
    assert "".join(now.words) == "".join(words)
    assert (now.bag, now.mean, now.concat) == (bag, mean, concat)
    assert "".join(page.locator(".words b").all_inner_texts()) == "".join(words)
    assert page.locator(".says").text_content() == sentence(tuple(words))
    for kind, numbers, places in (
        (".bag tbody td", bag, 0),
        (".mean tbody td", mean, 1),
        (".long li span", concat, 1),
        (".words .vector span", concat, 1),
    ):
        texts = page.locator(kind).all_inner_texts()
        assert texts == [fixed(number, places) for number in numbers]
    marks = [
        f"≠ {fixed(before, 1)}" if number != before else "="
        for number, before in zip(concat, combined(START).concat, strict=True)
    ]
    assert page.locator(".long small").all_inner_texts() == marks
    assert page.locator(".long [data-changed]").count() == (
        12 - marks.count("=")
    )


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 320), ("dark", PHONE), ("light", LAPTOP)]
)
def test_a_page_never_scrolls_sideways(reader, theme, width):
    page = reader(html_of(), theme=theme, width=width)
    computed(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_nothing_is_cut_off_in_any_mark(reader, theme):
    page = reader(html_of(), width=PHONE, theme=theme)
    computed(page)
    tile(page, "我").press("End")
    for box in page.locator(".companion, .scroll, .long li, .tile").all():
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    for left, right in page.locator("figure :is(td, button, li)").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.right])"
    ):
        assert left >= 16
        assert right <= PHONE - 16


def test_the_script_first_draws_what_stands_there_without_it(reader):
    drawn = []
    for scripts in (True, False):
        page = reader(html_of(), java_script_enabled=scripts)
        if scripts:
            computed(page)
        parts = page.locator(".tile *, .long *, .says, td[style]")
        drawn.append(parts.evaluate_all(DRAWN))
    assert len(drawn[0]) > 50
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(reader, width):
    page = reader(html_of(), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    for part in (".words", ".long", ".says", ".bag", ".mean", "figcaption"):
        assert page.locator(f"figure {part}").is_visible()


def test_the_figure_looks_the_same_with_another_one_below_it(reader):
    looks = []
    for html in (html_of(), html_of() + html_of(score_matrix)):
        page = reader(html)
        computed(page)
        parts = page.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


def test_the_same_figure_twice_on_a_page_works_twice(reader):
    page = reader(html_of() * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    first.locator("button.tile").first.press("ArrowRight")
    assert first.locator(".says").inner_text().startswith("爱 我")
    assert second.locator(".says").inner_text().startswith("我 爱")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_said_is_announced_and_follows_the_theme(reader, theme):
    page = reader(html_of(), theme=theme)
    computed(page)
    says = page.locator(".says")
    assert says.get_attribute("aria-live") == "polite"
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    for part in (says, page.locator(".long li span").first):
        assert part.evaluate("e => getComputedStyle(e).color") == ink


def test_tab_reaches_each_control_and_leaves_again(reader):
    page = reader(html_of())
    computed(page)
    page.locator("#before").focus()
    reached = []
    for _ in range(7):
        press(page, "Tab")
        reached.append(focused(page, "innerText")[0])
        outline = "e => getComputedStyle(e).outlineStyle"
        assert page.locator(":focus").evaluate(outline) == "solid"
    assert "".join(reached) == "我爱小猫←mR"
    press(page, "Tab")
    assert focused(page, "id") == "after"


def test_no_control_hands_its_keys_to_jupyter(reader):
    page = reader(html_of())
    computed(page)
    for field in page.locator("figure button").all():
        assert field.get_attribute("data-lm-suppress-shortcuts") == "true"


def test_every_order_is_reached_by_keyboard_and_shown_as_python_has_it(reader):
    page = reader(html_of())
    computed(page)
    for words in permutations(START):
        for word in reversed(words):
            tile(page, word).press("Home")
        shows(page, words)


def test_the_arrow_keys_move_the_word_that_keeps_the_focus(reader):
    page = reader(html_of())
    shows(page, "我爱小猫")
    tile(page, "小").focus()
    for key, words in (
        ("ArrowLeft", "我小爱猫"),
        ("ArrowLeft", "小我爱猫"),
        ("ArrowLeft", "小我爱猫"),
        ("End", "我爱猫小"),
        ("ArrowRight", "我爱猫小"),
        ("ArrowLeft", "我爱小猫"),
        ("Alt+ArrowRight", "我爱小猫"),  # That is the browser's own.
    ):
        press(page, key)
        shows(page, words)
        assert focused(page, "innerText").startswith("小")


def test_a_word_is_picked_and_moved_by_buttons_which_end_at_the_ends(reader):
    page = reader(html_of(), width=PHONE, has_touch=True)
    computed(page)
    left, right = page.locator(".controls button").all()[:2]
    tile(page, "爱").tap()
    assert page.locator(".controls span").inner_text() == "Picked: 爱"
    assert tile(page, "爱").get_attribute("aria-pressed") == "true"
    assert page.locator("[aria-pressed=true]").count() == 1
    right.tap()
    shows(page, "我小爱猫")
    right.tap()
    shows(page, "我小猫爱")
    assert right.get_attribute("aria-disabled") == "true"
    right.tap(force=True)
    shows(page, "我小猫爱")
    left.tap()
    shows(page, "我小爱猫")
    assert right.get_attribute("aria-disabled") == "false"
    assert min(left.bounding_box()["height"], 44) == 44


def test_the_order_of_the_start_comes_back(reader):
    page = reader(html_of())
    computed(page)
    tile(page, "猫").press("Home")
    tile(page, "我").press("End")
    shows(page, "猫爱小我")
    page.get_by_text("Restore the order").click()
    shows(page, "我爱小猫")
    assert page.locator(".long [data-changed]").count() == 0
    left = page.locator(".controls button").first
    assert left.get_attribute("aria-disabled") == "true"


def middle(page, word):
    box = tile(page, word).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_mouse_drags_a_word_from_place_to_place(reader):
    page = reader(html_of())
    computed(page)
    x, y = middle(page, "我")
    width = middle(page, "爱")[0] - x
    page.mouse.move(x, y)
    page.mouse.down()
    for step, words in (
        (1, "爱我小猫"),
        (2, "爱小我猫"),
        (9, "爱小猫我"),
        (1, "爱我小猫"),
        (2, "爱小我猫"),
    ):
        page.mouse.move(x + step * width, y + 5)
        shows(page, words)
    page.mouse.move(x + 2.3 * width, y)
    assert middle(page, "我")[0] == pytest.approx(x + 2.3 * width, abs=1)
    page.mouse.up()
    assert middle(page, "我")[0] == pytest.approx(x + 2 * width, abs=1)
    page.mouse.move(x, y)
    shows(page, "爱小我猫")


def test_the_other_buttons_of_a_mouse_drag_nothing(reader):
    page = reader(html_of())
    computed(page)
    page.mouse.move(*middle(page, "我"))
    page.mouse.down(button="middle")
    page.mouse.move(*middle(page, "猫"))
    shows(page, "我爱小猫")


def test_a_finger_drags_a_word_along_the_row(reader):
    page = reader(html_of(), width=PHONE, has_touch=True)
    computed(page)
    session = page.context.new_cdp_session(page)

    def touch(kind, *point):
        points = [{"x": point[0], "y": point[1]}] if point else []
        session.send(
            "Input.dispatchTouchEvent",
            {"type": f"touch{kind}", "touchPoints": points},
        )

    (x, y), (goal, _) = middle(page, "猫"), middle(page, "我")
    touch("Start", x, y)
    for share in range(1, 11):
        touch("Move", x + (goal - x) * share / 10, y)
    touch("End")
    shows(page, "猫我爱小")
    assert tile(page, "猫").evaluate("e => e.style.translate") == ""


def test_what_changed_is_marked_by_more_than_a_colour(reader):
    page = reader(html_of())
    computed(page)
    tile(page, "我").press("ArrowRight")
    weights = page.locator(".long li span").evaluate_all(
        "all => all.map(e => getComputedStyle(e).fontWeight)"
    )
    assert weights == ["700"] * 6 + ["400"] * 6
    signs = page.locator(".long small").all_inner_texts()
    assert [sign[0] for sign in signs] == ["≠"] * 6 + ["="] * 6


def test_nothing_moves_by_itself(reader):
    page = reader(html_of(), reduced_motion="reduce")
    computed(page)
    tile(page, "我").press("End")
    for look in page.locator("figure *").evaluate_all(
        """all => all.map(e => getComputedStyle(e))
            .map(s => [s.transitionDuration, s.animationName])"""
    ):
        assert look == ["0s", "none"]


def test_the_tiles_stand_above_their_numbers_on_a_wide_page(reader):
    page = reader(html_of())
    computed(page)
    for i, word in enumerate(VECTORS):
        above = middle(page, word)[0]
        box = page.locator(".long li").nth(3 * i + 1).bounding_box()
        assert box["x"] + box["width"] / 2 == pytest.approx(above, abs=1)
