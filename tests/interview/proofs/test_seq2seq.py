"""What the answers of chapter 02 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    parameters,
    shown,
)
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from companion import attention, costs, rnn, seq2seq
from companion.data.vocabulary import Vocabulary

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, D_IN, HIDDEN, D_MODEL, VOCAB = 2, 7, 5, 3, 11, 13


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
    assert_close(align(s, h), expected)

    s = torch.randn(BATCH, HIDDEN)
    expected = torch.einsum("bd,bjd->bj", s, h).softmax(-1)
    assert_close(seq2seq.dot_alignment(s, h), expected)


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
    assert_close(together, torch.cat(one_by_one))


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
    wrong = (
        recurrent / core,
        (core / recurrent) ** 2,
        with_projections / recurrent,
        core / 2 / recurrent,
    )
    answers("seq2seq-work-at-4096-words", core / recurrent, *wrong)


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
    assert_close(model(src, other)[:, :3], model(src, own_prefix)[:, :3])


def test_a_dot_alignment_by_hand():
    s = torch.tensor([[1.0, 2.0]])
    h = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    weights = seq2seq.dot_alignment(s, h)[0]
    scores = (h[0] @ s[0]).tolist()
    scaled = seq2seq.dot_alignment(s / math.sqrt(2), h)[0, 2].item()
    wrong = scores[2] / sum(scores), scores[2], 1, scaled
    answers("seq2seq-alignment-by-hand", weights[2], *wrong)
    assert [round(w, 4) for w in weights.tolist()] == [0.09, 0.2447, 0.6652]


def test_a_softmax_along_the_target_axis_sums_to_one_over_the_wrong_axis():
    scores = torch.randn(BATCH, SEQ, D_IN)  # batch target source
    wrong = scores.softmax(dim=1)
    assert_close(wrong.sum(1), torch.ones(BATCH, D_IN))
    assert (wrong.sum(-1) - 1).abs().max() > 0.1
    right = (scores * 9).softmax(dim=-1)
    assert_close(right.sum(-1), torch.ones(BATCH, SEQ))


def test_an_alignment_is_zero_only_where_a_mask_says_so():
    s, h = torch.tensor([[1.0]]), torch.tensor([[[103.0], [0.0], [0.0]]])
    assert (seq2seq.dot_alignment(s, h) > 0).all()
    assert seq2seq.dot_alignment(s, h + torch.tensor([1.0, 0, 0])[:, None])[
        0, 1:
    ].tolist() == [0, 0]
    mask = torch.tensor([[True, False, True]])
    weights = seq2seq.dot_alignment(s, h / 103, mask)
    assert (weights == 0).tolist() == [[False, True, False]]


def test_hard_attention_is_the_limit_of_soft_and_teaches_its_scores_nothing():
    states = torch.randn(3, HIDDEN)
    scores = torch.tensor([1.0, 2.0, 3.0])
    sharp = attention.softmax(10 * scores)
    assert round(attention.softmax(scores)[2].item(), 2) == 0.67
    assert sharp[2] > 0.9999
    assert attention.softmax_jacobian(sharp).abs().max() < 1e-4
    assert_close(
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


def test_a_broken_alignment_has_the_symptom_its_question_tells():
    query, keys = 9 * torch.randn(2, D_IN), 9 * torch.randn(2, 12, D_IN)
    assert shown("seq2seq-never-sure")(query, keys).max() < 0.41
    one = shown("seq2seq-right-one-at-a-time")(query, keys)
    expected = seq2seq.dot_alignment(query, keys)
    same = torch.isclose(one, expected).all(-1)
    assert same.tolist() == [True, False]
