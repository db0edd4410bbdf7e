"""The schedule, the loss, the optimizer, and one update."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.training import (
    Objective,
    Step,
    adam,
    fit,
    label_smoothing,
    linear,
    noam,
    update,
)
from companion.transformer import (
    LanguageModel,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
    shift_right,
)

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, VOCAB = 3, 5, 11
SRC_VOCAB, SRC, TGT_VOCAB, TGT = 13, 7, 17, 5
PAD, BOS, EOS = 0, 1, 2


def tiny(seed=0, **changes):
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(SRC_VOCAB, TGT_VOCAB)
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_layers": 1}
    return Transformer(
        TransformerConfig(**{**vars(config), **sizes, **changes})
    )


def sentences(lengths, width, vocab, seed):
    """Rows bos … eos with so many words between, then padding."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((len(lengths), width + 2), PAD)
    for row, length in zip(rows, lengths, strict=True):
        words = torch.randint(3, vocab, (length,), generator=generator)
        row[: length + 2] = torch.tensor([BOS, *words.tolist(), EOS])
    return rows


def a_batch(lengths=(1, 5, 3), seed=0):
    size = len(lengths)
    src = sentences([4] * size, SRC, SRC_VOCAB, seed)
    return src, sentences(lengths, TGT, TGT_VOCAB, seed + 1)


def gradients(model):
    return {n: p.grad.clone() for n, p in model.named_parameters()}


class Still(torch.optim.SGD):
    """An optimizer under which ``update`` leaves gradients to be read."""

    def step(self, closure=None):
        del closure


def still(model):
    return Still(model.parameters(), lr=1.0)


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
        Objective(tiny(), smoothing=smoothing)


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


# What is made small.


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_objective_is_pytorchs_loss_on_all_logits(smoothing):
    model, (src, tgt) = tiny(), a_batch()
    total, count = Objective(model, smoothing=smoothing)(src, tgt)
    answer = tgt[:, 1:]
    logits = model(src, shift_right(answer, BOS))
    expected = F.cross_entropy(
        logits.mT,
        answer,
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )
    torch.testing.assert_close(total, expected)
    mean = label_smoothing(logits, answer, smoothing, PAD)
    torch.testing.assert_close(total, mean * count)


def test_the_objective_counts_what_must_be_said_and_not_bos():
    src, tgt = a_batch(lengths=(1, 5, 3))
    objective = Objective(tiny())
    assert objective(src, tgt)[1] == 1 + 5 + 3 + 3  # and an eos each
    assert objective.count(src, tgt) == 12


@pytest.mark.parametrize("pad", [PAD, None])
def test_the_objective_of_a_language_model_is_its_next_token(pad):
    torch.manual_seed(0)
    config = LanguageModelConfig(
        vocab_size=VOCAB,
        d_model=8,
        num_heads=2,
        d_ff=12,
        num_layers=1,
        dropout=0.0,
        norm_first=False,
        pad=pad,
    )
    model = LanguageModel(config)
    tokens = sentences((1, 5, 3), TGT, VOCAB, 0)
    total, count = Objective(model)(tokens)
    expected = F.cross_entropy(
        model(tokens[:, :-1]).mT,
        tokens[:, 1:],
        ignore_index=-100 if pad is None else pad,
        reduction="sum",
    )
    torch.testing.assert_close(total, expected)
    assert count == (12 if pad == PAD else 3 * (TGT + 1))


# One update.


def test_accumulated_batches_give_the_gradient_of_the_large_batch():
    src, tgt = a_batch(lengths=(1, 5, 3, 2, 4))
    large, small = tiny(), tiny()
    one = update(Objective(large), still(large), [(src, tgt)], step=1, rate=1.0)
    parts = [(src[:2], tgt[:2]), (src[2:], tgt[2:])]
    two = update(Objective(small), still(small), parts, step=1, rate=1.0)
    torch.testing.assert_close(gradients(small), gradients(large))
    assert one.tokens == two.tokens == 20
    assert one.loss == pytest.approx(two.loss)
    assert one.gradient == pytest.approx(two.gradient)


def test_the_loss_of_a_step_is_the_mean_over_its_tokens():
    model, batch = tiny(), a_batch()
    total, count = Objective(model)(*batch)
    step = update(Objective(model), still(model), [batch], step=7, rate=0.5)
    assert step == Step(
        7, pytest.approx(total.item() / count), 0.5, step[3], 12
    )


def test_an_update_forgets_the_gradients_before_it():
    model, batch = tiny(), a_batch()
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e3)
    first = update(Objective(model), still(model), [batch], step=1, rate=1.0)
    again = update(Objective(model), still(model), [batch], step=2, rate=1.0)
    assert first.gradient == again.gradient < 100


def test_a_long_gradient_is_clipped_to_1_unless_one_says_otherwise():
    model, batch = tiny(), a_batch()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5)
    step = update(Objective(model), still(model), [batch], step=1, rate=1.0)
    assert step.gradient > 2
    length = torch.cat([g.flatten() for g in gradients(model).values()]).norm()
    assert length.item() == pytest.approx(1, rel=1e-4)


def test_clipping_keeps_the_direction_and_tells_the_norm_before():
    batch, free, held = a_batch(), tiny(), tiny()
    before = update(
        Objective(free), still(free), [batch], step=1, rate=1.0, clip=None
    )
    after = update(
        Objective(held), still(held), [batch], step=1, rate=1.0, clip=0.25
    )
    assert before.gradient == after.gradient > 0.25
    a, b = (
        torch.cat([g.flatten() for g in gradients(m).values()])
        for m in (free, held)
    )
    assert a.norm().item() == pytest.approx(before.gradient, rel=1e-5)
    assert b.norm().item() == pytest.approx(0.25, rel=1e-4)
    assert F.cosine_similarity(a, b, dim=0).item() == pytest.approx(1)


def test_the_gradient_is_unscaled_before_it_is_clipped():
    plain, scaled = tiny(), tiny()
    update(Objective(plain), still(plain), [a_batch()], step=1, rate=1.0)
    step = update(
        Objective(scaled),
        still(scaled),
        [a_batch()],
        step=1,
        rate=1.0,
        scaler=torch.amp.GradScaler("cpu", init_scale=1024.0),
    )
    assert step.gradient > 1  # so that clipping did something
    torch.testing.assert_close(gradients(scaled), gradients(plain))


def test_the_rate_of_an_update_is_the_one_it_is_told():
    model = tiny()
    optimizer = torch.optim.SGD(model.parameters(), lr=99.0)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    update(
        Objective(model), optimizer, [a_batch()], step=1, rate=0.5, clip=None
    )
    for name, parameter in model.named_parameters():
        expected = before[name] - 0.5 * parameter.grad
        torch.testing.assert_close(parameter.detach(), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_multiplies_in_half_and_keeps_the_rest_in_full(dtype):
    model, seen = tiny(), []
    hook = model.decoder.layers[0].feed_forward.up_proj.register_forward_hook(
        lambda module, args, output: seen.append(output.dtype)
    )
    full = fit(tiny(), [a_batch()] * 3, rate=lambda step: 1e-2)
    half = fit(model, [a_batch()] * 3, rate=lambda step: 1e-2, dtype=dtype)
    hook.remove()
    assert seen == [dtype] * 3
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    for a, b in zip(full, half, strict=True):
        assert a.loss != b.loss
        assert a.loss == pytest.approx(b.loss, rel=0.02)
        assert a.gradient == pytest.approx(b.gradient, rel=0.1)


def test_an_overflow_in_fp16_skips_a_step_and_halves_the_scale():
    model = tiny()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
    optimizer = adam(model.parameters(), lr=1.0)
    step = update(
        Objective(model),
        optimizer,
        [a_batch()],
        step=1,
        rate=1.0,
        scaler=scaler,
        autocast=torch.float16,
    )
    assert not math.isfinite(step.gradient)
    assert scaler.get_scale() == 2.0**39
    torch.testing.assert_close(dict(model.named_parameters()), before)


def test_fit_skips_an_infinite_gradient_in_fp16_and_nowhere_else():
    # There a scaler can make the next one smaller.
    for dtype in (torch.float16, torch.bfloat16, None):
        model = tiny()
        model.src_embedding.weight.register_hook(lambda x: x * math.inf)
        how = {"rate": lambda step: 1e-2, "dtype": dtype}
        if dtype == torch.float16:
            (step,) = fit(model, [a_batch()], **how)
            assert not math.isfinite(step.gradient)
        else:
            with pytest.raises(FloatingPointError, match="gradient"):
                fit(model, [a_batch()], **how)
        torch.testing.assert_close(model.state_dict(), tiny().state_dict())


# Many updates.


def test_fit_learns_one_batch_by_heart_and_tells_every_step():
    model = tiny(d_model=16, num_layers=2)
    history = fit(
        model, [a_batch()] * 60, rate=lambda s: linear(s, 60, peak=0.02)
    )
    assert [step.step for step in history] == list(range(1, 61))
    assert history[0].loss == pytest.approx(math.log(TGT_VOCAB) + 0.5, abs=2)
    assert history[-1].loss < 0.1
    assert history[9].rate == linear(10, 60, peak=0.02)


def test_fit_is_the_plain_loop_with_pytorchs_parts():
    batches = [a_batch(seed=seed) for seed in range(5)]
    ours, plain = tiny(), tiny()
    history = fit(
        ours, batches, rate=lambda s: 0.01 / s, smoothing=0.1, clip=0.5
    )
    optimizer = torch.optim.Adam(
        plain.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda epoch: 1 / (epoch + 1)
    )
    losses = []
    for src, tgt in batches:
        loss = F.cross_entropy(
            plain(src, tgt[:, :-1]).mT,
            tgt[:, 1:],
            ignore_index=PAD,
            label_smoothing=0.1,
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    assert [step.loss for step in history] == pytest.approx(losses, rel=1e-4)
    for (name, a), b in zip(
        ours.named_parameters(), plain.parameters(), strict=True
    ):
        # A bias of the keys moves no weight of attention: its gradient is
        # rounding noise, which Adam takes as seriously as any gradient.
        if not name.endswith("k_proj.bias"):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-3)


def test_fit_turns_dropout_on():
    model = tiny(dropout=0.5).eval()
    fit(model, [a_batch()], rate=lambda step: 0.01)
    assert model.training


# What does not work is said.


@pytest.mark.bad_input
def test_a_loss_that_is_not_finite_stops_before_any_weight_moves():
    model = tiny()
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.up_proj.bias[0] = math.nan
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = adam(model.parameters(), lr=1.0)
    with pytest.raises(
        FloatingPointError, match=r"step 23: .* loss nan .* learning rate 0.07"
    ):
        update(Objective(model), optimizer, [a_batch()], step=23, rate=0.07)
    torch.testing.assert_close(
        dict(model.named_parameters()), before, equal_nan=True
    )


@pytest.mark.bad_input
def test_a_gradient_that_is_not_finite_stops_too():
    model = tiny()
    parameter = model.tgt_embedding.weight
    parameter.register_hook(lambda grad: grad * math.inf)
    with pytest.raises(
        FloatingPointError, match=r"step 3: .* gradient norm (inf|nan)"
    ):
        update(Objective(model), still(model), [a_batch()], step=3, rate=1.0)


@pytest.mark.bad_input
def test_batches_without_a_real_token_are_refused():
    src, tgt = a_batch()
    nothing = [(src, torch.full_like(tgt, PAD))]
    model = tiny()
    with pytest.raises(ValueError, match=r"batches: .* no padding"):
        update(Objective(model), still(model), nothing, step=1, rate=1.0)
