"""Whatever the sizes and numbers: rules of chapter 12."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    HALVES,
    SEEDS,
    SIZES,
    generator,
    ids,
    masks,
    normal,
    padded,
    sentences,
)

from companion.attention import scaled_dot_product_attention
from companion.transformer import EncoderDecoder
from companion.variants import (
    BART,
    BERT,
    BOS,
    EOS,
    FIRST_WORD,
    GPT,
    MASK,
    PAD,
    T5,
    BARTConfig,
    BERTConfig,
    Classifier,
    Classifying,
    GPTConfig,
    GroupedQueryAttention,
    MaskedModelling,
    PreTraining,
    RMSNorm,
    SwiGLU,
    T5Config,
    bart_noise,
    cache_numbers,
    cached_step,
    delete,
    generate,
    grouped_query_attention,
    infill,
    mask_each,
    mask_tokens,
    permute_sentences,
    random_spans,
    rms_norm,
    rotate,
    sentence_pairs,
    span_corrupt,
    span_restore,
    today,
)

VOCAB, STOP = 23, 7
SHARES = st.floats(0, 1)
TEXTS = ids(st.integers(1, 30), low=FIRST_WORD, high=VOCAB)
close = torch.testing.assert_close


@st.composite
def models(draw, model, config, parts=None, **more):
    """A small model in evaluation, in 64 bits."""
    torch.manual_seed(draw(SEEDS))
    heads = draw(FEW)
    sizes = {"d_model": 2 * heads * draw(FEW), "num_heads": heads}
    sizes |= {"d_ff": draw(SIZES), "num_layers": draw(st.integers(1, 2))}
    made = config(vocab_size=VOCAB, **sizes, **more)
    chosen = () if parts is None else (draw(parts),)
    return model(made, *chosen).double().eval()


def bert():
    """BERTs."""
    return models(BERT, BERTConfig, max_len=16)


def gpt():
    """GPTs, of 2019 and with the parts of today."""
    old = models(GPT, GPTConfig, max_len=16)
    new = models(GPT, GPTConfig, st.just(1).map(today), max_len=None, pad=PAD)
    return st.one_of(old, new)


def readers():
    """T5s and BARTs."""
    buckets = {"num_buckets": 4, "max_distance": 5}
    return st.one_of(
        models(T5, T5Config, **buckets), models(BART, BARTConfig, max_len=16)
    )


# Parts of today.


@given(normal(FEW, SIZES, SIZES), st.floats(0.1, 9), SEEDS)
def test_rms_norm_forgets_the_scale_and_agrees_with_pytorch(x, scale, seed):
    torch.manual_seed(seed)
    gain = torch.randn_like(x[0, 0])
    theirs = F.rms_norm(x, gain.shape, gain, 1e-6)
    close(rms_norm(x, gain), theirs)
    layer = RMSNorm(len(gain)).double()
    layer.gain.data = gain
    close(layer(x), theirs)
    assume((x.square().mean(-1) > 1e-3).all())
    close(rms_norm(scale * x, gain, 1e-12), rms_norm(x, gain, 1e-12))


@given(HALVES, SIZES, st.floats(0, 300))
def test_rms_norm_is_finite_in_half_precision(dtype, width, scale):
    x = (scale * torch.linspace(-1, 1, width)).to(dtype)
    normal_x = rms_norm(x, torch.ones_like(x))
    assert normal_x.dtype == dtype
    assert normal_x.isfinite().all()


@given(normal(FEW, SIZES, SIZES), SIZES)
def test_a_gate_that_is_shut_lets_nothing_through(x, d_ff):
    network = SwiGLU(x.shape[-1], d_ff).double()
    up, down = network.up_proj.weight, network.down_proj.weight
    gate = F.silu(x @ network.gate_proj.weight.T)
    close(network(x), (gate * (x @ up.T)) @ down.T)
    network.gate_proj.weight.data.zero_()
    assert not network(x).any()


@given(FEW, FEW, FEW, SIZES, SIZES, st.data())
def test_shared_keys_and_values_are_the_same_ones_repeated(
    batch, kv_heads, group, query, key, data
):
    heads = kv_heads * group
    q = data.draw(normal(batch, heads, query, 4))
    k, v = (data.draw(normal(batch, kv_heads, key, n)) for n in (4, 3))
    mask = data.draw(masks(batch, 1, query, key))
    many = (x.repeat_interleave(group, dim=1) for x in (k, v))
    close(
        grouped_query_attention(q, k, v, mask),
        scaled_dot_product_attention(q, *many, mask),
    )


@given(FEW, FEW, FEW, st.booleans(), SIZES, SEEDS)
def test_grouped_heads_show_the_weights_they_gather_by(
    kv_heads, group, pairs, rotary, seq, seed
):
    torch.manual_seed(seed)
    heads = kv_heads * group
    d_model = 2 * pairs * heads
    how = {"num_kv_heads": kv_heads, "rotary": rotary}
    attend = GroupedQueryAttention(d_model, heads, **how).double()
    x = torch.randn(2, seq, d_model, dtype=torch.float64)
    weights = attend.weights(x)
    close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    v = attend.values(x).repeat_interleave(group, dim=1)
    gathered = (weights @ v).transpose(1, 2).flatten(-2)
    close(attend(x), attend.out_proj(gathered))
    if not rotary:
        close(attend(x.flip(1)), attend(x).flip(1))


@given(SIZES, SIZES, SIZES, SIZES)
def test_a_cache_grows_with_each_of_its_sizes(layers, heads, width, length):
    sizes = layers, heads, width, length
    stored = cache_numbers(*sizes)
    assert stored == 2 * layers * heads * width * length
    for i in range(4):
        twice = [n * (1 + (i == j)) for j, n in enumerate(sizes)]
        assert cache_numbers(*twice) == 2 * stored


@given(FEW)
def test_the_parts_of_today_have_no_bias(kv_heads):
    parts = today(kv_heads)
    width, heads = 4 * kv_heads, 2 * kv_heads
    made = parts.attention(width, heads), parts.cross_attention(width, heads)
    for part in (*made, parts.feed_forward(width, 3), parts.norm(width)):
        names = [name for name, _ in part.named_parameters()]
        assert not any("bias" in name for name in names)


# Models.


@given(bert(), st.data(), FEW)
def test_padding_reaches_no_state_of_bert(model, data, more):
    tokens = data.draw(sentences(FEW, SIZES, low=BOS, high=VOCAB))
    segments = data.draw(ids(*tokens.shape, low=0, high=2))
    states = model.states(tokens, segments)
    longer = model.states(padded(tokens, more), padded(segments, more))
    close(longer[:, : tokens.shape[1]], states)
    close(model(tokens, segments), model.logits(states))
    close(model.pooled(longer), model.pooled(states))
    assert (model.pooled(states).abs() <= 1).all()
    assert model.next_logits(states).shape == (len(tokens), 2)


@given(gpt(), st.data())
def test_what_a_gpt_says_depends_on_no_later_word(model, data):
    tokens = data.draw(ids(FEW, SIZES, low=BOS, high=VOCAB))
    cut = data.draw(st.integers(1, tokens.shape[1]))
    close(model(tokens[:, :cut]), model(tokens)[:, :cut])


@given(gpt(), st.data())
def test_a_gpt_with_stored_keys_says_the_same_in_any_order(model, data):
    step = cached_step(model)
    tokens = data.draw(ids(2, SIZES, low=BOS, high=VOCAB))
    # Going on, starting again, going back: whatever a search asks.
    for length in data.draw(
        st.lists(st.integers(1, tokens.shape[1]), max_size=5)
    ):
        said = step(tokens[:, :length])
        logits = model(tokens[:, :length])[:, -1]
        if model.config.pad is not None:
            logits[:, PAD] = -torch.inf
        close(said, logits)


@given(gpt(), st.data(), SIZES, SEEDS)
def test_what_is_generated_is_the_same_from_the_same_seed(
    model, data, max_len, seed
):
    prompt = data.draw(ids(SIZES, low=FIRST_WORD, high=VOCAB)).tolist()
    how = {"eos": EOS, "top_k": 5}
    said, again = (
        generate(model, prompt, max_len, generator=generator(seed), **how)
        for _ in range(2)
    )
    assert said == again
    assert EOS not in said[:-1]
    assert len(said) == max_len or said[-1] == EOS


@given(readers(), st.data(), FEW)
def test_t5_and_bart_see_neither_padding_nor_future(model, data, more):
    assert isinstance(model, EncoderDecoder)
    batch = data.draw(FEW)
    src, tgt = (
        data.draw(sentences(batch, SIZES, low=BOS, high=VOCAB)) for _ in "st"
    )
    logits = model(src, tgt)
    longer = model(padded(src, more), padded(tgt, more))
    close(longer[:, : tgt.shape[1]][tgt != 0], logits[tgt != 0])
    close(model(src, tgt[:, :1]), logits[:, :1])


# What they are trained for.


@given(bert(), st.data())
def test_the_masked_loss_is_that_of_the_chosen_tokens_alone(model, data):
    inputs = data.draw(ids(FEW, SIZES, low=BOS, high=VOCAB))
    target = data.draw(sentences(*inputs.shape, low=FIRST_WORD, high=VOCAB))
    total, count = MaskedModelling(model)(inputs, target)
    logits = model(inputs).flatten(0, 1)
    wanted = F.cross_entropy(
        logits, target.flatten(), ignore_index=PAD, reduction="sum"
    )
    close(total, wanted, atol=1e-4, rtol=1e-4)
    assert count == MaskedModelling(model).count(inputs, target)
    segments = torch.zeros_like(inputs)
    is_next = data.draw(masks(len(inputs), somebody=False))
    both, same = PreTraining(model)(inputs, segments, target, is_next)
    scores = model.next_logits(model.states(inputs, segments))
    pairs = F.cross_entropy(scores, is_next.long())
    close(both, total + count * pairs, atol=1e-4, rtol=1e-4)
    assert same == count == PreTraining(model).count(inputs, segments, target)


@given(bert(), SIZES, st.data())
def test_a_classifier_is_asked_once_an_example(model, classes, data):
    torch.manual_seed(0)
    classifier = Classifier(model, classes).double().eval()
    tokens = data.draw(ids(FEW, SIZES, low=BOS, high=VOCAB))
    answers = data.draw(ids(len(tokens), low=0, high=classes))
    scores = classifier(tokens)
    close(classifier(tokens[-1:]), scores[-1:])
    objective = Classifying(classifier)
    total, count = objective(tokens, answers)
    wanted = F.cross_entropy(scores, answers, reduction="sum")
    close(total, wanted.float(), atol=1e-4, rtol=1e-4)
    assert count == objective.count(tokens) == len(tokens)


# What they read.


@given(ids(FEW, SIZES, low=0, high=VOCAB), SHARES, SEEDS)
def test_masking_changes_nothing_that_it_does_not_ask_for(tokens, share, seed):
    how = {"vocab_size": VOCAB, "share": share}
    read, target = mask_tokens(tokens, generator(seed), **how)
    chosen = target != PAD
    assert torch.equal(read[~chosen], tokens[~chosen])
    assert torch.equal(target[chosen], tokens[chosen])
    assert (tokens[chosen] >= FIRST_WORD).all()
    assert ((read >= FIRST_WORD) | (read == MASK) | ~chosen).all()
    assert share > 0 or not chosen.any()
    assert share < 1 or torch.equal(chosen, tokens >= FIRST_WORD)


@given(
    st.lists(
        st.lists(
            st.lists(st.integers(FIRST_WORD, 9), min_size=1, max_size=3),
            min_size=1,
            max_size=4,
        ),
        min_size=2,
        max_size=4,
    ),
    SEEDS,
)
def test_a_pair_is_what_comes_next_or_of_another_document(documents, seed):
    assume(max(map(len, documents)) > 1)
    rows, segments, answers = sentence_pairs(documents, generator(seed))
    firsts = [
        (i, j) for i, d in enumerate(documents) for j in range(len(d) - 1)
    ]
    assert len(rows) == len(answers) == len(firsts)
    for (i, j), row, sides, is_next in zip(
        firsts, rows.tolist(), segments, answers.tolist(), strict=True
    ):
        first, following = documents[i][j : j + 2]
        cut = len(first) + 2
        assert row[:cut] == [BOS, *first, EOS]
        second = row[cut : row.index(EOS, cut)]
        others = [s for n, d in enumerate(documents) if n != i for s in d]
        assert second == following if is_next else second in others
        assert sides.sum() == len(second) + 1


@given(TEXTS, SHARES, st.floats(0.5, 5), SEEDS)
def test_no_noise_invents_a_word_or_puts_two_in_another_order(
    text, share, mean, seed
):
    def kept(noisy):
        return noisy[noisy != MASK].tolist()

    def follows(part):
        rest = iter(text.tolist())
        return all(token in rest for token in part)

    hidden = mask_each(text, generator(seed), share=share)
    assert len(hidden) == len(text)
    assert ((hidden == text) | (hidden == MASK)).all()
    assert follows(kept(delete(text, generator(seed), share=share)))
    filled = infill(text, generator(seed), share=share, mean=mean)
    words = kept(filled)
    assert follows(words)
    gone = max(round(share * len(text)), int(share > 0))
    assert len(words) == len(text) - gone
    assert MASK in filled or not gone


@given(TEXTS, SEEDS)
def test_rotated_or_permuted_a_text_has_the_same_words(text, seed):
    turned = rotate(text, generator(seed))
    twice = torch.cat([text, text]).tolist()
    places = range(len(text))
    assert any(turned.tolist() == twice[i : i + len(text)] for i in places)
    moved = permute_sentences(text, generator(seed), stop=STOP)
    assert sorted(moved.tolist()) == sorted(text.tolist())
    noisy, whole = bart_noise(text, generator(seed), stop=STOP, share=0.0)
    assert torch.equal(whole, text)
    assert torch.equal(noisy, moved)


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.floats(1, 6), SEEDS)
def test_random_spans_drop_as_much_as_they_should(length, share, mean, seed):
    dropped = random_spans(length, generator(seed), share=share, mean=mean)
    gone = min(max(round(length * share), 1), length - 1)
    assert dropped.sum() == gone
    begins = dropped.clone()
    begins[1:] &= ~dropped[:-1]
    wanted = min(max(round(gone / mean), 1), length - gone + 1)
    assert begins.sum() == wanted


@given(TEXTS, st.data())
def test_a_corrupted_text_can_be_restored(text, data):
    dropped = data.draw(masks(len(text), somebody=False))
    last = VOCAB + len(text)  # As many sentinels as there could be gaps.
    source, target = span_corrupt(text, dropped, last)
    assert torch.equal(span_restore(source, target, last), text)
    assert (
        len(source) + len(target) == len(text) + 2 * (source >= VOCAB).sum() + 1
    )


@pytest.mark.bad_input
@given(TEXTS, st.one_of(st.floats(1.001, 9), st.floats(-9, -0.001)), SEEDS)
def test_a_share_that_is_none_is_refused_by_every_noise(text, share, seed):
    luck = generator(seed)
    for noise in (
        lambda: mask_each(text, luck, share=share),
        lambda: delete(text, luck, share=share),
        lambda: infill(text, luck, share=share),
        lambda: mask_tokens(text, luck, vocab_size=VOCAB, share=share),
        lambda: random_spans(9, luck, share=share),
    ):
        with pytest.raises(ValueError, match=r"^share: expected"):
            noise()
