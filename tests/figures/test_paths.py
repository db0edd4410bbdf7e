"""The third figure of chapter 02: ways from the first word to the last."""

import re
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from figures.registry import shown

from companion.costs import LAYERS, path_length
from companion.figures import paths
from companion.figures.gallery.paths import KERNEL, edges, shortest

SIZES = (2, 3, 7, 8, 12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("layer", LAYERS)
def test_the_bold_way_is_as_long_as_the_package_says(layer, n):
    count = path_length(layer, n, KERNEL)
    way = shortest(layer, n, count)
    assert len(way) == count + 1
    assert (way[0][1], way[-1][1]) == (0, n - 1)
    assert {*pairwise(way)} <= {*edges(layer, n, count)}


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("layer", ["convolution", "dilated"])
def test_the_arrows_are_those_of_a_convolution_of_pytorch(layer, n):
    count = path_length(layer, n, KERNEL)
    for up in range(count):
        gap = 2**up if layer == "dilated" else 1
        one_hot = F.pad(torch.eye(n), (gap * (KERNEL - 1), 0))[:, None]
        out = F.conv1d(one_hot, torch.ones(1, 1, KERNEL), dilation=gap)[:, 0]
        theirs = {((up, i), (up + 1, j)) for i, j in out.nonzero().tolist()}
        assert theirs == {e for e in edges(layer, n, count) if e[0][0] == up}


def test_as_many_bold_lines_are_drawn_as_are_counted():
    page = shown(paths(8))
    drawn = [svg.count('class="bold"') for svg in page.split("<svg")[1:]]
    assert drawn == [path_length(layer, 8) for layer in LAYERS] == [7, 4, 3, 1]
    assert re.findall(r"(\d+) arrows?<", page) == ["7", "4", "3", "1"]


@pytest.mark.bad_input
@pytest.mark.parametrize("n", [1, 13])
def test_more_positions_than_fit_are_refused(n):
    with pytest.raises(ValueError, match=f"n: expected 2 to 12 .*got {n}"):
        paths(n)
