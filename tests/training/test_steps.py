"""The objective, one update, and many of them."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.training import (
    Objective,
    Step,
    adam,
    fit,
    label_smoothing,
    linear,
    update,
)
from companion.training.steps import WIDE
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


@pytest.mark.parametrize("norm_first", [False, True])
def test_leaving_padding_out_changes_neither_the_loss_nor_a_gradient(
    norm_first,
):
    src = sentences((4, 7, 1), SRC, SRC_VOCAB, 0)
    tgt = sentences((1, 5, 3), TGT, TGT_VOCAB, 1)
    styles = {"norm_first": norm_first, "num_layers": 2, "d_model": WIDE}
    whole, packed = tiny(**styles), tiny(**styles)
    expected = F.cross_entropy(
        whole(src, tgt[:, :-1]).mT,
        tgt[:, 1:],
        ignore_index=PAD,
        reduction="sum",
    )
    expected.backward()
    total, _ = Objective(packed)(src, tgt)
    total.backward()
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(gradients(packed), gradients(whole))


def test_feed_forward_networks_work_at_real_positions_alone():
    model, seen = tiny(num_layers=2, d_model=WIDE), []
    src = sentences((4, 7, 1), SRC, SRC_VOCAB, 0)
    tgt = sentences((1, 5, 3), TGT, TGT_VOCAB, 1)
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers:
            layer.feed_forward.register_forward_hook(
                lambda _, given, out: seen.append(given[0].shape[:-1].numel())
            )
    Objective(model)(src, tgt)
    read, written = 4 + 7 + 1 + 3 * 2, 1 + 5 + 3 + 3
    assert seen == [read, read, written, written]
    seen.clear()
    Objective(model)(src[:, :6][:1], tgt[1:2])  # nothing to leave out
    assert seen == [6, 6, 6, 6]


def test_a_model_with_a_decode_of_its_own_is_called_as_it_expects():
    class Reversed(Transformer):
        def decode(self, tgt, memory, mask, memory_mask):
            return super().decode(tgt.flip(1), memory, mask, memory_mask)

    config = vars(tiny(d_model=WIDE).config)
    total, _ = Objective(Reversed(TransformerConfig(**config)))(*a_batch())
    assert total.isfinite()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("real", "error", "message"),
    [
        (torch.tensor([0, 27]), ValueError, "real: .*0 to 26, got 27"),
        (torch.tensor([[0]]), ValueError, r"real: .*one axis, got .*\(1, 1\)"),
        (torch.tensor([0.5]), TypeError, "real: .*integers, got torch.float"),
        ([0, 1], TypeError, "real: .*integers, got list"),
    ],
)
def test_positions_that_are_none_are_refused(real, error, message):
    src = sentences((4, 7, 1), SRC, SRC_VOCAB, 0)
    with pytest.raises(error, match=message):
        tiny().encode(src, None, real)


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


def test_gradients_that_nobody_cleared_are_noted():
    torch.manual_seed(0)
    weight = nn.Parameter(torch.tensor([3.0, 4.0]))

    class Sum(nn.Module):
        def forward(self, x):
            return (weight * x).sum(), len(x)

        def count(self, x):
            return len(x)

    class Keeps(torch.optim.SGD):
        def zero_grad(self, set_to_none=True):
            pass

    batch = (torch.ones(2),)
    for optimizer, left in ((torch.optim.SGD, 0), (Keeps, 1)):
        weight.grad = None
        sgd = optimizer([weight], lr=1.0)
        first, second = (
            update(Sum(), sgd, [batch], step=step, rate=1.0, clip=1.0)
            for step in (1, 2)
        )
        assert first.left == 0
        assert second.left == pytest.approx(left * 0.5**0.5)
