"""One word and its heads: a tie as thick as its weight is large."""

import re

import pytest
import torch
from figures.registry import shown

from companion.attention import softmax
from companion.figures import head_ties

WORDS = ["猫", "吃", "鱼"]
GLOSSES = {"猫": "cat", "吃": "eats", "鱼": "fish"}


def drawn(weights, outputs):
    panel = ("Heads", WORDS, weights, outputs)
    return head_ties([panel], ask=1, glosses=GLOSSES, axes=("cat", "fish"))


def test_ties_and_numbers_are_those_of_each_head():
    weights = softmax(2 * torch.randn(2, 3))
    outputs = torch.rand(2, 2)
    html = shown(drawn(weights, outputs))
    for head in (0, 1):
        ties = re.findall(
            rf'"tie hue{head}".*?x2="(.*?)".*?stroke-width="(.*?)"', html
        )
        widths = [float(w) for _, w in sorted(ties, key=lambda t: float(t[0]))]
        wanted = 1 + 13 * weights[head]
        torch.testing.assert_close(
            torch.tensor(widths), wanted, atol=0.06, rtol=0
        )
        numbers = re.findall(rf'"weight hue{head}" .*?>([\d.]+)<', html)
        assert [float(n) for n in numbers] == [
            pytest.approx(w, abs=0.00501) for w in weights[head].tolist()
        ]
    tiles = re.findall(r'class="weight" x=.*?>([\d.]+)<', html)
    brought = torch.tensor([float(n) for n in tiles])
    torch.testing.assert_close(brought, outputs.flatten(), atol=0.00501, rtol=0)


def test_a_single_head_has_no_colour():
    html = shown(drawn(torch.full((1, 3), 1 / 3), torch.rand(1, 2)))
    assert "hue" not in html
    assert html.count("tie alone") == 3


@pytest.mark.bad_input
def test_outputs_that_do_not_fit_the_heads_are_refused():
    with pytest.raises(ValueError, match=r"of 'Heads'.*\(2, 2\).*\(1, 2\)"):
        drawn(torch.full((2, 3), 1 / 3), torch.rand(1, 2))
