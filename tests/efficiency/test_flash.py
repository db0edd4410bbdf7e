"""Attention block by block is plain attention, and keeps no score matrix."""

import math

import pytest
import torch
import torch.nn.functional as F

from companion.attention import scaled_dot_product_attention
from companion.efficiency import (
    flash_attention,
    kept_for_backward,
    split_attention,
)
from companion.variants import grouped_query_attention

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, HEAD, QUERY, KEY, D_K, D_V = 2, 3, 5, 17, 11, 13
BLOCKS = (1, 3, 4, 7, 64)


def drawn(query=QUERY, key=KEY, lead=(BATCH, HEAD), dtype=torch.float32):
    generator = torch.Generator().manual_seed(query * 100 + key)
    shapes = (query, D_K), (key, D_K), (key, D_V)
    return [
        torch.randn(*lead, *shape, generator=generator, dtype=dtype)
        for shape in shapes
    ]


def corner(query, key):
    """The triangle that ends in the lower right corner."""
    return torch.ones(query, key, dtype=torch.bool).tril(key - query)


def with_gradients(fn, q, k, v):
    """The output, and the gradients of a sum that weighs each number."""
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    output = fn(*leaves)
    generator = torch.Generator().manual_seed(7)
    upstream = torch.randn(output.shape, generator=generator)
    found = torch.autograd.grad(output, leaves, upstream.to(output.dtype))
    return output, *found


def assert_alike(fn, other, *args, tolerance=1e-5):
    for got, expected in zip(
        with_gradients(fn, *args), with_gradients(other, *args), strict=True
    ):
        torch.testing.assert_close(
            got, expected, rtol=tolerance, atol=tolerance
        )


# Oracles: plain attention, PyTorch, and the definition of a derivative.


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(("query", "key"), [(5, 17), (17, 17), (17, 5), (1, 7)])
def test_forward_and_backward_are_those_of_plain_attention(
    query, key, block, causal
):
    mask = corner(query, key) if causal else None
    assert_alike(
        lambda *x: flash_attention(*x, causal, block=block),
        lambda *x: scaled_dot_product_attention(*x, mask),
        *drawn(query, key),
    )


@pytest.mark.parametrize("causal", [False, True])
def test_forward_and_backward_are_those_of_pytorch(causal):
    assert_alike(
        lambda *x: flash_attention(*x, causal, block=7),
        lambda *x: F.scaled_dot_product_attention(*x, is_causal=causal),
        *drawn(131, 131),
    )


@pytest.mark.parametrize("shape", [(1, KEY), (QUERY, KEY), (2, 1, QUERY, KEY)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_mask_hides_beside_the_triangle(shape, causal):
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.6
    both = mask & corner(QUERY, KEY) if causal else mask
    assert_alike(
        lambda *x: flash_attention(*x, causal, mask=mask, block=3),
        lambda *x: scaled_dot_product_attention(*x, both),
        *drawn(),
    )


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_slopes_in_double_precision(causal):
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[1, 2], mask[2] = False, False
    leaves = [
        x.requires_grad_() for x in drawn(3, 7, (2,), dtype=torch.float64)
    ]
    assert torch.autograd.gradcheck(
        lambda *x: flash_attention(*x, causal, mask=mask, block=2), leaves
    )


@pytest.mark.parametrize("masked", [None, (BATCH, 6, 5, 7), (5, 7)])
def test_grouped_heads_are_those_of_grouped_query_attention(masked):
    q = drawn(5, 7, (BATCH, 6))[0]
    _, k, v = drawn(5, 7, (BATCH, 2))
    mask = None
    if masked:
        mask = torch.rand(masked, generator=torch.Generator().manual_seed(5))
        mask = mask < 0.7
    assert_alike(
        lambda *x: flash_attention(*x, mask=mask, block=3),
        lambda *x: grouped_query_attention(*x, mask),
        q,
        k,
        v,
    )


def test_keys_split_over_workers_are_attended_to_as_a_whole():
    q, k, v = drawn(1, 101)
    mask = torch.rand(1, 101, generator=torch.Generator().manual_seed(1)) < 0.5
    for parts in (1, 2, 3, 7, 101, 200):
        for seen in (None, mask, mask[:, :1]):
            torch.testing.assert_close(
                split_attention(q, k, v, parts, mask=seen),
                scaled_dot_product_attention(q, k, v, seen),
                rtol=1e-5,
                atol=1e-5,
            )


# Cases one can do on paper.


def test_the_last_query_is_where_the_last_key_is():
    q, k = torch.zeros(2, 3), torch.zeros(4, 3)
    v = torch.tensor([[1.0], [2], [3], [10]])
    assert flash_attention(q, k, v, True).tolist() == [[2.0], [4.0]]


def test_pytorch_begins_its_triangle_in_the_other_corner():
    q, k = torch.zeros(1, 2, 3), torch.zeros(1, 4, 3)
    v = torch.tensor([[[1.0], [2], [3], [10]]])
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert got.tolist() == [[[1.0], [1.5]]]


def test_queries_before_the_first_key_get_zeros_and_finite_gradients():
    q, k, v = drawn(7, 3)
    output, *found = with_gradients(
        lambda *x: flash_attention(*x, True, block=2), q, k, v
    )
    assert output[..., :4, :].abs().max() == 0
    assert output[..., 4:, :].abs().min() > 0
    assert all(x.isfinite().all() for x in found)
    assert found[0][..., :4, :].abs().max() == 0


# Invariants.


@pytest.mark.parametrize("causal", [False, True])
def test_nothing_kept_has_a_place_for_each_pair(causal):
    n = 257
    q, k, v = drawn(n, n)
    kept = kept_for_backward(flash_attention, q, k, v, causal)
    # Inputs, output, and one number a row.
    sizes = sorted(map(math.prod, kept))
    rows = BATCH * HEAD * n
    assert sizes == sorted(
        [rows, rows * D_K, rows * D_K, rows * D_V, rows * D_V]
    )
    plain = kept_for_backward(scaled_dot_product_attention, q, k, v)
    assert plain[0][-2:] == (n, n)


def test_what_is_kept_grows_with_the_length_and_not_with_its_square():
    def kept(n):
        found = kept_for_backward(flash_attention, *drawn(n, n))
        return sum(map(math.prod, found))

    assert kept(202) == 2 * kept(101)


def test_no_tensor_of_a_forward_or_backward_pass_is_larger_than_input_or_tile():
    """Seen by a mode that is shown every tensor that an operation makes."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for x in result if isinstance(result, tuple | list) else [result]:
                if isinstance(x, torch.Tensor):
                    self.size = max(self.size, x.numel())
            return result

    n = 257
    q, k, v = (x.requires_grad_() for x in drawn(n, n, ()))
    with Largest() as seen:
        flash_attention(q, k, v, True, block=16).sum().backward()
    assert seen.size == n * D_V
    with Largest() as seen:
        scaled_dot_product_attention(q, k, v, corner(n, n)).sum().backward()
    assert seen.size == n * n


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_gathered_in_single_precision(dtype):
    q, k, v = drawn(67, 67)
    small = [x.to(dtype) for x in (q, k, v)]
    exact = scaled_dot_product_attention(*(x.float() for x in small))
    got = flash_attention(*small, block=8)
    assert got.dtype == dtype
    # Rounded once, at the end: half a step in the last place, and beside it
    # no more than two orders of summation differ by in float32.
    half_a_step = torch.finfo(dtype).eps / 2 * exact.abs()
    assert ((got.float() - exact).abs() <= half_a_step + 1e-6).all()


def test_scores_of_ten_thousand_stay_finite_in_both_directions():
    q, k, v = drawn(7, 11)
    output, *found = with_gradients(
        lambda *x: flash_attention(*x, block=3), 1e4 * q, k, v
    )
    expected = scaled_dot_product_attention(1e4 * q, k, v)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
    assert all(x.isfinite().all() for x in found)


def test_a_second_derivative_is_refused_and_not_wrong():
    q, k, v = (x.requires_grad_() for x in drawn(3, 5))
    (first,) = torch.autograd.grad(
        flash_attention(q, k, v).square().sum(), q, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_what_is_kept_counts_a_view_and_its_base_once():
    x = torch.ones(3, 5)
    assert kept_for_backward(lambda a: a * a[:1], x) == [(3, 5)]
    assert kept_for_backward(lambda a: a + 1, x) == []


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"q": torch.ones(2, 3, dtype=torch.long)}, TypeError, "q: .*int64"),
        ({"k": torch.ones(2, 3).double()}, TypeError, "k: .*float64"),
        ({"v": torch.ones(3, 3)}, ValueError, r"v: .*\(2, 3\).*\(3, 3\)"),
        ({"q": torch.ones(3)}, ValueError, r"q: .*\(3,\)"),
        ({"q": torch.ones(2, 5)}, ValueError, r"k: .*\(2, 5\).*\(2, 3\)"),
        ({"causal": torch.ones(2, 2)}, TypeError, "causal: .*True or False"),
        ({"mask": torch.ones(2, 2)}, TypeError, "mask: .*boolean"),
        ({"block": 0}, ValueError, "block: .*at least 1"),
    ],
)
def test_a_wrong_argument_is_named(change, error, said):
    usual = {name: torch.ones(2, 3) for name in "qkv"}
    with pytest.raises(error, match=said):
        flash_attention(**{**usual, **change})


@pytest.mark.bad_input
def test_split_keys_are_not_grouped():
    q, k = torch.ones(4, 1, 3), torch.ones(2, 5, 3)
    with pytest.raises(ValueError, match="k: expected the leading axes"):
        split_attention(q, k, k, 2)
    with pytest.raises(ValueError, match="parts: expected at least 1"):
        split_attention(q, q, q, 0)
