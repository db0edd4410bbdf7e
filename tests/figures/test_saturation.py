"""The figure of chapter 03: random queries and keys."""

import re
from itertools import product

import pytest
import torch
from figures.browser import close, computed
from figures.registry import data_of, html_of, shown

from companion import figures
from companion.attention import attention_weights, softmax_jacobian
from companion.figures import saturation
from companion.figures.gallery.saturation import (
    KEYS,
    PAIRS,
    SCALES,
    SEED,
    WIDTHS,
    counts,
    sentence,
    state,
)
from companion.figures.gallery.saturation.view import (
    BIN,
    BINS,
    BOTTOM,
    LEFT,
    LIMIT,
    RIGHT,
    TOP,
    bars,
    place,
    strokes,
    top_of,
)
from companion.figures.kit.digits import fixed, short

MIDDLE = 1 + BINS // 2


every_setting = pytest.mark.parametrize(
    ("d_k", "n", "scale"), list(product(WIDTHS, (2, 7, 12), SCALES))
)


def test_the_package_gives_the_maker_however_often_it_is_asked():
    assert figures.saturation is figures.saturation is saturation


def test_a_score_is_the_dot_product_of_the_query_and_a_key():
    """A narrow vector is the beginning of a wide one."""
    draw = torch.Generator().manual_seed(SEED)
    query = torch.randn(1024, generator=draw, dtype=torch.float64)
    keys = torch.randn(KEYS, 1024, generator=draw, dtype=torch.float64)
    for d_k, few in zip(WIDTHS, data_of(saturation())["few"], strict=True):
        scores = keys[:, :d_k] @ query[:d_k]
        torch.testing.assert_close(
            torch.tensor(few, dtype=torch.float64), scores, rtol=0, atol=5.01e-4
        )


def test_the_standard_deviation_is_the_root_of_the_width_unless_scaled():
    for d_k in WIDTHS:
        root = d_k**0.5
        spread = {scale: state(d_k, 2, scale).spread for scale in SCALES}
        assert spread["1"] == pytest.approx(root, rel=0.05)
        assert spread["1/√dₖ"] == pytest.approx(1, rel=0.05)
        assert spread["1/dₖ"] == pytest.approx(1 / root, rel=0.05)


@every_setting
def test_weights_and_jacobian_are_those_of_the_package(d_k, n, scale):
    now = state(d_k, n, scale)
    index = WIDTHS.index(d_k)
    # Keys that are unit vectors hand over the raw scores as they are.
    raw = torch.tensor([data_of(saturation())["few"][index][:n]]).double()
    power = {"1": 0, "1/√dₖ": -0.5, "1/dₖ": -1}[scale]
    keys = torch.eye(n, dtype=raw.dtype)
    weights = attention_weights(raw, keys, scale=float(d_k) ** power)[0]
    jacobian = softmax_jacobian(weights)
    close = torch.testing.assert_close
    close(torch.tensor(now.weights, dtype=raw.dtype), weights)
    close(torch.tensor(now.jacobian, dtype=raw.dtype), jacobian)
    largest = torch.linalg.eigvalsh(jacobian)[-1].item()
    assert now.moves == pytest.approx(largest, rel=1e-6, abs=1e-12)
    assert 0 <= now.moves <= 0.5


def test_two_keys_can_be_done_by_hand():
    now = state(16, 2, "1/√dₖ")
    p, _ = now.weights
    gap = now.scores[0] - now.scores[1]
    assert p == pytest.approx(1 / (1 + 2.718281828459045**-gap))
    slope = p * (1 - p)
    assert now.jacobian == [
        [pytest.approx(slope), pytest.approx(-slope)],
        [pytest.approx(-slope), pytest.approx(slope)],
    ]
    assert now.moves == pytest.approx(2 * slope)


def test_a_score_counts_in_its_bin_and_beyond_12_at_the_ends():
    scores = torch.tensor([0.0, 0.24, -0.24, 0.25, 11.9, 12.1, 300, -12.1])
    found = counts(scores.double())
    assert len(found) == BINS + 2
    assert {i: n for i, n in enumerate(found) if n} == {
        0: 1,
        MIDDLE: 3,
        MIDDLE + 1: 1,
        BINS: 1,
        BINS + 1: 2,
    }


@every_setting
def test_every_pair_is_counted_once(d_k, n, scale):
    now = state(d_k, n, scale)
    data = data_of(saturation())
    index = WIDTHS.index(d_k), list(SCALES).index(scale)
    assert data["counts"][index[0]][index[1]] == now.counts
    assert sum(now.counts) == PAIRS


def test_the_spread_grows_without_a_scale_and_collapses_with_1_over_d_k():
    beyond = {
        scale: [
            now.counts[0] + now.counts[-1]
            for now in (state(d_k, 2, scale) for d_k in WIDTHS)
        ]
        for scale in SCALES
    }
    assert beyond["1"] == sorted(beyond["1"])
    assert beyond["1"][-1] > 0.6 * PAIRS
    assert {*beyond["1/√dₖ"], *beyond["1/dₖ"]} == {0}
    middle = {s: state(1024, 2, s).counts[MIDDLE] / PAIRS for s in SCALES}
    assert middle["1"] < 0.02
    assert 0.15 < middle["1/√dₖ"] < 0.25
    assert middle["1/dₖ"] == 1


def test_width_saturates_the_softmax_unless_the_root_is_taken_out():
    """What the caption and the chapter say of this one draw."""
    moves = {s: [state(d, 12, s).moves for d in WIDTHS] for s in SCALES}
    assert moves["1"][0] > 0.1
    assert moves["1"][-1] < 1e-3
    assert min(moves["1/√dₖ"]) > 0.1
    flat = state(1024, 12, "1/dₖ")
    assert max(flat.weights) < 1.2 / 12


def test_the_caption_has_the_numbers_of_the_widest_vectors():
    caption = re.search(r"<figcaption>(.*)</figcaption>", saturation().html)[1]
    for scale in SCALES:
        now = state(1024, 12, scale)
        assert fixed(max(now.weights)) in caption
        assert short(now.moves) in caption
    moves = [state(d_k, 12, "1/√dₖ").moves for d_k in WIDTHS]
    assert f"between {short(min(moves))} and {short(max(moves))}" in caption


def test_a_bar_is_as_high_as_the_share_of_its_bin():
    found = [0] * (BINS + 2)
    found[0], found[MIDDLE], found[MIDDLE + 1] = 250, 500, 250
    assert top_of(found) == 5
    within, beyond = bars(found)
    tops = [float(y) for y in re.findall(r"V([\d.]+)h", within)]
    half = BOTTOM - (BOTTOM - TOP) / 2
    assert tops == [TOP, half]
    assert re.findall(r"V([\d.]+)h", beyond) == [f"{half:.1f}"]


def test_a_stroke_stands_below_the_bar_its_score_counts_in():
    assert place(0) == pytest.approx((LEFT + RIGHT) / 2)
    scores = [-11.9, -5.3, 0.1, 2.7, 11.9, 40.0, -40.0]
    for score, x in zip(
        scores, re.findall(r"M([\d.]+) ", strokes(scores)), strict=True
    ):
        within, beyond = bars(counts(torch.tensor([score])))
        left, wide = re.findall(r"M([\d.]+) .*h([\d.]+)V", within + beyond)[0]
        assert bool(within) == (abs(score) <= LIMIT)
        assert float(left) - 0.9 <= float(x) <= float(left) + float(wide) + 0.9
    assert place(-LIMIT) == pytest.approx(LEFT + 4 * BIN)


def test_the_tables_show_the_start():
    html, now = shown(saturation()), state(64, 6, "1/√dₖ")
    weights, jacobian = html.split('class="cells jacobian"')
    assert re.findall(r"<span>([\d.]+)</span>", weights) == [
        fixed(weight) for weight in now.weights
    ]
    assert re.findall(r"<td>(.*?)</td>", weights) == [
        "",
        *(fixed(score) for score in now.scores),
    ]
    cells = re.findall(r"%\">(.*?)</td>", jacobian)
    assert cells == [
        fixed(100 * entry, 0) for row in now.jacobian for entry in row
    ]
    assert f'class="norm">{short(now.moves)}<' in jacobian


WIDTH, NUMBER = "Width of a query, dₖ", "Number of keys, n"


WIDEST = (1024, KEYS, "1/√dₖ")


def choose(page, d_k, n, scale):
    page.get_by_label(WIDTH).fill(str(WIDTHS.index(d_k)))
    page.get_by_label(NUMBER).fill(str(n))
    page.get_by_role("radio", name=scale, exact=True).check()


def said(page):
    return page.locator(".says").text_content()


def test_every_setting_shows_the_numbers_of_the_package(reader):
    page = reader(html_of("saturation"))
    for choice in product(WIDTHS, (2, 3, 7, 12), SCALES):
        choose(page, *choice)
        now, shown = state(*choice), computed(page)
        close(shown.scores, now.scores)
        close(shown.weights, now.weights)
        close(shown.jacobian, now.jacobian)
        close([shown.moves], [now.moves], rtol=1e-6, atol=1e-12)
        assert said(page) == sentence(now)
        assert page.locator(".norm").inner_text() == short(now.moves)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("d_k", "n"), [(4, 2), (64, 7), (1024, 12)])
def test_every_part_of_the_picture_follows_the_controls(reader, d_k, n, scale):
    page = reader(html_of("saturation"))
    choose(page, d_k, n, scale)
    now = state(d_k, n, scale)
    paths = dict(zip(("within", "beyond"), bars(now.counts), strict=True))
    for name, path in (paths | {"keys": strokes(now.scores)}).items():
        drawn = page.locator(f".plot .{name}").get_attribute("d")
        assert drawn == path, name
    top = top_of(now.counts)
    ticks = page.locator(".tick").all_text_contents()
    assert ticks == ["0 %", f"{5 * top} %", f"{10 * top} %"]
    rows = page.locator(".weights tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [
        [name, fixed(score), fixed(weight)]
        for name, score, weight in zip(
            page.locator(".weights tbody th").all_inner_texts(),
            now.scores,
            now.weights,
            strict=True,
        )
    ]
    cells = page.locator(".jacobian tbody td").all_inner_texts()
    assert cells == [fixed(100 * x, 0) for row in now.jacobian for x in row]
    heads = page.locator(".jacobian thead th").all_inner_texts()
    assert (heads[0], len(heads)) == ("z₁", n)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_cell_that_moves_more_has_a_stronger_tint(reader, theme):
    page = reader(html_of("saturation"), theme=theme)
    choose(page, *WIDEST)
    entries = [x for row in state(*WIDEST).jacobian for x in row]
    colours = page.locator(".jacobian tbody td").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    flat = sorted(zip(entries, colours, strict=True))
    assert len({flat[0][1], flat[KEYS**2 // 2][1], flat[-1][1]}) == 3
