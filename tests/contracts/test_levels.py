"""Faults, risks and notes: what a report says, and of what."""

import dataclasses
import math

import pytest
import torch
from contracts.right import built
from contracts.right.attention import attention_by_matmul
from contracts.right.public import (
    PORTS,
    Causal,
    LearnedFromZero,
    halves,
    in_four_lines,
    over_all_but_one,
    sines_then_cosines,
)
from torch import nn

from companion.blocks import FeedForward
from companion.contracts import COMPONENTS, check, check_model
from companion.contracts.engine.compare import Broken, other_inputs
from companion.contracts.engine.levels import (
    LEVELS,
    SIGNS,
    level_of,
    note,
    risk,
)
from companion.contracts.engine.universal import contracts_of
from companion.contracts.multihead.multihead import Heads
from companion.contracts.transformer.language_model import Language
from companion.contracts.transformer.translation_model import Translator
from companion.multihead import MultiHeadAttention

pytestmark = pytest.mark.once


def firsts(failures):
    """Of each cause the first contract that names it."""
    found = {}
    for failure in failures:
        found.setdefault(failure.cause, failure.contract)
    return tuple(found.values())


def by_level(report):
    return {
        level: [f.contract for f in report.failures if f.level == level]
        for level in LEVELS
    }


@pytest.mark.once
@pytest.mark.parametrize("name", PORTS)
def test_a_public_style_has_no_fault_and_its_risks_and_notes_are_named(name):
    port = PORTS[name]
    fn = built(port.make)
    fn = fn.eval() if isinstance(fn, nn.Module) else fn
    for series in (0, 1):
        with other_inputs(series):
            report = check(port.component, fn)
        assert report.passed, str(report)
        assert firsts(report.risks) == port.risks, str(report)
        assert firsts(report.notes) == port.notes, str(report)
        for failure in (*report.risks, *report.notes):
            assert failure.excuse in " ".join(str(report).split())
        strict = check(port.component, fn, strict=True)
        assert strict.passed == (not report.failures)
        assert len(strict.faults) == len(report.failures)


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=lambda c: c.name)
def test_whoever_declares_another_level_than_a_fault_says_why(component):
    declared = [level_of(c) for c in contracts_of(component).values()]
    declared += [(m.level or "fault", m.why) for m in component.mistakes]
    for level, why in declared:
        assert level in LEVELS
        assert bool(why) == (level != "fault")
        assert not why or why.endswith(".")
        assert ". " not in why, "one sentence"


# A convention or a rare input does not hide a fault.


def halves_and_wrong_speeds(length, d_model):
    rates = 1e4 ** (-torch.arange(d_model // 2) / d_model)
    angles = torch.outer(torch.arange(length), rates)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def halves_from_one(length, d_model):
    return sines_then_cosines(length + 1, d_model)[1:]


def normalised_if_long(length, d_model):
    return (normalised if length > 50 else in_four_lines)(length, d_model)


def normalised_by_the_column(length, d_model):
    table = in_four_lines(length, d_model)
    return (table - table.mean(0)) / (10 * table.std(0))


def normalised_upside_down(length, d_model):
    return -normalised(length, d_model)


def halves_that_stretch(length, d_model):
    return sines_then_cosines(length, d_model) * (1 if length < 90 else 0.5)


def other_base_for_wide_heads(x, positions):
    return halves(x, positions, 5e5 if x.shape[-1] > 4 else 1e4)


def other_base_by_place(x, positions):
    return halves(x, torch.arange(x.shape[-2]), 5e5)


def all_but_one_and_padding(logits, target, smoothing, pad):
    return over_all_but_one(logits, target, smoothing, -1)


def a_tenth_and_a_sum(logits, target, smoothing, pad):
    many = (target != pad).sum()
    return many * over_all_but_one(logits, target, 0.1, pad)


def eps_outside_and_unbiased(x, gain, eps):
    size = (x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)).sqrt()
    return x / (size + eps) * gain


def torchs_std_without_a_bias(x, gain, bias, eps):
    deviation = x.std(-1, keepdim=True)
    return gain * (x - x.mean(-1, keepdim=True)) / (deviation + eps)


def torchs_std_of_the_sentence(x, gain, bias, eps):
    mean, deviation = x.mean(1, keepdim=True), x.std(1, keepdim=True)
    return gain * (x - mean) / (deviation + eps) + bias


def torchs_std_for_small_vectors(x, gain, bias, eps):
    large = x.abs().amax(-1, keepdim=True) > 1e3
    mean, deviation = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return gain * (x - mean) / torch.where(large, 1, deviation + eps) + bias


def overflows_at_ninety(q, k, v, mask=None):
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    if mask is not None:
        scores = scores * mask
    total = scores.sum(-1, keepdim=True)
    return scores / total.masked_fill(total == 0, 1) @ v


def zero_unless_it_is_three(logits, target, smoothing, pad):
    return over_all_but_one(logits, target, smoothing, 3 if pad == 3 else 0)


@pytest.mark.parametrize(
    ("component", "fn"),
    [
        ("sinusoidal", halves_and_wrong_speeds),
        ("sinusoidal", halves_from_one),
        ("sinusoidal", halves_that_stretch),
        ("sinusoidal", normalised_if_long),
        ("sinusoidal", normalised_by_the_column),
        ("sinusoidal", normalised_upside_down),
        ("rope", other_base_for_wide_heads),
        ("rope", other_base_by_place),
        ("label_smoothing", all_but_one_and_padding),
        ("label_smoothing", a_tenth_and_a_sum),
        ("label_smoothing", zero_unless_it_is_three),
        ("rms_norm", eps_outside_and_unbiased),
        ("layer_norm", torchs_std_without_a_bias),
        ("layer_norm", torchs_std_of_the_sentence),
        ("layer_norm", torchs_std_for_small_vectors),
        ("attention", overflows_at_ninety),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_another_convention_excuses_no_fault(component, fn):
    report = check(component, fn)
    assert report.faults, str(report)


def test_scores_of_a_hundred_are_met_and_scores_of_ten_thousand_are_rare():
    def cut(limit):
        def softmax(scores, dim):
            return scores.clamp(-limit, limit).softmax(dim)

        return check("softmax", softmax)

    assert [f.level for f in cut(200).failures] == ["risk"]
    assert cut(30).faults


# What a report looks like


def even_only(length, d_model):
    return in_four_lines(length, d_model)


def test_a_risk_is_no_failure_and_says_when_it_bites():
    report = check("sinusoidal", even_only)
    assert report.headline == "sinusoidal: no fault in 9 contracts, 1 risk"
    assert report.sign == "!"
    assert (report.faults, report.notes) == ([], [])
    assert report.risks == report.failures
    text = str(report)
    assert "\n! It takes an odd width" in text
    assert "\n    Only a risk: The widths of published models are even" in text
    page = report._repr_mimebundle_()["text/html"]
    assert '<p class="verdict risks">! sinusoidal' in page
    assert '<p class="excuse">Only a risk: ' in page


def test_faults_come_first_and_the_rest_is_counted_beside_them():
    def unscaled(q, k, v, mask=None):
        q = q * q.shape[-1] ** 0.5
        lowest = torch.finfo(q.dtype).min
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, lowest)
        return scores.softmax(-1) @ v

    report = check("attention", unscaled)
    assert report.sign == "✗"
    assert report.headline.endswith("of 23 contracts fail, 1 risk")
    levels = [group[0].level for group in report.grouped()]
    assert levels == sorted(levels, key=LEVELS.index)
    assert set(levels) == {"fault", "risk"}
    page = report._repr_mimebundle_()["text/html"]
    assert '<p class="verdict fails">✗ attention' in page
    assert "<summary>1 is no fault</summary>" in page


def test_where_nothing_is_mild_the_page_has_no_style_for_it():
    def by_the_key_length(q, k, v, mask=None):
        return attention_by_matmul(q * k.shape[-1] ** 0.5, k, v, mask)

    for fn in (attention_by_matmul, by_the_key_length):
        page = check("attention", fn)._repr_mimebundle_()["text/html"]
        assert "excuse" not in page
        assert "risks" not in page


def test_what_follows_from_a_fault_is_told_with_it():
    """A mask upside down also spoils the row that may see nothing."""

    def upside_down(q, k, v, mask=None):
        return attention_by_matmul(q, k, v, None if mask is None else ~mask)

    report = check("attention", upside_down)
    assert len(report.faults) == 5
    assert report.failures == report.faults


def test_a_contract_may_find_less_or_more_than_it_declares():
    component = dataclasses.replace(COMPONENTS["softmax"], own=[])

    @component.contract
    @risk("Nobody asks for it.")
    def rare(fn):
        """Something rare."""
        raise Broken("It is broken.", level="fault")

    @component.contract
    @note("There are two.")
    def other(fn):
        """One of two."""
        raise Broken("It is the other.")

    assert level_of(rare) == ("risk", "Nobody asks for it.")
    COMPONENTS["made up"] = component
    try:
        report = check("made up", torch.softmax)
    finally:
        del COMPONENTS["made up"]
    assert by_level(report)["fault"] == ["Something rare"]
    assert by_level(report)["note"] == ["One of two"]
    assert [f.sign for f in report.failures] == [SIGNS["fault"], SIGNS["note"]]


# Positions that start at zero


def test_zeros_are_put_back_and_what_stays_zero_is_still_found():
    module = LearnedFromZero()
    assert check("add_positions", module).passed
    assert not module.table.any()

    module.table.requires_grad_(False)
    (failure,) = check("add_positions", module).faults
    assert "Nothing is added" in failure.message


def test_a_model_behind_a_function_is_moved_too():
    model = built(Causal).eval()

    def going_on(tokens):
        return model(tokens, tokens)[0]

    assert check("language_model", going_on).passed
    assert not model.places.any()


# Rows of padding that may see nobody


class HidesByInfinity(MultiHeadAttention):
    def _attend(self, q, k, v, mask):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -torch.inf).softmax(-1) @ v


class OfRowsToo(Translator):
    """Masks hide the rows of padding, of the target or of the source."""

    def __init__(self, *sides):
        super().__init__()
        self.sides, self.decoder = sides, self.decoder[:1]
        for part in self.modules():
            if isinstance(part, MultiHeadAttention):
                part.__class__ = HidesByInfinity

    def masks(self, src, tgt):
        masks, rows = super().masks(src, tgt), {"src": src, "tgt": tgt}
        return masks._replace(
            **{
                side: getattr(masks, side) & (rows[side] != 0)[:, None, :, None]
                for side in self.sides
            }
        )


def test_rows_of_padding_that_are_nan_are_a_risk_if_nobody_reads_them():
    report = check("translation_model", built(lambda: OfRowsToo("tgt")).eval())
    assert report.passed, str(report)
    (risk,) = report.risks
    assert "A row of a mask hides every key" in risk.message
    assert "NaN gradients" in risk.excuse


def test_rows_of_padding_that_make_words_nan_are_a_fault_with_that_cause():
    report = check("translation_model", built(lambda: OfRowsToo("src")).eval())
    assert report.faults
    for fault in report.faults:
        assert "A row of a mask hides every key" in fault.message


# Gains that start nearly at zero


class Scaled(nn.Module):
    """Two layers of whose branches each has a gain, and a norm at their end."""

    def __init__(self, attend=Heads, gain=1e-5):
        super().__init__()
        self.attend = nn.ModuleList(attend() for _ in "12")
        self.nets = nn.ModuleList(FeedForward(12, 31) for _ in "12")
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in "12345")
        for name in ("one", "two", "three", "four"):
            weight = nn.Parameter(torch.full((12,), gain))
            self.register_parameter(name, weight)

    def forward(self, x, mask=None):
        one, two, three, four, last = self.norms
        x = x + self.one * self.attend[0](one(x), mask)
        x = x + self.two * self.nets[0](two(x))
        x = x + self.three * self.attend[1](three(x), mask)
        return last(x + self.four * self.nets[1](four(x)))


@pytest.mark.parametrize("gain", [1e-4, 1e-5, 1e-6])
def test_a_branch_with_a_small_gain_is_judged_with_a_large_one(gain):
    module = built(lambda: Scaled(gain=gain)).eval()
    report = check("encoder", module)
    assert not report.failures, str(report)
    assert f"`one` and 3 more start at {gain:.3g}" in report.assumed[0]
    assert (module.one == gain).all()
    assert (module.four == gain).all()

    (whole, *_) = check_model(module).parts
    assert whole.judged.component == "encoder"
    assert any("`one` and 3 more start" in t for t in whole.judged.assumed)
    assert (module.one == gain).all()


class Maskless(Heads):
    def forward(self, x, mask=None):
        return super().forward(x)


class WithItsNameOnly(Scaled):
    """The gain is built, and nothing is multiplied by it."""

    def forward(self, x, mask=None):
        one, two, *_, last = self.norms
        x = x + self.attend[0](one(x), mask)
        return last(x + self.nets[0](two(x)))


@pytest.mark.parametrize(
    "make", [lambda: Scaled(Maskless), lambda: WithItsNameOnly()]
)
def test_behind_a_small_gain_what_is_wrong_is_still_found(make):
    assert check("encoder", built(make).eval()).faults


# Code that only answers


def attended(q, k, v, mask):
    """Right attention."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask, lowest).softmax(-1)
    return weights.masked_fill(~mask, 0) @ v


@torch.inference_mode()
def decorated(q, k, v, mask=None):
    return attended(q, k, v, mask)


def in_a_block(q, k, v, mask=None):
    with torch.no_grad():
        return attended(q, k, v, mask)


class OnlyAnswers(Heads):
    @torch.no_grad()
    def forward(self, x, mask=None):
        return super().forward(x, mask)


class OnlyContinues(Language):
    @torch.inference_mode()
    def forward(self, tokens):
        return super().forward(tokens)


@pytest.mark.parametrize(
    ("component", "make", "where"),
    [
        ("attention", lambda: decorated, "line 1 of `decorated`, `@torch.inf"),
        ("attention", lambda: in_a_block, "line 2 of `in_a_block`, `with tor"),
        ("multihead", OnlyAnswers, "line 1 of `OnlyAnswers.forward`, `@torch"),
        ("language_model", OnlyContinues, "`@torch.inference_mode()`"),
    ],
)
def test_code_without_gradients_is_a_risk_and_the_line_is_named(
    component, make, where
):
    report = check(component, built(make))
    assert report.passed, str(report)
    for failure in report.failures:
        assert "Gradients are switched off in line" in failure.message
        assert where in failure.message
        assert "in code that is trained it is a fault" in failure.excuse
    assert report.failures
    assert not check(component, built(make), strict=True).passed


def half_without(q, k, v, mask=None):
    with torch.no_grad():
        q = 1 * q
    return attended(q, k, v, mask)


def cut_off(q, k, v, mask=None):
    q, k, v = (x.detach() for x in (q, k, v))
    with torch.no_grad():
        return attended(q, k, v, mask)


@pytest.mark.parametrize("fn", [half_without, cut_off])
def test_a_gradient_that_is_lost_otherwise_remains_a_fault(fn):
    (only,) = check("attention", fn).faults
    assert (
        only.contract
        == "The gradient of every input is the slope of the " + ("function")
    )


@torch.no_grad()
def loss(logits, target, smoothing, pad):
    return nn.functional.cross_entropy(
        logits.flatten(0, -2),
        target.flatten(),
        label_smoothing=smoothing,
        ignore_index=pad,
    )


def test_a_loss_without_gradients_is_a_fault():
    report = check("label_smoothing", loss)
    assert any("switched off" in f.message for f in report.faults)


class AnyIsCausal(Heads):
    """Asks of a mask whether there is one, and nothing else."""

    def weigh(self, scores, mask):
        if mask is not None:
            mask = torch.ones_like(scores, dtype=torch.bool).tril()
        return super().weigh(scores, mask)


class AnyHidesTheFirst(Heads):
    """The same, and what it hides is no future."""

    def weigh(self, scores, mask):
        if mask is not None:
            mask = torch.arange(scores.shape[-1]) > 0
        return super().weigh(scores, mask)


def test_a_mask_that_is_a_mere_flag_for_the_causal_one_is_a_risk():
    report = check("multihead", built(AnyIsCausal))
    told = {f.message for f in report.failures}
    assert report.passed
    assert told
    assert all("taken for the causal one" in text for text in told)
    assert {f.level for f in report.failures} == {"risk"}
    assert check("multihead", built(AnyHidesTheFirst)).faults


def normalised(length, d_model):
    table = in_four_lines(length, d_model)
    return (table - table.mean()) / (10 * table.std())


def test_a_table_that_is_normalised_as_a_whole_is_the_formulas_with_a_note():
    report = check("sinusoidal", normalised)
    assert report.passed
    (one,) = [f for f in report.failures if f.level == "note"]
    assert "normalised as a whole" in one.message
    risks = [f.contract for f in report.failures if f.level == "risk"]
    assert "A row does not depend on how many there are" in risks
