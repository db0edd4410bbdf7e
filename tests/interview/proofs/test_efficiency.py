"""What the answers of chapter 13 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import answers, repair
from torch.utils.flop_counter import FlopCounterMode

from companion.attention import scaled_dot_product_attention
from companion.contracts import check
from companion.efficiency import (
    BlockTables,
    LatentAttention,
    Machine,
    Request,
    Sizes,
    WindowCache,
    Work,
    decoding_work,
    expected_tokens,
    flash_attention,
    integer_linear,
    kept_for_backward,
    merge,
    prefill_work,
    quantize,
    running,
    split_attention,
    timeline,
)

# What the questions suppose of a GPU: 300 TFLOP/s and 2 TB/s.
GPU = Machine(operations=300e12, bytes=2e12)
SEVEN = Sizes.seven_billion()
# The shape of a 70B model with grouped heads.
SEVENTY = Sizes(
    num_layers=80,
    d_model=8192,
    num_heads=64,
    num_kv_heads=8,
    d_ff=28672,
    vocab_size=128256,
)


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator)


def operations(run):
    """What PyTorch counts in a call, of products of matrices."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def plain_attention(q, k, v):
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


# A roofline


def test_prefill_waits_for_arithmetic_and_decoding_for_memory():
    assert GPU.ridge == 150
    one, prompt = decoding_work(SEVEN, 1, 1), prefill_work(SEVEN, 1, 2000)
    assert round(one.intensity) == 1
    assert 13e9 < one.bytes < 14e9
    assert round(one.moving(GPU) * 1e3) == 7
    assert round(one.computing(GPU) * 1e3, 2) == 0.04
    assert round(prompt.operations / 1e12) == 27
    assert round(prompt.computing(GPU) * 1e3) == 90
    assert round(prompt.moving(GPU) * 1e3) == 7
    assert round(prompt.intensity, -2) == 1900


def test_one_text_gets_no_more_tokens_than_the_weights_can_be_read():
    weights = 7e9
    step = Work(operations=2 * weights, bytes=2 * weights)
    answers(
        "efficiency-tokens-a-second-at-best",
        1 / step.seconds(GPU),
        1 / Work(2 * weights, weights).seconds(GPU),
        1 / step.computing(GPU),
    )
    assert round(step.moving(GPU) * 1e3) == 7
    assert round(step.computing(GPU) * 1e3, 2) == 0.05
    # A batch leaves the step as it is, and so each text's tokens a second.
    eight = Work(8 * 2 * weights, 2 * weights)
    assert eight.seconds(GPU) == step.seconds(GPU)


def test_a_batch_of_the_ridge_reads_and_computes_equally_long():
    def meets(bytes_a_weight, operations=2):
        return GPU.ridge * bytes_a_weight / operations

    answers(
        "efficiency-a-batch-at-the-ridge",
        meets(2),
        meets(1),
        meets(2, operations=1),
    )
    for batch in (149, 151):
        work = decoding_work(SEVEN, batch, 1)
        assert work.intensity == pytest.approx(batch, rel=0.01)
    # With long contexts no batch gets there, not even a very large one.
    assert decoding_work(SEVEN, 100_000, 8000).intensity < 5
    grouped = Sizes.seven_billion(num_kv_heads=8)
    assert 10 < decoding_work(grouped, 100_000, 8000).intensity < GPU.ridge


def test_with_long_contexts_a_larger_batch_hardly_helps():
    steps = {batch: decoding_work(SEVEN, batch, 8000) for batch in (32, 256)}
    few, many = (batch / work.seconds(GPU) for batch, work in steps.items())
    assert 1 < many / few < 1.1
    for work in steps.values():
        assert work.computing(GPU) < 0.03 * work.moving(GPU)
    cache = 8000 * SEVEN.cache_numbers * 2
    assert round(cache / 1e9, 1) == 4.2
    assert round(32 * cache / (2 * SEVEN.weights)) == 10
    grouped = Sizes.seven_billion(num_kv_heads=8)
    ceilings = [
        decoding_work(sizes, 10**6, 8000).intensity
        for sizes in (SEVEN, grouped)
    ]
    assert round(ceilings[0]) == 4
    assert 3.5 < ceilings[1] / ceilings[0] < 4


# Attention block by block


def test_flash_attention_is_exact_and_keeps_no_score_matrix():
    q, k, v = (drawn(3, 67, 16, seed=s).double() for s in (2, 3, 5))
    plain = scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(flash_attention(q, k, v, block=16), plain)
    ours = kept_for_backward(flash_attention, q, k, v)
    theirs = kept_for_backward(scaled_dot_product_attention, q, k, v)
    assert max(map(math.prod, theirs)) >= 3 * 67 * 67
    # Inputs, output, and one number a row: linear in the length.
    assert sum(map(math.prod, ours)) == 3 * 67 * (4 * 16 + 1)


def test_two_blocks_merge_at_the_larger_maximum():
    first = torch.tensor([2.0, 2 + math.log(0.5)])
    second = torch.tensor([4.0, 4 + math.log(0.25)])
    v = torch.tensor([[1.0], [2.0]])
    a, b = (running(x.unsqueeze(0), v) for x in (first, second))
    assert [x.total.item() for x in (a, b)] == pytest.approx([1.5, 1.25])
    both = merge(a, b)
    assert both.maximum == 4
    answers(
        "efficiency-two-blocks-merged",
        both.total,
        1.5 + 1.25,
        1.5 + 1.25 * math.exp(-2),
        1.5 * math.exp(2) + 1.25,
    )
    whole = torch.cat([first, second]).softmax(0) @ torch.cat([v, v])
    torch.testing.assert_close(both.result()[0], whole)
    torch.testing.assert_close(merge(b, a).result(), both.result())


def test_the_backward_pass_needs_one_number_a_row():
    q, k, v = (
        drawn(*shape, seed=s).double().requires_grad_()
        for s, shape in ((2, (7, 16)), (3, (11, 16)), (5, (11, 13)))
    )
    output, upstream = plain_attention(q, k, v), drawn(7, 13).double()
    expected = torch.autograd.grad(output, (q, k, v), upstream)
    with torch.no_grad():
        scale = 1 / math.sqrt(16)
        scores = q @ k.T * scale
        lse = scores.logsumexp(-1, keepdim=True)
        found = []
        common = (upstream * output).sum(-1, keepdim=True)
        for keys in (slice(0, 4), slice(4, 8), slice(8, 11)):
            weights = (scores[:, keys] - lse).exp()
            of_weights = upstream @ v[keys].T
            of_scores = weights * (of_weights - common)
            parts = (
                of_scores @ k[keys] * scale,
                of_scores.T @ q * scale,
                weights.T @ upstream,
            )
            found.append((*parts, of_scores))
        of_q, of_k, of_v, of_scores = zip(*found, strict=True)
        for got, want in zip(
            (sum(of_q), torch.cat(of_k), torch.cat(of_v)),
            expected,
            strict=True,
        ):
            torch.testing.assert_close(got, want)
        # Σ P dP over all keys is what the output already knows.
        weights = (scores - lse).exp()
        full = (weights * (upstream @ v.T)).sum(-1, keepdim=True)
        torch.testing.assert_close(full, common)
        rows = torch.cat(of_scores, -1).sum(-1)
        torch.testing.assert_close(rows, torch.zeros_like(rows))


def test_seven_products_instead_of_six():
    def counted(fn, backward):
        q, k, v = (drawn(1, 128, 16).requires_grad_() for _ in range(3))
        output = fn(q, k, v)
        return operations(
            lambda: output.sum().backward() if backward else fn(q, k, v)
        )

    product = 2 * 128 * 128 * 16
    plain, ours = (
        [counted(fn, backward) // product for backward in (False, True)]
        for fn in (
            plain_attention,
            lambda q, k, v: flash_attention(q, k, v, block=32),
        )
    )
    assert plain == [2, 4]
    assert ours == [2, 5]
    # One score matrix against one matrix of queries, in the same bits.
    assert 4096 * 4096 / (4096 * 128) == 32


def test_keys_may_be_split_over_any_number_of_workers():
    q, k, v = (drawn(3, n, 16, seed=n).double() for n in (1, 101, 101))
    plain = plain_attention(q, k, v)
    for parts in (1, 2, 7, 16, 101):
        torch.testing.assert_close(split_attention(q, k, v, parts), plain)
    assert 8 < 132 / 16
    assert 8 * 16 == 128


def test_one_number_a_row_is_four_mebibytes():
    def mebibytes(*sizes, of=4):
        return math.prod(sizes) * of / 2**20

    answers(
        "efficiency-one-number-a-row",
        mebibytes(4, 32, 8192),
        mebibytes(4, 32, 8192, 8192),
        mebibytes(32, 8192),
        mebibytes(4, 8192),
    )
    assert mebibytes(4, 32, 8192, 8192, of=2) == 16 * 1024
    # What is kept beside inputs and output is one number a row.
    kept = kept_for_backward(flash_attention, *(drawn(3, 5, 7, 11),) * 3)
    one_tensor = 3 * 5 * 7 * 11
    assert sum(map(math.prod, kept)) == 2 * one_tensor + 3 * 5 * 7


# Heads that share


def test_the_absorbed_form_asks_the_latents_themselves():
    attention = LatentAttention(d_model=64, num_heads=4, latent_dim=48)
    x = drawn(1, 32, 64)
    latents = attention.latents(x)
    assert latents.shape[-1] < 2 * 64
    torch.testing.assert_close(
        attention.absorbed(x, latents), attention.plain(x, latents)
    )
    cost = {
        (form, len(asking[0])): operations(
            lambda form=form, asking=asking: getattr(attention, form)(
                asking, latents
            )
        )
        for form in ("plain", "absorbed")
        for asking in (x[:, -1:], x)
    }
    assert cost["absorbed", 1] < cost["plain", 1]
    assert cost["plain", 32] < cost["absorbed", 32]

    # A rotation in between depends on the distance, so that no one projected
    # query serves all keys.
    def turned(angle):
        return torch.tensor(
            [
                [math.cos(angle), -math.sin(angle)],
                [math.sin(angle), math.cos(angle)],
            ]
        )

    up, q = drawn(2, 5), drawn(2)
    first, second = (up.T @ turned(angle).T @ q for angle in (1, 2))
    assert not torch.allclose(first, second, atol=0.1)


def test_a_latent_and_a_rotated_key_against_all_heads():
    heads = 2 * 128 * 128
    answers(
        "efficiency-latent-against-heads",
        heads / (512 + 64),
        heads / 512,
        heads / 2 / (512 + 64),
    )
    assert 60 * 576 * 2 / 1024 == 67.5
    assert 576 / (2 * 128) == 2.25
    assert round(2 * 8 * 128 / 576, 1) == 3.6


def test_without_its_sink_a_head_that_rests_must_take_something():
    width = 8
    sink = torch.zeros(width)
    sink[0] = 12 * math.sqrt(width)
    q = torch.zeros(1, 1, 1, width)
    q[..., 0] = 1

    def output(window, sinks, length):
        cache = WindowCache(window, sinks)
        for i in range(length):
            k = (sink if not i else torch.zeros(width)).view(1, 1, 1, -1)
            # The first position says nothing: its value is 0.
            v = drawn(1, 1, 1, width, seed=i) * (i > 0)
            keys, values = cache.append(k, v)
        return scaled_dot_product_attention(q, keys, values).norm().item()

    for window in (8, 16):
        assert output(window, 0, window) < 0.01
        # The first position that is forgotten is the one to rest on.
        assert output(window, 0, window + 1) > 0.2
        assert output(window, 1, window + 1) < 0.01
        assert output(window, 1, 3 * window) < 0.01


# Pages


def test_pages_waste_less_than_a_block_and_share_a_prefix():
    tables = BlockTables(num_blocks=200, block_size=16)
    lengths = {"a": 35, "b": 100, "c": 7}
    for name, length in lengths.items():
        for _ in range(length):
            tables.append(name)
        last = -length % 16
        assert last <= 15
    assert tables.empty_slots == sum(-n % 16 for n in lengths.values())
    used = tables.used_blocks
    tables.fork("b", "d")
    assert tables.used_blocks == used
    *_, source = tables.append("d")
    # Whoever writes into a shared block gets a copy of that one.
    assert source == tables.table("b")[-1]
    assert tables.used_blocks == used + 1
    assert tables.table("b")[:-1] == tables.table("d")[:-1]


def test_how_many_texts_fit_beside_the_weights():
    def fit(free, heads=8, kinds=2, numbers=2):
        text = kinds * 32 * heads * 128 * numbers * 8192
        return int(free * 1e9 / text)

    answers(
        "efficiency-texts-that-fit",
        fit(80 - 16 - 6),
        fit(80 - 16 - 6, heads=32),
        fit(80 - 16 - 6, kinds=1),
        fit(80 - 6),
    )
    assert 2 * 32 * 8 * 128 * 2 * 8192 == 2**30
    assert fit(58, numbers=1) == 108
    assert fit(80 - 8 - 6) - fit(58) == 7


def test_four_samples_share_the_full_blocks_of_their_prompt():
    tables = BlockTables(num_blocks=1000, block_size=16)
    for _ in range(1000):
        tables.append(0)
    for sample in (1, 2, 3):
        tables.fork(0, sample)
    copies = 0
    for _ in range(100):
        for sample in range(4):
            *_, source = tables.append(sample)
            copies += source is not None
    answers(
        "efficiency-four-samples-of-a-prompt",
        tables.used_blocks,
        4 * math.ceil(1100 / 16),
        math.ceil(1000 / 16) + 4 * math.ceil(92 / 16),
    )
    assert copies == 3


def test_places_that_are_taken_again_save_four_ninths():
    lengths = 100, 20, 20, 20, 80, 20, 20, 20
    requests = [Request(arrival=0, prompt=(1,), new_tokens=n) for n in lengths]
    padded, continuous = (
        timeline(requests, 4, continuous=c) for c in (False, True)
    )
    answers(
        "efficiency-places-taken-again",
        len(continuous),
        len(padded),
        sum(lengths) / 4,
        len(timeline(requests, 1, continuous=True)),
    )
    assert sum(continuous) == sum(padded) == sum(lengths) == 300
    busy = [sum(x) / len(x) / 4 for x in (continuous, padded)]
    assert [round(x, 2) for x in busy] == [0.75, 0.42]


def test_a_long_prompt_takes_as_long_as_dozens_of_steps():
    step = decoding_work(SEVEN, 32, 1000)
    prompt = prefill_work(SEVEN, 1, 8192)
    assert round(prompt.seconds(GPU), 1) == 0.4
    assert prompt.seconds(GPU) > 24 * step.seconds(GPU)
    # The one computes while the other reads.
    assert prompt.computing(GPU) > prompt.moving(GPU)
    assert step.moving(GPU) > step.computing(GPU)
    chunk = prefill_work(SEVEN, 1, 512)
    both = Work(chunk.operations + step.operations, chunk.bytes + step.bytes)
    assert 0.015 < both.seconds(GPU) < 0.025
    # A later step reads one cache more.
    longer = decoding_work(SEVEN, 1, 8192).bytes - 2 * SEVEN.weights
    assert longer / GPU.bytes < 0.003


# Fewer bits


def test_small_groups_are_nearer_and_cost_more_scales():
    weight = drawn(64, 256)
    weight[3] *= 10
    weight[:, 7] *= 10

    def error(bits, per):
        return (quantize(weight, bits, per=per).dequantize() - weight).norm()

    assert error(4, "tensor") > error(4, "row") > error(4, 32)
    assert error(8, "row") < 0.1 * error(4, "row")
    for per, bits in ((32, 4.5), (128, 4.125)):
        stored = quantize(weight, 4, per=per, scale_dtype=torch.float16)
        assert stored.bits_per_number == bits
    # After ReLU a zero point halves the step: a whole bit.
    positive = drawn(5, 999).relu()
    with_zero = quantize(positive, 4, symmetric=False).scale
    ratio = quantize(positive, 4).scale / with_zero
    torch.testing.assert_close(ratio, torch.full_like(ratio, 15 / 7))
    # Steps are even: a small number may be lost entirely.
    assert quantize(torch.tensor([1.0, 0.003]), 8).dequantize()[1] == 0


def test_four_bits_on_paper():
    row = torch.tensor([0.9, -0.34, 0.1, -1.4], dtype=torch.double)
    stored = quantize(row, 4)
    assert stored.scale.item() == pytest.approx(0.2)

    def back(scale, turn=round):
        return turn(-0.34 / scale) * scale

    answers(
        "efficiency-round-to-four-bits",
        stored.dequantize(torch.double)[1],
        back(0.2, math.trunc),
        back(1.4 / 8),
        back(0.9 / 7),
    )
    assert quantize(row[:3], 4).scale.item() == pytest.approx(0.9 / 7)


def test_an_outlier_channel_is_moved_into_the_weights():
    x, weight = drawn(37, 64, seed=3), drawn(29, 64, seed=5)
    x[:, 7] *= 50
    exact = x @ weight.T

    def off(product):
        return ((product - exact).norm() / exact.norm()).item()

    eight = quantize(weight, 8)
    # Eight-bit weights alone are no problem.
    assert off(x @ eight.dequantize().T) < 0.01
    # Without the outlier's part, which is nearly all of the sum.
    rest = exact - x[:, 7:8] @ weight[:, 7:8].T

    def off_rest(product):
        return ((product - exact).norm() / rest.norm()).item()

    assert off_rest(integer_linear(x, eight)) > 0.1
    # SmoothQuant: the same product, and both factors easy to round.
    factor = (x.abs().amax(0) / weight.abs().amax(0)).sqrt()
    smooth, carrying = x / factor, weight * factor
    torch.testing.assert_close(smooth @ carrying.T, exact)
    smoothed = integer_linear(smooth, quantize(carrying, 8))
    assert off_rest(smoothed) < 0.5 * off_rest(integer_linear(x, eight))
    # The outlier's channel in full precision, the others in eight bits.
    low = x.clone()
    low[:, 7] = 0
    mixed = integer_linear(low, eight) + x[:, 7:8] @ weight[:, 7:8].T
    assert off_rest(mixed) < 0.03


def test_scales_make_four_bits_four_and_a_half():
    def gigabytes(bits):
        return 7 * bits / 8

    stored = quantize(drawn(3, 64), 4, per=32, scale_dtype=torch.float16)
    assert stored.bits_per_number == 4.5
    answers(
        "efficiency-bits-of-a-group",
        gigabytes(stored.bits_per_number),
        gigabytes(4),
        gigabytes(4 + 16 / 128),
        gigabytes(4 + 32 / 32),
    )


def test_fewer_bits_of_weights_help_while_reading_them_is_the_limit():
    def faster(batch):
        usual = decoding_work(SEVEN, batch, 50)
        small = decoding_work(SEVEN, batch, 50, weight_bits=4.5)
        assert usual.operations == small.operations
        return usual.seconds(GPU) / small.seconds(GPU)

    assert faster(1) > 3
    assert faster(256) == 1


def test_the_repair_measures_a_row_by_its_magnitude():
    broken, repaired = repair("efficiency-rows-that-lost-their-largest")

    def back(fn, weight):
        integers, scale, zero_point = fn(weight, 8)
        return scale * (integers - zero_point)

    row = torch.tensor([[-2.0, 0.5, 1.0]])
    assert back(broken, row)[0, 0] == -1
    assert back(repaired, row)[0, 0] == -2
    assert back(broken, -torch.ones(1, 3)).abs().max() < 1e-6
    # In half of all rows the largest magnitude is that of a negative one.
    weight = drawn(1000, 64)
    off = (back(broken, weight) - weight).abs().amax(1)
    scale = weight.abs().amax(1) / 127
    assert 0.4 < (off > 0.6 * scale).float().mean() < 0.6
    assert not check("quantize", broken).passed


def test_keys_with_a_large_channel_are_nearer_with_scales_for_channels():
    keys, values = drawn(128, 64, seed=3), drawn(128, 64, seed=5)
    keys[:, 11] += 30

    def by_token(x, bits):
        return quantize(x, bits).dequantize()

    def by_channel(x, bits):
        return quantize(x.T.contiguous(), bits).dequantize().T

    usual = torch.arange(64) != 11

    def off(fn, x, bits):
        return ((fn(x, bits) - x)[:, usual].norm() / x[:, usual].norm()).item()

    assert off(by_token, keys, 4) > 0.9
    assert off(by_channel, keys, 4) < 0.2
    assert off(by_token, keys, 8) < 0.1
    # Values have no such pattern: both do as well.
    assert off(by_token, values, 4) < 1.2 * off(by_channel, values, 4)
    # A key's scales may be drawn into the query, a value's into the weight.
    stored = quantize(keys.T.contiguous(), 4)
    q = drawn(64)
    torch.testing.assert_close(
        (q * stored.scale[:, 0]) @ stored.integers.float(),
        by_channel(keys, 4) @ q,
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip
    stored, weights = quantize(values, 4), drawn(128).softmax(0)
    torch.testing.assert_close(
        (weights * stored.scale[:, 0]) @ stored.integers.float(),
        weights @ by_token(values, 4),
        rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def test_what_gptq_and_awq_do_lowers_the_error_of_the_output():
    weight = drawn(32, 64, seed=3).double()
    # Inputs of which a few channels are large and many go together.
    x = drawn(512, 64, seed=5).double() @ drawn(64, 64, seed=7).double() / 8
    x[:, 9] *= 20

    def off(rounded):
        return ((weight - rounded) @ x.T).norm().item()

    nearest = quantize(weight, 4).dequantize(torch.double)
    # Column by column, with what is left making up for the error.
    scale = weight.abs().amax(1) / 7
    left, gptq = weight.clone(), torch.zeros_like(weight)
    second = x.T @ x
    second += 0.01 * second.diagonal().mean() * torch.eye(64).double()
    for i in range(64):
        inverse = second[i:, i:].inverse()[0]
        column = (left[:, i] / scale).round().clamp(-7, 7) * scale
        error = (left[:, i] - column) / inverse[0]
        left[:, i:] -= error[:, None] * inverse
        gptq[:, i] = column
    assert off(gptq) < 0.7 * off(nearest)
    # The weights are further away, and the output is nearer.
    assert (gptq - weight).norm() > (nearest - weight).norm()
    # A channel with large inputs is enlarged before it is rounded.
    factor = x.abs().mean(0).sqrt()
    factor /= factor.median()
    awq = quantize(weight * factor, 4).dequantize(torch.double) / factor
    assert off(awq) < 0.7 * off(nearest)


def test_a_float_of_eight_bits_keeps_small_numbers_and_an_integer_large_ones():
    x = torch.cat([torch.tensor([0.01, 0.1, 100.0]), torch.arange(60.0, 100)])

    def as_float(x):
        return (x / 100 * 448).to(torch.float8_e4m3fn).float() / 448 * 100

    small = slice(0, 2)
    assert (quantize(x, 8).dequantize()[small] == 0).all()
    assert ((as_float(x) / x - 1).abs() <= 1 / 16 + 1e-6).all()
    large = x > 60
    off = [
        (fn - x)[large].abs().max().item()
        for fn in (quantize(x, 8).dequantize(), as_float(x))
    ]
    assert off[0] < 0.4
    assert 2 < off[1] < 3.6
    assert round(100 / 127 / 2, 2) == 0.39
    assert torch.finfo(torch.float8_e4m3fn).max == 448
    assert torch.tensor(2.0**-9).to(torch.float8_e4m3fn).float() == 2**-9
    assert torch.tensor(290.0).to(torch.float8_e4m3fn).float() == 288


# Guess and check


def test_guesses_slow_a_full_batch_down():
    def faster(batch, context, guesses=4):
        step = decoding_work(SEVEN, batch, context)
        # Weights and caches are read once for all positions of a row.
        checking = Work((guesses + 1) * step.operations, step.bytes)
        takes = checking.seconds(GPU) + 0.1 * guesses * step.seconds(GPU)
        return expected_tokens(0.8, guesses) * step.seconds(GPU) / takes

    assert round(faster(1, 1), 1) == 2.4
    assert faster(128, 1) < 1
    step = decoding_work(SEVEN, 128, 1)
    checking = Work(5 * step.operations, step.bytes)
    assert 4 < checking.seconds(GPU) / step.seconds(GPU) < 5
    assert faster(29, 1) > 2.3 > faster(40, 1)
    # With long contexts reading the caches is the limit, and it is shared.
    assert round(faster(128, 8000), 1) == 2.4


def test_four_guesses_that_cost_a_tenth_each():
    def faster(guesses, share=0.8, cost=0.1):
        return expected_tokens(share, guesses) / (1 + cost * guesses)

    answers(
        "efficiency-four-guesses",
        faster(4),
        expected_tokens(0.8, 4),
        (1 + 4 * 0.8) / 1.4,
        (expected_tokens(0.8, 4) - 1) / 1.4,
    )
    best = max(range(1, 20), key=faster)
    assert (best, round(faster(best), 2)) == (6, 2.47)
    a, c, k = 0.8, 0.1, 4
    formula = (1 - a ** (k + 1)) / ((1 - a) * (c * k + 1))
    assert faster(4) == pytest.approx(formula)


# Code that was repaired


def test_the_repair_takes_off_what_a_row_has_in_common():
    broken, repaired = repair("efficiency-a-gradient-that-forgets-its-row")
    args = [
        drawn(2, 19, 8, seed=s).double().requires_grad_() for s in (2, 3, 5)
    ]
    for causal in (False, True):
        mask = torch.ones(19, 19, dtype=torch.bool).tril() if causal else None
        plain = scaled_dot_product_attention(*args, mask)
        upstream = drawn(2, 19, 8, seed=7).double()
        expected = torch.autograd.grad(plain, args, upstream)
        for fn, right in (
            (broken, [False, False, True]),
            (repaired, [True] * 3),
        ):
            output = fn(*args, causal)
            torch.testing.assert_close(output, plain)
            found = torch.autograd.grad(output, args, upstream)
            assert [
                torch.allclose(a, b)
                for a, b in zip(found, expected, strict=True)
            ] == right


def test_the_repair_copies_a_shared_block_before_it_writes():
    broken, repaired = repair("efficiency-two-samples-that-mix")

    def texts(kind, prompt):
        pages = kind(20, 16)
        for i in range(prompt):
            pages.append("a", i)
        pages.fork("a", "b")
        for name in "ab":
            pages.append(name, name)
        found = [pages.read(name)[prompt:] for name in "ab"]
        for name in "ab":
            pages.free(name)
        assert pages.used_blocks == 0
        return found

    for prompt in (16, 32, 48):
        assert (
            texts(broken, prompt) == texts(repaired, prompt) == [["a"], ["b"]]
        )
    for prompt in (7, 17):
        assert texts(repaired, prompt) == [["a"], ["b"]]
        assert texts(broken, prompt) != [["a"], ["b"]]


# Several machines


def test_columns_then_rows_need_one_sum_a_block():
    x, a, b = drawn(5, 12, seed=2), drawn(12, 24, seed=3), drawn(24, 12, seed=5)
    whole = F.gelu(x @ a) @ b
    parts = [
        F.gelu(x @ columns) @ rows
        for columns, rows in zip(a.split(6, 1), b.split(6, 0), strict=True)
    ]
    torch.testing.assert_close(sum(parts), whole)
    # The other way round a function of a sum would be wanted too early.
    early = [
        F.gelu(some @ rows)
        for some, rows in zip(x.split(3, 1), a.split(3, 0), strict=True)
    ]
    assert not torch.allclose(sum(early) @ b, whole, atol=0.1)
    # Attention: whole heads, and the rows of the output projection.
    q, k, v = (drawn(4, 7, 3, seed=s) for s in (7, 11, 13))
    found, out = scaled_dot_product_attention(q, k, v), drawn(12, 12)
    whole = found.transpose(0, 1).flatten(1) @ out
    parts = [
        heads.transpose(0, 1).flatten(1) @ rows
        for heads, rows in zip(found.split(2), out.split(6), strict=True)
    ]
    torch.testing.assert_close(sum(parts), whole)
    assert 2 * SEVENTY.num_layers == 160


def ring_all_reduce(parts):
    """Sum what the machines of a ring have; how much each of them sent."""
    p = len(parts)
    held = [list(part.chunk(p)) for part in parts]
    sent = [0] * p
    for adding in (True, False):
        for turn in range(p - 1):
            moving = [(i, (i - turn + (not adding)) % p) for i in range(p)]
            pieces = [held[i][c] for i, c in moving]
            for (i, c), piece in zip(moving, pieces, strict=True):
                to = (i + 1) % p
                held[to][c] = held[to][c] + piece if adding else piece
                sent[i] += piece.numel()
    return [torch.cat(each) for each in held], sent


def test_a_ring_sends_nearly_everything_twice():
    parts = [drawn(64, seed=s) for s in range(8)]
    sums, sent = ring_all_reduce(parts)
    for each in sums:
        torch.testing.assert_close(each, sum(parts))
    assert sent == [2 * 64 * 7 / 8] * 8
    message = 32 * 8192 * 2 / 2**20
    assert message == 0.5
    total = 160 * message
    answers(
        "efficiency-bytes-between-gpus",
        total * sent[0] / 64,
        total / 2 * sent[0] / 64,
        total,
        total * 2 * 7,
    )
    seconds = [140 * 2**20 / rate * 1e3 for rate in (450e9, 32e9)]
    assert [round(x, 1) for x in seconds] == [0.3, 4.6]
    assert 8192 / 32 == 256


def test_three_of_fifteen_slots_of_a_stage_are_empty():
    def idle(stages, batches):
        # A stage takes up the next one that has left the stage before.
        done = {}
        for stage in range(stages):
            for batch in range(batches):
                ready = max(
                    done.get((stage - 1, batch), 0),
                    done.get((stage, batch - 1), 0),
                )
                done[stage, batch] = ready + 1
        return (max(done.values()) - batches) / max(done.values())

    answers("efficiency-a-pipelines-bubble", idle(4, 12), 3 / 12, idle(4, 1))
    for stages, batches in ((2, 5), (3, 7), (8, 3)):
        expected = (stages - 1) / (batches + stages - 1)
        assert idle(stages, batches) == pytest.approx(expected)


def test_replicas_need_no_messages():
    weights, memory = 16, 80
    assert weights < memory
    copies, split = 8 * (memory - weights), 8 * memory - weights
    assert round(split / copies - 1, 2) == 0.22
    assert 2 * 32 == 64
    # Each replica reads all weights for its own batch: eight times a batch
    # of one GPU, in the time of one.
    step = decoding_work(SEVEN, 64, 1)
    eight = Work(8 * step.operations, 8 * step.bytes)
    together = Machine(8 * GPU.operations, 8 * GPU.bytes)
    assert eight.seconds(together) == pytest.approx(step.seconds(GPU))


def test_sixteen_tokens_read_twenty_five_experts():
    def read(tokens, chosen=2, experts=64):
        return experts * (1 - (1 - chosen / experts) ** tokens)

    answers(
        "efficiency-experts-that-are-read",
        read(16),
        16 * 2,
        read(1),
        read(16, chosen=1),
    )
    generator = torch.Generator().manual_seed(3)
    counts = []
    for _ in range(2000):
        dice = torch.rand(16, 64, generator=generator)
        counts.append(dice.topk(2, dim=1).indices.unique().numel())
    assert sum(counts) / len(counts) == pytest.approx(read(16), abs=0.2)
    assert round(read(16) / 64, 1) == 0.4
    assert read(128) / 64 > 0.97
    assert round(read(16) / 2) == 13
    assert 128 * 2 / 64 == 4


# Distillation and pruning


def fitted(x, targets):
    """A linear classifier that was trained on distributions."""
    weight = torch.zeros(x.shape[1], targets.shape[1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=30)

    def loss():
        optimizer.zero_grad()
        found = F.cross_entropy(x @ weight, targets)
        found.backward()
        return found

    optimizer.step(loss)
    return weight.detach()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_student_learns_more_from_probabilities_than_from_labels(seed):
    teacher = drawn(16, 10, seed=100 + seed) * 0.5
    x, held = drawn(60, 16, seed=seed), drawn(2000, 16, seed=50 + seed)
    probabilities = (x @ teacher).softmax(-1)
    generator = torch.Generator().manual_seed(seed)
    drawn_labels = torch.multinomial(probabilities, 1, generator=generator)
    hard = F.one_hot(drawn_labels.squeeze(1), 10).float()
    best = (held @ teacher).argmax(-1)
    from_soft, from_hard = (
        ((held @ fitted(x, t)).argmax(-1) == best).float().mean().item()
        for t in (probabilities, hard)
    )
    assert from_soft > from_hard + 0.1


def test_gradients_of_soft_targets_fall_with_the_temperature_squared():
    teacher, student = drawn(11, seed=2), drawn(11, seed=3)

    def gradient(t):
        z = student.clone().requires_grad_()
        loss = F.kl_div(
            (z / t).log_softmax(-1), (teacher / t).softmax(-1), reduction="sum"
        )
        (found,) = torch.autograd.grad(loss, z)
        expected = ((student / t).softmax(-1) - (teacher / t).softmax(-1)) / t
        torch.testing.assert_close(found, expected)
        return found

    ratio = gradient(20.0).norm() / gradient(40.0).norm()
    assert 3.8 < ratio < 4.2
    # At high temperatures it fits the logits themselves.
    apart = (student - student.mean()) - (teacher - teacher.mean())
    torch.testing.assert_close(
        gradient(200.0) * 200**2 * 11, apart, rtol=0.02, atol=0.02
    )
    # Towards 0 the soft target is the label.
    assert (teacher / 0.01).softmax(-1).max() > 0.99
    assert teacher.softmax(-1).sum() == pytest.approx(1)


def test_zeros_in_no_order_save_neither_work_nor_bytes():
    weight, x = drawn(64, 32), drawn(5, 32)
    half = weight.abs().median()
    pruned = weight.masked_fill(weight.abs() < half, 0)
    assert 0.45 < (pruned == 0).float().mean() < 0.55
    assert operations(lambda: x @ pruned.T) == operations(lambda: x @ weight.T)
    assert pruned.nbytes == weight.nbytes
    dense = 16
    assert dense == 0.5 * (16 + 16)
    bitmap, two_of_four = 0.5 * 16 + 1, (2 * 16 + 2 * 2) / 4
    assert [round(x / dense, 2) for x in (bitmap, two_of_four)] == [0.56, 0.56]
    assert (quantize(pruned, 8).dequantize()[pruned == 0] == 0).all()


# Serving


def test_a_plan_for_seventy_billion():
    assert SEVENTY.cache_numbers * 2 == 320 * 1024
    weights, cache = 70e9 * 2, 100 * 4096 * SEVENTY.cache_numbers * 2
    assert (weights / 1e9, round(cache / 1e9)) == (140, 134)
    seconds = (weights + cache) / (8 * GPU.bytes)
    assert (round(seconds * 1e3), round(1 / seconds)) == (17, 58)
    assert weights + cache < 8 * 80e9
    # In four bits it fits a GPU, which then holds a third of the texts.
    fits = (80e9 - 35e9) / (4096 * SEVENTY.cache_numbers * 2)
    assert int(fits) == 33
    # The sizes are those of such a model.
    both = SEVENTY.weights + SEVENTY.output_weights
    assert 69e9 < both < 71e9
    assert prefill_work(SEVENTY, 1, 1).operations == pytest.approx(
        140e9, rel=0.02
    )
