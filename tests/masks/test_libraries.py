"""The adapters of masks, each against the library it is made for.

What a library attends to is measured, not believed: the gradient of an output
with respect to an input is 0 exactly where the input is not looked at.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.masks import (
    causal_mask,
    combine_masks,
    from_ones,
    from_torch_padding,
    padding_mask,
    to_additive,
    to_keras,
    to_lengths,
    to_ones,
    to_torch_attention,
    to_torch_padding,
    to_torch_transformer,
)

BATCH, HEADS, SRC, TGT, WIDTH, PAD = 2, 3, 7, 5, 12, 0
SRC_TOKENS = torch.tensor([[4, 9, 3, 5, 8, 0, 0], [6, 2, 7, 4, 3, 9, 1]])
TGT_TOKENS = torch.tensor([[1, 5, 8, 2, 6], [1, 7, 3, 0, 0]])
MASKS = combine_masks(SRC_TOKENS, TGT_TOKENS, PAD)
EVERY_MASK = {
    "padding": padding_mask(TGT_TOKENS, PAD),
    "causal": causal_mask(TGT)[None, None].expand(BATCH, 1, TGT, TGT),
    "combined": MASKS.tgt,
}
NOBODY = torch.zeros(BATCH, 1, TGT, TGT, dtype=torch.bool)


@pytest.fixture(params=EVERY_MASK)
def mask(request):
    return EVERY_MASK[request.param]


def normal(length=TGT):
    return torch.randn(BATCH, length, WIDTH, requires_grad=True)


def sees(output, x):
    """(batch, query, key): which output moves with which input."""
    direction = torch.randn(output.shape[-1])
    rows = [
        torch.autograd.grad((row @ direction).sum(), x, retain_graph=True)[0]
        for row in output.unbind(1)
    ]
    return torch.stack([(row != 0).any(-1) for row in rows], 1)


def allowed(mask, queries=TGT):
    """(batch, query, key): who may look at whom by our mask."""
    return mask[:, 0].expand(BATCH, queries, -1)


def allowed_or_itself(mask, queries=TGT):
    """The same where a residual carries each position to itself."""
    return allowed(mask, queries) | torch.eye(queries, dtype=torch.bool)


# PyTorch.


def test_sdpa_takes_our_mask_as_it_is(mask):
    q, x = torch.randn(BATCH, HEADS, TGT, WIDTH), normal()
    k = v = x[:, None].expand(-1, HEADS, -1, -1)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.equal(sees(output.sum(1), x), allowed(mask))


@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_of_pytorch_sees_what_our_mask_allows(
    mask, need_weights
):
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    hidden = to_torch_attention(mask.expand(-1, -1, TGT, -1), HEADS)
    x = normal()
    output, weights = layer(
        torch.randn(BATCH, TGT, WIDTH),
        x,
        x,
        attn_mask=hidden,
        need_weights=need_weights,
        average_attn_weights=False,
    )
    assert torch.equal(sees(output, x), allowed(mask))
    if need_weights:
        for head in weights.unbind(1):
            assert torch.equal(head != 0, allowed(mask))


def test_each_head_of_pytorch_gets_its_own_mask():
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    mask = torch.rand(BATCH, HEADS, TGT, SRC) < 0.5
    mask[..., 0] = True
    _, weights = layer(
        torch.randn(BATCH, TGT, WIDTH),
        *[torch.randn(BATCH, SRC, WIDTH)] * 2,
        attn_mask=to_torch_attention(mask, HEADS),
        average_attn_weights=False,
    )
    assert torch.equal(weights != 0, mask)


def test_key_padding_mask_of_pytorch_hides_the_padding():
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    hidden = to_torch_padding(MASKS.cross)
    x = normal(SRC)
    output, _ = layer(normal(), x, x, key_padding_mask=hidden)
    assert torch.equal(sees(output, x), allowed(MASKS.cross))
    assert torch.equal(from_torch_padding(hidden), MASKS.cross)


def test_pytorch_shows_what_our_mask_hides_if_it_is_not_converted():
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    x = torch.randn(BATCH, TGT, WIDTH)
    _, weights = layer(x, x, x, attn_mask=causal_mask(TGT))
    future = ~causal_mask(TGT)[:-1].expand(BATCH, -1, -1)
    assert torch.equal(weights[:, :-1] != 0, future)


def test_only_with_weights_does_pytorch_make_nan_of_a_row_that_sees_nobody():
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    x = torch.randn(BATCH, TGT, WIDTH)
    hidden = to_torch_attention(NOBODY, HEADS)
    with_weights, _ = layer(x, x, x, attn_mask=hidden)
    without, _ = layer(x, x, x, attn_mask=hidden, need_weights=False)
    assert with_weights.isnan().all()
    # The values' share is 0; what is left is the bias of the output.
    torch.testing.assert_close(without, layer.out_proj.bias.expand_as(without))


def transformer():
    return nn.Transformer(WIDTH, HEADS, 2, 2, 17, dropout=0.0, batch_first=True)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_the_transformer_of_pytorch_sees_what_our_three_masks_allow():
    src, tgt = normal(SRC), normal(TGT)
    output = transformer()(src, tgt, **to_torch_transformer(MASKS, HEADS))
    assert torch.equal(sees(output, src), allowed(MASKS.cross))
    assert torch.equal(sees(output, tgt), allowed_or_itself(MASKS.tgt))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_the_encoder_of_pytorch_sees_what_our_source_mask_allows():
    src = normal(SRC)
    hidden = to_torch_padding(MASKS.src)
    output = transformer().encoder(src, src_key_padding_mask=hidden)
    assert torch.equal(sees(output, src), allowed_or_itself(MASKS.src, SRC))


# Hugging Face. Where it takes (batch, key) it builds the other masks itself.


@pytest.fixture(scope="module")
def hugging_face():
    import transformers

    return transformers


def settled(model):
    return model.eval().requires_grad_(False)


def bert_config(hugging_face, attention):
    return hugging_face.BertConfig(
        vocab_size=13,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=17,
        max_position_embeddings=19,
        attn_implementation=attention,
    )


@pytest.fixture(params=["eager", "sdpa"])
def bert(hugging_face, request):
    config = bert_config(hugging_face, request.param)
    return settled(hugging_face.BertModel(config))


def output_of(model, **inputs):
    return model(**inputs).last_hidden_state


def test_bert_sees_what_our_additive_mask_allows(bert, mask):
    x = normal()
    bias = to_additive(mask.expand(-1, -1, TGT, -1), bert.dtype)
    output = output_of(bert, inputs_embeds=x, attention_mask=bias)
    assert torch.equal(sees(output, x), allowed_or_itself(mask))


def test_bert_sees_what_our_ones_allow(bert):
    x, mask = normal(), EVERY_MASK["padding"]
    ones = to_ones(mask)
    output = output_of(bert, inputs_embeds=x, attention_mask=ones)
    assert torch.equal(sees(output, x), allowed_or_itself(mask))
    assert torch.equal(from_ones(ones), mask)


def test_a_boolean_mask_of_four_axes_means_two_things_to_bert(bert):
    # Why to_additive and not the mask itself: "eager" adds True as 1.
    x, mask = normal(), EVERY_MASK["combined"]
    output = output_of(bert, inputs_embeds=x, attention_mask=mask)
    hides = torch.equal(sees(output, x), allowed_or_itself(mask))
    assert hides == (bert.config._attn_implementation == "sdpa")


def test_bert_in_half_precision_needs_the_lowest_number_of_half(bert):
    half = bert.bfloat16()
    x = torch.randn(BATCH, TGT, WIDTH, dtype=torch.bfloat16)
    bias = to_additive(NOBODY, torch.bfloat16)
    assert bias.isfinite().all()
    output = output_of(half, inputs_embeds=x, attention_mask=bias)
    assert output.isfinite().all()


def test_bert_averages_everything_where_a_row_sees_nobody(hugging_face):
    model = settled(hugging_face.BertModel(bert_config(hugging_face, "eager")))
    found = model(
        inputs_embeds=normal(),
        attention_mask=to_additive(NOBODY, model.dtype),
        output_attentions=True,
    )
    for weights in found.attentions:
        torch.testing.assert_close(weights, torch.full_like(weights, 1 / TGT))


def test_gpt2_sees_its_past_without_the_padding(hugging_face):
    config = hugging_face.GPT2Config(
        vocab_size=13, n_positions=19, n_embd=WIDTH, n_layer=2, n_head=HEADS
    )
    x = normal()
    output = output_of(
        settled(hugging_face.GPT2Model(config)),
        inputs_embeds=x,
        attention_mask=to_ones(EVERY_MASK["padding"]),
    )
    assert torch.equal(sees(output, x), allowed_or_itself(MASKS.tgt))


def test_bart_sees_what_our_three_masks_allow(hugging_face):
    config = hugging_face.BartConfig(
        vocab_size=13,
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=17,
        decoder_ffn_dim=17,
        max_position_embeddings=19,
    )
    src, tgt = normal(SRC), normal(TGT)
    output = output_of(
        settled(hugging_face.BartModel(config)),
        inputs_embeds=src,
        decoder_inputs_embeds=tgt,
        attention_mask=to_ones(MASKS.src),
        decoder_attention_mask=to_ones(padding_mask(TGT_TOKENS, PAD)),
    )
    assert torch.equal(sees(output, src), allowed(MASKS.cross))
    assert torch.equal(sees(output, tgt), allowed_or_itself(MASKS.tgt))


# Keras.


@pytest.fixture(scope="module")
def keras(tmp_path_factory):
    """Keras on PyTorch; nothing else sees the settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "torch")
        patch.setenv("KERAS_HOME", str(tmp_path_factory.mktemp("keras")))
        import keras

        yield keras


@pytest.mark.parametrize("with_scores", [True, False])
def test_multihead_attention_of_keras_sees_what_our_mask_allows(
    keras, mask, with_scores
):
    layer = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
    x = normal()
    found = layer(
        torch.randn(BATCH, TGT, WIDTH),
        x,
        attention_mask=to_keras(mask),
        return_attention_scores=with_scores,
    )
    output = found[0] if with_scores else found
    assert torch.equal(sees(output, x), allowed(mask))


def test_only_with_scores_does_keras_give_zeros_where_a_row_sees_nobody(keras):
    layer = keras.layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
    x, hidden = torch.randn(BATCH, TGT, WIDTH), to_keras(NOBODY)
    with_scores, scores = layer(
        x, x, attention_mask=hidden, return_attention_scores=True
    )
    assert not scores.any()
    assert not with_scores.any()  # The bias of a new layer is 0.
    without = layer(x, x, attention_mask=hidden)
    averaged = layer(x, x.mean(1, keepdim=True).expand_as(x))
    torch.testing.assert_close(without, averaged)


# Lengths, as torch.nn.utils.rnn counts them.


def test_an_rnn_of_pytorch_stops_where_our_lengths_say():
    rnn, x = nn.GRU(WIDTH, 11, batch_first=True), normal(SRC)
    packed = nn.utils.rnn.pack_padded_sequence(
        x, to_lengths(MASKS.src), batch_first=True, enforce_sorted=False
    )
    _, last = rnn(packed)
    seen = sees(last.transpose(0, 1), x)
    assert torch.equal(seen, MASKS.src[:, 0])
