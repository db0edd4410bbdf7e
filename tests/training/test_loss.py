"""The loss is PyTorch's, also in the memory of its logits."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.training import Objective, label_smoothing
from companion.training import loss as losses
from companion.training.loss import summed_loss

# Sizes are prime and all differ, so no axis can stand in for another.
TOKENS, VOCAB, WIDTH = 13, 17, 11
BATCH, SEQ, PAD = 3, 5, 0


# The loss.


def some_logits():
    logits = torch.randn(BATCH, SEQ, VOCAB, requires_grad=True)
    target = torch.randint(1, VOCAB, (BATCH, SEQ))
    target[0, 3:], target[2, 1:] = PAD, PAD
    return logits, target


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_label_smoothing_is_pytorchs_loss_and_gradient(smoothing):
    logits, target = some_logits()
    ours = label_smoothing(logits, target, smoothing, PAD)
    theirs = F.cross_entropy(
        logits.mT, target, label_smoothing=smoothing, ignore_index=PAD
    )
    torch.testing.assert_close(ours, theirs)
    (a,) = torch.autograd.grad(ours, logits)
    (b,) = torch.autograd.grad(theirs, logits)
    torch.testing.assert_close(a, b)


def test_label_smoothing_on_paper():
    # Two tokens, the right one with probability 3/4: 0.9 + 0.05 of the target
    # lies on it, 0.05 on the other.
    logits = torch.tensor([[math.log(3.0), 0.0]])
    loss = label_smoothing(logits, torch.tensor([0]), 0.1, None)
    expected = -0.95 * math.log(3 / 4) - 0.05 * math.log(1 / 4)
    assert loss.item() == pytest.approx(expected)


def test_padding_is_neither_in_the_sum_nor_in_the_count():
    logits, target = some_logits()
    loss = label_smoothing(logits, target, 0.1, PAD)
    noise = torch.where((target == PAD).unsqueeze(-1), 100.0, 0.0)
    torch.testing.assert_close(
        loss, label_smoothing(logits + noise * VOCAB, target, 0.1, PAD)
    )
    longer = F.pad(logits, (0, 0, 0, 2)), F.pad(target, (0, 2), value=PAD)
    torch.testing.assert_close(loss, label_smoothing(*longer, 0.1, PAD))


def test_without_a_pad_every_token_counts():
    logits, target = some_logits()
    torch.testing.assert_close(
        label_smoothing(logits, target, 0.1, None),
        F.cross_entropy(logits.mT, target, label_smoothing=0.1),
    )


def test_more_certainty_than_the_target_has_costs():
    target = torch.tensor([3])
    losses = [
        label_smoothing(torch.eye(VOCAB)[target] * sure, target, 0.1, None)
        for sure in (3.0, 4.6, 9.0)
    ]
    # The best gap is ln((0.9 + 0.1 / 11) / (0.1 / 11)) = 4.61.
    assert losses[1] < losses[0]
    assert losses[1] < losses[2]


@pytest.mark.bad_input
def test_label_smoothing_refuses_what_no_mean_can_be_taken_of():
    logits = torch.randn(2, VOCAB)
    with pytest.raises(ValueError, match=r"target: .* no padding"):
        label_smoothing(logits, torch.tensor([PAD, PAD]), 0.1, PAD)
    with pytest.raises(ValueError, match=r"target: .*\(2,\), got \(3,\)"):
        label_smoothing(logits, torch.tensor([1, 2, 3]), 0.1, PAD)
    with pytest.raises(TypeError, match=r"logits: .* got torch.int64"):
        label_smoothing(logits.long(), torch.tensor([1, 2]), 0.1, PAD)


@pytest.mark.bad_input
@pytest.mark.parametrize("smoothing", [-0.1, 1.0, 10])
def test_smoothing_is_a_share(smoothing):
    with pytest.raises(ValueError, match=r"smoothing: .* from 0 to below 1"):
        label_smoothing(
            torch.randn(1, VOCAB), torch.tensor([1]), smoothing, PAD
        )
    with pytest.raises(ValueError, match=r"smoothing: .* from 0 to below 1"):
        Objective(nn.Identity(), smoothing=smoothing)


# Summed, in place.


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("at_a_time", [1, 3 * VOCAB, 2**20])
def test_the_loss_in_place_is_pytorchs_and_so_are_its_gradients(
    monkeypatch, smoothing, at_a_time
):
    monkeypatch.setattr(losses, "AT_A_TIME", at_a_time)
    states = torch.randn(TOKENS, WIDTH, dtype=torch.double, requires_grad=True)
    table = torch.randn(VOCAB, WIDTH, dtype=torch.double, requires_grad=True)
    target = torch.randint(VOCAB, (TOKENS,))
    loss = summed_loss(F.linear(states, table), target, smoothing)
    wanted = F.cross_entropy(
        F.linear(states, table),
        target,
        label_smoothing=smoothing,
        reduction="sum",
    )
    torch.testing.assert_close(loss, wanted)
    # A factor behind the loss, such as one over the tokens, must arrive.
    found = torch.autograd.grad(loss / 7, [states, table])
    torch.testing.assert_close(
        found, torch.autograd.grad(wanted / 7, [states, table])
    )


def test_a_loss_without_gradients_is_smoothed_and_leaves_the_logits():
    logits, target = torch.randn(TOKENS, VOCAB), torch.randint(VOCAB, (TOKENS,))
    before = logits.clone()
    with torch.no_grad():
        loss = summed_loss(logits, target, 0.3)
    wanted = F.cross_entropy(
        before, target, label_smoothing=0.3, reduction="sum"
    )
    torch.testing.assert_close(loss, wanted)
    assert torch.equal(logits, before)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_half_precision_logits_is_computed_in_32_bits(
    half, smoothing
):
    logits = (5 * torch.randn(TOKENS, VOCAB)).to(half).requires_grad_()
    target = torch.randint(VOCAB, (TOKENS,))
    loss = summed_loss(logits * 1, target, smoothing)
    wanted = F.cross_entropy(
        logits.float(), target, label_smoothing=smoothing, reduction="sum"
    )
    torch.testing.assert_close(loss, wanted)
    (found,) = torch.autograd.grad(loss, logits)
    (right,) = torch.autograd.grad(wanted, logits)
    assert found.dtype == half
    torch.testing.assert_close(found, right)


def test_a_gradient_too_small_for_float16_arrives_if_the_loss_is_scaled():
    logits = torch.tensor([[0.0, -18.0]], dtype=torch.half, requires_grad=True)
    loss = summed_loss(logits * 1, torch.tensor([0]), 0.0)
    (found,) = torch.autograd.grad(loss * 2**16, logits)
    assert found[0, 1] == pytest.approx(2**16 * math.exp(-18), rel=1e-2)


def test_a_second_backward_pass_is_refused_and_not_wrong():
    weight = torch.randn(TOKENS, VOCAB, requires_grad=True)
    loss = summed_loss(weight * 1, torch.randint(VOCAB, (TOKENS,)), 0.0)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="inplace operation"):
        loss.backward()
