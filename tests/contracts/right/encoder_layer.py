"""An encoder layer with given weights, right in several ways."""

import torch
import torch.nn.functional as F
from contracts.right import right
from contracts.right.encoder import for_pytorch
from torch import nn

from companion.blocks import EncoderLayer


@right("encoder_layer")
def by_hand(x, weights, num_heads, mask=None):
    """Heads by view and transpose."""
    w = weights

    def norm(y, place):
        centred = y - y.mean(-1, keepdim=True)
        root = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return centred / root * w[f"gain_{place}"] + w[f"bias_{place}"]

    q, k, v = (
        (x @ w[name].T).unflatten(-1, (num_heads, -1)).transpose(1, 2)
        for name in ("w_q", "w_k", "w_v")
    )
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(x.dtype).min)
    gathered = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    x = norm(x + gathered @ w["w_o"].T, 1)
    inner = (x @ w["w_1"].T + w["b_1"]).clamp(min=0)
    return norm(x + inner @ w["w_2"].T + w["b_2"], 2)


@right("encoder_layer")
def head_by_head(x, weights, num_heads, mask=None):
    """Each head adds its own part of W_O; einsum, and PyTorch's functions."""
    width = x.shape[-1] // num_heads
    if mask is not None:
        mask = mask.expand(len(x), 1, x.shape[1], x.shape[1])[:, 0]
    said = x
    for head in range(num_heads):
        own = slice(head * width, (head + 1) * width)
        q, k, v = (
            torch.einsum("bsi,oi->bso", x, weights[name][own])
            for name in ("w_q", "w_k", "w_v")
        )
        found = F.scaled_dot_product_attention(q, k, v, mask)
        said = said + F.linear(found, weights["w_o"][:, own])
    shape = x.shape[-1:]
    x = F.layer_norm(said, shape, weights["gain_1"], weights["bias_1"])
    inner = F.relu(F.linear(x, weights["w_1"], weights["b_1"]))
    said = x + F.linear(inner, weights["w_2"], weights["b_2"])
    return F.layer_norm(said, shape, weights["gain_2"], weights["bias_2"])


@right("encoder_layer")
def pytorchs_layer(x, weights, num_heads, mask=None):
    """The module, with the weights put in for one call."""
    w, d_model = weights, x.shape[-1]
    layer = nn.TransformerEncoderLayer(
        d_model, num_heads, len(w["b_1"]), dropout=0.0, batch_first=True
    )
    state = {
        "self_attn.in_proj_weight": torch.cat([w["w_q"], w["w_k"], w["w_v"]]),
        "self_attn.in_proj_bias": torch.zeros(3 * d_model),
        "self_attn.out_proj.weight": w["w_o"],
        "self_attn.out_proj.bias": torch.zeros(d_model),
        "linear1.weight": w["w_1"],
        "linear1.bias": w["b_1"],
        "linear2.weight": w["w_2"],
        "linear2.bias": w["b_2"],
        "norm1.weight": w["gain_1"],
        "norm1.bias": w["bias_1"],
        "norm2.weight": w["gain_2"],
        "norm2.bias": w["bias_2"],
    }
    hidden = None if mask is None else for_pytorch(mask, x, num_heads)
    return torch.func.functional_call(layer, state, (x, hidden))


@right("encoder_layer")
def ours(x, weights, num_heads, mask=None):
    """The package's layer."""
    w, zeros = weights, torch.zeros(x.shape[-1])
    layer = EncoderLayer(x.shape[-1], num_heads, len(w["b_1"]))
    names = {"q": "w_q", "k": "w_k", "v": "w_v", "out": "w_o"}
    state = {
        "attention_residual.norm.gain": w["gain_1"],
        "attention_residual.norm.bias": w["bias_1"],
        "feed_forward.up_proj.weight": w["w_1"],
        "feed_forward.up_proj.bias": w["b_1"],
        "feed_forward.down_proj.weight": w["w_2"],
        "feed_forward.down_proj.bias": w["b_2"],
        "feed_forward_residual.norm.gain": w["gain_2"],
        "feed_forward_residual.norm.bias": w["bias_2"],
    }
    for ours, name in names.items():
        state[f"self_attention.{ours}_proj.weight"] = w[name]
        state[f"self_attention.{ours}_proj.bias"] = zeros
    return torch.func.functional_call(layer, state, (x, mask))
