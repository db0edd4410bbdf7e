"""The figure of random queries and keys, as a reader of chapter 03 has it."""

from functools import cache
from itertools import product
from pathlib import Path

import pytest
import test_figures_browser
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

from companion.figures import noam_curve, saturation
from companion.figures.gallery.saturation import (
    KEYS,
    SCALES,
    WIDTHS,
    sentence,
    state,
)
from companion.figures.gallery.saturation.view import bars, strokes, top_of
from companion.figures.kit.digits import fixed, short

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader
WIDTH, NUMBER = "Width of a query, dₖ", "Number of keys, n"
DARK = pytest.mark.parametrize("theme", ["light", "dark"])
WIDEST = (1024, KEYS, "1/√dₖ")
RING = """e => getComputedStyle(e).outlineStyle !== "none"
  && parseFloat(getComputedStyle(e).outlineWidth) >= 2"""


@cache
def html():
    return saturation().html


def choose(page, d_k, n, scale):
    page.get_by_label(WIDTH).fill(str(WIDTHS.index(d_k)))
    page.get_by_label(NUMBER).fill(str(n))
    page.get_by_role("radio", name=scale, exact=True).check()


def said(page):
    return page.locator(".says").text_content()


def test_every_setting_shows_the_numbers_of_the_package(reader):
    page = reader(html())
    for choice in product(WIDTHS, (2, 3, 7, 12), SCALES):
        choose(page, *choice)
        now, shown = state(*choice), computed(page)
        close(shown.scores, now.scores)
        close(shown.weights, now.weights)
        close(shown.jacobian, now.jacobian)
        close([shown.moves], [now.moves], rtol=1e-6, atol=1e-12)
        assert said(page) == sentence(now)
        assert page.locator(".norm").inner_text() == short(now.moves)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("d_k", "n"), [(4, 2), (64, 7), (1024, 12)])
def test_every_part_of_the_picture_follows_the_controls(reader, d_k, n, scale):
    page = reader(html())
    choose(page, d_k, n, scale)
    now = state(d_k, n, scale)
    paths = dict(zip(("within", "beyond"), bars(now.counts), strict=True))
    for name, path in (paths | {"keys": strokes(now.scores)}).items():
        drawn = page.locator(f".plot .{name}").get_attribute("d")
        assert drawn == path, name
    top = top_of(now.counts)
    ticks = page.locator(".tick").all_text_contents()
    assert ticks == ["0 %", f"{5 * top} %", f"{10 * top} %"]
    rows = page.locator(".weights tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [
        [name, fixed(score), fixed(weight)]
        for name, score, weight in zip(
            page.locator(".weights tbody th").all_inner_texts(),
            now.scores,
            now.weights,
            strict=True,
        )
    ]
    cells = page.locator(".jacobian tbody td").all_inner_texts()
    assert cells == [fixed(100 * x, 0) for row in now.jacobian for x in row]
    heads = page.locator(".jacobian thead th").all_inner_texts()
    assert (heads[0], len(heads)) == ("z₁", n)


def test_the_script_first_draws_what_stands_there_without_it(reader):
    drawn = []
    for scripts in (True, False):
        page = reader(html(), java_script_enabled=scripts)
        if scripts:
            computed(page)
        parts = ".says, .share b, td, th, caption, .plot *"
        texts = page.locator(parts).evaluate_all(DRAWN)
        paths = page.locator(".plot path").evaluate_all(
            "all => all.map(e => e.getAttribute('d'))"
        )
        drawn.append((texts, paths))
    assert len(drawn[0][0]) > 50
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(reader, width):
    page = reader(html(), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    for part in (".says", "figcaption", ".plot svg", ".jacobian td[style]"):
        assert page.locator(part).first.is_visible()
    assert said(page) == sentence(state(64, 6, "1/√dₖ"))


@DARK
@pytest.mark.parametrize("width", [320, PHONE, LAPTOP])
def test_a_page_never_scrolls_sideways(reader, theme, width):
    page = reader(html(), theme=theme, width=width)
    choose(page, *WIDEST)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_needs_no_scrolling_inside_the_figure_either(reader):
    page = reader(html(), width=PHONE)
    for scale in SCALES:
        choose(page, 1024, KEYS, scale)
        for box in page.locator(".companion, .companion .scroll").all():
            assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_what_is_printed_is_large_enough_and_is_not_cut_off(reader, width):
    page = reader(html(), width=width)
    choose(page, 1024, KEYS, "1")
    for left, right in page.locator(
        "figure svg text, figure td, figure th"
    ).evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.right])"
    ):
        assert left >= 16
        assert right <= width - 16
    sizes = page.locator("svg text").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize)
            * e.getScreenCTM().a)"""
    )
    sizes += page.locator("figure td").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 11


@DARK
def test_axe_finds_no_fault(reader, theme):
    import axe_playwright_python

    page = reader(html(), theme=theme)
    choose(page, *WIDEST)
    page.add_style_tag(content="figure { background: var(--paper) }")
    page.evaluate(
        Path(axe_playwright_python.__file__)
        .with_name("axe.min.js")
        .read_text(encoding="utf-8")
    )
    found = page.evaluate("() => axe.run('figure', { preload: false })")
    assert [one["id"] for one in found["violations"]] == []


@DARK
def test_the_keyboard_alone_drives_everything_and_sees_where_it_is(
    reader, theme
):
    page = reader(html(), theme=theme)
    enter(page)
    stops = (["End"], (1024, 6, "1/√dₖ")), (["Home"], (1024, 2, "1/√dₖ"))
    for keys, choice in (*stops, (["ArrowRight"], (1024, 2, "1/dₖ"))):
        assert page.locator(":focus").evaluate(RING)
        press(page, *keys)
        assert said(page) == sentence(state(*choice))
        press(page, "Tab")
    assert focused(page, "id") == "after"


def test_controls_have_names_and_keep_their_keys_in_jupyterlab(reader):
    page = reader(html())
    computed(page)
    controls = page.locator("figure input").all()
    assert len(controls) == 2 + len(SCALES)
    for control in controls:
        assert control.get_attribute("data-lm-suppress-shortcuts") == "true"
        assert control.evaluate("e => e.labels[0].textContent")
    group = page.get_by_role("group", name="Scale: q · k is multiplied by")
    assert group.get_by_role("radio").count() == len(SCALES)
    assert page.locator(".says").get_attribute("aria-live") == "polite"


def test_a_finger_can_hit_each_control(reader):
    page = reader(html(), width=PHONE, has_touch=True, is_mobile=True)
    computed(page)
    targets = page.locator("figure :is(input[type=range], fieldset label)")
    for target in targets.all():
        box = target.bounding_box()
        assert min(box["height"], box["width"]) >= 44


def test_who_asks_for_less_motion_gets_none(reader):
    page = reader(html(), reduced_motion="reduce")
    computed(page)
    moving = page.locator("figure *").evaluate_all(
        "all => all.map(e => getComputedStyle(e)).filter(s => "
        "s.transitionDuration !== '0s' || s.animationName !== 'none').length"
    )
    assert moving == 0


def test_the_figure_looks_the_same_with_another_one_below_it(reader):
    looks = []
    for page in (reader(html()), reader(html() + noam_curve().html)):
        computed(page)
        parts = page.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


def test_the_same_figure_twice_on_a_page_works_twice(reader):
    page = reader(html() * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    before = second.locator(".says").text_content()
    first.locator("input[type=radio]").first.check()
    assert first.locator(".says").text_content() != before
    assert second.locator(".says").text_content() == before
    assert second.locator("input[type=radio]").nth(1).is_checked()


@DARK
def test_a_cell_that_moves_more_has_a_stronger_tint(reader, theme):
    page = reader(html(), theme=theme)
    choose(page, *WIDEST)
    entries = [x for row in state(*WIDEST).jacobian for x in row]
    colours = page.locator(".jacobian tbody td").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    flat = sorted(zip(entries, colours, strict=True))
    assert len({flat[0][1], flat[KEYS**2 // 2][1], flat[-1][1]}) == 3
