"""Broken runs are recognised from their curves, and healthy ones left alone."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.data import phrasebook
from companion.data.copying import copying_batches
from companion.data.vocabulary import Vocabulary
from companion.training import (
    Objective,
    Step,
    adam,
    diagnose,
    linear,
    noam,
    update,
)
from companion.transformer import (
    LanguageModel,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
)

STEPS = 150
TRAIN, TEST = phrasebook.split()
ZH = Vocabulary.from_sentences(pair.zh for pair in TRAIN)
EN = Vocabulary.from_sentences(pair.en for pair in TRAIN)
SYMBOLS = 7


class Unshifted(Transformer):
    """Reads the very token that it must say."""

    def decode(self, tgt, memory, mask, memory_mask):
        tgt = F.pad(tgt[:, 1:], (0, 1))
        return super().decode(tgt, memory, mask, memory_mask)


class Forgetful(torch.optim.Adam):
    """An optimizer whose zero_grad nobody called."""

    def zero_grad(self, set_to_none=True):
        del set_to_none


def forgetful(parameters, lr):
    return Forgetful(parameters, lr=lr, betas=(0.9, 0.98), eps=1e-9)


def phrases(seed, corpus=TRAIN, size=24, steps=STEPS):
    return phrasebook.phrasebook_batches(
        corpus, ZH, EN, size=size, steps=steps, seed=seed
    )


def backwards(seed, size=32, steps=STEPS):
    eos = torch.full((size, 1), Vocabulary.eos)
    return [
        (src, torch.cat([tgt, eos], dim=1))
        for src, tgt in copying_batches(
            length=5,
            symbols=SYMBOLS,
            size=size,
            steps=steps,
            seed=seed,
            backwards=True,
        )
    ]


TASKS = {
    "phrasebook": (
        phrases,
        phrases(99, TEST, size=80, steps=1)[0],
        (len(ZH), len(EN)),
    ),
    "backwards": (
        backwards,
        backwards(99, size=80, steps=1)[0],
        (SYMBOLS + 3, SYMBOLS + 3),
    ),
}


@torch.no_grad()
def share_right(model, src, tgt):
    out = tgt[:, :1]
    for _ in range(tgt.shape[1] - 1):
        said = model(src, out)[:, -1:].argmax(-1)
        out = torch.cat([out, said], dim=1)
    over = (out == Vocabulary.eos).cumsum(1) - (out == Vocabulary.eos).int()
    out = out.masked_fill(over > 0, Vocabulary.pad)
    return (out == tgt).all(1).float().mean().item()


@torch.no_grad()
def loss_of(model, batch):
    total, count = Objective(model)(*batch)
    return (total / count).item()


def falling(peak):
    return lambda step: linear(step, STEPS, peak=peak, warmup=10)


def curves(
    task,
    seed,
    *,
    rate=None,
    kind=Transformer,
    optimizer=adam,
    clip=1.0,
    batches=None,
    **changes,
):
    """A run: everything that ``diagnose`` may look at."""
    make, held, (src_vocab, tgt_vocab) = TASKS[task]
    rate = rate or falling(5e-3)
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(src_vocab, tgt_vocab)
    sizes = {"d_model": 32, "d_ff": 64, "num_layers": 1}
    model = kind(TransformerConfig(**{**vars(config), **sizes, **changes}))
    objective, valid, history = Objective(model), [], []
    optimizer = optimizer(model.parameters(), lr=rate(1))
    for step, batch in enumerate(batches or make(seed), 1):
        history.append(
            update(
                objective,
                optimizer,
                [batch],
                step=step,
                rate=rate(step),
                clip=clip,
            )
        )
        if step % 15 == 0:
            model.eval()
            valid.append(loss_of(model, held))
            model.train()
    right = share_right(model.eval(), *held)
    length = (held[1][:, 1:] != Vocabulary.pad).sum().item() / len(held[1])
    return history, {"valid": valid, "right": right, "length": length}


def names(history, told):
    return [finding.name for finding in diagnose(history, **told)]


BROKEN = {
    "rate too low": {"rate": falling(2e-5)},
    "rate too high": {"rate": lambda step: 0.2},
    "gradients pile up": {"optimizer": forgetful, "clip": None},
    "sees the answer": {"kind": Unshifted},
}
HEALTHY = {
    "linear": {},
    "noam": {"rate": lambda step: noam(step, 32, 60) / 2},
    "dropout": {"dropout": 0.1, "rate": falling(8e-3)},
    "pre-LN": {"norm_first": True, "num_layers": 2},
}


@pytest.mark.parametrize(
    ("task", "seed"), [("phrasebook", 1), ("backwards", 2)]
)
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_is_recognised_and_nothing_else_is_said(name, task, seed):
    assert names(*curves(task, seed, **BROKEN[name])) == [name]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_that_learns_32_sentences_by_heart_overfits(seed):
    torch.manual_seed(seed)
    few = phrases(seed, size=32, steps=1) * STEPS
    run = curves("phrasebook", seed, batches=few)
    assert names(*run) == ["overfitting"]


@pytest.mark.parametrize(
    ("task", "seed"), [("phrasebook", 1), ("backwards", 2)]
)
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_has_no_finding(name, task, seed):
    history, told = curves(task, seed, **HEALTHY[name])
    assert history[-1].loss < history[0].loss / 1.4
    assert names(history, told) == []


def test_a_healthy_language_model_has_no_finding():
    torch.manual_seed(0)
    config = LanguageModelConfig(
        vocab_size=len(EN),
        d_model=32,
        num_heads=4,
        d_ff=64,
        num_layers=1,
        dropout=0.0,
        norm_first=True,
        pad=Vocabulary.pad,
    )
    model = LanguageModel(config)
    optimizer = adam(model.parameters(), lr=1.0)
    history = [
        update(
            Objective(model), optimizer, [(tgt,)], step=s, rate=falling(5e-3)(s)
        )
        for s, (_, tgt) in enumerate(phrases(0), 1)
    ]
    assert names(history, {}) == []


# Each rule by itself, on curves drawn by hand.


def drawn(losses, rate=0.01, gradients=None):
    gradients = gradients or [1.0] * len(losses)
    return [
        Step(i, loss, rate, gradient, 100)
        for i, (loss, gradient) in enumerate(
            zip(losses, gradients, strict=True), 1
        )
    ]


FALLS = [5 * 0.95**i for i in range(100)]
STAYS = [5.0] * 10 + [4.0] * 90


def test_a_flat_loss_is_a_matter_of_how_far_the_weights_could_go():
    assert names(drawn(STAYS, rate=1e-5), {}) == ["rate too low"]
    assert names(drawn(STAYS, rate=1e-2), {}) == ["rate too high"]


def test_a_loss_that_converged_is_not_stuck():
    assert names(drawn([5.0] * 10 + [2.0] * 90), {}) == []


@pytest.mark.parametrize("wild", [math.nan, math.inf, 30.0])
def test_a_loss_that_explodes_is_a_rate_too_high(wild):
    assert names(drawn(FALLS[:50] + [wild] * 50), {}) == ["rate too high"]


def test_one_loss_that_is_no_number_is_enough():
    once = [*FALLS[:50], math.nan, *FALLS[51:]]
    assert names(drawn(once), {}) == ["rate too high"]


def test_gradients_that_grow_while_the_loss_falls_are_no_illness():
    growing = [1 + i / 10 for i in range(100)]
    assert names(drawn(FALLS, gradients=growing), {}) == []
    assert names(drawn(STAYS, gradients=growing), {}) == ["gradients pile up"]


def test_overfitting_is_a_turn_that_lasts():
    turns = {"valid": [4.0, 3.0, 2.0, 2.2, 2.3, 2.4]}
    bump = {"valid": [4.0, 3.0, 2.0, 2.2, 2.0, 1.9]}
    late = {"valid": [4.0, 3.0, 2.5, 2.0, 2.0, 2.3]}
    assert names(drawn(FALLS), turns) == ["overfitting"]
    assert names(drawn(FALLS), bump) == []
    assert names(drawn(FALLS), late) == []
    # A loss that never fell has learned nothing by heart.
    high = {"valid": [8.0, 7.0, 6.0, 6.5, 6.6, 6.7]}
    assert names(drawn(STAYS), high) == ["rate too high"]


def test_a_loss_promises_a_share_of_sentences():
    # 0.02 nats a token, 10 tokens: e^-0.2 = 82 % of the sentences.
    low = drawn([5.0] * 10 + [0.02] * 90)
    assert names(low, {"right": 0.0, "length": 10.0}) == ["sees the answer"]
    assert names(low, {"right": 0.9, "length": 10.0}) == []
    # 0.2 nats promise 14 % only, and a sample may well have none.
    high = drawn([5.0] * 10 + [0.2] * 90)
    assert names(high, {"right": 0.0, "length": 10.0}) == []
    # The promise is that of the sentences which were written.
    told = {"right": 0.0, "length": 10.0, "valid": [3.0, 2.0, 1.0, 1.0, 1.0]}
    assert names(low, told) == []


def test_a_finding_says_why_and_what_to_try_and_what_was_seen():
    (finding,) = diagnose(drawn(STAYS, rate=1e-5))
    assert "Adam" in finding.why
    assert "rate" in finding.advice
    assert "from" not in finding.name
    assert "5.00" in finding.evidence
    assert "4.00" in finding.evidence
    assert "0.001" in finding.evidence


@pytest.mark.bad_input
def test_a_curve_too_short_or_half_an_answer_is_refused():
    with pytest.raises(ValueError, match=r"history: .* 20 steps, got 19"):
        diagnose(drawn(FALLS[:19]))
    with pytest.raises(ValueError, match=r"right and length: .* 0.5 and None"):
        diagnose(drawn(FALLS), right=0.5)
    with pytest.raises(ValueError, match=r"right: .* got 50.0"):
        diagnose(drawn(FALLS), right=50.0, length=7.0)
