"""What stands in a plain list is no part of a module, and never trained."""

import pytest
import torch
import torch.nn.functional as F
from contracts.right import built
from torch import nn

from companion.contracts import check, check_model
from companion.contracts.multihead.causal_attention import Causal
from companion.contracts.multihead.multihead import Heads

pytestmark = pytest.mark.once

PART = "Every weight of a module takes part"


class Holding(nn.Module):
    """A language model that holds its layers in whatever ``hold`` makes."""

    def __init__(self, hold=list, dropout=0.0):
        super().__init__()
        self.embed, self.place = nn.Embedding(11, 12), nn.Embedding(16, 12)
        self.layers = hold(self.layer(dropout) for _ in range(2))
        self.head = nn.Linear(12, 11)

    def layer(self, dropout):
        """One layer."""
        return nn.Sequential(Causal(), nn.Dropout(dropout))

    def each(self):
        """All layers, one after the other."""
        return self.layers

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(tokens.shape[1]))
        for layer in self.each():
            x = x + layer(x)
        return self.head(x)


class InADict(Holding):
    def __init__(self):
        super().__init__(lambda layers: dict(enumerate(layers)))

    def each(self):
        return self.layers.values()


class InLists(Holding):
    def __init__(self):
        super().__init__(lambda layers: {"all": [[layer] for layer in layers]})

    def each(self):
        return [layer for (layer,) in self.layers["all"]]


@pytest.mark.parametrize(
    ("make", "kind", "instead"),
    [
        (Holding, "list", "nn.ModuleList"),
        (lambda: Holding(tuple), "tuple", "nn.ModuleList"),
        (InADict, "dict", "nn.ModuleDict"),
        (InLists, "dict", "nn.ModuleDict"),
    ],
)
def test_layers_in_a_plain_list_are_a_fault_told_by_name(make, kind, instead):
    report = check("language_model", built(make))
    (fault,) = report.faults
    assert fault.contract == PART
    assert f"`layers` is a plain {kind}" in fault.message
    assert instead in fault.message
    assert "never trained" in fault.message


def test_layers_in_a_list_of_modules_are_parts():
    assert check("language_model", built(lambda: Holding(nn.ModuleList))).passed


def test_check_model_tells_it_of_the_model():
    report = check_model(built(Holding))
    assert report.kind == "language_model"
    assert "`layers` is a plain list" in str(report)
    assert not report.passed


def test_that_eval_does_not_reach_them_is_told_in_place_of_their_dropout():
    report = check("language_model", built(lambda: Holding(dropout=0.5)).eval())
    assert "The second call differs" in report.failures[0].message
    assert "`layers` is a plain list" in report.failures[0].message


class Stack(nn.Module):
    """An encoder that drops out, of another width than the contracts send."""

    def __init__(self, hold=list):
        super().__init__()
        self.enter = nn.Linear(20, 20)
        self.layers = hold(
            nn.TransformerEncoderLayer(20, 2, 40, batch_first=True)
            for _ in range(2)
        )

    def forward(self, x):
        x = x + self.enter(x)
        for layer in self.layers:
            x = layer(x)
        return x


def test_check_model_tells_it_of_an_encoder_that_drops_out_in_them():
    report = check_model(built(Stack))
    assert report.kind == "encoder"
    assert "layers` is a plain list" in report.faults[0].message
    assert not report.unjudged
    assert check_model(built(lambda: Stack(nn.ModuleList))).passed


class Matrices(nn.Module):
    """A network of matrices in a list."""

    def __init__(self):
        super().__init__()
        sizes = (12, 31), (31, 12)
        self.inner = nn.Module()
        self.inner.all = [nn.Parameter(torch.randn(n, m)) for n, m in sizes]
        self.bias = nn.Parameter(torch.randn(12))

    def forward(self, x):
        one, other = self.inner.all
        return (x @ one).relu() @ other + self.bias


def test_parameters_in_a_plain_list_are_told_with_the_part_that_holds_them():
    (fault,) = check("feed_forward", built(Matrices)).faults
    assert "`inner.all` is a plain list" in fault.message
    assert "nn.ParameterList" in fault.message


# What is right


class Added(Holding):
    """Each layer of the list is registered, too."""

    def __init__(self):
        super().__init__()
        for i, layer in enumerate(self.layers):
            self.add_module(f"layer{i}", layer)


class Told(Holding):
    """Its own ``named_parameters`` knows them."""

    def named_parameters(self, *args, **named):
        yield from super().named_parameters(*args, **named)
        for i, layer in enumerate(self.layers):
            for name, p in layer.named_parameters():
                yield f"layers.{i}.{name}", p


class Frozen(Holding):
    """They are not to be trained."""

    def __init__(self):
        super().__init__()
        for layer in self.layers:
            layer.requires_grad_(False)


class Watched(Heads):
    """It knows others, which take no part in what it returns."""

    def __init__(self):
        super().__init__()
        self.teachers = [nn.Linear(12, 12), nn.Linear(12, 12)]

    def forward(self, x, mask=None):
        with torch.no_grad():
            self.said = [teacher(x) for teacher in self.teachers]
        return super().forward(x, mask)


@pytest.mark.parametrize("make", [Added, Told, Frozen])
def test_what_is_registered_too_or_frozen_may_stand_in_a_list(make):
    assert PART in check("language_model", built(make)).held


def test_what_takes_no_part_in_the_result_may_stand_in_a_list():
    assert PART in check("multihead", built(Watched)).held


class Lent(nn.Module):
    """A layer that belongs to somebody else, and is hidden in a list of one."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(12, 31), [nn.Linear(31, 12)]

    def forward(self, x):
        return self.down[0](F.relu(self.up(x)))


def test_one_module_alone_in_a_list_may_be_lent_which_is_a_risk():
    report = check("feed_forward", built(Lent))
    assert report.passed
    (risk,) = report.risks
    assert "`down` is a plain list" in risk.message
    assert "belongs to another module" in risk.why
