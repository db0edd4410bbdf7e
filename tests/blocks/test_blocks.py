"""Feed-forward, residual, normalisation: PyTorch agrees, rules hold."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.blocks import (
    Dropout,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    Parts,
    Residual,
    layer_norm,
)
from companion.multihead import MultiHeadAttention

# All sizes differ, so no axis can stand in for another. Two heads of seven.
BATCH, SEQ, D_MODEL, NUM_HEADS, D_FF = 3, 5, 14, 2, 11
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


@pytest.fixture
def x():
    return torch.randn(BATCH, SEQ, D_MODEL, dtype=torch.float64)


def encoder_layer(**settings):
    layer = EncoderLayer(D_MODEL, NUM_HEADS, D_FF, **settings).double()
    for parameter in layer.parameters():  # Gains of 1 would hide a lost gain.
        nn.init.normal_(parameter)
    return layer


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


# Layer normalisation


def test_layer_norm_on_paper():
    # Mean 4, deviations -3, -1, 1, 3, variance 20 / 4 = 5.
    x = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64)
    gain, bias = torch.full_like(x, 2), torch.full_like(x, 10)
    deviations = torch.tensor([-3.0, -1.0, 1.0, 3.0], dtype=torch.float64)
    expected = deviations / 5**0.5 * 2 + 10
    got = layer_norm(x, gain, bias, eps=1e-12)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_layer_norm_agrees_with_pytorch_and_so_do_its_gradients(x, eps):
    gain, bias = torch.randn(2, D_MODEL, dtype=torch.float64).unbind()
    upstream = torch.randn_like(x)
    found = []
    for norm in (
        lambda x, g, b: layer_norm(x, g, b, eps),
        lambda x, g, b: F.layer_norm(x, (D_MODEL,), g, b, eps),
    ):
        leaves = [t.clone().requires_grad_() for t in (x, gain, bias)]
        y = norm(*leaves)
        found.append((y, *torch.autograd.grad(y, leaves, upstream)))
    torch.testing.assert_close(*found)


def test_a_new_layer_norm_is_pytorch_s(x):
    expected = nn.LayerNorm(D_MODEL, dtype=torch.float64)(x)
    torch.testing.assert_close(LayerNorm(D_MODEL).double()(x), expected)


def test_every_vector_comes_out_with_mean_0_and_variance_1(x):
    y = LayerNorm(D_MODEL, eps=1e-12).double()(x * 7 + 100)
    torch.testing.assert_close(y.mean(-1), torch.zeros_like(y[..., 0]))
    variance = y.var(-1, unbiased=False)
    torch.testing.assert_close(variance, torch.ones_like(variance))


def test_neither_shift_nor_scale_of_a_vector_changes_its_norm(x):
    norm = LayerNorm(D_MODEL, eps=1e-12).double()
    torch.testing.assert_close(norm(x * 7 + 100), norm(x))


def test_layer_norm_of_a_position_depends_on_no_other(x):
    norm = LayerNorm(D_MODEL).double()
    torch.testing.assert_close(norm(x)[1, 2], norm(x[1, 2]))


def test_a_constant_vector_becomes_zeros_with_a_finite_gradient():
    x = torch.full((1, D_MODEL), 3.0, requires_grad=True)
    y = LayerNorm(D_MODEL)(x)
    y.sum().backward()
    assert (y == 0).all()
    assert x.grad.isfinite().all()


def test_large_numbers_survive_in_half_precision():
    x = torch.tensor([[-300.0, 100.0, 200.0, 700.0]])
    expected = layer_norm(x, torch.ones(4), torch.zeros(4))
    half = x.half()
    got = layer_norm(half, torch.ones_like(half[0]), torch.zeros_like(half[0]))
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.float(), expected, atol=1e-3, rtol=0)


def test_the_eps_of_a_layer_norm_is_pytorch_s_unless_given(x):
    small, one = x / 1000, torch.ones(D_MODEL, dtype=x.dtype)
    expected = F.layer_norm(small, (D_MODEL,))
    torch.testing.assert_close(layer_norm(small, one, 0 * one), expected)


# Dropout


def test_each_feature_is_dropped_as_often_as_another():
    # One draw decides on four features; each of the four has its own share.
    dropped = Dropout(0.3)(torch.ones(40_000, 4)) == 0
    share, error = dropped.double().mean(0), (0.3 * 0.7 / 40_000) ** 0.5
    assert ((share - 0.3).abs() < 5 * error).all()


def test_what_is_kept_is_scaled_by_a_whole_number_of_65536ths():
    kept = Dropout(0.1)(torch.ones(100, dtype=torch.float64)).max()
    assert kept == 65536 / (65536 - 6554)  # 0.1 · 65536 = 6553.6


def test_of_the_rarest_and_the_commonest_drop_the_mean_stays():
    many = torch.ones(2**20)
    assert torch.equal(Dropout(2**-18)(many), many)
    rest = Dropout(1 - 2**-20)(many)
    assert set(rest.tolist()) == {0.0, 65536.0}


def test_away_from_a_cpu_dropout_is_pytorch_s():
    far = torch.ones(3, 5, device="meta")
    assert Dropout(0.5)(far).device == far.device


# Feed-forward


def test_feed_forward_on_paper():
    network = FeedForward(2, 3)
    with torch.no_grad():
        network.up_proj.weight.copy_(
            torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        )
        network.up_proj.bias.copy_(torch.tensor([0.0, 0.0, -1.0]))
        network.down_proj.weight.copy_(
            torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
        )
        network.down_proj.bias.copy_(torch.tensor([0.5, 0.0]))
    # Wide: 2, -1, 0. After ReLU: 2, 0, 0. Narrow: 2 + 0.5 and 0.
    got = network(torch.tensor([2.0, -1.0]))
    torch.testing.assert_close(got, torch.tensor([2.5, 0.0]))


def test_feed_forward_is_a_convolution_of_width_1(x):
    network = FeedForward(D_MODEL, D_FF).double()
    up, down = network.up_proj, network.down_proj
    wide = F.conv1d(x.mT, up.weight.unsqueeze(-1), up.bias).relu()
    expected = F.conv1d(wide, down.weight.unsqueeze(-1), down.bias).mT
    torch.testing.assert_close(network(x), expected)


def test_feed_forward_lets_no_position_see_another(x):
    network = FeedForward(D_MODEL, D_FF).double()
    moved = x.clone()
    moved[:, 2] += 1
    changed = (network(moved) - network(x)).abs().amax((0, 2)) > 0
    assert changed.tolist() == [False, False, True, False, False]


# The residual


def test_post_ln_normalises_the_sum(x):
    residual = Residual(D_MODEL).double()
    expected = F.layer_norm(x + torch.sin(x), (D_MODEL,))
    torch.testing.assert_close(residual(x, torch.sin), expected)


def test_pre_ln_normalises_what_the_sub_layer_sees_and_keeps_the_sum(x):
    residual = Residual(D_MODEL, norm_first=True).double()
    expected = x + torch.sin(F.layer_norm(x, (D_MODEL,)))
    torch.testing.assert_close(residual(x, torch.sin), expected)


def test_in_pre_ln_a_silent_sub_layer_changes_nothing(x):
    residual = Residual(D_MODEL, norm_first=True).double()
    assert torch.equal(residual(x, torch.zeros_like), x)


@ORDERS
def test_dropout_acts_on_what_is_added_and_never_on_the_stream(x, norm_first):
    residual = Residual(D_MODEL, dropout=0.5, norm_first=norm_first).double()
    residual.norm = nn.Identity()
    added = residual(x, torch.ones_like) - x
    values = sorted(set(added.round(decimals=9).flatten().tolist()))
    assert values == [0.0, 2.0]  # Dropped, or doubled to make up for it.
    kept = residual.eval()(x, torch.ones_like)
    torch.testing.assert_close(kept, x + 1)


# The encoder layer


def torch_layer(layer, norm_first):
    """PyTorch's own layer with the weights of ours."""
    theirs = nn.TransformerEncoderLayer(
        D_MODEL,
        NUM_HEADS,
        D_FF,
        dropout=0,
        batch_first=True,
        norm_first=norm_first,
        dtype=torch.float64,
    )
    mine, attention = layer.state_dict(), layer.self_attention
    parts = [attention.q_proj, attention.k_proj, attention.v_proj]
    renamed = {
        "self_attn.in_proj_weight": torch.cat([p.weight for p in parts]),
        "self_attn.in_proj_bias": torch.cat([p.bias for p in parts]),
    }
    names = {
        "self_attn.out_proj": "self_attention.out_proj",
        "linear1": "feed_forward.up_proj",
        "linear2": "feed_forward.down_proj",
    }
    for theirs_name, ours in names.items():
        for part in ("weight", "bias"):
            renamed[f"{theirs_name}.{part}"] = mine[f"{ours}.{part}"]
    for i, ours in enumerate(("attention", "feed_forward"), 1):
        renamed[f"norm{i}.weight"] = mine[f"{ours}_residual.norm.gain"]
        renamed[f"norm{i}.bias"] = mine[f"{ours}_residual.norm.bias"]
    theirs.load_state_dict(renamed)
    return theirs


@ORDERS
@pytest.mark.parametrize("masked", [False, True])
def test_a_layer_is_pytorch_s_layer_and_so_is_its_gradient(
    x, norm_first, masked
):
    layer = encoder_layer(norm_first=norm_first)
    theirs = torch_layer(layer, norm_first)
    mask = causal(SEQ) if masked else None
    hidden = ~causal(SEQ) if masked else None
    upstream, found = torch.randn_like(x), []
    for run in (
        lambda x: layer(x, mask),
        lambda x: theirs(x, src_mask=hidden),
    ):
        leaf = x.clone().requires_grad_()
        y = run(leaf)
        found.append((y, *torch.autograd.grad(y, leaf, upstream)))
    torch.testing.assert_close(*found)


def test_a_layer_is_the_paper_s_unless_told(x):
    layer = EncoderLayer(D_MODEL, NUM_HEADS, D_FF).double()
    mean = layer(x).mean(-1)  # Post-LN: the norm has the last word.
    torch.testing.assert_close(mean, torch.zeros_like(mean))


@ORDERS
def test_a_layer_lets_a_position_see_what_the_mask_allows(x, norm_first):
    layer = encoder_layer(norm_first=norm_first)
    sees = torch.zeros(SEQ, SEQ, dtype=torch.bool)
    for key in range(SEQ):
        moved = x.clone()
        moved[:, key] += 1
        change = layer(moved, causal(SEQ)) - layer(x, causal(SEQ))
        sees[:, key] = change.abs().amax((0, 2)) > 0
    assert torch.equal(sees, causal(SEQ))


@ORDERS
def test_the_maps_of_a_layer_are_those_its_output_is_made_with(x, norm_first):
    layer = encoder_layer(norm_first=norm_first)
    weights = layer.weights(x, causal(SEQ))
    assert weights.shape == (BATCH, NUM_HEADS, SEQ, SEQ)
    seen = layer.attention_residual.seen(x)
    attention = layer.self_attention
    values = attention.v_proj(seen).unflatten(-1, (NUM_HEADS, -1))
    mixed = torch.einsum("bhqk,bkhd->bqhd", weights, values).flatten(-2)
    expected = attention.out_proj(mixed)
    torch.testing.assert_close(attention(seen, causal(SEQ)), expected)


def test_an_encoder_layer_of_the_paper_has_3_152_384_parameters():
    with torch.device("meta"):
        layer = EncoderLayer(512, 8, 2048)
    attention = 4 * (512 * 512 + 512)
    network = 512 * 2048 + 2048 + 2048 * 512 + 512
    norms = 2 * 2 * 512
    count = sum(p.numel() for p in layer.parameters())
    assert count == attention + network + norms == 3_152_384


@pytest.mark.parametrize("activation", [F.gelu, F.silu])
def test_a_network_bends_by_its_activation_and_may_have_no_bias(x, activation):
    network = FeedForward(D_MODEL, D_FF, activation=activation, bias=False)
    up, down = network.double().up_proj.weight, network.down_proj.weight
    expected = activation(x @ up.mT) @ down.mT
    torch.testing.assert_close(network(x), expected)
    assert list(network.state_dict()) == ["up_proj.weight", "down_proj.weight"]


@ORDERS
def test_a_layer_is_made_of_the_parts_it_is_given(x, norm_first):
    parts = Parts(
        norm=nn.RMSNorm,
        attention=partial(MultiHeadAttention, bias=False),
        feed_forward=partial(FeedForward, activation=F.gelu, bias=False),
    )
    layer = encoder_layer(norm_first=norm_first, parts=parts)
    assert not any("bias" in name for name in layer.state_dict())
    norms = layer.attention_residual.norm, layer.feed_forward_residual.norm
    assert all(isinstance(norm, nn.RMSNorm) for norm in norms)
    mask, expected = causal(SEQ), x
    looks = partial(layer.self_attention, mask=mask)
    for norm, says in zip(norms, (looks, layer.feed_forward), strict=True):
        if norm_first:
            expected = expected + says(norm(expected))
        else:
            expected = norm(expected + says(expected))
    torch.testing.assert_close(layer(x, mask), expected)
    seen = norms[0](x) if norm_first else x
    expected = layer.self_attention.weights(seen, mask)
    torch.testing.assert_close(layer.weights(x, mask), expected)


def test_dropout_is_off_in_eval_and_on_in_training(x):
    layer = encoder_layer(dropout=0.5)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_blocks_run_under_autocast_on_what_it_has_converted():
    layer = EncoderLayer(D_MODEL, NUM_HEADS, D_FF)
    network, norm = FeedForward(D_MODEL, D_FF), LayerNorm(D_MODEL)
    x = torch.randn(BATCH, SEQ, D_MODEL)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = layer(x)
        half = network(x)
        assert half.dtype == torch.bfloat16
        assert network(half).isfinite().all()
        assert norm(half).isfinite().all()
        assert norm(half).dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), layer(x), atol=0.1, rtol=0)


# Bad input


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["gain", "bias"])
def test_a_gain_or_bias_of_another_width_is_named(x, name):
    right = {"gain": torch.ones(D_MODEL), "bias": torch.ones(D_MODEL)}
    right = {n: p.double() for n, p in right.items()}
    # One number would broadcast over all features in silence.
    with pytest.raises(ValueError, match=rf"{name}: expected 14 .*got \(1,\)"):
        layer_norm(x, **right | {name: torch.ones(1, dtype=x.dtype)})
    with pytest.raises(TypeError, match=rf"{name}: expected torch.float64"):
        layer_norm(x, **right | {name: torch.ones(D_MODEL)})


@pytest.mark.bad_input
def test_a_layer_norm_of_whole_numbers_is_refused():
    one = torch.ones(D_MODEL)
    with pytest.raises(TypeError, match=r"^x: expected a floating-point"):
        layer_norm(torch.ones(D_MODEL).long(), one, one)


@pytest.mark.bad_input
@pytest.mark.parametrize("eps", [0, -1e-5, float("nan")])
def test_an_eps_that_is_not_positive_is_named(x, eps):
    one = torch.ones(D_MODEL, dtype=x.dtype)
    with pytest.raises(ValueError, match=r"eps: expected a positive number"):
        layer_norm(x, one, one, eps)
    with pytest.raises(ValueError, match=r"eps: expected a positive number"):
        LayerNorm(D_MODEL, eps=eps)


@pytest.mark.bad_input
def test_numbers_that_are_no_vectors_are_refused():
    network, norm = FeedForward(D_MODEL, D_FF), LayerNorm(D_MODEL)
    for layer in (network, norm):
        with pytest.raises(TypeError, match=r"x: expected a floating-point"):
            layer(torch.ones(D_MODEL, dtype=torch.long))
        with pytest.raises(TypeError, match=r"x: expected .*got list"):
            layer([1.0] * D_MODEL)
        with pytest.raises(ValueError, match="x: expected at least one axis"):
            layer(torch.tensor(1.0))


@pytest.mark.bad_input
def test_layers_name_a_wrong_width_and_a_wrong_dtype(x):
    network = FeedForward(D_MODEL, D_FF)
    for layer in (network, LayerNorm(D_MODEL)):
        with pytest.raises(ValueError, match=r"width 14, got \(3, 5, 13\)"):
            layer(torch.ones(3, 5, 13))
    with pytest.raises(TypeError, match=r"x: expected torch.float32, got"):
        network(x)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("size", "error", "says"),
    [(0, ValueError, "at least 1"), (-2, ValueError, "at least 1")]
    + [(size, TypeError, "an int") for size in (2.0, True, "14", None)],
)
def test_a_size_that_is_no_whole_number_from_1_up_is_named(size, error, says):
    for make, name in (
        (lambda: LayerNorm(size), "d_model"),
        (lambda: FeedForward(size, 3), "d_model"),
        (lambda: FeedForward(3, size), "d_ff"),
        (lambda: Residual(size), "d_model"),
    ):
        with pytest.raises(error, match=f"{name}: expected {says}"):
            make()


@pytest.mark.bad_input
@pytest.mark.parametrize("dropout", [-0.1, 1, 2.5, float("nan")])
def test_a_dropout_that_is_no_probability_is_named(dropout):
    with pytest.raises(ValueError, match="dropout: expected a probability"):
        Residual(D_MODEL, dropout=dropout)


@pytest.mark.bad_input
def test_a_sub_layer_that_changes_the_shape_is_not_broadcast(x):
    with pytest.raises(
        ValueError, match=r"sublayer: .*\(3, 5, 14\).*\(3, 5, 1\)"
    ):
        Residual(D_MODEL).double()(x, lambda y: y[..., :1])


@pytest.mark.bad_input
def test_what_is_on_another_device_is_named():
    x, away = torch.ones(3, 5, D_MODEL), torch.ones(D_MODEL, device="meta")
    one = torch.ones(D_MODEL)
    cases = {
        "gain": lambda: layer_norm(x, away, one),
        "bias": lambda: layer_norm(x, one, away),
        "x": lambda: FeedForward(D_MODEL, D_FF).to("meta")(x),
        "sublayer": lambda: Residual(D_MODEL)(x, lambda y: y.to("meta")),
    }
    for name, call in cases.items():
        with pytest.raises(ValueError, match=rf"{name}: expected a tensor on"):
            call()


@pytest.mark.bad_input
@ORDERS
def test_a_layer_names_what_is_on_another_device(x, norm_first):
    layer = encoder_layer(norm_first=norm_first)
    for call in (layer, layer.weights):
        with pytest.raises(ValueError, match="expected a tensor on"):
            call(x.to("meta"))


@pytest.mark.bad_input
def test_what_is_no_tensor_no_number_and_no_switch_is_named(x):
    one = torch.ones(D_MODEL, dtype=x.dtype)
    with pytest.raises(TypeError, match=r"bias: expected .* got NoneType"):
        layer_norm(x, one, None)
    with pytest.raises(ValueError, match=r"eps: expected a positive .*'a'"):
        layer_norm(x, one, one, "a")
    with pytest.raises(TypeError, match=r"dropout: expected a number.*'0.1'"):
        Residual(D_MODEL, dropout="0.1")
    with pytest.raises(TypeError, match="norm_first: expected True or False"):
        EncoderLayer(D_MODEL, NUM_HEADS, D_FF, norm_first="pre")
    with pytest.raises(TypeError, match=r"sublayer: expected .*got NoneType"):
        Residual(D_MODEL).double()(x, lambda y: None)
