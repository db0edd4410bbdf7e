"""What the model answers of chapters 01 to 03 claim, computed.

A question of the bank names its proof: a cell of a chapter, or one of these
tests. Every number of a numeric question, right or typically wrong, is
computed here.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from answers import answers, parameters
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from companion import attention, costs, rnn, seq2seq
from companion.data.vocabulary import Vocabulary

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, D_IN, HIDDEN, D_MODEL, VOCAB = 2, 7, 5, 3, 11, 13


def weights_of_an_rnn(gain=1.0, hidden=HIDDEN):
    """W, U, b with U an orthogonal matrix times ``gain``."""
    U, _ = torch.linalg.qr(torch.randn(hidden, hidden))
    return torch.randn(hidden, D_IN), gain * U, torch.randn(hidden)


# Chapter 01


def test_a_mean_forgets_the_order_and_a_concatenation_is_tied_to_one_length():
    ids = torch.randint(VOCAB, (BATCH, SEQ))
    ids[:, 0], ids[:, 1] = 4, 9
    swapped = ids[:, [1, 0, *range(2, SEQ)]]
    mean = rnn.MeanFNN(VOCAB, D_MODEL, num_classes=3)
    torch.testing.assert_close(mean(ids), mean(swapped))

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
    torch.testing.assert_close(rnn.unroll(x[:, :5], h0, W, U, b), long[:, :5])
    backwards = rnn.unroll(x.flip(1), h0, W, U, b)
    assert not torch.allclose(backwards[:, -1], long[:, -1])
    reach = rnn.gradient_to_inputs(x[0, :SEQ], h0[0], W, U, b)
    assert (reach > 0).all()


def test_an_embedding_is_a_one_hot_times_a_matrix_and_only_used_rows_learn():
    ids = torch.tensor([2, 7, 7, 3])
    E = nn.Embedding(VOCAB, D_MODEL)
    torch.testing.assert_close(E(ids), rnn.one_hot(ids, VOCAB) @ E.weight)
    E(ids).sum().backward()
    learning = E.weight.grad.norm(dim=1).nonzero().flatten()
    assert learning.tolist() == [2, 3, 7]
    bag = rnn.bag_of_words(ids, VOCAB)
    torch.testing.assert_close(bag, rnn.bag_of_words(ids.flip(0), VOCAB))


def test_two_steps_of_a_recurrence_by_hand():
    one = torch.ones(1, 1)
    x = torch.tensor([[[1.0], [0.0]]])
    h = rnn.unroll(x, 0 * one, one, 0.5 * one, torch.zeros(1)).flatten()
    answers(
        "rnn-two-steps-by-hand",
        h[1].item(),
        0.5 * math.tanh(1),
        math.tanh(0.5),
        math.tanh(1),
        0,
    )


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
    torch.testing.assert_close(rnn.gradient_to_inputs(x, h0, W, U, b), expected)


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
    torch.testing.assert_close(c, torch.full_like(c, forget**40))
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
        torch.testing.assert_close(
            weight.grad, expected * direction, rtol=1e-4, atol=1e-12
        )


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
    torch.testing.assert_close(in_batch[:, 3 - 1], alone)


def test_reading_back_from_a_prepared_tensor_breaks_the_backward_pass():
    W, U, b = (w.requires_grad_() for w in weights_of_an_rnn())
    states = torch.zeros(BATCH, SEQ + 1, HIDDEN)
    for t, x_t in enumerate(torch.randn(BATCH, SEQ, D_IN).unbind(1)):
        states[:, t + 1] = torch.tanh(x_t @ W.T + states[:, t] @ U.T + b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()


# Chapter 02


def test_the_last_state_has_one_size_for_all_lengths_and_favours_late_words():
    for seed in range(3):
        torch.manual_seed(seed)
        network = rnn.RNN(D_IN, HIDDEN, d_out=2)
        sizes = {
            network(torch.randn(1, n, D_IN))[1][:, -1].shape for n in (2, 31)
        }
        assert sizes == {(1, HIDDEN)}
        x, h0 = torch.randn(31, D_IN), torch.zeros(HIDDEN)
        reach = rnn.gradient_to_inputs(x, h0, network.W, network.U, network.b)
        assert reach[-1] > 100 * reach[0]


def test_additive_and_dot_alignment_follow_their_formulas():
    s, h = torch.randn(BATCH, D_IN), torch.randn(BATCH, SEQ, HIDDEN)
    align = seq2seq.AdditiveAlignment(D_IN, HIDDEN, D_MODEL)
    scores = [
        [
            align.v(torch.tanh(align.W(s[i]) + align.U(h[i, j]))).item()
            for j in range(SEQ)
        ]
        for i in range(BATCH)
    ]
    expected = torch.tensor(scores).softmax(-1)
    torch.testing.assert_close(align(s, h), expected)

    s = torch.randn(BATCH, HIDDEN)
    expected = torch.einsum("bd,bjd->bj", s, h).softmax(-1)
    torch.testing.assert_close(seq2seq.dot_alignment(s, h), expected)


def test_path_lengths_between_the_ends_of_512_words():
    assert layers_until_the_first_word_arrives(dilation=lambda layer: 1) == 256
    doubling = layers_until_the_first_word_arrives(lambda layer: 2**layer)
    assert doubling == 9
    answers("seq2seq-layers-of-convolution", 256, 512 // 3 + 1, 511, 9, 255)
    assert costs.path_length("rnn", 512) == 511
    assert costs.path_length("convolution", 512) == 256
    assert costs.path_length("dilated", 512) == 9
    assert costs.path_length("attention", 512) == 1


def layers_until_the_first_word_arrives(dilation):
    """Causal convolutions of kernel 3 over 512 words, one on the other."""
    arrived = F.one_hot(torch.tensor(0), 512).float()
    layers = 0
    while not arrived[-1]:
        step = dilation(layers)
        padded = F.pad(arrived, (2 * step, 0))[None, None]
        arrived = F.conv1d(padded, torch.ones(1, 1, 3), dilation=step)[0, 0]
        arrived = arrived.clamp(max=1)
        layers += 1
    return layers


def test_attention_needs_one_step_where_recurrence_needs_n():
    for n in (2, 13, 100):
        assert costs.serial_steps("rnn", n) == n
        assert costs.serial_steps("attention", n) == 1
    # All positions under a causal mask in one call, or one call for each.
    q, k, v = torch.randn(3, SEQ, D_MODEL).unbind()
    causal = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    together = attention.scaled_dot_product_attention(q, k, v, causal)
    one_by_one = [
        attention.scaled_dot_product_attention(q[[t]], k[: t + 1], v[: t + 1])
        for t in range(SEQ)
    ]
    torch.testing.assert_close(together, torch.cat(one_by_one))


def multiply_adds(layer, n, d):
    """Counted by PyTorch, which counts a multiplication and a sum as two."""
    x, weight = torch.empty(n, d, device="meta"), {}
    for name, width in (("d", d), ("4d", 4 * d)):
        weight[name] = torch.empty(d, width, device="meta")
    with FlopCounterMode(display=False) as counter:
        if layer == "rnn":
            _, _ = x @ weight["d"], x @ weight["d"]
        if layer == "ffn":
            x @ weight["4d"] @ weight["4d"].T
        if layer in ("core", "attention"):
            (x @ x.T) @ x
        if layer == "attention":
            _ = [x @ weight["d"] for _ in "qkvo"]
    return counter.get_total_flops() / 2


def test_attention_does_n_over_d_times_the_work_of_a_recurrent_layer():
    n, d = 4096, 512
    recurrent = multiply_adds("rnn", n, d)
    core = multiply_adds("core", n, d)
    with_projections = multiply_adds("attention", n, d)
    assert multiply_adds("core", d, d) == multiply_adds("rnn", d, d)
    assert recurrent == costs.macs("rnn", n, d)
    assert core == costs.macs("attention", n, d)
    assert with_projections == costs.macs("attention", n, d, projections=True)
    answers(
        "seq2seq-work-at-4096-words",
        core / recurrent,
        recurrent / core,
        (core / recurrent) ** 2,
        with_projections / recurrent,
        core / 2 / recurrent,
    )


def test_self_attention_with_projections_outworks_a_recurrent_layer():
    d = 512
    for n in (1, 64, 512, 4096):
        recurrent = multiply_adds("rnn", n, d)
        projections = multiply_adds("attention", n, d) - multiply_adds(
            "core", n, d
        )
        assert projections == 2 * recurrent


def test_attention_costs_more_than_the_ffn_from_two_widths_on():
    d = 512
    for n, more in ((1023, False), (1025, True)):
        whole = multiply_adds("attention", n, d)
        assert (whole > multiply_adds("ffn", n, d)) == more
    assert multiply_adds("attention", 2 * d, d) == multiply_adds(
        "ffn", 2 * d, d
    )
    assert multiply_adds("core", 4 * d, d) == multiply_adds("ffn", 4 * d, d)
    answers("attention-against-the-ffn", 2 * d, 4 * d, d)


def test_teacher_forcing_and_translation_differ_only_in_who_wrote_the_prefix():
    model = seq2seq.Seq2Seq(VOCAB, VOCAB - 2, D_MODEL, HIDDEN, context="dot")
    src = torch.randint(3, VOCAB, (BATCH, SEQ))
    written = model.translate(src, max_len=5)
    bos = torch.full((BATCH, 1), Vocabulary.bos)
    own_prefix = torch.cat([bos, written[:, :-1]], dim=1)
    going_on = (own_prefix != Vocabulary.eos).cumprod(dim=1).bool()
    likeliest = model(src, own_prefix).argmax(-1)
    assert torch.equal(likeliest[going_on], written[going_on])
    assert going_on.sum() > BATCH
    # What comes later in the given prefix cannot help.
    other = own_prefix.clone()
    other[:, 3:] = 5
    torch.testing.assert_close(
        model(src, other)[:, :3], model(src, own_prefix)[:, :3]
    )


def test_a_dot_alignment_by_hand():
    s = torch.tensor([[1.0, 2.0]])
    h = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    weights = seq2seq.dot_alignment(s, h)[0]
    scores = (h[0] @ s[0]).tolist()
    scaled = seq2seq.dot_alignment(s / math.sqrt(2), h)[0, 2].item()
    answers(
        "seq2seq-alignment-by-hand",
        weights[2].item(),
        scores[2] / sum(scores),
        scores[2],
        1,
        scaled,
    )
    assert [round(w, 4) for w in weights.tolist()] == [0.09, 0.2447, 0.6652]


def test_a_softmax_along_the_target_axis_sums_to_one_over_the_wrong_axis():
    scores = torch.randn(BATCH, SEQ, D_IN)  # batch target source
    wrong = scores.softmax(dim=1)
    torch.testing.assert_close(wrong.sum(1), torch.ones(BATCH, D_IN))
    assert (wrong.sum(-1) - 1).abs().max() > 0.1
    right = (scores * 9).softmax(dim=-1)
    torch.testing.assert_close(right.sum(-1), torch.ones(BATCH, SEQ))


def test_an_alignment_is_zero_only_where_a_mask_says_so():
    s, h = torch.tensor([[1.0]]), torch.tensor([[[103.0], [0.0], [0.0]]])
    assert (seq2seq.dot_alignment(s, h) > 0).all()
    assert seq2seq.dot_alignment(s, h + torch.tensor([1.0, 0, 0])[:, None])[
        0, 1:
    ].tolist() == [0, 0]
    mask = torch.tensor([[True, False, True]])
    weights = seq2seq.dot_alignment(s, h / 103, mask)
    assert (weights == 0).tolist() == [[False, True, False]]


# Chapter 03


def test_the_weights_of_self_attention_depend_on_the_content():
    x = torch.randn(SEQ, D_MODEL)
    changed = x.clone()
    changed[2] += 1
    before = attention.attention_weights(x, x)
    after = attention.attention_weights(changed, changed)
    assert ((before - after).abs().sum(-1) > 1e-3).all()


def test_a_worked_example_of_one_row():
    scores = torch.tensor([1.2, 0.5, 1.8, 0.3])
    weights = attention.softmax(scores)
    answers(
        "attention-a-row-by-hand",
        weights[2].item(),
        (scores[2] / scores.sum()).item(),
        attention.softmax(scores / 2)[2].item(),
        1,
        scores[2].exp().item(),
    )
    column = torch.tensor([0.1, 0.2, 0.3, 0.4])
    answers(
        "attention-an-output-by-hand",
        (weights @ column).item(),
        column.mean().item(),
        column[2].item(),
        (weights[2] * column[2]).item(),
    )


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
    torch.testing.assert_close(right.sum(-1), torch.ones(SEQ))
    # The scale may come anywhere before the softmax.
    late, early = (scores.masked_fill(~mask, -torch.inf), scores / 3)
    torch.testing.assert_close(
        (late / 3).softmax(-1), attention.masked_softmax(early, mask)
    )
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
        torch.testing.assert_close(tied, tied.T)
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
    torch.testing.assert_close(
        F.scaled_dot_product_attention(q, k, v, triangle), added.softmax(-1) @ v
    )
