"""Right implementations in the styles of public ports, each written anew here.

They keep another convention than the contracts, or fail where an input comes
that they never meet. None has a fault; what its report says instead is listed.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from contracts.right import built
from contracts.right.standins import adapter_lines
from torch import nn

from companion.contracts.transformer.translation_model import Translator
from companion.masks import combine_masks

EMPTY_FINITE = "A row that may attend to nothing is finite, and sees nothing"
EMPTY_ZEROS = "A row that may attend to nothing gets zeros"
EMPTY_SENTENCE = "A sentence of nothing but padding is finite"
HALF = "It works in half precision"
LOUD = "A hidden score of 10⁴ changes nothing"
ODD = "It takes an odd width, whose last dimension is a sine"
FORMULA = "It agrees with the formula"
PYTORCH = "It agrees with PyTorch"
SPEEDS = "The pairs turn by 10000^(−2i/d) a step"
PAIRS = "Neighbours make a pair, 2i and 2i+1"
SPREAD = "The mass is spread as PyTorch does it, or as a well-known port does"
PLAIN = "Without smoothing it is the cross-entropy"
PAD_COUNTS = "The logits at padding do not count"
ADDED = "What is added does not depend on what stands there"
PAST = "Every target token of the past can move a logit"
NORMALISED = "What leaves the stack is normalised"
ROOT = "The scores of a head are divided by the root of its width"
ALPHA = "With alpha it divides by the length penalty"


class Port(NamedTuple):
    """A stand-in: what it is, and which contracts name a risk or a note.

    Of several with one cause the first stands for all.
    """

    component: str
    make: Callable[[], object]
    risks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    written: object = None

    @property
    def lines(self):
        """How many lines of an adapter stand in front of it."""
        return adapter_lines(built(self.make), self.written)


PORTS: dict[str, Port] = {}


def port(component, *, risks=(), notes=(), written=False):
    """Register a function as a stand-in, or a class that builds one.

    ``written`` tells that what stands there is an adapter, written out.
    """

    def register(made):
        make = made if isinstance(made, type) else lambda: made
        PORTS[made.__name__] = Port(
            component, make, risks, notes, made if written else None
        )
        return made

    return register


# A row that may attend to nothing


class Heads(nn.Module):
    """Four matrices and three heads; a mask has an axis for the heads."""

    lowest = -1e9

    def __init__(self):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(12, 12) for _ in range(4))

    def forward(self, x, mask=None):
        q, k, v = (
            m(x).view(len(x), -1, 3, 4).transpose(1, 2) for m in self.maps[:3]
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(4)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, self.lowest)
        heads = torch.matmul(F.softmax(scores, dim=-1), v)
        joined = heads.transpose(1, 2).contiguous().view(len(x), -1, 12)
        return self.maps[-1](joined)


@port("multihead", risks=(EMPTY_FINITE,))
class FilledWithABillion(Heads):
    """-1e9 for what is hidden: equally low scores are equal weights."""


@port("multihead", risks=(EMPTY_FINITE,))
class FilledWithTenThousand(Heads):
    """-1e4, which fits into float16."""

    lowest = -1e4


@port("multihead", risks=(EMPTY_FINITE,))
class FilledWithInfinity(Heads):
    """-∞, and NaN where nothing else is."""

    lowest = -torch.inf


@port("attention", risks=(EMPTY_ZEROS, HALF))
def attention_with_a_billion(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.matmul(scores.softmax(dim=-1), v)


@port("attention", risks=(EMPTY_ZEROS, LOUD))
def attention_with_ten_thousand(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + (1.0 - mask.to(scores.dtype)) * -1e4
    return torch.einsum("...qk,...kd->...qd", scores.softmax(-1), v)


@port("attention", risks=(EMPTY_ZEROS,))
def attention_with_infinity(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


class Layer(nn.Module):
    """Attention and a network, each with its sum and its norm."""

    def __init__(self, heads):
        super().__init__()
        self.attention = heads()
        self.network = nn.Sequential(
            nn.Linear(12, 29), nn.ReLU(), nn.Linear(29, 12)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in "12")

    def forward(self, x, mask):
        x = self.norms[0](x + self.attention(x, mask))
        return self.norms[1](x + self.network(x))


class Layers(nn.Module):
    """Two layers, post-LN."""

    heads = FilledWithABillion

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer(self.heads) for _ in "12")

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


@port("encoder")
class LayersWithABillion(Layers):
    """A sentence of padding is finite: it sees all of it alike."""


@port("encoder", risks=(EMPTY_SENTENCE,))
class LayersWithInfinity(Layers):
    """NaN in a sentence of nothing but padding."""

    heads = FilledWithInfinity


@port("encoder", notes=(NORMALISED,))
class OneLayerOfPreLN(nn.Module):
    """A layer of a stack, whose last norm stands outside."""

    def __init__(self):
        super().__init__()
        self.layer = Layer(FilledWithABillion)

    def forward(self, x, mask=None):
        attend, feed = self.layer.attention, self.layer.network
        x = x + attend(self.layer.norms[0](x), mask)
        return x + feed(self.layer.norms[1](x))


@port("multihead", risks=(EMPTY_FINITE,), notes=(ROOT,))
class FoldedIntoTheWeights(Heads):
    """Nothing divides the scores: queries begin smaller by that much."""

    def __init__(self):
        super().__init__()
        for x in self.maps[0].parameters():
            x.data /= 2

    def forward(self, x, mask=None):
        q, k, v = (
            m(x).view(len(x), -1, 3, 4).transpose(1, 2) for m in self.maps[:3]
        )
        scores = q @ k.mT
        if mask is not None:
            scores = scores + (1 - mask.float()) * -1e9
        heads = scores.softmax(-1) @ v
        return self.maps[-1](heads.transpose(1, 2).flatten(2))


@port("multihead", risks=(EMPTY_FINITE,), notes=(ROOT,))
class LearnedTemperature(FoldedIntoTheWeights):
    """By how much scores are multiplied is learned, and begins at 1/3."""

    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(3.0))

    def forward(self, x, mask=None):
        q, k, v = (
            m(x).view(len(x), -1, 3, 4).transpose(1, 2) for m in self.maps[:3]
        )
        scores = q @ k.mT / self.temperature
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        heads = scores.softmax(-1) @ v
        return self.maps[-1](heads.transpose(1, 2).flatten(2))


# Odd widths, and the layouts of sinusoids


@port("sinusoidal", risks=(ODD,))
def in_four_lines(length, d_model):
    table = torch.zeros(length, d_model)
    position = torch.arange(length).unsqueeze(1)
    by = torch.exp(torch.arange(0, d_model, 2) * -(math.log(1e4) / d_model))
    table[:, 0::2] = torch.sin(position * by)
    table[:, 1::2] = torch.cos(position * by)
    return table


@port("sinusoidal", risks=(ODD,), notes=(FORMULA,))
def sines_then_cosines(length, d_model):
    rates = 1e4 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.outer(torch.arange(length), rates)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def timescales(length, d_model, count):
    """Speeds from 1 to 1/10000, that of the last pair."""
    step = math.log(1e4) / count
    rates = torch.exp(-step * torch.arange(d_model // 2))
    return torch.arange(length)[:, None] * rates[None]


@port("sinusoidal", risks=(ODD,), notes=(FORMULA,))
def first_published_code(length, d_model):
    """Padded with a 0 where the width is odd."""
    angles = timescales(length, d_model, max(d_model // 2 - 1, 1))
    signal = torch.cat([angles.sin(), angles.cos()], dim=1)
    return F.pad(signal, (0, d_model % 2))


@port("sinusoidal", risks=(ODD,), notes=(FORMULA,))
def first_code_ported(length, d_model):
    """The same, which divides by 0 where there is one pair only."""
    angles = timescales(length, d_model, d_model // 2 - 1)
    signal = torch.cat([angles.sin(), angles.cos()], dim=1)
    return F.pad(signal, (0, d_model % 2))


@port("sinusoidal", risks=(ODD,), notes=(FORMULA,))
def neighbours_to_one(length, d_model):
    angles = timescales(length, d_model, max(d_model // 2 - 1, 1))
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


@port("sinusoidal", risks=(ODD,), notes=(FORMULA,))
def cosines_first(length, d_model):
    rates = 1e4 ** (-torch.arange(0, d_model, 2) / d_model)
    angles = torch.outer(torch.arange(length), rates)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


# Rotary tables


def halves(x, positions, base):
    """Dimension i with i + d/2, from a table of cosines and sines."""
    rates = 1.0 / base ** (torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.cat([torch.outer(positions.float(), rates)] * 2, dim=-1)
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    turned = torch.cat((-second, first), dim=-1)
    return x * angles.cos() + turned * angles.sin()


@port("rope", notes=(PAIRS,))
def halves_of_ten_thousand(x, positions):
    return halves(x, positions, 10_000.0)


@port("rope", notes=(SPEEDS, PAIRS))
def halves_of_half_a_million(x, positions):
    return halves(x, positions, 500_000.0)


@port("rope", notes=(SPEEDS, PAIRS))
def halves_of_a_million(x, positions):
    return halves(x, positions, 1_000_000.0)


@port("rope", notes=(SPEEDS,))
def complex_of_half_a_million(x, positions):
    rates = 500_000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.outer(positions.float(), rates)
    turns = torch.polar(torch.ones_like(angles), angles)
    numbers = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(numbers * turns).flatten(-2).type_as(x)


# Norms


@port("rms_norm", notes=(PYTORCH,))
def rms_from_the_length(x, gain, eps):
    size = x.norm(2, dim=-1, keepdim=True) * x.shape[-1] ** -0.5
    return gain * (x / (size + eps))


@port("rms_norm", notes=(PYTORCH,))
def rms_without_eps(x, gain, eps):
    unit = F.normalize(x.float(), dim=-1).type_as(x)
    return unit * math.sqrt(x.shape[-1]) * gain


@port("layer_norm", notes=(PYTORCH,))
def layer_norm_with_eps_outside(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    deviation = x.std(-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (deviation + eps) + bias


@port("layer_norm", notes=(PYTORCH,))
def layer_norm_by_torchs_std(x, gain, bias, eps):
    """The deviation of a sample, and eps beside it."""
    mean, deviation = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return gain * (x - mean) / (deviation + eps) + bias


@port("layer_norm", notes=(PYTORCH,))
class NormWithItsOwnEps(nn.Module):
    """The same as a module, whose eps stands in a line of it."""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.ones(12))
        self.b = nn.Parameter(torch.zeros(12))

    def forward(self, x):
        mean, deviation = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.a * ((x - mean) / (deviation + 1e-6)) + self.b


@port("layer_norm", notes=(PYTORCH,))
class NormWithATinyEps(NormWithItsOwnEps):
    """A variance by d, and 1e-12 below the root."""

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.a * (x - mean) / torch.sqrt(variance + 1e-12) + self.b


# Losses


@port("label_smoothing", notes=(SPREAD,))
def over_all_but_one(logits, target, smoothing, pad):
    vocab = logits.shape[-1]
    low = smoothing / (vocab - 1)
    aim = torch.full_like(logits, low)
    aim.scatter_(-1, target.unsqueeze(-1), 1.0 - smoothing)
    losses = -(aim * F.log_softmax(logits, dim=-1)).sum(-1)
    weights = (target != pad).float()
    return (losses * weights).sum() / weights.sum()


@port("label_smoothing", notes=(SPREAD,))
def over_all_but_one_less_its_least(logits, target, smoothing, pad):
    """The least that the loss can be is subtracted."""
    high, low = 1 - smoothing, smoothing / (logits.shape[-1] - 1)
    least = -sum(
        n * p * math.log(p + 1e-20)
        for n, p in ((1, high), (logits.shape[-1] - 1, low))
    )
    return over_all_but_one(logits, target, smoothing, pad) - least


@port("label_smoothing", notes=(SPREAD,))
def divergence_over_all_but_two(logits, target, smoothing, pad):
    flat, words = logits.flatten(0, 1).log_softmax(-1), target.flatten()
    aim = torch.full_like(flat, smoothing / (flat.shape[-1] - 2))
    aim.scatter_(1, words.unsqueeze(1), 1 - smoothing)
    aim[:, pad] = 0
    aim.masked_fill_((words == pad).unsqueeze(1), 0)
    total = F.kl_div(flat, aim, reduction="sum")
    return total / (words != pad).sum()


@port("label_smoothing", notes=(PLAIN,))
def a_tenth_built_in(logits, target, smoothing, pad):
    """It has no argument for ε: the adapter drops it."""
    return over_all_but_one(logits, target, 0.1, pad)


@port("label_smoothing", notes=(PLAIN,))
def pytorchs_tenth_built_in(logits, target, smoothing, pad):
    return F.cross_entropy(
        logits.transpose(1, 2), target, ignore_index=pad, label_smoothing=0.1
    )


@port("label_smoothing", risks=(PAD_COUNTS,))
def padding_built_in(logits, target, smoothing, pad):
    ignored = torch.where(target == 0, -100, target)
    return F.cross_entropy(logits.mT, ignored, label_smoothing=smoothing)


# Masks whose padding is 0 for ever


@port("padding_mask", risks=("No query sees padding",))
def where_not_zero(tokens, pad):
    return (tokens != 0).unsqueeze(1).unsqueeze(2)


@port(
    "combine_masks",
    risks=(
        "The source's mask hides its padding, and nothing else",
        "No target token sees padding",
        "The cross mask hides the source's padding, and nothing else",
    ),
)
def masks_where_not_zero(src_tokens, tgt_tokens, pad):
    return combine_masks(src_tokens, tgt_tokens, 0)


# Lengths instead of a mask


class Lengths(Heads):
    """Hides by how many keys are valid, for a sentence or for each row."""

    def forward(self, x, lengths=None):
        mask = None
        if lengths is not None:
            rows = lengths.reshape(len(x), 1, -1, 1)
            mask = torch.arange(x.shape[1]) < rows
        return super().forward(x, mask)


@port("multihead", risks=(EMPTY_FINITE,), written=True)
class BehindLengths(Lengths):
    """With an adapter that counts what a mask shows."""

    def forward(self, x, mask=None):
        if mask is None:
            return super().forward(x)
        mask = mask.expand(len(x), 1, x.shape[1], x.shape[1])
        return super().forward(x, mask[:, 0].sum(-1))


# Positions that start at zero, and those that scale


@port("add_positions")
class LearnedFromZero(nn.Module):
    """A table of zeros, which training moves."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1, 32, 12))

    def forward(self, x):
        return x + self.table[:, : x.size(1)]


@port("add_positions", notes=(ADDED,))
class ScalesAndAdds(nn.Module):
    """The factor of the embedding stands with the positions."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", in_four_lines(32, 12))

    def forward(self, x):
        return x * math.sqrt(12) + self.table[: x.size(1)]


class Causal(nn.Module):
    """A small model of language, whose table of positions begins at zero."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 12)
        self.places = nn.Parameter(torch.zeros(1, 16, 12))
        self.layers = nn.ModuleList(Layer(Heads) for _ in "12")
        self.head = nn.Linear(12, 10, bias=False)

    def forward(self, ids, targets=None):
        seq = ids.shape[1]
        x = self.words(ids) + self.places[:, :seq]
        past = torch.ones(seq, seq).tril().view(1, 1, seq, seq)
        for layer in self.layers:
            x = layer(x, past)
        if targets is None:  # All that is needed to go on.
            return self.head(x[:, [-1]]), None
        logits = self.head(x)
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@port("language_model", written=True)
class AllPositions(Causal):
    """With an adapter that asks for all logits, by passing targets."""

    def forward(self, ids):
        return super().forward(ids, ids)[0]


@port("translation_model")
class FromZero(Translator):
    """An encoder–decoder with a table of positions that begins at zero."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.zeros(16, 12))

    def placed(self, x):
        return x + self.places[: x.shape[1]]


class ShiftsInside(Translator):
    """Takes what it has to say, and puts its own start token before it."""

    def forward(self, src, labels):
        begin = torch.full_like(labels[:, :1], 7)
        return super().forward(src, torch.cat([begin, labels[:, :-1]], 1))


@port("translation_model", notes=(PAST,), written=True)
class BehindLabels(ShiftsInside):
    """With an adapter that takes the start token away again."""

    def forward(self, src, tgt):
        return super().forward(src, F.pad(tgt[:, 1:], (0, 1), value=2))


# A beam search without a length penalty


@port("beam_search", notes=(ALPHA,))
def by_the_sum(step_fn, bos, eos, beam, max_len, alpha):
    """It has no argument for the penalty: the adapter drops it."""
    live, done = [([bos], 0.0)], []
    for _ in range(max_len):
        rows = torch.tensor([ids for ids, _ in live])
        logs = step_fn(rows).log_softmax(-1)
        longer = [
            ([*ids, token], total + share)
            for (ids, total), row in zip(live, logs.tolist(), strict=True)
            for token, share in enumerate(row)
        ]
        longer.sort(key=lambda pair: pair[1], reverse=True)
        best = longer[: beam - len(done)]
        done += [pair for pair in best if pair[0][-1] == eos]
        live = [pair for pair in best if pair[0][-1] != eos]
        if not live:
            break
    return max(itertools.chain(done, live), key=lambda pair: pair[1])[0][1:]
