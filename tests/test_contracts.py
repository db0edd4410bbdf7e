"""The contracts: what is right holds them all, what is wrong is named."""

import functools
import importlib
import re
import time

import pytest
import torch
from right import RIGHT
from wrong import WRONG

from companion.contracts import COMPONENTS, check
from companion.contracts.common import contracts_of
from companion.contracts.guard import Guarded
from companion.contracts.runner import contracts_for

EVERY_RIGHT = [(c, fn) for c, functions in RIGHT.items() for fn in functions]
EVERY_SUSPECT = [
    (component.name, hint, suspect)
    for component in COMPONENTS.values()
    for hint, suspect in component.suspects.items()
]


@functools.cache
def report_on(wrong):
    return check(wrong.component, wrong.fn)


def name_of(x):
    return getattr(x, "__name__", None)


def called(wrong):
    return f"{wrong.component}-{wrong.fn.__name__}"


@pytest.mark.parametrize(("component", "fn"), EVERY_RIGHT, ids=name_of)
def test_however_it_is_written_what_is_right_holds_every_contract(
    component, fn
):
    report = check(component, fn)
    assert report.passed, str(report)
    guarded = Guarded(COMPONENTS[component], fn)
    assert report.held == list(contracts_for(guarded))


def test_three_or_more_ways_to_be_right_are_tried_for_each_component():
    assert set(RIGHT) == set(COMPONENTS)
    assert min(len(functions) for functions in RIGHT.values()) >= 3


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_right_function_is_checked_in_well_under_a_second(component):
    start = time.process_time()
    assert check(component, RIGHT[component][0]).passed
    assert time.process_time() - start < 1


@pytest.mark.parametrize("wrong", WRONG, ids=called)
def test_a_plausible_mistake_is_named_first_and_located(wrong):
    report = report_on(wrong)
    assert not report.passed
    assert re.search(wrong.says, report.failures[0].message), str(report)


@pytest.mark.parametrize("wrong", WRONG, ids=called)
def test_a_mistake_is_told_once(wrong):
    report = report_on(wrong)
    text = " ".join(str(report).split())
    for failures in report.grouped():
        message = " ".join(failures[0].message.split())
        assert text.count(message) == 1


@pytest.mark.parametrize("wrong", WRONG, ids=called)
def test_no_contract_breaks_down_on_a_mistake(wrong):
    # These words are for tensors that cannot be looked at, not for our bugs.
    assert "cannot be used" not in str(report_on(wrong))


def test_every_contract_is_failed_by_a_plausible_mistake():
    failed = {
        (wrong.component, failure.contract)
        for wrong in WRONG
        for failure in report_on(wrong).failures
    }
    all_there_are = {
        (name, contract)
        for name, component in COMPONENTS.items()
        for contract in contracts_of(component)
    }
    assert failed == all_there_are


@pytest.mark.parametrize(("component", "hint", "suspect"), EVERY_SUSPECT)
def test_every_suspect_is_recognised_as_itself(component, hint, suspect):
    report = check(component, suspect)
    assert any(hint in f.message for f in report.failures), str(report)


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=lambda c: c.name)
def test_two_contracts_never_share_a_name(component):
    kept = contracts_of(component).values()
    assert {*component.early, *component.own} < set(kept)


def test_without_its_scale_attention_fails_by_far_more_than_rounding():
    """Scores that saturate the softmax would hide the missing factor."""
    (unscaled,) = (w for w in WRONG if w.fn.__name__ == "unscaled")
    failure = report_on(unscaled).failures[0]
    assert (failure.got - failure.expected).abs().max() > 0.5


def test_a_leak_shows_who_sees_whom():
    (transposed,) = (
        w
        for w in WRONG
        if w.fn.__name__ == "transposed" and w.component == "attention"
    )
    failure = report_on(transposed).failures[0]
    assert torch.equal(failure.got, torch.ones(5, 5).triu())
    assert torch.equal(failure.expected, torch.ones(5, 5).tril())


@pytest.mark.parametrize(
    ("component", "module", "name"),
    [
        ("softmax", "attention", "softmax"),
        ("masked_softmax", "attention", "masked_softmax"),
        ("attention", "attention", "scaled_dot_product_attention"),
        ("rnn", "rnn", "unroll"),
        ("alignment", "seq2seq", "dot_alignment"),
    ],
)
def test_the_package_keeps_its_own_contracts(component, module, name):
    module = importlib.import_module(f"companion.{module}")
    report = check(component, getattr(module, name))
    assert report.passed, str(report)


@pytest.mark.bad_input
def test_an_unknown_component_is_refused_with_what_there_is():
    every = ", ".join(sorted(COMPONENTS))
    with pytest.raises(ValueError, match=f"{every}.*'attention'\\?$"):
        check("atention", torch.softmax)
    with pytest.raises(ValueError, match=f"{every}, got 'xyz'.$"):
        check("xyz", torch.softmax)


@pytest.mark.bad_input
def test_exchanged_arguments_are_refused():
    with pytest.raises(TypeError, match="the function comes second"):
        check(torch.softmax, "softmax")
