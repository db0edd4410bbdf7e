"""Whatever the sizes and numbers: rules of chapter 11."""

import itertools

import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    SEEDS,
    SIZES,
    generator,
    ids,
    normal,
    padded,
    sentences,
)

from companion.decoding import (
    StepDecoder,
    beam_search,
    bleu,
    cached_decode,
    greedy_decode,
    length_penalty,
    next_token,
    ngrams,
    sample,
    sampling_filter,
    translate,
)
from companion.masks import combine_masks
from companion.multihead import KVCache
from companion.transformer import Transformer, TransformerConfig
from companion.transformer.layers import LayerCache

VOCAB, BOS, EOS = 7, 1, 2
close = torch.testing.assert_close


@st.composite
def models(draw):
    """A Transformer in evaluation, in 64 bits, and a source."""
    torch.manual_seed(draw(SEEDS))
    heads = draw(FEW)
    config = TransformerConfig(
        src_vocab_size=VOCAB,
        tgt_vocab_size=VOCAB,
        # A norm leaves of two numbers a sign only, and tokens would tie.
        d_model=heads * draw(st.integers(3, 5)),
        num_heads=heads,
        d_ff=draw(SIZES),
        num_layers=draw(st.integers(1, 2)),
        norm_first=draw(st.booleans()),
    )
    src = draw(sentences(FEW, SIZES, low=1, high=VOCAB))
    return Transformer(config).double().eval(), src


@st.composite
def chains(draw, vocab=VOCAB):
    """A step function in which the last word decides what comes next."""
    table = draw(normal(vocab, vocab))
    return lambda tokens: table[tokens[:, -1]]


# Searching.


@given(chains(), SIZES, st.floats(0, 2))
def test_a_beam_of_one_is_greedy(step_fn, max_len, alpha):
    found = beam_search(step_fn, BOS, EOS, 1, max_len, alpha)
    assert found == greedy_decode(step_fn, BOS, EOS, max_len)
    assert len(found) <= max_len
    assert EOS not in found[:-1]
    assert len(found) == max_len or found[-1] == EOS


@given(chains(vocab=3), FEW, st.floats(0, 2))
def test_a_beam_wide_enough_finds_the_best_sentence_of_all(
    step_fn, max_len, alpha
):
    def score(said):
        rows = torch.tensor([[BOS, *said]])
        each = [
            step_fn(rows[:, : i + 1]).log_softmax(-1) for i in range(len(said))
        ]
        total = sum(p[0, token] for p, token in zip(each, said, strict=True))
        return float(total) / length_penalty(len(said), alpha)

    sentences = [
        said
        for n in range(1, max_len + 1)
        for said in itertools.product(range(3), repeat=n)
        if EOS not in said[:-1] and (n == max_len or said[-1] == EOS)
    ]
    found = beam_search(step_fn, BOS, EOS, 3**max_len, max_len, alpha)
    assert score(found) == pytest.approx(max(map(score, sentences)), abs=1e-6)


@given(st.integers(1, 99), st.floats(0, 3))
def test_a_longer_sentence_is_forgiven_more(length, alpha):
    assert length_penalty(1, alpha) == length_penalty(length, 0) == 1
    assert length_penalty(length + 1, alpha) >= length_penalty(length, alpha)


@given(chains(), SIZES, SEEDS)
def test_drawing_from_the_best_token_alone_is_greedy(step_fn, max_len, seed):
    greedy = greedy_decode(step_fn, BOS, EOS, max_len)
    drawn = sample(
        step_fn, BOS, EOS, max_len, generator=generator(seed), top_k=1
    )
    assert drawn == greedy
    free = [
        sample(step_fn, BOS, EOS, max_len, generator=generator(seed))
        for _ in range(2)
    ]
    assert free[0] == free[1]


@given(
    normal(FEW, VOCAB),
    st.integers(1, 9),
    st.floats(0.01, 1),
    st.floats(0.1, 9),
)
def test_what_may_be_drawn_is_the_smallest_best_set(logits, k, p, heat):
    by_k = sampling_filter(logits, k, None, heat)
    kept = by_k.isfinite()
    assert (kept.sum(-1) == min(k, VOCAB)).all()
    close(by_k[kept], logits[kept] / heat)
    by_p = sampling_filter(logits, None, p, None)
    share = logits.softmax(-1)
    mass = share.masked_fill(by_p.isinf(), 0)
    assert (mass.sum(-1) >= p - 1e-12).all()
    # Without the least of them it would be too little.
    least = mass.masked_fill(mass == 0, 2).amin(-1)
    assert (
        (mass.sum(-1) - least < p + 1e-12) | (by_p.isfinite().sum(-1) == 1)
    ).all()
    for filtered in (by_k, by_p):
        assert torch.equal(filtered.argmax(-1), logits.argmax(-1))


# The model, with and without a memory.


@given(models(), SIZES, st.data())
def test_with_a_cache_the_logits_are_those_without(drawn, length, data):
    model, src = drawn
    tokens = data.draw(ids(len(src), length, low=1, high=VOCAB))
    close(cached_decode(model, src, tokens), model(src, tokens))


@given(models(), FEW, SIZES, st.data())
def test_both_decoders_agree_after_rows_changed_places_and_left(
    drawn, beam, length, data
):
    model, src = drawn
    both = [StepDecoder(model, src, beam, cache=c) for c in (True, False)]
    rows = beam * len(src)
    with torch.no_grad():
        for _ in range(length):
            tokens = data.draw(ids(rows, low=1, high=VOCAB))
            close(*[decoder.step(tokens) for decoder in both])
        # Within its sentence, a row may go on from any other one.
        order = data.draw(ids(rows, low=0, high=beam))
        order = order + torch.arange(rows) // beam * beam
        last = torch.tensor([len(src) - 1])
        kept = torch.arange(rows - beam, rows)
        for decoder in both:
            decoder.reorder(order)
            decoder.keep(last, kept)
        close(*[decoder.step(tokens[kept]) for decoder in both])


@given(models(), SIZES, st.data())
def test_a_layer_with_a_memory_is_the_layer_a_position_at_a_time(
    drawn, length, data
):
    model, src = drawn
    tokens = data.draw(ids(len(src), length, low=1, high=VOCAB))
    three = combine_masks(src, tokens, 0)
    memory = model.encode(src, three.src)
    x = model.positions(model.tgt_embedding(tokens))
    layer = model.decoder.layers[0]
    cache = LayerCache(KVCache(), KVCache())
    said = [
        layer(
            x[:, i : i + 1],
            memory,
            three.tgt[:, :, i : i + 1, : i + 1],
            three.cross,
            cache,
        )
        for i in range(length)
    ]
    close(torch.cat(said, dim=1), layer(x, memory, three.tgt, three.cross))


@given(models(), SIZES, st.integers(1, 4), st.floats(0, 2), st.booleans())
def test_a_batch_is_translated_as_each_sentence_alone(
    drawn, max_len, beam, alpha, cache
):
    model, src = drawn
    how = {"max_len": max_len, "beam": beam, "alpha": alpha, "cache": cache}
    said = translate(model, src, **how)
    for row, sentence in zip(src, said, strict=True):
        step_fn = next_token(model, row[None])
        alone = beam_search(step_fn, BOS, EOS, beam, max_len, alpha)
        assert sentence == alone
        assert 0 not in sentence
    assert translate(model, padded(src, 2), **how) == said


# BLEU.

WORDS = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_bleu_is_what_the_usual_program_says(said):
    ours, theirs = zip(*said, strict=True)
    score = bleu(ours, theirs)
    lines = [[" ".join(s) for s in side] for side in (ours, theirs)]
    usual = sacrebleu.corpus_bleu(
        lines[0], [lines[1]], tokenize="none", smooth_method="none", force=True
    )
    assert score == pytest.approx(usual.score, abs=1e-9)
    assert 0 <= score <= 100 + 1e-9
    assert bleu(ours[::-1], theirs[::-1]) == pytest.approx(score)
    longest = max(map(len, theirs))
    assert bleu(theirs, theirs) == pytest.approx(100 if longest > 3 else 0)


@given(WORDS, st.integers(1, 5))
def test_a_sentence_has_a_run_for_each_place_it_can_begin_at(words, n):
    found = ngrams(words, n)
    assert found.total() == max(len(words) - n + 1, 0)
    assert found == ngrams(words[::-1], n) or n > 1


@pytest.mark.bad_input
@given(models(), st.integers(-3, 0), st.sampled_from(["max_len", "beam"]))
def test_limits_below_one_are_refused_by_name(drawn, low, name):
    model, src = drawn
    limits = {"max_len": 3, "beam": 2, name: low}
    with pytest.raises(ValueError, match=f"^{name}: expected at least 1"):
        translate(model, src, **limits)
    step_fn = next_token(model, src[:1])
    with pytest.raises(ValueError, match=f"^{name}: expected at least 1"):
        beam_search(step_fn, BOS, EOS, **limits, alpha=0.5)
