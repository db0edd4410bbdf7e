"""Whatever the sizes and numbers: rules of chapter 03."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drawn import FEW, HALVES, SEEDS, SIZES, masks, normal

from companion.attention import (
    attention_weights,
    masked_softmax,
    scaled_dot_product_attention,
    softmax,
    softmax_jacobian,
)
from companion.multihead import (
    CAUSAL,
    Causal,
    fused_attention,
    mask_tensor,
)

close = torch.testing.assert_close


@st.composite
def asked(draw, dtype=torch.float64):
    """q, k, v and a mask that leaves everybody somebody to look at."""
    batch, head = draw(FEW), draw(FEW)
    query, key, d_k, d_v = (draw(SIZES) for _ in range(4))
    sizes = (query, d_k), (key, d_k), (key, d_v)
    qkv = [draw(normal(batch, head, *size, dtype=dtype)) for size in sizes]
    return *qkv, draw(masks(draw(st.sampled_from([1, batch])), 1, query, key))


# Softmax.


@given(normal(SIZES, SIZES, SIZES), st.integers(-3, 2), st.floats(-99, 99))
def test_softmax_agrees_with_pytorch_and_sees_differences_only(
    scores, dim, shift
):
    weights = softmax(scores, dim)
    close(weights, scores.softmax(dim))
    close(softmax(scores + shift, dim), weights)


@given(HALVES, SIZES, SIZES, st.floats(0, 3e4), st.data())
def test_softmax_is_finite_however_large_the_scores(
    dtype, rows, columns, scale, data
):
    scores = data.draw(normal(rows, columns)).clamp(-2, 2) * scale
    weights = softmax(scores.to(dtype))
    assert weights.dtype == dtype
    assert weights.isfinite().all()
    close(weights.double().sum(-1), torch.ones(rows).double(), **ROUNDING)


ROUNDING = {"atol": 2e-2, "rtol": 0.0}


@given(normal(SIZES, SIZES))
def test_the_jacobian_is_symmetric_and_loses_no_weight(scores):
    jacobian = softmax_jacobian(softmax(scores))
    close(jacobian, jacobian.mT)
    close(jacobian.sum(-1), torch.zeros_like(scores))
    norms = torch.linalg.matrix_norm(jacobian, ord=2)
    assert (norms <= 0.5 + 1e-12).all()


@given(FEW, SIZES, SIZES, st.data())
def test_to_hide_a_key_is_to_leave_it_out(batch, query, key, data):
    scores = data.draw(normal(batch, query, key))
    mask = data.draw(masks(key))
    weights = masked_softmax(scores, mask)
    assert not weights[..., ~mask].any()
    close(weights[..., mask], softmax(scores[..., mask]))


@given(FEW, SIZES, SIZES, st.data())
def test_who_sees_fewer_keys_looks_no_less_at_each_that_is_left(
    batch, query, key, data
):
    scores = data.draw(normal(batch, query, key))
    many = data.draw(masks(batch, query, key))
    few = many & data.draw(masks(query, key))
    more, less = masked_softmax(scores, few), masked_softmax(scores, many)
    assert (more[few] >= less[few] - 1e-12).all()


@given(FEW, SIZES, SIZES, st.data())
def test_who_may_see_nobody_gets_zeros_and_gives_zero_gradients(
    batch, query, key, data
):
    scores = data.draw(normal(batch, query, key)).requires_grad_()
    mask = data.draw(masks(batch, query, key, somebody=False))
    weights = masked_softmax(scores, mask)
    weights.square().sum().backward()
    blind = ~mask.any(-1)
    assert not weights[blind].any()
    assert not scores.grad[blind].any()
    assert scores.grad.isfinite().all()
    assert not scores.grad[~mask].any()


# Attention.


@given(asked(), st.one_of(st.none(), st.floats(0.01, 3)))
def test_attention_agrees_with_pytorch_whatever_the_sizes(drawn, scale):
    *qkv, mask = drawn
    ours = scaled_dot_product_attention(*qkv, mask, scale=scale)
    close(ours, F.scaled_dot_product_attention(*qkv, mask, scale=scale))


@given(asked())
def test_every_output_is_a_mixture_of_the_values_that_are_seen(drawn):
    q, k, v, mask = drawn
    weights = attention_weights(q, k, mask)
    assert (weights >= 0).all()
    close(weights.sum(-1), torch.ones(weights.shape[:-1]).double())
    output = scaled_dot_product_attention(q, k, v, mask)
    assert (output <= v.amax(-2, keepdim=True) + 1e-12).all()
    assert (output >= v.amin(-2, keepdim=True) - 1e-12).all()


@given(asked(), SEEDS)
def test_keys_and_values_may_change_places_together(drawn, seed):
    q, k, v, mask = drawn
    torch.manual_seed(seed)
    order = torch.randperm(k.shape[-2])
    moved = k[..., order, :], v[..., order, :], mask[..., order]
    close(
        scaled_dot_product_attention(q, *moved),
        scaled_dot_product_attention(q, k, v, mask),
    )


@given(asked(), st.floats(-3, 3))
def test_attention_is_linear_in_the_values(drawn, factor):
    q, k, v, mask = drawn
    other = v.flip(-1)
    mixed = scaled_dot_product_attention(q, k, v + factor * other, mask)
    parts = [scaled_dot_product_attention(q, k, x, mask) for x in (v, other)]
    close(mixed, parts[0] + factor * parts[1])


@given(asked(), FEW)
def test_hidden_keys_may_be_appended_and_change_nothing(drawn, more):
    q, k, v, mask = drawn
    longer = [F.pad(x, (0, 0, 0, more), value=9.0) for x in (k, v)]
    hidden = F.pad(mask, (0, more), value=False)
    close(
        scaled_dot_product_attention(q, *longer, hidden),
        scaled_dot_product_attention(q, k, v, mask),
    )


@pytest.mark.bad_input
@given(asked(), st.sampled_from("kv"), st.sampled_from([-1, 0, 1, 2, 3]))
def test_a_shape_that_does_not_fit_is_refused_by_name(drawn, name, axis):
    q, k, v, _ = drawn
    assume((name, axis) != ("v", 3) and (name, axis) != ("v", -1))
    # One key, one head, and one batch broadcast; two more of them never do.
    sizes = list(k.shape)
    sizes[axis] += 2
    inputs = {"q": q, "k": k, "v": v}
    assume(axis in (-1, 2, 3) or min(k.shape[axis], q.shape[axis]) > 1)
    inputs[name] = torch.ones(sizes, dtype=q.dtype)
    with pytest.raises(ValueError, match=r"^(q, k|k|v): .*got .*\("):
        scaled_dot_product_attention(**inputs)


@pytest.mark.bad_input
@given(asked(), st.sampled_from("qkv"), st.sampled_from([int, bool, list]))
def test_what_is_no_number_is_refused_by_name(drawn, name, kind):
    inputs = dict(zip("qkv", drawn, strict=False))
    x = inputs[name]
    inputs[name] = x.tolist() if kind is list else x.to(kind)
    with pytest.raises(TypeError, match=f"^{name}: expected a"):
        scaled_dot_product_attention(**inputs)


# Many heads.


@given(asked())
def test_the_fused_kernel_gathers_what_attention_gathers(drawn):
    q, k, v, mask = drawn
    for hidden in (None, mask):
        expected = scaled_dot_product_attention(q, k, v, hidden)
        close(fused_attention(q, k, v, hidden), expected)
        # A query that comes alone takes another way.
        alone = hidden if hidden is None else hidden[:, :, -1:]
        close(fused_attention(q[:, :, -1:], k, v, alone), expected[:, :, -1:])


@given(asked())
def test_what_is_causal_hides_what_the_triangle_hides(drawn):
    q, k, v, _ = drawn
    query, key = q.shape[-2], k.shape[-2]
    assume(query <= key)
    triangle = Causal().tensor(query, key)
    assert triangle.sum(-1).tolist() == [*range(key - query + 1, key + 1)]
    expected = scaled_dot_product_attention(q, k, v, triangle)
    close(fused_attention(q, k, v, CAUSAL), expected)
    hidden = mask_tensor(CAUSAL, q, k)
    close(scaled_dot_product_attention(q, k, v, hidden), expected)
