"""The figure of chapter 01: words to put in another order."""

import json
import re
from fractions import Fraction
from functools import reduce
from itertools import permutations
from operator import add
from pathlib import Path

import pytest
import torch
from figures.browser import PHONE, computed, focused, press
from figures.registry import figure_of, html_of, shown
from torch import nn

from companion.figures import word_order
from companion.figures.gallery.word_order import (
    ENGLISH,
    START,
    TOKENS,
    VECTORS,
    VOCABULARY,
    combined,
    sentence,
)
from companion.figures.kit.digits import fixed
from companion.rnn import ConcatFNN, MeanFNN, bag_of_words

CHAPTER = Path(__file__).parents[2] / "book" / "labs" / "01_rnn.ipynb"


ORDERS = list(permutations(START))


MINUS = "\N{MINUS SIGN}"


def chips(html):
    """The numbers that stand in tiles or in the concatenation."""
    found = re.findall(r"<span class=\"\w+\" style[^>]*>([^<]+)</span>", html)
    return [float(text.replace(MINUS, "-")) for text in found]


def cells(html, kind):
    table = re.search(rf'<table class="cells {kind}">.*?</table>', html)[0]
    found = re.findall(r"<td class[^>]*>([^<]+)</td>", table)
    return [float(text.replace(MINUS, "-")) for text in found]


def read_by(kind, **length):
    """What one of the chapter's networks reads, with these word vectors."""
    net = kind(len(VOCABULARY), 3, 2, **length).double()
    with torch.no_grad():
        for token, tenths in VECTORS.items():
            at = VOCABULARY.encode([token])
            net.embedding.weight[at] = torch.tensor(tenths).double() / 10
    net.fnn = nn.Identity()
    return lambda words: net(torch.tensor([VOCABULARY.encode(words)]))[0]


def test_the_mean_and_the_concatenation_are_what_the_networks_read():
    mean, concat = read_by(MeanFNN), read_by(ConcatFNN, length=4)
    for words in ORDERS:
        ours = combined(words)
        for numbers, net in ((ours.mean, mean), (ours.concat, concat)):
            numbers = torch.tensor(numbers, dtype=torch.float64)
            torch.testing.assert_close(numbers, net(words))


def test_the_bag_is_that_of_the_package_without_what_is_no_word():
    for words in ORDERS:
        bag = bag_of_words(torch.tensor(VOCABULARY.encode(words)), 13)
        assert combined(words).bag == bag[3:].tolist()
        assert bag[:3].sum() == 0
        assert dict(zip(TOKENS, combined(words).bag, strict=True)) == {
            token: token in START for token in "小猫我爱你看大狗他书"
        }


def test_the_mean_is_the_one_a_reader_finds_by_hand():
    # (0.9 + 0.1 - 0.4 + 0.6) / 4 and so on, with fractions.
    by_hand = [
        float(Fraction(sum(column), 4 * 10))
        for column in zip(*VECTORS.values(), strict=True)
    ]
    assert combined(START).mean == by_hand == [0.3, 0.4, -0.2]


def test_no_order_moves_the_mean_by_as_much_as_its_last_bit():
    assert {tuple(combined(words).mean) for words in ORDERS} == {
        tuple(combined(START).mean)
    }
    # It does where tenths are added up as they come, so they are not. (From
    # Python 3.12 on, sum does so no more.)
    careless = {
        tuple(
            reduce(add, (tenths / 10 for tenths in column)) / 4
            for column in zip(*(VECTORS[w] for w in words), strict=True)
        )
        for words in ORDERS
    }
    assert len(careless) > 1


def test_every_order_has_a_concatenation_of_its_own():
    assert len({tuple(combined(words).concat) for words in ORDERS}) == 24
    for column in zip(*VECTORS.values(), strict=True):
        assert len(set(column)) == 4


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("我爱小猫", 0),
        ("爱我小猫", 6),  # Two neighbours change places.
        ("我猫爱小", 9),  # One word jumps over two.
        ("猫小爱我", 12),
    ],
)
def test_the_sentence_counts_what_changed(words, changed):
    assert sentence(tuple(words)) == (
        f"{' '.join(words)}: the counts and the mean, (0.3, 0.4, −0.2), are as "
        f"at the start; {changed} of 12 numbers of the concatenation changed."
    )


def test_without_scripts_the_start_stands_there_in_numbers():
    html = shown(figure_of("word_order"))
    tiles, long = re.findall(r'<ol class="\w+">(.*?)</ol>', html)
    side_by_side = [tenths / 10 for w in START for tenths in VECTORS[w]]
    assert chips(tiles) == chips(long) == side_by_side
    assert cells(html, "bag") == combined(START).bag
    assert cells(html, "mean") == combined(START).mean
    assert re.findall(r'<b lang="zh">(.)</b><i>(\w+)</i>', tiles) == list(
        ENGLISH.items()
    )
    assert long.count("<small>=</small>") == 12
    said = re.sub(r"<[^>]+>", "", re.search(r'says".*?>(.*?)</p>', html)[1])
    assert said == sentence(START)
    assert word_order().text == f"Word order. {said}"


def test_the_caption_does_the_first_mean_and_counts_the_orders():
    caption = shown(figure_of("word_order")).split("<figcaption>")[1]
    assert "(0.9 + 0.1 − 0.4 + 0.6) / 4 = 0.3 in every order" in caption
    assert (
        "The 24 orders of these words have 1 bag of words, 1 mean and 24 "
        "concatenations" in caption
    )


def test_the_words_and_their_ids_are_those_of_the_chapter():
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    made = next(c for c in cells if c["id"] == "rnn-vocabulary")
    assert f'Vocabulary("{"".join(TOKENS)}")' in "".join(made["source"])
    assert "".join(START) in "".join(made["source"])


def tile(page, word):
    return page.locator(".words .tile").filter(has_text=word)


def shows(page, words):
    """Everything on the page is what Python says of this order."""
    bag, mean, concat = combined(tuple(words))
    computed(page)
    assert "".join(page.locator(".words b").all_inner_texts()) == "".join(words)
    assert page.locator(".says").text_content() == sentence(tuple(words))
    for kind, numbers, places in (
        (".bag tbody td", bag, 0),
        (".mean tbody td", mean, 1),
        (".long li span", concat, 1),
        (".words .vector span", concat, 1),
    ):
        texts = page.locator(kind).all_inner_texts()
        assert texts == [fixed(number, places) for number in numbers]
    marks = [
        f"≠ {fixed(before, 1)}" if number != before else "="
        for number, before in zip(concat, combined(START).concat, strict=True)
    ]
    assert page.locator(".long small").all_inner_texts() == marks
    assert page.locator(".long .changed").count() == (12 - marks.count("="))


def test_every_order_is_reached_by_keyboard_and_shown_as_python_has_it(reader):
    page = reader(html_of("word_order"))
    computed(page)
    for words in permutations(START):
        for word in reversed(words):
            tile(page, word).press("Home")
        shows(page, words)


def test_the_arrow_keys_move_the_word_that_keeps_the_focus(reader):
    page = reader(html_of("word_order"))
    shows(page, "我爱小猫")
    tile(page, "小").focus()
    for key, words in (
        ("ArrowLeft", "我小爱猫"),
        ("ArrowLeft", "小我爱猫"),
        ("ArrowLeft", "小我爱猫"),
        ("End", "我爱猫小"),
        ("ArrowRight", "我爱猫小"),
        ("ArrowLeft", "我爱小猫"),
        ("Alt+ArrowRight", "我爱小猫"),  # That is the browser's own.
    ):
        press(page, key)
        shows(page, words)
        assert focused(page, "innerText").startswith("小")


def test_a_word_is_picked_and_moved_by_buttons_which_end_at_the_ends(reader):
    page = reader(html_of("word_order"), width=PHONE, has_touch=True)
    computed(page)
    left, right = page.locator(".controls button").all()[:2]
    tile(page, "爱").tap()
    assert page.locator(".controls span").inner_text() == "Picked: 爱"
    assert tile(page, "爱").get_attribute("aria-pressed") == "true"
    assert page.locator("[aria-pressed=true]").count() == 1
    right.tap()
    shows(page, "我小爱猫")
    right.tap()
    shows(page, "我小猫爱")
    assert right.get_attribute("aria-disabled") == "true"
    right.tap(force=True)
    shows(page, "我小猫爱")
    left.tap()
    shows(page, "我小爱猫")
    assert right.get_attribute("aria-disabled") == "false"
    assert min(left.bounding_box()["height"], 44) == 44


def test_the_order_of_the_start_comes_back(reader):
    page = reader(html_of("word_order"))
    computed(page)
    tile(page, "猫").press("Home")
    tile(page, "我").press("End")
    shows(page, "猫爱小我")
    page.get_by_text("Restore the order").click()
    shows(page, "我爱小猫")
    assert page.locator(".long .changed").count() == 0
    left = page.locator(".controls button").first
    assert left.get_attribute("aria-disabled") == "true"


def middle(page, word):
    box = tile(page, word).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_mouse_drags_a_word_from_place_to_place(reader):
    page = reader(html_of("word_order"))
    computed(page)
    x, y = middle(page, "我")
    width = middle(page, "爱")[0] - x
    page.mouse.move(x, y)
    page.mouse.down()
    for step, words in (
        (1, "爱我小猫"),
        (2, "爱小我猫"),
        (9, "爱小猫我"),
        (1, "爱我小猫"),
        (2, "爱小我猫"),
    ):
        page.mouse.move(x + step * width, y + 5)
        shows(page, words)
    page.mouse.move(x + 2.3 * width, y)
    assert middle(page, "我")[0] == pytest.approx(x + 2.3 * width, abs=1)
    page.mouse.up()
    assert middle(page, "我")[0] == pytest.approx(x + 2 * width, abs=1)
    page.mouse.move(x, y)
    shows(page, "爱小我猫")


def test_the_other_buttons_of_a_mouse_drag_nothing(reader):
    page = reader(html_of("word_order"))
    computed(page)
    page.mouse.move(*middle(page, "我"))
    page.mouse.down(button="middle")
    page.mouse.move(*middle(page, "猫"))
    shows(page, "我爱小猫")


def test_a_finger_drags_a_word_along_the_row(reader):
    page = reader(html_of("word_order"), width=PHONE, has_touch=True)
    computed(page)
    session = page.context.new_cdp_session(page)

    def touch(kind, *point):
        points = [{"x": point[0], "y": point[1]}] if point else []
        session.send(
            "Input.dispatchTouchEvent",
            {"type": f"touch{kind}", "touchPoints": points},
        )

    (x, y), (goal, _) = middle(page, "猫"), middle(page, "我")
    touch("Start", x, y)
    for share in range(1, 11):
        touch("Move", x + (goal - x) * share / 10, y)
    touch("End")
    shows(page, "猫我爱小")
    assert tile(page, "猫").evaluate("e => e.style.translate") == ""


def test_what_changed_is_marked_by_more_than_a_colour(reader):
    page = reader(html_of("word_order"))
    computed(page)
    tile(page, "我").press("ArrowRight")
    weights = page.locator(".long li span").evaluate_all(
        "all => all.map(e => getComputedStyle(e).fontWeight)"
    )
    assert weights == ["700"] * 6 + ["400"] * 6
    signs = page.locator(".long small").all_inner_texts()
    assert [sign[0] for sign in signs] == ["≠"] * 6 + ["="] * 6


def test_the_tiles_stand_above_their_numbers_on_a_wide_page(reader):
    page = reader(html_of("word_order"))
    computed(page)
    for i, word in enumerate(VECTORS):
        above = middle(page, word)[0]
        box = page.locator(".long li").nth(3 * i + 1).bounding_box()
        assert box["x"] + box["width"] / 2 == pytest.approx(above, abs=1)
