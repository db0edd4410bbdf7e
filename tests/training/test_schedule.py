"""The schedule and the optimizer are the paper's."""

import math

import pytest
import torch

from companion.training import adam, linear, noam

# The schedule.


def test_noam_is_the_papers_formula_at_every_step():
    for step in range(1, 12_001):
        # Equation 3 in logarithms, each branch of the minimum by itself.
        rising = math.log(step) - 1.5 * math.log(4000)
        falling = -0.5 * math.log(step)
        expected = math.exp(-0.5 * math.log(512) + min(rising, falling))
        assert math.isclose(noam(step, 512, 4000), expected, rel_tol=1e-12)


def test_noam_peaks_when_warmup_ends():
    rates = [noam(step, 512, 4000) for step in range(1, 20_001)]
    assert rates.index(max(rates)) + 1 == 4000
    assert math.isclose(max(rates), (512 * 4000) ** -0.5)
    assert f"{max(rates):.2e}" == "6.99e-04"


def test_four_times_as_many_steps_halve_noam_after_its_peak():
    assert math.isclose(noam(28, 5, 7), 2 * noam(112, 5, 7))
    assert math.isclose(noam(2, 5, 7), 2 * noam(1, 5, 7))


@pytest.mark.bad_input
def test_noam_refuses_step_0_where_the_formula_divides_by_nothing():
    with pytest.raises(ValueError, match=r"step: expected at least 1, got 0"):
        noam(0, 512, 4000)
    with pytest.raises(ValueError, match="d_model"):
        noam(1, 0, 4000)
    with pytest.raises(ValueError, match=r"warmup: expected at least 1"):
        noam(1, 512, 0)
    with pytest.raises(TypeError, match=r"step: expected an int, got 1.5"):
        noam(1.5, 512, 4000)


def test_linear_on_paper():
    rates = [linear(step, 6, peak=8.0, warmup=3) for step in range(1, 7)]
    assert rates == pytest.approx([8 / 3, 16 / 3, 8, 6, 4, 2])
    falling = [linear(step, 4, peak=8.0) for step in range(1, 5)]
    assert falling == pytest.approx([8, 6, 4, 2])


@pytest.mark.parametrize("warmup", [0, 1, 2, 7])
def test_linear_is_never_0_and_never_above_its_peak(warmup):
    rates = [linear(step, 7, peak=3.0, warmup=warmup) for step in range(1, 8)]
    assert min(rates) > 0
    assert max(rates) == 3.0
    assert rates.index(3.0) == max(warmup, 1) - 1


@pytest.mark.bad_input
def test_linear_refuses_a_step_outside_the_run():
    with pytest.raises(ValueError, match=r"step: expected at most steps = 7"):
        linear(8, 7, peak=1.0)
    with pytest.raises(ValueError, match=r"step: expected at least 1, got 0"):
        linear(0, 7, peak=1.0)
    with pytest.raises(ValueError, match=r"warmup: expected at most steps"):
        linear(1, 7, peak=1.0, warmup=8)
    with pytest.raises(ValueError, match=r"warmup: expected at least"):
        linear(1, 7, peak=1.0, warmup=-1)
    with pytest.raises(ValueError, match=r"steps: expected at least 1, got 0"):
        linear(1, 0, peak=1.0)


# The optimizer.


def test_adam_is_the_papers_update_by_hand():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(7))
    by_hand, m, v = weight.detach().double(), 0.0, 0.0
    optimizer = adam([weight], lr=0.03)
    for step in range(1, 30):
        gradient = torch.randn(7)
        weight.grad = gradient
        optimizer.step()
        m = 0.9 * m + 0.1 * gradient.double()
        v = 0.98 * v + 0.02 * gradient.double() ** 2
        root = (v / (1 - 0.98**step)).sqrt() + 1e-9
        by_hand -= 0.03 * m / (1 - 0.9**step) / root
    torch.testing.assert_close(
        weight.detach().double(), by_hand, atol=1e-6, rtol=1e-5
    )


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_first_step_is_the_learning_rate_whatever_the_gradient(scale):
    weight = torch.nn.Parameter(torch.zeros(3))
    weight.grad = torch.tensor([1.0, -2.0, 3.0]) * scale
    adam([weight], lr=0.25).step()
    expected = torch.tensor([-0.25, 0.25, -0.25])
    torch.testing.assert_close(weight.detach(), expected)


def test_fused_adam_takes_the_plain_loops_steps():
    weights = [torch.nn.Parameter(torch.ones(5)) for _ in range(2)]
    ours = adam(weights[:1], lr=0.1)
    plain = torch.optim.Adam(
        weights[1:], lr=0.1, betas=(0.9, 0.98), eps=1e-9, foreach=False
    )
    for _ in range(20):
        gradient = torch.randn(5)
        for weight, optimizer in zip(weights, (ours, plain), strict=True):
            weight.grad = gradient.clone()
            optimizer.step()
    torch.testing.assert_close(*weights)
    assert ours.defaults["fused"]
