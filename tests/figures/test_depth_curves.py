"""The figure of chapter 07: what depth does."""

import re

import pytest
import torch
from figures.browser import computed, enter, focused, press
from figures.registry import CURVES, DEPTHS, STACKS, html_of, parts_at, shown

from companion.figures import depth_curves
from companion.figures.kit.digits import fixed, short
from companion.figures.kit.plot import BOTTOM, LEFT, RIGHT, TOP


def some_curves(names=STACKS, depths=(1, 2, 5)):
    """Curves with a gradient that falls below what the plot shows."""
    draw = torch.Generator().manual_seed(3)
    return {
        name: {
            depth: {
                "similarity": torch.rand(depth + 1, generator=draw),
                "gradient": [10.0 ** (-3 * i * at) for at in range(depth)],
            }
            for depth in depths
        }
        for i, name in enumerate(names)
    }


def one_curve(similarity, gradient):
    return {
        "a": {
            len(gradient): {"similarity": similarity, "gradient": gradient},
        }
    }


def test_a_line_goes_through_its_numbers():
    figure = depth_curves(one_curve([0.0, 0.25, 1.0], [1.0, 0.1]))
    alike, gradient = re.findall(r'class="line" d="([^"]+)"', shown(figure))[:2]
    quarter = BOTTOM - (BOTTOM - TOP) / 4
    middle = (LEFT + RIGHT) / 2
    assert alike == (
        f"M{LEFT}.0 {BOTTOM}.0L{middle} {quarter}L{RIGHT}.0 {TOP}.0"
    )
    # 0.1 … 10, upwards: 1 stands in the middle, over the first layer.
    assert gradient == (f"M{middle} {(TOP + BOTTOM) / 2}L{RIGHT}.0 {BOTTOM}.0")


def test_a_line_that_leaves_the_plot_ends_at_its_edge_with_a_mark():
    # From 10⁻¹² to 1; the plot has the eight decades from 10⁻⁷ to 10.
    figure = depth_curves(one_curve([0, 0, 0], [1e-12, 1.0]))
    svg = shown(figure)
    first, last = (LEFT + RIGHT) / 2, RIGHT
    edge = f"{first + (last - first) * 5 / 12:.1f}"
    assert f'd="M{edge} {BOTTOM}.0L{RIGHT}.0 ' in svg
    assert f'translate({edge},{BOTTOM}.0)" d="M-5' in svg
    assert "below 10<sup>−7</sup>" in svg


def test_a_line_that_stays_in_the_plot_has_no_such_mark():
    svg = shown(depth_curves(one_curve([0, 0, 0], [1e-3, 0.9])))
    assert 'd="M-5' not in svg
    assert svg.count('class="mark"') == 4 + 1  # Two lines, and the legend.


def test_no_gradient_at_all_is_drawn_below_everything():
    figure = depth_curves(one_curve([0, 0, 0], [0.0, 0.0]))
    assert re.findall(r'class="line" d="([^"]*)"', shown(figure))[1] == ""
    assert "The gradient is 0 in the first layer" in figure.text


def test_tokens_that_point_apart_get_an_axis_to_minus_1():
    figure = depth_curves(one_curve([0.0, -0.5], [1.0]))
    path = re.findall(r'class="line" d="([^"]+)"', shown(figure))[0]
    middle = (TOP + BOTTOM) / 2
    assert path == (
        f"M{LEFT}.0 {middle}L{RIGHT}.0 {middle + (BOTTOM - TOP) / 4}"
    )


def test_a_cosine_a_hair_below_0_is_drawn_at_0_and_told_as_it_is():
    figure = depth_curves(one_curve([-0.013, 1], [1.0]))
    assert f"M{LEFT}.0 {BOTTOM}.0L" in shown(figure)
    assert "enter with a mean cosine of −0.01" in figure.text


def test_the_deepest_stack_is_told_first():
    curves = some_curves()
    curves["bare"][5] = {
        "similarity": [0.01, 0.5, 0.9, 0.95, 0.99, 0.999],
        "gradient": [7.1e-31, 1e-20, 1e-10, 1e-5, 1.5],
    }
    assert depth_curves(curves).text == (
        "Depth curves. 5 layers, bare: tokens enter with a mean cosine of 0.01 "
        "and leave with 1.00. The gradient is 7.1×10⁻³¹ in the first layer and "
        "1.50 in the last."
    )


def test_another_depth_may_be_shown_first():
    figure = depth_curves(some_curves(), 2)
    assert figure.text.startswith("Depth curves. 2 layers, bare:")
    assert parts_at(figure, 1, 0)["says"][0] in figure.html.split("<script")[0]


@pytest.mark.bad_input
def test_a_depth_that_was_not_run_is_refused():
    with pytest.raises(ValueError, match=r"one of \[1, 2, 5\], got 3"):
        depth_curves(some_curves(), 3)


def test_one_layer_is_first_and_last():
    figure = depth_curves(one_curve([0.0, 0.5], [2.0]))
    assert "1 layer, a: tokens" in figure.text
    assert figure.text.endswith("The gradient is 2.00 in the layer.")


def test_every_depth_has_its_page_with_the_ends_of_every_stack():
    curves = some_curves()
    figure = depth_curves(curves)
    for i, depth in enumerate((1, 2, 5)):
        parts = parts_at(figure, i, 0)
        for ends, runs in zip(parts["cell"][::3], curves.values(), strict=True):
            end = runs[depth]["similarity"][-1].item()
            assert float(ends) == pytest.approx(end, abs=0.0051)
        assert parts["head"][-1] == f"layer {depth}"
        assert parts["cell"][1:3] == ["1.00", "1.00"]


def test_the_chosen_line_is_drawn_last_and_above():
    svg = shown(depth_curves(some_curves()))
    for plot in re.findall(r"<svg viewBox=.*?</svg>", svg):
        order = re.findall(r'<g class="([^"]*)">', plot)
        assert order == ["line1", "line2", "line3", "line0 chosen"]


def test_a_name_with_markup_is_written_out():
    html = depth_curves(some_curves(names=("<b>&",))).html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html.split("<script")[0]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("curves", "complaint"),
    [
        ({}, "expected 1 to 4 names, got 0"),
        (some_curves(names="abcde"), "expected 1 to 4 names, got 5"),
        ({"a": {}}, "at least one depth"),
        (
            some_curves(names="a") | some_curves(names="b", depths=(3,)),
            r"the depths \[1, 2, 5\] for every name, got \[3\] for 'b'",
        ),
        (
            one_curve([0, 0], [1.0, 1.0]),
            r"'a'\]\[2\]\['similarity'\]: expected shape \(any, 3\), "
            r"got \(1, 2\)",
        ),
        (one_curve([0, 0], [torch.nan]), "gradient.*finite numbers, got nan"),
        (one_curve([0, 0], [-2.0]), "gradient.*expected sizes, got -2"),
        (one_curve([0, 2], [1.0]), "similarity.*cosines.*got 2"),
    ],
)
def test_curves_that_do_not_fit_are_named(curves, complaint):
    with pytest.raises(ValueError, match=complaint):
        depth_curves(curves)


def test_the_slider_goes_through_the_depths(reader):
    page = reader(html_of("depth_curves"))
    enter(page)
    press(page, "Home")
    for i, depth in enumerate(DEPTHS):
        assert computed(page).state == [i, 0]
        assert focused(page, "getAttribute('aria-valuetext')") == str(depth)
        cells = page.locator("tbody td").all_inner_texts()
        for name, three in zip(STACKS, batched(cells), strict=True):
            run = CURVES[name][depth]
            assert three == [
                fixed(run["similarity"][-1]),
                short(run["gradient"][0]),
                short(run["gradient"][-1]),
            ]
        press(page, "ArrowRight")


def batched(cells):
    return [cells[i : i + 3] for i in range(0, len(cells), 3)]


def test_a_press_on_a_name_brings_its_lines_to_the_front(reader):
    page = reader(html_of("depth_curves"))
    enter(page)
    for number, name in enumerate(STACKS):
        press(page, "Tab", "Enter")
        assert computed(page).state == [3, number]
        pressed = page.locator("button[aria-pressed=true]")
        assert [t.strip() for t in pressed.all_inner_texts()] == [name]
        assert f"48 layers, {name}: tokens" in computed(page).says
        for plot in page.locator(".plot svg").all():
            last = plot.locator(":scope > g").last
            assert last.get_attribute("class") == f"line{number} chosen"
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
