"""What the later answers of chapters 01 to 03 claim, computed.

``test_interview_proofs.py`` has the rest. A sick function of the bank runs,
returns the right shape, and breaks the contract that its symptom points at.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from answers import answers, parameters
from torch import nn

from companion import attention, costs, rnn, seq2seq
from companion.contracts import check
from companion.interview import load

# Sizes are prime and all differ, so no axis can stand in for another.
SEQ, D_IN, HIDDEN, D_MODEL = 7, 5, 3, 11


# Chapter 01


def test_a_gru_writes_exactly_what_it_does_not_keep():
    cell = nn.GRUCell(D_IN, HIDDEN)
    x, h = torch.randn(1, D_IN), torch.randn(1, HIDDEN)
    read = F.linear(x, cell.weight_ih, cell.bias_ih)
    remembered = F.linear(h, cell.weight_hh, cell.bias_hh)
    (r_x, z_x, n_x), (r_h, z_h, n_h) = (
        part.chunk(3, dim=-1) for part in (read, remembered)
    )
    z = (z_x + z_h).sigmoid()
    n = (n_x + (r_x + r_h).sigmoid() * n_h).tanh()
    torch.testing.assert_close(cell(x, h), (1 - z) * n + z * h)

    sizes = [parameters(kind(16, 32)) for kind in (nn.RNN, nn.GRU, nn.LSTM)]
    assert sizes == [1600, 4800, 6400]
    assert round(0.99**40, 2) == 0.67
    assert 0.5**40 < 1e-12


def test_after_ten_steps_a_half_open_gate_has_lost_all_but_a_thousandth():
    def steps(bias):
        """How many it takes until less than a thousandth is left."""
        lstm = rnn.LSTM(D_IN, HIDDEN)
        with torch.no_grad():
            for weight in lstm.parameters():
                weight.zero_()
            lstm.b[HIDDEN : 2 * HIDDEN] = bias
        state, left = (torch.zeros(1, HIDDEN), torch.ones(1, HIDDEN)), []
        for _ in range(200):
            _, state = lstm(torch.randn(1, 1, D_IN), state)
            left.append(state[1].max())
        return 1 + sum(share >= 1e-3 for share in left).item()

    found = [steps(bias) for bias in (0.0, 1.0, 3.0)]
    right, open_wider, open_widest = found
    name = "rnn-a-half-open-gate"
    answers(name, right, right - 1, open_wider, 0.5 / 0.001, open_widest)
    assert 0.5**right == 1 / 1024


def test_the_gradient_of_u_is_healthy_where_that_of_the_first_word_is_gone():
    for seed in range(3):
        torch.manual_seed(seed)
        network = rnn.RNN(16, 32, 1)
        x = torch.randn(1, 40, 16, requires_grad=True)
        network(x)[1][0, -1].sum().backward()
        reach = x.grad[0].norm(dim=-1)
        assert reach[0] < 1e-9 * reach[-1]
        assert network.U.grad.norm() > reach[-1]


def test_dropout_drawn_at_every_step_wipes_the_memory_and_one_mask_halves_it():
    kept = torch.rand(40, 10_000) < 0.5
    assert kept[:5].all(0).float().mean().item() == pytest.approx(
        1 / 32, rel=0.2
    )
    assert not kept.all(0).any()
    one_mask = kept[:1].expand(40, -1).all(0).float().mean()
    assert one_mask.item() == pytest.approx(0.5, abs=0.02)
    # A lower rate does not help: one number in 68 arrives.
    assert round(1 / 0.9**40) == 68


def test_a_relu_overflows_after_219_steps_of_gain_one_and_a_half():
    steps = torch.arange(1, 300)
    grown = torch.full((299,), 1.5).pow(steps)
    assert steps[grown.isinf()][0] == 219


# Chapter 02


def test_hard_attention_is_the_limit_of_soft_and_teaches_its_scores_nothing():
    states = torch.randn(3, HIDDEN)
    scores = torch.tensor([1.0, 2.0, 3.0])
    sharp = attention.softmax(10 * scores)
    assert round(attention.softmax(scores)[2].item(), 2) == 0.67
    assert sharp[2] > 0.9999
    assert attention.softmax_jacobian(sharp).abs().max() < 1e-4
    torch.testing.assert_close(
        attention.softmax(1000 * scores) @ states, states[scores.argmax()]
    )

    # A choice has no slope: a nudge of any score changes nothing at all.
    for nudge in 0.01 * torch.eye(3):
        assert torch.equal(
            states[(scores + nudge).argmax()], states[scores.argmax()]
        )


def test_the_parameters_of_an_additive_score():
    align = seq2seq.AdditiveAlignment(256, 256, 256)
    W, U, v = (parameters(part) for part in (align.W, align.U, align.v))
    wrong = W + U, W + v, 3 * W, 0
    name = "seq2seq-parameters-of-an-additive-score"
    answers(name, parameters(align), *wrong)
    assert W == 65536


def test_the_ceiling_of_a_softmax_over_cosines():
    cosines = torch.full((12,), -1.0)
    cosines[0] = 1.0
    best = math.e / (math.e + 11 / math.e)
    assert attention.softmax(cosines)[0].item() == pytest.approx(best)
    assert round(best, 3) == 0.402
    # A softmax knows no such ceiling.
    lead = torch.tensor([10.0, *[0.0] * 11])
    assert attention.softmax(lead)[0] > 0.9995


# Chapter 03


def test_a_linear_kernel_saves_the_square_and_cannot_point():
    def phi(x):
        return F.elu(x) + 1

    q, k, v = torch.randn(3, 100, 64, dtype=torch.float64).unbind()
    torch.testing.assert_close((phi(q) @ phi(k).T) @ v, phi(q) @ (phi(k).T @ v))
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
    answers(name, weight(5.0, 99).item(), *wrong)
    assert round(math.exp(5), 1) == 148.4
    assert weight(8.5, 99).item() == pytest.approx(0.98, abs=5e-4)
    assert round(math.log(33), 1) == 3.5


def test_the_slope_of_a_weight_of_nine_tenths():
    jacobian = attention.softmax_jacobian(torch.tensor([0.9, 0.1]))
    even = attention.softmax_jacobian(torch.tensor([0.5, 0.5]))
    own, other = jacobian[0].tolist()
    wrong = 0.9, 0.9**2, even[0, 0].item(), other
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
    torch.testing.assert_close(changed @ w_k, k, atol=1e-4, rtol=0)
    attend = attention.scaled_dot_product_attention
    torch.testing.assert_close(
        attend(q, changed @ w_k, changed @ w_k),
        attend(q, k, k),
        atol=1e-4,
        rtol=0,
    )
    moved = attend(q, k, changed @ w_v) - attend(q, k, x @ w_v)
    assert moved.abs().max() > 0.01


# The sick functions


SICK = {
    "rnn-states-all-alike": "Every step shows the last state",
    "rnn-deaf-to-the-past": "cut it",
    "seq2seq-right-one-at-a-time": "asked with the query of sentence 0",
    "seq2seq-never-sure": "The lengths are divided out",
    "attention-padding-takes-a-share": "set to 0, a score like any other",
    "attention-a-loud-pad": "only wiped out after it",
    "attention-right-weights-wrong-slopes": "gradient of `scores` is wrong",
}


def sick(name):
    """The component of a code question, and its stub as a function."""
    chapter = name.partition("-")[0]
    task = next(q.task for q in load(chapter) if q.id == name)
    scope = {"torch": torch}
    exec(task.stub, scope)
    (fn,) = (v for k, v in scope.items() if k.startswith("my_"))
    return task.component, fn


@pytest.mark.parametrize(("name", "says"), SICK.items())
def test_a_sick_function_breaks_the_contract_that_its_symptom_points_at(
    name, says
):
    report = str(check(*sick(name)))
    assert says in " ".join(report.split())


def test_a_sick_function_has_the_symptom_that_its_question_tells():
    x, h0 = torch.randn(2, SEQ, D_IN), torch.zeros(2, HIDDEN)
    W, b = torch.randn(HIDDEN, D_IN), torch.randn(HIDDEN)
    U = torch.linalg.qr(torch.randn(HIDDEN, HIDDEN)).Q
    right = rnn.unroll(x, h0, W, U, b)
    alike = sick("rnn-states-all-alike")[1](x, h0, W, U, b)
    assert (alike == alike[:, -1:]).all()
    torch.testing.assert_close(alike[:, -1], right[:, -1])

    x.requires_grad_()
    deaf = sick("rnn-deaf-to-the-past")[1](x, h0, W, U, b)
    torch.testing.assert_close(deaf, right)
    deaf[:, -1].sum().backward()
    arrives = x.grad.abs().sum((0, 2)) > 0
    assert arrives.tolist() == [False] * (SEQ - 1) + [True]

    query, keys = 9 * torch.randn(2, D_IN), 9 * torch.randn(2, 12, D_IN)
    weights = sick("seq2seq-never-sure")[1](query, keys)
    assert weights.max() < 0.41
    one = sick("seq2seq-right-one-at-a-time")[1](query, keys)
    expected = seq2seq.dot_alignment(query, keys)
    same = torch.isclose(one, expected).all(-1)
    assert same.tolist() == [True, False]


def test_a_sick_softmax_or_attention_has_the_symptom_told():
    q, k = torch.zeros(1, D_IN), torch.zeros(5, D_IN)
    mask = torch.tensor([True, True, True, False, False])
    share = sick("attention-padding-takes-a-share")[1](q, k, torch.eye(5), mask)
    assert share[0, 3:].sum().item() == pytest.approx(0.4)
    # And after the softmax, the row is left with the rest.
    late = torch.zeros(5).softmax(-1) * mask
    assert late.sum().item() == pytest.approx(0.6)

    _, loud = sick("attention-a-loud-pad")
    scores = torch.randn(1, 5)
    torch.testing.assert_close(
        loud(scores, mask), attention.masked_softmax(scores, mask)
    )
    scores[0, 3] = 1e4
    assert loud(scores, mask)[0, :3].isnan().all()
    scores = torch.zeros(1, 5).half()
    scores[0, 3] = 60
    assert (scores.softmax(-1) * mask == 0).all()

    _, slopes = sick("attention-right-weights-wrong-slopes")
    scores = torch.tensor([math.log(9), 0.0], requires_grad=True)
    weights = slopes(scores, -1)
    torch.testing.assert_close(weights, torch.tensor([0.9, 0.1]))
    (found,) = torch.autograd.grad(weights[0], scores)
    torch.testing.assert_close(found, torch.tensor([0.9, 0.0]))
