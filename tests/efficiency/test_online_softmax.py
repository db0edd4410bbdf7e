"""Softmax and attention in one pass: by hand, and whatever the blocks."""

import math

import pytest
import torch

from companion.attention import scaled_dot_product_attention
from companion.efficiency import (
    merge,
    online_attention,
    online_softmax,
    running,
)

E_SCORES = torch.tensor([[1.0, 2, 8, 1]])
VALUES = torch.tensor([[10.0], [20], [30], [40]])


def test_two_blocks_on_paper():
    """e^scores 1, 2 | 8, 1; values 10, 20 | 30, 40; the mean is 330 / 12."""
    scores = E_SCORES.log()
    first = running(scores[:, :2], VALUES[:2])
    assert first.total.item() == pytest.approx(1.5)
    assert first.output.item() == pytest.approx(25)
    second = running(scores[:, 2:], VALUES[2:])
    both = merge(first, second)
    assert both.maximum.item() == pytest.approx(math.log(8))
    assert both.total.item() == pytest.approx(1.5)
    assert both.output.item() == pytest.approx(41.25)
    assert both.result().item() == pytest.approx(27.5)
    assert both.log_sum_exp().exp().item() == pytest.approx(12)


def test_what_is_not_rescaled_is_another_mean():
    forgotten = (25 + 35) / (1.5 + 1.125)
    averaged = ((10 + 40) / 3 + (240 + 40) / 9) / 2
    assert round(forgotten, 1) == 22.9
    assert round(averaged, 1) == 23.9


@pytest.mark.parametrize("block", [1, 2, 3, 4, 9])
def test_a_block_of_any_size_gives_the_softmax_of_the_whole(block):
    got = online_softmax(E_SCORES.log(), block)
    torch.testing.assert_close(got, E_SCORES / 12)


def test_a_row_with_nothing_to_see_gets_zeros_and_no_nan():
    scores = torch.full((2, 5), -math.inf)
    scores[1, 4] = 3
    scores.requires_grad_()
    weights = online_softmax(scores, 2)
    assert weights[0].tolist() == [0] * 5
    assert weights[1].tolist() == [0, 0, 0, 0, 1]
    weights.square().sum().backward()
    assert scores.grad.isfinite().all()
    nothing = running(torch.full((1, 2), -math.inf), VALUES[:2])
    assert nothing.result().item() == 0
    assert nothing.log_sum_exp().item() == -math.inf


def test_blocks_may_be_met_in_any_order():
    q, k, v = (torch.randn(2, n, d) for n, d in ((3, 5), (11, 5), (11, 7)))
    whole = scaled_dot_product_attention(q, k, v)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], None):
        torch.testing.assert_close(
            online_attention(q, k, v, 3, order=order),
            whole,
            rtol=1e-5,
            atol=1e-5,
        )


@pytest.mark.bad_input
def test_a_wrong_argument_is_named():
    scores = torch.ones(2, 3)
    with pytest.raises(TypeError, match=r"scores: .*int64"):
        online_softmax(scores.long(), 2)
    with pytest.raises(TypeError, match="block: expected an int"):
        online_softmax(scores, 2.0)
    with pytest.raises(ValueError, match="block: expected at least 1"):
        online_softmax(scores, 0)
    with pytest.raises(ValueError, match="scores: expected"):
        online_softmax(torch.ones(2, 0), 1)
    with pytest.raises(ValueError, match="v: expected"):
        running(scores, torch.ones(2, 3))
    with pytest.raises(TypeError, match=r"v: expected.*list"):
        running(scores, [1.0])
    with pytest.raises(TypeError, match="mask: expected a boolean"):
        running(scores, torch.ones(3, 2), torch.ones(2, 3))
    with pytest.raises(ValueError, match=r"order: .*\[0, 0\]"):
        online_attention(scores, scores, scores, 1, order=[0, 0])
