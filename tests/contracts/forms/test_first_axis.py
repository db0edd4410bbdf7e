"""A language model that has the sequence first, and the batch second."""

import pytest
import torch
from contracts.right import built
from torch import nn
from torch.nn import functional as F

from companion.contracts import adapters, check, check_model

pytestmark = pytest.mark.once

QUESTION = "If the sequence comes first in yours, no contract finds a fault. "


def added(length):
    """A causal mask, 0 and −∞."""
    return torch.full((length, length), -torch.inf).triu(1)


class Tutorial(nn.Module):
    """PyTorch's layers as they come, without `batch_first`."""

    def __init__(self, ntoken=11, d_model=12):
        super().__init__()
        self.embed, self.places = (
            nn.Embedding(ntoken, d_model),
            nn.Embedding(32, d_model),
        )
        layer = nn.TransformerEncoderLayer(d_model, 3, 24, 0.0)
        self.layers = nn.TransformerEncoder(
            layer, 2, enable_nested_tensor=False
        )
        self.head = nn.Linear(d_model, ntoken)

    def placed(self, src):
        """The words, each with its place in its column."""
        return self.embed(src) + self.places.weight[: len(src), None]


class GetsItsMask(Tutorial):
    def forward(self, src, src_mask):
        return self.head(self.layers(self.placed(src), src_mask))


class MakesItsMask(Tutorial):
    def forward(self, src, src_mask=None):
        if src_mask is None:
            src_mask = added(len(src))
        return self.head(self.layers(self.placed(src), src_mask))


class WithoutAMask(Tutorial):
    def forward(self, src):
        return self.head(self.layers(self.placed(src)))


class PlacedAlongTheOtherAxis(Tutorial):
    """It takes the batch for first in one line, and the sequence in others."""

    def forward(self, src):
        x = self.embed(src) + self.places.weight[: src.shape[1]]
        return self.head(self.layers(x, added(len(src))))


def model(kind):
    return built(kind).eval()


def test_a_mask_that_fits_only_the_sequence_first_tells_which_comes_first():
    report = check("language_model", model(GetsItsMask))
    assert not report.failures, str(report)
    said = report.assumed[0]
    assert "the sequence comes first in it" in said
    assert "0 and −∞" in said
    assert check_model(model(GetsItsMask)).passed


def test_where_both_axes_can_be_first_the_report_begins_with_a_question():
    report = check("language_model", model(MakesItsMask))
    assert report.passed, str(report)
    assert report.risks
    assert report.assumed[0].startswith(QUESTION)
    assert "adapters.sequence_first" in report.assumed[0]
    for risk in report.risks:
        assert "right if the sequence comes first" in risk.excuse
    assert not check("language_model", model(MakesItsMask), strict=True).passed
    first = adapters.sequence_first(model(MakesItsMask))
    assert not check("language_model", first).failures


def test_in_a_whole_model_no_part_is_read_by_a_question_that_is_open():
    report = check_model(model(MakesItsMask))
    assert report.passed
    assert "for the whole is right" not in str(report)


@pytest.mark.parametrize("kind", [WithoutAMask, PlacedAlongTheOtherAxis])
def test_what_is_wrong_whichever_axis_is_first_has_faults(kind):
    report = check("language_model", model(kind))
    assert report.faults
    assert not any(said.startswith(QUESTION) for said in report.assumed)


class OneLayer(nn.Module):
    """PyTorch's layer as it comes, with its norms behind or in front."""

    def __init__(self, norm_first):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            12, 3, 24, 0.0, norm_first=norm_first
        )

    def forward(self, x, mask=None):
        return self.layer(x, mask)


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_layer_with_the_sequence_first_is_asked_so_wherever_its_norms_are(
    norm_first,
):
    report = check_model(model(lambda: OneLayer(norm_first)))
    assert not report.parts
    [left] = report.unjudged
    assert "`batch_first` is False in `layer`" in left.reason


class Backwards(nn.Module):
    """Attention over the first axis, which sees what stands before."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        q, k, v = self.qkv(x).transpose(0, 1).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(0, 1)


def test_causal_attention_with_the_sequence_first_is_asked_so():
    (one,) = check_model(built(Backwards)).unjudged
    assert one.reason.startswith("what stands first in its tensors")
