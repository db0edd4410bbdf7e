"""The figures of chapters 09 and 10 as a reader has them, in Chromium."""

from functools import cache
from itertools import product
from math import inf, log, nan

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

from companion.decoding import beam_search, sampling_filter
from companion.figures import (
    beam_tree,
    live,
    noam_curve,
    run_doctor,
    sampling_bars,
)
from companion.figures.gallery import noam_curve as noam_module
from companion.figures.gallery import sampling_bars as sampling
from companion.figures.gallery.noam_curve import view as noam_drawing
from companion.figures.kit.digits import short
from companion.training import noam

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader

DRAW = torch.Generator().manual_seed(3)
SCORES = (2 * torch.randn(23, generator=DRAW)).tolist()
SCORES[4] = -inf
NAMES = ["猫", "elephants", "<eos>", *(f"word{i}" for i in range(20))]
RANKED = sorted((round(score, 4) for score in SCORES), reverse=True)
TABLE = 2 * torch.randn(11, 11, generator=DRAW)
TOKENS = ["<pad>", "<bos>", "<eos>", "yesterday", "elephants", *"abcdef"]
BEAM = {"bos": 1, "eos": 2, "max_len": 6}


def step_fn(rows):
    return TABLE[rows[:, -1]]


def a_run(finding, factor, valid=None):
    return {
        "loss": [factor * 4 / (1 + step) for step in range(250)],
        "gradient": [factor * 10.0 ** (step % 7 - 3) for step in range(250)],
        "rate": [factor * 1e-3] * 250,
        "valid": valid,
        "finding": finding,
        "why": f"That is what {finding} looks like.",
    }


RUNS = {
    "Run A": a_run("overfitting", 1, [3.0, 2.0, 2.5]),
    "Run B": a_run("rate too high", 7)
    | {"loss": [4.0] * 100 + [900.0] * 100 + [nan] * 50},
    "Run C": a_run("rate too low", 0.01),
    "Run D": a_run("healthy", 2),
}
MAKERS = {
    "noam_curve": noam_curve,
    "run_doctor": lambda: run_doctor(RUNS),
    "beam_tree": lambda: beam_tree(step_fn, TOKENS, **BEAM),
    "sampling_bars": lambda: sampling_bars(SCORES, NAMES),
}
every_figure = pytest.mark.parametrize("name", MAKERS)


@cache
def html_of(name):
    if name == "try_schedule":
        return live.try_schedule().page.value
    return MAKERS[name]().html


@pytest.mark.parametrize("name", [*MAKERS, "try_schedule"])
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
def test_nothing_drawn_is_cut_off_on_a_phone(reader, name):
    page = reader(html_of(name), width=PHONE)
    computed(page)
    edges = page.locator("figure svg text, figure td, figure button")
    for left, right in edges.evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.right])"
    ):
        assert left >= 16
        assert right <= PHONE - 16


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
  e.textContent, ...["d", "x", "y", "y1", "transform"]
    .map(n => e.getAttribute(n))])"""


@every_figure
def test_the_script_first_draws_what_stands_there_without_it(reader, name):
    drawn, moved = [], []
    for scripts in (True, False):
        page = reader(html_of(name), java_script_enabled=scripts)
        if scripts:
            computed(page)
        parts = page.locator(".says, td, th, td.track b, td.track i")
        drawn.append(parts.evaluate_all(DRAWN))
        moved.append(page.locator("figure svg *").evaluate_all(MOVED))
    assert len(drawn[0]) + len(moved[0]) > 30
    assert tidy(drawn[0]) == tidy(drawn[1])
    assert moved[0] == moved[1]


def tidy(drawn):
    """A style that a script has touched is written with other spaces."""
    return [[str(part).replace(" ", "").rstrip(";") for part in row]
            for row in drawn]  # fmt: skip


@every_figure
@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_there_is_a_picture_and_no_dead_control(
    reader, name, width
):
    page = reader(html_of(name), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    for part in (".says", "figcaption", "svg, .track b"):
        assert page.locator(f"figure :is({part})").first.is_visible()
    assert page.locator(".says").inner_text()[-1] in ".?"


@every_figure
def test_the_same_figure_twice_on_a_page_works_twice(reader, name):
    page = reader(html_of(name) * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    said = second.locator(".says").inner_text()
    if first.locator("button").count():
        first.locator("button").first.click()
        first.locator("button").nth(2).click()
    else:
        first.locator("input").first.press("Home")
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
        ("noam_curve", ["INPUT"] * 3),
        # The group of radio buttons is one stop.
        ("run_doctor", ["BUTTON"] * 4 + ["INPUT", "BUTTON", "SUMMARY"]),
        ("beam_tree", ["BUTTON"] * 6),
        ("sampling_bars", ["INPUT"] * 3),
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
def test_no_control_hands_its_keys_to_jupyter(reader, name):
    page = reader(html_of(name))
    computed(page)
    for field in page.locator("figure input").all():
        assert field.get_attribute("data-lm-suppress-shortcuts") == "true"


@pytest.mark.parametrize("name", ["noam_curve", "run_doctor", "beam_tree"])
def test_the_words_in_a_drawing_are_legible_on_a_phone(reader, name):
    page = reader(html_of(name), width=PHONE)
    computed(page)
    sizes = page.locator("svg text").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize)
            * e.getScreenCTM().a)"""
    )
    assert len(sizes) > 10
    assert min(sizes) >= 11


# The schedule.


def test_the_page_computes_the_schedule_of_the_package(reader):
    page = reader(html_of("noam_curve"))
    enter(page)
    seen = set()
    for keys in ([], ["Home"], ["Tab", "End"], ["Shift+Tab", "End"],
                 ["Tab", "Home"], ["ArrowRight"] * 5,
                 ["Tab", "End"], ["Home"]):  # fmt: skip
        press(page, *keys)
        now = computed(page)
        scheme = now.d, now.warmup, now.factor
        seen.add(scheme)
        rates = [
            now.factor * noam(step, now.d, now.warmup) for step in now.steps
        ]
        close(now.rates, rates, rtol=1e-12, atol=0)
        peak = now.factor * noam(now.warmup, now.d, now.warmup)
        close([now.peak], [peak], rtol=1e-12, atol=0)
        assert now.steps == noam_module.steps_shown(now.warmup)
        said = page.locator(".says").inner_text()
        wanted = noam_module.sentence(*scheme)
        assert said == wanted.replace("\N{NO-BREAK SPACE}", " ") or (
            said == wanted
        )
        cells = page.locator("td.least").all_inner_texts()
        for rate in rates:
            assert short(rate / noam_drawing.UNIT) in cells
        for svg, lines in zip(
            page.locator(".plot svg").all(),
            noam_drawing.paths(*scheme),
            strict=True,
        ):
            for kind, line in zip(
                ("rate", "rising", "falling"), lines, strict=True
            ):
                drawn = svg.locator(f"path.{kind}").get_attribute("d")
                close(numbers(drawn), numbers(line), rtol=0, atol=0.11)
    assert seen == {
        (512, 4000, 1), (64, 4000, 1), (64, 16_000, 1), (1024, 16_000, 1),
        (1024, 100, 1), (1024, 600, 1), (1024, 600, 5), (1024, 600, 0.1),
    }  # fmt: skip


def numbers(path):
    return [float(n) for n in path[1:].replace("L", " ").split()]


@pytest.mark.parametrize("ends", [*product(("Home", "End"), repeat=3)])
def test_the_curves_stay_in_their_plots(reader, ends):
    page = reader(html_of("noam_curve"))
    enter(page)
    press(page, ends[0], "Tab", ends[1], "Tab", ends[2])
    for kind in ("rate", "rising", "falling"):
        for path in page.locator(f".plot path.{kind}").all():
            line = numbers(path.get_attribute("d"))
            assert min(line[::2]) >= noam_drawing.LEFT
            assert max(line[::2]) <= noam_drawing.RIGHT + 0.05
            assert min(line[1::2]) >= noam_drawing.TOP - 0.05
            assert max(line[1::2]) <= noam_drawing.BOTTOM + 0.05


def test_the_branches_differ_in_more_than_their_colour(reader):
    page = reader(html_of("noam_curve"))
    computed(page)
    dashes = page.locator(".legend path").evaluate_all(
        "all => all.map(e => getComputedStyle(e).strokeDasharray)"
    )
    assert len(set(dashes)) == 3


# The doctor.


def test_a_guess_is_answered_by_the_doctor_and_not_before(reader):
    page = reader(html_of("run_doctor"))
    computed(page)
    ask = page.get_by_role("button", name="Ask the doctor")
    assert ask.get_attribute("aria-disabled") == "true"
    ask.press("Enter")
    assert not computed(page).asked
    page.get_by_role("radio", name="healthy").check()
    assert computed(page).guess == "healthy"
    assert "What is wrong?" in page.locator(".says").inner_text()
    ask.click()
    assert page.locator(".says").inner_text() == (
        "You said: healthy. The doctor says of Run A: overfitting. That is "
        "what overfitting looks like."
    )
    assert page.locator("label.wrong").inner_text() == "healthy"
    assert page.locator("label.right").inner_text() == "overfitting"


def test_the_right_guess_is_told_by_keyboard_too(reader):
    page = reader(html_of("run_doctor"))
    enter(page)
    press(page, "Tab", "Tab", "Enter")  # Run C.
    assert computed(page).run == "Run C"
    press(page, "Tab", "Tab", "Space", *["ArrowDown"] * 3)
    assert computed(page).guess == "rate too low"
    press(page, "Tab", "Enter")
    assert page.locator(".says").inner_text() == (
        "Right. Run C: rate too low. That is what rate too low looks like."
    )
    assert page.locator("label.wrong").count() == 0


def test_another_run_starts_without_a_guess(reader):
    page = reader(html_of("run_doctor"))
    computed(page)
    page.get_by_role("radio", name="overfitting").check()
    page.get_by_role("button", name="Ask the doctor").click()
    before = page.locator(".plots").inner_html()
    page.get_by_role("button", name="Run B").click()
    shown = computed(page)
    assert (shown.run, shown.guess, shown.asked) == ("Run B", None, False)
    assert page.locator("label:is(.right, .wrong)").count() == 0
    assert page.locator("input:checked").count() == 0
    assert page.locator(".plots").inner_html() != before
    assert "50 numbers are NaN or infinite" in shown.says
    pressed = page.locator("button[aria-pressed=true]").all_inner_texts()
    assert pressed == ["Run B"]


def test_two_lines_in_a_plot_differ_in_more_than_their_colour(reader):
    page = reader(html_of("run_doctor"))
    computed(page)
    plot = page.locator(".plot svg").first
    dashes = plot.locator("path.line").evaluate_all(
        "all => all.map(e => getComputedStyle(e).strokeDasharray)"
    )
    assert len(set(dashes)) == 2
    assert plot.locator(".valid path.small").count() == 3


def test_all_diagnoses_can_be_read_without_scripts(reader):
    page = reader(html_of("run_doctor"), java_script_enabled=False)
    assert not page.locator("dl").is_visible()
    page.locator("summary").click()
    terms = page.locator("dt").all_inner_texts()
    assert terms == [f"{n}: {run['finding']}" for n, run in RUNS.items()]


# The beam.


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_the_last_step_has_the_winner_of_the_package(reader, beam):
    page = reader(html_of("beam_tree"))
    computed(page)
    page.get_by_role("button", name=f"Beam {beam}").click()
    assert computed(page).beam == beam
    ids = beam_search(step_fn, beam=beam, alpha=0.6, **BEAM)
    words = [TOKENS[i] for i in ids]
    assert f"beam of {beam} says “{' '.join(words)}”" in computed(page).says
    won = page.locator(".node.won text.word").all_text_contents()
    assert won == ["<bos>", *words]
    wins = page.locator("tr:has([data-won]) th").all_inner_texts()
    assert wins == [" ".join(words)]


def test_the_steps_uncover_the_tree_row_by_row(reader):
    page = reader(html_of("beam_tree"))
    computed(page)
    page.get_by_role("button", name="Start").press("Enter")
    rows = page.locator("[data-row]").count()
    forward = page.get_by_role("button", name="Next")
    for step in range(rows + 2):
        if step:
            forward.press("Enter")
        assert computed(page).step == step
        hidden = page.locator("[data-row].later")
        assert hidden.count() == max(rows - step, 0)
        if step < rows:
            assert not hidden.last.locator("rect").first.is_visible()
        place = page.locator("output").inner_text()
        assert place == f"{step + 1} of {rows + 2}"
        # Before the end the winner is not given away.
        over = page.locator("svg.over").count() == 1
        assert over == (step == rows + 1)
        assert page.locator("[data-won]").count() == int(over)
    assert forward.get_attribute("aria-disabled") == "true"
    forward.press("Enter")
    assert computed(page).step == rows + 1
    page.get_by_role("button", name="Back").press("Enter")
    assert computed(page).step == rows


def test_kept_boxes_and_cut_ones_differ_in_more_than_their_colour(reader):
    page = reader(html_of("beam_tree"))
    computed(page)
    looks = [
        page.locator(f".node.{kind}:not(.won)").first.evaluate(
            "e => [getComputedStyle(e.querySelector('rect')).strokeDasharray,"
            " getComputedStyle(e.querySelector('.word')).fontWeight]"
        )
        for kind in ("kept", "cut")
    ]
    assert looks[0][0] != looks[1][0]
    assert looks[0][1] != looks[1][1]


def test_boxes_do_not_touch(reader):
    page = reader(html_of("beam_tree"), width=PHONE)
    computed(page)
    boxes = page.locator(".node > rect:first-child").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.top, r.right, r.bottom])"
    )
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
            assert apart


# Sampling.


def test_the_page_computes_the_filter_of_the_package(reader):
    page = reader(html_of("sampling_bars"))
    enter(page)
    scores = torch.tensor(RANKED, dtype=torch.float64)
    seen = []
    for keys in ([], ["Home"], ["End"], ["Tab", "Home"], ["ArrowRight"] * 4,
                 ["Tab", "Home"], ["End"], ["ArrowLeft"] * 6,
                 ["Shift+Tab", "End"], ["Shift+Tab", "ArrowLeft"]):  # fmt: skip
        press(page, *keys)
        now = computed(page)
        seen.append((now.temperature, now.k, now.p))
        drawn = sampling_filter(scores, now.k, now.p, now.temperature)
        assert now.kept == drawn.isfinite().sum()
        columns = (
            scores.softmax(-1),
            (scores / now.temperature).softmax(-1),
            drawn.softmax(-1),
        )
        for ours, theirs in zip(now.bars, columns, strict=True):
            close(ours[:12], theirs[:12], rtol=0, atol=1e-12)
            close(ours[12:], theirs[12:].sum()[None], rtol=0, atol=1e-12)
        mass = columns[1][drawn.isfinite()].sum()
        close([now.mass], mass[None], rtol=0, atol=1e-12)
        entropies = [
            torch.distributions.Categorical(probs=column).entropy() / log(2)
            for column in (columns[0], columns[2])
        ]
        close(now.bits, torch.stack(entropies), rtol=0, atol=1e-6)
        wanted = sampling.sentence(now.temperature, now.k, now.p, RANKED)
        said = page.locator(".says").inner_text()
        assert said.replace("\N{NO-BREAK SPACE}", " ") == wanted.replace(
            "\N{NO-BREAK SPACE}", " "
        )
        dropped = page.locator("tr.dropped").count()
        assert dropped == 13 - min(now.kept, 13)
    assert len(set(seen)) == len(seen) == 10


def test_dropped_bars_are_hatched_and_kept_ones_are_not(reader):
    page = reader(html_of("sampling_bars"))
    enter(page)
    press(page, "Tab", "Home")
    assert computed(page).kept == 1
    images = [
        page.locator(f"tbody tr{kind} b").first.evaluate(
            "e => getComputedStyle(e).backgroundImage"
        )
        for kind in (":not(.dropped)", ".dropped")
    ]
    assert images[0] == "none"
    assert "repeating-linear-gradient" in images[1]
    assert page.locator(".dropped td:last-child").first.inner_text() == (
        "dropped"
    )


def test_a_bar_is_as_long_as_its_share(reader):
    page = reader(html_of("sampling_bars"))
    shares = computed(page).bars[2]
    page.wait_for_timeout(300)  # It grows for a moment.
    for row, share in zip(page.locator("tbody tr").all(), shares, strict=True):
        width, whole, tick = row.locator(".track div").evaluate(
            "e => [e.querySelector('b').offsetWidth, e.clientWidth,"
            " e.querySelector('i').offsetLeft]"
        )
        if share:
            assert width == pytest.approx(max(whole * share, 1), abs=1.5)
        assert tick <= whole
