"""Multi-head attention: PyTorch agrees, paper agrees, rules hold."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.attention import scaled_dot_product_attention
from companion.multihead import MultiHeadAttention, merge_heads, split_heads

# Sizes are prime and all differ, so no axis can stand in for another. Only the
# width is a product, of two numbers that are no other size.
BATCH, HEADS, QUERY, KEY = 2, 3, 5, 7
HEAD_DIM, V_HEAD_DIM, KDIM, VDIM = 11, 13, 17, 19
D_MODEL = HEADS * HEAD_DIM


@pytest.fixture
def x():
    return torch.randn(BATCH, QUERY, D_MODEL, dtype=torch.float64)


@pytest.fixture
def memory():
    return torch.randn(BATCH, KEY, D_MODEL, dtype=torch.float64)


@pytest.fixture
def attention():
    return with_random_biases(MultiHeadAttention(D_MODEL, HEADS))


def with_random_biases(module):
    """In float64, and no bias is 0, so that none can be forgotten."""
    for name, parameter in module.double().named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return module


def some(*shape):
    """A random mask that leaves nobody without a key."""
    mask = torch.rand(*shape) < 0.5
    mask[..., 0] = True
    return mask


def copy_to_torch(ours):
    """``nn.MultiheadAttention`` with our weights."""
    projections = [ours.q_proj, ours.k_proj, ours.v_proj]
    width, kdim, vdim = (p.in_features for p in projections)
    theirs = nn.MultiheadAttention(
        width, ours.num_heads, kdim=kdim, vdim=vdim, batch_first=True
    ).double()
    weights = [p.weight for p in projections]
    with torch.no_grad():
        if theirs.in_proj_weight is None:
            theirs.q_proj_weight.copy_(weights[0])
            theirs.k_proj_weight.copy_(weights[1])
            theirs.v_proj_weight.copy_(weights[2])
        else:
            theirs.in_proj_weight.copy_(torch.cat(weights))
        theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
    theirs.out_proj.load_state_dict(ours.out_proj.state_dict())
    return theirs


def hidden(mask, keys):
    """Our mask in the form that PyTorch's module takes: True hides."""
    full = mask.expand(BATCH, HEADS, QUERY, keys)
    return ~full.reshape(BATCH * HEADS, QUERY, keys)


def by_hand(module, x, mask=None, key=None, value=None):
    """A loop over heads with our own attention of chapter 03."""
    key = x if key is None else key
    value = key if value is None else value
    q, k, v = module.q_proj(x), module.k_proj(key), module.v_proj(value)
    width, v_width = (t.shape[-1] // module.num_heads for t in (q, v))
    full = (len(x), module.num_heads, x.shape[1], key.shape[1])
    masks = None if mask is None else mask.expand(full)
    heads = [
        scaled_dot_product_attention(
            q[..., i * width : (i + 1) * width],
            k[..., i * width : (i + 1) * width],
            v[..., i * v_width : (i + 1) * v_width],
            None if masks is None else masks[:, i],
        )
        for i in range(module.num_heads)
    ]
    return module.out_proj(torch.cat(heads, dim=-1))


# An oracle: PyTorch agrees.


@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_agrees_with_pytorch(attention, x, masked):
    theirs = copy_to_torch(attention)
    mask = some(BATCH, HEADS, QUERY, QUERY) if masked else None
    attn_mask = hidden(mask, QUERY) if masked else None
    output, weights = theirs(
        x, x, x, attn_mask=attn_mask, average_attn_weights=False
    )
    torch.testing.assert_close(attention(x, mask), output)
    torch.testing.assert_close(attention.weights(x, mask), weights)


@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_with_other_widths_agrees_with_pytorch(x, masked):
    attention = with_random_biases(
        MultiHeadAttention(D_MODEL, HEADS, kdim=KDIM, vdim=VDIM)
    )
    key = torch.randn(BATCH, KEY, KDIM, dtype=torch.float64)
    value = torch.randn(BATCH, KEY, VDIM, dtype=torch.float64)
    mask = some(BATCH, 1, QUERY, KEY) if masked else None
    output, weights = copy_to_torch(attention)(
        x,
        key,
        value,
        attn_mask=hidden(mask, KEY) if masked else None,
        average_attn_weights=False,
    )
    ours = attention(x, mask, key=key, value=value)
    torch.testing.assert_close(ours, output)
    torch.testing.assert_close(attention.weights(x, mask, key=key), weights)


def test_a_padding_mask_agrees_with_pytorch(attention, x, memory):
    real = some(BATCH, KEY)
    output, _ = copy_to_torch(attention)(
        x, memory, memory, key_padding_mask=~real
    )
    ours = attention(x, real[:, None, None], key=memory)
    torch.testing.assert_close(ours, output)


def test_gradients_agree_with_pytorch(attention, x):
    theirs = copy_to_torch(attention)
    mask = some(BATCH, 1, QUERY, QUERY)
    output, _ = theirs(x, x, x, attn_mask=hidden(mask, QUERY))
    output.square().sum().backward()
    attention(x, mask).square().sum().backward()
    ours = torch.cat(
        [p.weight.grad for p in attention.children()][:3]  # q, k and v.
    )
    torch.testing.assert_close(ours, theirs.in_proj_weight.grad)
    torch.testing.assert_close(
        attention.out_proj.bias.grad, theirs.out_proj.bias.grad
    )


def test_the_weights_start_as_pytorchs_do(attention):
    bound = (6 / (2 * D_MODEL)) ** 0.5  # Glorot and Bengio (2010), eq. 16
    fresh = MultiHeadAttention(D_MODEL, HEADS)
    for linear in fresh.children():
        largest = linear.weight.abs().max()
        assert 0.95 * bound < largest <= bound
        assert not linear.bias.any()


# Cases one can do on paper.


def test_splitting_on_paper():
    x = torch.tensor([[1.0, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]])
    assert split_heads(x, 3).tolist() == [
        [[1, 2], [7, 8]],
        [[3, 4], [9, 10]],
        [[5, 6], [11, 12]],
    ]
    assert merge_heads(split_heads(x, 3)).tolist() == x.tolist()


def test_two_heads_fetch_from_two_places_on_paper():
    # Head 0 follows feature 0, head 1 feature 1. The scores are so far apart
    # that each head takes one position, and W_O swaps what they bring.
    attention = MultiHeadAttention(2, 2, bias=False)
    sharp, one = 1000 * torch.eye(2), torch.eye(2)
    swap = one.flip(0)
    for linear, weight in zip(
        attention.children(), (sharp, one, one, swap), strict=True
    ):
        linear.weight.data = weight
    x = torch.tensor([[[1.0, 1.0], [9.0, 2.0], [3.0, 8.0]]])
    torch.testing.assert_close(
        attention(x), torch.tensor([[[8.0, 9.0]]]).expand(1, 3, 2)
    )


def test_the_number_of_parameters_on_paper():
    # Four maps of d_model · d_model and four biases, for any number of heads.
    for heads in (1, 3, 11, 33):
        attention = MultiHeadAttention(33, heads)
        assert sum(p.numel() for p in attention.parameters()) == 4 * 33 * 34
    wide = MultiHeadAttention(
        D_MODEL,
        HEADS,
        kdim=KDIM,
        vdim=VDIM,
        head_dim=5,
        v_head_dim=V_HEAD_DIM,
        bias=False,
    )
    sizes = [tuple(p.shape) for p in wide.parameters()]
    assert sizes == [(15, 33), (15, 17), (39, 19), (33, 39)]


# Invariants.


@pytest.mark.parametrize("shape", [(5, 6), (7, 5, 6), (2, 7, 5, 6)])
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_merging_undoes_splitting(shape, heads):
    x = torch.randn(shape)
    pieces = split_heads(x, heads)
    assert pieces.shape == (*shape[:-2], heads, 5, 6 // heads)
    assert torch.equal(merge_heads(pieces), x)


def test_a_head_reads_the_features_of_its_own_position_only():
    x = torch.zeros(BATCH, QUERY, D_MODEL)
    x[1, 3, HEAD_DIM : 2 * HEAD_DIM] = 1.0
    pieces = split_heads(x, HEADS)
    assert pieces[1, 1, 3].all()
    assert pieces.sum() == HEAD_DIM


@pytest.mark.parametrize("masked", [False, True])
def test_the_heads_at_once_are_the_heads_in_a_loop(x, masked):
    attention = with_random_biases(
        MultiHeadAttention(
            D_MODEL,
            HEADS,
            kdim=KDIM,
            vdim=VDIM,
            head_dim=5,
            v_head_dim=V_HEAD_DIM,
        )
    )
    key = torch.randn(BATCH, KEY, KDIM, dtype=torch.float64)
    value = torch.randn(BATCH, KEY, VDIM, dtype=torch.float64)
    mask = some(BATCH, HEADS, QUERY, KEY) if masked else None
    torch.testing.assert_close(
        attention(x, mask, key=key, value=value),
        by_hand(attention, x, mask, key, value),
    )


def test_the_output_is_a_sum_over_heads_each_with_its_block_of_w_o(
    attention, x
):
    weights = attention.weights(x)
    v = split_heads(attention.v_proj(x), HEADS)
    blocks = attention.out_proj.weight.split(HEAD_DIM, dim=1)
    total = attention.out_proj.bias + sum(
        weights[:, i] @ v[:, i] @ block.T for i, block in enumerate(blocks)
    )
    torch.testing.assert_close(attention(x), total)


MASKS = {
    "none": None,
    "scalar": (),
    "keys": (KEY,),
    "queries × keys": (QUERY, KEY),
    "heads": (HEADS, 1, 1),
    "batch × keys": (BATCH, 1, 1, KEY),
    "batch × queries": (BATCH, 1, QUERY, 1),
    "all": (BATCH, HEADS, QUERY, KEY),
}


@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
def test_weights_times_values_is_what_forward_returns(
    attention, x, memory, shape
):
    # Among these masks are some that leave a query without any key.
    mask = None if shape is None else torch.rand(shape) < 0.5
    weights = attention.weights(x, mask, key=memory)
    v = split_heads(attention.v_proj(memory), HEADS)
    torch.testing.assert_close(
        attention(x, mask, key=memory),
        attention.out_proj(merge_heads(weights @ v)),
    )


def test_keys_are_made_of_x_and_values_of_keys_unless_given(
    attention, x, memory
):
    torch.testing.assert_close(attention(x), attention(x, key=x, value=x))
    torch.testing.assert_close(
        attention(x, key=memory), attention(x, key=memory, value=memory)
    )
    torch.testing.assert_close(
        attention(x, value=2 * x), by_hand(attention, x, value=2 * x)
    )


def test_a_query_that_may_look_at_nobody_gets_the_bias_alone(
    attention, x, memory
):
    mask = some(BATCH, HEADS, QUERY, KEY)
    mask[1, :, 2] = False
    bias = attention.out_proj.bias
    output = attention(x, mask, key=memory)
    assert torch.equal(output[1, 2], bias)
    assert not attention.weights(x, mask, key=memory)[1, :, 2].any()
    assert not torch.isclose(output[0], bias).any()


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_never_arises_in_the_backward_pass_of_a_fully_masked_row(
    attention, x, dtype
):
    attention, x = attention.to(dtype), x.to(dtype).requires_grad_()
    nobody = torch.zeros(BATCH, 1, 1, QUERY, dtype=torch.bool)
    with torch.autograd.detect_anomaly(check_nan=True):
        attention(x, nobody).sum().backward()
        attention.weights(x, nobody).sum().backward()
    assert not x.grad.any()
    assert not attention.v_proj.weight.grad.any()


def test_pytorch_is_never_given_a_row_that_may_see_nobody(
    attention, x, monkeypatch
):
    # Some of its backends answer such a row with NaN, this one does not.
    given = []

    def spy(q, k, v, attn_mask=None, dropout_p=0.0):
        given.append(attn_mask)
        return scaled_dot_product_attention(q, k, v, attn_mask)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    mask = some(BATCH, 1, QUERY, QUERY)
    mask[1, :, 2] = False
    attention(x, mask)
    attention(x, torch.zeros(QUERY, QUERY, dtype=torch.bool))
    assert all(sees.any(-1).all() for sees in given)
    assert torch.equal(given[0][mask.any(-1)], mask[mask.any(-1)])


def test_a_masked_key_cannot_leak_into_any_output(attention, x, memory):
    mask = some(BATCH, 1, QUERY, KEY)
    mask[..., 3] = False
    noisy = memory.clone()
    noisy[:, 3] += 1000
    assert torch.equal(
        attention(x, mask, key=noisy), attention(x, mask, key=memory)
    )


def test_no_output_sees_the_future_under_a_causal_mask(attention, x):
    causal = torch.ones(QUERY, QUERY, dtype=torch.bool).tril()
    changed = x.clone()
    changed[:, 3:] += 1000
    before, after = attention(x, causal), attention(changed, causal)
    torch.testing.assert_close(before[:, :3], after[:, :3])
    assert not torch.isclose(before[:, 3:], after[:, 3:]).any()


def test_permuting_the_memory_changes_nothing(attention, x, memory):
    order = torch.randperm(KEY)
    torch.testing.assert_close(
        attention(x, key=memory[:, order]), attention(x, key=memory)
    )


def test_self_attention_is_permutation_equivariant(attention, x):
    order = torch.randperm(QUERY)
    torch.testing.assert_close(attention(x[:, order]), attention(x)[:, order])


def test_every_row_of_weights_sums_to_1_in_every_head(attention, x, memory):
    weights = attention.weights(x, key=memory)
    assert weights.shape == (BATCH, HEADS, QUERY, KEY)
    torch.testing.assert_close(
        weights.sum(-1), torch.ones_like(weights[..., 0])
    )


def test_dropout_acts_on_the_weights_in_training_only(x):
    attention = MultiHeadAttention(D_MODEL, HEADS, dropout=0.5).double()
    plain = MultiHeadAttention(D_MODEL, HEADS).double()
    plain.load_state_dict(attention.state_dict())
    assert not torch.equal(attention(x), attention(x))
    assert torch.equal(attention.eval()(x), plain(x))
    assert torch.equal(attention.train().weights(x), plain.weights(x))


@pytest.mark.parametrize("masked", [False, True])
def test_dropout_leaves_the_mean_as_it_is(masked):
    mask = some(1, 1, QUERY, QUERY) if masked else None
    attention = MultiHeadAttention(6, 2, dropout=0.5)
    x = torch.randn(1, QUERY, 6)
    many = attention(x.expand(20_000, -1, -1), mask)
    mean, error = many.mean(0), many.std(0) / len(many) ** 0.5
    assert ((mean - attention.eval()(x, mask)[0]).abs() < 5 * error).all()


def test_no_attention_map_stays_on_the_module(attention, x):
    before = set(vars(attention))
    attention(x)
    attention.weights(x)
    assert set(vars(attention)) == before
    assert not list(attention.buffers())


def test_half_precision_by_autocast(x):
    attention = MultiHeadAttention(D_MODEL, HEADS)
    x, mask = x.float(), some(BATCH, 1, QUERY, QUERY)
    with torch.autocast("cpu", torch.bfloat16):
        output = attention(x, mask)
        again = attention(output, mask)
        attention.weights(output, mask)
    assert output.dtype == again.dtype == torch.bfloat16
    torch.testing.assert_close(
        output.float(), attention(x, mask), atol=0.05, rtol=0.05
    )


def test_under_autocast_a_cpu_attends_in_32_bits(x, monkeypatch):
    # Small products in bfloat16 cost a CPU ten times as much.
    attention, given = MultiHeadAttention(D_MODEL, HEADS), []

    def spy(*qkv, **how):
        given.append(
            (torch.is_autocast_enabled("cpu"), *(t.dtype for t in qkv))
        )
        return scaled_dot_product_attention(*qkv)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    with torch.autocast("cpu", torch.bfloat16):
        attention(x.float())
    assert given == [(False, *[torch.float32] * 3)]


def test_shapes_are_known_without_memory_for_them():
    with torch.device("meta"):
        attention = MultiHeadAttention(D_MODEL, HEADS)
        x = torch.empty(BATCH, QUERY, D_MODEL)
        mask = torch.ones(BATCH, 1, 1, QUERY, dtype=torch.bool)
        assert attention(x, mask).shape == (BATCH, QUERY, D_MODEL)
        maps = attention.weights(x, mask)
    assert maps.shape == (BATCH, HEADS, QUERY, QUERY)


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize("heads", [4, 40])
def test_heads_that_do_not_divide_the_width_are_refused(heads):
    match = rf"num_heads: .*d_model = 33, got {heads}"
    with pytest.raises(ValueError, match=match):
        MultiHeadAttention(33, heads)
    with pytest.raises(ValueError, match=match):
        split_heads(torch.ones(QUERY, 33), heads)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("d_model", (0, 1)),
        ("num_heads", (6, 0)),
        ("num_heads", (6, -2)),
        ("kdim", (6, 2, {"kdim": 0})),
        ("vdim", (6, 2, {"vdim": 0})),
        ("head_dim", (6, 2, {"head_dim": 0})),
        ("v_head_dim", (6, 2, {"v_head_dim": 0})),
    ],
)
def test_a_size_below_1_is_refused_by_name(name, sizes):
    d_model, heads, more = (*sizes, {})[:3]
    with pytest.raises(ValueError, match=rf"^{name}: expected at least 1"):
        MultiHeadAttention(d_model, heads, **more)


@pytest.mark.bad_input
@pytest.mark.parametrize("size", [2.0, "2", True])
def test_a_size_that_is_no_whole_number_is_refused(size):
    with pytest.raises(TypeError, match=r"num_heads: expected an int, got"):
        MultiHeadAttention(6, size)
    with pytest.raises(TypeError, match=r"num_heads: expected an int, got"):
        split_heads(torch.ones(QUERY, 6), size)


@pytest.mark.bad_input
@pytest.mark.parametrize("dropout", [-0.1, 1.0, 50])
def test_a_dropout_that_is_no_probability_is_refused(dropout):
    with pytest.raises(ValueError, match=rf"dropout: .*got {dropout}"):
        MultiHeadAttention(6, 2, dropout=dropout)


@pytest.mark.bad_input
def test_what_has_too_few_axes_cannot_be_split_or_merged():
    match = r"^x: expected \(\.\.\., seq, d_model\), got \(6,\)"
    with pytest.raises(ValueError, match=match):
        split_heads(torch.ones(6), 2)
    match = r"^x: expected \(\.\.\., head, seq, head_dim\), got \(5, 6\)"
    with pytest.raises(ValueError, match=match):
        merge_heads(torch.ones(5, 6))
    with pytest.raises(TypeError, match="x: expected a tensor, got list"):
        split_heads([1.0], 1)
    with pytest.raises(TypeError, match="x: expected a tensor, got list"):
        merge_heads([1.0])


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", [torch.float64, torch.int64])
@pytest.mark.parametrize("call", ["forward", "weights"])
def test_a_mask_of_numbers_is_refused(attention, x, kind, call):
    mask = torch.ones(QUERY, QUERY, dtype=kind)
    with pytest.raises(TypeError, match=r"mask: .*boolean.*True = may attend"):
        getattr(attention, call)(x, mask)


@pytest.mark.bad_input
@pytest.mark.parametrize("call", ["forward", "weights"])
def test_a_padding_mask_with_two_axes_is_told_the_right_four(
    attention, x, call
):
    real = torch.ones(BATCH, QUERY, dtype=torch.bool)
    match = r"\(2, 3, 5, 5\), got \(2, 5\); .*\(batch, 1, 1, key\)"
    with pytest.raises(ValueError, match=match):
        getattr(attention, call)(x, real)


@pytest.mark.bad_input
def test_a_mask_that_would_enlarge_the_scores_is_refused(attention, x):
    larger = torch.ones(23, BATCH, HEADS, QUERY, QUERY, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"mask: .*got \(23, 2, 3, 5, 5\)"):
        attention(x, larger)


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["x", "key", "value"])
def test_mixed_number_types_are_refused_by_name(attention, x, memory, name):
    inputs = {"x": x, "key": memory, "value": memory}
    inputs[name] = inputs[name].float()
    match = rf"^{name}: expected torch\.float64, got torch\.float32"
    with pytest.raises(TypeError, match=match):
        attention(**inputs)


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["x", "key", "value", "mask"])
def test_mixed_devices_are_refused_by_name(attention, x, memory, name):
    mask = torch.ones(QUERY, KEY, dtype=torch.bool)
    inputs = {"x": x, "key": memory, "value": memory, "mask": mask}
    inputs[name] = inputs[name].to("meta")
    match = rf"^{name}: expected a tensor on cpu, .*got one on meta"
    with pytest.raises(ValueError, match=match):
        attention(**inputs)


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["x", "key", "value"])
def test_what_is_no_tensor_is_refused_by_name(attention, x, memory, name):
    inputs = {"x": x, "key": memory, "value": memory}
    inputs[name] = inputs[name].tolist()
    match = rf"^{name}: expected torch\.float64, got list"
    with pytest.raises(TypeError, match=match):
        attention(**inputs)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "shape", "match"),
    [
        ("x", (5, 33), r"x: .*d_model=33\), got \(5, 33\)"),
        ("x", (2, 5, 31), r"x: .*d_model=33\), got \(2, 5, 31\)"),
        ("x", (2, 0, 33), r"x: .*got \(2, 0, 33\)"),
        ("key", (2, 7, 31), r"key: .*kdim=33\), got \(2, 7, 31\)"),
        ("key", (3, 7, 33), r"key: .*batch=2, .*got \(3, 7, 33\)"),
        ("key", (2, 0, 33), r"key: .*got \(2, 0, 33\)"),
        ("value", (3, 7, 33), r"value: .*\(batch=2, .*got \(3, 7, 33\)"),
        ("value", (2, 6, 33), r"value: .*key=7, .*got \(2, 6, 33\)"),
        ("value", (2, 7, 31), r"value: .*vdim=33\), got \(2, 7, 31\)"),
    ],
)
def test_what_does_not_fit_names_both_shapes(
    attention, x, memory, name, shape, match
):
    inputs = {"x": x, "key": memory, "value": memory}
    inputs[name] = torch.ones(shape, dtype=torch.float64)
    with pytest.raises(ValueError, match="^" + match):
        attention(**inputs)


@pytest.mark.bad_input
def test_a_key_that_cannot_serve_as_a_value_is_named(x):
    attention = MultiHeadAttention(D_MODEL, HEADS, vdim=VDIM).double()
    with pytest.raises(ValueError, match=r"value \(here: key\): .*vdim=19"):
        attention(x)
