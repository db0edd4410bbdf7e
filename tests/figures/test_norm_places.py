"""The first figure of chapter 07: the norms in two places."""

import re
from html import unescape

import pytest
import torch
import torch.nn.functional as F
from figures.registry import (
    MIXES,
    PLACED,
    SOURCE,
    figure_of,
    parts_at,
    place,
    ponder,
)
from torch import nn

from companion.blocks import EncoderLayer
from companion.figures import norm_places
from companion.figures.gallery.norm_places.view import BOXES, STREAM

POST, PRE = "post-LN", "pre-LN"


def rows(step, word=2):
    """Way -> name -> numbers, of a step."""
    html = parts_at(figure_of("norm_places"), word, step)["tables"][0]
    found = {}
    for table in re.findall(r"<table.*?</table>", html):
        name = re.search(r"<caption>(.*?) <span", table)[1]
        body = table.split("<tbody>")[1]
        found[name] = {
            re.search(r"<th scope=row>(.*?)</th>", row)[1]: torch.tensor(
                [
                    float(cell.replace("−", "-"))
                    for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)
                ]
            )
            for row in re.findall(r"<tr.*?</tr>", body)
        }
    return found


class Alone(nn.Module):
    """A part that is given; it takes a mask and a cache, as attention does."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x, *_, **__):
        return self.part(x[0])[None]


@pytest.mark.parametrize(("way", "norm_first"), [(POST, False), (PRE, True)])
@pytest.mark.parametrize("word", range(3))
def test_the_last_vector_is_what_the_layer_of_the_package_returns(
    way, norm_first, word
):
    layer = EncoderLayer(5, 1, 5, norm_first=norm_first)
    layer.self_attention, layer.feed_forward = Alone(place), Alone(ponder)
    drawn = [*rows(4, word)[way].values()][-1]
    expected = layer(PLACED[None])[0, word].detach()
    torch.testing.assert_close(drawn, expected, atol=0.00501, rtol=0)


def test_each_way_reads_what_it_should():
    norm = F.layer_norm(PLACED, (5,))
    close = {"atol": 0.00501, "rtol": 0}
    reads = rows(1)
    torch.testing.assert_close(reads[POST]["reads"], PLACED[2], **close)
    torch.testing.assert_close(reads[PRE]["reads"], norm[2], **close)
    said = place(norm)[2]
    torch.testing.assert_close(reads[PRE]["says"], said, **close)
    total = rows(2)[PRE]
    torch.testing.assert_close(total["sum"], PLACED[2] + said, **close)
    assert "normalised" not in total
    assert "normalised" in rows(2)[POST]


def test_only_the_norms_of_post_ln_stand_on_the_way_of_the_word():
    svg = figure_of("norm_places").html.split("<svg")[1].split("</svg>")[0]
    middles = [
        float(x) + float(wide) / 2
        for x, wide in re.findall(
            r'<rect class="norm" x="(\d+)" y="\d+" width="(\d+)"', svg
        )
    ]
    assert [x in STREAM for x in middles] == [True, True, False, False]
    assert middles[0] == middles[1] == STREAM[0]


def test_what_happens_is_framed():
    names = [name for name in BOXES if name != "in"]
    for step, framed in enumerate(
        (
            set(),
            {"attention after", "attention before", "norm 1 before"},
            {"norm 1 after"},
            {"network after", "network before", "norm 2 before"},
            {"norm 2 after"},
        )
    ):
        classes = parts_at(figure_of("norm_places"), 0, step)["box@class"]
        now = {
            n for n, kind in zip(names, classes, strict=True) if "now" in kind
        }
        assert now == framed


def test_the_word_that_is_followed_is_named():
    text = unescape(figure_of("norm_places").text)
    assert f"{SOURCE[2]} enters the layer" in text


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"words": ["a"]}, "words: expected 3, got 1"),
        ({"features": ["a"]}, "features: expected 5, got 1"),
    ],
)
def test_names_that_do_not_fit_are_refused(change, complaint):
    right = {"words": list("abc"), "features": list("abcde")}
    with pytest.raises(ValueError, match=complaint):
        norm_places(PLACED @ MIXES, place, ponder, **right | change)
