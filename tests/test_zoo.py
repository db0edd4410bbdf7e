"""The gate: every animal is caught and named, and nothing right ever is.

Contracts draw their inputs, and modules their weights, from other numbers in
each series. What is caught with lucky numbers only would get away here.
"""

import pytest
from right import RIGHT
from torch import nn

from companion.contracts import COMPONENTS, check
from companion.contracts.common import contracts_of
from companion.contracts.core import other_inputs
from companion.zoo import ANIMALS
from companion.zoo.animal import animal, built
from companion.zoo.healthy import healthy

pytestmark = pytest.mark.once

SERIES = (1, 2)
"""Besides the usual numbers, 0, with which ``test_contracts.py`` works."""


def tag(value):
    return f"{value.component}-{value.name}".replace(" ", "_")


def hatched(creature, series):
    """What ``check`` gets: a module with other weights in each series."""
    fn = creature.fn
    return built(type(fn), series) if isinstance(fn, nn.Module) else fn


@pytest.mark.parametrize("series", [0, *SERIES])
@pytest.mark.parametrize("creature", ANIMALS, ids=tag)
def test_an_animal_looks_right_and_is_caught_with_its_words(creature, series):
    with other_inputs(series):
        report = check(creature.component, hatched(creature, series))
    # Shape, number type and device are what they should be.
    assert COMPONENTS[creature.component].promise in report.held, str(report)
    assert not report.passed, f"{creature.name} got away"
    first = report.failures[0]
    assert first.contract == creature.contract, str(report)
    assert creature.says in first.message, str(report)


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("component", RIGHT)
def test_nothing_right_is_taken_for_an_animal(component, series):
    with other_inputs(series):
        for fn in RIGHT[component]:
            report = check(component, fn)
            assert report.passed, str(report)


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("component", [c for c in COMPONENTS if healthy(c)])
def test_nothing_of_the_course_is_taken_for_an_animal(component, series):
    with other_inputs(series):
        for one in healthy(component):
            report = check(component, one.fn)
            assert report.passed, f"{one.name}: {report}"


@pytest.mark.parametrize("creature", ANIMALS, ids=tag)
def test_an_animal_has_a_story_a_symptom_and_a_contract(creature):
    assert creature.contract in contracts_of(COMPONENTS[creature.component])
    assert creature.story.endswith(".")
    for words in (creature.seen, creature.symptom, creature.says):
        assert words == " ".join(words.split()) != ""
        assert not words.endswith(".")


@pytest.mark.parametrize("series", [15, 23])
def test_half_a_gradient_is_not_taken_for_a_whole_one_by_luck(series):
    """With these numbers it is right in one of the directions."""
    (half,) = (a for a in ANIMALS if a.name == "half a gradient")
    with other_inputs(series):
        assert not check(half.component, half.fn).passed


def test_every_component_has_an_animal():
    assert {creature.component for creature in ANIMALS} == set(COMPONENTS)
    assert len(ANIMALS) >= 60


def test_no_two_animals_of_a_component_share_a_name():
    tags = [tag(creature) for creature in ANIMALS]
    assert len(set(tags)) == len(tags)


def test_other_series_have_other_inputs_and_end_with_their_block():
    example = COMPONENTS["attention"].cases
    usual = example()["without a mask"][0]
    with other_inputs(1):
        other = example()["without a mask"][0]
    assert not other.equal(usual)
    assert example()["without a mask"][0].equal(usual)


def test_a_module_with_weights_is_an_animal_built_anew_for_each_seed():
    before = list(ANIMALS)
    try:

        @animal("encoder", seen="", symptom="", contract="", says="")
        class LostItsNorm(nn.Linear):
            """It has
            no norm."""

            def __init__(self):
                super().__init__(2, 3)

        creature = ANIMALS[-1]
    finally:
        ANIMALS[:] = before
    assert (creature.name, creature.story) == (
        "lost its norm",
        "It has no norm.",
    )
    assert not creature.fn.training
    weights = [hatched(creature, seed).weight for seed in (0, 0, 1)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])
    assert isinstance(creature.fn, LostItsNorm)
