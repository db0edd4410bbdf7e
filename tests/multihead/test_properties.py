"""Whatever the sizes and numbers: rules of chapter 04."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drawn import FEW, SEEDS, SIZES, masks, normal
from torch import nn

from companion.multihead import (
    MultiHeadAttention,
    merge_heads,
    split_heads,
)

close = torch.testing.assert_close


@st.composite
def heads(draw, square=False):
    """A multi-head attention, with what asks and what is asked."""
    torch.manual_seed(draw(SEEDS))
    num_heads, head_dim = draw(FEW), draw(FEW)
    d_model = num_heads * head_dim
    kdim = d_model if square else draw(SIZES)
    layer = MultiHeadAttention(d_model, num_heads, kdim=kdim, vdim=kdim)
    batch = draw(FEW)
    x = draw(normal(batch, SIZES, d_model))
    key = x if square else draw(normal(batch, SIZES, kdim))
    return layer.double().eval(), x, key


@given(FEW, SIZES, FEW, FEW, st.data())
def test_splitting_and_merging_heads_undo_each_other(
    batch, seq, num_heads, head_dim, data
):
    x = data.draw(normal(batch, seq, num_heads * head_dim))
    split = split_heads(x, num_heads)
    assert split.shape == (batch, num_heads, seq, head_dim)
    assert torch.equal(merge_heads(split), x)
    one = x.unflatten(-1, (num_heads, head_dim))[:, :, -1]
    assert torch.equal(split[:, -1], one)


@given(heads(square=True), st.data())
def test_many_heads_agree_with_pytorch_whatever_the_sizes(drawn, data):
    layer, x, _ = drawn
    seq, d_model = x.shape[1:]
    mask = data.draw(masks(seq, seq))
    theirs = nn.MultiheadAttention(
        d_model, layer.num_heads, batch_first=True
    ).double()
    three = layer.q_proj, layer.k_proj, layer.v_proj
    theirs.in_proj_weight.data = torch.cat([p.weight for p in three])
    theirs.in_proj_bias.data = torch.cat([p.bias for p in three])
    theirs.out_proj.load_state_dict(layer.out_proj.state_dict())
    close(
        layer(x, mask),
        theirs(x, x, x, attn_mask=~mask, need_weights=False)[0],
    )


@given(heads(), st.data())
def test_heads_gather_by_the_weights_they_show(drawn, data):
    layer, x, key = drawn
    mask = data.draw(
        masks(1, layer.num_heads, x.shape[1], key.shape[1], somebody=False)
    )
    weights = layer.weights(x, mask, key=key)
    gathered = weights @ layer.values(key)
    close(layer(x, mask, key=key), layer.out_proj(merge_heads(gathered)))


@given(heads(), FEW, st.data())
def test_padding_the_keys_of_many_heads_changes_nothing(drawn, more, data):
    layer, x, key = drawn
    mask = data.draw(masks(len(x), 1, 1, key.shape[1]))
    longer = F.pad(key, (0, 0, 0, more), value=9.0)
    hidden = F.pad(mask, (0, more), value=False)
    close(layer(x, hidden, key=longer), layer(x, mask, key=key))


@given(heads(square=True), SEEDS)
def test_without_positions_the_order_of_the_queries_is_that_of_the_answers(
    drawn, seed
):
    layer, x, _ = drawn
    torch.manual_seed(seed)
    order = torch.randperm(x.shape[1])
    close(layer(x[:, order]), layer(x)[:, order])


@pytest.mark.bad_input
@given(SIZES, st.integers(-2, 9))
def test_heads_that_do_not_divide_the_width_are_refused(d_model, num_heads):
    assume(num_heads < 1 or d_model % num_heads)
    with pytest.raises(ValueError, match=r"^num_heads: expected"):
        MultiHeadAttention(d_model, num_heads)
    with pytest.raises(ValueError, match=r"^num_heads: expected"):
        split_heads(torch.ones(2, 3, d_model), num_heads)
