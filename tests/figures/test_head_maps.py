"""The figure of chapter 04: what heads look at."""

import re

import pytest
import torch
from figures.browser import (
    LAPTOP,
    PHONE,
    close,
    computed,
    enter,
    focused,
    press,
)
from figures.registry import MAPS, data_of, html_of, shown

from companion.attention import softmax
from companion.figures import head_maps
from companion.figures.gallery.head_maps import distance, towards
from companion.figures.kit.digits import fixed

WORDS = ["我", "爱", "小", "猫", "<eos>", "a", "b"]
HEADS = (1, 3, 11)


def some_maps(seq=7):
    return {h: softmax(2 * torch.randn(h, seq, seq)) for h in HEADS}


def some_bands():
    return {h: {"1 back": (0.5, 0.75), "3 back": (1.0, 1.0)} for h in HEADS}


def some_heads(maps=None, tokens=WORDS, accuracy=None, d_model=66):
    return head_maps(
        some_maps() if maps is None else maps,
        tokens,
        some_bands() if accuracy is None else accuracy,
        d_model=d_model,
    )


def test_a_head_that_looks_back_is_found_at_its_distance():
    n, back = 11, 3
    rows = [[float(j == max(i - back, 0)) for j in range(n)] for i in range(n)]
    assert distance(rows) == (back, 1.0)
    assert distance([row[::-1] for row in rows[::-1]]) == (-back, 1.0)


def test_a_head_that_looks_nowhere_is_said_to_look_at_itself():
    assert distance([[1 / 5] * 5] * 5) == (0, pytest.approx(1 / 5))


def test_a_distance_of_a_corner_alone_does_not_count():
    """The first word is all that the last one looks at, 4 places back."""
    rows = torch.eye(5) * 0.9
    rows[4] = torch.tensor([1.0, 0, 0, 0, 0])
    assert distance(rows.tolist())[0] == 0


@pytest.mark.parametrize(
    ("back", "words"), [(0, "itself"), (3, "3 back"), (-2, "2 ahead")]
)
def test_a_distance_has_words(back, words):
    assert towards(back) == words


def test_the_second_model_is_shown_first_with_a_map_for_each_head():
    maps = some_maps()
    html = shown(some_heads(maps))
    squares = re.findall(r"<b>Head (\d+)</b>.*?<tbody>(.*?)</tbody>", html)
    assert [int(head) for head, _ in squares] == [1, 2, 3]
    for (_, cells), head in zip(squares, maps[3], strict=True):
        numbers = [float(n) for n in re.findall(r">(\d\.\d\d)</td>", cells)]
        torch.testing.assert_close(
            torch.tensor(numbers), head.flatten(), atol=0.00501, rtol=0
        )


def test_the_sentence_names_the_strongest_weight_of_the_last_word():
    maps = some_maps()
    maps[3][0, 6] = torch.tensor([0.0, 0.0, 0.1, 0.0, 0.9, 0.0, 0.0])
    assert some_heads(maps).text.endswith(
        "3 heads of width 22. Head 1: “b” at place 7 gives 0.90 of its weight "
        "to “<eos>” at place 5: 2 back."
    )


def test_only_the_first_eight_maps_are_on_the_page_and_it_says_so():
    data = data_of(some_heads())
    assert data["notes"] == ["", "", "The first 8 of 11 heads."]
    assert [len(maps) for maps in data["maps"]] == [1, 3, 8]


def test_accuracy_is_a_band_and_one_number_where_the_seeds_agree():
    html = shown(some_heads())
    assert html.count(">50–\u200b75</td>") == 3
    assert html.count(">100</td>") == 3
    assert "<td>66</td><td>22</td><td>6</td>" in html


@pytest.mark.bad_input
def test_a_model_with_other_heads_than_it_says_is_refused():
    maps = some_maps() | {3: softmax(torch.randn(2, 7, 7))}
    with pytest.raises(ValueError, match="expected 3 maps for 3, got 2"):
        some_heads(maps)


@pytest.mark.bad_input
def test_maps_that_do_not_fit_the_words_are_refused():
    with pytest.raises(ValueError, match=r"maps_by_h\[1\].*\(7, 7\).*\(5, 5\)"):
        some_heads(some_maps(5))


@pytest.mark.bad_input
def test_weights_that_do_not_sum_to_1_are_refused():
    maps = some_maps()
    maps[3][2, 4] = 0.5
    with pytest.raises(ValueError, match=r"3\.500 with 3 heads, head 2, row 4"):
        some_heads(maps)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("bands", "complaint"),
    [
        ({1: {"x": (0, 1)}}, r"same names for each of \[1, 3, 11\] heads"),
        (
            some_bands() | {3: {"1 back": (0.5, 0.75)}},
            r"3: \['1 back'\]",
        ),
        (
            some_bands() | {3: {"1 back": (0.7, 0.5), "3 back": (0, 1)}},
            r"\(0\.7, 0\.5\) for '1 back' with 3 heads",
        ),
        (
            some_bands() | {11: {"1 back": (97, 99), "3 back": (0, 1)}},
            r"shares.*\(97, 99\) for '1 back' with 11 heads",
        ),
    ],
)
def test_accuracies_that_fit_no_model_or_are_no_shares_are_refused(
    bands, complaint
):
    with pytest.raises(ValueError, match=complaint):
        some_heads(accuracy=bands)


@pytest.mark.bad_input
def test_a_width_that_the_heads_cannot_share_is_refused():
    with pytest.raises(ValueError, match="multiple of 3 heads, got 64"):
        some_heads(d_model=64)


@pytest.mark.parametrize(
    ("keys", "heads"),
    [
        (["Home"], 1),
        ([], 3),
        (["ArrowRight"], 11),
        (["End", "ArrowRight"], 11),
        (["Home", "ArrowLeft", "ArrowRight"], 3),
    ],
)
def test_arrow_keys_pick_a_model_and_its_maps_are_drawn(reader, keys, heads):
    page = reader(html_of("head_maps"))
    enter(page)
    press(page, *keys)
    assert computed(page).heads == heads
    assert focused(page, "textContent") == str(heads)
    pressed = page.locator("button[aria-pressed=true]")
    assert pressed.all_inner_texts() == [str(heads)]
    maps = MAPS[heads][:8]
    cells = page.locator(".map tbody td").all_text_contents()
    close([float(cell) for cell in cells], maps.flatten(), atol=0.00501, rtol=0)
    assert page.locator(".map").count() == len(maps)
    note = "The first 8 of 11 heads." if heads == 11 else ""
    assert page.locator(".aside").text_content() == note
    rounded = (100 * maps.double()).round() / 100
    captions = page.locator(".map caption").all_text_contents()
    for head, rows in enumerate(rounded, 1):
        back, mean = distance(rows.tolist())
        assert captions[head - 1] == (
            f"Head {head} {towards(back)} {fixed(mean)}"
        )


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        (["Home", "ArrowUp"], (5, 0)),
        (["End", "ArrowDown"], (6, 6)),
        (["Home", "ArrowRight", "ArrowRight", *["ArrowUp"] * 9], (0, 2)),
        (["End", "ArrowLeft"], (6, 5)),
    ],
)
def test_arrow_keys_read_the_weights_of_a_map(reader, keys, place):
    page = reader(html_of("head_maps"))
    enter(page)
    press(page, "Tab", "Tab", *keys)  # The second head.
    shown, (row, column) = computed(page), place
    assert (shown.head, shown.row, shown.column) == (1, row, column)
    weight = MAPS[3][1, row, column].item()
    said = page.locator(".says").inner_text()
    assert f"Head 2: “{WORDS[row]}” at place {row + 1} gives" in said
    assert f"{weight:.2f} of its weight to “{WORDS[column]}”" in said
    assert focused(page, "ariaLabel") == said
    assert page.locator("td[data-chosen]").count() == 1
    press(page, "Tab")  # The same place of the next head.
    after = computed(page)
    assert (after.head, after.row, after.column) == (2, row, column)


def test_a_mouse_reads_a_weight_and_at_rest_undoes_no_tap(reader):
    page = reader(html_of("head_maps"), has_touch=True)
    computed(page)
    row = page.locator(".map").nth(2).locator("tbody tr").nth(4)
    row.locator("td").nth(3).hover()
    shown = computed(page)
    assert (shown.head, shown.row, shown.column) == (2, 4, 3)
    row.locator("td").nth(5).tap()
    page.wait_for_timeout(300)  # Chromium reports the resting mouse again.
    assert computed(page).column == 5


def test_the_cells_of_a_map_are_square_and_a_larger_weight_is_stronger(reader):
    for width in (PHONE, LAPTOP):
        page = reader(html_of("head_maps"), width=width)
        computed(page)
        box = page.locator(".map tbody td").first.bounding_box()
        assert box["width"] == pytest.approx(box["height"], abs=1.5)
    colours = page.locator(".map tbody td").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    order = torch.argsort(MAPS[3].flatten())
    assert colours[order[0]] != colours[order[-1]]
