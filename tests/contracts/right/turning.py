"""A language model that knows positions by turning queries and keys alone."""

import torch
import torch.nn.functional as F
from torch import nn


def turned(x, plus=1.0, apart=1.0):
    """Turn pairs (i, i + half) of (batch, head, seq, head_dim).

    Rightly, unless ``plus`` is -1, which is a lost minus, or the second number
    of a pair has an angle ``apart`` times as large.
    """
    half = x.shape[-1] // 2
    speeds = 10000 ** (-torch.arange(half) / half)
    angles = torch.arange(x.shape[-2])[:, None] * speeds
    angles = torch.cat([angles, apart * angles], -1)
    one, other = x.chunk(2, -1)
    across = torch.cat([-plus * other, one], -1)
    return x * angles.cos() + across * angles.sin()


def kept(x):
    """Turn nothing."""
    return x


class Attention(nn.Module):
    """Three heads of width 4 that see their past."""

    def __init__(self, q=turned, k=turned, v=kept, *, fused=True):
        super().__init__()
        self.qkv = nn.Linear(12, 36)
        self.out = nn.Linear(12, 12)
        self.q, self.k, self.v, self.fused = q, k, v, fused

    def forward(self, x):
        split = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        q, k, v = self.q(split[0]), self.k(split[1]), self.v(split[2])
        if self.fused:
            got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.mT / 2
            hidden = torch.ones_like(scores).triu(1).bool()
            got = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return self.out(got.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Pre-LN, and with its residuals."""

    def __init__(self, **options):
        super().__init__()
        self.attend = Attention(**options)
        self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
        self.network = nn.Sequential(
            nn.Linear(12, 31), nn.GELU(), nn.Linear(31, 12)
        )

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.network(self.norm2(x))


class Decoder(nn.Module):
    """Two layers that know positions by turning alone."""

    def __init__(self, layer=Layer, num_layers=2, std=None, **options):
        super().__init__()
        self.embed = nn.Embedding(11, 12)
        self.layers = nn.ModuleList(layer(**options) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 11)
        for layer in self.layers if std else ():
            nn.init.normal_(layer.attend.qkv.weight, std=std)
            nn.init.zeros_(layer.attend.qkv.bias)

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
