"""Whatever the sizes and numbers: rules of chapter 07."""

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
    normal,
)

from companion.blocks import (
    PARTS,
    Dropout,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    Parts,
    Residual,
    layer_norm,
)
from companion.masks import causal_mask
from companion.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    StackConfig,
)

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
def stacks(draw, kind):
    """A stack or a layer of that kind, in 64 bits, without dropout."""
    torch.manual_seed(draw(SEEDS))
    wanted = draw(sizes())
    if kind in (Encoder, Decoder):
        made = kind(StackConfig(**wanted))
    else:
        del wanted["num_layers"]
        made = kind(**wanted)
    return made.double().eval(), wanted["d_model"]


# Norms.


@given(normal(SIZES, SIZES, SIZES), st.floats(1e-6, 1), st.data())
def test_layer_norm_agrees_with_pytorch_in_both_forms(x, eps, data):
    gain, bias = (data.draw(normal(x.shape[-1])) for _ in range(2))
    theirs = F.layer_norm(x, gain.shape, gain, bias, eps)
    close(layer_norm(x, gain, bias, eps), theirs)
    layer = LayerNorm(len(gain), eps=eps).double()
    layer.gain.data, layer.bias.data = gain, bias
    close(layer(x), theirs)


@given(
    normal(FEW, SIZES, st.integers(2, 9)), st.floats(0.1, 9), st.floats(-9, 9)
)
def test_a_norm_forgets_shift_and_scale_of_each_vector(x, scale, shift):
    one, zero = torch.ones_like(x[0, 0]), torch.zeros_like(x[0, 0])
    assume((x.var(-1, correction=0) > 1e-3).all())
    plain = layer_norm(x, one, zero, 1e-12)
    close(layer_norm(scale * x + shift, one, zero, 1e-12), plain, **ROUNDED)
    close(plain.mean(-1), torch.zeros_like(plain[..., 0]), **ROUNDED)
    close(plain.square().mean(-1), torch.ones_like(plain[..., 0]), **ROUNDED)


ROUNDED = {"atol": 1e-6, "rtol": 1e-6}


@given(HALVES, SIZES, st.floats(0, 200))
def test_a_norm_is_finite_in_half_precision(dtype, width, scale):
    x = (scale * torch.linspace(-1, 1, width)).to(dtype)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    normal_x = layer_norm(x, one, zero)
    assert normal_x.dtype == dtype
    assert normal_x.isfinite().all()


# Dropout, network, residual.


@given(normal(SIZES, SIZES), st.sampled_from([0.0, 0.25, 0.5, 0.9]), SEEDS)
def test_dropout_keeps_a_feature_scaled_or_drops_it(x, p, seed):
    torch.manual_seed(seed)
    drop = Dropout(p).train()
    dropped = drop(x)
    kept = dropped != 0
    close(dropped[kept], x[kept] / (1 - round(p * 2**16) / 2**16))
    assert torch.equal(drop.eval()(x), x)
    assert p > 0 or kept.all()


@given(SIZES, SIZES, FEW, SIZES, st.data())
def test_a_position_thinks_alone(d_model, d_ff, batch, seq, data):
    network = FeedForward(d_model, d_ff).double()
    x = data.draw(normal(batch, seq, d_model))
    place = data.draw(st.integers(0, seq - 1))
    close(network(x)[:, place], network(x[:, place]))
    up, down = network.up_proj, network.down_proj
    hidden = (x @ up.weight.T + up.bias).clamp(min=0)
    close(network(x), hidden @ down.weight.T + down.bias)


@given(normal(FEW, SIZES, SIZES), st.booleans())
def test_a_silent_sublayer_leaves_the_stream_or_its_norm(x, norm_first):
    residual = Residual(x.shape[-1], norm_first=norm_first).double()
    silent = residual(x, torch.zeros_like)
    close(silent, x if norm_first else residual.norm(x))
    seen = residual.norm(x) if norm_first else x
    close(residual.seen(x), seen)
    echo = residual(x, lambda y: y)
    close(echo, x + seen if norm_first else residual.norm(2 * x))


@pytest.mark.bad_input
@given(normal(FEW, SIZES, SIZES), st.integers(0, 2))
def test_a_sublayer_of_another_shape_is_refused(x, axis):
    residual = Residual(x.shape[-1]).double()
    with pytest.raises(ValueError, match=r"^sublayer: .*got \("):
        residual(x, lambda y: torch.cat([y, y], dim=axis))


# Layers and stacks.


@given(stacks(EncoderLayer), SIZES, FEW, st.data())
def test_hidden_positions_reach_no_other_one(drawn, seq, more, data):
    layer, d_model = drawn
    x = data.draw(normal(2, seq, d_model))
    longer = torch.cat([x, data.draw(normal(2, more, d_model))], dim=1)
    mask = torch.arange(seq + more) < seq
    close(layer(longer, mask)[:, :seq], layer(x))
    close(
        layer.weights(x).sum(-1),
        torch.ones(2, 1, 1)
        .double()
        .expand(2, layer.self_attention.num_heads, seq),
    )


@given(stacks(Encoder), SIZES, SEEDS, st.data())
def test_an_encoder_sees_a_set_until_it_is_told_positions(
    drawn, seq, seed, data
):
    encoder, d_model = drawn
    x = data.draw(normal(2, seq, d_model))
    torch.manual_seed(seed)
    order = torch.randperm(seq)
    close(encoder(x[:, order]), encoder(x)[:, order])
    maps = encoder.maps(x)
    assert len(maps) == len(encoder.layers)
    close(maps[0], encoder.layers[0].weights(x))


@given(stacks(DecoderLayer), SIZES, SIZES, SIZES, st.data())
def test_a_decoder_layer_reads_backwards_and_all_of_the_memory(
    drawn, tgt, src, cut, data
):
    layer, d_model = drawn
    x = data.draw(normal(2, tgt, d_model))
    memory = data.draw(normal(2, src, d_model))
    mask = causal_mask(tgt)
    whole = layer(x, memory, mask)
    cut = min(cut, tgt)
    close(layer(x[:, :cut], memory, mask[:cut, :cut]), whole[:, :cut])
    close(layer(x, memory.flip(1), mask), whole)
    weights = layer.cross_weights(x, memory, mask)
    close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert not layer.weights(x, mask).triu(1).any()


@given(stacks(Decoder), SIZES, SIZES, FEW, st.data())
def test_hidden_memory_reaches_no_target(drawn, tgt, src, more, data):
    decoder, d_model = drawn
    x = data.draw(normal(2, tgt, d_model))
    memory = data.draw(normal(2, src, d_model))
    longer = torch.cat([memory, data.draw(normal(2, more, d_model))], dim=1)
    hidden = torch.arange(src + more) < src
    mask = causal_mask(tgt)
    short = decoder(x, memory, mask)
    close(decoder(x, longer, mask, hidden), short)
    own, cross = decoder.maps(x, longer, mask, hidden)
    assert len(own) == len(cross) == len(decoder.layers)
    assert not any(m[..., src:].any() for m in cross)


@given(sizes())
def test_parts_decide_what_a_layer_is_made_of(wanted):
    del wanted["num_layers"]
    plain = EncoderLayer(**wanted, parts=PARTS)
    assert isinstance(plain.feed_forward, FeedForward)
    other = EncoderLayer(**wanted, parts=Parts(feed_forward=Silent))
    assert isinstance(other.feed_forward, Silent)


class Silent(torch.nn.Module):
    """Says nothing."""

    def __init__(self, d_model, d_ff):
        super().__init__()

    def forward(self, x):
        """Zeros."""
        return torch.zeros_like(x)
