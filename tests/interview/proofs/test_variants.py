"""What the answers of chapter 12 claim, computed."""

from functools import partial

import pytest
import torch
from interview.proving import (
    answers,
    mistake,
    parameters,
    shown,
    solved,
)
from torch.testing import assert_close

from companion import blocks, variants
from companion.attention import scaled_dot_product_attention
from companion.masks import causal_mask
from companion.multihead import KVCache
from companion.variants import BOS, EOS, FIRST_WORD, MASK, PAD

# Sizes are prime and all differ, so no axis can stand in for another.
VOCAB, SEQ, SENTINEL = 101, 7, 100


def words(*shape, seed=0):
    """Ids of words."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_WORD, 90, shape, generator=generator)


def reaches(model, tokens, position):
    """Which rows of the output move with the token at ``position``."""
    changed = tokens.clone()
    changed[:, position] = FIRST_WORD + tokens[:, position] % 50
    moved = (model(changed) - model(tokens)).abs().amax(-1)
    return (moved[0] > 1e-6).tolist()


def tiny(model, config):
    torch.manual_seed(0)
    return model(config.tiny(VOCAB)).eval()


def bert():
    return tiny(variants.BERT, variants.BERTConfig)


def gpt():
    return tiny(variants.GPT, variants.GPTConfig)


def test_four_models_from_two_stacks_and_four_objectives():
    readers = {
        "BERT": hasattr(bert(), "encoder"),
        "T5": hasattr(tiny(variants.T5, variants.T5Config), "encoder"),
        "BART": hasattr(tiny(variants.BART, variants.BARTConfig), "encoder"),
    }
    assert all(readers.values())
    tokens, middle = words(1, SEQ), SEQ // 2
    assert reaches(bert(), tokens, middle) == [True] * SEQ
    sees = [row >= middle for row in range(SEQ)]
    assert reaches(gpt(), tokens, middle) == sees
    tgt = words(1, SEQ, seed=1)
    for model in (
        tiny(variants.T5, variants.T5Config),
        tiny(variants.BART, variants.BARTConfig),
    ):
        write = partial(model, tokens)
        assert reaches(write, tgt, middle) == sees
        assert reaches(lambda src, m=model: m(src, tgt), tokens, middle) == (
            [True] * SEQ
        )


def test_what_bert_says_about_a_word_moves_with_the_words_after_it():
    tokens = words(1, SEQ)
    assert reaches(bert(), tokens, SEQ - 1)[0]
    assert not reaches(gpt(), tokens, SEQ - 1)[0]


def test_of_the_chosen_words_most_are_masked_some_replaced_some_kept():
    tokens, generator = words(500, 200), torch.Generator().manual_seed(0)
    inputs, target = variants.mask_tokens(tokens, generator, vocab_size=VOCAB)
    chosen = target != PAD
    assert abs(chosen.float().mean() - 0.15) < 0.005
    became = inputs[chosen]
    masked = (became == MASK).float().mean()
    kept = (became == tokens[chosen]).float().mean()
    assert abs(masked - 0.8) < 0.02
    assert abs(kept - 0.1) < 0.02
    assert abs(1 - masked - kept - 0.1) < 0.02
    assert torch.equal(inputs[~chosen], tokens[~chosen])


def test_a_mask_token_is_looked_at_and_a_masked_position_is_not():
    model = bert()
    tokens = torch.cat([words(1, SEQ), torch.full((1, 2), PAD)], dim=1)
    hidden = tokens.clone()
    hidden[0, 3] = MASK
    before = model(hidden)[0, :SEQ]
    table = model.embedding.weight
    with torch.no_grad():
        table[MASK] += torch.randn(table.shape[1])
        asked = model(hidden)[0, :SEQ]
        # The table also scores: look at the words' own logits.
        assert ((asked - before)[:, FIRST_WORD:].abs().amax(-1) > 1e-6).all()
        table[PAD] += torch.randn(table.shape[1])
        unseen = model(hidden)[0, :SEQ, FIRST_WORD:]
    assert_close(unseen, asked[:, FIRST_WORD:])


def test_t5_writes_the_spans_and_bart_writes_the_whole_text():
    tokens = words(1000)
    dropped = torch.zeros(1000, dtype=torch.bool)
    for start in range(5, 1000, 20):
        dropped[start : start + 3] = True
    # Sentinels count down from an id that no word has.
    source, target = variants.span_corrupt(tokens, dropped, 5000)
    assert len(source) == 900
    assert len(target) == 201
    restored = variants.span_restore(source, target, 5000)
    assert restored.tolist() == tokens.tolist()
    # BART asks for all 1,000, five times as many.
    assert 4.5 < 1000 / len(target) < 5.5


def test_one_sentinel_stands_for_a_span_of_any_length():
    sources = set()
    for length in (1, 2, 3):
        tokens = torch.tensor([11, *range(21, 21 + length), 13])
        dropped = (tokens > 20) & (tokens < 30)
        source, target = variants.span_corrupt(tokens, dropped, SENTINEL)
        sources.add(tuple(source.tolist()))
        assert len(target) == length + 2
    assert sources == {(11, SENTINEL, 13)}


def test_half_of_the_sentence_pairs_follow_each_other():
    generator = torch.Generator().manual_seed(0)
    # A word names its document: the topic gives a wrong pair away.
    documents = [[[10 + d, 10 + d] for _ in range(21)] for d in range(50)]
    tokens, _, is_next = variants.sentence_pairs(documents, generator)
    assert abs(is_next.float().mean() - 0.5) < 0.08
    same = tokens[:, 1] == tokens[:, 4]
    assert torch.equal(same, is_next.bool())
    assert (tokens[:, 0] == BOS).all()
    assert (tokens[:, 3] == EOS).all()


def test_the_numbers_of_the_variants_questions():
    stay, spans = 850, 50
    answers("variants-length-after-span-corruption", stay + spans, stay, 1000)
    with torch.device("meta"):
        config = variants.GPTConfig.base()
        count = parameters(variants.GPT(config))
    tables = (config.vocab_size + config.max_len) * config.d_model
    output = config.vocab_size * config.d_model
    wrong = (count + output) / 1e6, (count - tables) / 1e6
    answers("variants-gpt2-parameters", count / 1e6, *wrong)
    size = variants.cache_numbers(80, 8, 128, 4096) * 2 / 2**30
    answers("variants-cache-with-groups", size, size * 64 / 8, size / 2)
    d = 4096
    plain = 2 * d * (4 * d)
    width = plain / (3 * d)
    answers("variants-swiglu-width", round(width), 4 * d, 2 * d)
    assert -(-width // 256) * 256 == 11_008
    assert 2 * 768 * 3072 == 3 * 768 * 2048
    gated = sum(p.numel() for p in variants.SwiGLU(6, 16).parameters())
    assert gated == 3 * 6 * 16 == 2 * 6 * (4 * 6)


def test_one_group_is_multi_query_and_h_groups_are_multi_head():
    torch.manual_seed(0)
    q = torch.randn(2, 6, 5, 8)
    for groups in (1, 2, 6):
        k, v = torch.randn(2, 2, groups, 7, 8).unbind(0)
        # Neighbouring heads share; with one group, all of them.
        shared = [
            scaled_dot_product_attention(
                q[:, h], k[:, h * groups // 6], v[:, h * groups // 6]
            )
            for h in range(6)
        ]
        found = variants.grouped_query_attention(q, k, v)
        assert_close(found, torch.stack(shared, 1))
    attention = variants.GroupedQueryAttention(24, 6, num_kv_heads=2)
    cache = KVCache()
    attention(torch.randn(1, 1, 24), cache=cache)
    kept = sum(part.numel() for part in cache.stored)
    assert kept == variants.cache_numbers(1, 2, 4, 1)


def test_rms_norm_keeps_the_mean_and_forgets_the_scale():
    torch.manual_seed(0)
    x, gain = torch.randn(5, 7), torch.ones(7)
    once = variants.rms_norm(x, gain, 1e-9)
    assert_close(variants.rms_norm(3 * x, gain, 1e-9), once)
    assert (variants.rms_norm(x + 1, gain, 1e-9) - once).abs().max() > 0.1
    centred = x - x.mean(-1, keepdim=True)
    assert_close(
        variants.rms_norm(centred, gain, 1e-9),
        blocks.layer_norm(x, gain, torch.zeros(7), 1e-9),
    )


def test_todays_block_is_the_old_one_with_four_parts_exchanged():
    sizes = {"d_model": 16, "num_heads": 4, "d_ff": 32}
    parts = variants.today(2)
    block = blocks.EncoderLayer(**sizes, norm_first=True, parts=parts)
    kinds = {type(module) for module in block.modules()}
    assert {
        variants.RMSNorm,
        variants.SwiGLU,
        variants.GroupedQueryAttention,
        blocks.Residual,
    } <= kinds
    assert not {blocks.LayerNorm, blocks.FeedForward} & kinds
    assert not [name for name, _ in block.named_parameters() if "bias" in name]
    # The position is in the attention: the order counts, without a table.
    x, mask = torch.randn(1, 5, 16), causal_mask(5)
    swapped = x[:, [1, 0, 2, 3, 4]]
    moved = block(swapped, mask)[:, -1] - block(x, mask)[:, -1]
    assert moved.abs().max() > 1e-6


def test_a_prefix_mask_lies_between_berts_and_gpts():
    full, causal = torch.ones(SEQ, SEQ).bool(), causal_mask(SEQ)
    prefix = causal.clone()
    prefix[:3, :3] = True
    assert (causal <= prefix).all()
    assert (prefix <= full).all()
    assert causal.sum() < prefix.sum() < full.sum()
    # An encoder-decoder hides the same pairs: a source position never sees
    # the target, and a target position sees no later one.
    assert not prefix[:3, 3:].any()
    assert torch.equal(prefix[3:, 3:], causal_mask(SEQ - 3))


def test_a_square_that_float16_cannot_hold():
    numbers = torch.arange(1, 1001).half()
    first = int(numbers[numbers.square().isinf()][0])
    largest = torch.finfo(torch.float16).max
    answers("variants-a-norm-that-overflows", first, largest, first - 1)
    gain = torch.ones(7, dtype=torch.float16)
    x = torch.linspace(-3, 3, 7).half()
    x[2] = first
    broken = mistake("rms_norm", "squares in half precision")
    assert (broken(x, gain, 1e-6) == 0).all()
    assert variants.rms_norm(x, gain)[2] > 1
    x[2] = first - 1
    assert broken(x, gain, 1e-6).count_nonzero() > 0


def test_a_target_taken_too_late_is_what_the_model_reads():
    name = "variants-a-model-that-says-mask"
    tokens = torch.randint(4, 100, (50, 200))
    for make, copies in ((shown, True), (solved, False)):
        generator = torch.Generator().manual_seed(0)
        inputs, target = make(name)(tokens, generator)
        chosen = target != 0
        assert abs(chosen.float().mean() - 0.15) < 0.01
        assert abs((inputs[chosen] == 3).float().mean() - 0.8) < 0.03
        assert torch.equal(inputs[chosen], target[chosen]) is copies
        assert torch.equal(tokens[chosen], target[chosen]) is not copies


def test_key_heads_that_nobody_asks_get_no_gradient():
    name, heads = "variants-heads-that-nobody-asks", 24
    q = torch.randn(2, heads, 5, 3)
    for groups, unheard in ((1, 0), (8, 7)):
        k, v = torch.randn(2, 2, groups, 7, 3).unbind(0)
        k.requires_grad_()
        result = shown(name)(q, k, v)
        (slope,) = torch.autograd.grad(result.square().sum(), k)
        silent = (slope == 0).all(-1).all(-1).all(0)
        assert silent.sum() == unheard
        first = variants.grouped_query_attention(q, k[:, :1], v[:, :1])
        assert_close(result, first)


def test_a_vector_of_length_one_is_root_d_times_too_small():
    broken = shown("variants-a-stream-too-small")
    for width, factor in ((4096, 64), (64, 8)):
        x, gain = torch.randn(3, width), torch.ones(width)
        right = variants.rms_norm(x, gain, 1e-9)
        assert_close(factor * broken(x, gain, 1e-9), right)
    zeros = torch.zeros(1, 7, requires_grad=True)
    for make, steep in ((shown, 1e6), (solved, 1e3)):
        norm = make("variants-a-stream-too-small")
        result = norm(zeros, torch.ones(7), 1e-6)
        (slope,) = torch.autograd.grad(result.sum(), zeros)
        assert_close(slope, torch.full((1, 7), steep))
    long = torch.full((1, 4096), 2000.0)
    assert long.norm() == pytest.approx(128_000)
    assert long.half().norm(dim=-1).isinf()
