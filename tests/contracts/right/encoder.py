"""Encoders and their maps, right in several ways."""

import torch
import torch.nn.functional as F
from contracts.right import built, right
from contracts.right.attention import masked_by_lowest
from contracts.right.multihead import WIDTH, Heads
from torch import nn

from companion.blocks import EncoderLayer


class PostNorm(nn.Module):
    """The paper's: normalise the sum."""

    def __init__(self, num_layers=2):
        super().__init__()
        self.layers = nn.ModuleList(self.layer() for _ in range(num_layers))

    def layer(self):
        norms = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        up, down = nn.Linear(WIDTH, 17), nn.Linear(17, WIDTH)
        return nn.ModuleList([Heads(3), norms[0], up, down, norms[1]])

    def forward(self, x, mask=None):
        for attend, norm1, up, down, norm2 in self.layers:
            x = norm1(x + attend(x, mask))
            x = norm2(x + down(up(x).relu()))
        return x

    def maps(self, x, mask):
        maps = []
        for attend, norm1, up, down, norm2 in self.layers:
            q, k = attend.split(attend.q(x)), attend.split(attend.k(x))
            scores = q @ k.mT / q.shape[-1] ** 0.5
            maps.append(masked_by_lowest(scores, mask))
            x = norm1(x + attend(x, mask))
            x = norm2(x + down(up(x).relu()))
        return maps


class Additive(nn.Module):
    """Pre-LN, with a mask that is added, and weights of 0.02, like BERT's."""

    def __init__(self):
        super().__init__()
        layers = [
            nn.ModuleDict(
                {
                    "ln_1": nn.LayerNorm(WIDTH),
                    "qkv": nn.Linear(WIDTH, 3 * WIDTH),
                    "out": nn.Linear(WIDTH, WIDTH),
                    "ln_2": nn.LayerNorm(WIDTH),
                    "up": nn.Linear(WIDTH, 48),
                    "down": nn.Linear(48, WIDTH),
                }
            )
            for _ in range(4)
        ]
        self.layers, self.norm = nn.ModuleList(layers), nn.LayerNorm(WIDTH)
        for name, weight in self.named_parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, std=0.02)
            elif "bias" in name:
                nn.init.zeros_(weight)

    def run(self, x, mask):
        bias = torch.zeros(())
        if mask is not None:
            low = torch.finfo(x.dtype).min
            bias = torch.zeros(mask.shape).masked_fill(~mask, low)
        maps = []
        for layer in self.layers:
            qkv = layer["qkv"](layer["ln_1"](x)).unflatten(-1, (3, 2, 6))
            q, k, v = qkv.permute(2, 0, 3, 1, 4)
            weights = (q @ k.mT * 6**-0.5 + bias).softmax(-1)
            maps.append(weights)
            x = x + layer["out"]((weights @ v).transpose(1, 2).flatten(2))
            x = x + layer["down"](F.gelu(layer["up"](layer["ln_2"](x))))
        return self.norm(x), maps

    def forward(self, hidden_states, attention_mask=None):
        return self.run(hidden_states, attention_mask)[0]

    def maps(self, hidden_states, attention_mask):
        return self.run(hidden_states, attention_mask)[1]


def for_pytorch(mask, x, num_heads):
    """One mask a head, True = may not, and who sees nobody sees himself."""
    batch, seq, _ = x.shape
    mask = mask.expand(batch, 1, seq, seq)
    nobody = ~mask.any(-1, keepdim=True)
    mask = mask | (torch.eye(seq, dtype=torch.bool) & nobody)
    return ~mask.repeat_interleave(num_heads, 1).flatten(0, 1)


class PyTorchs(nn.Module):
    """nn.TransformerEncoder, in both norm orders."""

    def __init__(self, num_layers=2, *, norm_first=False, dropout=0.1):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            WIDTH, 3, 19, dropout, batch_first=True, norm_first=norm_first
        )
        # Without this argument PyTorch leaves a pre-LN stack's last norm out.
        last = nn.LayerNorm(WIDTH) if norm_first else None
        self.inner = nn.TransformerEncoder(
            layer, num_layers, last, enable_nested_tensor=False
        )

    def forward(self, x, mask=None):
        if mask is None:
            return self.inner(x)
        return self.inner(x, for_pytorch(mask, x, 3))

    def maps(self, x, mask):
        hidden = for_pytorch(mask, x, 3)
        maps = []
        for layer in self.inner.layers:
            seen = layer.norm1(x) if layer.norm_first else x
            maps.append(
                layer.self_attn(
                    seen,
                    seen,
                    seen,
                    attn_mask=hidden,
                    average_attn_weights=False,
                )[1]
            )
            x = layer(x, hidden)
        return torch.stack(maps)


class OursInAList(nn.Module):
    """The package's layers."""

    def __init__(self, num_layers, *, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(WIDTH, 4, 23, norm_first=norm_first)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(WIDTH) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)

    @torch.no_grad()
    def maps(self, x, mask):
        maps = []
        for layer in self.layers:
            maps.append(layer.weights(x, mask))
            x = layer(x, mask)
        return tuple(maps)


class Repeated(PostNorm):
    """One layer with the same weights, three times."""

    def __init__(self):
        super().__init__(1)
        self.layers = nn.ModuleList([self.layers[0]] * 3)


ENCODERS = [
    built(PostNorm),
    built(Additive),
    built(lambda: PyTorchs().eval()),
    built(lambda: PyTorchs(3, norm_first=True, dropout=0.0)),
    built(lambda: OursInAList(3)),
    built(lambda: OursInAList(1, norm_first=True)),
    built(Repeated),
]
for encoder in ENCODERS:
    right("encoder")(encoder)
    right("attention_maps")(encoder.maps)
