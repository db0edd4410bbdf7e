"""Attention without weights that insists on an axis for its heads."""

import pytest
import torch
from torch import nn

from companion.contracts import check_model
from companion.contracts.discovery.heads import BEHIND, BESIDE

pytestmark = pytest.mark.once


class Heads(nn.Module):
    """(batch, head, seq, head_dim), or heads behind, in the order it names."""

    axes = "bhqd,bhkd->bhqk", "bhqk,bhkd->bhqd"
    over = -1

    def forward(self, queries, keys, values, mask=None):
        _, _, _, width = queries.shape
        scores = torch.einsum(self.axes[0], queries, keys) / width**0.5
        if mask is not None:
            lowest = torch.finfo(scores.dtype).min
            scores = scores.masked_fill(~mask, lowest)
        return torch.einsum(self.axes[1], scores.softmax(self.over), values)


class Behind(Heads):
    """The heads stand behind the positions."""

    axes = "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd"


class OverTheQueries(Behind):
    """Its softmax runs over the queries."""

    over = -2


class Triangle:
    """A mask as an object, which hides what is True in it."""

    def __init__(self, seq):
        self.mask = torch.ones(seq, seq).triu(1).bool()


class MakesItsOwn(nn.Module):
    """It hides the future itself where it gets no mask."""

    def forward(self, queries, keys, values, attn_mask):
        _, seq, _, width = queries.shape
        scores = torch.einsum("bqhd,bkhd->bhqk", queries, keys) / width**0.5
        own = Triangle(seq).mask if attn_mask is None else attn_mask.mask
        scores = scores.masked_fill(own, -torch.inf)
        return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), values), None


@pytest.mark.parametrize(("kind", "said"), [(Heads, BESIDE), (Behind, BEHIND)])
def test_attention_that_insists_on_heads_is_judged_where_they_stand(kind, said):
    report = check_model(kind())
    [part] = report.parts
    assert part.judged.component == "attention"
    assert report.passed, str(report)
    assert part.judged.assumed == (said,)


def test_a_softmax_over_another_axis_is_named_behind_heads_too():
    [part] = check_model(OverTheQueries()).parts
    assert "over the keys" in part.judged.report.faults[0].message


def test_what_makes_its_own_triangle_is_causal_attention_and_gets_no_mask():
    report = check_model(MakesItsOwn())
    [part] = report.parts
    assert part.judged.component == "causal_attention"
    assert report.passed, str(report)
    assert part.judged.assumed == (BEHIND,)
    assert "its mask was None" in str(report)


def test_what_has_weights_or_other_arguments_is_not_taken_for_attention():
    class Weighed(Heads):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(7, 5)

    class Others(nn.Module):
        def forward(self, image, kernel, bias):
            if image.ndim != 4:
                raise ValueError(image.shape)
            return image + 1

    for kind in (Weighed, Others):
        assert not check_model(kind()).parts
