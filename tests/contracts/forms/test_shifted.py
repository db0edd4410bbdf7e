"""Models that are given whole targets, and shift them themselves."""

import pytest
import torch
import torch.nn.functional as F
from contracts.right import built
from contracts.right.standins import Stack, Translator
from torch import nn

from companion.contracts import adapters, check, check_model
from companion.transformer import Transformer, TransformerConfig, shift_right

pytestmark = pytest.mark.once

BOS = 1


def shifted(tokens):
    return F.pad(tokens[:, :-1], (1, 0), value=BOS)


class ShiftsItsTargets(Translator):
    def forward(self, src, tgt):
        tgt = shifted(tgt)
        return self.run(src, tgt, src == 0, self.past(tgt))


class WithItsLoss(ShiftsItsTargets):
    """And hands its loss over too."""

    def forward(self, src, tgt):
        logits = super().forward(src, tgt)
        return logits, F.cross_entropy(logits.transpose(1, 2), tgt)


class TakesLabels(ShiftsItsTargets):
    def forward(self, input_ids, labels):
        return super().forward(input_ids, labels)


class TakesLabelsLast(ShiftsItsTargets):
    """A mask may stand between, and its loss comes first."""

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = super().forward(input_ids, labels)
        return {"loss": logits.sum(), "logits": logits}


class LabelsAndTheFuture(TakesLabels):
    def past(self, tgt):
        return super().past(tgt).new_zeros(tgt.shape[1], tgt.shape[1])


class TakesTargets(ShiftsItsTargets):
    """By their name they may be whole, and nobody can know it."""

    def forward(self, inputs, targets):
        return super().forward(inputs, targets)


class TargetsAndTheFuture(LabelsAndTheFuture):
    def forward(self, inputs, targets):
        return super().forward(inputs, targets)


class SeesTheFuture(ShiftsItsTargets):
    def past(self, tgt):
        return super().past(tgt).new_zeros(tgt.shape[1], tgt.shape[1])


class ShiftsItsTokens(Stack):
    def forward(self, tokens):
        return self.head(self.states(shifted(tokens)))


class ShiftsAndTells(ShiftsItsTokens):
    """Returns logits and what they are compared with."""

    def forward(self, tokens):
        return super().forward(tokens), tokens


RIGHT = [
    ("translation_model", ShiftsItsTargets),
    ("translation_model", WithItsLoss),
    ("language_model", ShiftsItsTokens),
    ("language_model", ShiftsAndTells),
]


@pytest.mark.parametrize(("component", "kind"), RIGHT)
def test_a_model_that_shifts_its_targets_itself_is_told_its_adapter(
    component, kind
):
    yours = built(kind).eval()
    report = check(component, yours)
    (fault,) = report.faults
    assert "The row does not know the token at its own" in fault.message
    assert "`adapters.shifts_itself`" in fault.message
    assert report.assumed[-1] == (
        "If yours is given whole targets, and shifts them itself, no contract "
        "finds a fault. Say so: `adapters.shifts_itself(…)`."
    )
    report = check(component, adapters.shifts_itself(yours))
    assert report.passed, str(report)


def test_who_shifts_what_is_called_targets_is_a_question():
    report = check("translation_model", built(TakesTargets).eval())
    [risk] = report.failures
    assert (risk.level, risk.cause) == ("risk", "who shifts the targets")
    assert "wrong if it is given what the decoder reads" in risk.why
    assert report.assumed[-1] == (
        "If yours is given whole targets, and shifts them itself, no contract "
        "finds a fault. Only you know: if so, judge "
        "`adapters.shifts_itself(…)`."
    )
    report = check("translation_model", built(TargetsAndTheFuture).eval())
    assert report.faults, str(report)


class InItsOwnAttention(nn.Module):
    """Its target is a token longer for it than for the contracts."""

    def __init__(self):
        super().__init__()
        self.inner = Transformer(TransformerConfig.tiny(11, 11))

    def forward(self, input_ids, labels):
        return self.inner(input_ids, shift_right(labels, 1))


def test_the_causal_mask_of_a_longer_target_is_not_the_sources():
    report = check("translation_model", built(InItsOwnAttention).eval())
    assert report.passed, str(report)
    assert report.risks == []


@pytest.mark.parametrize("kind", [TakesLabels, TakesLabelsLast])
def test_what_takes_labels_in_place_of_targets_is_asked_so(kind):
    report = check("translation_model", built(kind).eval())
    assert report.passed, str(report)
    assert report.assumed == (
        "Called as yours: its `labels` are whole targets, which it shifts "
        "itself.",
    )


class LabelsForItsLoss(Stack):
    """A language model: it shifts its labels, and not what it reads."""

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.head(self.states(input_ids))
        if labels is None:
            return logits
        rows, wanted = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        return F.cross_entropy(rows, wanted), logits


def test_labels_that_are_for_a_loss_make_no_translator():
    report = check_model(built(LabelsForItsLoss).eval())
    assert report.kind == "language_model", str(report)
    assert report.passed


def test_what_takes_labels_and_sees_the_future_has_a_fault():
    report = check("translation_model", built(LabelsAndTheFuture).eval())
    assert not report.passed


def test_what_sees_the_future_does_so_behind_the_adapter_too():
    yours = built(SeesTheFuture).eval()
    report = check("translation_model", adapters.shifts_itself(yours))
    assert "No logit knows a target token of its future" in str(report)
    assert not report.passed


def test_what_reads_its_targets_as_they_are_fails_behind_the_adapter():
    """It would be told that a token is missing."""

    class Plain(Translator):
        def forward(self, src, tgt):
            return self.run(src, tgt, src == 0, self.past(tgt))

    yours = built(Plain).eval()
    assert check("translation_model", yours).passed
    assert not check("translation_model", adapters.shifts_itself(yours)).passed


def test_behind_the_adapter_an_argument_may_stand_that_is_no_tensor():
    def yours(src, tgt, ratio=1.0):
        return F.one_hot(F.pad(tgt[:, :-1], (1, 0)), 5) * ratio

    tokens = torch.tensor([[3, 2, 4]])
    shifted = adapters.shifts_itself(yours)
    for found in (
        shifted(tokens, tokens, 1.0),
        shifted(src=tokens, tgt=tokens, ratio=1.0),
    ):
        assert torch.equal(found.argmax(-1), tokens)


def test_what_is_returned_under_a_name_loses_its_first_row_too():
    class Result:
        logits = torch.arange(12.0).view(1, 4, 3)

    found = adapters.shifts_itself(lambda tokens: Result())(torch.ones(1, 3))
    assert found.shape == (1, 3, 3)
    found = adapters.shifts_itself(lambda tokens: {"logits": Result.logits})
    assert found(torch.ones(1, 3))[0, 0, 0] == 3
