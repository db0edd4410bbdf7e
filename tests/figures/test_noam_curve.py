"""The figure of chapter 10: the paper's learning rate."""

import re
from itertools import product

import pytest
from figures.browser import close, computed, enter, press
from figures.registry import html_of, points, shown

from companion.figures import (
    noam_curve,
)
from companion.figures.gallery import noam_curve as noam_module
from companion.figures.gallery.noam_curve import sentence, steps_shown
from companion.figures.gallery.noam_curve import view as noam_drawing
from companion.figures.gallery.noam_curve.view import (
    PLAIN,
    branches,
    paths,
)
from companion.figures.kit.digits import short
from companion.training import noam

LEFT, RIGHT, TOP, BOTTOM = PLAIN[4:]


@pytest.mark.parametrize("step", [1, 7, 4000, 4001, 100_000])
def test_the_smaller_branch_is_the_schedule(step):
    pair = branches(step, 512, 4000, 1)
    assert min(pair) == pytest.approx(noam(step, 512, 4000), rel=1e-12)
    assert (pair[0] < pair[1]) == (step < 4000)
    scaled = branches(step, 512, 4000, 0.5)
    assert scaled == pytest.approx([rate / 2 for rate in pair], rel=1e-12)


def test_the_peak_is_told_as_the_paper_has_it():
    # (512 · 4000)^-½ = 0.000699, and half of it at four times the step.
    said = sentence(512, 4000, 1).replace("\N{NO-BREAK SPACE}", " ")
    assert "its peak of 6.99 × 10⁻⁴ at step 4,000, which is" in said
    assert "at step 16,000 half of the peak is left" in said
    assert noam(16_000, 512, 4000) == pytest.approx(
        noam(4000, 512, 4000) / 2, rel=1e-12
    )


def test_a_factor_scales_the_peak_and_the_sentence_says_so():
    said = sentence(512, 4000, 2).replace("\N{NO-BREAK SPACE}", " ")
    assert "factor 2: the rate rises" in said
    assert "14.0 × 10⁻⁴ at step 4,000, which is 2 / √(512 · 4,000)" in said
    plain, straight = zip(paths(512, 4000, 1), paths(512, 4000, 2), strict=True)
    assert plain[0] == plain[1]  # Its axis counts in peaks.
    for once, twice in zip(*straight, strict=True):
        # A factor of 2 is 0.301 of a decade, and a decade is 16.4 pixels.
        assert points(once)[0][1] - points(twice)[0][1] == pytest.approx(
            (BOTTOM - 12) / 10 * 0.30103, abs=0.15
        )


def test_the_curve_rises_in_a_line_to_the_peak_and_goes_on_to_the_end():
    first, *_ = paths(512, 4000, 1)
    start, peak, *_, end = points(first[0])
    assert start == (LEFT, BOTTOM)
    assert peak[0] == pytest.approx(LEFT + (RIGHT - LEFT) / 5, abs=0.06)
    assert end[0] == RIGHT
    # At five times the warm-up 1/√5 of the peak is left.
    height = [BOTTOM - y for _, y in (peak, end)]
    assert height[1] / height[0] == pytest.approx(5**-0.5, abs=1e-3)


def test_in_powers_of_ten_the_branches_are_lines_that_cross_at_the_peak():
    rate, up, down = map(points, paths(512, 4000, 1)[1])
    assert len(rate) == 3
    assert len(up) == len(down) == 2
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in (up, down)]
    # A decade is 53.6 pixels across and 16.4 upwards: 1 and -½ become
    across, upwards = (RIGHT - LEFT) / 5, (BOTTOM - 12) / 10
    assert slopes[0] == pytest.approx(-upwards / across, abs=2e-3)
    assert slopes[1] == pytest.approx(upwards / across / 2, abs=2e-3)
    for line, slope in zip((up, down), slopes, strict=True):
        at = line[0][1] + slope * (rate[1][0] - line[0][0])
        assert at == pytest.approx(rate[1][1], abs=0.15)


def test_the_table_has_the_warm_up_once():
    assert steps_shown(100) == [1, 100, 10_000, 100_000]
    assert steps_shown(4000) == [1, 100, 4000, 10_000, 100_000]
    rows = re.findall(r"<tr>(.*?)</tr>", shown(noam_curve()))
    assert [row.count('"least"') for row in rows[1:]] == [1, 1, 2, 1, 1]


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
            assert min(line[::2]) >= LEFT
            assert max(line[::2]) <= RIGHT + 0.05
            assert min(line[1::2]) >= TOP - 0.05
            assert max(line[1::2]) <= BOTTOM + 0.05


def test_the_branches_differ_in_more_than_their_colour(reader):
    page = reader(html_of("noam_curve"))
    computed(page)
    dashes = page.locator(".legend path").evaluate_all(
        "all => all.map(e => getComputedStyle(e).strokeDasharray)"
    )
    assert len(set(dashes)) == 3
