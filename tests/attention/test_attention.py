"""Scaled dot-product attention: PyTorch agrees, paper agrees, rules hold."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.attention import (
    attention_weights,
    masked_softmax,
    scaled_dot_product_attention,
    softmax,
    softmax_jacobian,
)

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, HEAD, QUERY, KEY, D_K, D_V = 2, 3, 5, 7, 11, 13


@pytest.fixture
def qkv():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return (
        normal(BATCH, HEAD, QUERY, D_K),
        normal(BATCH, HEAD, KEY, D_K),
        normal(BATCH, HEAD, KEY, D_V),
    )


@pytest.fixture
def mask():
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(BATCH, 1, QUERY, KEY, generator=generator) < 0.5
    mask[..., 0] = True  # Nobody is left without a key.
    return mask


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


# An oracle: PyTorch agrees.


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_softmax_agrees_with_pytorch_along_any_axis(dim):
    scores = torch.randn(3, 5, 7)
    torch.testing.assert_close(softmax(scores, dim), scores.softmax(dim))


@pytest.mark.parametrize("masked", [False, True])
def test_attention_agrees_with_pytorch(qkv, mask, masked):
    mask = mask if masked else None
    torch.testing.assert_close(
        scaled_dot_product_attention(*qkv, mask),
        F.scaled_dot_product_attention(*qkv, attn_mask=mask),
    )


def test_gradients_agree_with_pytorch(qkv, mask):
    ours = [x.clone().requires_grad_() for x in qkv]
    theirs = [x.clone().requires_grad_() for x in qkv]
    scaled_dot_product_attention(*ours, mask).square().sum().backward()
    F.scaled_dot_product_attention(*theirs, mask).square().sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def test_jacobian_agrees_with_autograd():
    scores = torch.randn(7, dtype=torch.float64)
    torch.testing.assert_close(
        softmax_jacobian(softmax(scores)),
        torch.autograd.functional.jacobian(softmax, scores),
    )


# Cases one can do on paper.


def test_two_equal_scores_share_the_weight():
    assert softmax(torch.tensor([3.0, 3.0])).tolist() == [0.5, 0.5]


def test_a_score_higher_by_ln_3_gets_three_quarters():
    weights = softmax(torch.tensor([0.0, math.log(3)]))
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.75]))


def test_the_jacobian_of_two_equal_weights_is_a_quarter_everywhere():
    jacobian = softmax_jacobian(torch.tensor([0.5, 0.5]))
    assert jacobian.tolist() == [[0.25, -0.25], [-0.25, 0.25]]


def test_attention_on_paper():
    # d_k = 4, so the scale is 1/2 and the scores are 0 and ln 3.
    q = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
    k = torch.tensor([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    v = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 8.0]])
    torch.testing.assert_close(
        scaled_dot_product_attention(q, k, v), torch.tensor([[1.0, 3.0, 8.0]])
    )


def test_the_first_position_under_a_causal_mask_copies_its_own_value():
    x = torch.randn(5, 5)
    v = torch.randn(5, 3)
    output = scaled_dot_product_attention(x, x, v, causal(5))
    torch.testing.assert_close(output[0], v[0])


# Invariants.


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_huge_scores_stay_finite_in_every_precision(dtype):
    scores = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype)
    assert softmax(scores).tolist() == [[1.0, 0.0, 0.0]]
    hidden = torch.tensor([[False, True, True]])
    assert masked_softmax(scores, hidden).tolist() == [[0.0, 0.0, 1.0]]


def test_a_row_far_below_another_is_shared_out_as_if_it_were_alone():
    far = torch.tensor([[0.0, 0.0], [1000.0, 1000.0]])
    assert softmax(far).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_attention_needs_no_axis_of_heads(qkv):
    alone = [x[:, 0] for x in qkv]
    torch.testing.assert_close(
        scaled_dot_product_attention(*alone),
        scaled_dot_product_attention(*qkv)[:, 0],
    )


def test_a_product_beyond_half_precision_does_not_overflow_before_the_scale():
    # 512 · 16 · 16 = 131072 is more than float16 holds; over √512 it is not.
    x = torch.full((2, 512), 16.0, dtype=torch.float16)
    assert attention_weights(x, x).tolist() == [[0.5, 0.5]] * 2


def test_self_attention_is_permutation_equivariant(qkv):
    x = qkv[1]
    order = torch.randperm(KEY)
    torch.testing.assert_close(
        scaled_dot_product_attention(*[x[..., order, :]] * 3),
        scaled_dot_product_attention(x, x, x)[..., order, :],
    )


def test_a_masked_key_cannot_leak_into_any_output(qkv, mask):
    q, k, v = qkv
    visible = mask.clone()
    visible[..., 3] = False
    noisy_k, noisy_v = k.clone(), v.clone()
    noisy_k[..., 3, :] += 1000
    noisy_v[..., 3, :] -= 1000
    assert torch.equal(
        scaled_dot_product_attention(q, noisy_k, noisy_v, visible),
        scaled_dot_product_attention(q, k, v, visible),
    )


def test_a_query_that_may_look_at_nobody_gets_zeros_not_nan(qkv, mask):
    mask = mask.clone()
    mask[:, :, 2] = False
    weights = attention_weights(*qkv[:2], mask)
    assert not weights[:, :, 2].any()
    torch.testing.assert_close(
        weights[:, :, 3].sum(-1), torch.ones(BATCH, HEAD, dtype=torch.float64)
    )


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_nan_never_arises_in_the_backward_pass_of_a_fully_masked_row(qkv):
    q, k, v = (x.clone().requires_grad_() for x in qkv)
    nobody = torch.zeros(QUERY, KEY, dtype=torch.bool)
    with torch.autograd.detect_anomaly(check_nan=True):
        scaled_dot_product_attention(q, k, v, nobody).sum().backward()
    assert not q.grad.any()
    assert not k.grad.any()
    assert not v.grad.any()


def test_the_scale_is_one_over_the_root_of_d_k_unless_given(qkv):
    q, k, _ = qkv
    torch.testing.assert_close(
        attention_weights(q, k), attention_weights(q, k, scale=D_K**-0.5)
    )
    raw = attention_weights(q, k, scale=1.0)
    torch.testing.assert_close(raw, softmax(q @ k.transpose(-2, -1)))


def test_with_a_scale_of_zero_each_output_is_the_mean_of_the_values(qkv):
    output, v = scaled_dot_product_attention(*qkv, scale=0.0), qkv[2]
    torch.testing.assert_close(output[:, :, 0], v.mean(-2))


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", [torch.float32, torch.int64])
def test_a_mask_of_numbers_is_refused(qkv, mask, kind):
    with pytest.raises(TypeError, match=r"mask: .*boolean.*True = may attend"):
        scaled_dot_product_attention(*qkv, mask.to(kind))


@pytest.mark.bad_input
def test_a_list_as_a_mask_is_refused(qkv):
    with pytest.raises(TypeError, match=r"mask: .*boolean.*got list"):
        attention_weights(*qkv[:2], [[True] * KEY] * QUERY)


@pytest.mark.bad_input
def test_a_mask_of_the_wrong_shape_names_both_shapes(qkv):
    wrong = torch.ones(KEY, QUERY, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"\(2, 3, 5, 7\).*\(7, 5\)"):
        scaled_dot_product_attention(*qkv, wrong)


@pytest.mark.bad_input
def test_a_mask_that_would_enlarge_the_scores_is_refused(qkv):
    larger = torch.ones(17, BATCH, HEAD, QUERY, KEY, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"mask: .*got \(17, 2, 3, 5, 7\)"):
        scaled_dot_product_attention(*qkv, larger)


@pytest.mark.bad_input
def test_queries_and_keys_of_different_width_name_both_shapes():
    with pytest.raises(ValueError, match=r"d_k, got \(5, 11\) and \(7, 13\)"):
        attention_weights(torch.ones(5, 11), torch.ones(7, 13))


@pytest.mark.bad_input
def test_a_missing_value_is_named(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match=r"v: .*7 keys.*\(2, 3, 5, 13\)"):
        scaled_dot_product_attention(q, k, v[..., :5, :])


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_whole_numbers_are_refused_by_name(qkv, name):
    inputs = dict(zip("qkv", qkv, strict=True))
    inputs[name] = inputs[name].long()
    with pytest.raises(TypeError, match=f"{name}: .*floating.*torch.int64"):
        scaled_dot_product_attention(**inputs)


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["k", "v"])
def test_mixed_precision_is_refused_by_name(qkv, name):
    inputs = dict(zip("qkv", qkv, strict=True))
    inputs[name] = inputs[name].float()
    match = rf"{name}: expected torch\.float64.*float32"
    with pytest.raises(TypeError, match=match):
        scaled_dot_product_attention(**inputs)


@pytest.mark.bad_input
@pytest.mark.parametrize(("name", "peer"), [("k", "q"), ("v", "the weights")])
def test_another_batch_is_refused_by_name(qkv, name, peer):
    inputs = dict(zip("qkv", qkv, strict=True))
    inputs[name] = torch.cat([inputs[name]] * 2)
    match = rf"{name}: expected leading axes that fit {peer} \(2, 3, .*\(4, 3, "
    with pytest.raises(ValueError, match=match):
        scaled_dot_product_attention(**inputs)


@pytest.mark.bad_input
def test_what_is_no_axis_is_named():
    with pytest.raises(ValueError, match=r"dim: .*got 'key'"):
        softmax(torch.ones(3, 5), "key")


@pytest.mark.bad_input
@pytest.mark.parametrize("shape", [(0, QUERY, D_K), (QUERY, 0), (0, D_K)])
def test_an_empty_batch_or_sequence_is_refused(shape):
    with pytest.raises(ValueError, match="q: expected at least one entry"):
        attention_weights(torch.ones(shape), torch.ones(KEY, D_K))
    with pytest.raises(ValueError, match="k: expected at least one entry"):
        attention_weights(torch.ones(QUERY, D_K), torch.ones(shape))


@pytest.mark.bad_input
def test_a_single_key_that_is_no_row_is_refused():
    with pytest.raises(ValueError, match=r"one d_k, got \(5, 11\) and \(11,\)"):
        attention_weights(torch.ones(QUERY, D_K), torch.ones(D_K))


@pytest.mark.bad_input
def test_a_mask_on_another_device_is_refused_by_name(qkv):
    mask = torch.ones(QUERY, KEY, dtype=torch.bool, device="meta")
    with pytest.raises(ValueError, match=r"^mask: .* on cpu, .* on meta"):
        attention_weights(*qkv[:2], mask)


@pytest.mark.bad_input
def test_softmax_names_an_axis_that_does_not_exist():
    with pytest.raises(ValueError, match=r"dim: .*\(3, 5\), got 2"):
        softmax(torch.ones(3, 5), 2)


@pytest.mark.bad_input
def test_softmax_of_whole_numbers_is_refused():
    with pytest.raises(TypeError, match=r"scores: .*floating.*int64"):
        softmax(torch.ones(3, dtype=torch.int64))


@pytest.mark.bad_input
def test_softmax_over_nothing_is_refused():
    with pytest.raises(ValueError, match=r"scores: axis 1 .*\(3, 0\)"):
        softmax(torch.ones(3, 0), 1)
