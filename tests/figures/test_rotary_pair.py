"""The figure of chapter 05: a turned query and key."""

import re
from math import atan2, cos, degrees, sin

import pytest
import torch
from figures.browser import (
    PHONE,
    close,
    computed,
    enter,
    press,
)
from figures.registry import figure_of, html_of, shown

from companion.figures.gallery.rotary_pair import (
    KEY,
    QUERY,
    START,
    STEPS,
    added,
    products,
    sentence,
    turned,
)
from companion.figures.gallery.rotary_pair.view import LARGEST, SPAN, between
from companion.positions import rotate, sinusoidal

EVERYWHERE = [(0, 0), (0, 30), (30, 0), (2, 4), (17, 13), (1000, 1007)]


everywhere = pytest.mark.parametrize(("p", "j"), EVERYWHERE)


def number(text):
    return float(text.replace("−", "-"))


def numbers_of(kind):
    """The numbers of a table, row by row."""
    table = re.search(
        rf'<table class="cells {kind}">.*?</table>',
        shown(figure_of("rotary_pair")),
    )[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1])
    cells = (re.findall(r"<td[^>]*>([^<]+)</td>", row) for row in rows)
    return [[number(cell.rstrip("°")) for cell in row] for row in cells]


@everywhere
def test_the_score_is_that_of_the_vectors_that_the_package_turns(p, j):
    q, k = (torch.tensor([v], dtype=torch.float64) for v in (QUERY, KEY))
    score = rotate(q, torch.tensor([p])) @ rotate(k, torch.tensor([j])).T
    assert sum(products(p, j)) == pytest.approx(score.item(), abs=1e-12)


@everywhere
def test_the_score_by_hand_is_a_wave_of_the_offset_alone(p, j):
    """q · k is 4 and 0; q × k is 3 and −5, and −sin of the turn counts it."""
    n = j - p
    by_hand = [4 * cos(n) - 3 * sin(n), 5 * sin(n / 100)]
    assert products(p, j) == pytest.approx(by_hand, abs=1e-11)


@everywhere
def test_the_added_code_is_the_package_s(p, j):
    table = sinusoidal(max(p, j) + 1, 4, dtype=torch.float64)
    q, k = (torch.tensor(v, dtype=torch.float64) for v in (QUERY, KEY))
    score = (q + table[p]) @ (k + table[j])
    assert added(p, j) == pytest.approx(score.item(), abs=1e-12)


def test_the_added_code_by_hand_at_position_0():
    """(2, 2, 1, 3) · (1, 3, 2, 0)."""
    assert added(0, 0) == pytest.approx(10)


def test_the_angle_from_q_to_k_is_its_first_size_plus_the_turn_of_the_offset():
    first = [between(*pair) for pair in zip(*start_pairs(0, 0), strict=True)]
    assert [degrees(angle) for angle in first] == pytest.approx([36.87, -90], 1)
    later = [between(*pair) for pair in zip(*start_pairs(7, 9), strict=True)]
    assert later == pytest.approx([first[0] + 2, first[1] + 0.02])


def start_pairs(p, j):
    return turned(QUERY, p).tolist(), turned(KEY, j).tolist()


def test_no_score_is_larger_than_the_one_with_the_strongest_tint():
    q, k = (torch.tensor(v, dtype=torch.float64) for v in (QUERY, KEY))
    assert q.norm() * k.norm() == pytest.approx(LARGEST)


def test_the_hands_before_and_after_the_turn_are_the_package_s():
    dials = shown(figure_of("rotary_pair")).split('<div class="dial">')[1:]
    for i, dial in enumerate(dials):
        tips = re.findall(r'<circle cx="([^"]*)" cy="([^"]*)"', dial)
        at = zip((KEY, QUERY) * 2, (0, 0, *reversed(START)), strict=True)
        expected = torch.stack([turned(v, position)[i] for v, position in at])
        expected = 15 * expected * torch.tensor([1, -1])
        points = torch.tensor([[float(n) for n in tip] for tip in tips])
        torch.testing.assert_close(
            points, expected.float(), atol=0.00501, rtol=0
        )
    assert len(dials) == 2


def test_below_a_dial_stand_its_numbers_before_and_after_the_turn():
    lines = re.findall(
        r"<p>[qk] \((.*?)\) → <b[^>]*>\((.*?)\)</b>",
        shown(figure_of("rotary_pair")),
    )
    found = [[number(n) for n in part.split(", ")] for line in lines
             for part in line]  # fmt: skip
    q, k = turned(QUERY, START[0]), turned(KEY, START[1])
    expected = [
        row
        for i in range(2)
        for row in (
            QUERY[2 * i : 2 * i + 2],
            q[i],
            KEY[2 * i : 2 * i + 2],
            k[i],
        )
    ]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(list(map(float, theirs)), abs=0.00501)


def test_the_score_of_the_table_is_the_sum_of_its_pairs():
    *pairs, (score,) = numbers_of("products")
    p, j = START
    for (of_q, of_k, _, product), rate, exact in zip(
        pairs, (1, 0.01), products(p, j), strict=True
    ):
        assert of_q == pytest.approx(degrees(p * rate), abs=0.0501)
        assert of_k == pytest.approx(degrees(j * rate), abs=0.0501)
        assert product == pytest.approx(exact, abs=0.00501)
    assert score == pytest.approx(sum(products(p, j)), abs=0.00501)


def test_the_same_offset_has_one_score_when_turned_and_many_when_added():
    rows = numbers_of("places")
    assert len(rows) == len(STEPS) == 5
    assert len({rope for rope, _ in rows}) == 1
    assert len({code for _, code in rows}) == 5
    for (rope, code), step in zip(rows, STEPS, strict=True):
        p, j = (place + step for place in START)
        assert rope == pytest.approx(sum(products(p, j)), abs=0.000501)
        assert code == pytest.approx(added(p, j), abs=0.000501)


def test_the_curve_is_the_score_at_every_quarter_of_an_offset():
    path = re.search(
        r'class="curve" d="M([^"]*)"', shown(figure_of("rotary_pair"))
    )[1]
    points = [list(map(float, at.split())) for at in path.split("L")]
    assert len(points) == 8 * SPAN + 1
    for at, (x, y) in enumerate(points):
        n = at / 4 - SPAN
        score = 4 * cos(n) - 3 * sin(n) + 5 * sin(n / 100)
        assert x == pytest.approx(44 + 282 * at / (8 * SPAN), abs=0.0501)
        assert y == pytest.approx(176 - 164 * (score + 7) / 14, abs=0.0501)


def test_the_mark_stands_on_the_curve_at_the_offset_of_the_start():
    x, y = re.search(
        r"translate\(([\d.]+),([\d.]+)\)", shown(figure_of("rotary_pair"))
    ).groups()
    assert f"L{x} {y}L" in shown(figure_of("rotary_pair"))
    assert float(x) == pytest.approx(44 + 282 * 32 / 60, abs=0.0501)


def test_the_sentence_states_scores_of_both_kinds():
    said = sentence(9, 2)
    here, code, next_code = sum(products(9, 2)), added(9, 2), added(10, 3)
    assert "Query at 9, key at 2, offset −7:" in said
    assert said.count(f"{here:.2f}".replace("-", "−")) == 2
    assert f"added instead it is {code:.2f} here and {next_code:.2f}" in said


def test_the_caption_states_what_the_package_computes():
    caption = re.search(
        "<figcaption>(.*?)</figcaption>", shown(figure_of("rotary_pair"))
    )[1]
    ahead, behind = sum(products(0, 2)), sum(products(2, 0))
    assert "pair 0 by 57.3° and pair 1 by 0.6°" in caption
    ending = f"is {ahead:.2f} at offset 2 and {behind:.2f} at −2."
    assert caption.endswith(ending.replace("-", "−"))


# What the keyboard does, and where query and key then stand.
MOVES = [
    ([], 2, 4),
    (["Home"], 0, 4),
    (["End", "Tab", "Home"], 30, 0),
    (["ArrowRight"] * 5 + ["Tab", "ArrowLeft"], 7, 3),
    (["ArrowRight"] * 2, 4, 4),
    (["Tab", "End"], 2, 30),
    (["Tab", "Tab", "ArrowRight", "ArrowRight"], 4, 6),
    (["Tab", "Tab", "End"], 28, 30),
    (["ArrowRight"] * 4 + ["Tab", "Tab", "Home"], 2, 0),
]


@pytest.mark.parametrize(("keys", "p", "j"), MOVES)
def test_the_page_computes_what_the_package_does(reader, keys, p, j):
    page = reader(html_of("rotary_pair"))
    enter(page)
    press(page, *keys)
    shown, exact = computed(page), {"rtol": 0, "atol": 1e-9}
    assert (shown.p, shown.j) == (p, j)
    close(shown.q, turned(QUERY, p), **exact)
    close(shown.k, turned(KEY, j), **exact)
    close(shown.products, products(p, j), **exact)
    assert shown.score == pytest.approx(sum(products(p, j)))
    for place, step in zip(shown.places, STEPS, strict=True):
        at = p + step, j + step
        assert place["score"] == pytest.approx(sum(products(*at)), abs=1e-9)
        assert place["added"] == pytest.approx(added(*at), abs=1e-9)
    assert page.locator(".says").inner_text() == sentence(p, j)


@pytest.mark.parametrize(("keys", "p", "j"), MOVES)
def test_hands_and_shaded_angles_follow_the_sliders(reader, keys, p, j):
    page = reader(html_of("rotary_pair"))
    enter(page)
    press(page, *keys)
    for name, vector, place in (("q", QUERY, p), ("k", KEY, j)):
        tips = page.locator(f"svg > .hand.{name} circle").evaluate_all(
            "all => all.map(e => ['cx', 'cy'].map(n => "
            "Number(e.getAttribute(n))))"
        )
        hands = 15 * turned(vector, place) * torch.tensor([1, -1])
        close(tips, hands, rtol=0, atol=0.0051)
    paths = page.locator(".wedge").evaluate_all(
        "all => all.map(e => e.getAttribute('d'))"
    )
    for path, q, k in zip(paths, turned(QUERY, p), turned(KEY, j), strict=True):
        start, arc = path.removeprefix("M0 0L").removesuffix("Z").split("A")
        *_, sweep, x, y = map(float, arc.split(" "))
        close(list(map(float, start.split())), rim(q), rtol=0, atol=0.0051)
        close([x, y], rim(k), rtol=0, atol=0.0051)
        ahead = atan2(k[1], k[0]) - atan2(q[1], q[0])
        assert bool(sweep) == (sin(ahead) < 0)


def rim(pair):
    """Where a hand leaves the shaded angle; y points down in a drawing."""
    return 18 * pair / pair.norm() * torch.tensor([1, -1])


@pytest.mark.parametrize(("keys", "p", "j"), MOVES)
def test_the_mark_stands_on_the_curve_at_the_offset(reader, keys, p, j):
    page = reader(html_of("rotary_pair"))
    enter(page)
    press(page, *keys)
    path = page.locator(".curve").get_attribute("d").removeprefix("M")
    point = path.split("L")[4 * (j - p + 30)]
    mark = page.locator(".mark").get_attribute("transform")
    assert mark == f"translate({point.replace(' ', ',')})"
    x, _ = point.split(" ")
    assert page.locator(".drop").get_attribute("d") == f"M{x} 12V176"


def test_the_tables_follow_the_sliders(reader):
    page = reader(html_of("rotary_pair"))
    enter(page)
    press(page, "Home", "Tab", "Home")  # Both at 0: nothing is turned.
    rows = page.locator(".products tbody tr").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    assert cells == [
        ["0.0°", "0.0°", "36.9°", "4.00"],
        ["0.0°", "0.0°", "−90.0°", "0.00"],
        ["", "4.00"],
    ]
    names = page.locator(".places tbody th").all_inner_texts()
    assert names == ["0 and 0", *(f"{s} and {s}" for s in STEPS[1:])]
    assert page.locator(".places tr:first-child td").all_inner_texts()[-2:] == [
        "4.000",
        "10.000",
    ]
    press(page, "ArrowRight")  # The key at 1, by hand.
    total = page.locator(".products tr:last-child td").last.inner_text()
    assert float(total.replace("−", "-")) == pytest.approx(
        4 * cos(1) - 3 * sin(1) + 5 * sin(0.01), abs=0.00501
    )


def test_the_score_stays_when_both_move_and_not_when_one_does(reader):
    page = reader(html_of("rotary_pair"))
    enter(page)
    start = computed(page)
    press(page, "Tab", "Tab")
    codes = {start.added}
    for step in range(1, 8):
        press(page, "ArrowRight")
        shown = computed(page)
        assert (shown.p, shown.j) == (2 + step, 4 + step)
        assert shown.score == pytest.approx(start.score)
        close(shown.angles, start.angles, rtol=0, atol=1e-9)
        codes.add(round(shown.added, 2))
    assert len(codes) == 8
    press(page, "Shift+Tab", "ArrowRight")
    assert abs(computed(page).score - start.score) > 0.05


def test_each_slider_says_where_it_stands(reader):
    page = reader(html_of("rotary_pair"))
    enter(page)
    press(page, "ArrowRight", "Tab", "Tab", "ArrowRight")
    inputs = page.locator("figure input").all()
    said = [i.get_attribute("aria-valuetext") for i in inputs]
    assert said == ["4", "5", "4 and 5"]
    assert page.locator("output").all_inner_texts() == said


def test_both_stop_at_the_ends_and_rest_where_there_is_no_room(reader):
    page = reader(html_of("rotary_pair"))
    enter(page)
    press(page, "Home", "Tab", "End")
    both = page.get_by_label("Both, the offset kept")
    assert both.is_disabled()
    press(page, "ArrowLeft")
    assert both.is_enabled()
    press(page, "Tab", "End", "ArrowRight")
    shown = computed(page)
    assert (shown.p, shown.j) == (1, 30)
    press(page, "Home", "ArrowLeft")
    shown = computed(page)
    assert (shown.p, shown.j) == (0, 29)


def test_a_drag_of_both_moves_query_and_key(reader):
    page = reader(html_of("rotary_pair"), width=PHONE)
    computed(page)
    box = page.get_by_label("Both, the offset kept").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8 + (box["width"] - 16) * 2 / 28, middle)
    page.mouse.down()
    for share in (0.3, 0.6, 0.9):
        page.mouse.move(box["x"] + box["width"] * share, middle)
    page.mouse.up()
    shown = computed(page)
    assert shown.j - shown.p == 2
    assert shown.p > 20
    assert page.locator(".says").inner_text() == sentence(shown.p, shown.j)
