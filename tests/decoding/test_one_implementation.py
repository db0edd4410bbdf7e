"""Whatever a model is made of, it writes with a cache what it writes without.

One implementation of the layers serves training and decoding, so that every
combination of parts that the package can build is served by the cache.
"""

from functools import partial
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from companion.blocks import FeedForward, LayerNorm, Parts
from companion.decoding import cached_decode, greedy_decode, translate
from companion.multihead import CAUSAL, KVCache, MultiHeadAttention
from companion.positions import LearnedPositions, SinusoidalPositions, T5Bias
from companion.transformer import (
    Decoder,
    Encoder,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
)
from companion.variants import (
    GPT,
    GPTConfig,
    GroupedQueryAttention,
    RMSNorm,
    SwiGLU,
    cached_step,
)
from companion.variants.gpt import NoPositions
from companion.variants.t5 import UnscaledAttention

# All sizes differ, so no axis can stand in for another.
BATCH, SRC, TGT, VOCAB, D_MODEL, HEADS, MAX_LEN = 3, 5, 7, 19, 24, 6, 17
BOS, EOS, PAD = 1, 2, 0
FEED_FORWARDS = {
    "relu": FeedForward,
    "gelu": partial(FeedForward, activation=F.gelu, bias=False),
    "gated": SwiGLU,
}
NORMS = {"layer": LayerNorm, "rms": RMSNorm}
POSITIONS = "sinusoidal", "learned", "rotary", "offsets", "none"
COMBINATIONS = [
    combination
    for combination in product(
        (False, True), NORMS, FEED_FORWARDS, (HEADS, 2), POSITIONS
    )
    # T5's attention has a key for each head.
    if combination[3:] != (2, "offsets")
]


def attentions(kv_heads, positions):
    """What looks at its own sequence, and what looks at the memory."""
    if positions == "offsets":
        bias = T5Bias(HEADS, num_buckets=4, max_distance=6, bidirectional=False)
        torch.nn.init.normal_(bias.weight)
        return partial(UnscaledAttention, offset_bias=bias), UnscaledAttention
    if kv_heads == HEADS and positions != "rotary":
        return MultiHeadAttention, MultiHeadAttention
    grouped = partial(GroupedQueryAttention, num_kv_heads=kv_heads)
    return partial(grouped, rotary=positions == "rotary"), grouped


def parts(norm, network, kv_heads, positions):
    own, cross = attentions(kv_heads, positions)
    return Parts(NORMS[norm], own, cross, FEED_FORWARDS[network])


def positions_of(kind):
    if kind == "sinusoidal":
        return SinusoidalPositions(D_MODEL)
    if kind == "learned":
        return LearnedPositions(MAX_LEN, D_MODEL)
    return NoPositions()


def shaken(model):
    """In evaluation, with weights large enough that every part matters."""
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return model.double().eval()


def translator(norm_first, *made_of):
    sizes = {"d_model": D_MODEL, "num_heads": HEADS, "d_ff": 11}
    config = TransformerConfig(
        src_vocab_size=VOCAB,
        tgt_vocab_size=VOCAB,
        num_layers=2,
        norm_first=norm_first,
        dropout=0.3,
        **sizes,
    )
    model = Transformer(config)
    model.positions = positions_of(made_of[-1])
    model.encoder = Encoder(config, Parts(norm=NORMS[made_of[0]]))
    model.decoder = Decoder(config, parts(*made_of))
    return shaken(model)


def writer(norm_first, *made_of):
    config = GPTConfig(
        vocab_size=VOCAB,
        d_model=D_MODEL,
        num_heads=HEADS,
        d_ff=11,
        num_layers=2,
        max_len=MAX_LEN,
        norm_first=norm_first,
    )
    model = GPT(config, parts(*made_of))
    model.positions = positions_of(made_of[-1])
    return shaken(model)


@pytest.mark.once
@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
@torch.no_grad()
def test_a_translator_of_any_parts_says_with_a_cache_what_it_says_without(
    combination,
):
    model = translator(*combination)
    src = torch.randint(3, VOCAB, (BATCH, SRC))
    tgt = torch.randint(3, VOCAB, (BATCH, TGT))
    src[1, 3:] = tgt[2, 5:] = PAD
    torch.testing.assert_close(
        cached_decode(model, src, tgt), model(src, tgt), atol=1e-5, rtol=1e-5
    )
    for beam in (1, 3):
        settings = {"max_len": 9, "beam": beam}
        expected = translate(model, src, **settings, cache=False)
        assert translate(model, src, **settings) == expected


@pytest.mark.once
@pytest.mark.parametrize("combination", COMBINATIONS, ids=str)
@torch.no_grad()
def test_a_writer_of_any_parts_says_with_a_cache_what_it_says_without(
    combination,
):
    model = writer(*combination)
    tokens = torch.randint(3, VOCAB, (BATCH, TGT))
    expected, step = model(tokens), cached_step(model)
    # The first two at once, then one by one, then two at once.
    for n in (2, 3, 4, 5, 7):
        torch.testing.assert_close(
            step(tokens[:, :n]), expected[:, n - 1], atol=1e-5, rtol=1e-5
        )
    written = greedy_decode(cached_step(model), BOS, EOS, 9)
    assert written == greedy_decode(lambda t: model(t)[:, -1], BOS, EOS, 9)


def test_another_activation_reaches_what_is_written():
    torch.manual_seed(5)
    src = torch.randint(3, VOCAB, (31, SRC))
    model = translator(False, "layer", "relu", HEADS, "sinusoidal")
    before = translate(model, src, max_len=9)
    for layer in model.decoder.layers:
        layer.feed_forward.activation = F.gelu
    after = translate(model, src, max_len=9)
    assert after == translate(model, src, max_len=9, cache=False) != before


def test_a_cache_writes_behind_what_is_there_and_copies_nothing_old():
    cache, lies = KVCache(), set()
    for n in range(1, 200):
        new = torch.full((2, 3, 1, 5), float(n))
        k, v = cache.append(new, -new)
        assert k[0, 0, :, 0].tolist() == [*range(1, n + 1)]
        assert torch.equal(k, -v)
        lies.add(k.data_ptr())
    assert len(lies) <= 5


@pytest.mark.parametrize("query", [1, 2, 5])
def test_what_is_causal_ends_at_the_last_key(query):
    attention = MultiHeadAttention(D_MODEL, HEADS).double()
    x, cache = torch.randn(BATCH, 5, D_MODEL).double(), KVCache()
    if query < 5:
        attention(x[:, :-query], CAUSAL, cache=cache)
    last = attention(x[:, -query:], CAUSAL, cache=cache)
    torch.testing.assert_close(last, attention(x, CAUSAL)[:, -query:])


def test_a_language_model_is_continued_with_stored_keys_too():
    from companion.transformer import LanguageModel

    config = LanguageModelConfig(
        vocab_size=VOCAB,
        d_model=D_MODEL,
        num_heads=HEADS,
        d_ff=11,
        num_layers=2,
        dropout=0.0,
    )
    model = LanguageModel(config).eval()
    tokens = torch.randint(3, VOCAB, (BATCH, TGT))
    tokens[0, 2] = PAD
    step = cached_step(model)
    for n in range(1, TGT + 1):
        got = step(tokens[:, :n])[:, 1:]
        expected = model(tokens[:, :n])[:, -1, 1:]
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


def test_a_part_that_somebody_exchanged_is_asked_when_writing():
    class Loud(torch.nn.Module):
        """A dropout that drops in evaluation, too."""

        def forward(self, x):
            return F.dropout(x, 0.5)

    src = torch.randint(3, VOCAB, (31, SRC))
    model = translator(False, "layer", "relu", HEADS, "sinusoidal")
    quiet = translate(model, src, max_len=9)
    for layer in model.decoder.layers:
        layer.cross_residual.dropout = Loud()
    assert translate(model, src, max_len=9) != quiet
