"""Encoder–decoders, right in several ways."""

import torch
import torch.nn.functional as F
from contracts.right import built, right
from contracts.right.encoder import Additive, PostNorm
from contracts.right.language_model import WORDS, causal
from contracts.right.multihead import WIDTH
from torch import nn

from companion.multihead import MultiHeadAttention


@right("translation_model")
def counted(src, tgt):
    """A mean of the source, and then what fades with every step."""
    real = (src != 0) / (2 + torch.arange(src.shape[1]))
    memory = torch.einsum("bs,bsv->bv", real, F.one_hot(src, WORDS) * 1.0)
    state, rows = memory, []
    for token in tgt.T:
        state = torch.tanh(state / 2 + F.one_hot(token, WORDS) + memory)
        rows.append(state)
    return torch.stack(rows, 1)


class Embedded(nn.Module):
    """Embedded source and target, with positions, and a projection."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.src, self.tgt = (nn.Embedding(WORDS, WIDTH) for _ in range(2))
        self.places = nn.Embedding(16, WIDTH)
        self.head, self.scale = nn.Linear(WIDTH, WORDS), scale

    def source(self, src):
        x = self.src(src) * self.scale
        return x + self.places.weight[: src.shape[1]]

    def target(self, tgt):
        x = self.tgt(tgt) * self.scale
        return x + self.places.weight[: tgt.shape[1]]


class Layers(Embedded):
    """An encoder, and layers that look at themselves and at the memory."""

    def __init__(self, num_layers, *, scale=1.0, norm_first=False):
        super().__init__(scale)
        self.encoder = PostNorm(num_layers)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "self": MultiHeadAttention(WIDTH, 3),
                    "cross": MultiHeadAttention(WIDTH, 2),
                    "feed": nn.Sequential(
                        nn.Linear(WIDTH, 29), nn.ReLU(), nn.Linear(29, WIDTH)
                    ),
                    "norms": nn.ModuleList(
                        nn.LayerNorm(WIDTH) for _ in range(3)
                    ),
                }
            )
            for _ in range(num_layers)
        )
        self.norm_first = norm_first

    def masks(self, src, tgt):
        """For the encoder, the target and the memory."""
        real = (src != 0)[:, None, None]
        seen = (tgt != 0)[:, None, None] & causal(tgt.shape[1])
        return real, seen, real

    def forward(self, src, tgt):
        real, seen, memory_mask = self.masks(src, tgt)
        memory = self.encoder(self.source(src), real)
        y = self.target(tgt)
        for layer in self.layers:
            parts = (
                lambda x, f=layer["self"]: f(x, seen),
                lambda x, f=layer["cross"]: f(x, memory_mask, key=memory),
                layer["feed"],
            )
            for part, norm in zip(parts, layer["norms"], strict=True):
                y = y + part(norm(y)) if self.norm_first else norm(y + part(y))
        return self.head(y)


class PyTorchs(Embedded):
    """nn.Transformer, whose masks are True where nobody may look."""

    def __init__(self, **options):
        super().__init__()
        options = {"dim_feedforward": 21, "batch_first": True, **options}
        layer = nn.TransformerEncoderLayer(WIDTH, 3, **options)
        encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.inner = nn.Transformer(
            WIDTH, 3, 2, 2, custom_encoder=encoder, **options
        )

    def forward(self, src, tgt):
        out = self.inner(
            self.source(src),
            self.target(tgt),
            tgt_mask=~causal(tgt.shape[1]),
            src_key_padding_mask=src == 0,
            memory_key_padding_mask=src == 0,
        )
        return self.head(out)


class LikeGPT(Embedded):
    """No cross-attention: the source stands before the target."""

    def __init__(self):
        super().__init__()
        self.inner = Additive()
        nn.init.normal_(self.head.weight, std=0.02)
        self.kinds = nn.Parameter(torch.randn(2, WIDTH))

    def forward(self, src, tgt):
        x = self.source(src) + self.kinds[0], self.target(tgt) + self.kinds[1]
        long, length = src.shape[1], src.shape[1] + tgt.shape[1]
        seen = causal(length)
        seen[:, :long] = True
        seen[:long, long:] = False
        real = torch.cat([src, tgt], 1) != 0
        mask = seen & real[:, None, None]
        return self.head(self.inner(torch.cat(x, 1), mask)[:, long:])


class Recurrent(Embedded):
    """A GRU's last state, taken where each source ends."""

    def __init__(self):
        super().__init__()
        del self.places
        self.read = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.write = nn.GRU(WIDTH, WIDTH, batch_first=True)

    def forward(self, src, tgt):
        lengths = (src != 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.src(src), lengths, batch_first=True, enforce_sorted=False
        )
        _, state = self.read(packed)
        return self.head(self.write(self.tgt(tgt), state)[0])


class WithAlignment(Embedded):
    """An LSTM each, and dot products between their states."""

    def __init__(self):
        super().__init__()
        del self.places
        self.read = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.write = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, src, tgt):
        memory, _ = self.read(self.src(src))
        states, _ = self.write(self.tgt(tgt))
        scores = states @ memory.mT
        scores = scores.masked_fill((src == 0)[:, None], -1e9)
        context = scores.softmax(-1) @ memory
        return self.head(states + context).log_softmax(-1)


TRANSLATION_MODELS = {
    "ours": lambda: Layers(2),
    "ours, one layer": lambda: Layers(1),
    "ours, norm first": lambda: Layers(3, norm_first=True),
    "vectors ten times too long": lambda: Layers(2, scale=35.0),
    "nn.Transformer": lambda: PyTorchs().eval(),
    "nn.Transformer, norm first": lambda: PyTorchs(
        norm_first=True, dropout=0.0
    ),
    "like GPT": LikeGPT,
    "recurrent": Recurrent,
    "with alignment": WithAlignment,
}
for make in TRANSLATION_MODELS.values():
    right("translation_model")(built(make))
