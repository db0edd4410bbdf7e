"""Right implementations in the usual public styles, each called in its own way.

None is copied. ``MATTER`` says which component each is, how it is handed over,
and what is told of it.
"""

import ast
import inspect
import math
import textwrap
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from contracts.right import built
from torch import nn

from companion.contracts import adapters

WIDTH, HEADS, WORDS = 12, 3, 11
LOWEST = torch.finfo(torch.float32).min


class StandIn(NamedTuple):
    """One of them.

    Attributes:
        component: What it is.
        make: Makes what ``check`` is given, adapter included.
        mask: What True means in its masks.
        said: A part of what the report tells of the call.
        written: The function itself, if it is an adapter that is written out.
    """

    component: str
    make: object
    mask: str | None = None
    said: str = ""
    written: object = None

    @property
    def lines(self):
        """How many lines stand between it and the contracts.

        One for each of ``companion.contracts.adapters``, and as many as it
        has where the adapter is written out.
        """
        return adapter_lines(self.make(), self.written)


STANDINS: dict[str, StandIn] = {}


def adapter_lines(given, written=None):
    """Count the lines of an adapter: of its body, or one for each layer."""
    if written:
        tree = ast.parse(textwrap.dedent(inspect.getsource(written)))
        bodies = [
            node.body
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        ]
        return max(map(len, bodies))
    layers = 0
    while is_adapted(given):
        layers += 1
        given = inside(given)
    return layers


def is_adapted(given):
    """Whether an adapter stands in front of it."""
    code = getattr(given, "__code__", None)
    here = code is not None and code.co_filename == adapters.__file__
    return here or hasattr(given, "yours")


def inside(given):
    """What an adapter was given."""
    if hasattr(given, "yours"):
        return given.yours
    held = inspect.getclosurevars(given).nonlocals
    return inside(held["call"]) if "call" in held else held.get("yours")


def standin(component, *, mask=None, said="", adapt=lambda m: m, written=False):
    """Register a class or a function; a class is built."""

    def register(made):
        def make():
            is_class = isinstance(made, type)
            return adapt(built(made).eval() if is_class else made)

        name = f"{component}: {made.__name__}"
        assert name not in STANDINS
        STANDINS[name] = StandIn(
            component, make, mask, said, made if written else None
        )
        return made

    return register


def weigh(scores, mask):
    """The softmax, in which a row of nothing becomes zeros."""
    if mask is None:
        return scores.softmax(-1)
    low = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, low).softmax(-1).masked_fill(~mask, 0.0)


class Projected(nn.Module):
    """Four projections, and what most do with heads."""

    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )
        self.n_heads = HEADS

    def heads(self, x):
        return x.view(len(x), -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def attend(self, q, k, v, mask):
        q, k, v = (
            self.heads(p(x))
            for p, x in ((self.wq, q), (self.wk, k), (self.wv, v))
        )
        weights = weigh(q @ k.mT / math.sqrt(q.shape[-1]), mask)
        joined = (weights @ v).transpose(1, 2).contiguous()
        return self.wo(joined.view(len(q), -1, WIDTH)), weights


# Multi-head attention


@standin("multihead", said="(x, x, x, mask); its masks have no axis")
class QueryKeyValueWithAMaskOfThreeAxes(Projected):
    """An axis for the heads is put into the mask inside."""

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        return self.attend(query, key, value, mask)[0]


@standin("multihead", said="the first of what it returned")
class ReturnsItsWeightsToo(Projected):
    def forward(self, x, mask=None):
        return self.attend(x, x, x, mask)


@standin("multihead", said="(x, x, x, mask)")
class EinsteinsSums(Projected):
    """Values first, and sums with letters."""

    def forward(self, values, keys, query, mask):
        n = len(query)
        q, k, v = (
            p(x).reshape(n, x.shape[1], HEADS, -1)
            for p, x in (
                (self.wq, query),
                (self.wk, keys),
                (self.wv, values),
            )
        )
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e20)
        weights = torch.softmax(energy / (WIDTH // HEADS) ** 0.5, dim=3)
        out = torch.einsum("nhqk,nkhd->nqhd", weights, v)
        return self.wo(out.reshape(n, -1, WIDTH))


@standin("multihead", mask="hidden", said="True hides")
class NumbersThatHide(Projected):
    """A mask of numbers, 1 where it hides, times a large negative one."""

    def forward(self, v, k, q, mask):
        q, k, v = (
            self.heads(p(x))
            for p, x in ((self.wq, q), (self.wk, k), (self.wv, v))
        )
        logits = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
        if mask is not None:
            logits = logits - mask * 1e9
        weights = logits.softmax(-1)
        out = (weights @ v).transpose(1, 2).flatten(2)
        return self.wo(out), weights


@standin("multihead", said="its masks are numbers")
class OneMinusTheMask(Projected):
    """Numbers again, 1 where a row may attend."""

    def forward(self, x, mask=None):
        q, k, v = (self.heads(p(x)) for p in (self.wq, self.wk, self.wv))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores + (1.0 - mask) * -1e9
        out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.wo(out)


@standin("multihead", said="keyword")
class KeywordsOnly(Projected):
    def forward(self, hidden_states, *, attention_mask=None):
        found = self.attend(
            hidden_states, hidden_states, hidden_states, attention_mask
        )
        return SimpleNamespace(last_hidden_state=found[0], attentions=found[1])


@standin(
    "multihead",
    adapt=adapters.mask_added,
    said="the first of what it returned was taken",
)
class AddedToTheScores(Projected):
    """As in large libraries: numbers are added, a tuple comes back."""

    def forward(self, hidden_states, attention_mask=None):
        q, k, v = (
            self.heads(p(hidden_states)) for p in (self.wq, self.wk, self.wv)
        )
        scores = q @ k.mT / math.sqrt(k.shape[-1])
        if attention_mask is not None:
            scores = (scores + attention_mask).clamp_min(LOWEST)
        context = (scores.softmax(-1) @ v).permute(0, 2, 1, 3).contiguous()
        return (self.wo(context.view(*hidden_states.shape)),)


@standin(
    "multihead",
    mask="hidden",
    adapt=adapters.sequence_first,
    said="each sentence was asked alone",
)
class SequenceFirst(Projected):
    """(seq, batch, d_model), batch and heads on one axis."""

    def forward(self, query, key, value, attn_mask=None):
        length, batch, _ = query.shape
        q, k, v = (
            p(x).reshape(length, batch * HEADS, -1).transpose(0, 1)
            for p, x in ((self.wq, query), (self.wk, key), (self.wv, value))
        )
        scores = torch.bmm(q, k.transpose(1, 2)) * q.shape[-1] ** -0.5
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask, LOWEST)
        out = torch.bmm(scores.softmax(-1), v).transpose(0, 1)
        return self.wo(out.reshape(length, batch, WIDTH)), None


@standin(
    "multihead", mask="hidden", adapt=adapters.key_padding, said="True hides"
)
class KeyPaddingOnly(Projected):
    """A mask (batch, seq), True where padding is."""

    def forward(self, x, padding=None):
        keys = None if padding is None else ~padding[:, None, None, :]
        return self.attend(x, x, x, keys)[0]


@standin("multihead", said="its masks are (batch, key), so that each row was")
class KeysAndAContext(Projected):
    """A second stream of vectors comes before the mask, (batch, key)."""

    def forward(self, x, context=None, mask=None, context_mask=None):
        keys = x if context is None else context
        mask = mask if context is None else context_mask
        q, k, v = (
            self.heads(p(y))
            for p, y in ((self.wq, x), (self.wk, keys), (self.wv, keys))
        )
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            _batch, _keys = mask.shape
            scores = scores.masked_fill(~mask[:, None, None, :], LOWEST)
        out = torch.einsum("bhij,bhjd->bihd", scores.softmax(-1), v)
        return self.wo(out.flatten(2))


@standin(
    "multihead",
    mask="hidden",
    adapt=lambda m: adapters.without_residual(m, "norm"),
    said="where there is no mask, it got one that hides nothing",
)
class ResidualAndAMaskThatIsWanted(Projected):
    """A mask (batch, seq, seq) has to be given, and weights come back."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, q, k, v, mask):
        mask = mask.unsqueeze(1).repeat(1, HEADS, 1, 1)
        out, weights = self.attend(q, k, v, ~mask)
        return self.norm(out + q), weights


@standin(
    "multihead", adapt=lambda m: adapters.without_residual(m, "layer_norm")
)
class ResidualInside(Projected):
    """Adds its input, and norms the sum."""

    def __init__(self):
        super().__init__()
        self.layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x, mask=None):
        return self.layer_norm(x + self.attend(x, x, x, mask)[0])


@standin("multihead", said="this is PyTorch's own layer, where True hides")
def pytorchs_own():
    """Made below: PyTorch's module as it is."""


def made(make):
    """Let a stand-in be what ``make`` builds."""
    name, known = STANDINS.popitem()
    STANDINS[name] = known._replace(make=lambda: built(make).eval())


made(lambda: nn.MultiheadAttention(WIDTH, HEADS, batch_first=True))


@standin("multihead", said="the sequence comes first: `batch_first` is False")
def pytorchs_own_with_the_sequence_first():
    """Made below."""


made(lambda: nn.MultiheadAttention(WIDTH, HEADS))


@standin("multihead", said="each sentence was asked alone")
class OneMaskForAll(Projected):
    """A mask (seq, seq) only."""

    def forward(self, x, mask=None):
        if mask is not None:
            _length, _other = mask.shape
        return self.attend(x, x, x, mask)[0]


# Attention


@standin("attention", said="an axis for one head; the first of what it")
def four_axes(q, k, v, mask=None):
    _batch, _head, _length, width = k.size()
    score = (q @ k.transpose(2, 3)) / math.sqrt(width)
    score = weigh(score, None if mask is None else mask == 1)
    return score @ v, score


@standin("attention", said="given by their names")
class ValuesFirst(nn.Module):
    def forward(self, value, key, query, mask=None):
        scores = query @ key.mT / math.sqrt(key.shape[-1])
        return weigh(scores, mask) @ value


@standin("attention", said="the first of what it returned was taken")
def annotated(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    weights = weigh(scores, None if mask is None else mask != 0)
    if dropout is not None:
        weights = dropout(weights)
    return torch.matmul(weights, value), weights


@standin("attention", said="how many of the first keys count, (batch,)")
def with_lengths(queries, keys, values, valid_lens=None):
    scores = torch.bmm(queries, keys.transpose(1, 2))
    scores = scores / math.sqrt(queries.shape[-1])
    if valid_lens is None:
        return torch.bmm(scores.softmax(-1), values)
    may = torch.arange(keys.shape[1]) < valid_lens[:, None, None]
    return torch.bmm(weigh(scores, may.expand_as(scores)), values)


@standin("attention", adapt=adapters.valid_lengths)
def with_how_many(queries, keys, values, counted=None):
    return with_lengths(queries, keys, values, counted)


@standin("attention", said="(batch, query), so that it was called once for")
class LengthsOfEachQuery(nn.Module):
    """Lengths for each query, which have to be given; weights come back."""

    def forward(self, query, key, value, key_lengths):
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        place = torch.arange(key.shape[1]).view(1, 1, -1)
        weights = weigh(scores, place < key_lengths.unsqueeze(2))
        return weights @ value, weights


@standin("masked_softmax", said="how many of the first keys count, (batch,)")
def softmax_with_lengths(scores, valid_lens):
    may = torch.arange(scores.shape[2])[None, None] < valid_lens.view(-1, 1, 1)
    return weigh(scores, may.expand_as(scores))


# Attention that is causal


@standin("causal_attention")
class WithABuffer(nn.Module):
    """One projection, and a triangle in a buffer."""

    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)
        triangle = torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16)
        self.register_buffer("bias", triangle)

    def forward(self, x, layer_past=None):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(WIDTH, dim=2)
        q, k, v = (
            y.view(B, T, HEADS, C // HEADS).transpose(1, 2) for y in (q, k, v)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


@standin("causal_attention", said="the first of what it returned")
class HeadsInAList(nn.Module):
    """Heads one after the other, which also returns its cache."""

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Linear(WIDTH, 3 * 4, bias=False) for _ in range(HEADS)
        )
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        outs = []
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        for head in self.heads:
            q, k, v = head(x).chunk(3, -1)
            wei = (q @ k.mT * 4**-0.5).masked_fill(hidden, -torch.inf)
            outs.append(wei.softmax(-1) @ v)
        return self.proj(torch.cat(outs, -1)), None


@standin("causal_attention", said="(x, x, x)")
def of_queries_keys_and_values(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@standin("causal_attention")
class TurnedByPositions(nn.Module):
    """Rotary positions inside."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)

    def forward(self, x, start_pos=0):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, HEADS, 4).unbind(2)
        angle = torch.outer(torch.arange(s), 10000 ** -torch.tensor([0, 0.5]))
        turn = torch.polar(torch.ones(()), angle)[None, :, None]
        q, k = (
            torch.view_as_real(torch.view_as_complex(y.unflatten(-1, (2, 2)))
                               * turn).flatten(-2)
            for y in (q, k)
        )  # fmt: skip
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return out.transpose(1, 2).reshape(b, s, WIDTH)


# Norms that are modules


@standin("layer_norm", said="`a_2` is its gain and `b_2` its bias")
class AnnotatedNorm(nn.Module):
    def __init__(self, features=WIDTH, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, unbiased=False, keepdim=True)
        return self.a_2 * (x - mean) / torch.sqrt(var + self.eps) + self.b_2


@standin("layer_norm", said="`gamma` is its gain and `beta` its bias")
class BiasInABuffer(nn.Module):
    def __init__(self, dim=WIDTH):
        super().__init__()
        self.eps = 1e-5
        self.gamma = nn.Parameter(torch.ones(dim))
        self.register_buffer("beta", torch.zeros(dim))

    def forward(self, x):
        shape = x.shape[-1:]
        return F.layer_norm(x, shape, self.gamma, self.beta, self.eps)


@standin("layer_norm", said="`weight` is its gain")
def pytorchs_norm():
    """Made below."""


made(lambda: nn.LayerNorm(WIDTH))


@standin("layer_norm", said="(x, shape, gain, bias, eps)")
def functional(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


@standin("rms_norm", said="`weight` is its gain")
class InFullPrecision(nn.Module):
    def __init__(self, hidden_size=WIDTH, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        kind = hidden_states.dtype
        wide = hidden_states.to(torch.float32)
        size = wide.pow(2).mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(size + self.variance_epsilon)
        return self.weight * wide.to(kind)


@standin("rms_norm", said="`g` is its gain")
class WithItsScale(nn.Module):
    """Multiplies by √d, and keeps it."""

    def __init__(self, dim=WIDTH, eps=1e-8):
        super().__init__()
        self.scale, self.eps = dim**-0.5, eps
        self.g = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        size = x.float().square().sum(-1, keepdim=True) * self.scale**2
        return (x / (size + self.eps).sqrt()).type_as(x) * self.g


# Feed-forward networks and positions


@standin(
    "feed_forward", adapt=lambda m: adapters.without_residual(m, "layer_norm")
)
class PositionWise(nn.Module):
    """Residual and norm inside, which comes first here."""

    def __init__(self):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(WIDTH, 31), nn.Linear(31, WIDTH)
        self.layer_norm = nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        inner = self.w_2(F.relu(self.w_1(self.layer_norm(x))))
        return self.dropout(inner) + x


@standin("feed_forward", said="the first of what it returned")
class WithItsLoss(nn.Module):
    """Two experts, and the loss that balances them."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 2)
        self.w1, self.w2, self.w3 = (
            nn.Linear(WIDTH, 2 * 31),
            nn.Linear(31, WIDTH),
            nn.Linear(31, WIDTH),
        )

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        one, two = F.silu(self.w1(x)).chunk(2, -1)
        out = share[..., :1] * self.w2(one) + share[..., 1:] * self.w3(two)
        return out, share.mean((0, 1)).square().sum()


@standin("add_positions", adapt=adapters.sequence_first)
class TutorialsPositions(nn.Module):
    """(seq, batch, d_model), a table with an axis for the batch."""

    def __init__(self, d_model=WIDTH, max_len=64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        rate = torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model)
        )
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * rate)
        pe[:, 0, 1::2] = torch.cos(position * rate)
        self.register_buffer("pe", pe)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


@standin("add_positions", adapt=adapters.added_from)
class PositionsAlone(nn.Module):
    def __init__(self):
        super().__init__()
        self.pe = nn.Parameter(torch.randn(1, 64, WIDTH))

    def forward(self, x):
        return self.pe[:, : x.shape[1]]


@standin("sinusoidal", said="given by their names")
def width_first(d_model, max_len):
    pos = torch.arange(max_len)[:, None]
    i = torch.arange(d_model)
    angle = pos / 10000 ** ((i - i % 2) / d_model)
    return torch.where(i % 2 == 0, angle.sin(), angle.cos())


@standin("rope", said="(batch, seq, head, head_dim)")
def by_complex_numbers(x, positions):
    _batch, seq, _heads, width = x.shape
    rate = 10000 ** (-torch.arange(0, width, 2) / width)
    angle = torch.outer(positions, rate)
    turn = torch.polar(torch.ones(()), angle).view(1, seq, 1, width // 2)
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(3).type_as(x)


@standin("rope", adapt=adapters.rope_with_tables)
def queries_and_keys(x, cos, sin):
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


# Masks


@standin("rope", said="a table of complex numbers, of base 10000")
def both_at_once(xq, xk, freqs_cis):
    """Queries and keys, (batch, seq, head, head_dim), and who turns them."""
    turned = []
    for x in (xq, xk):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        pairs = pairs * freqs_cis[None, :, None]
        turned.append(torch.view_as_real(pairs).flatten(-2).type_as(x))
    return tuple(turned)


@standin("rope", said="a table of complex numbers, of base 10000")
def with_a_device(x, freqs_complex, device="cpu"):
    """The table is not the last: a device stands behind it."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    turned = torch.view_as_real(pairs * freqs_complex[None, :, None])
    return turned.flatten(-2).type_as(x).to(device)


@standin("padding_mask", mask="hidden", said="called as (tokens, tokens)")
def of_both_sequences(seq_q, seq_k):
    """Each row has the mask of the keys, in which padding is 0."""
    return (seq_k == 0)[:, None].expand(-1, seq_q.shape[1], -1)


@standin("causal_mask", adapt=adapters.causal_from_added)
def of_minus_infinity(size):
    mask = torch.triu(torch.ones(size, size)) == 1
    mask = mask.transpose(0, 1).float()
    return mask.masked_fill(mask == 0, float("-inf")).masked_fill(
        mask == 1, 0.0
    )


@standin("causal_mask", mask="hidden", said="True hides")
def of_what_is_hidden(length):
    return torch.ones(length, length).triu(diagonal=1).bool()


@standin(
    "padding_mask",
    mask="hidden",
    adapt=adapters.padding_from_keys,
    said="True hides",
)
def where_padding_is(tokens, pad):
    return tokens.eq(pad)


# Encoders


class Layer(nn.Module):
    """Attention and network, each with its residual and a norm behind."""

    def __init__(self):
        super().__init__()
        self.attend = ReturnsItsWeightsToo()
        self.up, self.down = nn.Linear(WIDTH, 31), nn.Linear(31, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, mask=None):
        out, weights = self.attend(x, mask)
        x = self.norm1(x + out)
        return self.norm2(x + self.down(F.gelu(self.up(x)))), weights


@standin("encoder", said="the first of what it returned")
class WithItsMaps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, src, src_mask=None):
        maps = []
        for layer in self.layers:
            src, weights = layer(src, src_mask)
            maps.append(weights)
        return src, maps


@standin("encoder", said="(batch, key), so that each row was asked alone")
class LayersOfKeys(nn.Module):
    """Its mask says which words are none of padding, (batch, key)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in "12")
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, mask=None):
        if mask is not None:
            _batch, _keys = mask.shape
            mask = mask[:, None, None]
        for layer in self.layers:
            x = layer(x, mask)[0]
        return self.norm(x)


@standin("encoder", said="this is PyTorch's own layer")
def pytorchs_encoder():
    """Made below."""


made(
    lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, 31, batch_first=True),
        2,
        enable_nested_tensor=False,
    )
)


# Whole models


class Stack(nn.Module):
    """Two layers over tokens with learned positions."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(16, WIDTH)
        self.h = nn.ModuleList(Layer() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def states(self, idx, mask=None):
        n = idx.shape[1]
        mask = torch.ones(n, n).tril().bool() if mask is None else mask
        x = self.wte(idx) + self.wpe(torch.arange(n))
        for layer in self.h:
            x, _ = layer(x, mask)
        return x


@standin("language_model", said="the first of what it returned")
class LogitsAndLoss(Stack):
    def forward(self, idx, targets=None):
        logits, loss = self.head(self.states(idx)), None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, WORDS), targets.view(-1))
        return logits, loss


@standin("language_model", said="(tokens, targets); the first of what it")
class LastPositionWithoutTargets(Stack):
    def forward(self, idx, targets=None):
        x = self.states(idx)
        if targets is None:
            return self.head(x[:, [-1], :]), None
        logits = self.head(x)
        return logits, F.cross_entropy(logits.view(-1, WORDS), targets.view(-1))


@standin("language_model", said="one row a token, got their axes back")
class FlatLogits(Stack):
    def forward(self, tokens):
        return self.head(self.states(tokens)).view(-1, WORDS)


@standin("language_model", said="`logits` of what it returned")
class InAnObject(Stack):
    def forward(self, input_ids, attention_mask=None, labels=None):
        return SimpleNamespace(
            loss=None, logits=self.head(self.states(input_ids))
        )


@standin("language_model", said="it got the causal mask too, (seq, seq)")
class WantsItsMask(Stack):
    def forward(self, x, mask):
        return self.head(self.states(x, mask)).log_softmax(-1)


@standin("language_model", mask="hidden", said="True hides")
class WantsWhatIsHidden(Stack):
    def forward(self, tokens, mask=None):
        free = torch.ones(1, 1).bool()
        return self.head(self.states(tokens, free if mask is None else ~mask))


@standin("language_model", said="the first of what it returned was taken")
class Recurrent(nn.Module):
    """Not a Transformer, and its state comes back too."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(WORDS, WIDTH)
        self.rnn = nn.LSTM(WIDTH, 16, batch_first=True)
        self.decoder = nn.Linear(16, WORDS)

    def forward(self, input, hidden=None):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return self.decoder(output), hidden


class Translator(nn.Module):
    """PyTorch's layers, with embeddings and a head."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = (nn.Embedding(WORDS, WIDTH) for _ in range(2))
        self.places = nn.Embedding(32, WIDTH)
        self.body = nn.Transformer(WIDTH, 2, 2, 2, 31, 0.1, batch_first=True)
        self.body.encoder.enable_nested_tensor = False
        self.out = nn.Linear(WIDTH, WORDS)

    def run(self, src, tgt, pads, past):
        at = lambda x: self.places(torch.arange(x.shape[1]))  # noqa: E731
        return self.out(
            self.body(
                self.src(src) + at(src),
                self.tgt(tgt) + at(tgt),
                tgt_mask=past,
                src_key_padding_mask=pads,
                memory_key_padding_mask=pads,
            )
        )

    def past(self, tgt):
        return torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()


@standin("translation_model", said="it got the masks too, (batch, 1, …, key)")
class MasksAreGiven(Translator):
    """Masks of four axes, and log-probabilities."""

    def forward(self, src, tgt, src_mask, tgt_mask):
        _batch, _one, _rows, _keys = src_mask.shape
        hidden = ~tgt_mask[0, 0].new_ones(tgt.shape[1], tgt.shape[1]).tril()
        found = self.run(src, tgt, ~src_mask[:, 0, 0], hidden)
        return found.log_softmax(-1)


@standin("translation_model", said="the lengths of the sources")
class LengthsAreGiven(Translator):
    def forward(self, src_tokens, src_lengths, prev_output_tokens):
        at = torch.arange(src_tokens.shape[1])
        pads = at >= src_lengths[:, None]
        past = self.past(prev_output_tokens)
        return self.run(src_tokens, prev_output_tokens, pads, past), {}


@standin("translation_model", said="of the sources and of the targets too")
class BothLengthsAreGiven(Translator):
    def forward(self, src, src_len, tgt, tgt_len):
        _most = int(tgt_len.max())
        pads = torch.arange(src.shape[1]) >= src_len[:, None]
        return self.run(src, tgt, pads, self.past(tgt))


@standin("translation_model", said="masks of padding too, (batch, key)")
class PaddingIsGiven(Translator):
    """Its causal mask is built in."""

    def forward(self, src_sequence, tgt_sequence, src_mask, tgt_mask):
        _sentences, _tokens = tgt_mask.shape
        past = self.past(tgt_sequence)
        return self.run(src_sequence, tgt_sequence, ~src_mask, past)


@standin("translation_model", said="masks of padding too, (batch, key)")
class MasksAreCalledAsTheIds(Translator):
    def forward(self, x, y, x_mask, y_mask):
        _sentences, _tokens = y_mask.shape
        return self.run(x, y, ~x_mask, self.past(y))


@standin("translation_model", said="one row a token, got their axes back")
class FlatTranslations(Translator):
    def forward(self, src_seq, trg_seq):
        found = self.run(src_seq, trg_seq, src_seq == 0, self.past(trg_seq))
        return found.view(-1, found.size(2))


@standin("translation_model", said="given by their names")
class TargetFirst(Translator):
    def forward(self, target, source):
        return self.run(source, target, source == 0, self.past(target))


@standin("translation_model", said="the sequence comes first in it, for its")
class SequenceFirstTranslator(Translator):
    """Tokens (seq, batch), and logits likewise."""

    def forward(self, src, tgt):
        src, tgt = src.T, tgt.T
        found = self.run(src, tgt, src == 0, self.past(tgt))
        return found.transpose(0, 1)


@standin(
    "translation_model",
    mask="hidden",
    said="(seq, seq) for the order and (batch, key) for padding",
)
class EveryMaskIsGiven(nn.Module):
    """PyTorch's layers as they are, with the sequence first."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 31, 0.1)
        encoder = nn.TransformerEncoder(
            layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False
        )
        self.body = nn.Transformer(
            WIDTH, 2, 2, 2, 31, 0.1, custom_encoder=encoder
        )
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(32, WIDTH)
        self.generator = nn.Linear(WIDTH, WORDS)

    def placed(self, ids):
        return self.words(ids) + self.places.weight[: len(ids), None]

    def forward(
        self,
        src,
        trg,
        src_mask,
        tgt_mask,
        src_padding_mask,
        tgt_padding_mask,
        memory_key_padding_mask,
    ):
        states = self.body(
            self.placed(src),
            self.placed(trg),
            src_mask,
            tgt_mask,
            None,
            src_padding_mask,
            tgt_padding_mask,
            memory_key_padding_mask,
        )
        return self.generator(states)


@standin("translation_model", adapt=adapters.drops_last_token)
class ShiftsItself(Translator):
    """Leaves out the last target token, to which nothing is to come."""

    def forward(self, src, tgt):
        read = tgt[:, :-1]
        return self.run(src, read, src == 0, self.past(read))


@standin("translation_model", adapt=lambda m: adapters.padding_is(m, 1))
class PaddingIsOne(Translator):
    def forward(self, src, tgt):
        return self.run(src, tgt, src == 1, self.past(tgt))


# Losses and searches


@standin("label_smoothing", adapt=adapters.one_row_a_token)
def by_hand(pred, gold, smoothing, pad):
    """The mass goes to all classes but one, and padding does not count."""
    aim = torch.full_like(pred, smoothing / (pred.size(1) - 1))
    aim = aim.scatter(1, gold.view(-1, 1), 1 - smoothing)
    losses = -(aim * pred.log_softmax(1)).sum(1)
    return losses.masked_select(gold.ne(pad)).mean()


@standin("label_smoothing")
def flat_loss():
    """Made below: PyTorch's module, on (tokens, vocab)."""


def _made_loss():
    return adapters.smoothed_by(
        lambda smoothing, pad, vocab: nn.CrossEntropyLoss(
            ignore_index=pad, label_smoothing=smoothing
        )
    )


_name, _known = STANDINS.popitem()
STANDINS[_name] = _known._replace(make=_made_loss)


def _greedy_with_a_model(model, src, src_mask, max_len, start_symbol, end):
    memory = model.encode(src, src_mask)
    ys = torch.full((1, 1), start_symbol)
    for _ in range(max_len):
        past = torch.ones(1, ys.size(1), ys.size(1)).tril().bool()
        out = model.decode(memory, src_mask, ys, past)
        best = model.generator(out[:, -1]).argmax(-1)
        ys = torch.cat([ys, best[:, None]], dim=1)
        if best.item() == end:
            break
    return ys[0, 1:]


@standin("greedy_decode", written=True)
def with_a_model(step_fn, bos, eos, max_len):
    model = adapters.StepModel(step_fn)
    src = torch.ones(1, 4, dtype=torch.long)
    return _greedy_with_a_model(model, src, None, max_len, bos, eos)


@standin("greedy_decode", written=True)
def with_a_cache(step_fn, bos, eos, max_len):
    model, ids, cache = adapters.KeepsItsCache(step_fn), [], None
    last = torch.tensor([[bos]])
    while len(ids) < max_len:
        logits, cache = model(last, cache)
        last = logits.argmax(-1, keepdim=True)
        ids.append(last.item())
        if ids[-1] == eos:
            break
    return ids


# Arrays


@standin("softmax", adapt=adapters.from_numpy)
def of_arrays(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@standin("layer_norm", adapt=adapters.from_numpy)
def norm_of_arrays(x, g, b, eps=1e-5):
    rest = x - x.mean(-1, keepdims=True)
    return g * rest / np.sqrt((rest**2).mean(-1, keepdims=True) + eps) + b


@standin("attention", adapt=lambda fn: adapters.from_numpy(fn, batch=False))
def a_sentence_of_arrays(q, k, v, mask=None):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    return of_arrays(scores, -1) @ v
