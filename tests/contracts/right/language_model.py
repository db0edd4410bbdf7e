"""Language models, right in several ways."""

import math

import torch
import torch.nn.functional as F
from contracts.right import built, right
from contracts.right.encoder import Additive, PyTorchs
from contracts.right.multihead import WIDTH
from torch import nn

from companion.blocks import EncoderLayer

WORDS = 11


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


@right("language_model")
def counted(tokens):
    """What fades with every step, and no weights at all."""
    state, rows = torch.zeros(len(tokens), WORDS), []
    for token in tokens.T:
        state = torch.tanh(state / 2 + F.one_hot(token, WORDS))
        rows.append(state)
    return torch.stack(rows, 1)


class Layers(nn.Module):
    """Embedded tokens and learned positions through an encoder, masked."""

    def __init__(self, encoder, *, positions=True, scale=1.0):
        super().__init__()
        self.encoder, self.scale = encoder, scale
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(16, WIDTH) if positions else None
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embed(tokens) * self.scale
        if self.places:
            x = x + self.places.weight[: tokens.shape[1]]
        mask = causal(tokens.shape[1])[None, None]
        return self.head(self.encoder(x, mask))


class Ours(nn.Module):
    """The package's layers, in a list."""

    def __init__(self, num_layers, *, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(WIDTH, 2, 31, norm_first=norm_first)
            for _ in range(num_layers)
        )

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class LikeGPT(nn.Module):
    """Small weights, tied embeddings, and a vocabulary of 37."""

    def __init__(self):
        super().__init__()
        self.encoder = Additive()
        self.embed = nn.Parameter(0.02 * torch.randn(37, WIDTH))
        self.places = nn.Parameter(0.02 * torch.randn(8, WIDTH).repeat(2, 1))

    def forward(self, input_ids):
        length = input_ids.size(1)
        x = self.embed[input_ids] + self.places[:length]
        mask = causal(length).expand(len(x), 1, -1, -1)
        return self.encoder(x, mask) @ self.embed.T


class Recurrent(nn.Module):
    """An embedding, something that remembers, and a projection."""

    def __init__(self, memory):
        super().__init__()
        self.embed, self.memory = nn.Embedding(WORDS, WIDTH), memory
        self.head = nn.Linear(memory.hidden_size, WORDS)

    def forward(self, tokens):
        return self.head(self.memory(self.embed(tokens))[0]).log_softmax(-1)


class Convolution(nn.Module):
    """Two convolutions of width 3, with zeros before the first token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.first = nn.Conv1d(WIDTH, 17, 3)
        self.second = nn.Conv1d(17, WORDS, 3)

    def forward(self, tokens):
        x = self.embed(tokens).mT
        x = self.first(F.pad(x, (2, 0))).relu()
        return self.second(F.pad(x, (2, 0))).mT


class LinearAttention(nn.Module):
    """Keys and values summed up over the past, without a softmax."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(16, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        sums = torch.einsum("bsi,bsj->bsij", k, v).cumsum(1)
        weight = torch.einsum("bsi,bsi->bs", q, k.cumsum(1))
        seen = torch.einsum("bsi,bsij->bsj", q, sums) / weight[..., None]
        return self.head(x + seen)


LANGUAGE_MODELS = {
    "ours": lambda: Layers(Ours(2)),
    "ours, 6 layers": lambda: Layers(Ours(6, norm_first=True)),
    "without positions": lambda: Layers(Ours(2), positions=False),
    "vectors ten times too long": lambda: Layers(
        Ours(2), scale=10 * math.sqrt(WIDTH)
    ),
    "nn.TransformerEncoder": lambda: Layers(PyTorchs().eval()),
    "like GPT": LikeGPT,
    "LSTM": lambda: Recurrent(nn.LSTM(WIDTH, 19, 2, batch_first=True)),
    "GRU": lambda: Recurrent(nn.GRU(WIDTH, 13, batch_first=True)),
    "RNN": lambda: Recurrent(nn.RNN(WIDTH, 13, batch_first=True)),
    "convolution": Convolution,
    "linear attention": LinearAttention,
}
for make in LANGUAGE_MODELS.values():
    right("language_model")(built(make))
