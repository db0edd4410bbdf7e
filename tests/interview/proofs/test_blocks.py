"""What the answers of chapter 07 claim, computed."""

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    parameters,
    repair,
    solved,
)
from torch import nn
from torch.testing import assert_close

from companion import blocks, multihead


def test_the_third_of_four_numbers_after_layer_norm():
    x = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    normal = F.layer_norm(x, (4,), eps=1e-12)
    deviation = x - x.mean()
    wrong = (
        (deviation / x.std())[2],
        (deviation / x.var(unbiased=False))[2],
        deviation[2],
    )
    answers("blocks-a-layer-norm-by-hand", normal[2], *wrong)


def test_the_feed_forward_network_of_the_paper():
    network = blocks.FeedForward(512, 2048)
    matrix = 512 * 2048
    with torch.device("meta"):
        attention = parameters(multihead.MultiHeadAttention(512, 8))
    assert attention == parameters(network.up_proj)
    wrong = 2 * matrix, matrix, attention
    answers("blocks-weights-of-the-ffn", parameters(network), *wrong)


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


# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ = 2, 5


def test_what_is_linear_in_an_encoder_layer_and_what_is_not():
    layer = blocks.EncoderLayer(14, 2, 11)
    x, u, w = torch.randn(3, 1, SEQ, 14)
    attention = multihead.MultiHeadAttention(14, 2, bias=False)
    mix = attention(x, value=u) + 2 * attention(x, value=w)
    assert_close(attention(x, value=u + 2 * w), mix)
    assert not torch.allclose(attention(2 * x), 2 * attention(x), atol=0.01)
    norm = layer.attention_residual.norm
    assert_close(norm(2 * x), norm(x), atol=1e-3, rtol=0)
    up, down = torch.randn(14, 11), torch.randn(11, 14)
    assert_close(x @ up @ down, x @ (up @ down), atol=1e-3, rtol=1e-3)


def test_a_norm_that_is_never_called_keeps_its_gain_at_one():
    layer = blocks.EncoderLayer(14, 2, 11)
    first = layer.attention_residual.norm
    second = layer.feed_forward_residual.norm
    x, read_off = torch.randn(BATCH, SEQ, 14), torch.randn(14)
    adam = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(3):
        y = first(x + layer.self_attention(x))
        y = first(y + layer.feed_forward(y))
        adam.zero_grad()
        (y @ read_off - 1).square().mean().backward()
        adam.step()
    silent = {n for n, p in layer.named_parameters() if p.grad is None}
    assert silent == {
        f"feed_forward_residual.norm.{name}"
        for name, _ in second.named_parameters()
    }
    gains = {norm: dict(norm.named_parameters()) for norm in (first, second)}
    moves = [(p != p.round()).all() for p in gains[first].values()]
    assert all(moves)
    assert {p.unique().item() for p in gains[second].values()} == {0, 1}


def test_a_square_of_a_thousand_does_not_fit_half_precision():
    mine, gain = solved("blocks-rms-norm-from-memory"), torch.ones(14).half()
    x = (1000 + torch.randn(SEQ, 14)).half()
    right = F.rms_norm(x.double(), (14,), eps=1e-6)
    close = {"atol": 1e-2, "rtol": 1e-2}
    assert_close(mine(x, gain, 1e-6).double(), right, **close)
    assert torch.finfo(torch.float16).max == 65_504
    for size, fits in ((255, True), (256, False)):
        alike = torch.full((14,), float(size)).half()
        mean_square = alike.square().mean()
        narrow = alike * torch.rsqrt(mean_square + 1e-6)
        assert bool(narrow.all()) is fits
        assert bool(mean_square.isfinite()) is fits
    threes = torch.full((4,), 3.0)
    assert_close(mine(threes, torch.ones(4), 0.0), threes / 3)
    assert F.normalize(threes, dim=-1).tolist() == [0.5] * 4


def test_a_difference_of_squares_loses_the_variance_far_from_zero():
    torch.manual_seed(0)
    broken, repaired = repair("blocks-repair-a-norm-far-from-zero")
    gain, bias, eps = torch.ones(14), torch.zeros(14), 1e-5
    # Entries that float32 holds exactly, also next to 10 000.
    x = (64 * torch.randn(101, 14)).round() / 64
    right = F.layer_norm(x, (14,), eps=eps)
    near = {"atol": 1e-4, "rtol": 1e-4}
    assert_close(broken(x, gain, bias, eps), right, **near)
    far = x + 10_000
    assert_close(repaired(far, gain, bias, eps), right, atol=0.01, rtol=0.01)
    lost = broken(far, gain, bias, eps).isnan().any(-1)
    assert 0 < lost.sum() < len(lost)
    square = torch.tensor(1e8)
    assert torch.nextafter(square, 2 * square) - square == 8


def test_the_weights_of_a_post_ln_layer_fit_a_pre_ln_layer_and_mean_nothing():
    broken, repaired = repair("blocks-repair-a-layer-that-speaks-noise")
    d, d_ff = 14, 11
    shapes = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (d, d))
    shapes |= {"w_1": (d_ff, d), "b_1": (d_ff,)}
    shapes |= {"w_2": (d, d_ff), "b_2": (d,)}
    weights = {n: torch.randn(s) / s[-1] ** 0.5 for n, s in shapes.items()}
    for place in (1, 2):
        weights[f"gain_{place}"] = torch.ones(d)
        weights[f"bias_{place}"] = torch.zeros(d)
    x = y = z = torch.randn(BATCH, SEQ, d)
    for _ in range(12):
        y, z = broken(y, weights, 2), repaired(z, weights, 2)
    ones = torch.ones(BATCH, SEQ)
    assert_close(z.std(-1, correction=0), ones, atol=1e-3, rtol=0)
    assert y.std() > 2 * broken(x, weights, 2).std()
    silent = weights | {
        n: torch.zeros_like(weights[n]) for n in ("w_o", "w_2", "b_2")
    }
    assert torch.equal(broken(x, silent, 2), x)
    assert not torch.allclose(repaired(x, silent, 2), x, atol=0.1)
