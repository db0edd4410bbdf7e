"""The figures of chapters 04, 05 and 06 as a reader has them, in Chromium."""

from functools import cache
from itertools import product

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

from companion.attention import softmax
from companion.figures import head_maps, mask_builder, position_clocks
from companion.figures.gallery.head_maps import distance
from companion.figures.gallery.mask_builder import (
    PLACES,
    SENTENCES,
    build,
    shares,
)
from companion.figures.gallery.position_clocks import twin
from companion.masks import to_additive, to_torch_attention
from companion.positions import sinusoidal

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader

WORDS = ["我", "爱", "小", "猫", "<eos>", "a", "b"]
DRAW = torch.Generator().manual_seed(3)
MAPS = {
    h: softmax(3 * torch.randn(h, 7, 7, generator=DRAW)) for h in (1, 3, 11)
}
BANDS = {h: {"1 back": (0.5, 0.75), "3 back": (1.0, 1.0)} for h in MAPS}
MAKERS = {
    "head_maps": lambda: head_maps(MAPS, WORDS, BANDS, d_model=66),
    "position_clocks": position_clocks,
    "mask_builder": mask_builder,
}
every_figure = pytest.mark.parametrize("name", MAKERS)


@cache
def html_of(name):
    return MAKERS[name]().html


@every_figure
@pytest.mark.parametrize(
    ("theme", "width"), [("light", 320), ("dark", PHONE), ("light", LAPTOP)]
)
def test_a_page_never_scrolls_sideways(reader, name, theme, width):
    page = reader(html_of(name), theme=theme, width=width)
    computed(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@every_figure
def test_a_phone_needs_no_scrolling_inside_the_figure_either(reader, name):
    page = reader(html_of(name), width=PHONE)
    computed(page)
    for box in page.locator(".companion, .companion .scroll").all():
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


@every_figure
def test_a_figure_looks_the_same_with_another_one_below_it(reader, name):
    looks = []
    other = next(n for n in MAKERS if n != name)
    for html in (html_of(name), html_of(name) + html_of(other)):
        page = reader(html)
        computed(page)
        parts = page.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


MOVED = """all => all.map(e => [e.tagName,
  ...["x", "x2", "y2", "cx", "cy", "points"].map(n => e.getAttribute(n))])"""
PARTS = (
    ".says, td[style], caption, tbody th, .mask td, .part, pre, "
    ".cells:not(.chooser) thead th, details td"
)


@every_figure
def test_the_script_first_draws_what_stands_there_without_it(reader, name):
    drawn, moved = [], []
    for scripts in (True, False):
        page = reader(html_of(name), java_script_enabled=scripts)
        if scripts:
            computed(page)
        drawn.append(page.locator(PARTS).evaluate_all(DRAWN))
        moved.append(page.locator("figure svg *").evaluate_all(MOVED))
    assert len(drawn[0]) > 10
    assert drawn[0] == drawn[1]
    assert moved[0] == moved[1]


@every_figure
@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(
    reader, name, width
):
    page = reader(html_of(name), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    for part in (".says", "figcaption", "td[style], svg"):
        assert page.locator(part).first.is_visible()
    assert page.locator(".says").inner_text().endswith(".")


@every_figure
def test_the_same_figure_twice_on_a_page_works_twice(reader, name):
    page = reader(html_of(name) * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    controls = "input, button"
    count = first.locator(controls).count()
    assert count == second.locator(controls).count() > 0
    before = second.evaluate("f => f.querySelector('.says').textContent")
    first.locator(controls).last.press("ArrowLeft")
    first.locator(controls).last.press(" ")
    after = second.evaluate("f => f.querySelector('.says').textContent")
    assert before == after


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("head_maps", ["BUTTON", "TD", "TD", "TD"]),
        ("position_clocks", ["INPUT"] * 2 + ["BUTTON"] * 2 + ["SUMMARY"] * 2),
        ("mask_builder", ["INPUT"] * 5),
    ],
)
def test_tab_reaches_each_control_and_leaves_again(reader, name, stops):
    page = reader(html_of(name))
    computed(page)
    page.locator("#before").focus()
    reached = []
    for _ in stops:
        press(page, "Tab")
        reached.append(focused(page, "tagName"))
        assert focused(page, "closest('figure') !== null")
    assert reached == stops
    press(page, "Tab")
    assert focused(page, "id") == "after"


@every_figure
def test_controls_have_names_and_keep_their_keys_in_jupyterlab(reader, name):
    page = reader(html_of(name))
    computed(page)
    controls = page.locator("figure :is(input, button)").all()
    assert controls
    for control in controls:
        assert control.get_attribute("data-lm-suppress-shortcuts") == "true"
        assert control.evaluate(
            "e => e.ariaLabel || e.labels?.[0]?.textContent || e.textContent"
        )
    for table in page.locator("[role=grid]").all():
        assert table.get_attribute("data-lm-suppress-shortcuts") == "true"
        assert table.get_attribute("aria-label")


@every_figure
def test_a_finger_can_hit_each_control(reader, name):
    page = reader(html_of(name), width=PHONE, has_touch=True, is_mobile=True)
    computed(page)
    controls = page.locator("figure :is(input, button, summary)").all()
    for control in controls:
        box = control.bounding_box()
        assert min(box["height"], box["width"]) >= 44


@every_figure
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_has_the_focus_has_a_ring(reader, name, theme):
    page = reader(html_of(name), theme=theme)
    enter(page)
    for _ in range(3):
        ring = page.evaluate(
            """(() => { const e = document.activeElement;
            return [e, e.closest('label')].some(x => x
              && parseFloat(getComputedStyle(x).outlineWidth) >= 2
              && getComputedStyle(x).outlineStyle !== 'none'); })()"""
        )
        assert ring
        press(page, "Tab")


# The heads.


@pytest.mark.parametrize(
    ("keys", "heads"),
    [
        (["Home"], 1),
        ([], 3),
        (["ArrowRight"], 11),
        (["End", "ArrowRight"], 11),
        (["Home", "ArrowLeft", "ArrowRight"], 3),
    ],
)
def test_arrow_keys_pick_a_model_and_its_maps_are_drawn(reader, keys, heads):
    page = reader(html_of("head_maps"))
    enter(page)
    press(page, *keys)
    assert computed(page).heads == heads
    assert focused(page, "textContent") == str(heads)
    pressed = page.locator("button[aria-pressed=true]")
    assert pressed.all_inner_texts() == [str(heads)]
    maps = MAPS[heads][:8]
    cells = page.locator(".map tbody td").all_text_contents()
    close([float(cell) for cell in cells], maps.flatten(), atol=0.00501, rtol=0)
    assert page.locator(".map").count() == len(maps)
    note = "The first 8 of 11 heads." if heads == 11 else ""
    assert page.locator(".aside").text_content() == note


@pytest.mark.parametrize("heads", MAPS)
def test_the_script_finds_the_distances_that_python_finds(reader, heads):
    page = reader(html_of("head_maps"))
    computed(page)
    page.locator(".chooser").get_by_text(str(heads), exact=True).first.click()
    rounded = (100 * MAPS[heads][:8].double()).round() / 100
    for found, rows in zip(computed(page).distances, rounded, strict=True):
        back, mean = distance(rows.tolist())
        assert found["back"] == back
        assert found["mean"] == pytest.approx(mean)


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["Home", "ArrowUp"], (5, 0)),
        (["End", "ArrowDown"], (6, 6)),
        (["Home", "ArrowRight", "ArrowRight", *["ArrowUp"] * 9], (0, 2)),
        (["End", "ArrowLeft"], (6, 5)),
    ],
)
def test_arrow_keys_read_the_weights_of_a_map(reader, keys, place):
    page = reader(html_of("head_maps"))
    enter(page)
    press(page, "Tab", "Tab", *keys)  # The second head.
    shown, (row, column) = computed(page), place
    assert (shown.head, shown.row, shown.column) == (1, row, column)
    weight = MAPS[3][1, row, column].item()
    assert shown.weight == pytest.approx(weight, abs=0.00501)
    said = page.locator(".says").inner_text()
    assert f"Head 2: “{WORDS[row]}” at place {row + 1} gives" in said
    assert f"{weight:.2f} of its weight to “{WORDS[column]}”" in said
    assert focused(page, "ariaLabel") == said
    assert page.locator("td[data-chosen]").count() == 1
    press(page, "Tab")  # The same place of the next head.
    after = computed(page)
    assert (after.head, after.row, after.column) == (2, row, column)


def test_a_mouse_reads_a_weight_and_at_rest_undoes_no_tap(reader):
    page = reader(html_of("head_maps"), has_touch=True)
    computed(page)
    row = page.locator(".map").nth(2).locator("tbody tr").nth(4)
    row.locator("td").nth(3).hover()
    shown = computed(page)
    assert (shown.head, shown.row, shown.column) == (2, 4, 3)
    row.locator("td").nth(5).tap()
    page.wait_for_timeout(300)  # Chromium reports the resting mouse again.
    assert computed(page).column == 5


def test_the_cells_of_a_map_are_square_and_a_larger_weight_is_stronger(reader):
    for width in (PHONE, LAPTOP):
        page = reader(html_of("head_maps"), width=width)
        computed(page)
        box = page.locator(".map tbody td").first.bounding_box()
        assert box["width"] == pytest.approx(box["height"], abs=1.5)
    colours = page.locator(".map tbody td").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    order = torch.argsort(MAPS[3].flatten())
    assert colours[order[0]] != colours[order[-1]]


# The clocks.


@pytest.mark.parametrize(
    ("keys", "a", "b"),
    [
        ([], 3, 10),
        (["Home"], 0, 10),
        (["End", "Tab", "Home"], 63, 0),
        (["ArrowRight"] * 4 + ["Tab", "ArrowRight"], 7, 11),
        (["ArrowRight"] * 7, 10, 10),
        (["Home", "Tab", "End"], 0, 63),
        (["Home", "ArrowRight", "Tab", "ArrowRight", "ArrowRight"], 1, 12),
        (["ArrowRight"] * 3 + ["Tab"] + ["ArrowLeft"] * 4, 6, 6),
        (["ArrowLeft", "Tab", "ArrowRight", "ArrowRight"], 2, 12),
    ],
)
def test_the_sliders_recompute_the_encodings_of_the_package(reader, keys, a, b):
    page = reader(html_of("position_clocks"))
    enter(page)
    press(page, *keys)
    shown, table = computed(page), sinusoidal(64, 16, dtype=torch.float64)
    assert (shown.a, shown.b) == (a, b)
    close(shown.first, table[a], rtol=0, atol=1e-9)
    close(shown.second, table[b], rtol=0, atol=1e-9)
    parts = (table[a] * table[b]).reshape(8, 2).sum(1)
    close(shown.parts, parts, rtol=0, atol=1e-9)
    assert shown.dot == pytest.approx((table[a] @ table[b]).item())
    assert shown.moved == pytest.approx(shown.dot)
    assert shown.twin == (list(twin(a, b, 64) or []) or None)
    said = page.locator(".says").inner_text().replace("\N{NO-BREAK SPACE}", " ")
    assert f"Positions {a} and {b}, offset" in said
    assert f"is {shown.dot:.2f}, the sum of the 8 cosines" in said
    assert f"The bare index has {a} × {b} = {a * b} here" in said


def test_both_positions_move_together_and_the_dot_product_stays(reader):
    page = reader(html_of("position_clocks"))
    enter(page)
    start = computed(page)
    both = page.get_by_label("Both positions one step on")
    for _ in range(5):
        both.press("Enter")
    shown = computed(page)
    assert (shown.a, shown.b) == (8, 15)
    assert shown.dot == pytest.approx(start.dot)
    close(shown.parts, start.parts, rtol=0, atol=1e-9)
    assert page.locator("input").nth(1).get_attribute("aria-valuetext") == "15"


def test_no_position_leaves_the_table(reader):
    page = reader(html_of("position_clocks"))
    enter(page)
    press(page, "Home")
    assert page.get_by_label("Both positions one step back").is_disabled()
    press(page, "End")
    assert page.get_by_label("Both positions one step on").is_disabled()
    press(page, "ArrowLeft")
    assert page.get_by_label("Both positions one step on").is_enabled()


def test_hands_markers_and_the_point_on_the_curve_follow_the_sliders(reader):
    page = reader(html_of("position_clocks"))
    enter(page)
    press(page, *["ArrowRight"] * 20, "Tab", "End")
    table = sinusoidal(64, 16, dtype=torch.float64)
    tips = page.locator(".hand.b circle").evaluate_all(
        "all => all.map(e => [e, e].map((c, i) =>"
        " Number(c.getAttribute(i ? 'cy' : 'cx'))))"
    )
    hands = table[63].reshape(8, 2)
    close(tips, 28 * hands * torch.tensor([1, -1]), rtol=0, atol=0.0051)
    box = page.locator(".map > svg").first.bounding_box()
    mark = page.locator(".spot.b line").bounding_box()
    middle = box["x"] + box["width"] * 63.5 / 64
    assert mark["x"] + mark["width"] / 2 == pytest.approx(middle, abs=1.5)
    # The point lies on the curve: at offset 40, and the mirror at -40.
    height = page.locator(".here circle").get_attribute("cy")
    points = page.locator("polyline").get_attribute("points").split(" ")
    for x in (63 + 40, 63 - 40):
        assert float(height) - 12 == pytest.approx(
            float(points[2 * x + 1]), abs=0.06
        )


def test_the_table_of_the_clocks_follows_the_sliders(reader):
    page = reader(html_of("position_clocks"))
    enter(page)
    press(page, "Home")
    page.locator("summary").first.press("Enter")
    cells = page.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells == ["1.000", "−0.839", "−0.839"]


# The mask builder.


def choose(page, place, name, causal, padding):
    page.get_by_label(PLACES[place]).check()
    page.get_by_label(name, exact=True).check()
    page.get_by_label("causal").set_checked(causal)
    page.get_by_label("padding", exact=True).set_checked(padding)


def test_every_choice_shows_the_mask_and_the_weights_of_the_package(reader):
    page = reader(html_of("mask_builder"))
    for choice in product(PLACES, SENTENCES, (False, True), (False, True)):
        choose(page, *choice)
        state = build(*choice)
        shown = computed(page)
        close(shown.shares, shares(state.mask))
        grid = page.locator(".mask tbody tr").evaluate_all(
            "rows => rows.map(r => [...r.cells].map(c => "
            "c.firstChild.textContent))"
        )
        assert [row[0] for row in grid] == state.queries
        drawn = [[cell == "True" for cell in row[1:]] for row in grid]
        assert drawn == state.mask[0, 0].tolist()
        heads = page.locator(".mask thead th").all_inner_texts()
        assert heads == state.keys
        chinese = page.locator(".mask th [lang=zh]").all_inner_texts()
        either = [*state.keys, *state.queries]
        assert chinese == [word for word in either if word in "我爱小猫"]
        leaks = page.locator(".mask .leak").count()
        seen_wrongly = state.mask & ~state.right
        words = torch.tensor([word != "<pad>" for word in state.queries])
        assert leaks == seen_wrongly[0, 0][words].sum()
        assert page.locator(".weights [data-leak]").count() == leaks


def test_the_start_leaks_and_one_key_puts_it_right(reader):
    page = reader(html_of("mask_builder"))
    enter(page)
    assert page.locator(".says").inner_text().startswith("10 cells leak.")
    press(page, "Tab", "Tab")
    assert focused(page, "labels[0].textContent") == "causal"
    press(page, " ")
    said = page.locator(".says").inner_text()
    assert said.startswith("Right: each word sees itself")
    assert page.locator(".leak").count() == 0
    code = "mask = padding_mask(tgt, pad) & causal_mask(tgt.shape[1])"
    assert page.locator("pre").inner_text() == code
    press(page, "Shift+Tab", "Shift+Tab", "ArrowLeft")
    assert computed(page).key == "src 我爱小猫 11"
    assert page.locator(".missing").count() == 6


def test_other_libraries_get_what_the_adapters_make(reader):
    page = reader(html_of("mask_builder"))
    choose(page, "tgt", "我爱猫", True, True)
    mask = build("tgt", "我爱猫", True, True).mask
    lowest = torch.finfo(torch.float32).min
    meant = {
        "nn.MultiheadAttention": (
            to_torch_attention(mask, 1),
            {"True": True, "False": False},
        ),
        "Hugging Face": (to_additive(mask), {"0": 0.0, "min": lowest}),
    }
    for name, (translated, meaning) in meant.items():
        page.get_by_label(name).check()
        cells = page.locator(".mask tbody td").all_inner_texts()
        values = [meaning[cell] for cell in cells]
        assert values == translated.flatten().tolist()
        assert page.locator(".aside").inner_text()


def test_lengths_are_shown_where_lengths_can_say_the_mask(reader):
    page = reader(html_of("mask_builder"))
    choose(page, "src", "我爱猫", False, True)
    page.get_by_label("Lengths").check()
    row = page.locator(".mask tbody tr").first.locator("td")
    assert row.all_inner_texts() == ["0 < 3", "1 < 3", "2 < 3", "3 ≥ 3"]
    assert "lengths = [3]." in page.locator(".aside").inner_text()
    page.get_by_label("causal").check()
    assert set(page.locator(".mask td .unseen").all_inner_texts()) <= {
        "missing"
    }
    assert "No lengths can say this mask" in page.locator(".aside").inner_text()
    assert page.locator(".mask td.masked").first.text_content()[0] == "–"


def test_a_leak_is_told_by_a_sign_and_a_word_and_not_by_colour_alone(reader):
    page = reader(html_of("mask_builder"))
    computed(page)
    leak = page.locator(".mask .leak").first
    assert leak.text_content() == "True!leak"
    assert leak.locator("b").is_visible()
