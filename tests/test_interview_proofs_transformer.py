"""What the model answers of chapters 04 to 08 claim, computed.

Where a claim has its cell in a chapter, the bank points there. Every number of
a numeric question, right or typically wrong, is computed here.
"""

import math

import pytest
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


def test_a_larger_base_slows_the_slowest_pair_and_not_the_fastest():
    d, stretch = 14, 4
    evens = torch.arange(0, d, 2, dtype=torch.float64)
    base, larger = 10_000, 10_000 * stretch ** (d / (d - 2))
    slower = larger ** (-evens / d) / base ** (-evens / d)
    torch.testing.assert_close(slower[[0, -1]], slower.new_tensor([1, 1 / 4]))
    assert (slower.diff() < 0).all()


# Chapter 06


def test_a_causal_mask_over_five_tokens():
    allowed = masks.causal_mask(5).sum().item()
    strict = torch.ones(5, 5).tril(-1).sum().item()
    answers("masks-pairs-in-a-triangle", allowed, strict, 25 / 2)


def test_one_guess_among_seven_and_twelve_certainties():
    guess = math.log(7)
    answers("masks-floor-of-a-loss", guess / 13, 0, guess, math.log2(7) / 13)


def test_a_mask_token_is_read_and_a_hidden_key_is_not():
    mask_id, place = 7, 2
    tokens = torch.tensor([[2, 5, mask_id, 3, 6]])
    layer = blocks.EncoderLayer(14, 2, 11)
    table = torch.randn(8, 14, requires_grad=True)
    others = [i for i in range(5) if i != place]
    visible = torch.arange(5) != place
    for mask, is_read in ((None, True), (visible.expand(5, 5), False)):
        out = layer(table[tokens], mask)
        told = (out * torch.randn_like(out))[:, others].sum()
        (moved,) = torch.autograd.grad(told, table, retain_graph=True)
        assert bool(moved[mask_id].any()) is is_read
        # Hidden or not, the place itself has an output of its own.
        (own,) = torch.autograd.grad(out[0, place, 0], table)
        assert own[mask_id].any()


def test_a_window_of_four_over_ten_tokens():
    i, j = torch.arange(10)[:, None], torch.arange(10)
    past = masks.causal_mask(10)
    windows = [past & (i - j < width) for width in (4, 3)]
    window, narrower = (w.sum().item() for w in windows)
    assert windows[0][9].sum() == 4
    answers("masks-sliding-window", window, 10 * 4, past.sum().item(), narrower)
    three_layers = windows[0].float().matrix_power(3) > 0
    assert torch.equal(three_layers, past & (i - j <= 3 * 3))
    assert (past | (j < 3)).sum() == 58
    assert (past & ((i < 4) == (j < 4))).sum() == 31


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


@torch.no_grad()
def test_xavier_keeps_a_variance_and_a_default_linear_keeps_a_third():
    def kept(n_in, n_out, draw=None, layers=1):
        x = torch.randn(97, n_in)
        before = x.var()
        for _ in range(layers):
            linear = nn.Linear(n_in, n_out, bias=False)
            if draw:
                draw(linear.weight)
            x = linear(x)
        return (x.var() / before).item()

    xavier = nn.init.xavier_uniform_
    assert kept(512, 512, xavier, 5) == pytest.approx(1, rel=0.2)
    assert kept(512, 512, layers=5) == pytest.approx(1 / 243, rel=0.2)
    assert kept(512, 2048, xavier) == pytest.approx(0.4, rel=0.1)
    # The gradient meets the transposed matrix: from 2048 back to 512.
    assert kept(2048, 512, xavier) == pytest.approx(1.6, rel=0.1)


@torch.no_grad()
def test_kaiming_doubles_because_a_relu_halves_the_mean_square():
    x = torch.randn(97, 512)
    assert x.relu().square().mean() == pytest.approx(0.5, rel=0.05)
    for _ in range(5):
        weight = nn.init.kaiming_normal_(torch.empty(512, 512))
        x = F.linear(x.relu(), weight)
    assert x.square().mean() == pytest.approx(1, rel=0.3)


def test_weights_over_the_root_of_their_number_keep_a_sum_from_growing():
    for number in (12, 96):
        said = torch.randn(number, 5_000) / number**0.5
        assert said.sum(0).var() == pytest.approx(1, rel=0.1)


def test_what_survives_dropout_is_scaled_up_in_training_only():
    dropout = nn.Dropout(0.2)
    x = torch.full((100_000,), 3.0)
    trained = dropout(x)
    dropped, survives = trained.unique().tolist()
    assert dropped == 0
    assert trained.mean() == pytest.approx(3, abs=0.03)
    assert trained.var() > 1 > x.var()
    (evaluated,) = dropout.eval()(x).unique().tolist()
    answers("blocks-dropout-by-hand", survives, evaluated, 3 * 0.8, 3 / 0.2)


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
    def loss(logits):
        """The mean over all the words that may be right."""
        return (logits.logsumexp(-1) - logits.mean(-1)).mean().item()

    vectors = F.layer_norm(torch.randn(7, 512), (512,))
    tied = vectors @ (torch.randn(512, 37_000) / 512**0.5)
    assert tied.var() == pytest.approx(1, rel=0.05)
    assert loss(tied) == pytest.approx(math.log(37_000) + 1 / 2, abs=0.05)
    equal = torch.zeros(1, 37_000)
    answers(
        "transformer-loss-before-training",
        F.cross_entropy(equal, torch.tensor([7])).item(),
        math.log2(37_000),
        math.log10(37_000),
        1,
        loss(tied),
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
    answers(
        "transformer-cost-of-the-output-layer",
        100 * output / (output + once),
        100 * output / (output + everything),
        100 * output / (output + once - networks),
        100 * output / parameters(model),
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
