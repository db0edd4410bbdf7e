"""The summed loss in the memory of its logits is PyTorch's loss."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.training import loss as losses
from companion.training.loss import summed_loss

# Sizes are prime and all differ, so no axis can stand in for another.
TOKENS, VOCAB, WIDTH = 13, 17, 11


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


def test_the_loss_leaves_the_logits_alone_where_no_gradient_is_asked_for():
    logits = torch.randn(TOKENS, VOCAB)
    before, target = logits.clone(), torch.randint(VOCAB, (TOKENS,))
    with torch.no_grad():
        summed_loss(logits, target, 0.1)
    assert torch.equal(logits, before)


def test_a_second_backward_pass_is_refused_and_not_wrong():
    weight = torch.randn(TOKENS, VOCAB, requires_grad=True)
    loss = summed_loss(weight * 1, torch.randint(VOCAB, (TOKENS,)), 0.0)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="inplace operation"):
        loss.backward()
