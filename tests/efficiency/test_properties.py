"""Whatever the sizes: rules of chapter 13."""

import math
from collections import Counter

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from companion import efficiency
from companion.attention import scaled_dot_product_attention
from companion.multihead import KVCache
from companion.transformer import LanguageModel, LanguageModelConfig
from companion.variants import grouped_query_attention

SEEDS = st.integers(0, 10**6)
SIZES = st.integers(1, 13)
FEW = st.integers(1, 4)
BITS = st.integers(2, 8)
TIGHT = {"rtol": 1e-5, "atol": 1e-5}
# Prompts and lengths of requests, and how long after the last each comes.
REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.lists(st.integers(0, 10), min_size=1, max_size=4),
        st.integers(1, 5),
    ),
    min_size=1,
    max_size=5,
)
# Append to, fork, or free sequences of these names.
TRACES = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "fork", "free"]),
        st.sampled_from("ab"),
        st.sampled_from("ab"),
    ),
    min_size=20,
    max_size=40,
)


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


# Caches


@given(SEEDS, FEW, FEW, SIZES, SIZES, st.booleans())
def test_shared_heads_give_what_copied_ones_give(
    seed, kv_heads, group, query, key, masked
):
    q = normal(seed, 2, kv_heads * group, query, 3)
    k, v = (
        normal(seed + 1, 2, kv_heads, key, 3),
        normal(seed + 2, 2, kv_heads, key, 5),
    )
    mask = normal(seed + 3, 2, 1, query, key) > 0 if masked else None
    got = efficiency.shared_heads_attention(q, k, v, mask)
    torch.testing.assert_close(got, grouped_query_attention(q, k, v, mask))


@given(SEEDS, FEW, FEW, SIZES, SIZES, SIZES)
def test_a_latent_may_be_asked_itself_whatever_the_sizes(
    seed, heads, head_dim, latent, query, key
):
    torch.manual_seed(seed)
    layer = efficiency.LatentAttention(heads * head_dim, heads, latent).double()
    x = normal(seed, 2, query, heads * head_dim)
    stored = layer.latents(normal(seed + 1, 2, key, heads * head_dim))
    mask = normal(seed + 2, query, key) > -0.5
    plain = layer.plain(x, stored, mask)
    assert stored.shape == (2, key, latent)
    torch.testing.assert_close(layer.absorbed(x, stored, mask), plain)
    torch.testing.assert_close(layer(x, stored, mask), plain)


@given(SEEDS, SIZES, SIZES, st.integers(0, 5))
def test_a_forgetting_cache_keeps_what_the_mask_shows(
    seed, length, window, sinks
):
    mask = efficiency.window_mask(length, window, sinks)
    assert not mask.triu(1).any()
    assert mask.diagonal().all()
    assert mask.sum(1).max() == min(length, window + sinks)
    k, v = normal(seed, 1, 2, length, 3), normal(seed + 1, 1, 2, length, 5)
    cache = efficiency.WindowCache(window, sinks)
    for n, seen in enumerate(mask):
        now = slice(n, n + 1)
        kept = cache.append(k[:, :, now], v[:, :, now])
        for found, whole in zip(kept, (k, v), strict=True):
            assert torch.equal(found, whole[:, :, seen])
    assert cache.length == length


@given(SEEDS, SIZES, SIZES, BITS)
def test_a_cache_of_few_bits_is_off_by_half_a_step_at_most(
    seed, length, width, bits
):
    cache, exact = efficiency.Int8Cache(bits), KVCache()
    k, v = normal(seed, 2, 3, length, width), normal(seed + 1, 2, 3, length, 7)
    for n in range(length):
        now = slice(n, n + 1)
        got = cache.append(k[:, :, now], v[:, :, now])
        expected = exact.append(k[:, :, now], v[:, :, now])
    top = 2 ** (bits - 1) - 1
    for x, whole in zip(got, expected, strict=True):
        step = whole.abs().amax(-1, keepdim=True) / top
        # The scale has 16 bits, so the largest number may be off by more.
        assert ((x - whole).abs() <= (0.5 + top / 1000) * step).all()
    assert cache.length == length


@given(TRACES, st.integers(1, 5))
def test_sequences_in_pages_are_lists_whatever_they_share(trace, size):
    pages, lists, count = efficiency.PagedLists(40, size), {}, 0
    for action, name, other in trace:
        if action == "append":
            pages.append(name, count)
            lists[name] = [*lists.get(name, []), count]
            count += 1
        elif action == "fork" and name in lists and other not in lists:
            pages.fork(name, other)
            lists[other] = lists[name]
        elif action == "free" and name in lists:
            pages.free(name)
            del lists[name]
        assert {name: pages.read(name) for name in lists} == lists
    tables = pages.tables
    assert isinstance(tables, efficiency.BlockTables)
    held = {block for name in lists for block in tables.table(name)}
    assert pages.used_blocks == tables.used_blocks == len(held)
    assert tables.empty_slots <= (size - 1) * len(lists)


@given(SEEDS, REQUESTS, FEW, FEW)
def test_whoever_comes_and_goes_is_served_as_if_alone(
    seed, drawn, max_rows, block
):
    torch.manual_seed(seed)
    config = LanguageModelConfig(
        vocab_size=11, d_model=6, num_heads=2, d_ff=7, num_layers=2,
        dropout=0.0, pad=None,
    )  # fmt: skip
    # In double precision rounding decides no tie between two tokens.
    model, requests, at = LanguageModel(config).eval().double(), [], 0
    for later, prompt, count in drawn:
        at += later
        requests.append(
            efficiency.Request(
                arrival=at, prompt=tuple(prompt), new_tokens=count
            )
        )
    cache = efficiency.PagedCache(model, 50, block)
    served = efficiency.serve(requests, cache, max_rows)
    assert isinstance(served, efficiency.Served)
    for request, written in zip(requests, served.tokens, strict=True):
        ids = torch.tensor([request.prompt])
        for _ in range(request.new_tokens):
            with torch.no_grad():
                new = model(ids)[:, -1:].argmax(-1)
            ids = torch.cat([ids, new], 1)
        assert written == ids[0, len(request.prompt) :].tolist()
    assert cache.tables.used_blocks == 0
    assert max(served.rows) <= max_rows
    # Fifty blocks hold them all: nobody waits for memory.
    ways = [
        efficiency.timeline(requests, max_rows, continuous=way)
        for way in (True, False)
    ]
    assert served.rows == ways[0]
    assert sum(ways[0]) == sum(ways[1]) == sum(map(len, served.tokens))
    assert len(ways[0]) <= len(ways[1])


# Fewer bits


@given(SEEDS, SIZES, FEW, FEW, BITS, st.booleans(), st.sampled_from([0, 9]))
def test_no_weight_is_off_by_more_than_half_its_groups_scale(
    seed, rows, groups, size, bits, symmetric, shift
):
    weight = normal(seed, rows, groups * size) + shift
    for per in ("tensor", "row", size):
        stored = efficiency.quantize(weight, bits, per=per, symmetric=symmetric)
        assert isinstance(stored, efficiency.Quantized)
        count = stored.scale.shape[-1]
        assert count == (groups if per == size else 1)
        off = (stored.dequantize(torch.float64) - weight).abs()
        off = off.unflatten(-1, (count, -1)).amax(-1)
        assert (off <= stored.scale * (0.5 + 1e-9)).all()
        half = 2 ** (bits - 1)
        assert -half + symmetric <= stored.integers.min().item()
        assert stored.integers.max().item() < half


@given(SEEDS, SIZES, SIZES)
def test_two_integers_of_four_bits_lie_in_a_byte(seed, rows, columns):
    draw = torch.Generator().manual_seed(seed)
    integers = torch.randint(
        -8, 8, (rows, columns), generator=draw, dtype=torch.int8
    )
    packed = efficiency.pack_int4(integers)
    assert packed.shape == (rows, (columns + 1) // 2)
    assert torch.equal(efficiency.unpack_int4(packed, columns), integers)


@given(SEEDS, SIZES, SIZES, BITS, st.booleans())
def test_a_layer_of_few_bits_computes_with_its_rounded_weight(
    seed, rows, columns, bits, bias
):
    torch.manual_seed(seed)
    layer = nn.Linear(columns, rows, bias=bias)
    x = normal(seed, 3, columns, dtype=torch.float32)
    stored = efficiency.quantize(layer.weight.detach(), bits)
    expected = nn.functional.linear(x, stored.dequantize(), layer.bias)
    model = efficiency.quantize_linears(nn.Sequential(layer), bits)
    assert isinstance(model[0], efficiency.QuantizedLinear)
    torch.testing.assert_close(model(x), expected)


@given(SEEDS, SIZES, SIZES, SIZES, BITS)
def test_a_product_of_integers_is_that_of_the_rounded_numbers(
    seed, tokens, rows, columns, bits
):
    x, weight = normal(seed, tokens, columns), normal(seed + 1, rows, columns)
    stored = efficiency.quantize(weight, bits)
    rounded = efficiency.quantize(x, 8).dequantize(x.dtype)
    expected = rounded @ stored.dequantize(x.dtype).T
    got = efficiency.integer_linear(x, stored)
    torch.testing.assert_close(got, expected)


# Guess and check


@given(SEEDS, st.integers(2, 7), st.floats(0.1, 9))
def test_kept_or_drawn_anew_a_token_is_one_of_the_targets(seed, vocab, sharp):
    p, q = (sharp * normal(seed, 2, vocab)).softmax(-1)
    share = efficiency.acceptance(p, q)
    assert -1e-9 <= share <= 1 + 1e-9
    torch.testing.assert_close(efficiency.acceptance(q, p), share)
    # What is kept of a guess, and what is drawn after a refusal, add up to p.
    missing = (p - q).clamp(min=0)
    torch.testing.assert_close(torch.minimum(p, q) + missing, p)
    torch.testing.assert_close(missing.sum(), 1 - share)
    dice = torch.Generator().manual_seed(seed)
    seen = Counter()
    for guess in torch.multinomial(q, 40, True, generator=dice).tolist():
        token = efficiency.speculative_step(p, q, guess, dice)
        # A guess that the target likes as much is always kept, and nothing
        # is drawn of what the draft gives more than enough of.
        assert token == guess or p[guess] < q[guess]
        assert token == guess or p[token] > q[token]
        seen[token] += 1
    assert seen.total() == 40


@given(st.floats(0, 1), st.integers(0, 9))
def test_a_pass_brings_one_token_and_a_guess_at_most_one_more(share, guesses):
    tokens = efficiency.expected_tokens(share, guesses)
    more = efficiency.expected_tokens(share, guesses + 1)
    assert 1 <= tokens <= more <= tokens + share
    assert math.isclose((1 - share) * tokens, 1 - share ** (guesses + 1))
