"""Caches that share, forget and round, against the plain computation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from companion.attention import scaled_dot_product_attention
from companion.efficiency import (
    BlockTables,
    Int8Cache,
    LatentAttention,
    PagedCache,
    Request,
    WindowCache,
    serve,
    shared_heads_attention,
    timeline,
    window_mask,
)
from companion.transformer import LanguageModel, LanguageModelConfig
from companion.variants import grouped_query_attention

BATCH, HEAD, KV, QUERY, KEY, D, D_V = 2, 6, 3, 5, 7, 11, 13


def drawn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def model():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        config = LanguageModelConfig(
            vocab_size=17, d_model=12, num_heads=3, d_ff=19, num_layers=2,
            dropout=0.0, pad=None,
        )  # fmt: skip
        return LanguageModel(config).eval()


# Shared heads


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("masked", [False, True])
def test_shared_heads_give_what_copied_ones_give(kv_heads, masked):
    q = drawn(BATCH, HEAD, QUERY, D)
    k, v = (
        drawn(BATCH, kv_heads, KEY, width, seed=width) for width in (D, D_V)
    )
    mask = drawn(BATCH, HEAD, QUERY, KEY, seed=5) > 0 if masked else None
    if masked:
        mask[0, 1, 2] = False
    got = shared_heads_attention(q, k, v, mask)
    torch.testing.assert_close(got, grouped_query_attention(q, k, v, mask))


def test_a_mask_for_all_heads_will_do():
    q, k = drawn(BATCH, HEAD, QUERY, D), drawn(BATCH, KV, QUERY, D, seed=1)
    mask = torch.ones(QUERY, QUERY).tril().bool()
    torch.testing.assert_close(
        shared_heads_attention(q, k, k, mask),
        grouped_query_attention(q, k, k, mask),
    )


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest new tensor has."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        old = {x.data_ptr() for x in args if isinstance(x, torch.Tensor)}
        if isinstance(out, torch.Tensor) and out.data_ptr() not in old:
            self.numbers = max(self.numbers, out.numel())
        return out


def test_no_key_is_copied_for_a_head():
    q, k = drawn(1, HEAD, 1, D), drawn(1, KV, 101, D, seed=1)
    with Largest() as ours:
        shared_heads_attention(q, k, k)
    with Largest() as copied:
        grouped_query_attention(q, k, k)
    assert ours.numbers <= HEAD * 101  # the scores
    assert copied.numbers == HEAD * 101 * D


@pytest.mark.bad_input
def test_heads_that_do_not_share_out_are_named():
    with pytest.raises(ValueError, match="divide the 6 heads of q, got 4"):
        shared_heads_attention(
            drawn(1, 6, 1, 2), drawn(1, 4, 3, 2), drawn(1, 4, 3, 2)
        )


# Latents


@pytest.fixture
def latent():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return LatentAttention(d_model=21, num_heads=3, latent_dim=5).double()


@pytest.mark.parametrize("query", [1, 4])
def test_absorbed_matrices_change_nothing(latent, query):
    x, mask = drawn(BATCH, KEY, 21).double(), None
    if query > 1:
        mask = torch.ones(KEY, KEY).tril().bool()[-query:]
    latents = latent.latents(x)
    asking = x[:, -query:]
    plain = latent.plain(asking, latents, mask)
    torch.testing.assert_close(latent.absorbed(asking, latents, mask), plain)
    torch.testing.assert_close(latent(asking, latents, mask), plain)


def test_a_latent_head_is_attention_with_keys_made_of_latents(latent):
    x = drawn(1, KEY, 21).double()
    c = x @ latent.down_proj.weight.T
    heads = []
    for h in range(3):
        rows = slice(7 * h, 7 * h + 7)
        q, k, v = (
            y @ layer.weight[rows].T
            for y, layer in (
                (x, latent.q_proj), (c, latent.k_proj), (c, latent.v_proj)
            )
        )  # fmt: skip
        weights = (q @ k.mT / 7**0.5).softmax(-1)
        heads.append(weights @ v)
    expected = torch.cat(heads, -1) @ latent.out_proj.weight.T
    torch.testing.assert_close(latent(x), expected)


def test_absorbed_no_key_of_a_head_is_made(latent):
    x = drawn(1, 103, 21).double()
    latents = latent.latents(x)
    with Largest() as plain:
        latent.plain(x[:, -1:], latents)
    with Largest() as absorbed:
        latent.absorbed(x[:, -1:], latents)
    assert plain.numbers == 103 * 21
    assert absorbed.numbers <= 103 * 3  # the scores


@pytest.mark.bad_input
def test_latents_of_another_width_are_refused(latent):
    x = drawn(1, KEY, 21).double()
    with pytest.raises(ValueError, match="latent=5"):
        latent(x, x)
    with pytest.raises(ValueError, match="d_model = 21, got 4"):
        LatentAttention(21, 4, 5)


# Windows


def test_a_window_and_a_sink_on_paper():
    assert window_mask(5, 2, sinks=1).int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 1, 1, 0],
        [1, 0, 0, 1, 1],
    ]


def test_a_window_as_long_as_the_text_is_the_causal_mask():
    causal = torch.ones(7, 7).tril().bool()
    assert torch.equal(window_mask(7, 7), causal)
    assert torch.equal(window_mask(7, 2, sinks=7), causal)


@pytest.mark.parametrize(("window", "sinks"), [(3, 0), (3, 2), (1, 1), (20, 0)])
def test_a_cache_that_forgets_is_the_mask_that_hides(model, window, sinks):
    tokens = torch.randint(17, (2, 13), generator=torch.Generator())
    caches = [WindowCache(window, sinks) for _ in range(2)]
    with torch.no_grad():
        steps = [
            model.states(tokens[:, : n + 1], caches) for n in range(13)
        ]  # fmt: skip
        x = model._embed(tokens, 0)
        expected = model.encoder(x, window_mask(13, window, sinks))
    torch.testing.assert_close(torch.cat(steps, 1), expected)
    assert caches[0].stored[0].shape[2] == min(13, window + sinks)


def test_a_layer_more_hears_of_more():
    seen = window_mask(9, 3).float()
    assert (seen[8] > 0).sum() == 3
    assert ((seen @ seen)[8] > 0).sum() == 5


@pytest.mark.bad_input
def test_windows_that_are_none_are_refused():
    with pytest.raises(ValueError, match="window: expected at least 1, got 0"):
        window_mask(5, 0)
    with pytest.raises(ValueError, match="sinks: expected 0 or more, got -1"):
        WindowCache(3, -1)
    new = torch.zeros(1, 1, 2, 3)
    with pytest.raises(ValueError, match="one new position at a time, got 2"):
        WindowCache(3).append(new, new)


# Eight bits


def test_a_cache_in_eight_bits_rounds_each_vector_once():
    cache, k, v = Int8Cache(), drawn(2, 3, 5, 8), drawn(2, 3, 5, 8, seed=1)
    for n in range(5):
        new = slice(n, n + 1)
        got = cache.append(k[:, :, new], v[:, :, new])
    for x, exact, stored in zip(got, (k, v), cache.stored, strict=True):
        step = exact.abs().amax(-1, keepdim=True) / 127
        assert ((x - exact).abs() <= 0.51 * step).all()
        assert torch.equal(x, stored)
    assert cache.nbytes == 2 * 2 * 3 * 5 * (8 + 2)
    cache.reorder(torch.tensor([1, 1]))
    assert torch.equal(cache.stored[0][0], got[0][1])
    cache.keep(torch.tensor([0]))
    assert cache.stored[1].shape == (1, 3, 5, 8)


def test_a_model_reads_from_eight_bits_nearly_the_same(model):
    tokens = torch.randint(17, (2, 9), generator=torch.Generator())
    caches = [Int8Cache() for _ in range(2)]
    with torch.no_grad():
        steps = [model.states(tokens[:, : n + 1], caches) for n in range(9)]
        off = (torch.cat(steps, 1) - model.states(tokens)).abs().max()
    assert 0 < off < 0.1


# Pages


def test_nine_tokens_take_three_pages_of_four():
    tables = BlockTables(num_blocks=8, block_size=4)
    places = [tables.append("a") for _ in range(9)]
    assert [block for block, _, _ in places] == [0] * 4 + [1] * 4 + [2]
    assert tables.empty_slots == 3
    assert 32 - tables.length("a") == 23  # what a reserve of 32 would leave


def test_what_is_shared_is_copied_at_the_first_write():
    tables = BlockTables(num_blocks=8, block_size=4)
    for _ in range(9):
        tables.append("a")
    tables.fork("a", "b")
    assert tables.used_blocks == 3
    assert tables.append("b") == (3, 1, 2)
    assert tables.append("a") == (2, 1, None)
    assert (tables.table("a"), tables.table("b")) == ([0, 1, 2], [0, 1, 3])
    tables.free("a")
    assert tables.used_blocks == 3
    tables.free("b")
    assert tables.used_blocks == 0


def test_a_full_pool_says_so_and_changes_nothing():
    tables = BlockTables(num_blocks=1, block_size=2)
    tables.append("a")
    tables.fork("a", "b")
    with pytest.raises(MemoryError, match="all 1 blocks are in use"):
        tables.append("b")
    assert tables.length("b") == 1
    tables.free("a")
    assert tables.append("b") == (0, 1, None)


def test_names_of_sequences_are_checked():
    tables = BlockTables(2, 2)
    tables.append("a")
    with pytest.raises(ValueError, match=r"one of \['a'\], got 'b'"):
        tables.free("b")
    with pytest.raises(ValueError, match="a new name, got 'a'"):
        tables.fork("a", "a")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["append", "append", "fork", "free"]),
            st.integers(0, 4),
            st.integers(0, 4),
        ),
        max_size=60,
    ),
    st.integers(1, 4),
)
def test_each_sequence_finds_its_own_whatever_others_do(trace, size):
    tables, pool, truth, count = BlockTables(40, size), {}, {}, 0
    for action, a, b in trace:
        if action == "append" and len(truth.get(a, ())) < 20:
            block, slot, source = tables.append(a)
            for s in range(size if source is not None else 0):
                pool[block, s] = pool.get((source, s))
            count += 1
            pool[block, slot] = count
            truth.setdefault(a, []).append(count)
        elif action == "fork" and a in truth and b not in truth:
            tables.fork(a, b)
            truth[b] = [*truth[a]]
        elif action == "free" and a in truth:
            tables.free(a)
            del truth[a]
        for name, items in truth.items():
            table = tables.table(name)
            assert items == [
                pool[table[i // size], i % size] for i in range(len(items))
            ]
    used = {b for name in truth for b in tables.table(name)}
    assert tables.used_blocks == len(used)


def by_one(model, prompt, count):
    """What the model writes on its own, with no cache at all."""
    tokens = torch.tensor([prompt])
    with torch.no_grad():
        for _ in range(count):
            new = model(tokens)[:, -1:].argmax(-1)
            tokens = torch.cat([tokens, new], 1)
    return tokens[0, len(prompt) :].tolist()


@pytest.mark.parametrize("block_size", [1, 3, 16])
@pytest.mark.parametrize("max_rows", [1, 3])
def test_requests_that_come_and_go_get_what_each_would_alone(
    model, block_size, max_rows
):
    generator = torch.Generator().manual_seed(1)
    requests = [
        Request(
            arrival=2 * i,
            prompt=tuple(
                torch.randint(17, (1 + i % 4,), generator=generator).tolist()
            ),
            new_tokens=2 + 3 * i % 7,
        )
        for i in range(7)
    ]
    cache = PagedCache(model, -(-40 // block_size), block_size)
    served = serve(requests, cache, max_rows)
    assert served.tokens == [
        by_one(model, r.prompt, r.new_tokens) for r in requests
    ]
    assert max(served.rows) == max_rows
    assert cache.tables.used_blocks == 0
    assert served.rows == timeline(requests, max_rows, continuous=True)


def test_a_request_waits_until_the_pool_has_room(model):
    requests = [
        Request(arrival=0, prompt=(1, 2), new_tokens=4) for _ in range(3)
    ]
    cache = PagedCache(model, num_blocks=3, block_size=4)
    served = serve(requests, cache, max_rows=3)
    assert served.rows == [1] * 12
    assert max(served.used_blocks) == 2
    with pytest.raises(ValueError, match="at most 1 blocks each, got one of 2"):
        serve(requests, PagedCache(model, 1, 4), 3)


def test_a_prefix_that_is_shared_is_read_once(model):
    prefix, ends = [3, 1, 4, 1, 5], [[9, 2], [6, 5]]
    cache = PagedCache(model, num_blocks=9, block_size=4)
    cache.read(["prefix"], torch.tensor([prefix]))
    for name in "ab":
        cache.tables.fork("prefix", name)
    assert cache.tables.used_blocks == 2
    got = cache.read(["a", "b"], torch.tensor(ends))
    with torch.no_grad():
        alone = model(torch.tensor([prefix + end for end in ends]))[:, -1]
    torch.testing.assert_close(got, alone)
    assert cache.tables.used_blocks == 1 + 3


def test_rows_of_other_lengths_and_padding_do_not_meet(model):
    cache = PagedCache(model, num_blocks=20, block_size=2)
    texts = {"a": [1, 2, 3, 4, 5, 6, 7], "b": [8], "c": [9, 10, 11]}
    for name, text in texts.items():
        cache.read([name], torch.tensor([text]))
    got = cache.read([*texts], torch.tensor([[12], [13], [14]]))
    with torch.no_grad():
        for row, text, new in zip(
            got, texts.values(), (12, 13, 14), strict=True
        ):
            alone = model(torch.tensor([[*text, new]]))[0, -1]
            torch.testing.assert_close(row, alone)


def test_a_padded_batch_waits_for_its_longest_row():
    lengths = (4, 1, 2, 1)
    requests = [Request(arrival=0, prompt=(1,), new_tokens=n) for n in lengths]
    assert timeline(requests, 2, continuous=False) == [2, 1, 1, 1, 2, 1]
    assert timeline(requests, 2, continuous=True) == [2, 2, 2, 2]
    late = [Request(arrival=2, prompt=(1,), new_tokens=1)]
    assert timeline(late, 2, continuous=True) == [0, 0, 1]


def test_grouped_attention_is_plain_where_heads_are_not_shared():
    q, k = drawn(1, 3, 2, 5), drawn(1, 3, 7, 5, seed=1)
    torch.testing.assert_close(
        shared_heads_attention(q, k, k), scaled_dot_product_attention(q, k, k)
    )
