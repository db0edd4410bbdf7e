"""The figure of a turned query and key, as Python makes it."""

import re
from math import cos, degrees, sin

import pytest
import torch
from test_figures import Tags

from companion.figures import rotary_pair
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


def shown():
    """The page without its style and its script."""
    return rotary_pair().html.split("</style>")[1].split("<script")[0]


def number(text):
    return float(text.replace("−", "-"))


def numbers_of(kind):
    """The numbers of a table, row by row."""
    table = re.search(rf'<table class="cells {kind}">.*?</table>', shown())[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1])
    cells = (re.findall(r"<td[^>]*>([^<]+)</td>", row) for row in rows)
    return [[number(cell.rstrip("°")) for cell in row] for row in cells]


def test_the_figure_is_whole_and_asks_nothing_of_another_place():
    html = rotary_pair().html
    assert Tags(html).open == []
    assert not re.search(r"https?://|@import|//cdn|\bsrc=|\bfetch\(", html)
    assert not re.search(r"url\((?!#)", html)


def test_the_figure_has_the_same_bytes_whatever_the_seed():
    torch.manual_seed(2)
    first = rotary_pair().html
    torch.manual_seed(3)
    assert rotary_pair().html == first
    assert len(shown().encode()) < 12_000


def test_a_terminal_shows_the_sentence_that_the_page_shows():
    said = re.search(r'class="says"[^>]*>([^<]*)<', shown())[1]
    assert rotary_pair().text == f"Rotary pair. {said}"
    assert said == sentence(*START)


def test_every_rule_of_the_style_stays_within_the_figure():
    style = rotary_pair().html.split("</style>")[0]
    own = style.split("animation: none !important; } }")[1]
    rules = re.findall(r"([^{}]+)\{", own)
    selectors = [rule for rule in rules if not rule.strip().startswith("@")]
    assert len(selectors) > 5
    for selector in selectors:
        assert ".companion-rotary" in selector


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
    dials = shown().split('<div class="dial">')[1:]
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
    lines = re.findall(r"<p>[qk] \((.*?)\) → <b[^>]*>\((.*?)\)</b>", shown())
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
    path = re.search(r'class="curve" d="M([^"]*)"', shown())[1]
    points = [list(map(float, at.split())) for at in path.split("L")]
    assert len(points) == 8 * SPAN + 1
    for at, (x, y) in enumerate(points):
        n = at / 4 - SPAN
        score = 4 * cos(n) - 3 * sin(n) + 5 * sin(n / 100)
        assert x == pytest.approx(44 + 282 * at / (8 * SPAN), abs=0.0501)
        assert y == pytest.approx(176 - 164 * (score + 7) / 14, abs=0.0501)


def test_the_mark_stands_on_the_curve_at_the_offset_of_the_start():
    x, y = re.search(r"translate\(([\d.]+),([\d.]+)\)", shown()).groups()
    assert f"L{x} {y}L" in shown()
    assert float(x) == pytest.approx(44 + 282 * 32 / 60, abs=0.0501)


def test_the_sentence_states_scores_of_both_kinds():
    said = sentence(9, 2)
    here, code, next_code = sum(products(9, 2)), added(9, 2), added(10, 3)
    assert "Query at 9, key at 2, offset −7:" in said
    assert said.count(f"{here:.2f}".replace("-", "−")) == 2
    assert f"added instead it is {code:.2f} here and {next_code:.2f}" in said


def test_the_caption_states_what_the_package_computes():
    caption = re.search("<figcaption>(.*?)</figcaption>", shown())[1]
    ahead, behind = sum(products(0, 2)), sum(products(2, 0))
    assert "pair 0 by 57.3° and pair 1 by 0.6°" in caption
    ending = f"is {ahead:.2f} at offset 2 and {behind:.2f} at −2."
    assert caption.endswith(ending.replace("-", "−"))
