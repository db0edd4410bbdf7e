"""Each public function and module that computes with tensors, called once.

An entry takes a function that moves a tensor to the device. Sizes are prime and
all different: batch 2, query 3, key 5, head width 7 …
"""

import torch

from companion import attention as a
from companion import blocks as b
from companion import decoding as d
from companion import efficiency as e
from companion import masks as m
from companion import models
from companion import multihead as h
from companion import positions as p
from companion import rnn as r
from companion import seq2seq as s
from companion import training as t
from companion import transformer as w
from companion import variants as v

SMALL = {"d_model": 14, "num_heads": 2, "d_ff": 17, "num_layers": 1}
TOKENS = torch.tensor([[4, 9, 5, 7, 3], [6, 8, 0, 0, 0]])
TARGET = torch.tensor([[1, 7, 10], [1, 3, 0]])


def numbers(*shape):
    """The same numbers for each device."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(5))


def built(make):
    """Weights that do not depend on the device."""
    torch.manual_seed(3)
    return make().eval()


def qkv(here):
    return (here(numbers(2, n, 7)) for n in (3, 5, 5))


def heads(here, each=2):
    return (here(numbers(2, each, n, 7)) for n in (3, 5, 5))


def shown(here):
    return here(numbers(2, 3, 5) > -1)


def padding(here):
    return m.padding_mask(here(TOKENS), 0)


def module(make, *inputs):
    """Call a module that is moved after it was built, as users do."""

    def call(here):
        moved = built(make)
        moved.to(here(torch.empty(0)).device)
        return moved(*(here(x) for x in inputs))

    return call


def transformer():
    config = w.TransformerConfig(src_vocab_size=11, tgt_vocab_size=13, **SMALL)
    return w.Transformer(config)


def step(here):
    """The encoder read; the next id is asked for."""
    model = built(transformer).to(here(TOKENS).device)
    return d.next_token(model, here(TOKENS[:1]))


def language_model():
    return w.LanguageModel(w.LanguageModelConfig(vocab_size=11, **SMALL))


def appended(make):
    """Give a cache the keys and values of two positions, one at a time."""

    def call(here):
        cache = make()
        cache.append(*(here(numbers(2, 2, 1, 7)) for _ in range(2)))
        return cache.append(*(here(numbers(2, 3, 1, 7)[:, :2]) for _ in "kv"))

    return call


def quantized_model(here):
    """Rounded where it lives; then asked."""
    model = built(language_model).to(here(X).device)
    return e.quantize_linears(model, 8)(here(TOKENS))


X = numbers(2, 5, 14)
INTEGERS = torch.tensor([[-8, 7, 3], [0, -1, 5]], dtype=torch.int8)
STACK = w.StackConfig(**SMALL)

COMPUTED = {
    "attention": {
        "attention_weights": lambda here: a.attention_weights(
            *list(qkv(here))[:2], shown(here)
        ),
        "masked_softmax": lambda here: a.masked_softmax(
            here(numbers(2, 3, 5)), shown(here)
        ),
        "scaled_dot_product_attention": (
            lambda here: a.scaled_dot_product_attention(*qkv(here), shown(here))
        ),
        "softmax": lambda here: a.softmax(here(numbers(2, 3))),
        "softmax_jacobian": lambda here: a.softmax_jacobian(
            here(numbers(2, 3).softmax(-1))
        ),
    },
    "multihead": {
        "MultiHeadAttention": module(lambda: h.MultiHeadAttention(14, 2), X),
        "fused_attention": lambda here: h.fused_attention(
            *heads(here), h.CAUSAL
        ),
        "mask_tensor": lambda here: h.mask_tensor(
            h.CAUSAL, *list(heads(here))[:2]
        ),
        "merge_heads": lambda here: h.merge_heads(here(numbers(2, 3, 5, 7))),
        "split_heads": lambda here: h.split_heads(here(X), 2),
    },
    "positions": {
        "LearnedPositions": module(lambda: p.LearnedPositions(5, 14), X),
        "Shaw": module(lambda: p.Shaw(7, 2), *[numbers(2, 2, 5, 7)] * 3),
        "SinusoidalPositions": module(lambda: p.SinusoidalPositions(14), X),
        "T5Bias": lambda here: built(lambda: p.T5Bias(2)).to(here(X).device)(5),
        "TokenEmbedding": module(lambda: p.TokenEmbedding(11, 14), TOKENS),
        "TransformerXL": module(
            lambda: p.TransformerXL(14, 2, 7), *[numbers(2, 2, 5, 7)] * 3
        ),
        "alibi_bias": lambda here: p.alibi_bias(2, 5, device=here(X).device),
        "biased_attention": lambda here: p.biased_attention(
            *qkv(here), here(numbers(2, 3, 5))
        ),
        "biased_weights": lambda here: p.biased_weights(
            *list(qkv(here))[:2], here(numbers(2, 3, 5))
        ),
        "frequencies": lambda here: p.frequencies(14, device=here(X).device),
        "offsets": lambda here: p.offsets(5, device=here(X).device),
        "rotate": lambda here: p.rotate(here(X), here(torch.arange(5))),
        "rotate_complex": lambda here: p.rotate_complex(
            here(X), here(torch.arange(5))
        ),
        "shift": lambda here: p.shift(here(numbers(2, 5, 9))),
        "sinusoidal": lambda here: p.sinusoidal(5, 14, device=here(X).device),
        "sinusoids": lambda here: p.sinusoids(here(torch.arange(5)), 14),
        "t5_bucket": lambda here: p.t5_bucket(here(torch.arange(-5, 5))),
    },
    "masks": {
        "causal_mask": lambda here: m.causal_mask(5, device=here(X).device),
        "combine_masks": lambda here: m.combine_masks(
            here(TOKENS), here(TARGET), 0
        ),
        "from_additive": lambda here: m.from_additive(
            m.to_additive(padding(here))
        ),
        "from_lengths": lambda here: m.from_lengths(
            here(torch.tensor([5, 2])), 5
        ),
        "from_ones": lambda here: m.from_ones(here((TOKENS != 0).long())),
        "from_torch_padding": lambda here: m.from_torch_padding(
            here(TOKENS == 0)
        ),
        "padding_mask": padding,
        "to_additive": lambda here: m.to_additive(padding(here)),
        "to_keras": lambda here: m.to_keras(padding(here)),
        "to_lengths": lambda here: m.to_lengths(padding(here)),
        "to_ones": lambda here: m.to_ones(padding(here)),
        "to_torch_attention": lambda here: m.to_torch_attention(
            padding(here), 2
        ),
        "to_torch_padding": lambda here: m.to_torch_padding(padding(here)),
        "to_torch_transformer": lambda here: m.to_torch_transformer(
            m.combine_masks(here(TOKENS), here(TARGET), 0), 2
        ),
    },
    "blocks": {
        "Dropout": module(b.Dropout, X),
        "EncoderLayer": module(lambda: b.EncoderLayer(14, 2, 17), X),
        "FeedForward": module(lambda: b.FeedForward(14, 17), X),
        "LayerNorm": module(lambda: b.LayerNorm(14), X),
        "layer_norm": lambda here: b.layer_norm(
            here(X), here(numbers(14)), here(numbers(14))
        ),
    },
    "transformer": {
        "Decoder": lambda here: built(lambda: w.Decoder(STACK)).to(
            here(X).device
        )(here(X), here(X), None, h.CAUSAL),
        "DecoderLayer": lambda here: built(
            lambda: w.DecoderLayer(14, 2, 17)
        ).to(here(X).device)(here(X), here(X), None, h.CAUSAL),
        "Encoder": module(lambda: w.Encoder(STACK), X),
        "LanguageModel": module(
            lambda: w.LanguageModel(
                w.LanguageModelConfig(vocab_size=11, **SMALL)
            ),
            TOKENS,
        ),
        "Transformer": module(transformer, TOKENS, TARGET),
        "shift_right": lambda here: w.shift_right(here(TARGET), 1),
    },
    "variants": {
        "BART": module(
            lambda: v.BART(v.BARTConfig(vocab_size=13, max_len=7, **SMALL)),
            TOKENS,
            TARGET,
        ),
        "BERT": module(
            lambda: v.BERT(v.BERTConfig(vocab_size=11, max_len=7, **SMALL)),
            TOKENS,
        ),
        "GPT": module(
            lambda: v.GPT(v.GPTConfig(vocab_size=11, max_len=7, **SMALL)),
            TOKENS,
        ),
        "T5": module(
            lambda: v.T5(v.T5Config(vocab_size=13, **SMALL)), TOKENS, TARGET
        ),
        "GroupedQueryAttention": module(
            lambda: v.GroupedQueryAttention(14, 2, num_kv_heads=1), X
        ),
        "RMSNorm": module(lambda: v.RMSNorm(14), X),
        "SwiGLU": module(lambda: v.SwiGLU(14, 17), X),
        "grouped_query_attention": lambda here: v.grouped_query_attention(
            here(numbers(2, 4, 3, 7)),
            here(numbers(2, 2, 5, 7)),
            here(numbers(2, 2, 5, 7)),
        ),
        "rms_norm": lambda here: v.rms_norm(here(X), here(numbers(14))),
    },
    "training": {
        "label_smoothing": lambda here: t.label_smoothing(
            here(numbers(2, 3, 13)), here(TARGET), 0.1, 0
        ),
    },
    "decoding": {
        "sampling_filter": lambda here: d.sampling_filter(
            here(numbers(2, 13)), 5, 0.9, 0.8
        ),
    },
    "rnn": {
        "one_hot": lambda here: r.one_hot(here(TOKENS), 11),
        "bag_of_words": lambda here: r.bag_of_words(here(TOKENS), 11),
        "tf_idf": lambda here: r.tf_idf(here(numbers(5, 7).abs())),
        "MeanFNN": module(lambda: r.MeanFNN(11, 7, 3), TOKENS),
        "ConcatFNN": module(lambda: r.ConcatFNN(11, 7, 3, 5), TOKENS),
        "unroll": lambda here: r.unroll(
            here(numbers(2, 5, 3)),
            here(numbers(2, 7)),
            here(numbers(7, 3)),
            here(numbers(7, 7)),
            here(numbers(7)),
        ),
        "RNN": module(lambda: r.RNN(14, 7, 3), X),
        "LSTM": module(lambda: r.LSTM(14, 7), X),
        "gradient_to_inputs": lambda here: r.gradient_to_inputs(
            here(numbers(5, 3)),
            here(numbers(7)),
            here(numbers(7, 3)),
            here(numbers(7, 7)),
            here(numbers(7)),
        ),
    },
    "seq2seq": {
        "share_out": lambda here: s.share_out(
            here(numbers(2, 5)), here(TOKENS != 0)
        ),
        "dot_alignment": lambda here: s.dot_alignment(
            here(numbers(2, 7)), here(numbers(2, 5, 7)), here(TOKENS != 0)
        ),
        "AdditiveAlignment": module(
            lambda: s.AdditiveAlignment(7, 3, 11),
            numbers(2, 7),
            numbers(2, 5, 3),
        ),
        "Seq2Seq": module(
            lambda: s.Seq2Seq(11, 13, 7, 17, "dot"), TOKENS, TARGET
        ),
    },
    "efficiency": {
        "Int8Cache": appended(e.Int8Cache),
        "LatentAttention": module(lambda: e.LatentAttention(14, 2, 3), X),
        "WindowCache": appended(lambda: e.WindowCache(3)),
        "acceptance": lambda here: e.acceptance(
            here(numbers(5).softmax(-1)), here(numbers(5).flip(0).softmax(-1))
        ),
        "flash_attention": lambda here: e.flash_attention(
            *qkv(here), mask=shown(here), block=2
        ),
        "flash_attention, causal": lambda here: e.flash_attention(
            *[here(numbers(2, 5, 7))] * 3, causal=True, block=2
        ),
        "integer_linear": lambda here: e.integer_linear(
            here(numbers(3, 7)), e.quantize(here(numbers(5, 7)), 8)
        ),
        "merge": lambda here: e.merge(
            *[e.running(here(numbers(3, 5)), here(numbers(5, 7)))] * 2
        ),
        "online_attention": lambda here: e.online_attention(*qkv(here), 2),
        "online_softmax": lambda here: e.online_softmax(here(numbers(3, 5)), 2),
        "pack_int4": lambda here: e.pack_int4(here(INTEGERS)),
        "quantize": lambda here: e.quantize(
            here(numbers(5, 7)), 8
        ).dequantize(),
        "quantize_linears": quantized_model,
        "shared_heads_attention": lambda here: e.shared_heads_attention(
            here(numbers(2, 4, 3, 7)),
            here(numbers(2, 2, 5, 7)),
            here(numbers(2, 2, 5, 7)),
        ),
        "split_attention": lambda here: e.split_attention(*qkv(here), 2),
        "unpack_int4": lambda here: e.unpack_int4(
            e.pack_int4(here(INTEGERS)), 3
        ),
        "window_mask": lambda here: e.window_mask(
            5, 2, 1, device=here(X).device
        ),
    },
}
"""Chapter -> name -> a call."""

LOOKING = {
    "from_additive",
    "from_lengths",
    "from_ones",
    "to_lengths",
    "tf_idf",
    "label_smoothing",
    "integer_linear",
    "pack_int4",
    "quantize",
    "quantize_linears",
    "unpack_int4",
}
"""What looks at the values it is given, and so waits; none is in a forward."""

WRITTEN = {
    "greedy_decode": lambda here: d.greedy_decode(step(here), 1, 2, 7),
    "beam_search": lambda here: d.beam_search(step(here), 1, 2, 3, 7, 0.6),
    "translate": lambda here: d.translate(
        built(transformer).to(here(TOKENS).device), here(TOKENS), max_len=7
    ),
    "translate, in beams": lambda here: d.translate(
        built(transformer).to(here(TOKENS).device),
        here(TOKENS),
        max_len=7,
        beam=3,
    ),
    "translate, a stored model": lambda here: d.translate(
        models.load("zh-en").model.to(here(TOKENS).device),
        here(TOKENS),
        max_len=7,
    ),
    "translate, without a cache": lambda here: d.translate(
        built(transformer).to(here(TOKENS).device),
        here(TOKENS),
        max_len=7,
        cache=False,
    ),
}
"""What writes ids, and has to look whether they are the last."""
