"""What the answers of chapter 10 claim, computed."""

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

from companion import training, transformer
from companion.data.batches import cut


def test_a_healthy_model_starts_near_ln_v_and_learns_one_batch_by_heart():
    torch.manual_seed(0)
    config = transformer.TransformerConfig.tiny(23, 29)
    model = transformer.Transformer(config)
    src, tgt = torch.randint(3, 23, (5, 7)), torch.randint(3, 29, (5, 8))
    steps = training.fit(model, [(src, tgt)] * 150, rate=lambda step: 3e-3)
    assert steps[0].loss == pytest.approx(math.log(29), abs=1.5)
    assert steps[-1].loss < 0.1


def test_the_mean_over_tokens_is_not_the_mean_of_means():
    tokens, means = torch.tensor([30.0, 10.0]), torch.tensor([2.0, 4.0])
    over_tokens = (tokens * means).sum() / tokens.sum()
    wrong = means.mean(), means.sum()
    answers("training-accumulated", over_tokens, *wrong)


def test_clipping_keeps_the_direction():
    weight = nn.Parameter(torch.zeros(2))
    weight.grad = torch.tensor([30.0, 40.0])
    whole = weight.grad.clone()
    nn.utils.clip_grad_norm_([weight], 1.0)
    assert_close(weight.grad, whole / 50)
    wrong = (whole.clamp(-1, 1)[1], (whole / whole.sum())[1], whole[1])
    answers("training-clipped", weight.grad[1], *wrong)


def test_the_schedule_of_the_paper_rises_then_falls_with_the_root():
    def rate(step):
        return training.noam(step, 512, 4000)

    assert rate(2000) == pytest.approx(rate(4000) / 2)
    assert rate(16000) == pytest.approx(rate(4000) / 2)
    wrong = (
        1e4 * 4000**-0.5,
        1e4 * 4000**-0.5 / 512,
        1e4 * max(512**-0.5 * 1, rate(1)),
    )
    answers("training-peak-of-the-schedule", 1e4 * rate(4000), *wrong)


def test_adams_first_step_has_the_size_of_the_rate():
    weight = nn.Parameter(torch.zeros(1))
    adam = training.adam([weight], lr=0.001)
    weight.grad = torch.tensor([50.0])
    adam.step()
    first = (1 - 0.9) * 50 / math.sqrt((1 - 0.98) * 50**2)
    corrected_below = (1 - 0.9) * 50 / math.sqrt(50**2)
    wrong = 1000 * 0.001 * 50, first, corrected_below
    answers("training-adams-first-step", 1000 * abs(weight.item()), *wrong)


def best_gap(smoothing):
    """The gap at the optimum of PyTorch's loss over 10 classes."""
    logits = torch.zeros(10, requires_grad=True)
    descent = torch.optim.LBFGS([logits], max_iter=200)

    def loss():
        descent.zero_grad()
        value = F.cross_entropy(
            logits[None], torch.tensor([3]), label_smoothing=smoothing
        )
        value.backward()
        return value

    descent.step(loss)
    found = logits.detach()
    return (found[3] - found[4]).item()


def test_a_smoothed_target_asks_for_a_finite_gap():
    wrong = (
        math.log(0.9 / (0.1 / 8)),
        math.log(0.9 / 0.1),
        math.log(0.9 / (0.1 / 9)),
    )
    answers("training-smoothed-gap", best_gap(0.1), *wrong)


def test_the_best_smoothed_answer_costs_more_than_a_sure_one():
    target = torch.tensor([3])
    at_the_optimum = torch.full((1, 10), 0.01).index_fill(1, target, 0.91).log()
    sure = 20 * F.one_hot(target, 10).float()
    plain = [F.cross_entropy(x, target) for x in (at_the_optimum, sure)]
    smooth = [
        F.cross_entropy(x, target, label_smoothing=0.1)
        for x in (at_the_optimum, sure)
    ]
    assert plain[0] > 1000 * plain[1]
    assert smooth[0] < smooth[1]
    assert at_the_optimum.argmax() == sure.argmax() == 3


def test_a_scaled_gradient_must_be_unscaled_before_it_is_clipped():
    weight = nn.Parameter(torch.zeros(2))
    gradient = torch.tensor([30.0, 40.0])
    weight.grad = 1024 * gradient
    nn.utils.clip_grad_norm_([weight], 1.0)
    late = (weight.grad / 1024).norm()
    weight.grad = 1024 * gradient / 1024
    nn.utils.clip_grad_norm_([weight], 1.0)
    assert late.item() == pytest.approx(1 / 1024)
    assert weight.grad.norm().item() == pytest.approx(1.0)


def test_bf16_has_the_range_of_fp32_and_fewer_digits_than_fp16():
    full, half, brain = map(
        torch.finfo, (torch.float32, torch.float16, torch.bfloat16)
    )
    assert brain.tiny == full.tiny
    assert brain.max > 0.99 * full.max > half.max
    assert half.eps == 2**-10
    assert brain.eps == 2**-7
    small = torch.tensor(2.0**-25)
    assert small.half() == 0
    assert small.bfloat16() == small
    assert (small * 1024).half().float() / 1024 == small
    # Where weights were kept in bf16, a small update would vanish.
    assert torch.tensor(1.0).bfloat16() + 0.001 == 1


def test_nats_bits_and_perplexity_are_one_number():
    nats = 1.47
    wrong = math.exp(nats), nats * math.log(2), nats
    answers("training-bits-per-character", nats / math.log(2), *wrong)


def test_dropout_after_the_sum_would_zero_the_stream():
    torch.manual_seed(0)
    x, said = torch.randn(101, 512), torch.randn(101, 512)
    before = x + F.dropout(said, 0.1)
    after = F.dropout(x + said, 0.1)
    assert (before == 0).sum() == 0
    assert (after == 0).float().mean().item() == pytest.approx(0.1, abs=0.01)


def test_a_parameter_in_training_takes_sixteen_bytes():
    model = nn.Linear(7, 5)
    adam = training.adam(model.parameters(), lr=0.001)
    model(torch.ones(7)).sum().backward()
    adam.step()
    moments = [
        state[name]
        for state in adam.state.values()
        for name in ("exp_avg", "exp_avg_sq")
    ]
    held = [*model.parameters(), *(p.grad for p in model.parameters())]
    size = sum(t.numel() * t.element_size() for t in (*held, *moments))
    assert size == 16 * parameters(model)
    with torch.device("meta"):
        config = transformer.TransformerConfig.base()
        millions = parameters(transformer.Transformer(config)) / 1e6
    wrong = 4 * millions, 8 * millions, 12 * millions
    answers("training-memory-of-adam", 16 * millions, *wrong)


def adams_first_step(beta2, corrected):
    """As a share of the rate, for any gradient."""
    g, beta1 = 50.0, 0.9
    m, v = (1 - beta1) * g, (1 - beta2) * g**2
    if corrected:
        m, v = m / (1 - beta1), v / (1 - beta2)
    return m / math.sqrt(v)


def test_adams_means_are_corrected_for_having_started_at_nothing():
    assert adams_first_step(0.98, corrected=True) == pytest.approx(1)
    assert adams_first_step(0.98, corrected=False) == pytest.approx(
        0.71, abs=0.005
    )
    assert adams_first_step(0.999, corrected=False) == pytest.approx(
        3.2, abs=0.05
    )
    # What is left of a gradient after 1 / (1 - beta) steps is about 1/e.
    for beta, steps in ((0.98, 50), (0.999, 1000)):
        assert 1 / (1 - beta) == pytest.approx(steps)
        assert beta**steps == pytest.approx(1 / math.e, abs=0.01)
        share = (1 - beta) * sum(beta**i for i in range(steps))
        assert share == pytest.approx(1 - beta**steps)
    weight = nn.Parameter(torch.zeros(1))
    adam = training.adam([weight], lr=0.001)
    weight.grad = torch.tensor([50.0])
    adam.step()
    assert abs(weight.item()) == pytest.approx(0.001)


def test_the_best_smoothed_loss_is_the_entropy_of_its_target():
    def entropy(*p):
        return -sum(share * math.log(share) for share in p)

    best = torch.tensor([[0.01] * 9 + [0.91]]).log()
    loss = F.cross_entropy(best, torch.tensor([9]), label_smoothing=0.1)
    assert loss.item() == pytest.approx(entropy(0.91, *[0.01] * 9))
    wrong = (
        0.0,
        F.cross_entropy(best, torch.tensor([9])),
        entropy(0.9, *[0.1 / 8] * 8),
    )
    answers("training-floor-of-a-smoothed-loss", loss, *wrong)
    assert entropy(0.91) == pytest.approx(0.086, abs=5e-4)
    assert entropy(*[0.01] * 9) == pytest.approx(0.414, abs=5e-4)


def test_sorted_sentences_waste_less_on_padding():
    lengths = [5, 30, 6, 29, 7, 31, 8, 28]

    def positions(batches):
        return sum(
            len(batch) * max(lengths[i] for i in batch) for batch in batches
        )

    real = sum(lengths)
    as_they_come = positions([range(4), range(4, 8)])
    by_length = cut(lengths, max_tokens=124)
    assert [len(batch) for batch in by_length] == [4, 4]
    sorted_ = positions(by_length)
    assert (real, as_they_come, sorted_) == (144, 244, 156)
    wrong = (
        100 * (1 - real / sorted_),
        100 * (as_they_come - real) / real,
        100 * real / as_they_come,
    )
    answers(
        "training-padding-in-a-batch", 100 * (1 - real / as_they_come), *wrong
    )


def test_the_mean_of_two_processes_is_not_that_of_their_tokens():
    weight = torch.zeros(10, requires_grad=True)
    losses = torch.tensor([0.5] * 9 + [2.0]) + weight
    pieces = losses.split([9, 1])
    means = sum(piece.mean() for piece in pieces) / 2
    assert means.item() == pytest.approx(1.25)
    assert losses.mean().item() == pytest.approx(0.65)
    (counts,) = torch.autograd.grad(means, weight, retain_graph=True)
    assert (counts[9] / counts[0]).item() == pytest.approx(9)
    # Scaled like this, the mean over processes is that over tokens.
    mended = sum(2 * piece.sum() / 10 for piece in pieces) / 2
    assert mended.item() == pytest.approx(0.65)


def test_a_ramp_too_steep_is_at_its_peak_within_a_few_dozen_steps():
    steep = shown("training-a-rate-that-jumps")
    rates = [steep(step, 512, 4000) for step in range(1, 5000)]
    assert rates.index(max(rates)) + 1 == 16
    assert max(rates) == pytest.approx(0.011, abs=1e-4)
    crossing = 4000 ** (1 / 3)
    assert crossing == pytest.approx(15.9, abs=0.05)
    assert training.noam(4000, 512, 4000) / max(rates) == pytest.approx(
        0.06, abs=0.005
    )
    assert rates[-1] == pytest.approx(training.noam(4999, 512, 4000))


def test_adamw_takes_a_share_of_every_weight_at_every_step():
    weight = nn.Parameter(torch.full((7,), 3.0))
    adamw = torch.optim.AdamW([weight], lr=0.01, weight_decay=0.1)
    for _ in range(200):
        weight.grad = torch.zeros(7)
        adamw.step()
    (left,) = set((weight / 3).round(decimals=5).tolist())
    assert left == pytest.approx(0.999**200, abs=1e-4)
    answers("training-what-a-decay-leaves", left, 0.9**200, 1 - 200 * 0.001)


def test_the_best_of_many_looks_is_a_lucky_one():
    # Fifty looks at one model that never changes: only the noise of the
    # sentences differs. What was chosen on one half is told on the other.
    draw = torch.Generator().manual_seed(0)
    looks = 2 + torch.randn(2, 300, 50, generator=draw) / 10
    chosen_on, told_on = looks
    best = chosen_on.argmin(-1, keepdim=True)
    lucky, fair = (x.gather(-1, best).mean() for x in (chosen_on, told_on))
    assert lucky < 2 - 0.2
    assert fair.item() == pytest.approx(2, abs=0.03)
    few = chosen_on[:, :5].amin(-1).mean()
    assert lucky < few - 0.05  # more looks, more luck
