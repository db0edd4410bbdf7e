"""What a layer costs: formulas against a search, PyTorch's count and a run."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from companion.costs import LAYERS, check_layer, macs, path_length, serial_steps
from companion.rnn import unroll

KINDS = st.sampled_from(LAYERS)
SIZES = st.integers(1, 2000)
KERNELS = st.integers(2, 9)


def reads(layer, n, kernel, depth):
    """Who reads whom in one step: position t (row) reads s (column)."""
    t, s = torch.arange(n).unsqueeze(1), torch.arange(n)
    gap = 2**depth if layer == "dilated" else 1
    reach = {"rnn": 1, "attention": n}.get(layer, (kernel - 1) * gap)
    behind = t - s
    return (behind >= 0) & (behind <= reach) & (behind % gap == 0)


@pytest.mark.parametrize("kernel", [2, 3, 5])
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 17, 33])
def test_the_path_is_as_long_as_a_search_finds_it(layer, n, kernel):
    knows, steps = torch.eye(n), 0
    while knows[-1, 0] == 0:
        knows = (reads(layer, n, kernel, steps).float() @ knows).clamp(max=1)
        steps += 1
    assert path_length(layer, n, kernel) == steps


@pytest.mark.parametrize(
    ("dilated", "layer"), [(0, "convolution"), (1, "dilated")]
)
def test_a_stack_of_convolutions_has_a_gradient_only_when_deep_enough(
    dilated, layer
):
    n, kernel = 13, 3

    def gradient(depth):
        x = torch.ones(1, 1, n, requires_grad=True)
        y = x
        for i in range(depth):
            gap = 2 ** (i * dilated)
            y = F.pad(y, ((kernel - 1) * gap, 0))
            y = F.conv1d(y, torch.ones(1, 1, kernel), dilation=gap)
        y[0, 0, -1].backward()
        return x.grad[0, 0, 0]

    depth = path_length(layer, n, kernel)
    assert gradient(depth - 1) == 0
    assert gradient(depth) > 0


def test_the_paths_between_512_words():
    assert [path_length(layer, 512) for layer in LAYERS] == [511, 256, 9, 1]


def one_layer(layer, n, d, kernel):
    """The layer itself, its nonlinearity last."""
    x, square = torch.ones(1, n, d), torch.ones(d, d, requires_grad=True)
    if layer == "rnn":
        return unroll(x, torch.zeros(1, d), square, square, torch.zeros(d))
    if layer == "attention":
        x.requires_grad_()
        return torch.tanh((x @ x.mT).softmax(dim=-1) @ x)
    gap = 2 if layer == "dilated" else 1
    weight = torch.ones(d, d, kernel, requires_grad=True)
    x = F.pad(x.mT, ((kernel - 1) * gap, 0))
    return torch.tanh(F.conv1d(x, weight, dilation=gap)).mT


@pytest.mark.parametrize("layer", LAYERS)
def test_macs_are_half_the_flops_that_pytorch_counts(layer):
    n, d, kernel = 7, 5, 3
    with FlopCounterMode(display=False) as counter:
        one_layer(layer, n, d, kernel)
    assert 2 * macs(layer, n, d, kernel) == counter.get_total_flops()


def test_projections_add_four_matrices_a_position():
    n, d = 7, 5
    x, square = torch.ones(n, d), torch.ones(d, d)
    with FlopCounterMode(display=False) as counter:
        q, k, v = x @ square, x @ square, x @ square
        ((q @ k.mT) @ v) @ square
    total = macs("attention", n, d, projections=True)
    assert 2 * total == counter.get_total_flops()


def test_attention_costs_as_much_as_an_rnn_where_n_is_d():
    assert macs("attention", 512, 512) == macs("rnn", 512, 512) == 2 * 512**3
    assert macs("attention", 4096, 512) == 8 * macs("rnn", 4096, 512)


@pytest.mark.parametrize("n", [1, 64, 4096])
def test_with_projections_attention_always_costs_more_than_an_rnn(n):
    assert macs("attention", n, 512, projections=True) > macs("rnn", n, 512)


def tanhs_in_a_row(node):
    """The most tanh on one way back through the graph of a result."""
    if node is None:
        return 0
    longest = max(
        (tanhs_in_a_row(f) for f, _ in node.next_functions), default=0
    )
    return longest + ("Tanh" in node.name())


@pytest.mark.parametrize("layer", LAYERS)
def test_serial_steps_are_the_nonlinearities_that_wait_for_one_another(layer):
    last = one_layer(layer, 7, 5, 3)[0, -1].sum()
    assert tanhs_in_a_row(last.grad_fn) == serial_steps(layer, 7)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: path_length("cnn", 5), "layer: expected one of .*'cnn'"),
        (lambda: path_length("rnn", 0), "n: expected at least 1, got 0"),
        (
            lambda: path_length("rnn", 5, 1),
            "kernel: expected at least 2, got 1",
        ),
        (lambda: serial_steps("rnn", 0), "n: expected at least 1"),
        (lambda: macs("rnn", 5, 0), "d: expected at least 1"),
        (lambda: macs("gru", 5, 5), "layer: expected one of"),
    ],
)
def test_unknown_layers_and_empty_sizes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Whatever the sizes.


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
