"""Masks: True = may attend, by paper, by chapter 03, and by what is refused."""

import re

import pytest
import torch

from companion.attention import attention_weights, scaled_dot_product_attention
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

# Sizes are prime and all differ, so no axis can stand in for another. The
# batch is 2 and the heads are 3; a token of the source may be 3 anywhere.
BATCH, HEAD, SRC, TGT, WIDTH, PAD = 2, 3, 7, 5, 11, 0
SRC_TOKENS = torch.tensor([[4, 9, 3, 5, 8, 0, 0], [6, 2, 7, 4, 3, 9, 1]])
TGT_TOKENS = torch.tensor([[1, 5, 8, 2, 6], [1, 7, 3, 0, 0]])
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.fixture
def masks():
    return combine_masks(SRC_TOKENS, TGT_TOKENS, PAD)


def attend(mask, queries, keys):
    """Attention of chapter 03; the values are the inputs themselves."""
    q = torch.randn(BATCH, HEAD, queries, WIDTH)
    k = torch.randn(BATCH, HEAD, keys, WIDTH)
    return scaled_dot_product_attention(q, k, k, mask)


# Oracles.


def test_the_causal_mask_is_the_one_pytorch_adds():
    added = torch.nn.Transformer.generate_square_subsequent_mask(TGT)
    assert torch.equal(causal_mask(TGT), added == 0)


def test_each_mask_fits_the_attention_it_is_for(masks):
    assert attend(masks.src, SRC, SRC).isfinite().all()
    assert attend(masks.tgt, TGT, TGT).isfinite().all()
    assert attend(masks.cross, TGT, SRC).isfinite().all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_adding_our_additive_mask_is_attending_with_our_mask(masks, dtype):
    q, k = (torch.randn(BATCH, HEAD, TGT, WIDTH, dtype=dtype) for _ in "qk")
    scores = (q / WIDTH**0.5) @ k.mT
    added = (scores + to_additive(masks.tgt, dtype)).softmax(-1)
    ours = attention_weights(q, k, masks.tgt)
    torch.testing.assert_close(added, ours, atol=1e-2, rtol=1e-2)
    assert torch.equal(added != 0, ours != 0)


# Cases one can do on paper.


def test_position_two_sees_positions_zero_one_and_itself():
    assert causal_mask(3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_a_single_position_sees_itself():
    assert causal_mask(1).tolist() == [[True]]


def test_the_padding_mask_is_true_for_the_real_tokens():
    tokens = torch.tensor([[4, 9, 9], [9, 5, 4]])
    mask = padding_mask(tokens, 9)
    assert mask.tolist() == [[[[True, False, False]]], [[[False, True, True]]]]


def test_the_combined_mask_needs_both_reasons():
    masks = combine_masks(
        torch.tensor([[5, 0]]), torch.tensor([[1, 4, 0]]), pad=0
    )
    assert masks.src.tolist() == masks.cross.tolist() == [[[[True, False]]]]
    assert masks.tgt.tolist() == [
        [[[True, False, False], [True, True, False], [True, True, False]]]
    ]


def test_the_additive_mask_is_zero_for_seen_and_the_lowest_for_hidden():
    mask = torch.tensor([[[[True, False]]]])
    assert to_additive(mask, torch.float16).tolist() == [[[[0, -65504]]]]


def test_the_ones_are_where_the_tokens_are_real(masks):
    assert to_ones(masks.src).tolist() == [[1, 1, 1, 1, 1, 0, 0], [1] * SRC]


def test_two_lengths_on_paper():
    mask = from_lengths(torch.tensor([2, 0]), 3)
    assert mask.tolist() == [
        [[[True, True, False]]],
        [[[False, False, False]]],
    ]
    assert to_lengths(mask).tolist() == [2, 0]


def test_the_heads_of_a_sequence_stand_next_to_each_other(masks):
    hidden = to_torch_attention(masks.tgt, HEAD)
    assert hidden.shape == (BATCH * HEAD, TGT, TGT)
    for row, mask in enumerate(hidden):
        assert torch.equal(mask, ~masks.tgt[row // HEAD, 0])


# Invariants.


def test_every_position_sees_itself_and_so_no_row_is_empty():
    assert causal_mask(TGT).diagonal().all()


def test_the_tgt_mask_is_causal_and_padding_at_once(masks):
    both = causal_mask(TGT) & padding_mask(TGT_TOKENS, PAD)
    assert torch.equal(masks.tgt, both)
    assert masks.tgt.shape == (BATCH, 1, TGT, TGT)


def test_the_cross_mask_is_about_the_source(masks):
    assert masks.cross.shape == (BATCH, 1, 1, SRC)
    assert torch.equal(masks.cross, padding_mask(SRC_TOKENS, PAD))


def test_what_a_pad_holds_changes_no_output(masks):
    q, k = (torch.randn(BATCH, HEAD, SRC, WIDTH) for _ in "qk")
    before = scaled_dot_product_attention(q, k, k, masks.src)
    k[0, :, 5:] += 1000
    after = scaled_dot_product_attention(q, k, k, masks.src)
    assert torch.equal(before, after)


def test_a_padded_query_still_computes_something(masks):
    output = attend(masks.src, SRC, SRC)
    assert (output[0, :, 5:].abs() > 0).all()


def test_a_longer_causal_mask_begins_with_the_shorter_one():
    assert torch.equal(causal_mask(TGT), causal_mask(SRC)[:TGT, :TGT])


@pytest.mark.parametrize("pad", [-100, 0, 9])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16])
def test_any_id_can_be_the_pad_in_any_integer_type(pad, dtype):
    tokens = torch.where(SRC_TOKENS == 4, pad, SRC_TOKENS + 10).to(dtype)
    expected = (SRC_TOKENS != 4)[:, None, None]
    assert torch.equal(padding_mask(tokens, pad), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_goes_to_another_library_comes_back(masks, dtype):
    assert torch.equal(from_additive(to_additive(masks.tgt, dtype)), masks.tgt)
    assert torch.equal(from_ones(to_ones(masks.src).to(dtype)), masks.src)
    assert torch.equal(
        from_torch_padding(to_torch_padding(masks.src)), masks.src
    )
    assert torch.equal(from_lengths(to_lengths(masks.src), SRC), masks.src)
    assert torch.equal(to_keras(masks.tgt)[:, None], masks.tgt)


@pytest.mark.parametrize("low", [-1e4, -1e9, -float("inf")])
def test_every_usual_low_number_hides(low):
    bias = torch.tensor([[[[0.0, low]]]])
    assert from_additive(bias).tolist() == [[[[True, False]]]]


def test_masks_stay_on_the_device_of_their_tokens():
    lengths = torch.tensor([5, 7])
    found = combine_masks(SRC_TOKENS.to("meta"), TGT_TOKENS.to("meta"), PAD)
    assert {mask.device.type for mask in found} == {"meta"}
    assert causal_mask(TGT, device="meta").device.type == "meta"
    mask = torch.ones(BATCH, 1, TGT, TGT, dtype=torch.bool, device="meta")
    assert to_additive(mask).device.type == "meta"
    with torch.device("meta"):  # Where new tensors are made, unless told.
        assert from_lengths(lengths, SRC).device == lengths.device


# Bad input. Each message says what was expected, what came, and what to do.


@pytest.mark.bad_input
@pytest.mark.parametrize("length", [0, -3])
def test_a_mask_for_no_position_is_refused(length):
    with pytest.raises(
        ValueError, match=rf"length: .*at least 1, got {length}"
    ):
        causal_mask(length)


@pytest.mark.bad_input
@pytest.mark.parametrize("length", [5.0, True, torch.tensor(5), None])
def test_a_length_that_is_no_int_is_refused(length):
    got = re.escape(repr(length))
    with pytest.raises(TypeError, match=f"length: expected an int, got {got}"):
        causal_mask(length)


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", [torch.float32, torch.bool])
def test_tokens_that_are_no_ids_are_refused(kind):
    with pytest.raises(TypeError, match=f"tokens: .*integers, got {kind}"):
        padding_mask(SRC_TOKENS.to(kind), PAD)


@pytest.mark.bad_input
def test_a_list_of_tokens_is_refused():
    with pytest.raises(TypeError, match=r"tokens: .*got list"):
        padding_mask([[4, 0]], PAD)


@pytest.mark.bad_input
@pytest.mark.parametrize("shape", [(SRC,), (BATCH, SRC, WIDTH), (BATCH, 0)])
def test_tokens_of_another_shape_are_refused(shape):
    tokens = torch.ones(shape, dtype=torch.long)
    match = r"tokens: expected \(batch, seq\).*got " + re.escape(str(shape))
    with pytest.raises(ValueError, match=match):
        padding_mask(tokens, PAD)


@pytest.mark.bad_input
@pytest.mark.parametrize("pad", [None, 0.0, False, torch.tensor(0)])
def test_a_pad_that_is_no_int_is_refused(pad):
    with pytest.raises(TypeError, match="pad: expected an int, got "):
        padding_mask(SRC_TOKENS, pad)


@pytest.mark.bad_input
def test_combining_names_the_tokens_that_are_wrong():
    with pytest.raises(TypeError, match=r"src_tokens: .*torch\.float32"):
        combine_masks(SRC_TOKENS.float(), TGT_TOKENS, PAD)
    with pytest.raises(ValueError, match=r"tgt_tokens: .*got \(5,\)"):
        combine_masks(SRC_TOKENS, TGT_TOKENS[0], PAD)


@pytest.mark.bad_input
def test_another_batch_or_device_is_refused():
    match = r"tgt_tokens: .*\(2, 7\) on cpu, got \(1, 5\) on cpu"
    with pytest.raises(ValueError, match=match):
        combine_masks(SRC_TOKENS, TGT_TOKENS[:1], PAD)
    with pytest.raises(ValueError, match=r"tgt_tokens: .*on cpu, got .*meta"):
        combine_masks(SRC_TOKENS, TGT_TOKENS.to("meta"), PAD)


ADAPTERS = {
    "to_torch_padding": to_torch_padding,
    "to_torch_attention": lambda mask: to_torch_attention(mask, HEAD),
    "to_torch_transformer": lambda mask: to_torch_transformer(
        Masks(mask, mask, mask), HEAD
    ),
    "to_additive": to_additive,
    "to_ones": to_ones,
    "to_keras": to_keras,
    "to_lengths": to_lengths,
}
KEYS_ONLY = ("to_torch_padding", "to_ones", "to_lengths")


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    return ADAPTERS[request.param]


@pytest.mark.bad_input
def test_a_float_mask_is_refused_with_the_two_ways_out(adapter, masks):
    match = r"mask: .*True = may attend, got torch\.float32; from_additive .*"
    match += r"scores, and `mask\.bool\(\)` one of zeros and ones$"
    with pytest.raises(TypeError, match=match):
        adapter(masks.src.float())


@pytest.mark.bad_input
def test_a_mask_of_integers_is_refused_with_the_way_out(adapter, masks):
    match = r"mask: .*True = may attend, got torch\.int64; from_ones"
    with pytest.raises(TypeError, match=match):
        adapter(masks.src.long())


@pytest.mark.bad_input
def test_a_list_as_a_mask_is_refused(adapter):
    with pytest.raises(TypeError, match=r"mask: .*got list$"):
        adapter([[True]])


@pytest.mark.bad_input
def test_a_mask_of_two_or_three_axes_is_told_how_to_get_four(adapter, masks):
    match = r"mask: .*got \(2, 7\); a causal mask .*`\[None, None\]`, one of "
    match += r"keys, \(batch, key\), by `\[:, None, None\]`$"
    with pytest.raises(ValueError, match=match):
        adapter(masks.src[:, 0, 0])
    with pytest.raises(ValueError, match=r"got \(2, 5, 5\); .*`\[:, None\]`"):
        adapter(masks.tgt[:, 0])


@pytest.mark.bad_input
@pytest.mark.parametrize("name", KEYS_ONLY)
def test_a_mask_of_queries_is_no_list_of_keys(name, masks):
    match = r"mask: expected \(batch, 1, 1, key\).*got \(2, 1, 5, 5\)"
    with pytest.raises(ValueError, match=match):
        ADAPTERS[name](masks.tgt)


@pytest.mark.bad_input
def test_other_heads_than_the_layer_has_are_refused(masks):
    mask = masks.tgt.expand(-1, 2, -1, -1)
    with pytest.raises(
        ValueError, match=r"mask: expected 1 or 3 heads.*2, 2, "
    ):
        to_torch_attention(mask, HEAD)
    with pytest.raises(ValueError, match=r"mask: expected one mask for all"):
        to_keras(mask)
    with pytest.raises(
        TypeError, match=r"num_heads: expected an int, got 3\.0"
    ):
        to_torch_attention(mask, 3.0)


@pytest.mark.bad_input
def test_an_additive_mask_in_integers_is_refused(masks):
    with pytest.raises(TypeError, match=r"dtype: .*got torch\.int64"):
        to_additive(masks.tgt, torch.int64)
    with pytest.raises(
        TypeError, match=r"bias: .*float tensor, got torch\.bool"
    ):
        from_additive(masks.tgt)


@pytest.mark.bad_input
@pytest.mark.parametrize("entry", [1.0, -1.0, float("nan"), float("inf")])
def test_what_is_more_than_a_mask_is_refused(entry):
    bias = torch.tensor([[[[0.0, entry, -1e9]]]])
    with pytest.raises(ValueError, match=rf"bias: expected 0.*got {entry:g};"):
        from_additive(bias)


@pytest.mark.bad_input
def test_an_additive_mask_of_two_axes_is_refused():
    with pytest.raises(ValueError, match=r"bias: .*got \(5, 7\); a causal"):
        from_additive(torch.zeros(TGT, SRC))


@pytest.mark.bad_input
def test_true_alone_does_not_tell_what_it_means(masks):
    with pytest.raises(TypeError, match=r"ones: .*got torch\.bool.*from_torch"):
        from_ones(masks.src[:, 0, 0])
    with pytest.raises(TypeError, match=r"hidden: .*torch\.int64.*from_ones"):
        from_torch_padding(to_ones(masks.src))


@pytest.mark.bad_input
@pytest.mark.parametrize("read", [from_ones, from_torch_padding])
def test_rows_of_keys_have_two_axes(read):
    with pytest.raises(ValueError, match=r"expected \(batch, key\), got \(2,"):
        read(torch.ones(BATCH, 1, 1, SRC))
    with pytest.raises(TypeError, match=r"expected a tensor, got list"):
        read([[1, 0]])


@pytest.mark.bad_input
def test_a_two_among_the_ones_is_named():
    # Packed sequences are numbered 1, 2, 3 …: more than such a mask can say.
    with pytest.raises(ValueError, match="ones: expected 0 and 1, got 2"):
        from_ones(torch.tensor([[1, 1, 2, 0]]))


@pytest.mark.bad_input
def test_padding_before_a_real_token_has_no_length():
    mask = padding_mask(torch.tensor([[4, 5, 0], [4, 0, 6]]), PAD)
    match = r"mask: .*a hidden key at 1 and a real one after it in sequence 1"
    with pytest.raises(ValueError, match=match):
        to_lengths(mask)


@pytest.mark.bad_input
@pytest.mark.parametrize("length", [-1, 8])
def test_a_length_beyond_the_row_is_named(length):
    lengths = torch.tensor([3, length])
    with pytest.raises(ValueError, match=f"lengths: .*0 to 7, got {length}"):
        from_lengths(lengths, SRC)


@pytest.mark.bad_input
def test_lengths_that_are_no_lengths_are_refused():
    with pytest.raises(TypeError, match=r"lengths: .*got torch\.float32"):
        from_lengths(torch.tensor([2.0]), SRC)
    with pytest.raises(TypeError, match=r"lengths: .*got list"):
        from_lengths([2], SRC)
    with pytest.raises(
        ValueError, match=r"lengths: .*\(batch,\), got \(2, 7\)"
    ):
        from_lengths(SRC_TOKENS, SRC)
    with pytest.raises(TypeError, match="max_len: expected an int, got None"):
        from_lengths(torch.tensor([2]), None)


@pytest.mark.bad_input
def test_masks_without_their_names_or_heads_are_refused(masks):
    for wrong in (None, tuple(masks[:2]), masks.src):
        with pytest.raises(TypeError, match=r"masks: expected Masks\(src"):
            to_torch_transformer(wrong, HEAD)
    for num_heads in (0, -1):
        with pytest.raises(ValueError, match="num_heads: expected at least 1"):
            to_torch_attention(masks.tgt, num_heads)
