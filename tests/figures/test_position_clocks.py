"""The figure of chapter 05: positions as clocks."""

import re
from itertools import product

import pytest
import torch
from figures.browser import (
    close,
    computed,
    enter,
    press,
)
from figures.registry import html_of, shown

from companion.figures import position_clocks
from companion.figures.gallery.position_clocks import twin
from companion.figures.gallery.position_clocks.view import CURVE_TOP
from companion.positions import sinusoidal


def test_the_sentence_of_the_clocks_states_products_of_the_encodings():
    table = sinusoidal(64, 16, dtype=torch.float64)
    dot = (table[3] @ table[10]).item()
    assert dot == pytest.approx((table[4] @ table[11]).item())
    text = position_clocks().text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"offset 7: the dot product of their encodings is {dot:.2f}" in text
    assert f"at 4 and 11, it is {dot:.2f}" in text
    assert "3 × 10 = 30 here and 4 × 11 = 44 there" in text
    assert "2 × 15 = 30 too, at offset 13." in text


def test_the_dot_on_the_curve_is_named_by_its_offset():
    assert ">offset 7</text>" in shown(position_clocks())


def test_below_each_clock_stands_its_share_of_the_dot_product():
    html = shown(position_clocks())
    parts = [
        float(part.replace("−", "-"))
        for part in re.findall(r'class="part">([^<]*)<', html)
    ]
    table = sinusoidal(64, 16)
    products = (table[3] * table[10]).reshape(8, 2).sum(1)
    torch.testing.assert_close(
        torch.tensor(parts), products, atol=0.00501, rtol=0
    )


def test_a_hand_points_up_at_angle_0_and_a_turn_takes_2_pi_over_its_rate():
    html = shown(position_clocks(6, 13))
    tips = re.findall(r'class="hand a">.*?cx="([^"]*)" cy="([^"]*)"', html)
    table = sinusoidal(13, 6)[3].reshape(3, 2)
    points = torch.tensor([[float(n) for n in tip] for tip in tips])
    expected = torch.stack([28 * table[:, 0], -28 * table[:, 1]], 1)
    torch.testing.assert_close(points, expected, atol=0.00501, rtol=0)
    assert re.findall(r"turn: ([\d.]+)", html) == ["6.3", "135", "2916"]


def test_the_map_tints_a_number_by_its_size_and_sign():
    html = shown(position_clocks(4, 13))
    tinted = {
        cell: (sign, float(opacity))
        for sign, opacity, cells in re.findall(
            r'class="(plus|minus)" fill-opacity="([\d.]+)" d="([^"]*)"', html
        )
        for cell in re.findall(r"M(\d+ \d+)h1v1h-1z", cells)
    }
    table = sinusoidal(13, 4)
    for position, dimension in product(range(13), range(4)):
        value = table[position, dimension].item()
        sign, opacity = tinted.get(f"{position} {dimension}", ("", 0))
        assert opacity == pytest.approx(0.9 * abs(value), abs=0.05)
        assert sign == ("minus" if value < 0 else "plus") or opacity == 0


def test_every_number_of_the_map_stands_in_a_table():
    html = shown(position_clocks(6, 13)).split("</summary>")[-1]
    rows = re.findall(r"<tr><th scope=row>(\d+)</th>(.*?)</tr>", html)
    assert [int(position) for position, _ in rows] == list(range(13))
    printed = torch.tensor(
        [
            [float(n.replace("−", "-")) for n in re.findall(r"<td>([^<]*)", r)]
            for _, r in rows
        ]
    )
    torch.testing.assert_close(printed, sinusoidal(13, 6), atol=0.00501, rtol=0)


def test_the_curve_is_the_dot_product_at_every_offset():
    html = shown(position_clocks(6, 13))
    points = re.search(r'<polyline points="([^"]*)"', html)[1].split(" ")
    heights = torch.tensor([float(y) for y in points[1::2]])
    table = sinusoidal(13, 6)
    dots = torch.tensor(
        [(table[0] @ table[abs(o)]).item() for o in range(-12, 13)]
    )
    assert len(heights) == 25
    falls = heights / (3 - dots)
    falls = falls[dots < 2.99]
    torch.testing.assert_close(
        falls, falls[:1].expand_as(falls), atol=0.05, rtol=0.001
    )


@pytest.mark.parametrize(
    ("pair", "other"),
    [
        ((3, 10), (2, 15)),
        ((10, 3), (2, 15)),
        ((2, 15), (1, 30)),
        ((7, 11), None),
        ((0, 5), None),
        ((1, 12), (2, 6)),
        ((6, 6), (4, 9)),
    ],
)
def test_the_twin_has_the_same_product_at_another_distance(pair, other):
    assert twin(*pair, 64) == other
    if other:
        assert other[0] * other[1] == pair[0] * pair[1]


@pytest.mark.bad_input
def test_half_a_clock_is_refused():
    with pytest.raises(ValueError, match=r"d_model: .* even number, got 7"):
        position_clocks(7)


@pytest.mark.bad_input
def test_a_sequence_without_the_first_positions_is_refused():
    with pytest.raises(ValueError, match=r"length: .* 12 positions, got 11"):
        position_clocks(16, 11)


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
    assert page.locator(".here text").text_content() == "offset 40"
    # The point lies on the curve: at offset 40, and the mirror at -40.
    height = page.locator(".here circle").get_attribute("cy")
    points = page.locator("polyline").get_attribute("points").split(" ")
    for x in (63 + 40, 63 - 40):
        assert float(height) - CURVE_TOP == pytest.approx(
            float(points[2 * x + 1]), abs=0.06
        )


def test_the_table_of_the_clocks_follows_the_sliders(reader):
    page = reader(html_of("position_clocks"))
    enter(page)
    press(page, "Home")
    page.locator("summary").first.press("Enter")
    cells = page.locator("tbody tr").nth(1).locator("td").all_inner_texts()
    assert cells == ["1.000", "−0.839", "−0.839"]
