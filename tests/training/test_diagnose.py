"""Broken runs are recognised from their curves, and healthy ones left alone."""

import math
import re

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

# Whole trainings: other tests see each signature under the hook.
pytestmark = pytest.mark.once

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
    "gradients pile up": {"optimizer": forgetful},
    "pile up unclipped": {"optimizer": forgetful, "clip": None},
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
    found = names(*curves(task, seed, **BROKEN[name]))
    assert found == [name.replace("pile up unclipped", "gradients pile up")]


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


def test_a_gradient_that_was_there_before_is_a_pile_whatever_the_loss_does():
    run = [step._replace(left=1.0) for step in drawn(FALLS)]
    assert names(run, {}) == ["gradients pile up"]
    first, *rest = drawn(FALLS)
    assert names([first._replace(left=1.0), *rest], {}) == []


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


# The limits, from both sides. Fifths of 20 steps have four, and one median.


def fifths(*medians, rate=0.01, gradients=(1.0,) * 5):
    """A run of 20 steps whose fifths are these; the first step tells itself."""
    losses = [x for x in medians for _ in range(4)]
    norms = [x for x in gradients for _ in range(4)]
    return drawn(losses, rate=rate, gradients=norms)


HIGH, LOW, PILE = "rate too high", "rate too low", "gradients pile up"


@pytest.mark.parametrize(
    ("medians", "name"),
    [
        # 1.5 times its beginning is not yet far above, 1.6 times is.
        ((4, 6, 4, 3, 2), []),
        ((4, 6.4, 4, 3, 2), [HIGH]),
        # 0.66 of it is not enough to have learnt; what is lower was never up.
        ((100, 80, 70, 68, 66), [HIGH]),
        ((100, 80, 70, 68, 65), []),
        # Nine tenths of its middle are no fall any more.
        ((10, 10, 10, 10, 9), [HIGH]),
        ((10, 10, 10, 9.5, 8.9), []),
        # What counts is the middle, not the fourth fifth.
        ((10, 10, 10, 9, 8.5), []),
        ((10, 10, 9, 9, 8.5), [HIGH]),
    ],
)
def test_how_far_a_loss_must_have_come(medians, name):
    assert names(fifths(*medians), {}) == name


def test_the_beginning_is_the_very_first_step():
    run = drawn([9.0, 4.0, 4.0, 4.0, *[4.0] * 16])
    assert names(run, {}) == []  # from 9 to 4
    assert names(run[1:] + run[-1:], {}) == [HIGH]


@pytest.mark.parametrize(
    ("gradients", "name"),
    [
        ((1, 1.2, 1.4, 1.9, 2), HIGH),
        ((1, 1.2, 1.4, 1.9, 2.1), PILE),
        ((1, 1.2, 1.4, 1.2, 2.1), HIGH),  # They do not only rise.
        ((3, 3.5, 4, 5, 6), HIGH),
        ((3, 3.5, 4, 5, 6.1), PILE),
    ],
)
def test_gradients_pile_up_when_they_more_than_double(gradients, name):
    run = fifths(5, 5, 5, 5, 5, gradients=gradients)
    assert names(run, {}) == [name]


def test_weights_have_gone_far_enough_at_two_hundredths():
    flat = 5, 5, 5, 5, 5
    assert names(fifths(*flat, rate=2**-10), {}) == [LOW]  # 20 / 1024 < 0.02
    first, *rest = fifths(*flat, rate=0.0)
    exact = [first._replace(rate=0.02), *rest]
    assert names(exact, {}) == [HIGH]


@pytest.mark.parametrize(
    ("valid", "name"),
    [
        ([4, 3, 2, 2.5, 2.5], []),  # Its best is one of the last three.
        ([4, 2, 2.5, 2.5, 2.5], ["overfitting"]),
        ([2, 2.5, 2.5, 2.5], []),  # Four are no curve.
        ([4, 100, 103, 103, 103], ["overfitting"]),
        ([4, 2, 2.06, 2.06, 2.06], []),  # 1.03 times the best is no turn yet.
        ([4, 2, 2.06, 2.07, 2.07], []),
        ([4, 2, 2.07, 2.07, 2.07], ["overfitting"]),
    ],
)
def test_where_a_turn_begins(valid, name):
    losses = [float(loss) for loss in valid]
    assert names(drawn(FALLS), {"valid": losses}) == name


@pytest.mark.parametrize(
    ("end", "valid", "name"),
    [
        # At most 0.8 of the validation's median, whatever came before.
        (16, [90, 15, 19, 20, 21], ["overfitting"]),
        (17, [90, 15, 19, 20, 21], []),
        # And at most 0.66 of its own beginning, which is 100.
        (65, [180, 100, 120, 120, 120], ["overfitting"]),
        (66, [180, 100, 120, 120, 120], ["overfitting"]),
        (67, [180, 100, 120, 120, 120], []),
    ],
)
def test_what_is_learnt_by_heart_is_known_better_than_the_rest(
    end, valid, name
):
    first, *rest = fifths(95, 94, 93, 92, end)
    run = [first._replace(loss=100.0), *rest]
    assert [
        finding.name
        for finding in diagnose(run, valid=[float(loss) for loss in valid])
        if finding.name == "overfitting"
    ] == name


@pytest.mark.parametrize(
    ("right", "name"),
    [(0.31, []), (0.30, ["sees the answer"]), (1.0, [])],
)
def test_half_of_what_is_promised_is_enough(right, name):
    # ln(1 / 0.6) nats a sentence promise six of ten.
    run = drawn([5.0] * 10 + [math.log(1 / 0.6)] * 90)
    assert names(run, {"right": right, "length": 1.0}) == name


def test_less_than_half_is_no_promise():
    for share, name in ((0.5, ["sees the answer"]), (0.49, [])):
        run = drawn([5.0] * 10 + [-math.log(share)] * 90)
        assert names(run, {"right": 0.0, "length": 1.0}) == name


@pytest.mark.parametrize("place", ["valid", "training"])
def test_the_promise_is_the_last_loss(place):
    first, last = [3.0] * 3, [3.0, 0.02]
    if place == "valid":
        told = {"valid": first + last, "right": 0.0, "length": 10.0}
        run = FALLS
    else:
        told = {"right": 0.0, "length": 10.0}
        run = [x for x in first + last for _ in range(4)]
    assert names(drawn(run), told) == ["sees the answer"]


SICK = {
    LOW: (fifths(5, 5, 5, 5, 4.8, rate=1e-5), {}),
    HIGH: (fifths(5, 5, 5, 5, 4.8), {}),
    "exploded": (fifths(5, 9, 9, 9, 30), {}),
    PILE: (fifths(5, 5, 5, 5, 4.8, gradients=(1, 2, 3, 5, 8.25)), {}),
    "overfitting": (
        fifths(5, 4, 3, 2, 0.5),
        {"valid": [4.0, 2.0, 2.3, 2.25, 2.4]},
    ),
    "sees the answer": (
        fifths(5, 4, 3, 2, 0.02),
        {"right": 0.25, "length": 10.0},
    ),
}
SEEN = {
    LOW: "began at 5.00 and ended near 4.80; all rates together are 0.0002",
    HIGH: "ended near 4.80, and nearly all of that fall came early",
    "exploded": "ended near 30.00, and was far above its beginning",
    PILE: "ended near 4.80, while the gradient's norm rose from 1.0 to 8.2",
    "overfitting": "the validation loss was 2.00 and rose to 2.30, while the "
    "training loss fell to 0.50",
    "sees the answer": "a loss of 0.020 promises 82% of the sentences right, "
    "and 25% are",
}


@pytest.mark.parametrize("name", SICK)
def test_each_finding_says_in_whole_sentences_what_was_seen(name):
    run, told = SICK[name]
    (finding,) = diagnose(run, **told)
    assert finding.name == (HIGH if name == "exploded" else name)
    assert finding.evidence.endswith(SEEN[name])
    for text in (finding.why, finding.advice):
        for sentence in re.split(r"(?<=[.?]) ", text):
            assert re.fullmatch(
                r"[A-Z][^A-Z]*(Adam|pre-LN)?[^A-Z]*[.?]", sentence
            )


@pytest.mark.bad_input
def test_a_curve_too_short_or_half_an_answer_is_refused():
    with pytest.raises(ValueError, match=r"history: .* 20 steps, got 19"):
        diagnose(drawn(FALLS[:19]))
    with pytest.raises(ValueError, match=r"right and length: .* 0.5 and None"):
        diagnose(drawn(FALLS), right=0.5)
    for share in (50.0, 1.01, -0.01):
        with pytest.raises(ValueError, match=rf"right: .* got {share}"):
            diagnose(drawn(FALLS), right=share, length=7.0)
    assert diagnose(drawn([*FALLS[:19], 0.1]), right=1.0, length=7.0) == []
