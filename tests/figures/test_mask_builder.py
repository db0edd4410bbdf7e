"""The figure of chapter 06: a mask to build."""

import re
from itertools import product

import pytest
import torch
from figures.browser import close, computed, enter, focused, press
from figures.registry import html_of

from companion.attention import softmax
from companion.figures import mask_builder
from companion.figures.gallery.mask_builder import (
    CONVENTIONS,
    PLACES,
    SENTENCES,
    build,
    lengths,
    marks,
    shares,
)
from companion.masks import (
    combine_masks,
    to_additive,
    to_keras,
    to_torch_attention,
)

CHOICES = list(product(PLACES, SENTENCES, (False, True), (False, True)))


@pytest.mark.parametrize("name", SENTENCES)
@pytest.mark.parametrize("place", PLACES)
def test_the_right_switches_make_the_mask_of_combine_masks(place, name):
    src, tgt = (
        torch.tensor([[int(word != "<pad>") for word in text.split()]])
        for text in SENTENCES[name]
    )
    expected = getattr(combine_masks(src, tgt, pad=0), place)
    state = build(place, name, causal=place == "tgt", padding=True)
    assert torch.equal(state.mask, expected.expand_as(state.mask))
    assert set("".join(marks(state))) <= {"0", "1"}


def test_without_a_causal_mask_the_decoder_reads_what_it_must_predict():
    state = build("tgt", "我爱小猫", causal=False, padding=True)
    assert marks(state) == ["1!!!!", "11!!!", "111!!", "1111!", "11111"]
    assert mask_builder().text == (
        "Mask builder. 10 cells leak. Row “love” sees “little” and “cats”, "
        "which are in its future: it must predict “little”, and reads it."
    )


def says(place, name, causal, padding):
    html = mask_builder().html
    key = f'"{place} {name} {causal:d}{padding:d}":'
    return re.search(r'"says":"([^"]*)"', html.split(key)[1])[1]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (
            ("src", "我爱猫", False, False),
            "3 cells leak. Row “爱” sees padding: with equal scores, 0.25 of "
            "its weight goes to what is no word.",
        ),
        (
            ("src", "猫", False, False),
            "3 cells leak. Row “猫” sees padding 3 times: with equal scores, "
            "0.75 of its weight goes to what is no word.",
        ),
        (
            ("cross", "猫", True, False),
            "1 cell leaks. Row “cats” sees padding: with equal scores, 0.50 of "
            "its weight goes to what is no word.",
        ),
        (
            ("tgt", "猫", False, True),
            "1 cell leaks. Row “<bos>” sees “cats”, which is in its future: it "
            "must predict “cats”, and reads it.",
        ),
        (
            ("src", "我爱小猫", True, True),
            "6 cells are hidden without need. Row “爱” should see “小” and "
            "“猫”, and does not.",
        ),
        (
            ("src", "我爱小猫", False, False),
            "Right for this sentence, not for every one: each word sees all "
            "the words, before and after it, and no padding.",
        ),
        (
            ("tgt", "我爱猫", True, False),
            "Right: each word sees itself and the words before it, and no "
            "padding.",
        ),
        (
            ("cross", "only padding", False, True),
            "Right, and there is nothing to see: every row is hidden, so its "
            "weights are zeros. A softmax over nothing but −∞ would make them "
            "NaN.",
        ),
    ],
)
def test_the_mask_builder_says_who_leaks_and_who_sees_too_little(choice, words):
    assert says(*choice) == words


@pytest.mark.parametrize("choice", CHOICES)
def test_a_leak_moves_what_a_word_computes_and_nothing_else_does(choice):
    """Marks against a softmax of random scores, right and wrong."""
    state = build(*choice)
    scores = torch.randn(state.mask.shape, dtype=torch.float64)
    lowest = scores.masked_fill(~state.mask, -1e9)
    right = scores.masked_fill(~state.right, -1e9)
    same = torch.isclose(softmax(lowest), softmax(right)).all(-1)[0, 0]
    for word, row, agrees in zip(
        state.queries, marks(state), same, strict=True
    ):
        if word != "<pad>" and state.right.any():
            assert agrees == ({*row} <= {"0", "1"})


@pytest.mark.parametrize("choice", CHOICES)
def test_equal_scores_share_the_weight_among_the_keys_that_are_seen(choice):
    mask = build(*choice).mask
    rows = torch.tensor(shares(mask))
    counts = mask[0, 0].sum(-1)
    torch.testing.assert_close(rows.sum(-1), (counts > 0).float())
    for row, seen, count in zip(rows, mask[0, 0], counts, strict=True):
        assert (row[seen] == 1 / count).all()
        assert (row[~seen] == 0).all()


def test_lengths_say_a_mask_whose_rows_are_alike_and_no_other():
    assert lengths(build("src", "我爱猫", False, True).mask) == 3
    assert lengths(build("cross", "only padding", False, True).mask) == 0
    assert lengths(build("tgt", "我爱猫", False, False).mask) == 5
    assert lengths(build("tgt", "我爱猫", True, True).mask) is None


def test_the_conventions_are_what_the_adapters_give():
    mask = build("tgt", "我爱猫", True, True).mask
    lowest = torch.finfo(torch.float32).min
    assert f"{lowest:.1e}" == "-3.4e+38"
    given = {
        "This course": (to_keras(mask), {"True": True, "False": False}),
        "nn.MultiheadAttention": (
            to_torch_attention(mask, 1),
            {"True": True, "False": False},
        ),
        "Hugging Face": (to_additive(mask), {"0": 0.0, "min": lowest}),
    }
    for name, (translated, meaning) in given.items():
        seen, hidden, _ = CONVENTIONS[name]
        assert (translated.flatten()[mask.flatten()] == meaning[seen]).all()
        assert (translated.flatten()[~mask.flatten()] == meaning[hidden]).all()


def choose(page, place, name, causal, padding):
    page.get_by_label(PLACES[place]).check()
    page.get_by_label(name, exact=True).check()
    page.get_by_label("causal").set_checked(causal)
    page.get_by_label("padding", exact=True).set_checked(padding)


def test_every_choice_shows_the_mask_and_the_weights_of_the_package(reader):
    page = reader(html_of("mask_builder"))
    for choice in product(PLACES, SENTENCES, (False, True), (False, True)):
        choose(page, *choice)
        state = build(*choice)
        shown = computed(page)
        close(shown.shares, shares(state.mask))
        grid = page.locator(".mask tbody tr").evaluate_all(
            "rows => rows.map(r => [...r.cells].map(c => "
            "c.firstChild.textContent))"
        )
        assert [row[0] for row in grid] == state.queries
        drawn = [[cell == "True" for cell in row[1:]] for row in grid]
        assert drawn == state.mask[0, 0].tolist()
        heads = page.locator(".mask thead th").all_inner_texts()
        assert heads == state.keys
        chinese = page.locator(".mask th [lang=zh]").all_inner_texts()
        either = [*state.keys, *state.queries]
        assert chinese == [word for word in either if word in "我爱小猫"]
        leaks = page.locator(".mask .leak").count()
        seen_wrongly = state.mask & ~state.right
        words = torch.tensor([word != "<pad>" for word in state.queries])
        assert leaks == seen_wrongly[0, 0][words].sum()
        assert page.locator(".weights [data-leak]").count() == leaks


def test_the_start_leaks_and_one_key_puts_it_right(reader):
    page = reader(html_of("mask_builder"))
    enter(page)
    assert page.locator(".says").inner_text().startswith("10 cells leak.")
    press(page, "Tab", "Tab")
    assert focused(page, "labels[0].textContent") == "causal"
    press(page, " ")
    said = page.locator(".says").inner_text()
    assert said.startswith("Right: each word sees itself")
    assert page.locator(".leak").count() == 0
    code = "mask = padding_mask(tgt, pad) & causal_mask(tgt.shape[1])"
    assert page.locator("pre").inner_text() == code
    press(page, "Shift+Tab", "Shift+Tab", "ArrowLeft")
    assert computed(page).key == "src 我爱小猫 11"
    assert page.locator(".missing").count() == 6


def test_other_libraries_get_what_the_adapters_make(reader):
    page = reader(html_of("mask_builder"))
    choose(page, "tgt", "我爱猫", True, True)
    mask = build("tgt", "我爱猫", True, True).mask
    lowest = torch.finfo(torch.float32).min
    meant = {
        "nn.MultiheadAttention": (
            to_torch_attention(mask, 1),
            {"True": True, "False": False},
        ),
        "Hugging Face": (to_additive(mask), {"0": 0.0, "min": lowest}),
    }
    for name, (translated, meaning) in meant.items():
        page.get_by_label(name).check()
        cells = page.locator(".mask tbody td").all_inner_texts()
        values = [meaning[cell] for cell in cells]
        assert values == translated.flatten().tolist()
        assert page.locator(".aside").inner_text()


def test_lengths_are_shown_where_lengths_can_say_the_mask(reader):
    page = reader(html_of("mask_builder"))
    choose(page, "src", "我爱猫", False, True)
    page.get_by_label("Lengths").check()
    row = page.locator(".mask tbody tr").first.locator("td")
    assert row.all_inner_texts() == ["0 < 3", "1 < 3", "2 < 3", "3 ≥ 3"]
    assert "lengths = [3]." in page.locator(".aside").inner_text()
    page.get_by_label("causal").check()
    assert set(page.locator(".mask td .unseen").all_inner_texts()) <= {
        "missing"
    }
    assert "No lengths can say this mask" in page.locator(".aside").inner_text()
    assert page.locator(".mask td.masked").first.text_content()[0] == "–"


def test_a_leak_is_told_by_a_sign_and_a_word_and_not_by_colour_alone(reader):
    page = reader(html_of("mask_builder"))
    computed(page)
    leak = page.locator(".mask .leak").first
    assert leak.text_content() == "True!leak"
    assert leak.locator("b").is_visible()
