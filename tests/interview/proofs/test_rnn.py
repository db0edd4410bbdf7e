"""What the answers of chapter 01 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    parameters,
    shown,
)
from torch import nn
from torch.testing import assert_close

from companion import rnn

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, D_IN, HIDDEN, D_MODEL, VOCAB = 2, 7, 5, 3, 11, 13


def weights_of_an_rnn(gain=1.0, hidden=HIDDEN):
    """W, U, b with U an orthogonal matrix times ``gain``."""
    U, _ = torch.linalg.qr(torch.randn(hidden, hidden))
    return torch.randn(hidden, D_IN), gain * U, torch.randn(hidden)


def test_a_mean_forgets_the_order_and_a_concatenation_is_tied_to_one_length():
    ids = torch.randint(VOCAB, (BATCH, SEQ))
    ids[:, 0], ids[:, 1] = 4, 9
    swapped = ids[:, [1, 0, *range(2, SEQ)]]
    mean = rnn.MeanFNN(VOCAB, D_MODEL, num_classes=3)
    assert_close(mean(ids), mean(swapped))

    concat = rnn.ConcatFNN(VOCAB, D_MODEL, num_classes=3, length=SEQ)
    assert not torch.allclose(concat(ids), concat(swapped))
    longer = rnn.ConcatFNN(VOCAB, D_MODEL, num_classes=3, length=2 * SEQ)
    first, doubled = concat.fnn[0].weight, longer.fnn[0].weight
    assert doubled.numel() == 2 * first.numel()
    with pytest.raises(ValueError, match="length 7"):
        concat(torch.randint(VOCAB, (BATCH, SEQ + 1)))


def test_one_set_of_weights_reads_any_length_and_feels_the_order():
    W, U, b = weights_of_an_rnn()
    x, h0 = torch.randn(1, 50, D_IN), torch.zeros(1, HIDDEN)
    long = rnn.unroll(x, h0, W, U, b)
    assert_close(rnn.unroll(x[:, :5], h0, W, U, b), long[:, :5])
    backwards = rnn.unroll(x.flip(1), h0, W, U, b)
    assert not torch.allclose(backwards[:, -1], long[:, -1])
    reach = rnn.gradient_to_inputs(x[0, :SEQ], h0[0], W, U, b)
    assert (reach > 0).all()


def test_an_embedding_is_a_one_hot_times_a_matrix_and_only_used_rows_learn():
    ids = torch.tensor([2, 7, 7, 3])
    E = nn.Embedding(VOCAB, D_MODEL)
    assert_close(E(ids), rnn.one_hot(ids, VOCAB) @ E.weight)
    E(ids).sum().backward()
    learning = E.weight.grad.norm(dim=1).nonzero().flatten()
    assert learning.tolist() == [2, 3, 7]
    bag = rnn.bag_of_words(ids, VOCAB)
    assert_close(bag, rnn.bag_of_words(ids.flip(0), VOCAB))


def test_two_steps_of_a_recurrence_by_hand():
    one = torch.ones(1, 1)
    x = torch.tensor([[[1.0], [0.0]]])
    h = rnn.unroll(x, 0 * one, one, 0.5 * one, torch.zeros(1)).flatten()
    wrong = 0.5 * math.tanh(1), math.tanh(0.5), math.tanh(1), 0
    answers("rnn-two-steps-by-hand", h[1], *wrong)


def test_the_gradient_through_time_is_a_product_of_one_matrix_per_step():
    W, U, b = weights_of_an_rnn()
    x, h0 = torch.randn(SEQ, D_IN), torch.zeros(HIDDEN)
    states = rnn.unroll(x[None], h0[None], W, U, b)[0]
    product, norms = torch.eye(HIDDEN), []
    for h in states.flip(0):
        step = torch.diag(1 - h**2)
        norms.append((product @ step @ W).norm())
        product = product @ step @ U
    expected = torch.stack(norms).flip(0)
    assert_close(rnn.gradient_to_inputs(x, h0, W, U, b), expected)


def test_a_gain_below_one_bounds_the_gradient_by_its_power():
    W, U, b = weights_of_an_rnn(gain=0.9)
    x, h0 = torch.randn(41, D_IN), torch.zeros(HIDDEN)
    reach = rnn.gradient_to_inputs(x, h0, W, U, b)
    bound = torch.linalg.matrix_norm(W) * 0.9 ** torch.arange(40, -1, -1)
    assert (reach <= bound + 1e-6).all()
    assert round(0.9**40, 3) == 0.015
    # Above 1 it explodes where tanh is nearly straight, and need not elsewhere.
    W, U, b = weights_of_an_rnn(gain=1.3)
    tiny = rnn.gradient_to_inputs(1e-9 * x, h0, W, U, 0 * b)
    assert tiny[0] > 1000 * tiny[-1]
    assert rnn.gradient_to_inputs(9 * x, h0, W, U, b)[0] < 1e-3


def test_forty_steps_at_gain_nine_tenths():
    x = torch.zeros(41, dtype=torch.float64, requires_grad=True)
    h = torch.zeros((), dtype=torch.float64)
    for x_t in x:
        h = 0.9 * h + x_t
    h.backward()
    oldest, next_oldest, *_, last_but_one, newest = x.grad.tolist()
    wrong = 40 * 0.9, 0.9 / 40, next_oldest, last_but_one
    answers("rnn-forty-steps-back", oldest, *wrong)
    assert round(newest / oldest) == 68


@pytest.mark.parametrize(("forget", "left"), [(0.99, 0.67), (0.9, 0.015)])
def test_an_open_forget_gate_carries_the_cell_over_forty_steps(forget, left):
    lstm = rnn.LSTM(D_IN, HIDDEN)
    with torch.no_grad():
        for weight in lstm.parameters():
            weight.zero_()
        lstm.b[HIDDEN : 2 * HIDDEN] = math.log(forget / (1 - forget))
    state = torch.zeros(BATCH, HIDDEN), torch.ones(BATCH, HIDDEN)
    _, (_, c) = lstm(torch.randn(BATCH, 40, D_IN), state)
    assert_close(c, torch.full_like(c, forget**40))
    assert c[0, 0].item() == pytest.approx(left, abs=0.005)
    # What a forget bias of 1 leaves; chapter 01 trains with it, and fails.
    bias = torch.sigmoid(torch.tensor(1.0)).item()
    assert (round(bias, 2), round(bias**40, 7)) == (0.73, 3.6e-6)


def test_the_parameters_of_an_lstm():
    torchs = parameters(nn.LSTM(128, 256))
    ours = parameters(rnn.LSTM(128, 256))
    block = 256 * 128 + 256 * 256 + 256
    no_bias = parameters(nn.LSTM(128, 256, bias=False))
    answers("rnn-lstm-parameters", ours, block, 3 * block, no_bias, torchs)
    assert torchs - ours == 1024


def test_clipping_shortens_a_long_gradient_and_leaves_a_short_one_alone():
    for length, expected in ((50.0, 1.0), (1e-6, 1e-6)):
        weight = nn.Parameter(torch.zeros(HIDDEN))
        direction = F.normalize(torch.randn(HIDDEN), dim=0)
        weight.grad = length * direction
        nn.utils.clip_grad_norm_([weight], max_norm=1.0)
        assert_close(weight.grad, expected * direction, rtol=1e-4, atol=1e-12)


def test_a_bidirectional_network_sees_the_token_it_should_predict():
    x = torch.randn(BATCH, SEQ, D_IN)
    changed = x.clone()
    changed[:, 4] += 1
    for both_ways in (False, True):
        network = nn.RNN(
            D_IN, HIDDEN, batch_first=True, bidirectional=both_ways
        )
        earlier, after = network(x)[0][:, :4], network(changed)[0][:, :4]
        assert torch.equal(earlier, after) != both_ways


def test_the_last_state_of_a_padded_sentence_has_read_the_padding():
    W, U, b = weights_of_an_rnn()
    x, h0 = torch.randn(1, 3, D_IN), torch.zeros(1, HIDDEN)
    padded = F.pad(x, (0, 0, 0, SEQ - 3))
    alone = rnn.unroll(x, h0, W, U, b)[:, -1]
    in_batch = rnn.unroll(padded, h0, W, U, b)
    assert not torch.allclose(in_batch[:, -1], alone)
    assert_close(in_batch[:, 3 - 1], alone)


def test_reading_back_from_a_prepared_tensor_breaks_the_backward_pass():
    W, U, b = (w.requires_grad_() for w in weights_of_an_rnn())
    states = torch.zeros(BATCH, SEQ + 1, HIDDEN)
    for t, x_t in enumerate(torch.randn(BATCH, SEQ, D_IN).unbind(1)):
        states[:, t + 1] = torch.tanh(x_t @ W.T + states[:, t] @ U.T + b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()


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
    assert_close(cell(x, h), (1 - z) * n + z * h)

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


def test_a_broken_recurrence_has_the_symptom_its_question_tells():
    (W, U, b), h0 = weights_of_an_rnn(), torch.zeros(BATCH, HIDDEN)
    x = torch.randn(BATCH, SEQ, D_IN, requires_grad=True)
    right = rnn.unroll(x, h0, W, U, b)
    alike = shown("rnn-states-all-alike")(x, h0, W, U, b)
    assert (alike == alike[:, -1:]).all()
    assert_close(alike[:, -1], right[:, -1])

    deaf = shown("rnn-deaf-to-the-past")(x, h0, W, U, b)
    assert_close(deaf, right)
    deaf[:, -1].sum().backward()
    arrives = x.grad.abs().sum((0, 2)) > 0
    assert arrives.tolist() == [False] * (SEQ - 1) + [True]
