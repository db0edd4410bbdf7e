"""Contracts of what training needs: what PyTorch wrote, and numbers."""

import math

import pytest
import torch
import torch.nn.functional as F
from contracts.known import gate_message
from contracts.right.training import as_kl_divergence, by_cross_entropy
from torch import nn

from companion.contracts import check
from companion.contracts.training.label_smoothing import (
    LABEL_SMOOTHING,
    RIGHT,
    sentences,
)
from companion.contracts.training.schedule import noam

WITHOUT = "Without smoothing it is the cross-entropy"


def holds(component, fn):
    report = check(component, fn)
    assert report.passed, str(report)


# The loss


@pytest.mark.parametrize("pad", [0, 3, 6])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_form_of_pytorch_is_what_pytorch_computes(smoothing, pad):
    logits, target = sentences(19, pad)
    expected = F.cross_entropy(
        logits.mT, target, ignore_index=pad, label_smoothing=smoothing
    )
    torch.testing.assert_close(
        RIGHT[0](logits, target, smoothing, pad), expected
    )


def test_the_other_forms_on_paper():
    # Four classes, all as likely: log p is -log 4 whatever is aimed at. The
    # target has 0.8 and the two classes besides it and padding 0.1 each, or
    # all three classes besides it a third of 0.2.
    args = (torch.zeros(1, 1, 4), torch.tensor([[2]]), 0.2, 0)
    _, *others = (form(*args).item() for form in RIGHT)
    for rest in (0.1, 0.2 / 3):
        plain, divergence, *others = others
        entropy = -0.8 * math.log(0.8) - 0.2 * math.log(rest)
        assert math.isclose(plain, math.log(4), rel_tol=1e-6)
        assert math.isclose(divergence, math.log(4) - entropy, rel_tol=1e-6)
    assert not others


def refusing(error, loss=by_cross_entropy):
    """Refuse a smoothing of 0, on purpose."""

    def call(logits, target, smoothing, pad):
        if error is AssertionError:
            assert smoothing > 0
        if error is ValueError and not smoothing > 0:
            raise ValueError("smoothing must be positive")
        return loss(logits, target, smoothing, pad)

    return call


@pytest.mark.parametrize("error", [AssertionError, ValueError])
def test_a_loss_may_refuse_a_smoothing_of_zero(error):
    report = check("label_smoothing", refusing(error))
    assert report.passed, str(report)
    assert "It refuses smoothing 0; with smoothing 1e-06" in report.assumed[0]
    assert WITHOUT not in report.held


def test_a_loss_that_refuses_zero_is_judged_at_almost_zero():
    def doubled(*args):
        return 2 * by_cross_entropy(*args)

    report = check("label_smoothing", refusing(AssertionError, doubled))
    [found] = [f for f in report.faults if f.contract == WITHOUT]
    assert "With smoothing 1e-06 it is" in found.message


def test_a_loss_that_breaks_at_zero_by_mistake_is_told_so():
    def logs(logits, target, smoothing, pad):
        loss = by_cross_entropy(logits, target, smoothing, pad)
        return loss + 0 * math.log(smoothing)

    report = check("label_smoothing", logs)
    assert WITHOUT in [f.contract for f in report.faults]


def test_the_right_forms_are_apart_in_one_of_the_cases():
    cases = LABEL_SMOOTHING.cases().values()
    losses = [[form(*args).item() for args in cases] for form in RIGHT]
    for i, one in enumerate(losses):
        for other in losses[:i]:
            pairs = zip(one, other, strict=True)
            assert max(abs(a - b) for a, b in pairs) > 0.005


def test_ways_of_spreading_may_not_be_mixed():
    """PyTorch's with little smoothing, the port's with more."""

    def mixed(logits, target, smoothing, pad):
        form = by_cross_entropy if smoothing < 0.2 else as_kl_divergence
        return form(logits, target, smoothing, pad)

    (failure,) = check("label_smoothing", mixed).failures
    assert failure.contract.startswith("The mass is spread as PyTorch does")


def test_the_loss_of_a_module_is_a_loss():
    def loss(logits, target, smoothing, pad):
        module = nn.CrossEntropyLoss(
            ignore_index=pad, label_smoothing=smoothing
        )
        return module(logits.flatten(0, 1), target.flatten())

    holds("label_smoothing", loss)


def test_two_classes_are_asked_of_the_form_of_pytorch_only():
    holds("label_smoothing", as_kl_divergence)  # V - 2 would be 0.


# The schedule


def test_the_peak_of_the_paper_is_seven_ten_thousandths():
    assert f"{noam(4000, 512, 4000):.2e}" == "6.99e-04"


@pytest.mark.parametrize("answer", [0.0, 1.0, None])
def test_what_is_said_of_step_0_is_up_to_the_writer(answer):
    def rate(step, d_model, warmup):
        if step == 0 and answer is None:
            raise ValueError("step: expected 1 or more, got 0")
        return answer if step == 0 else noam(step, d_model, warmup)

    holds("schedule", rate)


def test_rates_may_come_as_float32():
    holds("schedule", lambda *args: torch.tensor(noam(*args)))


def test_a_tensor_of_rates_is_refused():
    message = gate_message("schedule", lambda s, d, w: torch.ones(3))
    assert message.startswith("It returned a Tensor: expected the learning")


# The shift


def test_a_leak_shows_what_was_read_and_what_should_be():
    failure = check("shift_right", lambda tokens, bos: tokens).failures[0]
    assert failure.message.startswith("Position 0 knows token 0, the token")
    assert failure.got.tolist()[0] == [3, 4, 5, 6, 2]
    assert failure.expected.tolist()[0] == [1, 3, 4, 5, 6]
