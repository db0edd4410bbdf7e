"""Whatever the sizes and numbers: rules of chapter 02."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    SEEDS,
    SIZES,
    ids,
    masks,
    normal,
    padded,
    sentences,
)

from companion.seq2seq import (
    CONTEXTS,
    AdditiveAlignment,
    Encoded,
    Seq2Seq,
    dot_alignment,
    fit,
    share_out,
)

VOCAB, SAID = 11, 13
close = torch.testing.assert_close


@st.composite
def translators(draw, contexts=CONTEXTS):
    """A seq2seq model, with a source and a target."""
    torch.manual_seed(draw(SEEDS))
    context = draw(st.sampled_from(contexts))
    model = Seq2Seq(VOCAB, SAID, draw(SIZES), draw(SIZES), context)
    batch = draw(FEW)
    src = draw(sentences(batch, SIZES, low=3, high=VOCAB))
    return model, src, draw(ids(batch, SIZES, low=1, high=SAID))


# Alignments.


@given(FEW, SIZES, st.data())
def test_shares_sum_to_one_and_nobody_hidden_gets_any(batch, seq, data):
    scores = data.draw(normal(batch, seq))
    mask = data.draw(masks(batch, seq))
    shares = share_out(scores, mask)
    close(shares.sum(-1), torch.ones(batch, dtype=scores.dtype))
    assert not shares[~mask].any()
    close(share_out(scores + 5, mask), shares)


@given(FEW, SIZES, SIZES, SIZES, st.data())
def test_alignment_follows_the_keys_wherever_they_stand(
    batch, seq, width, hidden, data
):
    query, keys = (
        data.draw(normal(*s)) for s in [(batch, width), (batch, seq, width)]
    )
    mask = data.draw(masks(batch, seq))
    torch.manual_seed(data.draw(SEEDS))
    order = torch.randperm(seq)
    additive = AdditiveAlignment(width, width, hidden).double()
    for align in (dot_alignment, additive):
        moved = align(query, keys[:, order], mask[:, order])
        close(moved, align(query, keys, mask)[:, order])


# The model.


@given(translators(), FEW)
def test_padding_the_source_changes_no_logit(drawn, more):
    model, src, tgt = drawn
    close(model(padded(src, more), tgt), model(src, tgt))
    short, longer = model.encode(src), model.encode(padded(src, more))
    assert isinstance(short, Encoded)
    close(longer.last, short.last)
    close(short.last[0], short.states[:, -1])
    assert torch.equal(longer.mask, padded(short.mask, more, pad=False))


@given(translators(), st.data())
def test_the_decoder_says_nothing_of_words_it_has_not_read(drawn, data):
    model, src, tgt = drawn
    cut = data.draw(st.integers(1, tgt.shape[1]))
    close(model(src, tgt[:, :cut]), model(src, tgt)[:, :cut])


@given(translators(CONTEXTS[2:]))
def test_each_word_looks_at_words_of_the_source_alone(drawn):
    model, src, tgt = drawn
    alpha = model.align(src, tgt)
    close(alpha.sum(-1), torch.ones(tgt.shape))
    assert not alpha.masked_fill((src != 0)[:, None], 0).any()


@given(translators(), SIZES)
def test_a_translation_has_padding_after_its_end_only(drawn, max_len):
    model, src, _ = drawn
    said = model.translate(src, max_len)
    assert said.shape == (len(src), max_len)
    ended = (said == 2).cumsum(1) - (said == 2).int() > 0
    assert not said[ended].any()
    close(model.translate(src[-1:], max_len), said[-1:])


@given(translators())
def test_the_first_loss_of_a_fit_is_that_of_the_model_as_it_was(drawn):
    model, src, tgt = drawn
    tgt = torch.cat([torch.ones_like(tgt[:, :1]), tgt], dim=1)
    log_p = model(src, tgt[:, :-1]).log_softmax(-1)
    right = log_p.gather(-1, tgt[:, 1:, None])
    losses = fit(model, [(src, tgt), (src, tgt)])
    assert len(losses) == 2
    assert losses[0] == pytest.approx(-right.mean().item(), rel=1e-4)
