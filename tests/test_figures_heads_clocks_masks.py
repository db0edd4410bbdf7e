"""The figures of chapters 04, 05 and 06, as Python makes them."""

import json
import re
from itertools import product

import pytest
import torch
from test_figures import Tags

from companion.attention import softmax
from companion.figures import head_maps, mask_builder, position_clocks
from companion.figures.gallery.head_maps import distance, towards
from companion.figures.gallery.mask_builder import (
    CONVENTIONS,
    PLACES,
    SENTENCES,
    build,
    lengths,
    marks,
    shares,
)
from companion.figures.gallery.position_clocks import twin
from companion.masks import (
    combine_masks,
    to_additive,
    to_keras,
    to_torch_attention,
)
from companion.positions import sinusoidal

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


MAKERS = {
    "head_maps": some_heads,
    "position_clocks": position_clocks,
    "mask_builder": mask_builder,
}
every_figure = pytest.mark.parametrize(
    "make", MAKERS.values(), ids=list(MAKERS)
)


def shown(figure):
    """The page without its style and its script."""
    return figure.html.split("</style>")[1].split("<script")[0]


@every_figure
def test_a_figure_is_whole_and_asks_nothing_of_another_place(make):
    html = make().html
    assert Tags(html).open == []
    assert not re.search(r"https?://|@import|//cdn|\bsrc=|\bfetch\(", html)
    assert not re.search(r"url\((?!#)", html)


@every_figure
def test_the_same_input_gives_the_same_bytes(make):
    torch.manual_seed(2)
    first = make().html
    torch.manual_seed(2)
    assert make().html == first


@every_figure
def test_a_terminal_shows_the_sentence_that_the_page_shows(make):
    figure = make()
    sentence = figure.text.split(". ", 1)[1]
    said = re.search(r'class="says"[^>]*>([^<]*)<', figure.html)[1]
    assert said == sentence


@every_figure
def test_every_rule_of_the_style_stays_within_its_figure(make):
    html = make().html
    kind = re.search(r'class="companion (companion-\w+)"', html)[1]
    own = html.split("</style>")[0].split("animation: none !important; } }")[1]
    rules = re.findall(r"([^{}]+)\{", own.replace("{ }", ""))
    selectors = [rule for rule in rules if not rule.strip().startswith("@")]
    assert len(selectors) > 5
    for selector in selectors:
        for part in re.split(r",(?![^(]*\))", selector):
            assert f".{kind}" in part, part


# The heads.


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
    html = some_heads().html
    assert '"11":"The first 8 of 11 heads."' in html
    assert html.count("],[[") >= 8  # Maps of the largest model …
    data = re.search(r'"maps":(\{.*?\}),"notes"', html)[1]
    assert {h: len(maps) for h, maps in json.loads(data).items()} == {
        "1": 1,
        "3": 3,
        "11": 8,
    }


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


# The clocks.


def test_the_sentence_of_the_clocks_states_products_of_the_encodings():
    table = sinusoidal(64, 16, dtype=torch.float64)
    dot = (table[3] @ table[10]).item()
    assert dot == pytest.approx((table[4] @ table[11]).item())
    text = position_clocks().text.replace("\N{NO-BREAK SPACE}", " ")
    assert f"offset 7: the dot product of their encodings is {dot:.2f}" in text
    assert f"at 4 and 11, it is {dot:.2f}" in text
    assert "3 × 10 = 30 here and 4 × 11 = 44 there" in text
    assert "2 × 15 = 30 too, at offset 13." in text


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


# The mask builder.

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
