"""Whatever the sizes and numbers: rules of chapter 08."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    SEEDS,
    SIZES,
    ids,
    padded,
    sentences,
)

from companion.masks import combine_masks
from companion.transformer import (
    CausalModel,
    EncoderDecoder,
    LanguageModel,
    LanguageModelConfig,
    Maps,
    StackConfig,
    Transformer,
    TransformerConfig,
    shift_right,
)

VOCAB, SAID = 11, 13
close = torch.testing.assert_close


@st.composite
def sizes(draw):
    """The sizes of a stack, small ones."""
    heads, width = draw(FEW), draw(FEW)
    return {
        "d_model": heads * width,
        "num_heads": heads,
        "d_ff": draw(SIZES),
        "num_layers": draw(FEW),
        "norm_first": draw(st.booleans()),
        "dropout": draw(st.sampled_from([0.0, 0.5])),
    }


@st.composite
def transformers(draw):
    """A model in evaluation, a source with padding and a target."""
    torch.manual_seed(draw(SEEDS))
    shared = draw(st.booleans())
    config = TransformerConfig(
        src_vocab_size=SAID if shared else VOCAB,
        tgt_vocab_size=SAID,
        shared_vocab=shared,
        **draw(sizes()),
    )
    batch = draw(FEW)
    src = draw(sentences(batch, SIZES, low=1, high=VOCAB))
    tgt = draw(sentences(batch, SIZES, low=1, high=SAID))
    return Transformer(config).double().eval(), src, tgt


# Models.


@given(transformers(), FEW)
def test_padding_either_side_changes_no_logit_of_a_word(drawn, more):
    model, src, tgt = drawn
    assert isinstance(model, EncoderDecoder)
    short = model(src, tgt)
    longer = model(padded(src, more), padded(tgt, more))
    close(longer[:, : tgt.shape[1]][tgt != 0], short[tgt != 0])


@given(transformers(), st.data())
def test_no_logit_depends_on_a_later_word_or_another_sentence(drawn, data):
    model, src, tgt = drawn
    whole = model(src, tgt)
    cut = data.draw(st.integers(1, tgt.shape[1]))
    assume((tgt[:, 0] != 0).all())
    close(model(src, tgt[:, :cut]), whole[:, :cut])
    close(model(src[-1:], tgt[-1:]), whole[-1:])


@given(transformers())
def test_a_model_is_its_encoder_its_decoder_and_its_generator(drawn):
    model, src, tgt = drawn
    three = combine_masks(src, tgt, 0)
    memory = model.encode(src, three.src)
    states = model.decode(tgt, memory, three.tgt, three.cross)
    close(model.logits(states), model(src, tgt))
    close(model(src, tgt, three), model(src, tgt))
    maps = model.maps(src, tgt)
    assert isinstance(maps, Maps)
    for found, mask in zip(maps, three, strict=True):
        assert len(found) == model.config.num_layers
        assert not any(m.masked_fill(mask, 0).any() for m in found)


@given(sizes(), sentences(FEW, SIZES, low=1, high=VOCAB), FEW, SEEDS)
def test_a_language_model_sees_neither_future_nor_padding(
    wanted, tokens, more, seed
):
    torch.manual_seed(seed)
    config = LanguageModelConfig(vocab_size=VOCAB, **wanted)
    model = LanguageModel(config).double().eval()
    assert isinstance(model, CausalModel)
    logits = model(tokens)
    longer = torch.cat([tokens, torch.full_like(tokens, 5)], dim=1)
    close(model(longer)[:, : tokens.shape[1]], logits)
    close(model.logits(model.states(tokens)), logits)


@given(ids(FEW, SIZES, low=0, high=VOCAB), st.integers(0, 9))
def test_shifting_right_keeps_all_but_the_last_word(tokens, bos):
    shifted = shift_right(tokens, bos)
    assert torch.equal(shifted[:, 1:], tokens[:, :-1])
    assert (shifted[:, 0] == bos).all()


@pytest.mark.bad_input
@given(
    sizes(),
    st.sampled_from(["d_model", "num_heads", "d_ff", "num_layers"]),
    st.sampled_from([0, -1, 1.0, True, "2"]),
)
def test_a_size_that_is_none_is_refused_by_its_name(wanted, name, wrong):
    error = ValueError if type(wrong) is int else TypeError
    wanted[name] = wrong
    for make in (
        lambda: StackConfig(**wanted),
        lambda: LanguageModelConfig(vocab_size=VOCAB, **wanted),
        lambda: TransformerConfig(src_vocab_size=2, tgt_vocab_size=3, **wanted),
    ):
        with pytest.raises(error, match=f"^{name}: expected"):
            make()
