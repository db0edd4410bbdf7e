"""Operations and bytes: counted by hand, and by PyTorch."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from companion.efficiency import (
    Machine,
    Sizes,
    Work,
    decoding_work,
    measure_machine,
    prefill_work,
)
from companion.transformer import LanguageModel, LanguageModelConfig

SMALL = Sizes(
    num_layers=2,
    d_model=12,
    num_heads=3,
    num_kv_heads=3,
    d_ff=29,
    vocab_size=101,
    gated=False,
)
A100 = Machine(operations=312e12, bytes=2039e9)


def counted(model, tokens):
    """The operations that PyTorch counts in a forward pass."""
    # Fused attention on a CPU would be counted as nothing.
    with (
        FlopCounterMode(display=False) as counter,
        sdpa_kernel(SDPBackend.MATH),
        torch.no_grad(),
    ):
        model(tokens)
    return counter.get_total_flops()


@pytest.fixture
def model():
    config = LanguageModelConfig(
        num_layers=2, d_model=12, num_heads=3, d_ff=29, vocab_size=101
    )
    return LanguageModel(config).eval()


# An oracle: PyTorch counts the same.


@pytest.mark.parametrize("batch", [1, 5])
def test_one_new_token_takes_the_operations_that_pytorch_counts(model, batch):
    tokens = torch.ones(batch, 1, dtype=torch.long)
    expected = counted(model, tokens)
    assert decoding_work(SMALL, batch, 1).operations == expected
    assert prefill_work(SMALL, batch, 1).operations == expected


def test_a_prompt_takes_what_pytorch_counts_less_what_nobody_needs(model):
    batch, n = 3, 7
    # PyTorch's count has the hidden half of all scores, and logits of all.
    hidden = 2 * SMALL.num_layers * SMALL.d_model * (n * (n - 1) // 2)
    logits = SMALL.output_weights * (n - 1)
    assert prefill_work(SMALL, batch, n).operations == counted(
        model, torch.ones(batch, n, dtype=torch.long)
    ) - 2 * batch * (hidden + logits)


def test_the_weights_are_those_of_the_model_less_its_vectors(model):
    matrices = sum(p.numel() for p in model.parameters() if p.ndim > 1)
    embedding = SMALL.vocab_size * SMALL.d_model
    tied = matrices - embedding * (matrices > SMALL.weights)
    assert SMALL.weights == tied


# Cases one can do on paper.


def test_seven_billion_are_seven_billion():
    sizes = Sizes.seven_billion()
    assert sizes.weights + sizes.output_weights == 6_738_149_376
    work = decoding_work(sizes, 1, 1)
    assert round(work.bytes / 1e9, 1) == 13.2
    assert round(work.computing(A100) * 1e3, 3) == 0.042
    assert round(work.moving(A100) * 1e3, 1) == 6.5
    assert round(A100.ridge) == 153


def test_a_batch_reads_the_weights_once_and_each_text_its_cache():
    one, eight = (decoding_work(SMALL, batch, 5) for batch in (1, 8))
    assert eight.operations == 8 * one.operations
    cache = 2 * 2 * 12 * 5 * 2
    assert eight.bytes - one.bytes == 7 * cache
    assert one.bytes == SMALL.weights * 2 + cache


def test_without_a_context_to_speak_of_the_batch_is_the_intensity():
    for batch in (1, 7, 64):
        work = decoding_work(Sizes.seven_billion(), batch, 1)
        assert work.intensity == pytest.approx(batch, rel=0.01)


def test_fewer_bits_move_fewer_bytes_and_compute_the_same():
    usual = decoding_work(SMALL, 3, 5)
    weights = decoding_work(SMALL, 3, 5, weight_bits=4.5)
    cache = decoding_work(SMALL, 3, 5, cache_bits=8)
    assert weights.operations == cache.operations == usual.operations
    assert usual.bytes - weights.bytes == SMALL.weights * 11.5 / 8
    assert usual.bytes - cache.bytes == 3 * SMALL.cache_numbers * 5


def test_grouped_heads_divide_the_cache():
    grouped = Sizes.seven_billion(num_kv_heads=8)
    assert Sizes.seven_billion().cache_numbers == 4 * grouped.cache_numbers
    # 2 layers' sizes, keys and values, of 32 heads 128 wide, in 32 layers.
    assert Sizes.seven_billion().cache_numbers == 2 * 32 * 32 * 128


def test_a_step_takes_the_longer_of_two_times():
    machine = Machine(operations=50, bytes=10)
    assert machine.ridge == 5
    for work, longer in ((Work(100, 10), 2), (Work(100, 30), 3)):
        assert work.seconds(machine) == longer
        assert (work.intensity > machine.ridge) == (
            work.computing(machine) > work.moving(machine)
        )


def test_rates_are_measured_and_the_copy_is_slower_than_the_matrices():
    found = measure_machine(256, tries=3)
    # For each byte that a machine moves it can compute more than once.
    assert found.operations > found.bytes > 1e6


@pytest.mark.bad_input
def test_a_wrong_argument_is_named():
    with pytest.raises(ValueError, match=r"num_heads: .*divisor of d_model 12"):
        Sizes(**{**vars(SMALL), "num_heads": 5})
    with pytest.raises(
        ValueError, match=r"num_kv_heads: .*divisor of num_head"
    ):
        Sizes(**{**vars(SMALL), "num_kv_heads": 2})
    with pytest.raises(TypeError, match="d_ff: expected an int"):
        Sizes(**{**vars(SMALL), "d_ff": 2.5})
    with pytest.raises(TypeError, match="gated: expected True or False"):
        Sizes(**{**vars(SMALL), "gated": 1})
    for count in (decoding_work, prefill_work):
        with pytest.raises(ValueError, match="batch: expected at least 1"):
            count(SMALL, 0, 5)
        with pytest.raises(ValueError, match=r"weight_bits: .*above 0, got 0"):
            count(SMALL, 1, 5, weight_bits=0)
        with pytest.raises(TypeError, match="cache_bits: expected a number"):
            count(SMALL, 1, 5, cache_bits="8")
    with pytest.raises(ValueError, match="tries: expected at least 1"):
        measure_machine(8, tries=0)
