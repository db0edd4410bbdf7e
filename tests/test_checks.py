"""Arguments are checked once, where a user calls: with one clear error."""

import inspect
import re
import sys
import threading

import pytest
import torch
from torch import nn

from companion import (
    attention,
    blocks,
    checks,
    decoding,
    masks,
    multihead,
    positions,
    transformer,
    variants,
)
from companion.transformer import Transformer, TransformerConfig

X, IDS, WORDS = torch.ones(2, 3, 4), torch.ones(2, 3).long(), torch.ones(5) > 0
TEXT, DRAWS = torch.arange(4, 9), torch.Generator()
MODEL = Transformer(TransformerConfig.tiny(7, 7))
SMALL = {"vocab_size": 7, "d_model": 8, "num_heads": 2, "d_ff": 3}
SMALL |= {"num_layers": 1}


def gpt():
    return variants.GPT(variants.GPTConfig(**SMALL))


def bert():
    return variants.BERT(variants.BERTConfig(**SMALL))


# What stands at each name is called wrongly; the error begins with a name.
WRONG = {
    "attention": {
        "softmax": ("scores", lambda f: f(IDS)),
        "softmax_jacobian": ("weights", lambda f: f(IDS)),
        "masked_softmax": ("mask", lambda f: f(X, X)),
        "attention_weights": ("k", lambda f: f(X, X.double())),
        "scaled_dot_product_attention": ("v", lambda f: f(X, X, X[:, :1])),
    },
    "multihead": {
        "split_heads": ("num_heads", lambda f: f(X, 3)),
        "merge_heads": ("x", lambda f: f(X[0])),
        "MultiHeadAttention": ("x", lambda f: f(4, 2)(X[0])),
    },
    "positions": {
        "sinusoidal": ("length", lambda f: f(0, 4)),
        "sinusoids": ("positions", lambda f: f([1], 4)),
        "frequencies": ("width", lambda f: f(0)),
        "SinusoidalPositions": ("x", lambda f: f(5)(X)),
        "LearnedPositions": ("x", lambda f: f(2, 4)(X)),
        "TokenEmbedding": ("tokens", lambda f: f(1, 4)(IDS)),
        "rotate": ("x", lambda f: f(X[..., :3], torch.arange(3))),
        "rotate_complex": ("positions", lambda f: f(X, torch.arange(2))),
        "offsets": ("length", lambda f: f(0)),
        "biased_weights": ("bias", lambda f: f(X, X, None)),
        "biased_attention": ("v", lambda f: f(X, X, X[:1], X.mean())),
        "alibi_slopes": ("num_heads", lambda f: f(0)),
        "alibi_bias": ("length", lambda f: f(2, 0)),
        "t5_bucket": ("offset", lambda f: f(X)),
        "T5Bias": ("length", lambda f: f(2)(0)),
        "Shaw": ("q", lambda f: f(3, 2)(X, X, X)),
        "TransformerXL": ("q", lambda f: f(4, 3, 4)(X, X, X)),
        "shift": ("by_distance", lambda f: f(X)),
    },
    "masks": {
        "causal_mask": ("length", lambda f: f(0)),
        "padding_mask": ("tokens", lambda f: f(X, 0)),
        "combine_masks": ("tgt_tokens", lambda f: f(IDS, IDS[:1], 0)),
        "from_additive": ("bias", lambda f: f(IDS)),
        "from_lengths": ("lengths", lambda f: f(X, 3)),
        "from_ones": ("ones", lambda f: f(X)),
        "from_torch_padding": ("hidden", lambda f: f(IDS)),
        "to_additive": ("mask", lambda f: f(X)),
        "to_keras": ("mask", lambda f: f(X)),
        "to_lengths": ("mask", lambda f: f(X)),
        "to_ones": ("mask", lambda f: f(X)),
        "to_torch_attention": ("mask", lambda f: f(X, 2)),
        "to_torch_padding": ("mask", lambda f: f(X)),
        "to_torch_transformer": ("masks", lambda f: f(X, 2)),
    },
    "blocks": {
        "layer_norm": ("gain", lambda f: f(X, X[0, 0, :1], X[0, 0])),
        "LayerNorm": ("x", lambda f: f(5)(X)),
        "FeedForward": ("x", lambda f: f(5, 3)(X)),
        "Residual": ("sublayer", lambda f: f(4)(X, lambda y: y[..., :1])),
        "EncoderLayer": ("x", lambda f: f(6, 2, 3)(X)),
    },
    "transformer": {
        "Transformer": ("src tokens", lambda f: MODEL(IDS + 6, IDS)),
        "LanguageModel": ("config", lambda f: f(SMALL)),
        "LanguageModelConfig": ("pad", lambda f: f(**SMALL, pad=7)),
        "TransformerConfig": (
            "dropout",
            lambda f: f(src_vocab_size=7, tgt_vocab_size=7, dropout=1.0),
        ),
        "StackConfig": ("d_ff", lambda f: f(d_ff=0)),
        "Encoder": ("x", lambda f: f(transformer.StackConfig())(X)),
        "Decoder": ("x", lambda f: f(transformer.StackConfig())(X, X)),
        "DecoderLayer": ("memory", lambda f: f(4, 2, 3)(X, X[:1])),
        "shift_right": ("tokens", lambda f: f(X, 1)),
    },
    "decoding": {
        "StepDecoder": ("src", lambda f: f(MODEL, X)),
        "beam_search": ("beam", lambda f: f(None, 1, 2, 0, 5, 0.6)),
        "bleu": ("references", lambda f: f([["a"]], [])),
        "cached_decode": ("tgt tokens", lambda f: f(MODEL, IDS, IDS + 6)),
        "greedy_decode": ("max_len", lambda f: f(None, 1, 2, 0)),
        "next_token": ("src", lambda f: f(MODEL, IDS)),
        "sample": ("generator", lambda f: f(None, 1, 2, 3, generator=1)),
        "sampling_filter": ("top_p", lambda f: f(X, None, 2.0, None)),
        "translate": ("src", lambda f: f(MODEL, IDS * 0, max_len=3)),
    },
    "variants": {
        "BART": ("config", lambda f: f(SMALL)),
        "BARTConfig": ("pad", lambda f: f(vocab_size=7, pad=None)),
        "BERT": ("tokens", lambda f: bert()(IDS + 6)),
        "BERTConfig": ("max_len", lambda f: f(vocab_size=7, max_len=0)),
        "Classifier": ("num_classes", lambda f: f(bert(), 0)),
        "Classifying": ("model", lambda f: f(bert())),
        "GPT": ("tokens", lambda f: gpt()(IDS + 6)),
        "GPTConfig": ("max_len", lambda f: f(vocab_size=7, max_len=0)),
        "GroupedQueryAttention": (
            "num_kv_heads",
            lambda f: f(8, 4, num_kv_heads=3),
        ),
        "MaskedModelling": ("model", lambda f: f(gpt())),
        "PreTraining": ("model", lambda f: f(gpt())),
        "RMSNorm": ("x", lambda f: f(5)(X)),
        "SwiGLU": ("x", lambda f: f(5, 3)(X)),
        "T5": ("config", lambda f: f(SMALL)),
        "T5Config": ("pad", lambda f: f(vocab_size=7, pad=None)),
        "bart_noise": ("text", lambda f: f(X, DRAWS, stop=5)),
        "cache_numbers": ("length", lambda f: f(1, 1, 1, 0)),
        "cached_step": ("model", lambda f: f(bert())),
        "delete": ("text", lambda f: f(X, DRAWS)),
        "generate": (
            "prompt",
            lambda f: f(gpt(), [], 3, eos=2, generator=DRAWS),
        ),
        "grouped_query_attention": ("q", lambda f: f(X, X, X)),
        "infill": ("mean", lambda f: f(TEXT, DRAWS, mean=0)),
        "mask_each": ("share", lambda f: f(TEXT, DRAWS, share=2)),
        "mask_tokens": ("tokens", lambda f: f(X, DRAWS, vocab_size=7)),
        "permute_sentences": ("stop", lambda f: f(TEXT, DRAWS, stop=1)),
        "random_spans": ("length", lambda f: f(1, DRAWS)),
        "rms_norm": ("gain", lambda f: f(X, X[0, 0, :1])),
        "rotate": ("generator", lambda f: f(TEXT, None)),
        "sentence_pairs": ("documents", lambda f: f([[[5]]], DRAWS)),
        "span_corrupt": ("dropped", lambda f: f(TEXT, TEXT, 20)),
        "span_restore": ("target", lambda f: f(TEXT, TEXT * 1.0, 20)),
        "today": ("num_kv_heads", lambda f: f(0)),
    },
}
CHAPTERS = {
    "attention": attention,
    "multihead": multihead,
    "positions": positions,
    "masks": masks,
    "blocks": blocks,
    "transformer": transformer,
    "decoding": decoding,
    "variants": variants,
}
# These take nothing from a user that could be wrong.
TRUSTING = {
    "CAUSAL", "Causal", "KVCache", "fused_attention", "mask_tensor", "PARTS",
    "Parts", "Dropout", "Masks", "Maps", "CausalModel", "EncoderDecoder",
    "length_penalty", "ngrams", "BOS", "EOS", "FIRST_WORD", "MASK", "PAD",
}  # fmt: skip
CASES = [(c, name) for c, names in WRONG.items() for name in names]


@pytest.mark.bad_input
@pytest.mark.parametrize(("chapter", "name"), CASES, ids=".".join)
def test_what_is_called_wrongly_names_the_argument_and_what_came(chapter, name):
    argument, call = WRONG[chapter][name]
    public = getattr(CHAPTERS[chapter], name)
    with pytest.raises((TypeError, ValueError)) as error:
        call(public)
    said = str(error.value)
    assert re.match(rf"{argument}\b", said), said
    assert "expected" in said
    assert "got" in said


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_public_name_of_a_chapter_is_called_wrongly(chapter):
    public = set(CHAPTERS[chapter].__all__)
    assert public - TRUSTING == set(WRONG[chapter])


def checks_in(call):
    """How many calls of a check function ``call()`` makes."""
    names = []

    def watch(frame, event, argument):
        if event == "call":
            code = frame.f_code
            if "companion" in code.co_filename and re.match(
                r"_?check_", code.co_name
            ):
                names.append(code.co_name)

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return names


@pytest.mark.once
def test_a_forward_pass_of_the_base_model_makes_a_handful_of_checks():
    model = Transformer(TransformerConfig.base(31)).eval()
    ids = torch.ones(2, 5).long()
    with torch.no_grad():
        made = checks_in(lambda: model(ids, ids))
    assert 3 <= len(made) <= 12, made


@pytest.mark.once
def test_a_step_of_decoding_checks_nothing():
    ids = torch.ones(2, 5).long()
    few, many = (
        len(checks_in(lambda n=n: decoding.translate(MODEL, ids, max_len=n)))
        for n in (1, 9)
    )
    assert few == many <= 12


def test_checks_are_on_again_after_an_error_inside_a_model():
    def fail(*_):
        raise KeyError

    hook = MODEL.encoder.layers[0].register_forward_pre_hook(fail)
    with hook, pytest.raises(KeyError):
        MODEL(IDS, IDS)
    assert checks.checking()


def test_another_thread_checks_while_this_one_trusts():
    seen = []
    with checks.trusting():
        assert not checks.checking()
        other = threading.Thread(target=lambda: seen.append(checks.checking()))
        other.start()
        other.join()
    assert seen == [True]
    assert checks.checking()


def test_there_is_one_verb_and_one_place_for_checks():
    for name, function in inspect.getmembers(checks, inspect.isfunction):
        if function.__module__ == "companion.checks":
            assert name.startswith(("check", "_")) or name in (
                "describe", "is_whole", "trusting",
            )  # fmt: skip


@pytest.mark.bad_input
def test_a_model_of_the_user_s_own_is_a_user():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = multihead.MultiHeadAttention(4, 2)

        def forward(self, x, mask):
            return self.attention(x, mask)

    with pytest.raises(TypeError, match="mask: expected a boolean tensor"):
        Own()(X, torch.ones(3, 3))
