"""Positions in the scores: Shaw, Transformer-XL, T5 and ALiBi.

Each agrees with its definition, written pair by pair, and with Hugging Face.
"""

import math

import pytest
import torch

from companion.attention import scaled_dot_product_attention
from companion.positions import (
    Shaw,
    T5Bias,
    TransformerXL,
    alibi_bias,
    alibi_slopes,
    biased_attention,
    biased_weights,
    offsets,
    shift,
    sinusoids,
    t5_bucket,
)

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, HEAD, SEQ, HEAD_DIM, D_MODEL = 2, 3, 5, 7, 11
CLIP = 2
WIDE = torch.float64


@pytest.fixture
def qkv():
    return torch.randn(3, BATCH, HEAD, SEQ, HEAD_DIM, dtype=WIDE)


@pytest.fixture
def causal():
    return torch.ones(SEQ, SEQ, dtype=torch.bool).tril()


@pytest.fixture
def shaw():
    return Shaw(HEAD_DIM, CLIP).to(WIDE)


@pytest.fixture
def xl():
    xl = TransformerXL(D_MODEL, HEAD, HEAD_DIM).to(WIDE)
    with torch.no_grad():
        xl.content_bias.normal_()
        xl.position_bias.normal_()
    return xl


def pairwise(score):
    """(batch, head, i, j) → one number, for every place: a table of scores."""
    table = torch.empty(BATCH, HEAD, SEQ, SEQ, dtype=WIDE)
    for b in range(BATCH):
        for h in range(HEAD):
            for i in range(SEQ):
                for j in range(SEQ):
                    table[b, h, i, j] = score(b, h, i, j)
    return table / math.sqrt(HEAD_DIM)


def hidden(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def row_of(i, j):
    return max(-CLIP, min(CLIP, j - i)) + CLIP


# An oracle: the definition, pair by pair.


@pytest.mark.parametrize("masked", [False, True])
def test_shaw_is_its_definition(qkv, shaw, causal, masked):
    q, k, v = qkv
    mask = causal if masked else None
    scores = pairwise(
        lambda b, h, i, j: q[b, h, i] @ (k[b, h, j] + shaw.keys[row_of(i, j)])
    )
    weights = hidden(scores, mask).softmax(-1)
    expected = torch.zeros_like(v)
    for i in range(SEQ):
        for j in range(SEQ):
            value = v[..., j, :] + shaw.values[row_of(i, j)]
            expected[..., i, :] += weights[..., i, j, None] * value
    torch.testing.assert_close(shaw.weights(q, k, mask), weights)
    torch.testing.assert_close(shaw(q, k, v, mask), expected)


@pytest.mark.parametrize("masked", [False, True])
def test_transformer_xl_is_its_definition(qkv, xl, causal, masked):
    q, k, v = qkv
    mask = causal if masked else None

    def score(b, h, i, j):
        wave = sinusoids(torch.tensor([i - j]), D_MODEL, dtype=WIDE)
        r = xl.r_proj(wave).view(HEAD, HEAD_DIM)[h]
        content = (q[b, h, i] + xl.content_bias[h]) @ k[b, h, j]
        return content + (q[b, h, i] + xl.position_bias[h]) @ r

    weights = hidden(pairwise(score), mask).softmax(-1)
    torch.testing.assert_close(xl.weights(q, k, mask), weights)
    torch.testing.assert_close(xl(q, k, v, mask), weights @ v)


def test_transformer_xl_agrees_with_hugging_face_xlnet(qkv, xl):
    from transformers import XLNetConfig
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    width = HEAD * HEAD_DIM
    theirs = XLNetRelativeAttention(
        XLNetConfig(d_model=width, n_head=HEAD, dropout=0.0)
    ).to(WIDE)
    theirs.r_w_bias.data = xl.content_bias.data
    theirs.r_r_bias.data = xl.position_bias.data
    # Theirs begins one distance earlier, and is (seq, batch, head, head_dim).
    distances = torch.arange(SEQ, -SEQ, -1)
    r = xl.r_proj(sinusoids(distances, D_MODEL, dtype=WIDE))
    r = r.view(2 * SEQ, 1, HEAD, HEAD_DIM).expand(-1, BATCH, -1, -1)
    q, k, v = (x.permute(2, 0, 1, 3) for x in qkv)
    expected = theirs.rel_attn_core(q, k, v, r).permute(1, 2, 0, 3)
    torch.testing.assert_close(xl(*qkv), expected)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("buckets", "far"), [(32, 128), (10, 37), (4, 3)])
def test_t5_buckets_agree_with_hugging_face(bidirectional, buckets, far):
    from transformers.models.t5.modeling_t5 import T5Attention

    offset = torch.arange(-501, 502).view(17, -1)
    sizes = {"num_buckets": buckets, "max_distance": far}
    sizes["bidirectional"] = bidirectional
    theirs = T5Attention._relative_position_bucket(offset, **sizes)
    assert torch.equal(t5_bucket(offset, **sizes), theirs)


def test_t5_has_32_buckets_up_to_128_on_both_sides_unless_told():
    offset = torch.arange(-501, 502)
    told = t5_bucket(
        offset, num_buckets=32, max_distance=128, bidirectional=True
    )
    assert torch.equal(t5_bucket(offset), told)


@pytest.mark.parametrize("decoder", [False, True])
def test_the_t5_bias_agrees_with_hugging_face(decoder):
    from transformers.models.t5.modeling_t5 import T5Attention, T5Config

    config = T5Config(d_model=13, d_kv=7, num_heads=HEAD, is_decoder=decoder)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = T5Bias(HEAD, bidirectional=not decoder)
    ours.weight.data = theirs.relative_attention_bias.weight.data
    expected = theirs.compute_bias(151, 151)[0]
    torch.testing.assert_close(ours(151), expected)


@pytest.mark.parametrize("heads", [1, 2, 3, 7, 8, 12])
def test_alibi_agrees_with_hugging_face_bloom_under_a_causal_mask(heads):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    # Theirs is slope · key, the same for every query: softmax cannot tell.
    theirs = build_alibi_tensor(torch.ones(1, SEQ), heads, WIDE)
    ours = alibi_bias(heads, SEQ, dtype=WIDE)
    causal = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    torch.testing.assert_close(
        hidden(ours, causal).softmax(-1), hidden(theirs, causal).softmax(-1)
    )


def test_a_bias_is_pytorchs_float_mask(qkv, causal):
    q, k, v = qkv
    bias = torch.randn(HEAD, SEQ, SEQ, dtype=WIDE)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    for mask in (None, causal):
        torch.testing.assert_close(
            biased_attention(q, k, v, bias, mask),
            sdpa(q, k, v, attn_mask=hidden(bias, mask)),
        )
    torch.testing.assert_close(
        biased_attention(q, k, v, bias, scale=1.0),
        sdpa(q, k, v, attn_mask=bias, scale=1.0),
    )


# Cases one can do on paper.


def test_offsets_are_key_minus_query():
    assert offsets(3).tolist() == [[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]


def test_the_slopes_of_eight_heads_are_powers_of_one_half():
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]


def test_the_slopes_of_three_heads_are_two_and_one_in_between():
    assert alibi_slopes(3).tolist() == [2**-4, 2**-8, 2**-2]


def test_alibi_of_one_head_on_paper():
    expected = [[[0, -1, -2], [-1, 0, -1], [-2, -1, 0]]]
    assert (alibi_bias(1, 3) * 2**8).tolist() == expected


def test_t5_buckets_on_paper():
    # 8 a side: 0…3 alone, then 4 · 4^(i / 4): from 4, 5.7, 8 and 11.3 on.
    sizes = {"num_buckets": 16, "max_distance": 16}
    back = t5_bucket(-torch.arange(20), **sizes).tolist()
    assert back == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, *[7] * 8]
    ahead = t5_bucket(torch.arange(1, 20), **sizes).tolist()
    assert ahead == [b + 8 for b in back[1:]]


def test_a_decoder_has_one_bucket_for_itself_and_the_future():
    ahead = t5_bucket(torch.arange(5), bidirectional=False)
    assert ahead.tolist() == [0] * 5


def test_shaw_clips_far_offsets_to_the_outermost_rows():
    rows = Shaw(HEAD_DIM, 1).rows(4)
    assert rows.tolist() == [
        [1, 2, 2, 2],
        [0, 1, 2, 2],
        [0, 0, 1, 2],
        [0, 0, 0, 1],
    ]


def test_shift_reads_one_column_a_distance_as_one_column_a_key():
    columns = torch.tensor([2.0, 1, 0, -1, -2])  # i - j, from 2 down to -2
    shifted = shift(columns.expand(3, 5))
    assert shifted.tolist() == [[0, -1, -2], [1, 0, -1], [2, 1, 0]]
    assert shift(torch.tensor([[7.0]])).tolist() == [[7]]


# Invariants.


def test_a_bias_of_zero_is_plain_attention(qkv):
    torch.testing.assert_close(
        biased_attention(*qkv, torch.zeros(1, dtype=WIDE)),
        scaled_dot_product_attention(*qkv),
    )


def test_tables_of_zeros_leave_plain_attention(qkv, shaw, xl):
    for scheme in (shaw, xl):
        for table in scheme.parameters():
            table.data.zero_()
        expected = scaled_dot_product_attention(*qkv)
        torch.testing.assert_close(scheme(*qkv), expected)


def test_a_bias_depends_on_the_offset_only():
    biases = [alibi_bias(HEAD, 17), T5Bias(HEAD)(17)]
    for bias in biases:
        for head in bias:
            assert torch.equal(head[1:, 1:], head[:-1, :-1])


def test_a_window_of_a_longer_sequence_sees_the_same_positions(qkv, shaw, xl):
    q, k, v = torch.randn(3, HEAD, 13, HEAD_DIM, dtype=WIDE)
    inside = torch.zeros(13, 13, dtype=torch.bool)
    inside[4:9, 4:9] = True
    for scheme in (shaw, xl):
        part = (x[..., 4:9, :] for x in (q, k, v))
        whole = scheme(q, k, v, inside)[..., 4:9, :]
        torch.testing.assert_close(whole, scheme(*part))


def test_order_matters_to_each_scheme(qkv, shaw, xl):
    order = torch.tensor([3, 1, 4, 0, 2])
    t5 = T5Bias(HEAD).to(WIDE)
    alibi = alibi_bias(HEAD, SEQ, dtype=WIDE)
    for scheme in (
        shaw,
        xl,
        lambda *x: biased_attention(*x, alibi),
        lambda *x: biased_attention(*x, t5(SEQ)),
    ):
        shuffled = scheme(*(x[..., order, :] for x in qkv))
        assert not torch.allclose(shuffled, scheme(*qkv)[..., order, :])


def test_a_query_that_may_look_at_nobody_gets_zeros(qkv, shaw, xl):
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool)
    mask[2] = False
    bias = torch.randn(HEAD, SEQ, SEQ, dtype=WIDE)
    for scheme in (shaw, xl, lambda *x: biased_attention(*x[:3], bias, x[3])):
        output = scheme(*qkv, mask)
        assert not output[..., 2, :].any()
        assert output[..., 1, :].all()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_gradients_are_finite_where_nobody_may_be_looked_at(qkv, shaw, xl):
    nobody = torch.zeros(SEQ, SEQ, dtype=torch.bool)
    for scheme in (shaw, xl):
        inputs = qkv.clone().requires_grad_()
        with torch.autograd.detect_anomaly(check_nan=True):
            scheme(*inputs, nobody).sum().backward()
        assert not inputs.grad.any()


def test_tables_begin_with_the_spread_they_should():
    assert abs(T5Bias(1009).weight.std() / 0.02 - 1) < 0.02
    shaw = Shaw(16, 1009)
    for table in (shaw.keys, shaw.values):
        assert abs(table.std() * 4 - 1) < 0.02


def test_the_map_of_sinusoids_has_no_bias(xl):
    assert xl.r_proj.bias is None


def test_every_table_learns(qkv, shaw, xl):
    t5 = T5Bias(HEAD).to(WIDE)
    shaw(*qkv).square().sum().backward()
    xl(*qkv).square().sum().backward()
    biased_attention(*qkv, t5(SEQ)).square().sum().backward()
    for scheme in (shaw, xl):
        for name, table in scheme.named_parameters():
            assert table.grad.any(dim=-1).all(), name
    used = t5.weight.grad.any(dim=-1).nonzero().flatten().tolist()
    assert used == [0, 1, 2, 3, 4, 17, 18, 19, 20]


def test_no_relative_scheme_has_a_longest_length(shaw, xl):
    q, k, v = torch.randn(3, HEAD, 211, HEAD_DIM, dtype=WIDE)
    for scheme in (shaw, xl):
        assert scheme(q, k, v).isfinite().all()
    assert T5Bias(HEAD)(211).isfinite().all()


def test_new_tensors_stand_where_the_input_stands():
    q, k, v = torch.zeros(3, HEAD, SEQ, HEAD_DIM, device="meta")
    schemes = (Shaw(HEAD_DIM, CLIP), TransformerXL(D_MODEL, HEAD, HEAD_DIM))
    for scheme in schemes:
        assert scheme.to("meta")(q, k, v).is_meta
    assert T5Bias(HEAD).to("meta")(SEQ).is_meta
    t5, shaw = T5Bias(HEAD), Shaw(HEAD_DIM, CLIP)
    found = t5(SEQ), shaw.rows(SEQ)
    with torch.device("meta"):  # Where new tensors are made, unless told.
        again = t5(SEQ), shaw.rows(SEQ)
    assert all(map(torch.equal, again, found))
    assert alibi_bias(HEAD, SEQ, device="meta").is_meta


# Bad input.


@pytest.mark.bad_input
def test_a_mask_of_numbers_is_refused(qkv, shaw, xl, causal):
    bias = torch.zeros(1, dtype=WIDE)
    for scheme in (
        shaw,
        xl,
        lambda *x: biased_attention(*x[:3], bias, x[3]),
    ):
        with pytest.raises(TypeError, match=r"mask: .*True = may attend"):
            scheme(*qkv, causal.float())
        with pytest.raises(ValueError, match=r"mask: .*\(2, 3, 5, 5\).*\(3,"):
            scheme(*qkv, causal[:3, :3])


@pytest.mark.bad_input
def test_inputs_that_do_not_fit_are_refused_by_name(qkv, shaw, xl):
    q, k, v = qkv
    for scheme in (shaw, xl):
        with pytest.raises(ValueError, match=r"k: .*\(2, 3, 5, 7\).*\(2, 3, 3"):
            scheme(q, k[..., :3, :], v)
        with pytest.raises(
            ValueError, match=r"v: .*\(2, 3, 5, 7\), got \(2, 3, 3"
        ):
            scheme(q, k, v[..., :3, :])
        match = r"^k: expected .*float64 as q has, .*float32"
        with pytest.raises(TypeError, match=match):
            scheme(q, k.float(), v)
        with pytest.raises(TypeError, match=r"^k: .*floating.*int64"):
            scheme(q, k.long(), v)
        match = r"^k: .* \(\.\.\., head, seq, head_dim\), got \(7,\)$"
        with pytest.raises(ValueError, match=match):
            scheme(q, k[0, 0, 0], v)
        match = r"^v: expected .*float64 as k has, .*float32"
        with pytest.raises(TypeError, match=match):
            scheme(q, k, v.float())
        with pytest.raises(TypeError, match=r"q: .*float64 as the .*float32"):
            scheme(*qkv.float())
        with pytest.raises(ValueError, match=r"q: .*cpu.*got meta"):
            scheme(*qkv.to("meta"))
        with pytest.raises(TypeError, match=r"v: .*floating.*int64"):
            scheme(q, k, v.long())
        match = (
            r"^q: .* \(\.\.\., head, seq, head_dim\) = \(\.\.\., 7\), got .*, 3"
        )
        with pytest.raises(ValueError, match=match):
            scheme(q[..., :3], k, v)
    match = r"^v: .* \(\.\.\., key, d_v\) = \(\.\.\., 7\), got \(2, 3, 5, 3\)"
    with pytest.raises(ValueError, match=match):
        shaw(q, k, v[..., :3])
    with pytest.raises(ValueError, match=r"^v: .*key, d_v\), got \(7,\)$"):
        xl(q, k, v[0, 0, 0])


@pytest.mark.bad_input
def test_another_number_of_heads_is_refused(qkv, xl):
    q, k, v = (x[:, :2] for x in qkv)
    with pytest.raises(ValueError, match=r"q: .*3 heads, got \(2, 2, 5, 7\)"):
        xl(q, k, v)


@pytest.mark.bad_input
def test_a_bias_that_does_not_fit_is_refused(qkv):
    q, k, v = qkv
    for shape in ((HEAD, SEQ, 3), (13, BATCH, HEAD, SEQ, SEQ)):
        match = r"^bias: .* to \(\.\.\., query, key\) = \(2, 3, 5, 5\), got"
        with pytest.raises(ValueError, match=match):
            biased_weights(q, k, torch.zeros(shape, dtype=WIDE))
    match = r"bias: .*float64 as q has, .*float32"
    with pytest.raises(TypeError, match=match):
        biased_weights(q, k, torch.zeros(SEQ, SEQ))
    with pytest.raises(TypeError, match=r"bias: expected .*got list"):
        biased_weights(q, k, [0.0])
    bias = torch.zeros(SEQ, SEQ, dtype=WIDE)
    match = r"^k: .* \(\.\.\., key, d_k\) = \(\.\.\., 7\), got \(2, 3, 5, 3\)"
    with pytest.raises(ValueError, match=match):
        biased_weights(q, k[..., :3], bias)
    with pytest.raises(ValueError, match=r"^q: .* query, d_k\), got \(7,\)$"):
        biased_weights(q[0, 0, 0], k, bias)
    match = r"^k: expected .*float64 as q has, .*float32"
    with pytest.raises(TypeError, match=match):
        biased_weights(q, k.float(), bias)
    with pytest.raises(ValueError, match=r"k: .*q = \(2, 3\), got \(4, 3\)"):
        biased_weights(q, torch.cat([k, k]), bias)
    with pytest.raises(ValueError, match=r"v: .*each key.*\(2, 3, 2, 7\)"):
        biased_attention(q, k, v[..., :2, :], bias)


@pytest.mark.bad_input
def test_buckets_that_cannot_be_are_refused():
    offset = torch.arange(3)
    for buckets, both, wanted in (
        (31, True, "an even number from 4 up"),
        (2, True, "an even number from 4 up"),
        (1, False, "2 or more"),
    ):
        sizes = {"num_buckets": buckets, "bidirectional": both}
        with pytest.raises(
            ValueError, match=f"num_buckets: expected {wanted}, got {buckets}"
        ):
            t5_bucket(offset, **sizes)
        with pytest.raises(
            ValueError, match=f"num_buckets: expected {wanted}, got {buckets}"
        ):
            T5Bias(HEAD, **sizes)
    with pytest.raises(ValueError, match=r"max_distance: .*8 near.*got 8"):
        t5_bucket(offset, max_distance=8)
    with pytest.raises(TypeError, match=r"offset: .*integers.*float32"):
        t5_bucket(offset.float())
    with pytest.raises(TypeError, match=r"offset: .*integers, got list"):
        t5_bucket([0, 1])


@pytest.mark.bad_input
def test_sizes_of_tables_are_refused_by_name():
    offset = torch.arange(3)
    for wrong, error in ((0, ValueError), (8.0, TypeError)):
        for make, name in (
            (lambda n: t5_bucket(offset, num_buckets=n), "num_buckets"),
            (lambda n: t5_bucket(offset, max_distance=n), "max_distance"),
            (lambda n: Shaw(n, CLIP), "head_dim"),
            (lambda n: Shaw(HEAD_DIM, n), "clip"),
            (lambda n: TransformerXL(n, HEAD, HEAD_DIM), "d_model"),
            (lambda n: TransformerXL(D_MODEL, n, HEAD_DIM), "num_heads"),
            (lambda n: TransformerXL(D_MODEL, HEAD, n), "head_dim"),
        ):
            with pytest.raises(error, match=f"^{name}: expected"):
                make(wrong)


@pytest.mark.bad_input
def test_columns_that_are_no_distances_are_refused():
    with pytest.raises(ValueError, match=r"by_distance: .*9 columns.*got 8"):
        shift(torch.zeros(5, 8))


@pytest.mark.bad_input
def test_a_mask_on_another_device_is_named(qkv, shaw, xl, causal):
    for scheme in (shaw, xl):
        with pytest.raises(ValueError, match=r"mask: .* on cpu, .* on meta"):
            scheme(*qkv, causal.to("meta"))


@pytest.mark.bad_input
def test_what_is_no_tensor_or_empty_is_named(qkv, xl):
    q, k, v = qkv
    with pytest.raises(TypeError, match=r"bias: expected .*got NoneType"):
        biased_attention(q, k, v, None)
    with pytest.raises(TypeError, match=r"by_distance: expected .*got list"):
        shift([1])
    match = r"^by_distance: .* \(\.\.\., seq, offset\), got \(5,\)$"
    with pytest.raises(ValueError, match=match):
        shift(torch.ones(5))
    with pytest.raises(ValueError, match=r"q: expected .*got \(2, 3, 0, 7\)"):
        xl(*(x[:, :, :0] for x in qkv))
