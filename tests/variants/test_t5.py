"""T5 is Hugging Face's T5 with our weights, and learns what it is told to.

``transformers`` brings the oracle, of random weights; nothing is downloaded.
"""

from functools import partial
from itertools import product

import pytest
import torch
from torch import nn

from companion.contracts import check
from companion.data import phrasebook
from companion.data.batches import collate
from companion.data.grammar import likes
from companion.data.vocabulary import Vocabulary
from companion.decoding import (
    greedy_decode,
    next_token,
)
from companion.masks import combine_masks
from companion.training import fit, linear
from companion.transformer import Transformer, TransformerConfig
from companion.variants.spans import random_spans, span_corrupt
from companion.variants.t5 import T5, T5Config, UnscaledAttention

PAD, BOS, EOS = 0, 1, 2
# All sizes differ, so no axis can stand in for another. Two heads of 13.
BATCH, SRC, TGT, D_MODEL, NUM_HEADS, D_FF = 3, 23, 19, 26, 2, 11
VOCAB, LAYERS, BUCKETS, DISTANCE = 37, 3, 8, 17


# The model, beside Hugging Face's with our weights

# Their norm computes in 32 bits whatever it gets.
same = partial(torch.testing.assert_close, atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


def config(**changes):
    return T5Config(
        **{
            "vocab_size": VOCAB,
            "d_model": D_MODEL,
            "num_heads": NUM_HEADS,
            "d_ff": D_FF,
            "num_layers": LAYERS,
            "num_buckets": BUCKETS,
            "max_distance": DISTANCE,
            "dropout": 0.0,
        }
        | changes
    )


def model(**changes):
    """Tables large, and gains not 1, so that neither can be lost unseen."""
    made = T5(config(**changes)).double()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith("gain"):
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
            if "offset_bias" in name:
                parameter.normal_()
    return made.eval()


@pytest.fixture
def tokens():
    """Sources and targets, some of which end with padding."""
    src = torch.randint(1, VOCAB, (BATCH, SRC))
    tgt = torch.randint(1, VOCAB, (BATCH, TGT))
    src[1, 17:] = src[2, 3:] = tgt[0, 13:] = PAD
    return src, tgt


def their_name(name):
    """What Hugging Face calls one of our parameters."""
    if name == "tgt_embedding.weight":
        return "shared.weight"
    if name.endswith("norm.gain") and "layers" not in name:
        return name.replace("norm.gain", "final_layer_norm.weight")
    side, _, layer, part, *rest = name.split(".")
    order = ["attention", "cross", "feed_forward"]
    if side == "encoder":
        order.remove("cross")
    if part.endswith("residual"):
        place, last = order.index(part.removesuffix("_residual")), "layer_norm"
    elif part == "feed_forward":
        place = len(order) - 1
        last = f"DenseReluDense.w{'i' if rest[0] == 'up_proj' else 'o'}"
    else:
        place = int(part == "cross_attention")
        last = ("SelfAttention.", "EncDecAttention.")[place]
        linear = {f"{x}_proj": x for x in "qkv"} | {"out_proj": "o"}
        linear["offset_bias"] = "relative_attention_bias"
        last += linear[rest[0]]
    return f"{side}.block.{layer}.layer.{place}.{last}.weight"


def fresh(transformers, ours):
    """Their model of the sizes of ours."""
    sizes = ours.config
    theirs = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=sizes.vocab_size,
            d_model=sizes.d_model,
            d_kv=sizes.d_model // sizes.num_heads,
            d_ff=sizes.d_ff,
            num_layers=sizes.num_layers,
            num_heads=sizes.num_heads,
            relative_attention_num_buckets=sizes.num_buckets,
            relative_attention_max_distance=sizes.max_distance,
            feed_forward_proj="relu",
            tie_word_embeddings=True,
            dropout_rate=0.0,
            decoder_start_token_id=BOS,
            eos_token_id=EOS,
            attn_implementation="eager",
        )
    )
    return theirs.to(ours.tgt_embedding.weight.dtype).eval()


def copied(transformers, ours):
    """Their model, with our weights; a table of theirs is √d_model of ours."""
    theirs = fresh(transformers, ours)
    wanted = dict(theirs.named_parameters())
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            wanted.pop(their_name(name)).copy_(parameter * scale(ours, name))
    assert not wanted
    return theirs


def scale(ours, name):
    """How many times ours their parameter is."""
    if name == "tgt_embedding.weight":
        return ours.config.d_model**0.5
    return 1.0


def asked(theirs, src, tgt, **more):
    return theirs(
        input_ids=src,
        attention_mask=(src != PAD).long(),
        decoder_input_ids=tgt,
        decoder_attention_mask=(tgt != PAD).long(),
        **more,
    )


def test_states_logits_and_gradients_are_hugging_face_s(transformers, tokens):
    ours = model()
    theirs = copied(transformers, ours)
    expected, got = asked(theirs, *tokens), ours(*tokens)
    masks = combine_masks(*tokens, PAD)
    states = ours.encode(tokens[0], masks.src)
    same(states, expected.encoder_last_hidden_state)
    same(got, expected.logits)
    weight = torch.randn_like(got)
    (got * weight).sum().backward()
    (expected.logits * weight).sum().backward()
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        theirs = wanted[their_name(name)].grad
        same(parameter.grad, theirs * scale(ours, name))


def test_the_maps_are_hugging_face_s(transformers, tokens):
    ours = model()
    theirs = asked(copied(transformers, ours), *tokens, output_attentions=True)
    found = ours.maps(*tokens)
    for got, expected in (
        (found.src, theirs.encoder_attentions),
        (found.tgt, theirs.decoder_attentions),
        (found.cross, theirs.cross_attentions),
    ):
        same(torch.stack(got), torch.stack(expected))


# What is counted


def meta(build):
    with torch.device("meta"):
        return build()


def size_of(model):
    return sum(p.numel() for p in model.parameters())


def test_base_has_the_published_222_903_552_parameters(transformers):
    ours = meta(lambda: T5(T5Config.base()))
    theirs = transformers.T5Config(
        d_model=768,
        d_ff=3072,
        num_layers=12,
        num_heads=12,
        vocab_size=32_128,
        tie_word_embeddings=True,
    )
    d, d_ff, layers = 768, 3072, 12
    encoder = 4 * d * d + 2 * d * d_ff + 2 * d
    decoder = 8 * d * d + 2 * d * d_ff + 3 * d
    tables = 32_128 * d + 2 * 32 * 12  # Tokens; offsets, for each side.
    derived = tables + layers * (encoder + decoder) + 2 * d
    made = meta(lambda: transformers.T5ForConditionalGeneration(theirs))
    assert size_of(ours) == size_of(made) == derived == 222_903_552


def test_one_table_of_offsets_serves_a_stack_and_cross_attention_has_none():
    made = T5(config())
    tables = [name for name, _ in made.named_parameters() if "offset" in name]
    assert len(tables) == 2
    for stack in (made.encoder, made.decoder):
        shared = {layer.self_attention.offset_bias for layer in stack.layers}
        assert len(shared) == 1
    assert made.encoder.layers[0].self_attention.offset_bias is not (
        made.decoder.layers[0].self_attention.offset_bias
    )
    cross = [layer.cross_attention for layer in made.decoder.layers]
    assert all(attention.offset_bias is None for attention in cross)


def test_no_linear_map_and_no_norm_has_a_bias():
    names = [name for name, _ in T5(config()).named_parameters()]
    assert not [name for name in names if name.endswith("bias")]


# What it starts with


def test_it_starts_as_the_published_code_does(transformers):
    ours = T5(config(d_model=104, d_ff=208, num_buckets=64, max_distance=97))
    wanted = dict(fresh(transformers, ours).named_parameters())
    for name, parameter in ours.named_parameters():
        expected = float(wanted[their_name(name)].detach().std())
        got = float(parameter.detach().std() * scale(ours, name))
        if not expected:  # A gain: all of them are 1.
            assert got == 0, name
        # A few numbers do not spread as exactly as thousands do.
        room = 0.05 if parameter.numel() > 5000 else 0.25
        assert abs(got - expected) <= room * expected, name


def first_scores(attention, x):
    """The scores before the softmax, from the weights that it returns."""
    logs = attention.weights(x).detach().log()
    return logs - logs.mean(-1, keepdim=True)


def test_scores_start_at_a_variance_of_1_without_a_scale():
    width, heads = 128, 2
    x = torch.randn(7, 101, width)
    attention = UnscaledAttention(width, heads)
    found = {"Xavier alone": float(first_scores(attention, x).var())}
    smaller = T5(config(d_model=width, num_heads=heads)).decoder.layers[0]
    scores = first_scores(smaller.cross_attention, x)
    found["T5's start"] = float(scores.var())
    assert 0.85 < found["T5's start"] < 1.15
    assert 0.85 * 64 < found["Xavier alone"] < 1.15 * 64


def test_dividing_the_queries_once_is_scaling_the_scores(tokens):
    ours = model()
    attention = ours.decoder.layers[0].cross_attention
    other = nn.MultiheadAttention(
        D_MODEL, NUM_HEADS, bias=False, batch_first=True, dtype=torch.float64
    )
    scale = (D_MODEL // NUM_HEADS) ** 0.5
    parts = [attention.q_proj.weight * scale]
    parts += [attention.k_proj.weight, attention.v_proj.weight]
    with torch.no_grad():
        other.in_proj_weight.copy_(torch.cat(parts))
        other.out_proj.weight.copy_(attention.out_proj.weight)
    x = torch.randn(BATCH, TGT, D_MODEL, dtype=torch.float64)
    memory = torch.randn(BATCH, SRC, D_MODEL, dtype=torch.float64)
    expected = other(x, memory, memory, need_weights=False)[0]
    torch.testing.assert_close(attention(x, key=memory), expected)


# What must not matter


def test_only_offsets_count_so_padding_may_stand_on_the_left(tokens):
    ours = model()
    src, tgt = tokens[0][:1, :7], tokens[1][:1, :5]
    longer = torch.cat([torch.full((1, 4), PAD), src], dim=1)
    torch.testing.assert_close(ours(longer, tgt), ours(src, tgt))


def test_the_order_of_the_source_is_told_by_the_bias_alone(tokens):
    ours = model()
    src, tgt = tokens[0][:1], tokens[1][:1, :13]
    flipped = ours(src.flip(1), tgt)
    assert (flipped - ours(src, tgt)).abs().max() > 1e-3
    with torch.no_grad():
        ours.encoder.layers[0].self_attention.offset_bias.weight.zero_()
    torch.testing.assert_close(ours(src.flip(1), tgt), ours(src, tgt))


def test_a_query_that_may_see_nobody_gathers_nothing():
    attention = model().encoder.layers[0].self_attention
    x = torch.randn(BATCH, 7, D_MODEL, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(BATCH, 1, 7, 7, dtype=torch.bool)
    mask[1, :, 5] = False
    out = attention(x, mask)
    assert not out[1, 5].any()
    assert not attention.weights(x, mask)[1, :, 5].any()
    out.sum().backward()
    assert x.grad.isfinite().all()


def test_it_is_a_translation_model():
    made = T5(T5Config.tiny(vocab_size=41)).eval()
    assert check("translation_model", made).passed


def test_half_precision_trains_it_too(tokens):
    src, tgt = tokens
    made = T5(config())
    pair = [(src, tgt)] * 3
    steps = fit(made, pair, rate=lambda _: 1e-2, dtype=torch.bfloat16)
    assert steps[-1].loss < steps[0].loss


# What can go wrong


@pytest.mark.bad_input
def test_a_config_that_makes_no_model_is_named(tokens):
    with pytest.raises(TypeError, match="config: expected a T5Config, got"):
        T5(TransformerConfig.tiny(5, 5))
    with pytest.raises(TypeError, match="pad: expected an int, got None"):
        config(pad=None)
    with pytest.raises(ValueError, match="pad: expected an id from 0 to below"):
        config(pad=VOCAB)
    with pytest.raises(ValueError, match="num_heads: expected a divisor"):
        config(num_heads=3)
    with pytest.raises(ValueError, match="num_buckets: expected an even"):
        T5(config(num_buckets=7))


@pytest.mark.bad_input
def test_tokens_that_it_cannot_read_are_named(tokens):
    src, tgt = tokens
    made = model()
    with pytest.raises(ValueError, match="src: expected ids from 0 to 36"):
        made(src + 1 + VOCAB - src.max(), tgt)
    with pytest.raises(ValueError, match="tgt: expected ids from 0 to 36"):
        made(src, tgt + 1 + VOCAB - tgt.max())
    with pytest.raises(TypeError, match="expected the class EncoderDecoder"):
        next_token(nn.Linear(2, 3), src[:1])


# One sentence at a time


@pytest.mark.parametrize("row", range(BATCH))
def test_the_next_token_is_the_last_row_of_the_model_and_never_padding(
    tokens, row
):
    ours, src = model(dropout=0.5), tokens[0][row : row + 1]
    rows = tokens[1][1:, :11]
    expected = ours(src.expand(2, -1), rows)[:, -1]
    expected[:, PAD] = -torch.inf
    # Dropout is off, whatever the mode of the model.
    step = next_token(ours.train(), src)
    torch.testing.assert_close(step(rows), expected)


@pytest.mark.parametrize("kind", [T5, Transformer])
def test_a_source_is_read_once_for_all_steps(kind, tokens):
    made = (
        T5(config())
        if kind is T5
        else Transformer(TransformerConfig.tiny(VOCAB, VOCAB))
    )
    calls = []
    made.encoder.register_forward_hook(lambda *_: calls.append(1))
    step = next_token(made.train(), tokens[0][:1])
    for width in (1, 2, 3):
        step(tokens[1][:2, :width])
    assert calls == [1]
    assert made.training


# Trained


def trained(made, examples, *, seed, steps, size, peak):
    """``made`` after so many batches of what ``examples(generator)`` says."""
    generator = torch.Generator().manual_seed(seed)
    batches = [
        tuple(
            collate(side)
            for side in zip(
                *[examples(generator) for _ in range(size)], strict=True
            )
        )
        for _ in range(steps)
    ]
    fit(made, batches, rate=lambda s: linear(s, steps, peak=peak, warmup=30))
    return made.eval()


def answer(made, source, most=14):
    return greedy_decode(
        next_token(made, torch.tensor([source])), BOS, EOS, most
    )


@pytest.fixture(scope="module")
def sentences():
    """What one likes: to train on, and to test on; and one vocabulary."""
    pairs = [
        phrasebook.Pair(tuple(zh), tuple(en.split())) for zh, en in likes()
    ]
    words = sorted({word for pair in pairs for side in pair for word in side})
    vocabulary = Vocabulary(["<mask>", "translate", "reverse", *words])
    return *phrasebook.split(pairs), vocabulary


def task(pair, prefix, vocabulary):
    """The ids of a source with its task in front, and of its target."""
    said = pair.en if prefix == "translate" else pair.zh[::-1]
    source = [*vocabulary.encode([prefix, *pair.zh]), EOS]
    return source, [BOS, *vocabulary.encode(said), EOS]


@pytest.fixture(scope="module")
def linguist(sentences):
    train, _, vocabulary = sentences
    torch.manual_seed(0)
    made = T5(
        T5Config(
            vocab_size=len(vocabulary),
            d_model=64,
            num_heads=4,
            d_ff=128,
            num_layers=1,
            num_buckets=8,
            max_distance=16,
            dropout=0.0,
        )
    )

    def examples(generator):
        place, kind = torch.randint(2**30, (2,), generator=generator).tolist()
        prefix = ("translate", "reverse")[kind % 2]
        return task(train[place % len(train)], prefix, vocabulary)

    return trained(made, examples, seed=0, steps=200, size=32, peak=5e-3)


@pytest.mark.parametrize("prefix", ["translate", "reverse"])
def test_one_model_does_two_tasks_and_the_prefix_says_which(
    linguist, sentences, prefix
):
    _, test, vocabulary = sentences
    asked = [task(pair, prefix, vocabulary) for pair in test[:30]]
    right = sum(answer(linguist, s) == t[1:] for s, t in asked)
    assert right >= 27


def test_greedy_sentences_are_hugging_face_s(transformers, linguist, sentences):
    _, test, vocabulary = sentences
    theirs = copied(transformers, linguist)
    for pair, prefix in product(test[:5], ["translate", "reverse"]):
        source, _ = task(pair, prefix, vocabulary)
        expected = theirs.generate(
            torch.tensor([source]),
            attention_mask=torch.ones(1, len(source)),
            max_new_tokens=14,
            do_sample=False,
        )
        assert [BOS, *answer(linguist, source)] == expected[0].tolist()


def test_it_reverses_what_it_has_seen_reversed_and_nothing_else(
    linguist, sentences
):
    _, test, vocabulary = sentences
    english = [vocabulary.encode(pair.en) for pair in test[:20]]
    prefix = vocabulary.encode(["reverse"])
    right = sum(
        answer(linguist, [*prefix, *text, EOS]) == [*text[::-1], EOS]
        for text in english
    )
    assert right <= 2


def test_it_fills_gaps_of_a_length_that_nobody_tells():
    words, first = 20, 27

    def examples(generator):
        draw = torch.rand(2, generator=generator).tolist()
        length = 7 + int(5 * draw[0])
        begin = 4 + int((words - length + 1) * draw[1])
        text = torch.arange(begin, begin + length)
        dropped = random_spans(length, generator, share=0.3)
        source, target = span_corrupt(text, dropped, first)
        return [*source.tolist(), EOS], [BOS, *target.tolist(), EOS]

    torch.manual_seed(0)
    made = T5(
        T5Config(
            vocab_size=first + 1,
            d_model=32,
            num_heads=4,
            d_ff=64,
            num_layers=1,
            num_buckets=8,
            max_distance=16,
            dropout=0.0,
        )
    )
    trained(made, examples, seed=0, steps=150, size=64, peak=8e-3)
    generator = torch.Generator().manual_seed(1)
    found = {True: [], False: []}
    for source, target in (examples(generator) for _ in range(80)):
        inside = first not in (source[0], source[-2])
        found[inside].append(answer(made, source, 9) == target[1:])
    assert sum(found[True]) >= 0.85 * len(found[True])
    # At an edge nothing tells how long the gap is.
    assert sum(found[False]) <= 0.8 * len(found[False])
