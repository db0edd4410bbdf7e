"""The parts of today's block: PyTorch and Hugging Face agree, rules hold."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from companion.blocks import EncoderLayer, FeedForward, LayerNorm, layer_norm
from companion.contracts import check
from companion.multihead import KVCache, MultiHeadAttention
from companion.positions import rotate
from companion.transformer import Encoder, StackConfig
from companion.variants import (
    GroupedQueryAttention,
    RMSNorm,
    SwiGLU,
    cache_numbers,
    grouped_query_attention,
    rms_norm,
    today,
)

# All sizes differ, so no axis can stand in for another. Six heads of four, in
# two groups of three: as many groups as heads in a group would hide a mix-up.
BATCH, SEQ, KEYS, D_MODEL, HEADS, KV_HEADS, D_FF = 3, 5, 7, 24, 6, 2, 11
HEAD_DIM, D_V = 4, 13
SHARES = pytest.mark.parametrize("kv_heads", [1, KV_HEADS, 3, HEADS])
TURNS = pytest.mark.parametrize("rotary", [False, True])


@pytest.fixture
def x():
    return torch.randn(BATCH, SEQ, D_MODEL, dtype=torch.float64)


def heads(kv_heads=KV_HEADS):
    """Queries, keys and values; the values have a width of their own."""
    like = {"dtype": torch.float64}
    return (
        torch.randn(BATCH, HEADS, SEQ, HEAD_DIM, **like),
        torch.randn(BATCH, kv_heads, KEYS, HEAD_DIM, **like),
        torch.randn(BATCH, kv_heads, KEYS, D_V, **like),
    )


def attention(kv_heads=KV_HEADS, **settings):
    """In float64, and with biases that are not 0, which would hide them."""
    made = GroupedQueryAttention(
        D_MODEL, HEADS, num_kv_heads=kv_heads, **settings
    ).double()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.3)
    return made


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


def some_mask(*shape):
    """Each query sees at least one key, and not all see all."""
    mask = torch.rand(shape) < 0.6
    mask[..., 2] = True
    return mask


# RMSNorm


def test_rms_norm_on_paper():
    # Squares 1, 1, 49, 49: their mean is 25, its root 5.
    x = torch.tensor([1.0, -1.0, 7.0, 7.0])
    got = rms_norm(x, torch.tensor([1.0, 1.0, 1.0, 10.0]), eps=1e-12)
    torch.testing.assert_close(got, torch.tensor([0.2, -0.2, 1.4, 14.0]))


@pytest.mark.parametrize("eps", [1e-6, 0.1])
def test_rms_norm_is_pytorch_s_and_so_are_its_gradients(x, eps):
    gain, upstream = torch.randn_like(x[0, 0]), torch.randn_like(x)
    found = []
    for norm in (
        lambda x, g: rms_norm(x, g, eps),
        lambda x, g: F.rms_norm(x, (D_MODEL,), g, eps),
    ):
        leaves = [t.clone().requires_grad_() for t in (x, gain)]
        y = norm(*leaves)
        found.append((y, *torch.autograd.grad(y, leaves, upstream)))
    torch.testing.assert_close(*found)


def test_a_new_rms_norm_has_a_gain_of_ones_and_no_bias(x):
    norm = RMSNorm(D_MODEL).double()
    assert [name for name, _ in norm.named_parameters()] == ["gain"]
    expected = nn.RMSNorm(D_MODEL, eps=1e-6, dtype=torch.float64)(x)
    torch.testing.assert_close(norm(x), expected)


def test_the_gain_of_an_rms_norm_learns(x):
    norm = RMSNorm(D_MODEL).double()
    nn.init.normal_(norm.gain)
    torch.testing.assert_close(norm(x), rms_norm(x, norm.gain))
    norm(x).sum().backward()
    assert norm.gain.grad.abs().min() > 0


def test_the_scale_of_a_vector_does_not_change_its_rms_norm_but_a_shift_does(x):
    norm = RMSNorm(D_MODEL, eps=1e-12).double()
    torch.testing.assert_close(norm(7 * x), norm(x))
    assert (norm(x + 7) - norm(x)).abs().max() > 0.5
    layer = LayerNorm(D_MODEL, eps=1e-12).double()
    torch.testing.assert_close(layer(7 * x + 7), layer(x))


def test_rms_norm_keeps_the_mean_that_layer_norm_removes(x):
    one, zero = torch.ones_like(x[0, 0]), torch.zeros_like(x[0, 0])
    shifted = x + 3
    normal = rms_norm(shifted, one)
    assert normal.mean(-1).min() > 0.5
    squares = normal.square().mean(-1)
    torch.testing.assert_close(squares, squares.new_ones(()).expand_as(squares))
    # Of vectors whose mean is 0 already, both make the same.
    centred = x - x.mean(-1, keepdim=True)
    expected = layer_norm(centred, one, zero, eps=1e-6)
    torch.testing.assert_close(rms_norm(centred, one), expected)


def test_zeros_stay_zeros_with_a_finite_gradient():
    x = torch.zeros(1, D_MODEL, requires_grad=True)
    y = RMSNorm(D_MODEL)(x)
    y.sum().backward()
    assert (y == 0).all()
    assert x.grad.isfinite().all()


def test_large_numbers_survive_an_rms_norm_in_half_precision():
    x = torch.tensor([[-300.0, 400.0, 500.0, 700.0]])
    expected = rms_norm(x, torch.ones(4))
    got = rms_norm(x.half(), torch.ones(4).half())
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.float(), expected, atol=1e-3, rtol=0)


def test_an_rms_norm_takes_4_operations_a_feature_where_layer_norm_takes_7():
    x, one = torch.randn(1, D_MODEL), torch.ones(D_MODEL)
    with Operations() as layer:
        layer_norm(x, one, one)
    with Operations() as rms:
        rms_norm(x, one)
    assert (layer.count, rms.count) == (7 * D_MODEL, 4 * D_MODEL)


class Operations(TorchDispatchMode):
    """Counts the numbers that operations on whole vectors read."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        sizes = [a.numel() for a in args if isinstance(a, torch.Tensor)]
        if max(sizes, default=0) >= D_MODEL:
            self.count += max(sizes)
        return func(*args, **(kwargs or {}))


# SwiGLU


def test_swiglu_is_its_equation(x):
    network = SwiGLU(D_MODEL, D_FF).double()
    gate, up, down = (
        p.weight
        for p in (network.gate_proj, network.up_proj, network.down_proj)
    )
    wide = torch.einsum("bsd,fd->bsf", x, gate)
    wide = wide / (1 + torch.exp(-wide)) * torch.einsum("bsd,fd->bsf", x, up)
    expected = torch.einsum("bsf,df->bsd", wide, down)
    torch.testing.assert_close(network(x), expected)


def test_swiglu_has_three_maps_and_no_bias():
    shapes = {n: tuple(p.shape) for n, p in SwiGLU(3, 7).named_parameters()}
    assert shapes == {
        "gate_proj.weight": (7, 3),
        "up_proj.weight": (7, 3),
        "down_proj.weight": (3, 7),
    }


def test_a_gate_of_two_thirds_the_width_has_the_weights_of_a_relu_network():
    with torch.device("meta"):
        gated = SwiGLU(768, 2 * 4 * 768 // 3)
        plain = FeedForward(768, 4 * 768, bias=False)
        rounded = SwiGLU(4096, 11_008)
        unrounded = SwiGLU(4096, 2 * 4 * 4096 // 3)
    assert numbers(gated) == numbers(plain) == 4_718_592
    assert (numbers(unrounded), 8 * 4096**2) == (134_209_536, 134_217_728)
    assert numbers(rounded) / (8 * 4096**2) == pytest.approx(1.0078, abs=1e-4)


def numbers(module):
    return sum(p.numel() for p in module.parameters())


# Grouped-query attention


@SHARES
@pytest.mark.parametrize("masked", [False, True])
def test_grouped_query_attention_is_pytorch_s(kv_heads, masked):
    q, k, v = heads(kv_heads)
    mask = some_mask(BATCH, HEADS, SEQ, KEYS) if masked else None
    expected = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    torch.testing.assert_close(grouped_query_attention(q, k, v, mask), expected)


@SHARES
def test_its_gradients_are_pytorch_s(kv_heads):
    leaves = [t.requires_grad_() for t in heads(kv_heads)]
    upstream = torch.randn(BATCH, HEADS, SEQ, D_V, dtype=torch.float64)
    found = [
        torch.autograd.grad(attend(*leaves), leaves, upstream)
        for attend in (
            grouped_query_attention,
            lambda *qkv: F.scaled_dot_product_attention(*qkv, enable_gqa=True),
        )
    ]
    torch.testing.assert_close(*found)


def test_one_group_is_multi_query_attention():
    q, k, v = heads(kv_heads=1)
    mask = some_mask(BATCH, 1, SEQ, KEYS)
    # As Shazeer (2019) writes it: keys and values have no axis of heads.
    scores = torch.einsum("bhqd,bkd->bhqk", q, k[:, 0]) / HEAD_DIM**0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    expected = torch.einsum("bhqk,bkv->bhqv", weights, v[:, 0])
    torch.testing.assert_close(grouped_query_attention(q, k, v, mask), expected)


def test_neighbouring_heads_share_on_paper():
    # Scores are 0, so a head gathers the mean of the values of its group.
    q, k = torch.zeros(1, 4, 1, 1), torch.zeros(1, 2, 2, 1)
    v = torch.tensor([[1.0, 3.0], [10.0, 30.0]]).view(1, 2, 2, 1)
    got = grouped_query_attention(q, k, v).flatten()
    assert got.tolist() == [2.0, 2.0, 20.0, 20.0]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_query_that_may_look_at_nobody_gathers_zeros_without_nan():
    leaves = [t.requires_grad_() for t in heads()]
    mask = some_mask(BATCH, HEADS, SEQ, KEYS)
    mask[1, 4, 2] = False
    with torch.autograd.detect_anomaly(check_nan=True):
        got = grouped_query_attention(*leaves, mask)
        got.sum().backward()
    assert (got[1, 4, 2] == 0).all()
    assert got[1, 4, 3].abs().min() > 0
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


@pytest.mark.parametrize("masked", [False, True])
def test_as_many_groups_as_heads_is_multi_head_attention(x, masked):
    ours = attention(kv_heads=HEADS)
    peer = MultiHeadAttention(D_MODEL, HEADS).double()
    peer.load_state_dict(ours.state_dict())
    memory = torch.randn(BATCH, KEYS, D_MODEL, dtype=torch.float64)
    mask = some_mask(BATCH, 1, SEQ, KEYS) if masked else None
    for call in ("forward", "weights"):
        got, expected = (
            getattr(module, call)(x, mask, key=memory)
            for module in (ours, peer)
        )
        assert torch.equal(got, expected)


@SHARES
@TURNS
def test_the_module_is_the_function_between_its_maps(x, kv_heads, rotary):
    module = attention(kv_heads, rotary=rotary)
    mask = some_mask(BATCH, HEADS, SEQ, SEQ)
    q, k, v = (
        proj(x).view(BATCH, SEQ, -1, HEAD_DIM).transpose(1, 2)
        for proj in (module.q_proj, module.k_proj, module.v_proj)
    )
    if rotary:  # Values stay as they are.
        q, k = (rotate(y, torch.arange(SEQ)) for y in (q, k))
    gathered = grouped_query_attention(q, k, v, mask)
    expected = module.out_proj(gathered.transpose(1, 2).flatten(2))
    torch.testing.assert_close(module(x, mask), expected)


@SHARES
@TURNS
def test_weights_times_values_is_what_the_module_returns(x, kv_heads, rotary):
    module = attention(kv_heads, rotary=rotary)
    mask = some_mask(BATCH, 1, SEQ, SEQ)
    v = module.v_proj(x).view(BATCH, SEQ, kv_heads, HEAD_DIM).transpose(1, 2)
    v = v.repeat_interleave(HEADS // kv_heads, dim=1)
    gathered = module.weights(x, mask) @ v
    expected = module.out_proj(gathered.transpose(1, 2).flatten(2))
    torch.testing.assert_close(module(x, mask), expected)


def test_values_may_be_made_of_something_else_than_keys(x):
    module = attention()
    other = torch.randn_like(x)
    peer = attention(kv_heads=HEADS)
    state = module.state_dict()
    for name in ("k_proj", "v_proj"):
        for kind in ("weight", "bias"):
            rows = state[f"{name}.{kind}"].unflatten(0, (KV_HEADS, HEAD_DIM))
            rows = rows.repeat_interleave(HEADS // KV_HEADS, dim=0)
            state[f"{name}.{kind}"] = rows.flatten(0, 1)
    peer.load_state_dict(state)
    got = module(x, key=x, value=other)
    torch.testing.assert_close(got, peer(x, key=x, value=other))


def test_a_module_with_fewer_groups_has_narrower_keys_and_values():
    made = GroupedQueryAttention(D_MODEL, HEADS, num_kv_heads=KV_HEADS)
    widths = made.q_proj, made.k_proj, made.v_proj, made.out_proj
    assert [p.out_features for p in widths] == [24, 8, 8, 24]
    assert made.k_proj.bias.abs().max() == 0
    bound = (6 / (24 + 8)) ** 0.5  # Xavier's, as for the other maps.
    assert 0.9 * bound < made.k_proj.weight.abs().max() <= bound
    bare = GroupedQueryAttention(
        D_MODEL, HEADS, num_kv_heads=KV_HEADS, bias=False
    )
    assert all(name.endswith("weight") for name in bare.state_dict())


# Rotary positions inside attention


def test_with_rotary_positions_only_offsets_count(x):
    module = attention(rotary=True)
    shifted = [
        (module.queries(x, start) @ keys.mT)
        for start in (0, 100)
        for keys in [module.keys(x, start).repeat_interleave(3, dim=1)]
    ]
    torch.testing.assert_close(*shifted)
    assert (module.keys(x, 100) - module.keys(x)).abs().max() > 0.1
    # The same content, after three others that nobody may look at.
    before = torch.randn(BATCH, 3, D_MODEL, dtype=torch.float64)
    mask = causal(SEQ + 3)
    mask[3:, :3] = False
    later = module(torch.cat([before, x], dim=1), mask)[:, 3:]
    torch.testing.assert_close(later, module(x, causal(SEQ)))


def test_with_rotary_positions_the_order_counts_and_without_it_does_not(x):
    for rotary in (False, True):
        module = attention(rotary=rotary)
        moved = (module(x.flip(1)).flip(1) - module(x)).abs().max()
        assert (moved > 0.01) == rotary


def test_values_are_not_turned(x):
    # Every position holds the same: whatever the weights, so is the answer.
    same = x[:, :1].expand(-1, SEQ, -1)
    got = attention(rotary=True)(same, causal(SEQ))
    torch.testing.assert_close(got, got[:, :1].expand_as(got))


# The cache


@SHARES
@TURNS
def test_a_cache_gives_what_a_whole_pass_gives(x, kv_heads, rotary):
    module = attention(kv_heads, rotary=rotary)
    cache = KVCache()
    mask = torch.ones(BATCH, 1, 1, SEQ, dtype=torch.bool)
    mask[1, ..., 1] = False
    steps = [
        module(x[:, i : i + 1], mask[..., : i + 1], cache=cache)
        for i in range(SEQ)
    ]
    expected = module(x, causal(SEQ) & mask)
    torch.testing.assert_close(torch.cat(steps, dim=1), expected)


@SHARES
@torch.no_grad()
def test_a_cache_stores_two_numbers_a_layer_kv_head_dimension_and_token(
    x, kv_heads
):
    layers = [(attention(kv_heads), KVCache()) for _ in range(2)]
    for i in range(SEQ):
        for module, cache in layers:
            module(x[:, i : i + 1], cache=cache)
    stored = sum(t.numel() for _, cache in layers for t in cache.stored)
    assert stored == BATCH * cache_numbers(2, kv_heads, HEAD_DIM, SEQ)


def test_eight_kv_heads_of_64_store_an_eighth():
    # 2 · 80 layers · 64 heads · 128 numbers, two bytes each, 4096 tokens.
    assert cache_numbers(80, 64, 128, 1) == 1_310_720
    assert cache_numbers(80, 8, 128, 1) == 163_840
    assert 2 * cache_numbers(80, 64, 128, 4096) == 10_737_418_240


# Today's block


def llama(kv_heads):
    """Hugging Face's model with our sizes, and what it is made of."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=17,
        hidden_size=D_MODEL,
        intermediate_size=D_FF,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=kv_heads,
        rms_norm_eps=1e-6,
        max_position_embeddings=64,
        attn_implementation="eager",
    )
    model = transformers.LlamaModel(config).eval()
    for parameter in model.parameters():  # Gains of 1 would hide a lost gain.
        nn.init.normal_(parameter, std=0.4)
    return model


def turned_as_pairs(weight):
    """Their rows in our order: they turn i with i + d / 2, we with i + 1."""
    halves = weight.unflatten(0, (-1, 2, HEAD_DIM // 2))
    return halves.transpose(1, 2).flatten(0, 2)


def from_llama(theirs, num_kv_heads):
    config = StackConfig(
        d_model=D_MODEL,
        num_heads=HEADS,
        d_ff=D_FF,
        num_layers=2,
        dropout=0.0,
        norm_first=True,
    )
    ours = Encoder(config, today(num_kv_heads))
    state = {"norm.gain": theirs.norm.weight}
    for i, layer in enumerate(theirs.layers):
        at, own, mlp = f"layers.{i}.", layer.self_attn, layer.mlp
        state |= {
            f"{at}self_attention.q_proj.weight": turned_as_pairs(
                own.q_proj.weight
            ),
            f"{at}self_attention.k_proj.weight": turned_as_pairs(
                own.k_proj.weight
            ),
            f"{at}self_attention.v_proj.weight": own.v_proj.weight,
            f"{at}self_attention.out_proj.weight": own.o_proj.weight,
            f"{at}attention_residual.norm.gain": layer.input_layernorm.weight,
            f"{at}feed_forward_residual.norm.gain": (
                layer.post_attention_layernorm.weight
            ),
            f"{at}feed_forward.gate_proj.weight": mlp.gate_proj.weight,
            f"{at}feed_forward.up_proj.weight": mlp.up_proj.weight,
            f"{at}feed_forward.down_proj.weight": mlp.down_proj.weight,
        }
    ours.load_state_dict(state)
    return ours.eval()


@SHARES
@pytest.mark.parametrize("padding", ["none", "right", "left"])
@torch.no_grad()
def test_today_s_layers_are_llama_s(kv_heads, padding):
    theirs = llama(kv_heads)
    ours = from_llama(theirs, kv_heads)
    tokens = torch.randint(1, 17, (BATCH, KEYS))
    real = torch.ones(BATCH, KEYS, dtype=torch.bool)
    if padding == "right":
        real[1, -3:] = False
    if padding == "left":
        real[1, :3] = False
    expected = theirs(tokens, attention_mask=real.long()).last_hidden_state
    mask = causal(KEYS) & real[:, None, None]
    got = ours(theirs.embed_tokens(tokens), mask)
    # What stands at padding is nobody's business.
    torch.testing.assert_close(got[real], expected[real], atol=1e-5, rtol=1e-5)


def test_without_the_order_of_the_rows_it_is_another_model():
    theirs = llama(KV_HEADS)
    ours = from_llama(theirs, KV_HEADS)
    tokens = torch.randint(1, 17, (BATCH, KEYS))
    x = theirs.embed_tokens(tokens)
    before = ours(x, causal(KEYS))
    for layer, other in zip(ours.layers, theirs.layers, strict=True):
        layer.self_attention.q_proj.weight.data = other.self_attn.q_proj.weight
        layer.self_attention.k_proj.weight.data = other.self_attn.k_proj.weight
    assert (ours(x, causal(KEYS)) - before).abs().max() > 0.1


@pytest.mark.parametrize("kv_heads", [1, 3])
def test_today_s_encoder_keeps_the_contract_but_knows_the_order(kv_heads):
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 17, "num_layers": 2}
    config = StackConfig(**sizes, dropout=0.0, norm_first=True)
    parts = today(kv_heads)
    # That the order is told from outside is what rotary positions change.
    report = check("encoder", Encoder(config, parts))
    assert report.passed, str(report)
    assert "· Reordering the positions reorders the rows" in str(report)
    unturned = parts._replace(attention=parts.cross_attention)
    report = check("encoder", Encoder(config, unturned))
    assert report.passed, str(report)
    assert not report.notes, str(report)


def test_today_s_block_has_no_bias_and_no_turned_cross_attention():
    parts = today(KV_HEADS)
    layer = EncoderLayer(D_MODEL, HEADS, D_FF, norm_first=True, parts=parts)
    assert not any("bias" in name for name in layer.state_dict())
    assert layer.self_attention.rotary
    cross = parts.cross_attention(D_MODEL, HEADS)
    assert (cross.num_kv_heads, cross.rotary) == (KV_HEADS, False)


def test_today_s_block_runs_under_autocast_and_learns(x):
    layer = EncoderLayer(
        D_MODEL, HEADS, D_FF, norm_first=True, parts=today(KV_HEADS)
    )
    x, mask = x.float(), causal(SEQ)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x, mask)
    torch.testing.assert_close(y.float(), layer(x, mask), atol=0.1, rtol=0)
    y.float().square().sum().backward()
    assert all(p.grad.abs().max() > 0 for p in layer.parameters())


def test_a_layer_of_7b_with_eight_groups_in_numbers():
    with torch.device("meta"):
        made = {
            kv_heads: numbers(
                EncoderLayer(
                    4096, 32, 11_008, norm_first=True, parts=today(kv_heads)
                )
            )
            for kv_heads in (32, 8)
        }
        plain = EncoderLayer(4096, 32, 4 * 4096)
    assert numbers(plain) == 201_379_840
    # 4 d² + 3 · 11 008 d + two gains; eight groups take 3/4 of 2 d² away.
    assert made == {32: 202_383_360, 8: 202_383_360 - 3 * 4096**2 // 2}


# What does not fit


@pytest.mark.bad_input
def test_an_rms_norm_names_what_does_not_fit():
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match=r"gain: expected 3 .*got \(1,\)"):
        rms_norm(x, torch.ones(1))
    with pytest.raises(TypeError, match=r"gain: expected torch.float32"):
        rms_norm(x, torch.ones(3).double())
    with pytest.raises(TypeError, match=r"x: expected a floating-point"):
        rms_norm(x.long(), torch.ones(3))
    for make in (
        lambda: rms_norm(x, torch.ones(3), 0),
        lambda: RMSNorm(3, eps=0),
    ):
        with pytest.raises(ValueError, match="eps: expected a positive"):
            make()
    with pytest.raises(ValueError, match=r"width 5, got \(2, 3\)"):
        RMSNorm(5)(x)


@pytest.mark.bad_input
def test_a_gate_names_vectors_of_another_width():
    with pytest.raises(ValueError, match=r"width 5, got \(2, 3\)"):
        SwiGLU(5, 7)(torch.ones(2, 3))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (
            {"k": (3, 4, 7, 4)},
            ValueError,
            "k: expected kv_heads .* 6 heads",
        ),
        ({"k": (3, 2, 7, 5)}, ValueError, r"k: expected shape .*d=4.*7, 5\)"),
        ({"k": (1, 2, 7, 4)}, ValueError, r"k: expected shape .*batch=3"),
        ({"v": (3, 2, 5, 13)}, ValueError, r"v: expected shape .*key=7"),
        ({"v": (3, 1, 7, 13)}, ValueError, r"v: expected shape .*kv_head=2"),
        ({"q": (6, 5, 4)}, ValueError, r"q: expected shape .*\(6, 5, 4\)"),
    ],
)
def test_heads_that_do_not_fit_together_are_named(change, error, match):
    qkv = dict(zip("qkv", heads(), strict=True))
    qkv |= {n: torch.ones(s).double() for n, s in change.items()}
    if change.get("k", (0, 0))[1] == 4:
        qkv["v"] = torch.ones(3, 4, 7, 13).double()
    with pytest.raises(error, match=match):
        grouped_query_attention(**qkv)


@pytest.mark.bad_input
def test_a_mask_that_does_not_fit_is_refused(x):
    q, k, v = heads()
    wrong = torch.ones(KEYS, SEQ, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"\(3, 6, 5, 7\), got \(7, 5\)"):
        grouped_query_attention(q, k, v, wrong)
    for call in (
        lambda: grouped_query_attention(q, k, v, torch.ones(SEQ, KEYS)),
        lambda: attention()(x, torch.ones(SEQ, SEQ)),
    ):
        with pytest.raises(TypeError, match="mask: expected a boolean"):
            call()
    with pytest.raises(ValueError, match=r"\(3, 6, 5, 5\), got \(7, 5\)"):
        attention().weights(x, wrong)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        (
            {"num_kv_heads": 4},
            ValueError,
            "num_kv_heads: .*6 heads, got 4",
        ),
        ({"num_kv_heads": 0}, ValueError, "num_kv_heads: expected at least 1"),
        ({"num_kv_heads": 2.0}, TypeError, "num_kv_heads: expected an int"),
        ({"rotary": 1}, TypeError, "rotary: expected True or False"),
        ({"num_heads": 8, "rotary": True}, ValueError, "24 / 8 = 3"),
        ({"num_heads": 7}, ValueError, "num_heads: expected a divisor"),
    ],
)
def test_a_grouped_attention_that_cannot_be_is_refused(settings, error, match):
    sizes = {"d_model": D_MODEL, "num_heads": HEADS, "num_kv_heads": KV_HEADS}
    with pytest.raises(error, match=match):
        GroupedQueryAttention(**sizes | settings)


@pytest.mark.bad_input
def test_rotary_positions_are_those_of_one_sequence(x):
    module = attention(rotary=True)
    for call in (module, module.weights):
        with pytest.raises(ValueError, match="key: expected none"):
            call(x, key=torch.randn_like(x))


@pytest.mark.bad_input
def test_sizes_of_a_cache_and_of_today_s_block_are_whole_numbers():
    with pytest.raises(ValueError, match="length: expected at least 1, got 0"):
        cache_numbers(1, 1, 1, 0)
    with pytest.raises(TypeError, match=r"head_dim: expected an int, got 2\.0"):
        cache_numbers(1, 1, 2.0, 1)
    with pytest.raises(ValueError, match="num_kv_heads: expected at least 1"):
        today(0)
