"""Two cuts for heads, as the tensors make them."""

import re

import pytest
import torch
from figures.registry import shown

from companion.figures import head_cut
from companion.multihead import split_heads


def test_each_head_holds_what_split_heads_or_view_gives_it():
    places = torch.arange(5 * 6).view(5, 6)
    html = shown(head_cut("abcde", d_model=6, num_heads=3))
    for block, cut in zip(
        html.split('<p class="how">')[1:],
        (split_heads(places.double(), 3).long(), places.view(3, 5, 2)),
        strict=True,
    ):
        tables = re.findall(r"<table.*?</table>", block)[1:]
        for i, (table, pieces) in enumerate(zip(tables, cut, strict=True)):
            cells = re.findall(r'"hue(\d)".*?>(\w)<sub>(\d)<', table)
            assert cells == [
                (str(i), "abcde"[at // 6], str(at % 6 + 1))
                for at in pieces.flatten().tolist()
            ]


@pytest.mark.bad_input
def test_more_heads_than_colours_are_refused():
    with pytest.raises(ValueError, match="expected at most 4, got 5"):
        head_cut("ab", d_model=10, num_heads=5)
