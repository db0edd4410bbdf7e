"""Whatever the sizes: rules of chapter 13."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from companion import efficiency
from companion.attention import scaled_dot_product_attention

SEEDS = st.integers(0, 10**6)
SIZES = st.integers(1, 13)
TIGHT = {"rtol": 1e-5, "atol": 1e-5}


def normal(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def summaries(seed, rows, sizes, spread=30.0):
    """Summaries of blocks whose maxima lie far apart, some of them hidden."""
    found = []
    for n, size in enumerate(sizes):
        scores = spread * normal(seed + n, rows, size)
        mask = normal(seed + n + 100, rows, size) > -0.5
        found.append(
            efficiency.running(scores, normal(seed - n, size, 3), mask)
        )
    return found


def assert_same(a, b):
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y)


@given(SEEDS, SIZES, st.tuples(SIZES, SIZES, SIZES))
def test_merging_is_associative_and_in_either_order_the_same(seed, rows, sizes):
    a, b, c = summaries(seed, rows, sizes)
    merge = efficiency.merge
    assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))
    assert_same(merge(a, b), merge(b, a))


@given(SEEDS, SIZES, SIZES)
def test_a_block_that_is_hidden_whole_changes_nothing(seed, rows, size):
    (a,) = summaries(seed, rows, [size])
    hidden = torch.full((rows, 2), -math.inf, dtype=torch.float64)
    nothing = efficiency.running(hidden, normal(seed, 2, 3))
    assert_same(efficiency.merge(a, nothing), a)
    assert_same(efficiency.merge(nothing, a), a)


@given(SEEDS, SIZES, SIZES, st.integers(1, 17))
def test_online_softmax_is_softmax_whatever_the_block(seed, rows, keys, block):
    scores = 20 * normal(seed, rows, keys)
    got = efficiency.online_softmax(scores, block)
    torch.testing.assert_close(got, scores.softmax(-1))


@given(SEEDS, SIZES, SIZES, st.integers(1, 17), st.booleans())
def test_flash_attention_is_attention_whatever_lengths_and_block(
    seed, query, key, block, causal
):
    args = [
        normal(seed + n, 2, *shape, dtype=torch.float32).requires_grad_()
        for n, shape in enumerate(((query, 5), (key, 5), (key, 3)))
    ]
    mask = None
    if causal:
        mask = torch.ones(query, key, dtype=torch.bool).tril(key - query)
    got = efficiency.flash_attention(*args, causal, block=block)
    expected = scaled_dot_product_attention(*args, mask)
    torch.testing.assert_close(got, expected, **TIGHT)
    upstream = normal(seed, *got.shape, dtype=torch.float32)
    for mine, plain in zip(
        torch.autograd.grad(got, args, upstream),
        torch.autograd.grad(expected, args, upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, plain, **TIGHT)
    with torch.no_grad():
        order = torch.randperm(-(-key // block)).tolist()
        online = efficiency.online_attention(*args, block, order=order)
        parts = efficiency.split_attention(*args, block)
        plain = scaled_dot_product_attention(*args)
    torch.testing.assert_close(online, plain, **TIGHT)
    torch.testing.assert_close(parts, plain, **TIGHT)


@given(SEEDS, SIZES, SIZES)
def test_kept_are_inputs_output_and_one_number_a_row(seed, query, key):
    q, k, v = normal(seed, query, 5), normal(seed, key, 5), normal(seed, key, 3)
    kept = efficiency.kept_for_backward(efficiency.flash_attention, q, k, v)
    assert sum(map(math.prod, kept)) == query * (5 + 3 + 1) + key * (5 + 3)


@given(st.integers(1, 99), st.integers(1, 999), st.sampled_from([1, 2, 4, 8]))
def test_work_grows_with_batch_and_context_and_shrinks_with_bits(
    batch, context, kv_heads
):
    model = efficiency.Sizes(
        num_layers=2,
        d_model=24,
        num_heads=8,
        num_kv_heads=kv_heads,
        d_ff=29,
        vocab_size=31,
    )
    work = efficiency.decoding_work(model, batch, context)
    more = efficiency.decoding_work(model, batch + 1, context + 1)
    small = efficiency.decoding_work(model, batch, context, weight_bits=8)
    assert isinstance(work, efficiency.Work)
    assert more.operations > work.operations
    assert more.bytes > work.bytes > small.bytes
    prompt = efficiency.prefill_work(model, batch, context)
    assert prompt.bytes == work.bytes
    assert prompt.operations >= work.operations
    machine = efficiency.Machine(operations=7.0, bytes=3.0)
    assert work.seconds(machine) == max(
        work.computing(machine), work.moving(machine)
    )
    assert (work.intensity > machine.ridge) == (
        work.computing(machine) > work.moving(machine)
    )


def test_the_machine_is_measured_in_operations_and_bytes_a_second():
    found = efficiency.measure_machine(64, tries=1)
    assert isinstance(found, efficiency.Machine)
    assert found.operations > 0
    assert found.bytes > 0


def test_an_empty_summary_is_told_by_its_maximum():
    hidden = torch.full((1, 2), -math.inf)
    found = efficiency.running(hidden, torch.ones(2, 1))
    assert isinstance(found, efficiency.Running)
    assert found.total.item() == 0
