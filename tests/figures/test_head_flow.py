"""Multi-head attention in steps: what is drawn is what the package computes."""

import re
from html import unescape

import pytest
import torch
from figures.registry import HEAD_MATRICES, HEAD_WORDS, figure_of, parts_at

from companion.figures import head_flow
from companion.multihead import MultiHeadAttention, split_heads

WORDS = ["a", "b", "c"]


def tables(figure, mode, step):
    """Name -> numbers of each table of a step, and the hues of its cells."""
    html = unescape(parts_at(figure, mode, step)["tables"][0])
    found = {}
    for table in re.findall(r"<table.*?</table>", html):
        name = re.search(r"<caption>(.*?) <span", table)[1]
        rows = re.findall(r"<tr.*?</tr>", table.split("<tbody>")[1])
        cells = [re.findall(r"<td (.*?)>(.*?)</td>", row) for row in rows]
        found[re.sub("<.*?>", "", name)] = (
            torch.tensor(
                [[float(n.replace("−", "-")) for _, n in row] for row in cells]
            ),
            [[int(re.search(r"hue(\d)", a)[1]) if "hue" in a else None
              for a, _ in row] for row in cells],
        )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def module():
    made = MultiHeadAttention(4, 2, bias=False)
    with torch.no_grad():
        for linear, w in zip(made.children(), HEAD_MATRICES, strict=True):
            linear.weight.copy_(w.T)
    return made


@pytest.fixture
def figure():
    return figure_of("head_flow")


def close(drawn, tensor):
    torch.testing.assert_close(drawn, tensor.detach(), atol=0.00501, rtol=0)


def test_each_head_draws_its_own_weights(figure, module):
    drawn = tables(figure, 0, 6)
    for i, weights in enumerate(module.weights(HEAD_WORDS[None])[0], 1):
        close(drawn[f"weights {i}"][0], weights)


def test_the_cut_is_that_of_the_package_and_a_colour_is_a_head(figure):
    drawn = tables(figure, 1, 4)
    for name, w in zip("QKV", HEAD_MATRICES, strict=False):
        for i, piece in enumerate(split_heads(HEAD_WORDS @ w, 2)):
            numbers, hues = drawn[f"{name}{i + 1}"]
            close(numbers, piece)
            assert hues == [[i] * 2] * 3


def test_columns_of_q_and_rows_of_w_o_have_their_heads_colours(figure):
    assert tables(figure, 0, 1)["Q"][1] == [[0, 0, 1, 1]] * 3
    rows = tables(figure, 0, 9)["WO"][1]
    assert rows == [[i // 2] * 4 for i in range(4)]


def test_the_output_is_that_of_the_package_as_a_product_and_as_a_sum(
    figure, module
):
    wanted = module(HEAD_WORDS[None])[0]
    for step in (9, 10):
        close(tables(figure, 1, step)["output"][0], wanted)
    parts = [n for name, (n, _) in tables(figure, 1, 10).items() if "·" in name]
    assert len(parts) == 2
    torch.testing.assert_close(sum(parts), wanted.detach(), atol=0.02, rtol=0)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("words", "heads", "complaint"),
    [
        (WORDS[:2], 2, "words: expected 3, one for each row of x, got 2"),
        (WORDS, 6, "num_heads: expected at most 4, got 6"),
    ],
)
def test_what_cannot_be_drawn_is_refused(words, heads, complaint):
    with pytest.raises(ValueError, match=complaint):
        head_flow(HEAD_WORDS, HEAD_MATRICES, num_heads=heads, words=words)
