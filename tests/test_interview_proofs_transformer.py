"""What the model answers of chapters 04 to 08 claim, computed.

Where a claim has its cell in a chapter, the bank points there. Every number of
a numeric question, right or typically wrong, is computed here.
"""

import math

import torch
import torch.nn.functional as F
from answers import answers, parameters
from torch import nn

from companion import blocks, masks, multihead, positions, transformer


def base():
    with torch.device("meta"):
        return transformer.Transformer(transformer.TransformerConfig.base())


# Chapter 04


def test_four_matrices_whatever_the_number_of_heads():
    heads = [
        parameters(multihead.MultiHeadAttention(512, h, bias=False))
        for h in (1, 8, 64)
    ]
    assert len(set(heads)) == 1
    matrix = 512 * 512
    answers(
        "multihead-parameters",
        heads[0],
        3 * matrix,
        8 * heads[0],
        heads[0] + 3 * matrix,
    )


def test_a_head_divides_by_the_root_of_its_own_width():
    layer = multihead.MultiHeadAttention(768, 12)
    head_dim = multihead.split_heads(layer.q_proj.weight.T, 12).shape[-1]
    answers("multihead-head-dim", head_dim**0.5, 768**0.5, head_dim)


def test_a_cache_keeps_the_key_and_value_heads_only():
    width, query_heads, kv_heads = 128, 32, 8
    keys = kv_heads * width
    answers("multihead-kv-cache", 2 * keys, 2 * query_heads * width, keys)


# Chapter 05


def test_the_third_number_at_position_100_of_width_4():
    row = positions.sinusoidal(101, 4)[100]
    answers(
        "positions-an-entry-by-hand",
        row[2].item(),
        math.sin(100 * 10_000 ** (-2 * 2 / 4)),
        row[3].item(),
        row[0].item(),
    )


def test_the_norm_of_a_position_of_width_512():
    norms = positions.sinusoidal(997, 512).double().norm(dim=-1)
    torch.testing.assert_close(norms, norms[:1].expand_as(norms))
    norm = norms[0].item()
    answers("positions-norm-of-a-position", norm, 512**0.5, norm**2, 1)


def test_six_back_in_the_first_of_eight_alibi_heads():
    bias = positions.alibi_bias(8, 7)[0]
    answers(
        "positions-alibi-bias",
        bias[6, 0].item(),
        -bias[6, 0].item(),
        -6,
        -6 / 8,
    )


# Chapter 06


def test_a_causal_mask_over_five_tokens():
    allowed = masks.causal_mask(5).sum().item()
    strict = torch.ones(5, 5).tril(-1).sum().item()
    answers("masks-pairs-in-a-triangle", allowed, strict, 25 / 2)


def test_one_guess_among_seven_and_twelve_certainties():
    guess = math.log(7)
    answers("masks-floor-of-a-loss", guess / 13, 0, guess, math.log2(7) / 13)


# Chapter 07


def test_the_third_of_four_numbers_after_layer_norm():
    x = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    normal = F.layer_norm(x, (4,), eps=1e-12)
    deviation = x - x.mean()
    answers(
        "blocks-a-layer-norm-by-hand",
        normal[2].item(),
        (deviation / x.std())[2].item(),
        (deviation / x.var(unbiased=False))[2].item(),
        deviation[2].item(),
    )


def test_the_feed_forward_network_of_the_paper():
    network = blocks.FeedForward(512, 2048)
    matrix = 512 * 2048
    with torch.device("meta"):
        attention = parameters(multihead.MultiHeadAttention(512, 8))
    assert attention == parameters(network.up_proj)
    answers(
        "blocks-weights-of-the-ffn",
        parameters(network),
        2 * matrix,
        matrix,
        attention,
    )


def test_a_gate_of_two_thirds_of_the_width_keeps_the_weights():
    d, wide = 768, 3072
    budget = 2 * d * wide
    answers("blocks-width-of-a-gate", budget / (3 * d), wide, budget / (4 * d))


def test_four_times_the_layers_halve_the_last_gradient_of_pre_ln():
    answers("blocks-gradient-and-depth", (24 / 6) ** 0.5, 24 / 6, 1)


# Chapter 08


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
    answers(
        "transformer-a-decoder-layer",
        parameters(decoder) - parameters(encoder),
        attention,
        4 * 512 * 512,
        parameters(decoder.feed_forward),
    )


def test_a_uniform_guess_among_37000():
    loss = F.cross_entropy(torch.zeros(1, 37_000), torch.tensor([7])).item()
    answers(
        "transformer-loss-before-training",
        loss,
        math.log2(37_000),
        math.log10(37_000),
        1,
    )


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
