"""Of several masks the one that hides keys is given."""

import re

import pytest
from contracts.right import built
from contracts.right.standins import weigh
from torch import nn

from companion.contracts import check, check_model
from companion.words import say, understood

# The shape hook doubles what a check costs, and has nothing to see here.
pytestmark = pytest.mark.once


class DecoderOnly(nn.Module):
    """The arguments that PyTorch's decoder gives; one counts."""

    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(12, 3, batch_first=True)
        self.net = nn.Sequential(
            nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12)
        )
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)

    def forward(
        self, tgt, memory=None, tgt_mask=None, memory_mask=None,
        tgt_key_padding_mask=None, memory_key_padding_mask=None,
    ):  # fmt: skip
        return self.layer(tgt, attn_mask=tgt_mask)

    def layer(self, x, **masks):
        y = self.one(x)
        x = x + self.attend(y, y, y, need_weights=False, **masks)[0]
        return x + self.net(self.two(x))


class OfPadding(DecoderOnly):
    def forward(
        self, tgt, memory=None, tgt_mask=None, memory_mask=None,
        tgt_key_padding_mask=None, memory_key_padding_mask=None,
    ):  # fmt: skip
        return self.layer(tgt, key_padding_mask=tgt_key_padding_mask)


class Forgetting(DecoderOnly):
    def layer(self, x, **masks):
        return super().layer(x)


@pytest.mark.parametrize(
    ("make", "word"),
    [(DecoderOnly, "tgt_mask"), (OfPadding, "tgt_key_padding_mask")],
)
def test_the_mask_that_counts_is_given(make, word):
    judged = check_model(built(make).eval()).parts[0].judged
    assert judged.component == "encoder"
    assert not judged.report.faults, str(judged.report)
    (said,) = [s for s in judged.report.assumed if "Called as yours" in s]
    assert f"its mask was given as `{word}`" in said
    assert understood(say(said)), say(said)


def test_masks_of_which_none_counts_are_not_used():
    report = check_model(built(Forgetting).eval()).parts[0].judged.report
    assert "The mask is not used" in report.faults[0].message


class Crossing(nn.Module):
    """`mask` is for the rows, `context_mask` for the keys."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))

    def forward(self, x, context, mask=None, context_mask=None):
        rows = None if mask is None else mask[:, None, :, None]
        keys = None if context_mask is None else context_mask[:, None, None]
        return self.attend(x, context, rows, keys)

    def attend(self, x, context, rows, keys):
        q, k, v = (
            p(y).unflatten(-1, (3, 4)).transpose(1, 2)
            for p, y in ((self.q, x), (self.k, context), (self.v, context))
        )
        scores = q @ k.mT / 2
        if rows is not None:
            scores = scores.masked_fill(~rows, -1e30)
        return self.o((weigh(scores, keys) @ v).transpose(1, 2).flatten(2))


class CrossingWithoutKeys(Crossing):
    def attend(self, x, context, rows, keys):
        return super().attend(x, context, rows, None)


def test_the_mask_of_keys_is_given_and_not_that_of_rows():
    report = check("multihead", built(Crossing))
    assert report.passed, str(report)
    said = "it was called as (x, x), and its mask as `context_mask`"
    assert said in report.assumed[0]
    assert understood(say(report.assumed[0])), say(report.assumed[0])


class OfRows(Crossing):
    def forward(self, x, mask=None):
        return super().forward(x, x, mask)


@pytest.mark.parametrize("make", [OfRows, CrossingWithoutKeys])
def test_a_mask_that_hides_rows_is_told_to_hide_no_keys(make):
    report = check("multihead", built(make))
    masks = [f for f in report.faults if "mask" in f.message]
    assert masks
    for fault in masks:
        assert "The mask hides rows, the queries, and not keys" in fault.message
        assert "softmax" not in fault.message
        assert "is not used" not in fault.message
        assert understood(say(fault.cause)), say(fault.cause)


class Layer(OfRows):
    """A block around it."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12)
        )
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)

    def forward(self, x, mask=None):
        x = self.one(x + super().forward(x, mask))
        return self.two(x + self.net(x))


def test_so_is_that_of_a_layer():
    report = check("encoder", built(Layer))
    assert "The mask hides rows" in report.faults[0].message


class Both(Crossing):
    """Its mask for all pairs is wrong, and that of padding right."""

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        rows = None if attn_mask is None else attn_mask.mT
        keys = None if key_padding_mask is None else key_padding_mask
        keys = None if keys is None else keys[:, None, None]
        return self.attend(x, x, rows, keys)


class OfOneOnly(Crossing):
    """It takes two masks, and reads that of the padding."""

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        return self.of(x, None, key_padding_mask)

    def of(self, x, pairs, padding):
        keys = None if padding is None else padding[:, None, None]
        if pairs is not None:
            keys = pairs if keys is None else keys & pairs
        return self.attend(x, x, None, keys)


class OfTheOtherOnly(OfOneOnly):
    def forward(self, x, attn_mask=None, key_padding_mask=None):
        return self.of(x, attn_mask, None)


class OfBoth(OfOneOnly):
    def forward(self, x, attn_mask=None, key_padding_mask=None):
        return self.of(x, attn_mask, key_padding_mask)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (OfOneOnly, ["attn_mask"]),
        (OfTheOtherOnly, ["key_padding_mask"]),
        (OfBoth, []),
    ],
)
def test_a_mask_that_moves_nothing_is_named(make, names):
    report = check("multihead", built(make))
    assert report.passed
    said = " ".join(report.assumed)
    assert re.findall(r"given as `(\w+)` moves nothing", said) == names
    assert not said or understood(say(report.assumed[0]))


def test_a_mask_that_is_wrong_is_not_exchanged_for_a_right_one():
    assert check("multihead", built(Both)).faults


class OfTheQueries(OfOneOnly):
    """The mask of padding is laid over the queries."""

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        rows = None if key_padding_mask is None else key_padding_mask
        rows = None if rows is None else rows[:, None, :, None]
        return self.attend(x, x, rows, attn_mask)


class OfNoScores(OfOneOnly):
    """Both are used, and that of padding only moves what stands there."""

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        if key_padding_mask is not None:
            x = x + key_padding_mask[..., None]
        return self.of(x, attn_mask, None)


class OneLosesTheOther(OfOneOnly):
    """Where padding is given, the other counts no more."""

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        attn_mask = attn_mask if key_padding_mask is None else None
        return self.of(x, attn_mask, key_padding_mask)


@pytest.mark.parametrize(
    ("make", "name", "cause"),
    [
        (OfTheQueries, "key_padding_mask", "hides rows, the queries"),
        (OfNoScores, "key_padding_mask", ""),
        (OneLosesTheOther, "attn_mask", "The mask is not used"),
    ],
)
def test_of_two_masks_the_one_with_a_fault_is_judged(make, name, cause):
    report = check("multihead", built(make))
    assert f"its mask was given as `{name}`" in report.assumed[0]
    assert cause in report.faults[0].message
    assert understood(say(report.assumed[0])), say(report.assumed[0])


class HidingQueries(OfTheQueries):
    def forward(self, x, attn_mask=None, key_padding_mask=None):
        rows = None if key_padding_mask is None else ~key_padding_mask
        return super().forward(x, attn_mask, rows)


def test_the_name_of_the_mask_that_is_judged_says_what_true_means():
    report = check_model(built(HidingQueries)).parts[0].judged
    assert any("as `key_padding_mask` says" in s for s in report.assumed)


class Hiding(OfOneOnly):
    """That of padding hides what is True, and the other shows it."""

    def forward(self, x, attn_mask=None, key_padding_mask=None):
        keys = None if key_padding_mask is None else ~key_padding_mask
        return self.of(x, attn_mask, keys)


class Swapped(OfOneOnly):
    def forward(self, x, key_padding_mask=None, attn_mask=None):
        return self.of(x, attn_mask, key_padding_mask)


class WithAnAddedOne(OfOneOnly):
    """`bias_mask` is added to the scores."""

    def forward(self, x, attn_mask=None, bias_mask=None):
        q, k, v = (
            p(x).unflatten(-1, (3, 4)).transpose(1, 2)
            for p in (self.q, self.k, self.v)
        )
        scores = q @ k.mT / 2
        scores = scores if bias_mask is None else scores + bias_mask
        y = weigh(scores, attn_mask) @ v
        return self.o(y.transpose(1, 2).flatten(2))


class ZeroedRows(OfOneOnly):
    """`padding_mask` sets what nobody reads to 0."""

    def forward(self, x, attn_mask=None, padding_mask=None):
        y = self.of(x, attn_mask, None)
        return y if padding_mask is None else y * padding_mask[..., None]


class OneAtATime(OfOneOnly):
    def forward(self, x, attn_mask=None, key_padding_mask=None):
        if attn_mask is not None and key_padding_mask is not None:
            raise ValueError("one mask, please")
        return self.of(x, attn_mask, key_padding_mask)


@pytest.mark.parametrize(
    "make", [Hiding, Swapped, WithAnAddedOne, ZeroedRows, OneAtATime]
)
def test_masks_that_are_right_each_in_its_way_have_no_fault(make):
    report = check("multihead", built(make))
    assert report.passed, str(report)
    assert not any("batch, key" in said for said in report.assumed)
