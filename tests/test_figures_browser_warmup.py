"""The figure of trained losses by warm-up as a reader has it, in Chromium."""

from functools import cache

import pytest
import test_figures_browser
from test_figures_browser import (
    DRAWN,
    LAPTOP,
    LOOKS,
    PHONE,
    computed,
    enter,
    focused,
    press,
)
from test_figures_browser_training_decoding import MOVED, tidy
from test_figures_warmup import D_MODEL, ENDS, STEPS, a_figure, some_losses

from companion.figures import noam_curve
from companion.figures.gallery.warmup_curves import band_of, sentence
from companion.training import noam

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader


@cache
def html():
    return a_figure().html


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, PHONE, LAPTOP])
def test_neither_page_nor_figure_scrolls_sideways(reader, theme, width):
    page = reader(html(), theme=theme, width=width)
    computed(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator(".companion, .companion .scroll").all():
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_a_figure_looks_the_same_with_another_one_below_it(reader):
    looks = []
    for text in (html(), html() + noam_curve().html):
        page = reader(text)
        computed(page)
        parts = page.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


def test_the_script_first_draws_what_stands_there_without_it(reader):
    drawn, moved = [], []
    for scripts in (True, False):
        page = reader(html(), java_script_enabled=scripts)
        if scripts:
            computed(page)
        drawn.append(page.locator(".says, td, th").evaluate_all(DRAWN))
        moved.append(page.locator("figure svg *").evaluate_all(MOVED))
    assert len(drawn[0]) + len(moved[0]) > 30
    assert tidy(drawn[0]) == tidy(drawn[1])
    assert moved[0] == moved[1]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(reader, width):
    page = reader(html(), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    for part in (".says", "figcaption", "svg path.line", "td[data-chosen]"):
        assert page.locator(f"figure {part}").first.is_visible()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_each_warm_up_is_told_as_python_tells_it_by_keyboard(reader, motion):
    page = reader(html(), reduced_motion=motion)
    enter(page)
    assert computed(page).warmup == 11
    press(page, "Home")
    for number, (warmup, runs) in enumerate(some_losses().items()):
        now = computed(page)
        assert now.warmup == warmup
        assert focused(page, "getAttribute('aria-valuetext')") == str(warmup)
        rates = [noam(step, D_MODEL, warmup) for step in range(1, STEPS + 1)]
        said = sentence(warmup, band_of(runs), rates, 3)
        assert page.locator(".says").inner_text() == said == now.says
        row = page.locator("tbody tr").nth(number)
        assert row.locator("td[data-chosen]").count() == 4
        assert page.locator("td[data-chosen]").count() == 4
        press(page, "ArrowRight")
    press(page, "Tab")
    assert focused(page, "id") == "after"


def test_the_curve_in_front_is_that_of_the_slider(reader):
    page = reader(html())
    enter(page)
    seen = set()
    lines = page.locator("path.line")
    for key in ("Home", "ArrowRight", "ArrowRight"):
        press(page, key)
        seen.add(tuple(lines.evaluate_all("all => all.map(e => e.outerHTML)")))
        assert lines.count() == 2
        assert page.locator("path.band").count() == 1
        assert page.locator("path.mark").count() == 1
        assert page.locator("path.other").count() == 2 * (len(ENDS) - 1)
    assert len(seen) == len(ENDS)


def test_the_curves_stay_in_their_plots(reader):
    page = reader(html())
    computed(page)
    for svg in page.locator(".plot svg").all():
        box = svg.bounding_box()
        for path in svg.locator("path").all():
            inner = path.bounding_box()
            assert inner["x"] >= box["x"]
            assert inner["y"] >= box["y"]
            assert inner["x"] + inner["width"] <= box["x"] + box["width"]
            assert inner["y"] + inner["height"] <= box["y"] + box["height"]


def test_the_chosen_curve_differs_in_more_than_its_colour(reader):
    page = reader(html())
    computed(page)
    looks = page.locator("path:is(.line, .other)").evaluate_all(
        """all => all.map(e => { const s = getComputedStyle(e);
            return s.strokeDasharray + s.strokeWidth; })"""
    )
    assert len(set(looks)) == 2


def test_the_same_figure_twice_on_a_page_works_twice(reader):
    page = reader(html() * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    said = second.locator(".says").inner_text()
    first.locator("input").press("Home")
    assert first.locator(".says").inner_text() != said
    assert second.locator(".says").inner_text() == said


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_said_is_announced_and_follows_the_theme(reader, theme):
    page = reader(html(), theme=theme)
    computed(page)
    says = page.locator(".says")
    assert says.get_attribute("aria-live") == "polite"
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    assert says.evaluate("e => getComputedStyle(e).color") == ink


def test_the_slider_keeps_its_keys_from_jupyter(reader):
    page = reader(html())
    computed(page)
    field = page.locator("figure input")
    assert field.get_attribute("data-lm-suppress-shortcuts") == "true"


def test_the_words_in_a_drawing_are_legible_on_a_phone(reader):
    page = reader(html(), width=PHONE)
    computed(page)
    sizes = page.locator("svg text").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize)
            * e.getScreenCTM().a)"""
    )
    assert len(sizes) > 10
    assert min(sizes) >= 11
