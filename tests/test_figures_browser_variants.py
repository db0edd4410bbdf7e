"""The figure of chapter 11 as a reader has it, in Chromium."""

from functools import cache

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

from companion.figures import live, mask_builder, objectives
from companion.figures.gallery.objectives import (
    MODELS,
    OTHERS,
    SEEDS,
    TEXT,
    examples,
)
from companion.figures.gallery.objectives.parts import Words
from companion.figures.gallery.objectives.view import seen
from companion.figures.gallery.objectives.words import position, summary

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader
every_model = pytest.mark.parametrize("model", MODELS)
LONG = "understandably 我 爱 小 猫 。 she is extraordinarily fond of cats"


@cache
def html_of(name):
    if name == "try_masking":
        return live.try_masking(LONG).page.value
    return {"objectives": objectives, "mask_builder": mask_builder}[name]().html


def example_of(model, draw):
    return examples(model, Words(TEXT, OTHERS), 0.3, SEEDS)[draw]


def opened(reader, model="BERT", **options):
    """The figure, with the tab of a model chosen."""
    page = reader(html_of("objectives"), **options)
    computed(page)
    page.get_by_role("tab", name=model, exact=True).click()
    return page


def cards(page, lane=0):
    return page.locator(".panel .cards").nth(lane).locator(".tile")


@pytest.mark.parametrize("name", ["objectives", "try_masking"])
@pytest.mark.parametrize(
    ("theme", "width"), [("light", 320), ("dark", PHONE), ("light", LAPTOP)]
)
def test_a_page_never_scrolls_sideways(reader, name, theme, width):
    page = reader(html_of(name), theme=theme, width=width)
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@every_model
def test_a_phone_shows_the_whole_tab_and_its_smallest_words(reader, model):
    page = opened(reader, model, width=PHONE)
    assert page.locator("figure").evaluate("e => e.scrollWidth") <= PHONE - 32
    edges = page.locator("figure :is(svg text, .tile, button)")
    for left, right in edges.evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.right])"
    ):
        assert left >= 16
        assert right <= PHONE - 16
    sizes = page.locator(".panel svg text").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize)
            * e.getScreenCTM().a)"""
    )
    assert len(sizes) >= 6
    assert min(sizes) >= 11


def test_the_figure_looks_the_same_with_another_one_below_it(reader):
    looks = []
    html = html_of("objectives")
    for page in (reader(html), reader(html + html_of("mask_builder"))):
        computed(page)
        parts = page.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


def test_the_script_first_draws_what_stands_there_without_it(reader):
    drawn = []
    for scripts in (True, False):
        page = reader(html_of("objectives"), java_script_enabled=scripts)
        if scripts:
            computed(page)
        parts = page.locator(".says, .panel *")
        drawn.append(parts.evaluate_all(DRAWN))
    assert len(drawn[0]) > 100
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_all_four_can_be_unfolded(reader, width):
    page = reader(html_of("objectives"), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    assert page.locator(".controls").inner_text() == "BERT"
    assert page.locator("svg:visible").count() == 1
    for summary_of in page.locator("summary").all():
        summary_of.click()
    assert page.locator("svg:visible").count() == 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_with_scripts_there_are_tabs_instead(reader):
    page = opened(reader)
    assert page.locator("details, .controls > .title").count() == 0
    assert page.get_by_role("tab").all_inner_texts() == [*MODELS]


def test_the_same_figure_twice_on_a_page_works_twice(reader):
    page = reader(html_of("objectives") * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    said = second.locator(".says").inner_text()
    first.get_by_role("tab", name="BART").click()
    assert first.locator(".says").inner_text() != said
    assert second.locator(".says").inner_text() == said
    ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_said_is_announced_and_follows_the_theme(reader, theme):
    page = opened(reader, theme=theme)
    says = page.locator(".says")
    assert says.get_attribute("aria-live") == "polite"
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    assert says.evaluate("e => getComputedStyle(e).color") == ink


@every_model
def test_a_tab_shows_what_python_says_of_its_draw(reader, model):
    page = opened(reader, model)
    example = example_of(model, 0)
    now = computed(page)
    assert (now.model, now.draw) == (model, 0)
    assert page.locator(".says").inner_text() == summary(model, example)
    for lane, row in enumerate(example.lanes):
        read = cards(page, lane).locator("> span").all_inner_texts()
        assert read == [piece.text for piece in row.reads]
    said = cards(page, len(example.lanes) - 1).locator("> s")
    assert [text.split("\n")[0].strip() for text in said.all_inner_texts()] == [
        "○" if word is None else word for word in example.lanes[-1].says
    ]
    panel = page.get_by_role("tabpanel")
    tab = page.locator(f"#{panel.get_attribute('aria-labelledby')}")
    assert tab.inner_text() == model
    assert tab.get_attribute("aria-selected") == "true"
    assert tab.get_attribute("aria-controls") == panel.get_attribute("id")
    assert page.locator("[aria-selected=true]").count() == 1


@every_model
def test_a_click_shows_what_a_position_sees_in_words_cards_and_grid(
    reader, model
):
    page = opened(reader, model)
    example = example_of(model, 0)
    for lane, row in enumerate(example.lanes):
        for place in (0, 3, len(row.reads) - 1):
            cards(page, lane).nth(place).click()
            now = computed(page)
            assert (now.lane, now.place) == (lane, place)
            assert now.sees == seen(example, (lane, place))
            said = position(example, lane, place)
            assert page.locator(".here").inner_text() == said
            check_marks(page, example, lane, place)


def check_marks(page, example, lane, place):
    for other, sees in enumerate(seen(example, (lane, place))):
        marked = cards(page, other).evaluate_all(
            "all => all.map(e => [e.hasAttribute('data-seen'),"
            " e.getAttribute('aria-pressed')])"
        )
        assert [mark for mark, _ in marked] == sees
        pressed = [state == "true" for _, state in marked]
        assert pressed == [
            (other, i) == (lane, place) for i in range(len(sees))
        ]
    for grid, svg in zip(
        example.grids, page.locator(".panel svg").all(), strict=True
    ):
        rows = svg.locator("g").evaluate_all(
            "all => all.map(e => e.hasAttribute('data-chosen'))"
        )
        chosen = [grid.asks == lane and i == place for i in range(len(rows))]
        assert rows == chosen


def test_a_click_on_a_row_of_a_grid_chooses_who_asks(reader):
    page = opened(reader, "T5")
    grids = page.locator(".panel svg")
    for grid, lane in ((0, 0), (1, 1), (2, 1)):
        grids.nth(grid).locator("g").nth(5).locator("rect").click()
        assert (computed(page).lane, computed(page).place) == (lane, 5)
        assert cards(page, lane).nth(5).get_attribute("aria-pressed") == "true"


def test_the_keyboard_reaches_all_and_leaves_again(reader):
    page = opened(reader, "BART")
    page.locator("#before").focus()
    reached = []
    for _ in range(5):
        press(page, "Tab")
        reached.append(focused(page, "getAttribute('role')"))
    # The tabs are one stop, and so is a lane.
    assert reached == ["tab", None, "button", "button", None]
    assert focused(page, "id") == "after"


def test_arrow_keys_go_through_the_tabs(reader):
    page = opened(reader)
    page.locator("#before").focus()
    press(page, "Tab")
    for key, model in [
        ("ArrowRight", "GPT"), ("ArrowRight", "T5"), ("End", "BART"),
        ("ArrowRight", "BART"), ("ArrowLeft", "T5"), ("Home", "BERT"),
    ]:  # fmt: skip
        press(page, key)
        assert computed(page).model == focused(page, "innerText") == model


def test_arrow_keys_go_through_the_positions_of_a_lane(reader):
    page = opened(reader, "BART", width=PHONE)
    page.locator("#before").focus()
    press(page, "Tab", "Tab", "Tab")
    page.evaluate("scrollTo(0, 0)")
    assert (computed(page).lane, computed(page).place) == (0, 0)
    for key, place in [
        ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 10),
        ("ArrowRight", 10), ("Home", 0), ("ArrowLeft", 0),
    ]:  # fmt: skip
        press(page, key)
        now = computed(page)
        assert (now.lane, now.place) == (0, place)
        assert focused(page, "getAttribute('aria-label')") == now.here
    press(page, "ArrowDown", "ArrowDown", "ArrowUp")
    page.wait_for_timeout(200)
    assert page.evaluate("scrollY") == 0
    press(page, "Tab", "ArrowRight")
    assert (computed(page).lane, computed(page).place) == (1, 1)


def test_the_keys_are_not_handed_to_jupyter(reader):
    page = opened(reader, "T5")
    stops = page.locator("figure :is([role=tab], .tile)")
    assert stops.count() == 4 + 10 + 7
    assert set(
        stops.evaluate_all(
            "all => all.map(e => e.getAttribute('data-lm-suppress-shortcuts'))"
        )
    ) == {"true"}


def test_drawing_again_goes_round_through_the_draws(reader):
    page = opened(reader, "BART")
    again = page.get_by_role("button", name="Draw again")
    for draw in (1, 2, 3, 0):
        again.press("Enter")
        said = summary("BART", example_of("BART", draw))
        assert page.locator(".says").inner_text() == said
        count = page.locator("output").inner_text()
        assert count == f"{draw + 1} of 4"
        assert focused(page, "innerText") == "Draw again"
    again.press("Enter")
    page.get_by_role("tab", name="T5").click()
    said = summary("T5", example_of("T5", 1))
    assert page.locator(".says").inner_text() == said


def test_there_is_nothing_to_draw_for_gpt(reader):
    page = opened(reader, "GPT")
    again = page.get_by_role("button", name="Draw again")
    assert again.get_attribute("aria-disabled") == "true"
    before = page.locator("figure").inner_html()
    again.press("Enter")
    assert page.locator("figure").inner_html() == before
    assert page.locator("output").inner_text() == "nothing to draw"


def test_kinds_of_damage_differ_in_more_than_their_colour(reader):
    page = opened(reader, "BERT")
    looks = {
        kind: page.locator(f".panel .{kind} > span").first.evaluate(
            "e => { const s = getComputedStyle(e); return [s.borderTopStyle,"
            " s.backgroundImage.split('(')[0], s.borderTopLeftRadius]; }"
        )
        for kind in ("plain", "mask", "random", "kept")
    }
    notes = {
        kind: page.locator(f".panel .{kind} > i").first.inner_text()
        for kind in ("mask", "random", "kept")
    }
    assert notes == {"mask": "masked", "random": "random", "kept": "unchanged"}
    page.get_by_role("tab", name="T5").click()
    looks["sentinel"] = page.locator(".panel .sentinel > span").first.evaluate(
        "e => { const s = getComputedStyle(e); return [s.borderTopStyle,"
        " s.backgroundImage.split('(')[0], s.borderTopLeftRadius]; }"
    )
    assert len({tuple(look) for look in looks.values()}) == 5


def test_what_is_hidden_is_faint_and_has_no_line_below(reader):
    page = opened(reader, "GPT")
    cards(page).nth(2).click()
    page.locator("figcaption").hover()
    looks = (
        cards(page)
        .locator("> span")
        .evaluate_all(
            "all => all.map(e => { const s = getComputedStyle(e);"
            " return [s.opacity, s.boxShadow === 'none']; })"
        )
    )
    assert looks == [["1", False]] * 3 + [["0.4", True]] * 8
