"""Translators whose masks may be left out are asked with them."""

import pytest
import torch
from contracts.right import built
from torch import nn

from companion.blocks import PARTS
from companion.contracts import check, check_model
from companion.contracts.transformer.translation_model import (
    Translator,
    Undivided,
)
from companion.transformer.layers import DecoderLayer
from companion.words import say, understood

# The shape hook doubles what a check costs, and has nothing to see here.
pytestmark = pytest.mark.once

LEAKS = {
    "Padding behind the source changes nothing",
    "A short source beside a long one has the logits that it has alone",
}


def past(tgt):
    return torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()


def over_rows(mask):
    return None if mask is None else mask[:, None, None]


class OfPadding(Translator):
    """Its names do not say which is the source's: `mask` is."""

    def forward(self, src, tgt, mask=None, context_mask=None):
        own, order = over_rows(mask), past(tgt)
        if context_mask is not None:
            order = order & over_rows(context_mask)
        return self.answer(src, tgt, own, order, own)

    def answer(self, src, tgt, own, order, memory_mask):
        memory = self.encoded(src, own)
        return self.head(self.decoded(tgt, memory, order, memory_mask))


class OfPaddingTheOtherWay(OfPadding):
    def forward(self, src, tgt, mask=None, context_mask=None):
        return super().forward(src, tgt, context_mask, mask)


class OfPaddingTargetFirst(OfPadding):
    def forward(self, tgt, src, mask=None, context_mask=None):
        return super().forward(src, tgt, mask, context_mask)


class OfOrderToo(OfPadding):
    """Its causal mask is given as well, (batch, 1, tgt, tgt)."""

    def forward(self, src, trg, src_mask=None, trg_mask=None):
        assert trg_mask is None or trg_mask.ndim == 4
        return self.answer(src, trg, src_mask, trg_mask, src_mask)


class OfOrderApart(OfPadding):
    """Order is (tgt, tgt), and padding (batch, key)."""

    def forward(
        self, src, tgt, src_mask=None, tgt_mask=None, src_padding_mask=None
    ):
        assert src_mask is None
        assert tgt_mask is None or tgt_mask.ndim == 2
        own = over_rows(src_padding_mask)
        return self.answer(src, tgt, own, tgt_mask, own)


class OfNumbers(OfPadding):
    """1 and 0; only by their words."""

    def forward(
        self, input_ids, decoder_input_ids, *, attention_mask=None,
        decoder_attention_mask=None,
    ):  # fmt: skip
        masks = attention_mask, decoder_attention_mask
        masks = (None if m is None else (1.0 - m) < 0.5 for m in masks)
        return super().forward(input_ids, decoder_input_ids, *masks)


class OfRows(OfPadding):
    """(batch, 1, 1, src), for the encoder and for the memory."""

    def forward(self, src, tgt, src_mask=None, memory_mask=None):
        assert src_mask is None or src_mask.ndim == memory_mask.ndim == 4
        return self.answer(src, tgt, src_mask, past(tgt), memory_mask)


class Added(OfPadding):
    def forward(self, src, tgt, src_mask=None):
        keep = None if src_mask is None else src_mask.exp() > 0.5
        return super().forward(src, tgt, keep)


RIGHT = [
    (OfPadding, ["`mask` hid the source's padding, (batch, key)",
                 "`context_mask` hid the target's padding, (batch, key)"]),
    (OfPaddingTheOtherWay, ["`context_mask` hid the source's padding",
                            "`mask` hid the target's padding"]),
    (OfPaddingTargetFirst, ["given by their names", "`mask` hid the source's"]),
    (OfOrderToo, ["`src_mask` hid the source's padding, (batch, 1, 1, key)",
                  "`trg_mask` hid the target's future and padding"]),
    (OfOrderApart, ["`src_padding_mask` hid the source's padding",
                    "`tgt_mask` hid the target's future, (seq, seq)"]),
    (OfNumbers, ["`attention_mask` hid the source's padding, (batch, key) of "
                 "1 and 0"]),
    (OfRows, ["`memory_mask` hid the source's padding, (batch, 1, 1, key)"]),
    (Added, ["(batch, key) of 0 and −∞"]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), RIGHT)
def test_a_translator_is_given_the_masks_that_it_may_be_given(make, said):
    report = check("translation_model", built(make))
    assert not report.failures, str(report)
    assert "it got masks too" in report.assumed[0]
    assert all(words in report.assumed[0] for words in said), str(report)
    assert understood(say(report.assumed[0])), say(report.assumed[0])


class MakesThem(OfPadding):
    """What is not given is made of the ids."""

    def forward(self, src, tgt, mask=None, context_mask=None):
        mask = src != 0 if mask is None else mask
        return super().forward(src, tgt, mask, context_mask)


def test_a_translator_that_makes_its_masks_is_asked_without():
    report = check("translation_model", built(MakesThem))
    assert report.passed
    assert report.assumed == ()


class Hides(OfPadding):
    """True hides, and the name of the argument says so."""

    def forward(self, src, tgt, src_key_padding_mask=None):
        hide = src_key_padding_mask
        return super().forward(src, tgt, None if hide is None else ~hide)


class HidesUnnamed(OfPadding):
    def forward(self, src, tgt, mask=None):
        return super().forward(src, tgt, None if mask is None else ~mask)


def test_where_true_hides_nobody_guesses():
    report = check("translation_model", built(HidesUnnamed))
    assert report.faults
    assert 'Say so: `check("translation_model", …, mask="hidden")`' in str(
        report.assumed
    )
    told = check("translation_model", built(HidesUnnamed), mask="hidden")
    assert not told.failures, str(told)
    assert "`mask` hid the source's padding" in told.assumed[0]
    part = check_model(built(HidesUnnamed)).parts[0]
    assert not part.judged.report.faults
    assert "If True hides in your masks" in part.judged.report.assumed[0]


def test_a_name_that_says_that_true_hides_is_an_answer():
    part = check_model(built(Hides)).parts[0]
    assert not part.judged.report.failures, str(part.judged.report)
    assert "as `src_key_padding_mask` says" in str(part.judged.assumed)


class NotInTheMemory(OfPadding):
    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, own, order, None)


class NotInTheEncoder(OfPadding):
    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, None, order, memory_mask)


class NotAtAll(OfPadding):
    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, None, order, None)


class NotInTheMemoryOfRows(OfRows):
    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, own, order, None)


@pytest.mark.parametrize(
    "make", [NotInTheMemory, NotInTheEncoder, NotAtAll, NotInTheMemoryOfRows]
)
def test_a_mask_that_does_not_arrive_stays_a_fault(make):
    report = check("translation_model", built(make))
    assert {f.contract for f in report.faults} == LEAKS, str(report)
    assert "it got masks too" in report.assumed[0]
    assert check_model(built(make)).parts[0].judged.report.faults


def of_four_axes(mask):
    assert mask is None or mask.ndim == 4
    return mask


def of_two_axes(mask):
    assert mask is None or mask.ndim == 2
    return over_rows(mask)


class OfTheMemoryApart(OfPadding):
    """The mask of its cross attention has another shape than the encoder's."""

    def forward(
        self, src, tgt, encoder_padding_mask=None, cross_attention_mask=None,
        causal_mask=None,
    ):  # fmt: skip
        own = of_two_axes(encoder_padding_mask)
        cross = of_four_axes(cross_attention_mask)
        return self.answer(src, tgt, own, causal_mask, cross)


class OfCross(OfPadding):
    def forward(self, src, tgt, src_mask=None, tgt_mask=None, cross_mask=None):
        own, cross = of_four_axes(src_mask), of_two_axes(cross_mask)
        return self.answer(src, tgt, own, past(tgt), cross)


class OfBoth(OfPadding):
    def forward(self, src, tgt, enc_mask=None, dec_mask=None,
                enc_dec_mask=None):  # fmt: skip
        own, cross = of_two_axes(enc_mask), of_four_axes(enc_dec_mask)
        return self.answer(src, tgt, own, past(tgt), cross)


class OfMemory(OfPadding):
    def forward(self, src, tgt, src_padding_mask=None, memory_mask=None):
        own, cross = of_two_axes(src_padding_mask), of_two_axes(memory_mask)
        return self.answer(src, tgt, own, past(tgt), cross)


class OfPairs(OfPadding):
    """The mask of the memory has a row for each target token."""

    def forward(self, src, tgt, src_mask=None, tgt_mask=None,
                memory_mask=None):  # fmt: skip
        own, cross = of_two_axes(src_mask), memory_mask
        if cross is not None:
            assert cross.shape == (len(src), 1, tgt.shape[1], src.shape[1])
        return self.answer(src, tgt, own, past(tgt), cross)


class OfOrderInTheMemory(OfPadding):
    """Its `memory_mask` is (tgt, src), as PyTorch's, and hides no padding."""

    def forward(self, src, tgt, src_padding_mask=None, memory_mask=None):
        own = cross = of_two_axes(src_padding_mask)
        if memory_mask is not None:
            assert memory_mask.shape == (tgt.shape[1], src.shape[1])
            cross = memory_mask
        return self.answer(src, tgt, own, past(tgt), cross)


@pytest.mark.parametrize(
    ("make", "name", "shape"),
    [
        (OfTheMemoryApart, "cross_attention_mask", "(batch, 1, 1, key)"),
        (OfCross, "cross_mask", "(batch, key)"),
        (OfBoth, "enc_dec_mask", "(batch, 1, 1, key)"),
        (OfMemory, "memory_mask", "(batch, key)"),
        (OfPairs, "memory_mask", "(batch, 1, tgt, src)"),
    ],
)
def test_the_mask_of_the_memory_is_given_in_a_shape_of_its_own(
    make, name, shape
):
    report = check("translation_model", built(make))
    assert not report.failures, str(report)
    said = f"`{name}` hid the source's padding, {shape}"
    assert said in report.assumed[0], str(report)
    assert understood(say(report.assumed[0])), say(report.assumed[0])


def test_a_mask_of_the_memory_that_hides_no_padding_is_left_out():
    report = check("translation_model", built(OfOrderInTheMemory))
    assert not report.failures, str(report)
    assert "`memory_mask`" not in report.assumed[0]


class MemorysIsLost(OfTheMemoryApart):
    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, own, order, None)


class EncodersIsLost(OfTheMemoryApart):
    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, None, order, memory_mask)


class MemorysIsTurnedRound(OfMemory):
    def answer(self, src, tgt, own, order, memory_mask):
        cross = None if memory_mask is None else ~memory_mask
        return super().answer(src, tgt, own, order, cross)


@pytest.mark.parametrize(
    "make", [MemorysIsLost, EncodersIsLost, MemorysIsTurnedRound]
)
def test_a_mask_of_its_own_that_does_not_arrive_stays_a_fault(make):
    report = check("translation_model", built(make))
    assert {f.contract for f in report.faults} >= LEAKS, str(report)
    assert "it got masks too" in report.assumed[0]
    assert check_model(built(make)).parts[0].judged.report.faults


class OfAnotherShape(OfPadding):
    """One mask a head, with batch and heads on one axis."""

    def forward(self, src, tgt, mask=None):
        if mask is not None:
            assert mask.shape[0] == 3 * len(src)
            mask = mask.unflatten(0, (len(src), 3))[:, 0, 0]
        return super().forward(src, tgt, mask)


def test_where_no_mask_fits_its_padding_is_a_question():
    report = check("translation_model", built(OfAnotherShape))
    assert not report.faults, str(report)
    assert {f.contract for f in report.risks} == LEAKS
    (group,) = report.grouped()
    assert "`mask` was not given" in group[0].message
    assert "`lambda src, tgt: yours(src, tgt, mask=…)`" in group[0].message
    assert "`mask` was not given" in report.assumed[0]
    for text in (report.assumed[0], group[0].message, group[0].excuse):
        assert understood(say(text)), say(text)


class MakesItsOwn(OfAnotherShape):
    """The encoder hides padding by itself, and the memory's mask is lost."""

    def answer(self, src, tgt, own, order, memory_mask):
        return super().answer(src, tgt, over_rows(src != 0), order, None)


def test_what_makes_masks_of_its_own_and_leaks_has_a_fault():
    report = check("translation_model", built(MakesItsOwn))
    assert {f.contract for f in report.faults} == LEAKS, str(report)


class Loud(MakesThem):
    """Its scores are not divided, and its masks may be numbers."""

    def __init__(self):
        super().__init__()
        parts = PARTS._replace(cross_attention=Undivided)
        layers = (DecoderLayer(12, 3, 31, parts=parts) for _ in "12")
        self.decoder = nn.ModuleList(layers)

    def forward(self, src, tgt, mask=None, context_mask=None):
        masks = (None if m is None else m == 1 for m in (mask, context_mask))
        return super().forward(src, tgt, *masks)


class LoudAndHiding(Loud):
    def forward(self, src, tgt, mask=None, context_mask=None):
        masks = (None if m is None else m == 0 for m in (mask, context_mask))
        return super().forward(src, tgt, *masks)


@pytest.mark.parametrize("make", [Loud, LoudAndHiding])
def test_another_fault_makes_none_of_the_masks(make):
    (fault,) = check("translation_model", built(make)).faults
    assert "not divided by anything" in fault.message


class OfHeads(nn.Module):
    """Weighs its heads by what is no mask of padding."""

    def __init__(self):
        super().__init__()
        self.inner = Translator()

    def forward(self, src, tgt, head_mask=None):
        return self.inner(src, tgt)


def test_a_mask_of_heads_is_no_mask_of_padding():
    assert check("translation_model", built(OfHeads)).assumed == ()
