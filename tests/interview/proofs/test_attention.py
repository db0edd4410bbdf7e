"""What the answers of chapter 03 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import answers, shown
from torch.testing import assert_close

from companion import attention, costs

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, D_IN, HIDDEN, D_MODEL, VOCAB = 2, 7, 5, 3, 11, 13


def test_one_new_word_of_7_changes_the_weights_of_all_7():
    x = torch.randn(7, D_MODEL)
    changed = x.clone()
    changed[2] = torch.randn(D_MODEL)
    before = attention.attention_weights(x, x)
    after = attention.attention_weights(changed, changed)
    assert ((before - after).abs().sum(-1) > 1e-3).sum() == 7


def test_a_worked_example_of_one_row():
    scores = torch.tensor([1.2, 0.5, 1.8, 0.3])
    weights = attention.softmax(scores)
    wrong = (
        (scores[2] / scores.sum()),
        attention.softmax(scores / 2)[2],
        1,
        scores[2].exp(),
    )
    answers("attention-a-row-by-hand", weights[2], *wrong)
    column = torch.tensor([0.1, 0.2, 0.3, 0.4])
    wrong = (column.mean(), column[2], (weights[2] * column[2]))
    answers("attention-an-output-by-hand", (weights @ column), *wrong)


def test_the_variance_of_a_score_before_scaling():
    q, k = torch.randn(2, 200_000, 64).unbind()
    scores = (q * k).sum(-1)
    variance = scores.var().item()
    assert variance == pytest.approx(64, abs=0.5)
    tied = 64 * torch.randn(1_000_000) * torch.randn(1_000_000)
    assert tied.var().item() == pytest.approx(4096, rel=0.02)
    name = "attention-variance-of-a-score"
    answers(name, 64, math.sqrt(64), 64 / 64, 64 / 2, 64**2)


def test_dividing_by_d_k_leaves_a_standard_deviation_of_one_over_its_root():
    q, k = torch.randn(2, 200_000, 64).unbind()
    scores = (q * k).sum(-1) / 64
    assert scores.std().item() == pytest.approx(0.125, abs=0.001)
    name = "attention-spread-after-dividing-by-d-k"
    answers(name, math.sqrt(64) / 64, 1, 64 / 64**2, math.sqrt(64))


def test_the_factor_depends_on_its_assumptions():
    d = 512
    aligned = torch.randn(20_000, d).square().sum(-1)  # q = k
    assert aligned.mean().item() == pytest.approx(d, abs=1)
    q, k = torch.randn(500, 1, d), torch.randn(500, 100, d)
    even = attention.attention_weights(q, k, scale=1 / d)
    assert round(even.amax(-1).mean().item(), 3) == 0.011


def test_without_scaling_most_gradients_vanish_and_a_few_spike():
    d_k = 1024
    for seed in range(3):
        largest = {}
        for scale in (1.0, d_k**-0.5):
            torch.manual_seed(seed)
            q = torch.randn(1024, 1, d_k, requires_grad=True)
            k, g = torch.randn(1024, 32, d_k), torch.randn(1024, 1, 32)
            weights = attention.attention_weights(q, k, scale=scale)
            weights.backward(g)
            jacobian = attention.softmax_jacobian(weights.detach())
            at_scores = (g.unsqueeze(-2) @ jacobian).norm(dim=-1)
            dead = (at_scores < 1e-3).float().mean().item()
            assert dead == pytest.approx(0.63 if scale == 1 else 0, abs=0.03)
            largest[scale] = q.grad.norm(dim=-1).max().item()
        assert 40 < largest[1.0] / largest[d_k**-0.5] < 75
    norms = [jacobian_norm(lead) for lead in (5.0, 10.0, 200.0)]
    assert norms == [
        pytest.approx(0.0259, abs=1e-4),
        pytest.approx(1.8e-4, abs=1e-5),
        0,
    ]


def jacobian_norm(lead):
    """Of a softmax over four scores, one of which leads."""
    weights = attention.softmax(torch.tensor([lead, 0, 0, 0]))
    jacobian = attention.softmax_jacobian(weights)
    return torch.linalg.matrix_norm(jacobian, ord=2).item()


@pytest.mark.parametrize(
    ("dtype", "limit"), [(torch.float16, 11.1), (torch.float32, 88.8)]
)
def test_where_the_exponential_overflows_in_each_precision(dtype, limit):
    below, above = torch.tensor([limit - 0.1, limit], dtype=dtype).exp()
    assert below.isfinite()
    assert above.isinf()
    scores = torch.tensor([limit, 0.0], dtype=dtype)
    assert (scores.exp() / scores.exp().sum()).isnan().any()
    assert attention.softmax(scores).isfinite().all()


def test_the_scores_of_4096_positions_take_64_mebibytes():
    x = torch.empty(4096, D_MODEL, device="meta")
    mebibytes = {
        dtype: (x.to(dtype) @ x.to(dtype).T).nbytes / 2**20
        for dtype in (torch.float32, torch.float16)
    }
    whole = mebibytes[torch.float32]
    half = mebibytes[torch.float16]
    answers(
        "attention-memory-of-the-scores", whole, whole / 4, whole / 4096, half
    )


def test_a_mask_after_the_softmax_leaves_rows_that_do_not_sum_to_one():
    scores = torch.randn(SEQ, D_IN)
    mask = torch.arange(D_IN) < 3
    late = scores.softmax(-1) * mask
    assert (late.sum(-1) < 0.99).all()
    right = attention.masked_softmax(scores, mask)
    assert_close(right.sum(-1), torch.ones(SEQ))
    # The scale may come anywhere before the softmax.
    late, early = (scores.masked_fill(~mask, -torch.inf), scores / 3)
    assert_close((late / 3).softmax(-1), attention.masked_softmax(early, mask))
    # A key of zeros is not hidden.
    q, k = torch.randn(SEQ, D_MODEL), torch.randn(D_IN, D_MODEL)
    k[3:] = 0
    assert (attention.attention_weights(q, k)[:, 3:] > 0).all()


def test_a_nan_wiped_out_is_in_the_gradient_only_if_infinity_was_added():
    hidden = torch.zeros(SEQ, D_IN, dtype=torch.bool)
    hidden[2] = True
    bias = torch.zeros(SEQ, D_IN).masked_fill(hidden, -torch.inf)
    ways = {
        "filled": lambda scores: scores.masked_fill(hidden, -torch.inf),
        "added": lambda scores: scores + bias,
    }
    found = {}
    for way, hide in ways.items():
        scores = torch.randn(SEQ, D_IN, requires_grad=True)
        weights = hide(scores).softmax(-1).nan_to_num(0)
        weights.square().sum().backward()
        found[way] = scores.grad.isfinite().all().item()
    assert found == {"filled": True, "added": False}
    with pytest.raises(RuntimeError, match="overflow"):
        torch.zeros(2).half().masked_fill(torch.tensor([True, False]), -1e9)


def test_tied_queries_and_keys_give_symmetric_scores_peaked_on_the_diagonal():
    on_diagonal = 0
    for _ in range(100):
        x, w = torch.randn(SEQ, D_MODEL), torch.randn(D_MODEL, D_IN)
        tied = (x @ w) @ (x @ w).T
        assert_close(tied, tied.T)
        assert tied.argmax().item() % (SEQ + 1) == 0
        untied = (x @ w) @ (x @ torch.randn(D_MODEL, D_IN)).T
        on_diagonal += untied.argmax().item() % (SEQ + 1) == 0
    assert on_diagonal < 50
    weights = tied.softmax(-1)
    assert not torch.allclose(weights, weights.T)


def test_a_float_mask_of_zeros_and_ones_hides_nothing_in_pytorch():
    q, k, v = torch.randn(3, 1, 1, SEQ, D_MODEL).unbind()
    triangle = torch.ones(SEQ, SEQ).tril()
    changed = v.clone()
    changed[..., 4:, :] += 1
    leaks = {}
    for mask in (triangle, triangle.bool()):
        before = F.scaled_dot_product_attention(q, k, v, mask)
        after = F.scaled_dot_product_attention(q, k, changed, mask)
        leaks[mask.dtype] = not torch.equal(
            before[..., :4, :], after[..., :4, :]
        )
    assert leaks == {torch.float32: True, torch.bool: False}
    added = q @ k.mT / math.sqrt(D_MODEL) + triangle
    assert_close(
        F.scaled_dot_product_attention(q, k, v, triangle), added.softmax(-1) @ v
    )


def test_a_linear_kernel_saves_the_square_and_cannot_point():
    def phi(x):
        return F.elu(x) + 1

    q, k, v = torch.randn(3, 100, 64, dtype=torch.float64).unbind()
    assert_close((phi(q) @ phi(k).T) @ v, phi(q) @ (phi(k).T @ v))
    assert costs.macs("attention", 4096, 64) == 64 * (2 * 4096 * 64**2)
    for longer in (3, 10):
        own = longer * k[0]
        assert attention.softmax(k @ own / 8)[0] > 0.99
        linear = phi(k) @ phi(own)
        assert (linear / linear.sum()).max() < 0.03
    even = torch.zeros(100)
    assert even.sigmoid().sum() == 50
    biased = (even - math.log(100)).sigmoid().sum().item()
    assert biased == pytest.approx(1, abs=0.01)


def test_a_lead_of_five_over_three_and_over_ninety_nine():
    def weight(lead, rivals):
        return attention.softmax(torch.tensor([lead, *[0.0] * rivals]))[0]

    wrong = weight(5.0, 3).item(), 1, 5 / (5 + 99), 1 / 100
    name = "attention-a-lead-over-ninety-nine"
    answers(name, weight(5.0, 99), *wrong)
    assert round(math.exp(5), 1) == 148.4
    assert weight(8.5, 99).item() == pytest.approx(0.98, abs=5e-4)
    assert round(math.log(33), 1) == 3.5


def test_the_slope_of_a_weight_of_nine_tenths():
    jacobian = attention.softmax_jacobian(torch.tensor([0.9, 0.1]))
    even = attention.softmax_jacobian(torch.tensor([0.5, 0.5]))
    own, other = jacobian[0].tolist()
    wrong = 0.9, 0.9**2, even[0, 0], other
    answers("attention-slope-of-a-weight", own, *wrong)
    norm = torch.linalg.matrix_norm(jacobian, ord=2).item()
    assert norm == pytest.approx(0.18)
    nearly_sure = attention.softmax_jacobian(torch.tensor([0.99, 0.01]))
    assert nearly_sure[0, 0].item() == pytest.approx(0.0099, abs=1e-6)


def test_with_keys_as_values_what_is_not_in_the_key_is_never_handed_over():
    x = torch.randn(SEQ, D_MODEL)
    w_q, w_k, w_v = torch.randn(3, D_MODEL, HIDDEN).unbind()
    # A change of position 2 that its key does not show.
    unseen = torch.linalg.svd(w_k.T).Vh[-1]
    changed = x.clone()
    changed[2] += 9 * unseen
    q, k = x @ w_q, x @ w_k
    assert_close(changed @ w_k, k, atol=1e-4, rtol=0)
    attend = attention.scaled_dot_product_attention
    assert_close(
        attend(q, changed @ w_k, changed @ w_k),
        attend(q, k, k),
        atol=1e-4,
        rtol=0,
    )
    moved = attend(q, k, changed @ w_v) - attend(q, k, x @ w_v)
    assert moved.abs().max() > 0.01


def test_a_softmax_or_attention_that_is_broken_has_the_symptom_told():
    q, k = torch.zeros(1, D_IN), torch.zeros(5, D_IN)
    mask = torch.tensor([True, True, True, False, False])
    attend = shown("attention-padding-takes-a-share")
    share = attend(q, k, torch.eye(5), mask)
    assert share[0, 3:].sum().item() == pytest.approx(0.4)
    # And after the softmax, the row is left with the rest.
    late = torch.zeros(5).softmax(-1) * mask
    assert late.sum().item() == pytest.approx(0.6)

    loud = shown("attention-a-loud-pad")
    scores = torch.randn(1, 5)
    assert_close(loud(scores, mask), attention.masked_softmax(scores, mask))
    scores[0, 3] = 1e4
    assert loud(scores, mask)[0, :3].isnan().all()
    scores = torch.zeros(1, 5).half()
    scores[0, 3] = 60
    assert (scores.softmax(-1) * mask == 0).all()

    scores = torch.tensor([math.log(9), 0.0], requires_grad=True)
    weights = shown("attention-right-weights-wrong-slopes")(scores, -1)
    assert_close(weights, torch.tensor([0.9, 0.1]))
    (found,) = torch.autograd.grad(weights[0], scores)
    assert_close(found, torch.tensor([0.9, 0.0]))
