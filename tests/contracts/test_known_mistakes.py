"""The gate: every known mistake is caught and named, nothing right ever is.

Contracts draw their inputs, and modules their weights, from other numbers in
each series. What is caught with lucky numbers only would get away here.
"""

import json
import re

import pytest
from contracts.known import KEYS, RECORD, SHIPPED, report_on
from contracts.right import RIGHT

from companion.contracts import COMPONENTS, check
from companion.contracts.engine import runner
from companion.contracts.engine.compare import other_inputs
from companion.contracts.engine.correct import healthy
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.runner import contracts_for
from companion.contracts.engine.universal import contracts_of
from companion.zoo import ANIMALS

pytestmark = pytest.mark.once

KNOWN = json.loads(RECORD.read_text(encoding="utf-8"))
EVERY_RIGHT = [(c, fn) for c, functions in RIGHT.items() for fn in functions]
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


@pytest.mark.parametrize("key", KNOWN)
def test_a_mistake_is_caught_and_named_as_recorded(key):
    report = report_on(key)
    contract, message = KNOWN[key]
    assert not report.passed, f"{key} got away"
    assert report.failures[0].contract == contract, str(report)
    got = without_digits(report.failures[0].message)
    assert got == without_digits(message)
    # A cause is named once, however many contracts it breaks.
    text = " ".join(str(report).split())
    for failures in report.grouped():
        assert text.count(" ".join(failures[0].message.split())) == 1
    # These words are for tensors that cannot be looked at, not for our bugs.
    assert "cannot be used" not in text


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
        assert not report.passed, f"{key} got away in series {series}"
        assert report.failures[0].contract == contract, str(report)
        got = without_digits(report.failures[0].message)
        assert got.partition(" At ")[0] == hint


def test_every_contract_is_failed_by_a_known_mistake():
    failed = {
        (key.partition("/")[0], failure.contract)
        for key in KNOWN
        for failure in report_on(key).failures
    }
    all_there_are = {
        (name, contract)
        for name, component in COMPONENTS.items()
        for contract in contracts_of(component)
    }
    assert failed == all_there_are


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_hint_is_given_to_the_mistake_that_it_describes(component):
    for hint, fn in COMPONENTS[component].hints.items():
        report = check(component, fn)
        assert any(hint in f.message for f in report.failures), str(report)


@pytest.mark.parametrize(
    ("component", "fn"), EVERY_RIGHT, ids=lambda x: getattr(x, "__name__", x)
)
def test_what_is_right_holds_every_contract_whatever_the_numbers(component, fn):
    for series in (0, *SERIES):
        with other_inputs(series):
            report = check(component, fn)
        assert report.passed, str(report)
        guarded = Guarded(COMPONENTS[component], fn)
        assert report.held == list(contracts_for(guarded))


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
    (half,) = (a for a in ANIMALS if a.name == "half a gradient")
    with other_inputs(series):
        assert not check(half.component, half.fn).passed
