"""Whatever the sizes and numbers: rules of chapter 06."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    HALVES,
    SIZES,
    ids,
    masks,
    padded,
    sentences,
)

from companion.masks import (
    Masks,
    causal_mask,
    combine_masks,
    from_additive,
    from_lengths,
    from_ones,
    from_torch_padding,
    padding_mask,
    to_additive,
    to_keras,
    to_lengths,
    to_ones,
    to_torch_attention,
    to_torch_padding,
    to_torch_transformer,
)
from companion.positions import (
    alibi_slopes,
    frequencies,
    offsets,
    sinusoidal,
)

VOCAB = 11


# Masks.


@given(SIZES, FEW)
def test_a_causal_mask_is_the_beginning_of_every_longer_one(length, more):
    mask = causal_mask(length)
    assert torch.equal(causal_mask(length + more)[:length, :length], mask)
    assert torch.equal(mask, offsets(length) <= 0)


@given(FEW, st.data(), FEW)
def test_masks_of_padded_sentences_are_masks_that_hide_more(batch, data, more):
    src, tgt = (
        data.draw(sentences(batch, SIZES, low=1, high=VOCAB)) for _ in range(2)
    )
    short = combine_masks(src, tgt, 0)
    longer = combine_masks(padded(src, more), padded(tgt, more), 0)
    assert isinstance(short, Masks)
    for one, other in zip(short, longer, strict=True):
        # Old queries see what they saw, and nothing that was appended.
        kept = other[:, :, : one.shape[2]]
        assert torch.equal(kept, padded(one, more, pad=False))
    assert torch.equal(
        short.tgt, padding_mask(tgt, 0) & causal_mask(tgt.shape[1])
    )
    assert torch.equal(short.src[:, 0, 0], src != 0)


@given(masks(FEW, 1, 1, SIZES, somebody=False))
def test_masks_of_keys_come_back_from_every_other_form(mask):
    for there, back in (
        (to_torch_padding, from_torch_padding),
        (to_ones, from_ones),
        (to_additive, from_additive),
    ):
        assert torch.equal(back(there(mask)), mask)
    assert torch.equal(to_torch_padding(mask), ~mask[:, 0, 0])


@given(FEW, SIZES, st.data())
def test_lengths_come_back_from_their_masks(batch, longest, data):
    lengths = data.draw(ids(batch, low=0, high=longest + 1))
    mask = from_lengths(lengths, longest)
    assert torch.equal(to_lengths(mask), lengths)
    assert torch.equal(mask.sum((1, 2, 3)), lengths)


@given(HALVES, masks(FEW, FEW, SIZES, SIZES, somebody=False))
def test_a_mask_comes_back_from_what_is_added_in_any_precision(dtype, mask):
    bias = to_additive(mask, dtype)
    assert bias.dtype == dtype
    assert torch.equal(from_additive(bias), mask)


@given(masks(FEW, 1, SIZES, SIZES, somebody=False), FEW)
def test_other_libraries_hide_what_we_do_not_show(mask, num_heads):
    assert torch.equal(to_keras(mask), mask[:, 0])
    hidden = to_torch_attention(mask, num_heads)
    by_head = hidden.unflatten(0, (len(mask), num_heads))
    assert torch.equal(by_head, ~mask.expand_as(by_head))


@given(FEW, SIZES, SIZES, FEW, st.data())
def test_three_masks_at_once_are_the_three_one_by_one(
    batch, src, tgt, num_heads, data
):
    pair = (
        data.draw(sentences(batch, n, low=1, high=VOCAB)) for n in (src, tgt)
    )
    three = combine_masks(*pair, 0)
    said = to_torch_transformer(three, num_heads)
    assert torch.equal(said["src_key_padding_mask"], ~three.src[:, 0, 0])
    assert torch.equal(said["memory_key_padding_mask"], ~three.cross[:, 0, 0])
    tgt_mask = to_torch_attention(three.tgt, num_heads)
    assert torch.equal(said["tgt_mask"], tgt_mask)


@pytest.mark.bad_input
@given(masks(FEW, FEW, SIZES, SIZES), st.sampled_from([int, float]))
def test_a_mask_of_numbers_is_refused_whatever_it_is_wanted_for(mask, kind):
    for there in (to_additive, to_keras, to_lengths, to_ones):
        with pytest.raises(TypeError, match=r"^mask: expected a boolean"):
            there(mask.to(kind))


@pytest.mark.bad_input
@given(st.integers(-9, 0), st.sampled_from([1.0, "2", True, None]))
def test_sizes_that_are_none_are_refused_by_name(low, odd):
    for wrong, error in ((low, ValueError), (odd, TypeError)):
        with pytest.raises(error, match=r"^length: expected"):
            causal_mask(wrong)
        with pytest.raises(error, match=r"^length: expected"):
            sinusoidal(wrong, 4)
        with pytest.raises(error, match=r"^width: expected"):
            frequencies(wrong)
        with pytest.raises(error, match=r"^num_heads: expected"):
            alibi_slopes(wrong)
