"""Norms that are written for three axes are right where three are sent."""

import pytest
import torch
from torch import nn

from companion.contracts import check, check_model

pytestmark = pytest.mark.once

LEADING = "It takes any number of axes before the features"


class Rms(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(width)), 1e-6

    def forward(self, x):
        _batch, _seq, _width = x.shape
        wide = x.float()
        size = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * size).to(x.dtype) * self.gain


class Layer(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.gain, self.eps = nn.Parameter(torch.ones(width)), 1e-5
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        _batch, _seq, _width = x.shape
        y = x - x.mean(-1, keepdim=True)
        size = torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return y * size * self.gain + self.bias


class Deviating(Layer):
    """The deviation is that of a sample: another convention, and a note."""

    def forward(self, x):
        _batch, _seq, _width = x.shape
        size = x.std(-1, keepdim=True) + self.eps
        return (x - x.mean(-1, keepdim=True)) / size * self.gain + self.bias


def of_three_axes(x, gain, eps):
    batch, seq, width = x.shape
    wide = x.float()
    size = (wide.square().sum(2) / width + eps).sqrt().view(batch, seq, 1)
    return (wide / size).to(x.dtype) * gain


def over_the_second_axis(x, gain, eps):
    """With four axes it raises nothing, and its numbers are wrong."""
    size = (x.float().square().mean(2, keepdim=True) + eps).sqrt()
    return (x.float() / size).to(x.dtype) * gain


@pytest.mark.parametrize(
    ("component", "fn"),
    [
        ("rms_norm", Rms()),
        ("rms_norm", of_three_axes),
        ("rms_norm", over_the_second_axis),
        ("layer_norm", Layer()),
        ("layer_norm", Deviating()),
    ],
    ids=lambda x: getattr(x, "__name__", type(x).__name__),
)
def test_a_norm_that_takes_three_axes_alone_is_a_risk(component, fn):
    report = check(component, fn)
    assert report.passed, str(report)
    (risk,) = report.risks
    assert risk.contract == LEADING
    assert "The arguments were x (7,)" in risk.message
    assert "queries and keys" in risk.why


def two_axes_alone(x, gain, eps):
    _tokens, _width = x.shape
    return of_three_axes(x[None], gain, eps)[0]


def no_batch_of_one(x, gain, eps):
    """Three axes are taken, but not of a single sentence."""
    _batch, _seq, _width = x.shape
    if len(x) == 1:
        raise ValueError("a batch of one")
    return of_three_axes(x, gain, eps)


@pytest.mark.parametrize("fn", [two_axes_alone, no_batch_of_one])
def test_a_norm_that_three_axes_do_not_excuse_stays_a_fault(fn):
    assert check("rms_norm", fn).faults


class AddsOne(nn.Module):
    """Adds the 1 of a gain that is stored less 1 to the result instead."""

    def __init__(self, dim=12, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)
        return (y * self.weight.float()).to(x.dtype) + 1.0


class AddsOneToTheGainToo(AddsOne):
    def forward(self, x):
        y = super().forward(x)
        return y + y - 1.0


def test_a_norm_that_adds_1_to_its_result_is_told_so_once():
    report = check("rms_norm", AddsOne())
    (group,) = report.grouped()
    assert len(group) > 5
    assert "Every number is too high by 1" in group[0].message
    assert {f.level for f in report.failures} == {"fault"}
    assert "float16 ends" not in str(report)


def test_what_is_wrong_in_another_way_too_is_told_as_before():
    report = check("rms_norm", AddsOneToTheGainToo())
    assert "too high by 1" not in str(report)
    assert len(report.grouped()) > 3


class LayerNorm(nn.Module):
    def __init__(self, axes=-1, width=12, eps=1e-5):
        super().__init__()
        self.axes, self.eps = axes, eps
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        y = x - x.mean(self.axes, keepdim=True)
        size = x.std(self.axes, keepdim=True) + self.eps
        return y / size * self.gain + self.bias


class RMSNorm(nn.Module):
    def __init__(self, axes=-1, width=12, eps=1e-6):
        super().__init__()
        self.axes, self.eps = axes, eps
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        size = x.square().mean(self.axes, keepdim=True) + self.eps
        return x * size.rsqrt() * self.gain


@pytest.mark.parametrize("axes", [0, 1, (1, 2), (0, 1)])
@pytest.mark.parametrize(
    ("make", "component"),
    [(LayerNorm, "layer_norm"), (RMSNorm, "rms_norm")],
)
def test_what_is_called_a_norm_and_norms_over_other_vectors_is_judged_as_one(
    make, component, axes
):
    (part,) = check_model(make(axes)).parts
    assert part.judged.component == component
    assert "its name says so" in part.judged.assumed[0]
    assert part.judged.report.faults
    said = " ".join(f.message for f in part.judged.report.faults)
    assert "of each vector, `dim=-1`" in said


class ChannelLayerNorm(LayerNorm):
    """Meant so: it is told by its name."""


class BatchRMSNorm(RMSNorm):
    """Meant so too."""


@pytest.mark.parametrize("make", [ChannelLayerNorm, BatchRMSNorm])
def test_a_norm_that_says_that_it_runs_over_another_axis_is_left_alone(make):
    report = check_model(make(1))
    assert not report.parts
    assert report.unjudged


def test_a_layer_norm_over_the_positions_is_told_so_wherever_it_shows():
    said = " ".join(str(check("layer_norm", LayerNorm(1))).split())
    assert "E[x²]" not in said
    assert "Over which axis do the statistics run?" in said
