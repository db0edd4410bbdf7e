"""Encoders and their maps, right in several ways."""

import math

import torch
import torch.nn.functional as F
from contracts.right import built, right
from contracts.right.attention import masked_by_lowest
from contracts.right.multihead import WIDTH, Heads
from torch import nn

from companion.blocks import EncoderLayer
from companion.multihead import MultiHeadAttention

# Encoder


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


class NormedBefore(PostNorm):
    """Post-LN, and a norm of the embeddings before the first layer."""

    def __init__(self):
        super().__init__()
        self.first = nn.LayerNorm(WIDTH)

    def forward(self, x, mask=None):
        return super().forward(self.first(x), mask)


class WiderWithin(nn.Module):
    """Maps lead into a stack of width 24, and out of it."""

    def __init__(self, num_layers):
        super().__init__()
        self.into, self.out = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)
        self.layers = nn.ModuleList(
            EncoderLayer(24, 3, 31) for _ in range(num_layers)
        )

    def forward(self, x, mask=None):
        x = self.into(x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.out(x)


class BetweenTwoNetworks(PostNorm):
    """Networks without a residual lead into the stack, and out of it."""

    def __init__(self):
        super().__init__()
        self.into, self.out = (
            nn.Sequential(nn.Linear(WIDTH, 29), nn.ReLU(), nn.Linear(29, WIDTH))
            for _ in "12"
        )

    def forward(self, x, mask=None):
        return self.out(super().forward(self.into(x), mask))


class SideBySide(nn.Module):
    """Attention and a gated network read one norm, without biases."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in "123")
        self.attentions = nn.ModuleList(Heads(3) for _ in "12")
        self.up, self.gate, self.down = (
            nn.ModuleList(nn.Linear(*sizes, bias=False) for _ in "12")
            for sizes in ((WIDTH, 29), (WIDTH, 29), (29, WIDTH))
        )

    def forward(self, x, mask=None):
        for i in range(2):
            y = self.norms[i](x)
            inner = F.silu(self.gate[i](y)) * self.up[i](y)
            x = x + self.attentions[i](y, mask) + self.down[i](inner)
        return self.norms[2](x)


for make in (
    NormedBefore,
    BetweenTwoNetworks,
    lambda: WiderWithin(2),
    SideBySide,
):
    right("encoder")(built(make).eval())
right("encoder")(built(lambda: WiderWithin(1)).eval())


# Encoder layer


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


# Language model


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


# Translation model


@right("translation_model")
def counted_source(src, tgt):
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


class EncoderDecoder(Embedded):
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


class PyTorchsTransformer(Embedded):
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


class LikeGPTTranslator(Embedded):
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


class RecurrentTranslator(Embedded):
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
    "ours": lambda: EncoderDecoder(2),
    "ours, one layer": lambda: EncoderDecoder(1),
    "ours, norm first": lambda: EncoderDecoder(3, norm_first=True),
    "vectors ten times too long": lambda: EncoderDecoder(2, scale=35.0),
    "nn.Transformer": lambda: PyTorchsTransformer().eval(),
    "nn.Transformer, norm first": lambda: PyTorchsTransformer(
        norm_first=True, dropout=0.0
    ),
    "like GPT": LikeGPTTranslator,
    "recurrent": RecurrentTranslator,
    "with alignment": WithAlignment,
}


for make in TRANSLATION_MODELS.values():
    right("translation_model")(built(make))


# Parameter count


@right("parameter_count")
def with_biases(d_model, d_ff, num_layers, vocab_size):
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + num_layers * (encoder_layer + decoder_layer)


@right("parameter_count")
def without_biases(d, ff, n, v):
    return d * (v + n * (12 * d + 4 * ff + 12)) + 2 * n * ff


@right("parameter_count")
def by_pytorch(d_model, d_ff, num_layers, vocab_size):
    """Counts what PyTorch makes of one layer, and of no embeddings yet."""
    pair = (
        nn.TransformerEncoderLayer(d_model, 1, d_ff),
        nn.TransformerDecoderLayer(d_model, 1, d_ff),
    )
    layers = sum(p.numel() for layer in pair for p in layer.parameters())
    return vocab_size * d_model + num_layers * layers


right("parameter_count")(63_082_496)


right("parameter_count")(63_045_632)
