"""Whatever the sizes and numbers: rules of chapter 10."""

import copy
import dataclasses
import itertools
import math
import tempfile

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    SEEDS,
    SIZES,
    normal,
    padded,
    sentences,
)

from companion.training import (
    Finding,
    Objective,
    Step,
    TrainConfig,
    Trained,
    adam,
    corpus,
    diagnose,
    fit,
    label_smoothing,
    linear,
    load_trained,
    make_task,
    noam,
    read_log,
    train,
    update,
)
from companion.transformer import Transformer, TransformerConfig

VOCAB, BOS, EOS = 7, 1, 2
close = torch.testing.assert_close
# What takes a second is drawn a tenth as often.
SELDOM = settings(max_examples=max(2, settings().max_examples // 10))


@st.composite
def models(draw):
    """A Transformer in evaluation, in 64 bits, and a source."""
    torch.manual_seed(draw(SEEDS))
    heads = draw(FEW)
    config = TransformerConfig(
        src_vocab_size=VOCAB,
        tgt_vocab_size=VOCAB,
        # A norm leaves of two numbers a sign only, and tokens would tie.
        d_model=heads * draw(st.integers(3, 5)),
        num_heads=heads,
        d_ff=draw(SIZES),
        num_layers=draw(st.integers(1, 2)),
        norm_first=draw(st.booleans()),
    )
    src = draw(sentences(FEW, SIZES, low=1, high=VOCAB))
    return Transformer(config).double().eval(), src


# The schedule and the loss.


@given(st.integers(1, 9999), st.integers(1, 999), st.integers(1, 999))
def test_noam_is_highest_at_the_end_of_its_warmup(step, d_model, warmup):
    peak = (d_model * warmup) ** -0.5
    assert noam(warmup, d_model, warmup) == pytest.approx(peak)
    assert 0 < noam(step, d_model, warmup) <= peak * (1 + 1e-12)
    later = noam(4 * warmup, d_model, warmup)
    assert later == pytest.approx(peak / 2)


@given(st.integers(1, 99), st.data())
def test_the_line_rises_to_its_peak_and_never_reaches_zero(steps, data):
    warmup = data.draw(st.integers(0, steps))
    rates = [
        linear(i + 1, steps, peak=0.5, warmup=warmup) for i in range(steps)
    ]
    top = max(warmup, 1) - 1
    assert rates[top] == max(rates) == 0.5
    assert min(rates) > 0
    slopes = [b - a for a, b in itertools.pairwise(rates)]
    assert slopes[:top] == pytest.approx([0.5 / max(warmup, 1)] * top)
    assert all(slope < 0 for slope in slopes[top:])


@given(FEW, SIZES, st.integers(2, 9), st.floats(0, 0.99), st.data())
def test_the_smoothed_loss_agrees_with_pytorch(batch, seq, vocab, share, data):
    logits = data.draw(normal(batch, seq, vocab))
    target = data.draw(sentences(batch, seq, low=1, high=vocab))
    loss = label_smoothing(logits, target, share, 0)
    theirs = F.cross_entropy(
        logits.flatten(0, 1),
        target.flatten(),
        ignore_index=0,
        label_smoothing=share,
    )
    close(loss, theirs)
    more = F.pad(logits, (0, 0, 0, 2), value=9.0)
    close(label_smoothing(more, padded(target, 2), share, 0), loss)
    assert loss >= 0


# Steps.


def pairs(data, model, number):
    """So many batches of a source and a target that begins with bos."""
    made = []
    for _ in range(number):
        src, tgt = (
            data.draw(sentences(2, SIZES, low=3, high=VOCAB)) for _ in "st"
        )
        made.append((src, torch.cat([torch.full((2, 1), BOS), tgt], dim=1)))
    return made


@given(models(), st.floats(0, 0.9), st.data())
def test_the_objective_is_the_sum_of_the_smoothed_losses(drawn, share, data):
    model, _ = drawn
    [(src, tgt)] = pairs(data, model, 1)
    objective = Objective(model, smoothing=share)
    total, count = objective(src, tgt)
    logits = model(src, tgt[:, :-1])
    mean = label_smoothing(logits, tgt[:, 1:], share, 0)
    close(total, mean * count, atol=1e-4, rtol=1e-4)
    assert count == objective.count(src, tgt) == (tgt[:, 1:] != 0).sum()


@given(models(), st.floats(1e-4, 0.1), st.floats(0.1, 2), st.data())
def test_a_step_of_several_batches_is_one_of_their_joint_loss(
    drawn, rate, clip, data
):
    model, _ = drawn
    batches = pairs(data, model, 2)
    other = copy.deepcopy(model)
    optimizer = adam(model.parameters(), lr=1.0)
    told = update(
        Objective(model), optimizer, batches, step=3, rate=rate, clip=clip
    )
    total = sum(Objective(other)(*batch)[0] for batch in batches)
    (total / told.tokens).backward()
    plain = torch.optim.Adam(
        other.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9
    )
    norm = torch.nn.utils.clip_grad_norm_(other.parameters(), clip)
    plain.step()
    assert told == Step(3, told.loss, rate, told.gradient, told.tokens)
    assert told.loss == pytest.approx(total.item() / told.tokens, rel=1e-4)
    assert told.gradient == pytest.approx(norm.item(), rel=1e-4)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        # Adam's first step is ± the rate, even where a gradient is nearly 0.
        assert ((one - two).abs() <= 2.01 * rate).all()
        assert (one - two).abs().mean() < 0.1 * rate


@given(models(), FEW, st.data())
def test_a_fit_takes_one_step_a_batch_at_the_rate_it_is_told(
    drawn, number, data
):
    model, _ = drawn
    history = fit(
        model, pairs(data, model, number), rate=lambda step: 0.01 / step
    )
    assert [told.step for told in history] == [*range(1, number + 1)]
    assert [told.rate for told in history] == [
        0.01 / s for s in range(1, number + 1)
    ]
    assert all(math.isfinite(told.loss) for told in history)


# Curves.


@given(st.integers(20, 99), st.floats(2, 9), st.floats(0, 0.5), FEW)
def test_a_loss_that_falls_far_is_healthy(steps, start, end, gradient):
    losses = [start * (end + (1 - end) * 0.9**i) for i in range(steps)]
    assume(losses[-1] < 0.6 * start)
    history = [Step(i, x, 1e-3, gradient, 9) for i, x in enumerate(losses)]
    found = diagnose(history)
    assert not [f for f in found if losses[-steps // 5] < 0.6 * start]


@given(st.integers(20, 99), st.floats(1, 9), st.floats(1e-9, 1e-5))
def test_a_loss_that_stays_is_blamed_on_what_the_rates_allow(steps, loss, rate):
    history = [Step(i, loss, rate, 1.0, 9) for i in range(steps)]
    [finding] = diagnose(history)
    assert isinstance(finding, Finding)
    assert finding.name == "rate too low"
    [finding] = diagnose([step._replace(rate=0.1) for step in history])
    assert finding.name == "rate too high"


@pytest.mark.bad_input
@given(st.integers(0, 19), st.floats(1.001, 9))
def test_a_curve_too_short_and_a_share_above_one_are_refused(steps, right):
    short = [Step(i, 1.0, 0.1, 1.0, 9) for i in range(steps)]
    with pytest.raises(ValueError, match=f"^history: .*20 steps, got {steps}"):
        diagnose(short)
    with pytest.raises(ValueError, match=r"^right: expected a share"):
        diagnose([Step(0, 1.0, 0.1, 1.0, 9)] * 20, right=right, length=3.0)


# Runs.

SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "data": st.sampled_from(["copy", "reverse"]),
        "num_heads": st.sampled_from([1, 2, 4]),
        "num_layers": FEW,
        "norm_first": st.booleans(),
        "smoothing": st.floats(0, 0.5),
        "clip": st.one_of(st.none(), st.floats(0.1, 9)),
        "schedule": st.sampled_from(["noam", "linear"]),
        "seed": st.integers(0, 2**32 - 1),
    },
)


@given(SETTINGS)
def test_a_configuration_comes_back_from_its_values(values):
    config = TrainConfig(**values)
    assert TrainConfig.of(dataclasses.asdict(config)) == config
    assert config.rate()(1) > 0


@pytest.mark.bad_input
@given(st.sampled_from([f.name for f in dataclasses.fields(TrainConfig)]))
def test_a_field_written_wrongly_is_answered_with_the_nearest(name):
    with pytest.raises(ValueError, match=f"'{name}s'; the nearest .*'{name}'"):
        TrainConfig.of({f"{name}s": 1})
    with pytest.raises(TypeError, match=f"^{name}: expected"):
        TrainConfig.of({name: [1]})


@SELDOM
@given(st.sampled_from(["copy", "reverse", "phrasebook"]), SEEDS)
def test_a_task_asks_for_what_its_corpus_says(data, seed):
    config = TrainConfig(data=data, seed=seed)
    task, parts = make_task(config), corpus(config)
    src, tgt = task.batches.at(0)
    texts = [
        (task.src_codec.decode(a), task.tgt_codec.decode(b))
        for a, b in zip(src.tolist(), tgt.tolist(), strict=True)
    ]
    assert set(texts) <= set(parts.train)
    assert not set(parts.train) & set(parts.test)


@SELDOM
@given(SETTINGS.map(lambda chosen: {"data": "copy", **chosen}))
def test_a_run_leaves_what_it_returns_and_a_row_a_step(values):
    small = {"d_model": 8, "d_ff": 8, "steps": 2, "warmup": 1}
    config = TrainConfig(**values | small | {"batch_tokens": 128})
    with tempfile.TemporaryDirectory() as folder:
        made = train(config, folder, progress=False)
        again = load_trained(folder)
        log = read_log(folder)
    assert isinstance(again, Trained)
    assert again.config == made.config == config
    for one, two in zip(
        made.model.parameters(), again.model.parameters(), strict=True
    ):
        assert torch.equal(one, two)
    assert [row["step"] for row in log] == [1, 2]
    assert log[0]["rate"] == pytest.approx(config.rate()(1), rel=1e-5)
