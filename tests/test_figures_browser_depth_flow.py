"""The figures of chapters 07 and 08 as a reader has them, in Chromium."""

from functools import cache
from itertools import pairwise

import pytest
import test_figures_browser
import torch
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
from test_figures_depth_flow import by_heart, data_of

from companion.figures import data_flow, depth_curves, live
from companion.figures.gallery.data_flow.steps import (
    Sizes,
    generating,
    training,
)
from companion.figures.kit.digits import fixed, short
from companion.masks import causal_mask

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader

NAMES, DEPTHS = ("bare", "norm only", "post-LN", "pre-LN"), (1, 2, 5, 48)
DRAW = torch.Generator().manual_seed(3)
CURVES = {
    name: {
        depth: {
            "similarity": torch.rand(depth + 1, generator=DRAW).tolist(),
            "gradient": [10.0 ** (-i * at / 2) for at in range(depth)],
        }
        for depth in DEPTHS
    }
    for i, name in enumerate(NAMES)
}
SRC, TGT = list("我爱小猫"), ["I", "love", "little", "cats"]
LANES = len(TGT) + 1
LONG = ("我今天看到猫", "really yesterday saw little elephants everywhere")
MAKERS = {
    "depth_curves": lambda: depth_curves(CURVES),
    "data_flow": data_flow,
    "long_flow": lambda: data_flow(*LONG),
    "trained_flow": lambda: data_flow(trained=by_heart()),
}
every_figure = pytest.mark.parametrize("name", MAKERS)
LIVE = ("try_heads", "try_positions", "try_masks", "try_norms", "try_sizes")


@cache
def html_of(name):
    if name in LIVE:
        return getattr(live, name)().page.value
    return MAKERS[name]().html


@pytest.mark.parametrize("name", [*MAKERS, *LIVE])
@pytest.mark.parametrize(
    ("theme", "width"), [("light", 320), ("dark", PHONE), ("light", LAPTOP)]
)
def test_a_page_never_scrolls_sideways(reader, name, theme, width):
    page = reader(html_of(name), theme=theme, width=width)
    page.wait_for_timeout(50)
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


MOVED = """all => all.map(e => [e.tagName, e.getAttribute('class'),
  ...["d", "x", "y", "y1", "transform"].map(n => e.getAttribute(n))])"""
PARTS = ".says, .passes, td, thead th, .part, .token, .shape, .mask i, .side"


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
    # A style that a script has touched is written with other spaces.
    assert tidy(drawn[0]) == tidy(drawn[1])
    assert moved[0] == moved[1]


def tidy(drawn):
    return [[str(part).replace(" ", "").rstrip(";") for part in row]
            for row in drawn]  # fmt: skip


@every_figure
@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(
    reader, name, width
):
    page = reader(html_of(name), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button, select)").count() == 0
    for part in (".says", "figcaption", ".box, .plot svg"):
        assert page.locator(part).first.is_visible()
    assert page.locator(".says").inner_text().endswith(".")


@every_figure
def test_the_same_figure_twice_on_a_page_works_twice(reader, name):
    page = reader(html_of(name) * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    said = second.locator(".says").inner_text()
    first.locator("button").nth(1).click()
    assert first.locator(".says").inner_text() != said
    assert second.locator(".says").inner_text() == said


@every_figure
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_said_is_announced_and_follows_the_theme(reader, name, theme):
    page = reader(html_of(name), theme=theme)
    computed(page)
    says = page.locator(".says")
    assert says.get_attribute("aria-live") == "polite"
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    assert says.evaluate("e => getComputedStyle(e).color") == ink


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("depth_curves", ["INPUT"] + ["BUTTON"] * 4),
        ("data_flow", ["BUTTON"] * 4),
        ("trained_flow", ["BUTTON"] * 4 + ["SELECT"]),
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


@pytest.mark.parametrize("name", ["depth_curves", "data_flow"])
def test_the_words_in_a_drawing_are_legible_on_a_phone(reader, name):
    page = reader(html_of(name), width=PHONE)
    computed(page)
    sizes = page.locator("svg text, .token, .box *, .times").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize)
            * (e.getScreenCTM ? e.getScreenCTM().a : 1))"""
    )
    assert len(sizes) > 10
    assert min(sizes) >= 11


# Depth curves.


def test_the_slider_goes_through_the_depths(reader):
    page = reader(html_of("depth_curves"))
    enter(page)
    press(page, "Home")
    seen = []
    for _ in DEPTHS:
        shown = computed(page)
        seen.append(shown.depth)
        value = focused(page, "getAttribute('aria-valuetext')")
        assert value == str(shown.depth)
        for name, cells in zip(NAMES, shown.cells, strict=True):
            run = CURVES[name][shown.depth]
            assert cells == [
                fixed(run["similarity"][-1]),
                short(run["gradient"][0]),
                short(run["gradient"][-1]),
            ]
        assert page.locator("tbody td").all_inner_texts() == [
            cell for cells in shown.cells for cell in cells
        ]
        press(page, "ArrowRight")
    assert tuple(seen) == DEPTHS


@pytest.mark.parametrize("number", range(4))
def test_a_press_on_a_name_brings_its_lines_to_the_front(reader, number):
    page = reader(html_of("depth_curves"))
    enter(page)
    press(page, *["Tab"] * (number + 1), "Enter")
    name = NAMES[number]
    assert computed(page).name == name
    pressed = page.locator("button[aria-pressed=true]")
    assert [t.strip() for t in pressed.all_inner_texts()] == [name]
    assert f"48 layers, {name}: tokens" in page.locator(".says").inner_text()
    for plot in page.locator(".plot svg").all():
        last = plot.locator(":scope > g").last
        assert last.get_attribute("class") == "chosen"
        assert last.locator(f"g.line{number}").count() == 1
    assert page.locator("tr[data-chosen]").count() == 1


def test_lines_differ_in_more_than_their_colour(reader):
    page = reader(html_of("depth_curves"))
    computed(page)
    dashes = page.locator("table path.line").evaluate_all(
        "all => all.map(e => getComputedStyle(e).strokeDasharray)"
    )
    marks = page.locator("table path.mark").evaluate_all(
        "all => all.map(e => e.getAttribute('d'))"
    )
    assert len(set(dashes)) == len(set(marks)) == 4


# Data flow.


def lit(page):
    return page.locator(".part.lit").evaluate_all(
        "all => all.map(e => e.dataset.part)"
    )


def walk(page, steps):
    """Presses Next, with the keyboard, until the last step."""
    button = page.get_by_role("button", name="Next")
    for number, step in enumerate(steps):
        if number:
            button.focus()
            press(page, "Enter")
        assert computed(page).step == number
        assert page.locator(".says").inner_text() == step.says
        assert set(lit(page)) == set(step.lit)
        encoder, decoder = step.passes
        passes = page.locator(".passes").inner_text()
        assert f"encoder {encoder}" in passes
        assert f"decoder {decoder}" in passes
        assert passes.count("●") == encoder + decoder
        yield step


def test_the_tour_of_training_says_every_step(reader):
    page = reader(html_of("data_flow"))
    steps = training(SRC, TGT, int((~causal_mask(LANES)).sum()))
    assert len(list(walk(page, steps))) == len(steps) == 8
    assert page.locator("output").inner_text() == "8 of 8"


def test_generating_goes_token_by_token(reader):
    page = reader(html_of("data_flow"))
    page.get_by_role("button", name="Generating").click()
    reads = ["<bos>", *TGT]
    for step in walk(page, generating(SRC, TGT)):
        seen = page.locator("[data-part=tgt] .on").all_inner_texts()
        assert seen == reads[: step.reads]
        squares = page.locator(".mask i:not(.off)")
        assert squares.count() == step.reads**2
        sees = page.locator(".mask i.sees:not(.off)").count()
        assert sees == causal_mask(step.reads).sum()
        shape = page.locator("[data-part=cross_attention] .shape")
        assert shape.inner_text() == f"weights ({step.reads}, {len(SRC)})"
        if step.writes:
            written = page.locator("[data-part=out] .on").all_inner_texts()
            assert written == [[*TGT, "<eos>"][step.reads - 1]]
            following = page.locator("[data-part=tgt] .next")
            assert following.all_inner_texts() == reads[step.reads :][:1]


def test_the_ends_of_the_walk_hold(reader):
    page = reader(html_of("data_flow"))
    computed(page)
    back = page.get_by_role("button", name="Back")
    forward = page.get_by_role("button", name="Next")
    assert back.get_attribute("aria-disabled") == "true"
    back.focus()  # It can still be reached, and does nothing.
    press(page, "Enter")
    assert computed(page).step == 0
    for _ in range(12):
        forward.focus()
        press(page, "Enter")
    assert computed(page).step == 7
    assert forward.get_attribute("aria-disabled") == "true"
    back.click()
    assert computed(page).step == 6
    assert forward.get_attribute("aria-disabled") == "false"


def test_another_mode_starts_from_its_beginning_and_undoes_the_first(reader):
    page = reader(html_of("data_flow"))
    start = computed(page).says
    modes = [page.get_by_role("button", name=n)
             for n in ("Training", "Generating")]  # fmt: skip
    modes[1].click()
    page.get_by_role("button", name="Next").click()
    assert computed(page).mode == "Generating"
    assert page.locator(".token.off").count() > 0
    modes[0].click()
    assert (computed(page).step, computed(page).says) == (0, start)
    assert page.locator(".off").count() == 0
    pressed = [mode.get_attribute("aria-pressed") for mode in modes]
    assert pressed == ["true", "false"]


def box_of(page, part):
    return page.locator(f"[data-part={part}]").bounding_box()


def test_on_a_laptop_the_memory_stands_beside_what_reads_it(reader):
    page = reader(html_of("data_flow"))
    computed(page)
    memory, cross = box_of(page, "memory"), box_of(page, "cross_attention")
    assert abs(memory["y"] - cross["y"]) < 2
    assert memory["x"] + memory["width"] < cross["x"]


def test_on_a_phone_the_decoder_stands_below_the_encoder(reader):
    page = reader(html_of("data_flow"), width=PHONE)
    computed(page)
    memory, tgt = box_of(page, "memory"), box_of(page, "tgt")
    assert memory["y"] + memory["height"] < tgt["y"]
    assert abs(memory["x"] - box_of(page, "cross_attention")["x"]) < 2


@pytest.mark.parametrize("part", ["src", "memory", "out"])
def test_on_a_phone_the_buttons_stay_in_sight(reader, part):
    page = reader(html_of("data_flow"), width=PHONE)
    computed(page)
    place = page.locator(f"[data-part={part}]")
    place.evaluate("e => e.scrollIntoView({block: 'start'})")
    button = page.get_by_role("button", name="Next").bounding_box()
    assert 0 <= button["y"] <= 800 - button["height"]
    top = place.bounding_box()
    assert top["y"] + top["height"] <= button["y"]


@pytest.mark.parametrize("width", [320, PHONE, LAPTOP])
def test_tokens_stay_in_their_lanes(reader, width):
    page = reader(html_of("long_flow"), width=width)
    computed(page)
    for part in ("src", "tgt", "out"):
        tokens = page.locator(f"[data-part={part}] .token").all()
        boxes = [token.bounding_box() for token in tokens]
        for one, other in pairwise(boxes):
            assert one["x"] + one["width"] <= other["x"] + 0.5
        for token in tokens:
            assert token.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_a_lane_starts_under_each_token_that_is_read(reader):
    page = reader(html_of("data_flow"))
    computed(page)
    page.get_by_role("button", name="Generating").click()
    for reads in (1, 1, 2):
        width, whole = page.locator("[data-part=logits]").evaluate(
            "e => [parseFloat(getComputedStyle(e, '::before').width),"
            " e.clientWidth]"
        )
        assert width / whole == pytest.approx(reads / LANES, abs=0.01)
        page.get_by_role("button", name="Next").click()


# Data flow, with a trained model's numbers.


def numbers(page):
    return page.locator(".numbers tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def expected(table, rows, columns):
    return [
        [name, *(fixed(v) if v is not None else "masked" for v in row)]
        for name, row in zip(
            table["rows"][:rows],
            [row[:columns] for row in table["values"]],
            strict=False,
        )
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_step_shows_the_numbers_of_the_part_at_work(reader, theme):
    page = reader(html_of("trained_flow"), theme=theme)
    tables = data_of(data_flow(trained=by_heart()))["tables"]
    choice, shown = page.locator("select"), set()
    ends = ["<bos>", *SRC, "<eos>"]
    sizes = Sizes("14", "7", "2 layers")
    for _ in walk(page, training(ends, TGT, 10, sizes)):
        part = computed(page).part
        shown.add(part)
        table = tables[part]
        assert part in lit(page)
        assert choice.input_value() == part
        assert page.locator(".numbers caption").inner_text() == table["title"]
        assert numbers(page) == expected(table, None, None)
    assert len(shown) == 7


def test_a_generating_decoder_has_only_the_rows_that_it_reads(reader):
    page = reader(html_of("trained_flow"))
    tables = data_of(data_flow(trained=by_heart()))["tables"]
    page.get_by_role("button", name="Generating").click()
    for reads in range(1, LANES + 1):
        page.get_by_role("button", name="Next").click()
        page.locator("select").select_option("self_attention")
        table = tables["self_attention"]
        assert numbers(page) == expected(table, reads, reads)
        page.locator("select").select_option("memory")
        assert len(numbers(page)) == len(SRC) + 2


def test_any_part_is_chosen_by_keyboard_until_the_next_step(reader):
    page = reader(html_of("trained_flow"), width=PHONE)
    computed(page)
    choice = page.get_by_label("Numbers of")
    choice.focus()
    press(page, "Home")
    assert computed(page).part == choice.input_value() == "src_embedding"
    assert numbers(page)[0][0] == "<bos>"
    page.get_by_role("button", name="Next").click()
    assert computed(page).part == "src_embedding"
    page.get_by_role("button", name="Next").click()
    assert computed(page).part == "memory"
