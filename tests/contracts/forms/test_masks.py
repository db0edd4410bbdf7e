"""Masks under another name, in ``**kw``, or one vector for each sentence."""

import pytest
import torch
from contracts.known import gate_message
from contracts.right import built
from contracts.right.standins import Projected, weigh
from torch import nn

from companion.contracts import adapters, check

pytestmark = pytest.mark.once


def heads(mask):
    return None if mask is None else mask.unsqueeze(1)


def attend(q, k, v, mask=None):
    return weigh(q @ k.mT / q.shape[-1] ** 0.5, mask) @ v


class FromWords(Projected):
    def forward(self, x, **kw):
        return self.attend(x, x, x, heads(kw.get("mask")))[0]


class FromWordsOfThree(Projected):
    def forward(self, query, key, value, **options):
        mask = options["attn_mask"] if options else None
        return self.attend(query, key, value, mask)[0]


class HandsThemOn(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = built(MaskOfKeys)

    def forward(self, x, **kw):
        return self.inner(x, **kw)


class MaskOfKeys(Projected):
    def forward(self, x, padding_mask=None):
        if padding_mask is not None:
            padding_mask = padding_mask[:, None, None, :]
        return self.attend(x, x, x, padding_mask)[0]


class HidesQueriesToo(Projected):
    """Equally low scores have a row that is padding itself see everything."""

    def forward(self, x, mask=None):
        if mask is not None:
            mask = (mask[:, None] | ~mask[:, :, None])[:, None]
        return self.attend(x, x, x, mask)[0]


class AsALayer(HidesQueriesToo):
    def forward(self, x, mask=None):
        norm = nn.functional.layer_norm
        x = norm(x + super().forward(x, mask), x.shape[-1:])
        return norm(x + x.relu(), x.shape[-1:])


class OnlyByItsWord(MaskOfKeys):
    def forward(self, x, *, padding_mask=None):
        return super().forward(x, padding_mask)


class MaskOfOneRow(Projected):
    """Takes (batch, 1, key) and nothing else."""

    def forward(self, x, mask=None):
        if mask is not None:
            _batch, one, _key = mask.shape
            assert one == 1
        return self.attend(x, x, x, heads(mask))[0]


class MaskOfOneRowAndHead(Projected):
    """Takes (batch, 1, 1, key) and nothing else."""

    def forward(self, x, mask=None):
        if mask is not None:
            _batch, one, other, _key = mask.shape
            assert one == other == 1
        return self.attend(x, x, x, mask)[0]


class MaskFirst(Projected):
    def forward(self, mask, x):
        return self.attend(x, x, x, heads(mask))[0]


def counted(mask, keys):
    return torch.arange(keys) < mask[:, None]


class CountsThem(Projected):
    """What it calls a mask is how many keys count."""

    def forward(self, q, k, v, mask=None):
        if mask is not None:
            may = torch.zeros(len(mask), k.shape[1], dtype=torch.bool)
            for row, length in zip(may, mask, strict=True):
                row[: int(length)] = True
            mask = may[:, None, None]
        return self.attend(q, k, v, mask)[0]


class CountsOneTooMany(CountsThem):
    def forward(self, q, k, v, mask=None):
        return super().forward(q, k, v, None if mask is None else mask + 1)


def attention_from_words(q, k, v, **kw):
    return attend(q, k, v, kw.get("mask"))


def attention_of_keys(q, k, v, mask=None):
    return attend(q, k, v, heads(mask))


def attention_of_one_row(q, k, v, mask=None):
    if mask is not None:
        _batch, one, _key = mask.shape
        assert one == 1
    return attend(q, k, v, mask)


RIGHT = [
    ("multihead", FromWords, "its mask was given by keyword"),
    ("multihead", FromWordsOfThree, "(x, x, x), and its mask by keyword"),
    ("multihead", HandsThemOn, "its masks are (batch, key)"),
    ("multihead", HidesQueriesToo, "its masks are (batch, key)"),
    ("encoder", AsALayer, "its masks are (batch, key)"),
    ("multihead", OnlyByItsWord, "its masks are (batch, key)"),
    ("multihead", MaskOfOneRow, "its masks are (batch, 1, key)"),
    ("multihead", MaskOfOneRowAndHead, "its masks are (batch, 1, 1, key)"),
    ("multihead", MaskFirst, "given by their names"),
    ("multihead", CountsThem, "`mask` was taken for how many"),
    ("attention", attention_from_words, "its mask was given by keyword"),
    ("attention", attention_of_keys, "its masks are (batch, key)"),
    ("attention", attention_of_one_row, "its masks are (batch, 1, key)"),
]


@pytest.mark.parametrize(("component", "kind", "said"), RIGHT)
def test_a_mask_is_found_under_its_name_and_in_its_shape(component, kind, said):
    yours = built(kind).eval() if isinstance(kind, type) else kind
    report = check(component, yours)
    assert report.passed, str(report)
    assert said in report.assumed[0]
    # No contract is left out.
    assert "it takes no mask" not in str(report)


class ReadsAndForgets(Projected):
    def forward(self, x, **kw):
        kw.get("mask")
        return self.attend(x, x, x, None)[0]


class OneTooMany(MaskOfOneRow):
    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask.roll(1, -1))


@pytest.mark.parametrize(
    "kind", [ReadsAndForgets, OneTooMany, CountsOneTooMany]
)
def test_what_is_wrong_stays_wrong_in_these_forms(kind):
    assert not check("multihead", built(kind).eval()).passed


class NoMask(Projected):
    """Swallows what it is given besides."""

    def forward(self, x, **kw):
        return self.attend(x, x, x, None)[0]


class NothingHandedOn(HandsThemOn):
    def forward(self, x, **kw):
        return self.inner(x)


class ReadsAnotherName(NoMask):
    """What is called a mask in its code is none of its arguments."""

    def forward(self, x, **kw):
        self.tables = {"mask": x}
        return super().forward(self.tables["mask"], **kw)


@pytest.mark.parametrize("kind", [NoMask, NothingHandedOn, ReadsAnotherName])
def test_where_no_mask_is_read_by_name_the_report_says_how_to_give_one(kind):
    report = check("multihead", built(kind).eval())
    assert report.passed
    assert (
        "it takes no mask, so that nothing was tried that needs one; if one "
        "goes into `**kw`, an adapter gives it, `lambda x, mask=None: yours(x, "
        "mask=mask)`"
    ) in report.assumed[0]


def test_a_function_that_hands_on_all_words_is_told_to_name_its_mask():
    def attention(q, k, v, **kw):
        return attend(q, k, v, **kw)

    message = gate_message("attention", attention)
    assert "It takes `**kw`: name its mask there, `mask=mask`." in message
    assert check("attention", lambda q, k, v, mask=None: attention(
        q, k, v, mask=mask)).passed  # fmt: skip


def test_lengths_that_are_called_a_mask_are_taken_for_these():
    def attention(q, k, v, mask=None):
        if mask is not None:
            mask = counted(mask, k.shape[1])[:, None]
        return attend(q, k, v, mask)

    report = check("attention", attention)
    assert report.passed
    assert (
        "`mask` was taken for how many of the first keys count"
        in (report.assumed[-1])
    )
    assert check("attention", adapters.valid_lengths(attention)).passed


def of_two_lengths(rows, keys):
    return torch.ones(rows, keys).tril() == 1


def of_two_lengths_upside_down(rows, keys):
    return torch.ones(rows, keys).triu() == 1


def test_a_causal_mask_of_two_lengths_is_asked_for_a_square():
    report = check("causal_mask", of_two_lengths)
    assert report.passed
    assert report.assumed == (
        "Called as yours: it was called as (length, length).",
    )
    report = check("causal_mask", of_two_lengths_upside_down)
    assert "transposed" in report.faults[0].message


@pytest.mark.parametrize(
    ("make", "passed"),
    [
        (lambda length: torch.ones(length, length).tril(), True),
        (lambda length: torch.ones(length, length).triu(), False),
    ],
)
def test_masks_of_0_and_1_are_read_as_what_they_say(make, passed):
    report = check("causal_mask", make)
    assert report.passed == passed
    assert report.assumed[0] == (
        "Called as yours: its 0 and 1 were read as False and True."
    )
    turned = check("causal_mask", lambda length: 1 - make(length))
    assert not turned.passed
    turned = check(
        "causal_mask", lambda length: 1 - make(length), mask="hidden"
    )
    assert turned.passed == passed


# A padding mask that is asked for with something else


def of_so_many_axes(tokens, axes=4):
    hidden = (tokens == 0).float()
    return hidden[(slice(None), *[None] * (axes - 2))]


def test_what_is_no_padding_is_left_at_its_default():
    report = check("padding_mask", of_so_many_axes, mask="hidden")
    assert report.passed, str(report)
    assert "nothing was given for `axes`" in report.assumed[0]


def of_so_many_axes_as_rows(tokens, axes=4):
    return of_so_many_axes(tokens, axes).mT


def test_and_a_mask_of_rows_is_wrong_all_the_same():
    report = check("padding_mask", of_so_many_axes_as_rows, mask="hidden")
    assert not report.passed
