"""Whatever the sizes: rules of what a layer costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from companion.costs import (
    LAYERS,
    check_layer,
    macs,
    path_length,
    serial_steps,
)

KINDS = st.sampled_from(LAYERS)
SIZES = st.integers(1, 2000)
KERNELS = st.integers(2, 9)


@given(KINDS, SIZES, KERNELS)
def test_one_word_more_never_shortens_a_path_and_adds_one_step_at_most(
    layer, n, kernel
):
    here, longer = (path_length(layer, m, kernel) for m in (n, n + 1))
    assert 0 <= here <= longer <= here + 1
    assert here <= n - 1


@given(SIZES, KERNELS)
def test_a_stack_reaches_the_first_word_and_one_layer_less_does_not(n, kernel):
    reach = kernel - 1
    plain = path_length("convolution", n, kernel)
    assert reach * plain >= n - 1 > reach * (plain - 1)
    depth = path_length("dilated", n, kernel)
    assert reach * (2**depth - 1) >= n - 1
    assert depth == 0 or reach * (2 ** (depth - 1) - 1) < n - 1


@given(KINDS, SIZES)
def test_steps_wait_for_each_other_in_an_rnn_only(layer, n):
    assert serial_steps(layer, n) == (n if layer == "rnn" else 1)


@given(KINDS, SIZES, SIZES, SIZES, KERNELS)
def test_two_halves_cost_a_whole_except_in_attention(layer, n, m, d, kernel):
    halves = macs(layer, n, d, kernel) + macs(layer, m, d, kernel)
    pairs = 4 * n * m * d if layer == "attention" else 0
    assert macs(layer, n + m, d, kernel) == halves + pairs


@given(KINDS, SIZES, SIZES, KERNELS)
def test_twice_the_width_costs_four_times_as_much_but_for_pairs(
    layer, n, d, kernel
):
    times = 2 if layer == "attention" else 4
    narrow, wide = (macs(layer, n, k * d, kernel) for k in (1, 2))
    assert wide == times * narrow


@pytest.mark.bad_input
@given(KINDS, st.integers(-9, 0))
def test_a_size_below_1_is_named(layer, size):
    with pytest.raises(ValueError, match=f"^n: expected .* got {size}$"):
        check_layer(layer, n=size)
