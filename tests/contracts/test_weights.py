"""What only a module can break: unused weights, and norms over the batch."""

import pytest
import torch
from contracts.known import gate_message
from contracts.right import built
from contracts.right.multihead import WIDTH
from contracts.right.transformer import PostNorm, PyTorchs
from torch import nn

from companion.contracts import check
from companion.contracts.engine.modules import is_unused

PART = "Every weight of a module takes part"
APART = "In training mode too no sentence sees another"


class LostItsNetwork(PostNorm):
    """The second half of every layer is built, and never called."""

    def forward(self, x, mask=None):
        for attend, norm1, *_ in self.layers:
            x = norm1(x + attend(x, mask))
        return x


class Experts(nn.Module):
    """Two networks, of which each vector goes through one."""

    def __init__(self):
        super().__init__()
        self.one, self.other = (
            nn.Sequential(nn.Linear(WIDTH, 31), nn.ReLU(), nn.Linear(31, WIDTH))
            for _ in range(2)
        )

    def forward(self, x):
        first = x.square().sum(-1, keepdim=True) > WIDTH
        return torch.where(first, self.one(x), self.other(x))


class BatchNormed(nn.Module):
    """A feed-forward network with a BatchNorm, which eval mode hides."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 31), nn.Linear(31, WIDTH)
        self.norm = nn.BatchNorm1d(31)

    def forward(self, x):
        inner = self.norm(self.up(x).mT).mT
        return self.down(inner.relu())


def failed(report):
    return {failure.contract for failure in report.failures}


def test_a_layer_that_lost_its_network_is_named_by_the_first_unused_weight():
    module = built(LostItsNetwork).eval()
    report = check("encoder", module)
    assert failed(report) == {PART}
    assert report.failures[0].message.startswith(
        "`layers.0.2.weight` takes no part: no gradient reaches it, whatever "
        "the input. Is it built and never called"
    )
    assert report.failures[0].message.endswith(" So it is with 11 more.")


def test_a_bound_method_is_asked_for_the_weights_of_its_module():
    module = built(LostItsNetwork).eval()
    assert failed(check("encoder", module.forward)) == {PART}


def test_a_bias_may_have_no_slope_and_a_matrix_may_not():
    # That of the keys adds the same to all scores of a row.
    bias, matrix = torch.zeros(3), torch.zeros(3, 2)
    assert not is_unused(bias, gradient=torch.zeros(3))
    assert is_unused(matrix, gradient=torch.zeros(3, 2))
    assert is_unused(bias, gradient=None)


def test_frozen_weights_are_not_asked_for():
    module = built(LostItsNetwork).eval()
    for layer in module.layers:
        for part in layer[2:]:
            part.requires_grad_(False)
    assert check("encoder", module).passed


def test_an_expert_for_some_vectors_only_takes_part():
    report = check("feed_forward", built(Experts).eval())
    assert not failed(report) & {PART, APART}


def test_batch_norm_shows_in_training_and_leaves_no_trace():
    module = built(BatchNormed).eval()
    before = module.norm.running_mean.clone()
    report = check("feed_forward", module)
    assert failed(report) == {APART}
    assert "BatchNorm" in report.failures[0].message
    assert not module.training
    assert not module.norm.training
    assert module.norm.running_mean.equal(before)


def test_dropout_in_training_mode_is_no_alarm():
    module = built(lambda: PyTorchs(dropout=0.5)).eval()
    assert check("encoder", module).passed
    assert not module.training


@pytest.mark.parametrize("contract", [PART, APART])
def test_a_function_is_not_asked_for_weights_that_nobody_can_find(contract):
    module = built(PostNorm).eval()
    as_function = check("encoder", lambda x, mask=None: module(x, mask))
    assert contract in check("encoder", module).held
    assert contract not in as_function.held + as_function.untried
    assert as_function.passed


def test_a_list_of_tensors_is_described_by_its_length():
    def clip_gradients(gradients, scale, max_norm):
        return [g / nothing for g in gradients]  # noqa: F821

    assert gate_message("clip_gradients", clip_gradients).endswith(
        "The arguments were gradients of 3 tensors, scale 2.0, max_norm 1.0."
    )
