"""Whatever the sizes and numbers: rules of chapter 05."""

import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    FLOATS,
    SEEDS,
    SIZES,
    ids,
    masks,
    normal,
)

from companion.attention import scaled_dot_product_attention
from companion.positions import (
    LearnedPositions,
    Shaw,
    SinusoidalPositions,
    T5Bias,
    TokenEmbedding,
    TransformerXL,
    alibi_bias,
    alibi_slopes,
    biased_attention,
    biased_weights,
    frequencies,
    offsets,
    rotate,
    rotate_complex,
    shift,
    sinusoidal,
    sinusoids,
    t5_bucket,
)

VOCAB = 11
PLACES = st.integers(-5000, 5000)
close = torch.testing.assert_close


@st.composite
def one_sequence(draw):
    """q, k and v of the heads of one sequence, and a mask for them."""
    head, seq, width = draw(FEW), draw(SIZES), draw(SIZES)
    qkv = [draw(normal(2, head, seq, width)) for _ in range(3)]
    return *qkv, draw(masks(seq, seq))


# Absolute positions.


@given(st.integers(1, 40), SIZES)
def test_frequencies_fall_from_one_in_equal_ratios(width, place):
    rate = frequencies(width)
    assert len(rate) == math.ceil(width / 2)
    assert rate[0] == 1
    close(
        rate[1:] / rate[:-1],
        rate.new_tensor(1e4 ** (-2 / width)).expand(len(rate) - 1),
    )


@given(st.lists(PLACES, min_size=1, max_size=5), st.integers(1, 20), PLACES)
def test_a_step_turns_a_sinusoid_whatever_the_place(places, pairs, step):
    here = torch.tensor(places)
    d_model = 2 * pairs
    old, new = (
        sinusoids(p, d_model, dtype=torch.float64) for p in (here, here + step)
    )
    close(
        old.square().sum(-1), torch.full([len(places)], float(pairs)).double()
    )
    # In the clock of each pair the sine stands first: turn it backwards.
    swapped = old.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    turned = rotate(swapped, torch.full_like(here, step))
    close(turned.unflatten(-1, (-1, 2)).flip(-1).flatten(-2), new, **ROUNDED)


ROUNDED = {"atol": 1e-9, "rtol": 0.0}


@given(SIZES, SIZES, SIZES)
def test_longer_tables_of_sinusoids_begin_with_the_shorter_ones(
    length, more, d_model
):
    longer = sinusoidal(length + more, d_model)
    assert torch.equal(longer[:length], sinusoidal(length, d_model))
    assert (longer.abs() <= 1).all()


@given(SIZES, SIZES, SIZES, FLOATS, st.data())
def test_what_positions_add_does_not_depend_on_the_words(
    batch, seq, d_model, dtype, data
):
    x = data.draw(normal(batch, seq, d_model, dtype=dtype))
    learned = LearnedPositions(seq + 2, d_model).to(dtype)
    for add in (SinusoidalPositions(d_model), learned):
        assert add(x).dtype == dtype
        added = (add(x) - x).double()
        expected = add(torch.zeros_like(x[:1])).double().expand_as(added)
        close(added, expected, atol=1e-5, rtol=0.0)


@given(SIZES, SIZES, FEW)
def test_a_table_of_positions_is_never_read_beyond_its_end(seq, d_model, more):
    positions = LearnedPositions(seq, d_model)
    assert torch.equal(positions(torch.zeros(seq, d_model)), positions.weight)
    with pytest.raises(
        ValueError, match=rf"^x: .*max_len={seq} pos.* {seq + more}"
    ):
        positions(torch.zeros(seq + more, d_model))


@given(ids(FEW, SIZES, low=0, high=VOCAB), SIZES)
def test_an_embedding_is_the_row_of_each_token_times_the_root(tokens, d_model):
    embedding = TokenEmbedding(VOCAB, d_model)
    rows = embedding.weight[tokens] * d_model**0.5
    close(embedding(tokens), rows)
    with pytest.raises(ValueError, match=r"^tokens: .*from 0 to 10 .*got 11"):
        embedding(torch.full_like(tokens, VOCAB))


# Rotations.


@given(FEW, SIZES, FEW, FLOATS, st.data())
def test_both_ways_to_rotate_agree_and_keep_every_length(
    batch, seq, pairs, dtype, data
):
    x = data.draw(normal(batch, seq, 2 * pairs, dtype=dtype))
    places = data.draw(ids(seq, low=-5000, high=5000))
    turned = rotate(x, places)
    assert turned.dtype == dtype
    # In 32 bits the complex form rounds the angle itself, far out.
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    close(rotate_complex(x, places), turned, atol=tolerance, rtol=0.0)
    close(turned.norm(dim=-1), x.norm(dim=-1))
    close(rotate(turned, -places), x)


@given(SIZES, FEW, PLACES, st.data())
def test_rotated_products_know_distances_and_no_places(seq, pairs, step, data):
    q, k = (data.draw(normal(seq, 2 * pairs)) for _ in range(2))
    places = data.draw(ids(seq, low=-5000, high=5000))
    here, there = (
        rotate(q, p) @ rotate(k, p).T for p in (places, places + step)
    )
    close(here, there, **ROUNDED)


@pytest.mark.bad_input
@given(SIZES, st.integers(0, 7), st.integers(0, 9))
def test_rotations_of_what_has_no_pairs_or_no_places_are_refused(
    seq, half, places
):
    positions = torch.arange(places)
    for turn in (rotate, rotate_complex):
        with pytest.raises(ValueError, match=r"^x: expected an even width"):
            turn(torch.ones(seq, 2 * half + 1), positions)
    assume(places != seq)
    with pytest.raises(ValueError, match=rf"^positions: .*\({seq},\), one"):
        rotate(torch.ones(seq, 2), positions)


# Numbers added to the scores.


@given(SIZES)
def test_an_offset_is_the_way_from_the_query_to_the_key(length):
    way = offsets(length)
    assert torch.equal(way, -way.T)
    assert way[0].tolist() == list(range(length))


@given(one_sequence(), st.floats(-99, 99), st.floats(0.1, 2))
def test_a_bias_for_all_keys_alike_changes_nothing(drawn, number, scale):
    q, k, v, mask = drawn
    rows = torch.randn(q.shape[-2], 1, dtype=q.dtype) + number
    how = {"mask": mask, "scale": scale}
    plain = scaled_dot_product_attention(q, k, v, mask, scale=scale)
    close(biased_attention(q, k, v, rows, **how), plain)
    weights = biased_weights(q, k, rows, **how)
    close(weights @ v, plain)
    assert not weights.masked_fill(mask, 0).any()


@given(st.integers(1, 70))
def test_slopes_lie_between_none_and_one_and_no_two_are_equal(num_heads):
    slopes = alibi_slopes(num_heads)
    assert len(slopes.unique()) == num_heads
    assert ((slopes > 0) & (slopes < 1)).all()


@given(SIZES, SIZES, FLOATS)
def test_alibi_takes_off_in_proportion_to_the_distance(heads, length, dtype):
    bias = alibi_bias(heads, length, dtype=dtype)
    slopes = alibi_slopes(heads).to(dtype)
    assert bias.dtype == dtype
    close(bias, -slopes[:, None, None] * offsets(length).abs())


@given(
    ids(50, low=-300, high=300),
    st.integers(2, 20),
    st.integers(0, 200),
    st.booleans(),
)
def test_buckets_widen_with_the_distance_and_never_run_out(
    offset, side, reach, both
):
    number = 2 * side if both else side
    most = side // 2 + 1 + reach
    how = {"num_buckets": number, "max_distance": most, "bidirectional": both}
    offset = offset.sort().values
    bucket = t5_bucket(offset, **how)
    assert ((bucket >= 0) & (bucket < number)).all()
    back = bucket[offset <= 0]
    assert (back.diff() <= 0).all()
    later = bucket[offset > 0]
    if both:
        assert (later.diff() >= 0).all()
        mirrored = t5_bucket(-offset[offset > 0], **how)
        assert torch.equal(later, mirrored + side)
    else:
        assert not later.any()
    assert (bucket[offset <= -most] == side - 1).all()


@given(SIZES, FEW, SEEDS)
def test_a_bias_of_t5_depends_on_the_offset_alone(length, heads, seed):
    torch.manual_seed(seed)
    bias = T5Bias(heads, num_buckets=4, max_distance=5)(length)
    assert bias.shape == (heads, length, length)
    assert torch.equal(bias[:, 1:, 1:], bias[:, :-1, :-1])


# Positions as relations.


@given(FEW, SIZES, st.data())
def test_shifting_picks_for_each_pair_its_distance(batch, seq, data):
    met = data.draw(normal(batch, seq, 2 * seq - 1))
    columns = seq - 1 + offsets(seq)
    picked = met.gather(-1, columns.expand(batch, -1, -1))
    assert torch.equal(shift(met), picked)


@given(one_sequence(), FEW, SEEDS)
def test_without_its_tables_a_relative_attention_is_a_plain_one(
    drawn, clip, seed
):
    q, k, v, mask = drawn
    torch.manual_seed(seed)
    shaw = Shaw(q.shape[-1], clip).double()
    plain = scaled_dot_product_attention(q, k, v, mask)
    row = torch.randn_like(shaw.values[0])
    shaw.keys.data.zero_()
    # One value for all offsets: all weights together take it once.
    shaw.values.data.copy_(row)
    close(shaw(q, k, v, mask), plain + row)
    xl = TransformerXL(5, q.shape[1], q.shape[-1]).double()
    xl.r_proj.weight.data.zero_()
    close(xl(q, k, v, mask), plain)
    close(xl.weights(q, k, mask) @ v, plain)


@given(one_sequence(), FEW, SEEDS)
def test_relative_positions_are_the_same_further_on(drawn, more, seed):
    q, k, v, _ = drawn
    torch.manual_seed(seed)
    width = q.shape[-1]
    seq = q.shape[-2]
    later = [torch.nn.functional.pad(x, (0, 0, more, 0)) for x in (q, k, v)]
    mask = torch.ones(seq + more, seq + more, dtype=torch.bool)
    mask[:, :more] = False
    for attend in (Shaw(width, 2), TransformerXL(5, q.shape[1], width)):
        attend = attend.double()
        close(attend(*later, mask)[..., more:, :], attend(q, k, v))
