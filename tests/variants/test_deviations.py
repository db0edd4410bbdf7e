"""How far the variants are from the published code, where they mean to be.

The modules name each difference; here is its size. What the published code does
is rebuilt in a few lines, or counted in ``transformers``.
"""

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from companion.blocks import Dropout
from companion.variants import BART, GPT, T5, BARTConfig, GPTConfig, T5Config
from companion.variants.masking import mask_tokens
from companion.variants.noise import infill
from companion.variants.specials import FIRST_WORD, MASK, PAD

SMALL = {"d_model": 26, "num_heads": 2, "d_ff": 11, "vocab_size": 37}
LAYERS, SEQ = 3, 7


def seeded():
    return torch.Generator().manual_seed(0)


def ours_drop(model, *tokens):
    """How often something is dropped in one pass of ours."""
    found = []
    for module in model.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda *a: found.append(a))
    model.train()(*tokens)
    return len(found)


class Drops(TorchFunctionMode):
    """Counts the calls of ``F.dropout``."""

    calls = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls += func is F.dropout
        return func(*args, **kwargs or {})


def theirs_drop(model, **tokens):
    """How often something is dropped in one pass of theirs."""
    with Drops() as drops:
        model.train()(**tokens)
    return drops.calls


@pytest.fixture
def tokens():
    return torch.randint(FIRST_WORD, 37, (2, SEQ))


def test_bert_s_holes_vary_by_five_where_the_published_number_is_fixed():
    tokens = torch.full((2_000, 200), FIRST_WORD)
    _, target = mask_tokens(tokens, seeded(), vocab_size=37)
    holes = (target != PAD).sum(1).float()
    assert abs(holes.mean() - 30) < 0.5
    assert abs(holes.std() - (200 * 0.15 * 0.85) ** 0.5) < 0.2


def test_a_short_row_often_has_no_hole_where_the_published_one_has_one():
    tokens = torch.full((10_000, 5), FIRST_WORD)
    _, target = mask_tokens(tokens, seeded(), vocab_size=37)
    bare = (target == PAD).all(1).float().mean()
    assert abs(bare - 0.85**5) < 0.02


def test_gpt_s_positions_begin_as_wide_as_its_tokens():
    made = GPT(GPTConfig.tiny(997))
    for table in (made.embedding, made.positions):
        assert abs(table.weight.std() - 0.02) < 0.001


def test_gpt_2_drops_a_weight_of_attention_in_each_layer_and_ours_does_not(
    tokens,
):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=37,
            n_positions=SEQ,
            n_embd=26,
            n_layer=LAYERS,
            n_head=2,
            n_inner=11,
            attn_implementation="eager",
        )
    )
    ours = GPT(
        GPTConfig(**SMALL, num_layers=LAYERS, max_len=SEQ, pad=PAD, dropout=0.1)
    )
    assert ours_drop(ours, tokens) == 1 + 2 * LAYERS
    assert theirs_drop(theirs, input_ids=tokens) == 1 + 3 * LAYERS


def test_t5_drops_at_twelve_places_more_with_two_layers(tokens):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=37,
            d_model=26,
            d_kv=13,
            d_ff=11,
            num_layers=2,
            num_heads=2,
            decoder_start_token_id=0,
            attn_implementation="eager",
        )
    )
    ours = T5(T5Config(**SMALL, num_layers=2, dropout=0.1))
    sub_layers, attentions, networks = 2 * 2 + 2 * 3, 2 + 2 * 2, 2 + 2
    assert ours_drop(ours, tokens, tokens) == 2 + sub_layers
    more = theirs_drop(theirs, input_ids=tokens, decoder_input_ids=tokens)
    assert more - (2 + sub_layers) == attentions + networks + 2 == 12


def test_bart_starts_six_times_as_wide_as_the_published_code():
    made = BART(BARTConfig.tiny(997))
    # Of a width of 64 to 64: Xavier's standard deviation is 1 / 8.
    start = made.encoder.layers[0].self_attention.out_proj.weight.std()
    assert abs(start / 0.02 - 6.25) < 0.2


def overlapping(length, share, mean, generator):
    """How many tokens are hidden where spans begin anywhere, as published."""
    hidden = torch.zeros(length, dtype=torch.bool)
    left = round(share * length)
    while left > 0:
        rate = torch.tensor(mean)
        span = min(int(torch.poisson(rate, generator=generator)), left)
        start = int(torch.randint(length, (), generator=generator))
        hidden[start : start + span] = True
        left -= span
    return int(hidden.sum())


def test_spans_that_may_overlap_hide_a_sixth_less_than_was_asked_for():
    generator, length = seeded(), 1_000
    found = [overlapping(length, 0.3, 3.0, generator) for _ in range(200)]
    published = sum(found) / len(found) / length
    assert 0.24 < published < 0.27
    text = torch.full((length,), FIRST_WORD)
    noisy = infill(text, generator)
    assert length - int((noisy != MASK).sum()) == round(0.3 * length)
