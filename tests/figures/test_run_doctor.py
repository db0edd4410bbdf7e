"""The figure of chapter 10: runs to diagnose."""

import re
from math import inf, isfinite, nan

import pytest
from figures.browser import computed, enter, press
from figures.registry import RUNS, data_of, html_of, parts_at, points, shown

from companion.figures import (
    run_doctor,
)
from companion.figures.kit.curves import POINTS, spread, thinned


def a_run(finding="healthy", steps=30, **lists):
    falling = [4 / (1 + step) for step in range(steps)]
    return {
        "loss": falling,
        "gradient": [1 + loss for loss in falling],
        "rate": [1e-3] * steps,
        "valid": None,
        "finding": finding,
        "why": f"Because it is {finding}.",
    } | lists


def test_the_diagnoses_are_those_of_the_runs_each_once():
    runs = {"A": a_run("b"), "B": a_run("a"), "C": a_run("b")}
    guess = data_of(run_doctor(runs))["controls"][1]
    assert guess["texts"] == ["a", "b"]
    assert guess["right"] == [1, 0, 1]


def test_the_reader_is_told_the_numbers_and_not_what_is_wrong():
    figure = run_doctor({"A": a_run("secretly ill", valid=[3.0, 1.5, 2.5])})
    assert figure.text == (
        "Run doctor. A, 30 steps: the training loss goes from 4.00 to 0.133, "
        "the validation loss ends at 2.50, at best it was 1.50. The gradient "
        "lies between 1.13 and 5.00. The highest rate is 1.0×10⁻³. What is "
        "wrong?"
    )
    before = shown(figure).split("<details>")[0]
    assert "secretly" not in before


def test_numbers_that_are_none_are_counted_and_marked():
    loss = [4.0, 3.0, nan, nan] + [2.0] * 4
    gradient = [1.0, inf, 1.0, 1.0, nan] + [1.0] * 3
    run = a_run(loss=loss, gradient=gradient, rate=[0.1] * 8)
    figure = run_doctor({"A": run})
    assert "4 numbers are NaN or infinite" in figure.text
    plots = parts_at(figure, 0, 0)["plot"]
    crosses = [plot.count("M-5 -5L5 5") for plot in plots]
    ups = [plot.count("M-5 0H5L0 -8Z") for plot in plots]
    assert (crosses, ups) == ([1, 1, 0], [0, 1, 0])
    # The line is broken where there is no number.
    path = re.search(r'class="line" d="([^"]*)"', plots[0])[1]
    assert path.count("M") == 2
    assert "nan" not in figure.html.lower().replace("nan or", "")


def test_a_loss_far_above_its_beginning_leaves_the_picture():
    run = a_run(loss=[4.0, 3.0, 90.0, 3.0], gradient=[1.0] * 4, rate=[0.1] * 4)
    svg = parts_at(run_doctor({"A": run}), 0, 0)["plot"][0]
    assert svg.count("M-5 0H5L0 -8Z") == 1
    path = re.search(r'class="line" d="([^"]*)"', svg)[1]
    assert min(y for _, y in points(path)) == 14  # The upper edge.


def test_a_gradient_of_0_leaves_the_picture_below():
    run = a_run(loss=[4.0] * 4, gradient=[1.0, 0, 1, 1], rate=[0.1] * 4)
    svg = parts_at(run_doctor({"A": run}), 0, 0)["plot"][1]
    assert svg.count("M-5 -8H5L0 0Z") == 1


def test_a_rate_that_starts_small_stays_in_the_picture():
    rate = [1e-6, 1e-3, 2e-3, 1e-3]
    run = a_run(loss=[4.0] * 4, gradient=[1.0] * 4, rate=rate)
    svg = parts_at(run_doctor({"A": run}), 0, 0)["plot"][2]
    assert 'class="left"' not in svg


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0.012, ["0", "0.005", "0.010"]),
        (4.0, ["0", "2", "4"]),
        (0.2, ["0", "0.1", "0.2"]),
        (2e-5, ["0", "1.0×10⁻⁵", "2.0×10⁻⁵"]),
        (0.0, ["0", "0.5", "1.0"]),
    ],
)
def test_the_numbers_beside_an_axis_are_written_alike(highest, ticks):
    run = a_run(rate=[highest / 2] * 29 + [highest])
    svg = parts_at(run_doctor({"A": run}), 0, 0)["plot"][2]
    assert re.findall(r'class="tick"[^>]*>(.*?)</text>', svg) == ticks


def test_thinning_keeps_the_last_number_and_every_accident():
    numbers = [float(i) for i in range(1, 1002)]
    numbers[500] = inf
    line = thinned(numbers)
    assert len(line) == POINTS
    assert line[-1] == (1001, 1001.0)
    assert [at for at in line if not isfinite(at[1])] == [(501, inf)]
    assert all(n == step for step, n in line if isfinite(n))
    assert thinned([3.0, 5.0]) == [(1, 3.0), (2, 5.0)]


def test_validation_losses_are_spread_over_the_run():
    assert spread([5.0, 3.0], 10) == [(5.0, 5.0), (10.0, 3.0)]


def test_a_finding_with_markup_is_written_out():
    html = run_doctor({"<i>": a_run("<b>&")}).html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html.split("<script")[0]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: expected 1 to 7, got 0"),
        ({str(i): a_run() for i in range(8)}, "runs: expected 1 to 7, got 8"),
        (
            {"A": {"loss": [1, 2]}},
            r"runs\['A'\]: expected 'gradient', got \['loss'\]",
        ),
        (
            {"A": a_run(loss=[1.0, 2.0])},
            r"runs\['A'\]: expected loss, gradient, rate of one length, at "
            "least 2, got 2, 30, 30",
        ),
        ({"A": a_run(steps=1)}, "at least 2, got 1, 1, 1"),
    ],
)
def test_runs_that_do_not_fit_are_named(runs, complaint):
    with pytest.raises(ValueError, match=complaint):
        run_doctor(runs)


def test_a_guess_is_answered_by_the_doctor_and_not_before(reader):
    page = reader(html_of("run_doctor"))
    computed(page)
    ask = page.get_by_role("button", name="Ask the doctor")
    assert ask.get_attribute("aria-disabled") == "true"
    ask.press("Enter")
    page.get_by_role("radio", name="healthy").check()
    assert computed(page).state == [0, 0]
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
    assert computed(page).says.startswith("Run C, 250 steps")
    press(page, "Tab", "Tab", "Space", *["ArrowDown"] * 3)
    assert page.locator("label:has(:checked)").inner_text() == "rate too low"
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
    assert shown.state == [1, 0]
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
