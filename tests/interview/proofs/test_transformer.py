"""What the answers of chapter 08 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    mistake,
    parameters,
    shown,
    solved,
)
from torch import nn
from torch.testing import assert_close

from companion import (
    blocks,
    transformer,
)
from companion.masks import combine_masks


def base():
    with torch.device("meta"):
        return transformer.Transformer(transformer.TransformerConfig.base())


def test_the_parameters_of_the_base_model_in_millions():
    model = base()
    table = parameters(model.src_embedding)
    encoder = parameters(model.encoder)
    counts = (
        parameters(model),
        parameters(model) - table,
        parameters(model) + 2 * table,
        2 * encoder + table,
    )
    answers("transformer-parameters-of-base", *(c / 1e6 for c in counts))


def test_a_decoder_layer_has_one_attention_and_one_norm_more():
    model = base()
    encoder, decoder = model.encoder.layers[0], model.decoder.layers[0]
    attention = parameters(decoder.cross_attention)
    wrong = attention, 4 * 512 * 512, parameters(decoder.feed_forward)
    answers(
        "transformer-a-decoder-layer",
        parameters(decoder) - parameters(encoder),
        *wrong,
    )


def test_a_uniform_guess_among_37000():
    def loss(logits):
        """The mean over all the words that may be right."""
        return (logits.logsumexp(-1) - logits.mean(-1)).mean().item()

    vectors = F.layer_norm(torch.randn(7, 512), (512,))
    tied = vectors @ (torch.randn(512, 37_000) / 512**0.5)
    assert tied.var() == pytest.approx(1, rel=0.05)
    assert loss(tied) == pytest.approx(math.log(37_000) + 1 / 2, abs=0.05)
    equal = torch.zeros(1, 37_000)
    wrong = math.log2(37_000), math.log10(37_000), 1, loss(tied)
    answers(
        "transformer-loss-before-training",
        F.cross_entropy(equal, torch.tensor([7])),
        *wrong,
    )
    assert loss(equal) == pytest.approx(math.log(37_000))


def test_what_the_output_layer_costs_a_token():
    def matrices(module):
        return sum(p.numel() for p in module.parameters() if p.ndim == 2)

    model = base()
    layers = model.decoder.layers
    everything = matrices(layers)
    fixed = sum(
        matrices(layer.cross_attention.k_proj)
        + matrices(layer.cross_attention.v_proj)
        for layer in layers
    )
    networks = sum(matrices(layer.feed_forward) for layer in layers)
    output = matrices(model.tgt_embedding)
    once = everything - fixed
    wrong = (
        100 * output / (output + everything),
        100 * output / (output + once - networks),
        100 * output / parameters(model),
    )
    answers(
        "transformer-cost-of-the-output-layer",
        100 * output / (output + once),
        *wrong,
    )
    logits_of_a_batch = 25_000 * output / 512
    assert 4 * logits_of_a_batch == pytest.approx(3.7e9)


def test_a_network_that_is_never_called_gets_no_gradient():
    class Lost(blocks.EncoderLayer):
        def forward(self, x, mask=None):
            return self.attention_residual(
                x, lambda y: self.self_attention(y, mask)
            )

    whole, lost = (kind(14, 2, 11) for kind in (blocks.EncoderLayer, Lost))
    assert parameters(whole) == parameters(lost)
    x = torch.randn(3, 5, 14)
    assert whole(x).shape == lost(x).shape
    head = nn.Linear(14, 1)
    for layer in (whole, lost):
        head(layer(x)).square().sum().backward()
    silent = {n for n, p in lost.named_parameters() if p.grad is None}
    assert all(p.grad is not None for p in whole.parameters())
    assert silent == {
        n for n, _ in lost.named_parameters() if n.startswith("feed_forward")
    }


def test_every_shape_on_the_way_from_ids_to_logits():
    src, tgt = torch.ones(2, 9, dtype=torch.long), torch.ones(2, 5).long()
    masks = combine_masks(src, tgt, 0)
    assert [tuple(m.shape) for m in masks] == [
        (2, 1, 1, 9),
        (2, 1, 5, 5),
        (2, 1, 1, 9),
    ]
    with torch.device("meta"):
        config = transformer.TransformerConfig.base()
        model = transformer.Transformer(config)
        memory = model.encode(src.to("meta"), masks.src.to("meta"))
        assert memory.shape == (2, 9, 512)
        logits = model(src.to("meta"), tgt.to("meta"))
    assert logits.shape == (2, 5, 37_000)
    layer = model.decoder.layers[0]
    y = torch.empty(2, 5, 512, device="meta")
    assert layer.self_attention.weights(y).shape == (2, 8, 5, 5)
    cross = layer.cross_attention
    assert cross.weights(y, key=memory).shape == (2, 8, 5, 9)
    assert cross.queries(y).shape == (2, 8, 5, 64)
    assert model.encoder.layers[0].self_attention.weights(memory).shape == (
        (2, 8, 9, 9)
    )


def test_a_picture_becomes_a_sentence_of_patches():
    width, colours, side = 16, 3, 224
    picture = torch.randn(1, colours, side, side)
    patches = F.unfold(picture, width, stride=width).mT
    assert patches.shape == (1, 196, 768)
    embed = nn.Linear(patches.shape[-1], 768)
    convolved = F.conv2d(
        picture,
        embed.weight.view(768, colours, width, width),
        embed.bias,
        stride=width,
    )
    assert_close(embed(patches), convolved.flatten(2).mT, atol=1e-4, rtol=1e-3)
    wrong = (
        embed.weight.numel(),
        parameters(nn.Linear(width * width, 768)),
        patches.shape[1] * 768,
    )
    answers("transformer-patches-of-a-picture", parameters(embed), *wrong)


def test_a_decoder_that_asks_the_target_twice_never_hears_the_source():
    broken = mistake("translation_model", "asks the target twice")
    src, tgt = torch.randint(1, 11, (2, 7)), torch.randint(1, 11, (2, 5))
    logits = broken(src, tgt)
    assert torch.equal(broken(src.flip(1), tgt), logits)
    logits.square().sum().backward()
    assert all(p.grad is None for p in broken.encoder.parameters())
    assert all(p.grad is not None for p in broken.decoder.parameters())


def test_a_mean_over_positions_tells_the_first_row_of_the_last_token():
    name = "transformer-a-gpt-too-good-to-be-true"
    tokens = torch.tensor([[3, 7, 1, 4]])
    longer = torch.tensor([[3, 7, 1, 4, 9]])
    for make, moves in ((shown, True), (solved, False)):
        model = make(name)
        gap = (model(longer)[:, 0] - model(tokens)[:, 0]).abs().max()
        assert bool(gap > 1e-3) is moves


def test_pytorchs_transformer_has_a_norm_too_many_at_each_end():
    name, base = "transformer-2048-too-many", (512, 2048, 6, 37_000)
    with pytest.warns(UserWarning, match="nested_tensor"):
        counted = shown(name)(*base)
    with pytest.warns(UserWarning, match="nested_tensor"):
        assert solved(name)(*base) == 63_082_496
    assert counted == 63_084_544
    assert counted - 63_082_496 == 2 * parameters(nn.LayerNorm(512))
