"""What check does with whatever it is given, and what it says first."""

import dataclasses

import pytest
import torch
from contracts.known import report_on
from torch import nn

from companion.contracts import COMPONENTS, check
from companion.contracts.engine.compare import other_inputs
from companion.contracts.engine.universal import contracts_of


@pytest.mark.parametrize("component", COMPONENTS.values(), ids=lambda c: c.name)
def test_two_contracts_never_share_a_name(component):
    every = contracts_of(component).values()
    assert {*component.early, *component.own} < set(every)


def test_without_its_scale_attention_fails_by_far_more_than_rounding():
    """Scores that saturate the softmax would hide the missing factor."""
    failure = report_on("attention/unscaled").failures[0]
    assert (failure.got - failure.expected).abs().max() > 0.5


def test_a_leak_shows_who_sees_whom():
    failure = report_on("attention/transposed").failures[0]
    assert torch.equal(failure.got, torch.ones(5, 5).triu())
    assert torch.equal(failure.expected, torch.ones(5, 5).tril())


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


def test_other_series_have_other_inputs_and_end_with_their_block():
    example = COMPONENTS["attention"].cases
    usual = example()["without a mask"][0]
    with other_inputs(1):
        other = example()["without a mask"][0]
    assert not other.equal(usual)
    assert example()["without a mask"][0].equal(usual)


def test_a_mistake_that_is_a_class_is_built_anew_for_each_seed():
    component = dataclasses.replace(COMPONENTS["encoder"], mistakes=[])

    @component.mistake(symptom="it drifts")
    class LostItsNorm(nn.Linear):
        """It has
        no norm."""

        def __init__(self):
            super().__init__(2, 3)

    (mistake,) = component.mistakes
    assert (mistake.name, mistake.story) == ("lost its norm", "It has no norm.")
    assert isinstance(mistake.fn, LostItsNorm)
    assert not mistake.fn.training
    weights = [mistake.seeded(seed).weight for seed in (0, 0, 1)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])


@pytest.mark.bad_input
def test_a_second_mistake_of_one_id_or_hint_is_refused():
    component = dataclasses.replace(COMPONENTS["softmax"], mistakes=[])
    component.mistake("one", hint="Once.")(torch.softmax)
    for id, hint in (("one", ""), ("two", "Once.")):
        with pytest.raises(ValueError, match=f"^softmax: .* got '{id}'"):
            component.mistake(id, hint=hint)(torch.softmax)
