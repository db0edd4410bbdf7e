"""The figure of chapter 10: trained losses by warm-up."""

import re

import pytest
from figures.browser import computed, enter, focused, press
from figures.registry import (
    D_MODEL,
    ENDS,
    STEPS,
    data_of,
    html_of,
    points,
    shown,
    some_losses,
)

from companion.figures import warmup_curves
from companion.figures.gallery.warmup_curves import band_of, sentence
from companion.figures.gallery.warmup_curves.view import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
)
from companion.figures.kit.digits import short
from companion.training import noam


def a_figure(losses=None):
    losses = some_losses() if losses is None else losses
    return warmup_curves(losses, d_model=D_MODEL, device="CPU")


def test_a_last_digit_changes_no_byte():
    moved = {
        warmup: [[loss + 1e-9 for loss in run] for run in runs]
        for warmup, runs in some_losses().items()
    }
    assert a_figure(moved).html == a_figure().html


def test_each_point_is_the_mean_of_five_steps():
    rising, falling = [0, 1, 2, 3, 4, 5, 5, 5, 5, 5], [9.0] * 5 + [1.0] * 5
    band = band_of([rising, falling, [3.0] * 10])
    assert band.steps == [3, 8]
    assert band.low == [2, 1]
    assert band.middle == [3, 3]
    assert band.high == [9, 5]


def test_the_losses_are_drawn_where_they_belong():
    curve = data_of(a_figure())["curves"][0][1]
    middle = points(curve["line"])
    assert middle[0][0] == pytest.approx(
        LEFT + (RIGHT - LEFT) * 2 / 19, abs=0.06
    )
    # The middle seed goes to 1.5: after 18 of 20 steps it is at 1.85 of 5.
    assert middle[-1][1] == pytest.approx(
        BOTTOM - (BOTTOM - TOP) * 1.85 / 5, abs=0.06
    )
    around = re.search(r'class="band" d="(.*)Z"', curve["front"])[1]
    upper, lower = points(around)[:4], points(around)[:3:-1]
    for (x, y), (_, high), (_, low) in zip(middle, upper, lower, strict=True):
        assert high < y < low
        assert LEFT < x < RIGHT


def test_the_rates_are_those_of_the_package():
    # From 1 down to 10⁻⁴: four decades.
    curves = data_of(a_figure())["curves"][1]
    for warmup, curve in zip(ENDS, curves, strict=True):
        line = points(curve["line"])
        assert len(line) == STEPS
        for step, (x, y) in enumerate(line, 1):
            share = (BOTTOM - y) / (BOTTOM - TOP)
            assert 10 ** (4 * share - 4) == pytest.approx(
                noam(step, D_MODEL, warmup), rel=5e-3
            )
            assert x == pytest.approx(
                LEFT + (RIGHT - LEFT) * (step - 1) / 19, abs=0.06
            )
        top = f"translate({','.join(f'{n:.1f}' for n in min_y(line))})"
        assert top in curve["front"]


def min_y(line):
    """Upwards is where y is small."""
    return min(line, key=lambda point: point[1])


def test_the_best_warm_up_is_told_first():
    # 1.5 of the middle seed, less the mean of its last five steps.
    assert a_figure().text == (
        "Warm-up. Warm-up of 11: the rate is highest at step 11, 0.114, and "
        "then falls to 0.085. The last 5 steps lose 1.85 in the middle of 3 "
        "seeds, from 1.40 to 2.30."
    )
    assert data_of(a_figure())["start"] == 1


def test_a_warm_up_longer_than_the_run_rises_to_its_end():
    says = data_of(a_figure())["says"][2]
    rate = short(noam(20, D_MODEL, 100))
    assert f"the rate rises up to the last step, 20, to {rate}. The" in says
    says = data_of(a_figure(some_losses({20: ENDS[3]})))["says"][0]
    assert f"to the last step, 20, to {short(140**-0.5)}." in says


def test_the_table_has_every_warm_up_in_order():
    mixed = dict(reversed(some_losses().items()))
    rows = re.findall(
        r"<th scope=row>(\d+)</th>(.*?)</tr>", a_figure(mixed).html
    )
    assert [int(warmup) for warmup, _ in rows] == [3, 11, 100]
    for (warmup, ends), (_, row) in zip(ENDS.items(), rows, strict=True):
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", row)
        rates = [noam(step, D_MODEL, warmup) for step in range(1, STEPS + 1)]
        # A straight line is at its mean two steps before the last.
        lost = sorted(5 - (5 - end) * 0.9 for end in ends)
        wanted = [short(max(rates)), *(f"{loss + 1e-9:.2f}" for loss in lost)]
        assert cells == wanted
    assert [row.count("data-chosen") for _, row in rows] == [0, 4, 0]


def test_the_chosen_curve_is_in_front():
    svgs = re.findall(r"<svg viewBox=.*?</svg>", shown(a_figure()))
    orders = [re.findall(r'<path class="(\w+)"', svg) for svg in svgs]
    assert orders == [
        ["other", "other", "line", "band"],
        ["other", "other", "line", "mark"],
    ]
    for svg, curves in zip(svgs, data_of(a_figure())["curves"], strict=True):
        drawn = re.findall(r'class="(?:other|line)" d="([^"]+)"', svg)
        assert drawn == [curves[i]["line"] for i in (0, 2, 1)]


def test_the_caption_says_how_many_seeds_and_where():
    four = some_losses({3: (1, 2, 3, 4)})
    assert "4 seeds a warm-up, on a CPU, and" in a_figure(four).html


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("losses", "complaint"),
    [
        ({}, "losses: expected at least one warm-up, got none"),
        (some_losses({3: ()}), "multiple of 5 steps, got 0"),
        (some_losses(steps=13), "multiple of 5 steps, got 13"),
        (some_losses(ENDS | {3: (1, 2)}), r"losses\[3\]: .* 3 runs, got 2"),
        (
            some_losses() | {13: some_losses(steps=5)[3]},
            r"losses\[13\]: expected shape \(any, 20\), got \(3, 5\)",
        ),
        (
            some_losses({3: (1, float("nan"), 1)}),
            r"losses\[3\]: expected finite numbers, got nan in row 1",
        ),
    ],
)
def test_losses_that_do_not_fit_are_named(losses, complaint):
    with pytest.raises(ValueError, match=complaint):
        a_figure(losses)


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_each_warm_up_is_told_as_python_tells_it_by_keyboard(reader, motion):
    page = reader(html_of("warmup_curves"), reduced_motion=motion)
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
    page = reader(html_of("warmup_curves"))
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
    page = reader(html_of("warmup_curves"))
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
    page = reader(html_of("warmup_curves"))
    computed(page)
    looks = page.locator("path:is(.line, .other)").evaluate_all(
        """all => all.map(e => { const s = getComputedStyle(e);
            return s.strokeDasharray + s.strokeWidth; })"""
    )
    assert len(set(looks)) == 2
