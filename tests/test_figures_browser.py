"""Figures as a reader has them: in Chromium, from disk, by keyboard."""

import math
from functools import cache
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

from companion.attention import (
    attention_weights,
    scaled_dot_product_attention,
    softmax,
    softmax_jacobian,
)
from companion.figures import (
    alignment_grid,
    plot,
    score_matrix,
    small_rnn,
    source,
    style,
    unrolled_rnn,
)
from companion.figures.gallery.score_matrix import SCORES, VALUES
from companion.rnn import gradient_to_inputs, unroll

matplotlib.use("agg")
pytestmark = pytest.mark.browser

PHONE, LAPTOP = 390, 1024
SOURCE = ["我", "爱", "小", "猫", "<eos>"]
TARGET = ["love", "cats", "<eos>"]
GRIDS = torch.Generator().manual_seed(3)
WEIGHTS = softmax(2 * torch.randn(3, 5, generator=GRIDS))
STATES = torch.randn(5, 2, generator=GRIDS)
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head>
<meta charset="utf-8"><title>Figures</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body style="margin: 16px"><button id="before">before</button>{html}
<button id="after">after</button></body></html>"""


def a_plot():
    with style():
        figure, ax = plt.subplots()
        ax.plot([1, 2, 3], [5, 7, 11], label="我爱")
        ax.set(xlabel="位置", ylabel="count")
        ax.legend()
    return plot(figure, caption="Rising.", alt="A line that rises")


MAKERS = {
    "unrolled_rnn": unrolled_rnn,
    "alignment_grid": lambda: alignment_grid(SOURCE, TARGET, WEIGHTS, STATES),
    "score_matrix": score_matrix,
    "plot": a_plot,
    "source": lambda: source(softmax),
}
every_figure = pytest.mark.parametrize("name", MAKERS)
moving = ("unrolled_rnn", "alignment_grid", "score_matrix")
every_moving_figure = pytest.mark.parametrize("name", moving)


@cache
def html_of(name):
    return MAKERS[name]().html


@pytest.fixture
def reader(chromium, tmp_path):
    """Opens figures from disk; nothing may go wrong, nothing may be fetched."""
    opened, problems = [], []

    def listen(page):
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda m: problems.append(m.text) if m.type != "log" else None,
        )
        page.on("request", lambda request: note(request.url))

    def note(url):
        if not url.startswith("file:"):
            problems.append(url)

    def open_page(html, *, theme="light", width=LAPTOP, **options):
        file = tmp_path / f"page{len(opened)}.html"
        file.write_text(PAGE.format(theme=theme, html=html), encoding="utf-8")
        size = {"width": width, "height": 800}
        opened.append(chromium.new_context(viewport=size, **options))
        page = opened[-1].new_page()
        listen(page)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in opened:
        context.close()
    assert problems == []


def computed(page):
    """What the script computed last."""
    return SimpleNamespace(
        **page.wait_for_function(
            "() => document.querySelector('figure').computed"
        ).json_value()
    )


def focused(page, what="outerHTML"):
    return page.evaluate(f"document.activeElement.{what}")


def enter(page):
    """Goes to the figure's first control, as a keyboard does."""
    computed(page)
    page.locator("#before").focus()
    press(page, "Tab")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def close(ours, theirs, **tolerance):
    theirs = torch.as_tensor(theirs, dtype=torch.float64)
    ours = torch.tensor(ours, dtype=torch.float64)
    torch.testing.assert_close(ours, theirs, **tolerance)


@every_figure
@pytest.mark.parametrize(
    ("theme", "width"), [("light", 320), ("dark", PHONE), ("light", LAPTOP)]
)
def test_a_page_never_scrolls_sideways(reader, name, theme, width):
    page = reader(html_of(name), theme=theme, width=width)
    page.wait_for_timeout(50)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@every_moving_figure
def test_a_phone_needs_no_scrolling_inside_the_figure_either(reader, name):
    page = reader(html_of(name), width=PHONE)
    computed(page)
    for box in page.locator(".companion .scroll").all():
        assert box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


@every_figure
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_ink_follows_the_theme(reader, name, theme):
    page = reader(html_of(name), theme=theme)
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    drawn = page.locator("figure").evaluate("e => getComputedStyle(e).color")
    assert drawn == ink


LOOKS = """all => all.map(e => { const s = getComputedStyle(e);
  return [s.color, s.padding, s.fontSize, s.minWidth, s.textAlign,
          s.backgroundColor, s.borderColor, s.width].join(); })"""


@every_figure
def test_a_figure_looks_the_same_with_another_one_below_it(reader, name):
    looks = []
    for html in (html_of(name), html_of(name) + html_of("plot")):
        page = reader(html)
        page.wait_for_timeout(50)
        parts = page.locator("figure").first.locator("*")
        looks.append(parts.evaluate_all(LOOKS))
    assert looks[0] == looks[1]


def test_the_line_of_a_plot_follows_the_theme(reader):
    strokes = [
        reader(html_of("plot"), theme=theme)
        .locator("path[style*='--blue']")
        .first.evaluate("e => getComputedStyle(e).stroke")
        for theme in ("light", "dark")
    ]
    assert strokes == ["rgb(29, 95, 166)", "rgb(127, 181, 242)"]


def test_a_plot_is_legible_on_a_phone(reader):
    page = reader(html_of("plot"), width=PHONE)
    sizes = page.locator("svg text").evaluate_all(
        "all => all.map(e => e.getScreenCTM().a * "
        "parseFloat(getComputedStyle(e).fontSize))"
    )
    upright = [size for size in sizes if size > 1]  # a turned label has a = 0
    assert len(upright) > 5
    assert min(upright) >= 10


DRAWN = """all => all.map(e => [e.className.baseVal ?? e.className,
  e.getAttribute('style'), e.getAttribute('y'), e.getAttribute('height'),
  e.getAttribute('fill-opacity'), e.textContent])"""


@every_moving_figure
def test_the_script_first_draws_what_stands_there_without_it(reader, name):
    parts = ".bar, .linear, .state, .step title, .says, td[style], td.extra"
    drawn = []
    for scripts in (True, False):
        page = reader(html_of(name), java_script_enabled=scripts)
        if scripts:
            computed(page)
        drawn.append(page.locator(parts).evaluate_all(DRAWN))
    assert len(drawn[0]) > 10
    assert drawn[0] == drawn[1]


@every_moving_figure
@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(
    reader, name, width
):
    page = reader(html_of(name), width=width, java_script_enabled=False)
    assert page.locator("figure input, figure button").count() == 0
    for part in (".says", "figcaption", "td[style], svg"):
        assert page.locator(part).first.is_visible()
    assert page.locator(".says").inner_text().endswith(".")


@every_moving_figure
def test_the_same_figure_twice_on_a_page_works_twice(reader, name):
    page = reader(html_of(name) * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    counts = [
        figure.locator("input, button").count()
        for figure in page.locator("figure").all()
    ]
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("unrolled_rnn", ["INPUT", "SUMMARY"]),
        ("alignment_grid", ["BUTTON"]),
        ("score_matrix", ["INPUT"] * (2 + 16 + 12)),
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


@every_moving_figure
def test_controls_have_names_and_keep_their_keys_in_jupyterlab(reader, name):
    page = reader(html_of(name))
    computed(page)
    controls = page.locator("figure input, figure button").all()
    assert controls
    for control in controls:
        assert control.get_attribute("data-lm-suppress-shortcuts") == "true"
        assert control.evaluate(
            "e => e.ariaLabel || e.labels?.[0]?.textContent || e.textContent"
        )


@every_moving_figure
def test_a_finger_can_hit_each_control(reader, name):
    page = reader(html_of(name), width=PHONE, has_touch=True, is_mobile=True)
    computed(page)
    for control in page.locator("figure :is(input, button, summary)").all():
        assert control.bounding_box()["height"] >= 44


def test_who_asks_for_less_motion_gets_none(reader):
    bar = reader(html_of("unrolled_rnn"), reduced_motion="reduce").locator(
        ".bar"
    )
    duration = "e => getComputedStyle(e).transitionDuration"
    assert bar.first.evaluate(duration) == "0s"


# The unrolled RNN.


@pytest.mark.parametrize(
    ("keys", "gain"),
    [
        ([], 0.8),
        (["Home"], 0.5),
        (["End"], 2.0),
        (["ArrowRight"] * 4, 1.0),
        (["End", *["ArrowLeft"] * 10], 1.5),
    ],
)
def test_the_slider_recomputes_the_gradients_of_the_package(reader, keys, gain):
    page = reader(html_of("unrolled_rnn"))
    enter(page)
    press(page, *keys)
    x, h0, W, U, b = small_rnn()
    shown = computed(page)
    assert shown.gain == gain
    close(
        shown.gradients,
        gradient_to_inputs(x, h0, W, gain * U, b),
        rtol=1e-4,
        atol=0,
    )
    states = unroll(x[None], h0[None], W, gain * U, b)[0]
    close(shown.sizes, states.abs().mean(1), rtol=1e-4, atol=0)
    assert focused(page, "ariaValueText ?? ''") == f"{gain:.2f}"
    assert f"Gain {gain:.2f}:" in page.locator(".says").inner_text()


def test_the_bars_tip_over_when_the_gain_passes_1(reader):
    page = reader(html_of("unrolled_rnn"))
    enter(page)
    press(page, "Home")
    assert page.locator(".bar.down").count() >= 19
    press(page, *["ArrowRight"] * 14)  # gain 1.2
    assert page.locator(".bar.up").count() == 19


def test_the_table_follows_the_slider(reader):
    page = reader(html_of("unrolled_rnn"))
    enter(page)
    press(page, "Home", "Tab", "Enter")
    cell = page.locator("tbody tr td").first
    assert cell.is_visible()
    assert cell.inner_text() == "1.9×10⁻⁶"


# The alignment grid.


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        (["Home"], 0),
        (["Home", "ArrowDown"], 1),
        (["End"], 2),
        (["End", "ArrowDown"], 2),
        (["End", "ArrowUp", "ArrowUp", "ArrowUp"], 0),
    ],
)
def test_arrow_keys_pick_a_word_and_its_context_is_the_sum(reader, keys, row):
    page = reader(html_of("alignment_grid"))
    enter(page)
    press(page, *keys)
    shown = computed(page)
    assert shown.row == row
    close(shown.context, WEIGHTS[row] @ STATES, rtol=0, atol=1e-3)
    assert focused(page, "textContent") == TARGET[row]
    pressed = page.locator("button[aria-pressed=true]")
    assert pressed.all_inner_texts() == [TARGET[row]]
    assert page.locator(".chosen").inner_text() == TARGET[row]
    assert f"“{TARGET[row]}” looks most" in page.locator(".says").inner_text()


def test_a_finger_picks_a_row_by_its_word_and_by_its_cells(reader):
    page = reader(html_of("alignment_grid"), width=PHONE, has_touch=True)
    computed(page)
    rows = page.locator(".grid tr:not(.title)")
    rows.nth(2).locator("button").tap()
    assert computed(page).row == 2
    rows.nth(0).locator("td").nth(1).tap()
    assert computed(page).row == 0


def test_a_mouse_looks_and_the_picked_word_comes_back(reader):
    page = reader(html_of("alignment_grid"))
    computed(page)
    rows = page.locator(".grid tr:not(.title)")
    rows.nth(1).locator("button").click()
    rows.nth(0).hover()
    assert computed(page).row == 0
    page.locator("figcaption").hover()
    assert computed(page).row == 1


# The score matrix.


@pytest.mark.parametrize(
    ("d_k", "width_keys"), [(1, ["Home"]), (64, []), (1024, ["End"])]
)
@pytest.mark.parametrize(
    ("scale_keys", "power"),
    [(["Home"], 0.0), (["Home", "ArrowRight"], -0.5), (["End"], -1)],
)
def test_the_sliders_recompute_the_weights_of_the_package(
    reader, d_k, width_keys, scale_keys, power
):
    page = reader(html_of("score_matrix"))
    enter(page)
    press(page, *width_keys, "Tab", *scale_keys)
    # Queries whose dot products with the unit vectors are the raw scores.
    q = torch.tensor(SCORES, dtype=torch.float64) * math.sqrt(d_k)
    k, v = torch.eye(4, dtype=q.dtype), torch.tensor(VALUES, dtype=q.dtype)
    weights = attention_weights(q, k, scale=d_k**power)
    output = scaled_dot_product_attention(q, k, v, scale=d_k**power)
    shown = computed(page)
    assert shown.d_k == d_k
    close(shown.weights, weights)
    close(shown.output, output)
    close(shown.largest, weights.amax(1))
    moves = torch.linalg.matrix_norm(softmax_jacobian(weights), ord=2)
    close(shown.movement, moves, rtol=1e-4, atol=1e-9)
    assert f"dₖ = {d_k}, scale" in page.locator(".says").inner_text()


def test_only_the_root_scale_makes_the_weights_independent_of_d_k(reader):
    page = reader(html_of("score_matrix"))
    start = computed(page).weights
    enter(page)
    press(page, "End")
    close(computed(page).weights, start)
    press(page, "Tab", "ArrowLeft")  # scale 1
    assert computed(page).largest[0] > 0.999
    press(page, "End")  # scale 1/d_k
    assert max(computed(page).largest) < 0.27


def field(page, kind, row, column):
    cells = page.locator(f"table.{kind} tbody tr").nth(row).locator("input")
    return cells.nth(column)


def retype(page, text):
    press(page, "ControlOrMeta+a", "Delete")
    page.keyboard.type(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", 2), ("-0.5", -0.5), ("−0.5", -0.5), ("0,5", 0.5), ("１．５", 1.5),
     (".5", 0.5), ("1e2", 100), (" 3 ", 3)],
)  # fmt: skip
def test_a_typed_score_counts(reader, text, value):
    page = reader(html_of("score_matrix"))
    computed(page)
    field(page, "scores", 1, 2).focus()
    retype(page, text)
    scores = torch.tensor(SCORES, dtype=torch.float64)
    scores[1, 2] = value
    close(computed(page).scores, scores)
    close(computed(page).weights, softmax(scores))
    assert page.locator(".problem").all_inner_texts() == ["", ""]


def test_a_typed_value_counts(reader):
    page = reader(html_of("score_matrix"))
    computed(page)
    field(page, "values", 3, 1).focus()
    retype(page, "-7")
    v = torch.tensor(VALUES, dtype=torch.float64)
    v[3, 1] = -7
    close(
        computed(page).output,
        softmax(torch.tensor(SCORES, dtype=v.dtype)) @ v,
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty."),
        ("abc", "is not a number: “abc”."),
        ("0x10", "is not a number: “0x10”."),
        ("Infinity", "is not a number: “Infinity”."),
        ("1e999", "is not between −1000 and 1000: “1e999”."),
    ],
)
def test_bad_input_is_named_and_the_last_good_value_counts(
    reader, text, complaint
):
    page = reader(html_of("score_matrix"))
    computed(page)
    cell = field(page, "scores", 0, 1)
    cell.focus()
    retype(page, "0.7")
    press(page, "Tab", "Shift+Tab")
    retype(page, text)
    problem = page.locator(".problem").first
    assert problem.inner_text() == (
        f"Scores, row 1, column 2 {complaint} 0.7 still counts."
    )
    assert computed(page).scores[0][1] == 0.7
    assert problem.get_attribute("role") == "alert"
    assert cell.get_attribute("aria-invalid") == "true"
    assert cell.input_value() == text
    assert torch.tensor(computed(page).weights).isfinite().all()
    retype(page, "0.9")
    assert problem.inner_text() == ""
    assert cell.get_attribute("aria-invalid") == "false"
    assert computed(page).scores[0][1] == 0.9


def test_two_bad_cells_are_both_named(reader):
    page = reader(html_of("score_matrix"))
    computed(page)
    for column in (0, 3):
        field(page, "scores", 2, column).fill("?")
    text = page.locator(".problem").first.inner_text()
    assert "row 3, column 1 is not" in text
    assert "row 3, column 4 is not" in text
