"""The figure of chapter 11: temperature, top-k and top-p."""

import re
from itertools import product
from math import inf, log, nan

import pytest
import torch
from figures.browser import close, computed, enter, press
from figures.registry import LOGITS, html_of, shown

from companion.decoding import (
    sampling_filter,
)
from companion.figures import (
    sampling_bars,
)
from companion.figures.gallery import sampling_bars as sampling

SCORES = torch.linspace(3, -4, 17, dtype=torch.float64)
NAMES = [f"w{i}" for i in range(17)]
RANKED = sorted((round(score, 4) for score in LOGITS), reverse=True)


@pytest.mark.parametrize(
    ("temperature", "k", "p"),
    list(product((0.2, 1.0, 2.0), (1, 3, None), (0.05, 0.6, None))),
)
def test_the_bars_are_what_the_filter_of_the_package_leaves(temperature, k, p):
    left = sampling.result(temperature, k, p, SCORES.tolist())
    filtered = sampling_filter(SCORES, k, p, temperature)
    drawn = filtered.softmax(-1)
    warm = (SCORES / temperature).softmax(-1)
    columns = torch.tensor(left.bars, dtype=torch.float64)
    for column, whole in zip(
        columns.T, (SCORES.softmax(-1), warm, drawn), strict=True
    ):
        torch.testing.assert_close(column[:12], whole[:12])
        torch.testing.assert_close(column[12], whole[12:].sum())
    assert left.kept == filtered.isfinite().sum()
    mass = warm[filtered.isfinite()].sum().item()
    assert left.mass == pytest.approx(mass, abs=1e-12)
    entropy = torch.distributions.Categorical(probs=drawn).entropy().item()
    assert left.bits[1] * 0.693147 == pytest.approx(entropy, abs=1e-5)


def test_four_even_tokens_have_two_bits():
    figure = sampling_bars([0.0, 0.0, 0.0, 0.0], list("abcd"))
    assert figure.text == (
        "Sampling. Temperature 1.0, top-k off, top-p 0.90: 4 tokens are left "
        "of 4. After the temperature they had 100.0\N{NO-BREAK SPACE}% of the "
        "probability; now they share all of it. The entropy goes from 2.00 "
        "bits to 2.00."
    )


def test_one_sure_token_is_left_alone():
    figure = sampling_bars([9.0, 0.0, -torch.inf], list("abc"))
    assert "1 token is left of 3" in figure.text
    assert "The entropy goes from 0.00 bits to 0.00" in figure.text
    rows = re.findall(r"<tr.*?</tr>", shown(figure))[1:]
    assert ["dropped" in row for row in rows] == [False, True, True]


def test_the_best_token_stands_first_and_equal_ones_in_their_order():
    figure = sampling_bars([1.0, 5.0, 1.0, 2.0], ["a", "<b>", "c", "猫"])
    names = re.findall(r"<th scope=row>(.*?)</th>", shown(figure))
    assert names == ["&lt;b&gt;", '<span lang="zh">猫</span>', "a", "c"]


def test_tokens_without_a_bar_share_a_line():
    rows = re.findall(
        r"<th scope=row>(.*?)</th>", shown(sampling_bars(SCORES, NAMES))
    )
    assert len(rows) == 13
    assert rows[-1] == "<i>5 others</i>"
    figure = sampling_bars(SCORES[:13], NAMES[:13])
    assert "<i>1 other</i>" in shown(figure)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("logits", "tokens", "complaint"),
    [
        ([1.0], ["a"], "logits: expected 2 to 2000 scores, got 1"),
        ([1.0, 2.0], ["a"], "tokens: expected 2 names.*got 1"),
        ([1.0, nan], ["a", "b"], "logits: expected numbers or -inf, got nan"),
        ([1.0, inf], ["a", "b"], "logits: expected numbers or -inf, got inf"),
        ([-inf, -inf], ["a", "b"], "a finite score, got only -inf"),
    ],
)
def test_a_distribution_that_does_not_fit_is_named(logits, tokens, complaint):
    with pytest.raises(ValueError, match=complaint):
        sampling_bars(logits, tokens)


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
