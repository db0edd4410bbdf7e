"""A decoder's layer is judged beside a memory, and states are no logits.

Whichever masks may be left out, and whatever is said of them.
"""

import pytest
import torch
from contracts.right import built
from contracts.right.standins import weigh
from torch import nn

from companion.contracts import check, check_model
from companion.contracts.discovery.kinds.judge import judge
from companion.contracts.discovery.verdict import Unjudged
from companion.contracts.transformer.translation_model import Translator
from companion.words import say, understood

# The shape hook doubles what a check costs, and has nothing to see here.
pytestmark = pytest.mark.once


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))

    def forward(self, x, other, mask=None):
        q, k, v = (
            part(y).unflatten(-1, (3, 4)).transpose(1, 2)
            for part, y in ((self.q, x), (self.k, other), (self.v, other))
        )
        y = weigh(q @ k.mT / 2, mask) @ v
        return self.o(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Its masks are (batch, key) for the source, and of the order."""

    def __init__(self):
        super().__init__()
        self.own, self.cross = Attention(), Attention()
        self.net = nn.Sequential(
            nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(3))

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        return self.layer(x, memory, src_mask, tgt_mask)

    def layer(self, x, memory, of_source, order):
        one, two, three = self.norms
        if of_source is not None:
            of_source = of_source[:, None, None]
        x = one(x + self.own(x, x, order))
        x = two(x + self.cross(x, memory, of_source))
        return three(x + self.net(x))


class OfOutputs(Layer):
    def forward(self, y, enc_outputs, tgt_mask=None, src_mask=None):
        return self.layer(y, enc_outputs, src_mask, tgt_mask)


class OfStates(Layer):
    """It can do without its memory as well."""

    def forward(
        self, x, encoder_hidden_states, padding_mask=None, future_mask=None
    ):
        if encoder_hidden_states is None:
            encoder_hidden_states = x
        return self.layer(x, encoder_hidden_states, padding_mask, future_mask)


class OfContext(Layer):
    """Neither argument says by its name that it is a memory."""

    def forward(self, x, context, mask=None, context_mask=None):
        return self.layer(x, context, context_mask, mask)


class OfAnyThird(Layer):
    """What it takes for a mask may be vectors."""

    def forward(self, x, enc_out, tgt_mask=None, src_mask=None):
        return self.layer(x, enc_out, None, None)


class NormedFirst(Layer):
    def layer(self, x, memory, of_source, order):
        one, two, three = self.norms
        if of_source is not None:
            of_source = of_source[:, None, None]
        y = one(x)
        x = x + self.own(y, y, order)
        x = x + self.cross(two(x), memory, of_source)
        return x + self.net(three(x))


class LooksAtItselfInstead(NormedFirst):
    """Without a memory its second attention has the vectors themselves."""

    def forward(self, x, xa=None, mask=None):
        return self.layer(x, x if xa is None else xa, None, mask)


class MayHaveNoMemory(Layer):
    """Without a memory its second attention is left out."""

    def forward(self, x, xa=None, mask=None):
        if xa is not None:
            return self.layer(x, xa, None, mask)
        one, _, three = self.norms
        x = one(x + self.own(x, x, mask))
        return three(x + self.net(x))


@pytest.mark.parametrize(
    "make", [OfContext, LooksAtItselfInstead, MayHaveNoMemory]
)
def test_a_layer_whose_memory_has_another_name_is_not_judged(make):
    with pytest.raises(Unjudged, match="a decoder, which has no con") as told:
        judge(built(make).eval(), never)
    reason = str(told.value)
    assert "it takes `" in reason
    assert understood(say(reason)), say(reason)


def never(component, fn, **_):
    pytest.fail(f"judged as {component}")


@pytest.mark.parametrize("make", [Layer, OfOutputs, OfStates, NormedFirst])
def test_a_layer_with_a_memory_is_judged_beside_one(make):
    part, *_ = check_model(built(make).eval()).parts
    assert part.judged.component == "encoder"
    assert part.judged.report.passed
    first, *others = part.judged.assumed
    assert "it is a decoder's" in first
    for said in (first, *others):
        assert understood(say(said)), say(said)


def test_a_layer_that_forgets_its_masks_has_a_fault_beside_a_memory():
    part, *_ = check_model(built(OfAnyThird).eval()).parts
    assert "The mask is not used" in str(part.judged.report)


class Unused(Layer):
    """Only the signature is a decoder's, as in models of one stack."""

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        return self.norms[2](self.norms[0](x + self.own(x, x, tgt_mask))
                             + self.net(x))  # fmt: skip


def test_a_memory_that_counts_nowhere_makes_no_decoder():
    part, *_ = check_model(built(Unused).eval()).parts
    assert part.judged.component == "encoder"


class HasNoMemory(Layer):
    """A layer of either kind, built as an encoder's; its mask comes third."""

    def __init__(self):
        super().__init__()
        self.cross = None

    def forward(self, x, xa=None, mask=None):
        one, _, three = self.norms
        self.norms[1].requires_grad_(False)
        x = one(x + self.own(x, x, mask))
        return three(x + self.net(x))


class ForgetsItsMask(HasNoMemory):
    def forward(self, x, xa=None, mask=None):
        return super().forward(x, xa)


@pytest.mark.parametrize("make", [HasNoMemory, ForgetsItsMask])
def test_where_a_memory_may_stand_second_no_mask_is_given(make):
    part, *_ = check_model(built(make).eval()).parts
    told = part.judged.report
    assert part.judged.component == "encoder"
    assert "its mask was given by keyword" in " ".join(told.assumed)
    faults = [f.message for f in told.faults]
    assert bool(faults) == (make is ForgetsItsMask), faults


class Crossing(Attention):
    """It can do without its memory as well."""

    def forward(self, x, memory, mask=None):
        memory = x if memory is None else memory
        mask = None if mask is None else mask[:, None, None]
        return super().forward(x, memory, mask)


class CrossingAlways(Attention):
    """It wants what it looks at, and may do without a mask alone."""

    def forward(self, x, context, mask=None):
        mask = None if mask is None else mask[:, None, None]
        return super().forward(x, context, mask)


class CrossingBeforeItsNorm(Crossing):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)

    def forward(self, x, memory, mask=None):
        return self.norm(x + super().forward(x, memory, mask))


class Mixed(Crossing):
    """A mistake: heads and positions are mixed up, and rows see each other."""

    def forward(self, x, memory, mask=None):
        memory = x if memory is None else memory
        q, k, v = (
            part(y).reshape(len(y), 3, -1, 4)
            for part, y in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        mask = None if mask is None else mask[:, None, None]
        y = weigh(q @ k.mT / 2, mask) @ v
        return self.o(y.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("make", "component"),
    [
        (Crossing, "multihead"),
        (CrossingAlways, "multihead"),
        (CrossingBeforeItsNorm, "encoder"),
        (Mixed, "encoder"),
    ],
)
def test_what_only_looks_at_a_memory_is_judged(make, component):
    part, *_ = check_model(built(make).eval()).parts
    assert part.judged.component == component
    assert bool(part.judged.report.faults) == (make is Mixed)


class OfIds(nn.Module):
    """An encoder of ids that is given its mask, and has no output layer."""

    def __init__(self, wide=12, out=None):
        super().__init__()
        self.words = nn.Embedding(11, wide)
        self.places = nn.Embedding(31, wide)
        self.layer = nn.TransformerEncoderLayer(wide, 3, 24, batch_first=True)
        self.out = nn.Linear(wide, out) if out else nn.Identity()

    def forward(self, src, src_mask):
        places = self.places(torch.arange(src.shape[1]))
        return self.out(self.layer(self.words(src) + places, src_mask))


def test_vectors_of_ids_are_called_states_and_not_logits():
    (part, *_) = check_model(built(OfIds)).parts
    assert part.judged.component == "language_model"
    assert "a vector for each of them comes out" in part.judged.assumed[0]
    assert understood(say(part.judged.assumed[0]))
    (part, *_) = check_model(built(lambda: OfIds(out=11))).parts
    assert "logits for each of them come out" in part.judged.assumed[0]


@pytest.mark.parametrize("hint", [None, "hidden", "shown"])
def test_what_takes_no_mask_is_told_of_none_whatever_is_said(hint):
    word = {"mask": hint} if hint else {}
    report = check("translation_model", built(Translator), **word)
    assert report.passed
    assert report.assumed == ()
