"""Whether scores are divided is heard however they are made, or not tried."""

import functools

import pytest
import torch
import torch.nn.functional as F
from contracts.right import built
from torch import nn
from torch.nn.attention.bias import causal_lower_right

from companion.contracts import check
from companion.contracts.multihead.causal_attention import Causal
from companion.contracts.multihead.multihead import Heads
from companion.contracts.pytest_tests import judge
from companion.positions import rotate

pytestmark = pytest.mark.once

ROOT = "The scores of a head are divided by the root of its width"


def tells_apart(make, component="causal_attention"):
    """Tell whether the root is heard where it is, and missed where not."""
    right, wrong = (
        check(component, built(functools.partial(make, factor)))
        for factor in (0.5, 1)
    )
    assert right.passed, str(right)
    assert ROOT in right.held
    (fault,) = wrong.faults
    assert fault.contract == ROOT
    return "not divided by anything" in fault.message


class Times(Causal):
    """Scores are multiplied by a factor; 1/2 is right for heads of 4."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def scores(self, q, k):
        return q @ k.mT * self.factor


class ByHand(Times):
    """The softmax is written out."""

    def weigh(self, scores, mask):
        grown = scores.masked_fill(~mask, -torch.inf).exp()
        return grown / grown.sum(-1, keepdim=True)


class ByHandStable(Times):
    """And the largest score of each row is subtracted first."""

    def weigh(self, scores, mask):
        scores = scores.masked_fill(~mask, -torch.inf)
        grown = torch.exp(scores - scores.amax(-1, keepdim=True))
        return grown / torch.exp(scores - scores.amax(-1, keepdim=True)).sum(
            -1, keepdim=True
        )


class InPlace(Times):
    """The scores are multiplied where they stand."""

    def scores(self, q, k):
        scores = q @ k.mT
        scores *= self.factor
        return scores


class InPlaceAtTheQueries(Times):
    """The projected queries are, before anything compares them."""

    def __init__(self, factor=1.0):
        super().__init__(factor)
        self.query, self.qkv = nn.Linear(12, 12), nn.Linear(12, 24)

    def forward(self, x):
        queries = self.query(x)
        queries *= self.factor
        keys, values = self.qkv(x).chunk(2, -1)
        q, k, v = (self.split(y) for y in (queries, keys, values))
        attended = self.weigh(q @ k.mT, self.mask(x.shape[1])) @ v
        return self.out(attended.transpose(1, 2).flatten(2))


class OneByOne(Times):
    """The scores of each head are made by itself, and put together."""

    def scores(self, q, k):
        each = [q[:, i] @ k[:, i].mT * self.factor for i in range(q.shape[1])]
        return torch.stack(each, 1)


class Written(Times):
    """So they are, and written into a tensor that waits for them."""

    def scores(self, q, k):
        scores = torch.zeros(*q.shape[:3], k.shape[2])
        for i in range(q.shape[1]):
            scores[:, i] = q[:, i] @ k[:, i].mT * self.factor
        return scores


class Far(Times):
    """A learned number for each distance is added."""

    def __init__(self, factor=1.0):
        super().__init__(factor)
        self.far = nn.Parameter(torch.randn(16))

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        far = self.far[(place[:, None] - place).clamp(min=0)]
        return super().scores(q, k) + far


class HeadsInTheBatch(Far):
    """Batch and heads are one axis."""

    def scores(self, q, k):
        one = super().scores(q.flatten(0, 1), k.flatten(0, 1))
        return one.unflatten(0, q.shape[:2])


class AddedInOneCall(Far):
    """So it is, and multiplied, by one function of PyTorch's."""

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        far = self.far[(place[:, None] - place).clamp(min=0)]
        scores = far.expand(3 * len(q), -1, -1).baddbmm(
            batch1=q.flatten(0, 1), batch2=k.flatten(0, 1).mT, alpha=self.factor
        )
        return scores.unflatten(0, q.shape[:2])

    def weigh(self, scores, mask):
        scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(input=scores, dim=3)


class Turned(Times):
    """Queries and keys are turned by their positions."""

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        return super().scores(rotate(q, place), rotate(k, place))


class TurnedByHalves(Times):
    """So they are, as a sum of two products."""

    def scores(self, q, k):
        return super().scores(by_halves(q), by_halves(k))


def by_halves(x):
    one, other = x.chunk(2, -1)
    angle = torch.outer(torch.arange(x.shape[-2]), torch.tensor([1.0, 0.01]))
    cos, sin = (t.repeat(1, 2) for t in (angle.cos(), angle.sin()))
    return x * cos + torch.cat([-other, one], -1) * sin


class TurnedByAPower(Times):
    """So they are, as complex numbers; the angles have an axis for heads."""

    def scores(self, q, k):
        return super().scores(by_a_power(q), by_a_power(k))


def by_a_power(x):
    angle = torch.outer(torch.arange(x.shape[-2]), torch.tensor([1.0, 0.01]))
    power = torch.exp(1j * angle.expand(x.shape[1], -1, -1))
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * power).flatten(-2)


class AfterACache(Times):
    """First those ask that are left of the last call: at first nobody."""

    def scores(self, q, k):
        left = F.scaled_dot_product_attention(q[..., :0, :], k, k)
        return super().scores(q, k) + left.sum()


HEARD = [
    ByHand,
    ByHandStable,
    OneByOne,
    Written,
    Far,
    InPlace,
    InPlaceAtTheQueries,
    HeadsInTheBatch,
    AddedInOneCall,
    Turned,
    TurnedByHalves,
    TurnedByAPower,
    AfterACache,
]


@pytest.mark.parametrize("make", HEARD)
def test_scores_that_nothing_divides_are_heard_in_whatever_way_they_are_made(
    make,
):
    assert tells_apart(make)


class SharedKeys(nn.Module):
    """Of two heads for the queries, each has the keys of one."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.q, self.o = nn.Linear(12, 12), nn.Linear(12, 12)
        self.k, self.v = nn.Linear(12, 6), nn.Linear(12, 6)

    def forward(self, x, mask=None):
        q, k, v = (
            p(x).unflatten(-1, (-1, 6)).transpose(1, 2)
            for p in (self.q, self.k, self.v)
        )
        k, v = (t.repeat_interleave(2, 1) for t in (k, v))
        scores = q @ k.mT * self.factor
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(q.dtype).min)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def test_keys_that_several_heads_share_are_heard_as_well():
    report = check("multihead", built(lambda: SharedKeys(1.0)))
    assert [f.contract for f in report.faults] == [ROOT]
    report = check("multihead", built(lambda: SharedKeys(6**-0.5)))
    assert report.passed
    assert ROOT in report.held


class DividedBefore(TurnedByHalves):
    """Queries and keys have the fourth root each before they are turned."""

    def __init__(self):
        super().__init__(1.0)

    def split(self, x):
        return super().split(x) * 0.5**0.5


def test_what_is_divided_before_it_is_turned_is_no_fault_and_no_note():
    report = check("causal_attention", built(DividedBefore))
    assert ROOT in report.held, str(report)


# Where nothing is heard


class Normed(Times):
    """Each query and each key has length 1, and the factor is learned."""

    def scores(self, q, k):
        q, k = (nn.functional.normalize(t, dim=-1) for t in (q, k))
        return 10 * q @ k.mT


class NormedPerHead(Times):
    """A norm over each head: who knows what is right for its gain?"""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(4), nn.LayerNorm(4)

    def scores(self, q, k):
        return super().scores(self.one(q), self.two(k))


class FarByContent(Times):
    """What a distance adds depends on the query."""

    def __init__(self):
        super().__init__()
        self.far = nn.Parameter(torch.randn(16, 4))

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        far = self.far[(place[:, None] - place).clamp(min=0)]
        return super().scores(q, k) + (q[..., None, :] * far).sum(-1)


class InPowers(Times):
    """The softmax is made of powers of 2."""

    def weigh(self, scores, mask):
        grown = 2 ** (scores.masked_fill(~mask, -torch.inf) * 1.442695)
        return grown / grown.sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Normed, "could not be followed back to queries and keys"),
        (NormedPerHead, "could not be followed back to queries and keys"),
        (FarByContent, "could not be followed back to queries and keys"),
        (InPowers, "no softmax was heard in it"),
    ],
)
def test_where_no_scores_are_heard_the_division_is_not_tried(make, words):
    report = check("causal_attention", built(make))
    assert report.passed, str(report)
    assert ROOT not in report.held
    assert not report.failures
    assert report.headline == "causal_attention: all 13 contracts hold"
    assert f"Not tried: {ROOT}. " in report.assumed[-1]
    assert words in report.assumed[-1]


def test_of_equal_numbers_for_distances_a_fault_is_told_too():
    class Relative(Heads):
        def __init__(self):
            super().__init__()
            self.relative_bias = nn.Embedding(33, 3)

        def scores(self, q, k):
            place = torch.arange(q.shape[-2])
            at = (place - place[:, None]).clamp(-16, 16) + 16
            return q @ k.mT + self.relative_bias(at).permute(2, 0, 1)

    report = check("multihead", built(Relative))
    (fault,) = report.faults
    assert fault.contract == ROOT
    assert "same for all distances" in report.assumed[-1]
    assert "Reordering the positions reorders the rows" in report.held


def test_a_test_of_a_contract_that_is_not_tried_is_skipped_with_the_reason():
    report = check("causal_attention", built(Normed))
    with pytest.raises(pytest.skip.Exception, match="could not be followed"):
        judge(report, ROOT)


class WithABias(nn.Module):
    """Its mask is of a class of its own, which only the product understands."""

    def __init__(self):
        super().__init__()
        self.all, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (3, 4)).transpose(1, 2)
            for y in self.all(x).chunk(3, -1)
        )
        mask = causal_lower_right(x.shape[1], x.shape[1])
        joined = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(joined.transpose(1, 2).flatten(2))


def test_a_mask_of_a_class_of_its_own_can_be_listened_to():
    report = check("causal_attention", built(WithABias))
    assert not report.failures, str(report)
