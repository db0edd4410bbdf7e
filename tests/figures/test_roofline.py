"""A roofline: what a step waits for is what the package counts."""

import re

import pytest
from figures.registry import A100, figure_of, parts_at

from companion.efficiency import Machine, Sizes, decoding_work
from companion.figures import roofline
from companion.figures.gallery.roofline import BATCHES, BITS, CONTEXTS

MODEL = Sizes.seven_billion()
STATES = [
    (batch, context, bits)
    for batch in range(len(BATCHES))
    for context in range(len(CONTEXTS))
    for bits in range(len(BITS))
]


def work_of(batch, context, bits):
    bits = BITS[bits]
    return decoding_work(
        MODEL, BATCHES[batch], CONTEXTS[context],
        weight_bits=bits, cache_bits=bits,
    )  # fmt: skip


@pytest.mark.parametrize("state", STATES[::5])
def test_it_names_what_takes_longer_and_the_tokens_a_second(state):
    says = parts_at(figure_of("roofline"), *state)["says"][0]
    work, batch = work_of(*state), BATCHES[state[0]]
    memory = work.bytes / A100.bytes > work.operations / A100.operations
    assert ("Memory decides" in says) == memory
    assert ("Arithmetic decides" in says) != memory
    told = re.search(r"at most ([\d.,]+) tokens", says)[1].replace(",", "")
    wanted = batch / work.seconds(A100)
    assert float(told) == pytest.approx(wanted, rel=0.01)
    assert ("does not fit" in says) == (work.bytes > 80e9)


@pytest.mark.parametrize("state", STATES[::7])
def test_the_point_lies_on_the_roof_and_its_shape_tells_the_regime(state):
    parts, work = parts_at(figure_of("roofline"), *state), work_of(*state)
    waits = work.intensity < A100.ridge
    assert ("waits" in parts["dot@class"][0]) == waits
    roof = re.search(r'class="roof" d="M(.*?)"', figure_of("roofline").html)
    (_, _), (xr, yr), (x1, _) = [
        map(float, point.split()) for point in roof[1].split("L")
    ]
    x, y = map(
        float, re.match(r"translate\((.*?),(.*?)\)", parts["dot@transform"][0])
        .groups(),
    )  # fmt: skip
    assert (y > yr + 0.05) == (x < xr - 0.05) == waits
    assert x <= x1


def test_a_longer_context_holds_a_large_batch_below_the_ridge():
    figure = figure_of("roofline")
    large = len(BATCHES) - 2
    says = [
        parts_at(figure, large, context, 0)["says"][0]
        for context in range(len(CONTEXTS))
    ]
    assert "Arithmetic decides" in says[0]
    assert all("Memory decides" in each for each in says[1:])


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "machine", [Machine(1e11, 1e9), Machine(1e14, 1e9), Machine(1e16, 1e13)]
)
def test_a_machine_beyond_the_axes_is_refused(machine):
    with pytest.raises(ValueError, match="a ridge from 1"):
        roofline(MODEL, machine, 1e9)
