"""The gate: every known mistake is caught and named, nothing right ever is.

Contracts draw their inputs, and modules their weights, from other numbers in
each series. What is caught with lucky numbers only would get away here.
"""

import json
import re

import pytest
from contracts.known import KEYS, RECORD, SHIPPED, report_on
from contracts.report.reader import Reader, page
from contracts.right import RIGHT

from companion.contracts import COMPONENTS, check
from companion.contracts.engine import runner
from companion.contracts.engine.compare import other_inputs
from companion.contracts.engine.correct import healthy
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.runner import NOT_TRIED, contracts_for
from companion.contracts.engine.universal import contracts_of
from companion.zoo import ANIMALS

pytestmark = pytest.mark.once

KNOWN = json.loads(RECORD.read_text(encoding="utf-8"))
EVERY_RIGHT = [(c, fn) for c, functions in RIGHT.items() for fn in functions]
MILD = {
    "add_positions/added-in-place",
    "add_positions/counted-from-the-end",
    "add_positions/odd/writes_to_its_input_add_positions",
    "add_positions/scaled-again",
    "alignment/odd/padded",
    "attention/minus-a-billion",
    "attention/odd/nan_in_empty_rows",
    "attention/odd/nan_in_the_gradient",
    "attention/uniform-in-empty-rows",
    "attention_maps/odd/nan_for_nobody",
    "beam_search/unpenalised",
    "causal_attention/nothing-for-the-first",
    "combine_masks/causal-is-enough",
    "combine_masks/odd/pad_is_zero",
    "combine_masks/odd/padding_forgotten_with_its_axes",
    "encoder/infinity-for-what-is-hidden",
    "encoder/odd/NaNInTheGradient",
    "flash_attention/nan-where-nobody-is-seen",
    "grouped_query_attention/odd/an_average_for_nobody",
    "grouped_query_attention/odd/heads_left_wide",
    "grouped_query_attention/odd/hidden_by_a_thousand",
    "grouped_query_attention/odd/mended_afterwards",
    "grouped_query_attention/odd/nan_for_nobody",
    "label_smoothing/knows-padding-zero-only",
    "language_model/odd/OneLayerTwice",
    "language_model/odd/Trigram",
    "layer_norm/always-the-same-eps",
    "layer_norm/by-the-default-deviation",
    "layer_norm/eps-outside-the-root",
    "layer_norm/odd/norm_left_wide",
    "layer_norm/odd/norm_of_axis_two",
    "layer_norm/odd/norm_without_eps",
    "layer_norm/unbiased",
    "layer_norm/unbiased-with-its-own-eps",
    "masked_softmax/mask-times-a-billion",
    "masked_softmax/nan-in-empty-rows",
    "masked_softmax/nan-in-the-gradient",
    "masked_softmax/odd/minus_a_billion",
    "masked_softmax/uniform-in-empty-rows",
    "multihead/nan-in-empty-rows",
    "multihead/odd/nan_in_the_gradient",
    "multihead/odd/uniform_in_empty_rows",
    "padding_mask/hides-rows-and-columns",
    "padding_mask/padding-is-always-zero",
    "rms_norm/eps-fixed",
    "rms_norm/eps-outside",
    "rms_norm/odd/eps_left_out",
    "rms_norm/odd/nan_for_zeros",
    "rms_norm/odd/norm_kept_wide",
    "rms_norm/odd/norm_of_axis_2",
    "rms_norm/odd/steep_at_zero",
    "rms_norm/squares-in-half-precision",
    "rope/odd/four_axes_only",
    "rope/other-base",
    "schedule/odd/half_as_fast",
    "schedule/one-for-step-0",
    "sinusoidal/as-in-tensor2tensor",
    "sinusoidal/cosines-then-sines",
    "sinusoidal/even-widths-only",
    "sinusoidal/exponent-ends-at-one",
    "sinusoidal/sines-then-cosines",
    "softmax/odd/padded",
    "translation_model/odd/OneDecoderLayerTwice",
}
"""Which have no fault: only a risk, or a note."""

PAIRS = "Neighbours make a pair, 2i and 2i+1"
ROOT = "The scores of a head are divided by the root of its width"
SPREAD = "The mass is spread as PyTorch does it, or as a well-known port does"
CONVENTIONS = {
    "rotate_halves": [PAIRS],
    "rotate_the_other_way": [PAIRS],
    "as_kl_divergence": [SPREAD],
    "over_all_but_two": [SPREAD],
    "T5": [ROOT],
}
"""Which of the right ones have another convention, and what the note names."""

SERIES = (1, 2)
"""Besides the usual numbers, 0."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """A busy machine is no loop that never ends."""
    monkeypatch.setattr(runner, "SECONDS", 60.0)


def without_digits(text):
    """Another processor may round otherwise; what is said stays the same."""
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", text)


def test_every_mistake_is_recorded_and_nothing_else():
    assert list(KNOWN) == KEYS


# Tests of one key stand side by side, so that its report is made once.
every_mistake = pytest.mark.parametrize("key", KNOWN, scope="module")


@every_mistake
def test_a_mistake_is_caught_and_named_as_recorded(key):
    report = report_on(key)
    contract, message = KNOWN[key]
    assert report.failures, f"{key} got away"
    assert report.failures[0].contract == contract, str(report)
    got = without_digits(report.failures[0].message)
    assert got == without_digits(message)
    assert report.passed == (key in MILD), str(report)
    for failure in report.failures:
        assert bool(failure.why) == (failure.level != "fault"), str(report)
    # A cause is named once, however many contracts it breaks.
    text = " ".join(str(report).split())
    for failures in report.grouped():
        assert text.count(" ".join(failures[0].message.split())) == 1
    known = {*contracts_of(COMPONENTS[key.partition("/")[0]])}
    assert {failure.contract for failure in report.failures} <= known
    # These words are for tensors that cannot be looked at, not for our bugs.
    assert "cannot be used" not in text
    if hint := key in SHIPPED and SHIPPED[key].hint:
        assert any(hint in f.message for f in report.failures), str(report)


@every_mistake
def test_its_page_says_what_the_text_says_and_points_at_what_differs(key):
    report = report_on(key)
    words = " ".join("".join(Reader(page(report)).words).split())
    for failures in report.grouped():
        assert failures[0].contract.replace("`", "") in words
        message = failures[0].message.replace("`", "")
        assert " ".join(message.split()) in words
    for failure in report.failures:
        if failure.at:
            got, expected = failure.got, failure.expected
            assert got[failure.at] != expected[failure.at]


@pytest.mark.parametrize("key", [k for k, m in SHIPPED.items() if m.symptom])
def test_an_animal_of_the_zoo_looks_right_and_is_caught_with_any_numbers(key):
    mistake = SHIPPED[key]
    contract, message = KNOWN[key]
    hint, _, _ = without_digits(message).partition(" At ")
    for series in SERIES:
        with other_inputs(series):
            report = check(mistake.component, mistake.seeded(series))
        # Shape, number type and device are what they should be.
        assert COMPONENTS[mistake.component].shape_contract in report.held
        assert report.failures, f"{key} got away in series {series}"
        assert report.passed == (key in MILD), str(report)
        assert report.failures[0].contract == contract, str(report)
        got = without_digits(report.failures[0].message)
        assert got.partition(" At ")[0] == hint


def test_every_contract_is_failed_by_a_known_mistake():
    all_there_are = {
        (name, contract)
        for name, component in COMPONENTS.items()
        for contract in contracts_of(component)
    }
    # That each fails what is recorded first has a test of its own.
    failed = {(k.partition("/")[0], first) for k, (first, _) in KNOWN.items()}
    assert failed <= all_there_are
    left = all_there_are - failed
    for key in KNOWN:
        name = key.partition("/")[0]
        if any(component == name for component, _ in left):
            left -= {(name, f.contract) for f in report_on(key).failures}
    assert left == set()


@pytest.mark.parametrize(
    ("component", "fn"), EVERY_RIGHT, ids=lambda x: getattr(x, "__name__", x)
)
def test_what_is_right_holds_every_contract_whatever_the_numbers(component, fn):
    for series in (0, *SERIES):
        with other_inputs(series):
            report = check(component, fn)
        assert report.passed, str(report)
        assert not report.risks, str(report)
        guarded = Guarded(COMPONENTS[component], fn)
        noted = [note.contract for note in report.notes]
        name = getattr(fn, "__name__", type(fn).__name__)
        assert noted == CONVENTIONS.get(name, [])
        every = list(contracts_for(guarded))
        # Whether scores are divided, where that cannot be heard.
        left = " ".join(s for s in report.assumed if s.startswith(NOT_TRIED))
        held = [n for n in every if n not in noted and n not in left]
        assert report.held == held


@pytest.mark.parametrize("component", [c for c in COMPONENTS if healthy(c)])
def test_what_check_test_compares_with_holds_every_contract(component):
    for series in (0, *SERIES):
        with other_inputs(series):
            for one in healthy(component):
                report = check(component, one.fn)
                assert report.passed, f"{one.name}: {report}"


def test_three_or_more_ways_to_be_right_are_tried_for_each_component():
    assert set(RIGHT) == set(COMPONENTS)
    assert min(len(functions) for functions in RIGHT.values()) >= 3


def test_an_animal_has_a_story_and_every_component_has_an_animal():
    assert {animal.component for animal in ANIMALS} == set(COMPONENTS)
    for animal in ANIMALS:
        assert animal.story.endswith(".")
        assert not animal.symptom.endswith(".")


@pytest.mark.parametrize("series", [15, 23])
def test_half_a_gradient_is_not_taken_for_a_whole_one_by_luck(series):
    """With these numbers it is right in one of the directions."""
    of = "softmax", "half a gradient"
    (half,) = (a for a in ANIMALS if (a.component, a.name) == of)
    with other_inputs(series):
        assert not check(half.component, half.fn).passed
