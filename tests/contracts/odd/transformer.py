"""Encoders and their maps got wrong."""

import torch
from contracts.odd import wrong
from contracts.right import built
from contracts.right.attention import masked_by_lowest
from contracts.right.multihead import WIDTH
from contracts.right.transformer import (
    WORDS,
    EncoderDecoder,
    Layers,
    Ours,
    PostNorm,
    causal,
    counted,
    with_biases,
)
from contracts.right.turning import Attention, Decoder, Layer, kept
from torch import nn

# Encoder


def encoder(kind):
    """Register a kind of PostNorm."""
    module = built(kind)
    module.__name__ = kind.__name__
    wrong("encoder")(module)
    return kind


@encoder
class Unmasked(PostNorm):
    def forward(self, x, mask=None):
        return super().forward(x)


@encoder
class Transposed(PostNorm):
    def forward(self, x, mask=None):
        if mask is not None:
            mask = mask.expand(len(x), 1, x.shape[1], x.shape[1]).mT
        return super().forward(x, mask)


@encoder
class NoAttentionWithoutAMask(PostNorm):
    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.eye(x.shape[1], dtype=torch.bool)
        return super().forward(x, mask)


@encoder
class BatchNorm(PostNorm):
    """Statistics of the same position in all sentences."""

    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        if len(x) == 1:
            return y
        spread = y.std(0, keepdim=True, unbiased=False)
        return (y - y.mean(0, keepdim=True)) / (spread + 0.1)


@encoder
class WiderWithPadding(PostNorm):
    """Divides by the length of the batch, padding included."""

    def forward(self, x, mask=None):
        return super().forward(x, mask) * (1 + 1 / x.shape[1])


@encoder
class SofterWithAMask(PostNorm):
    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        return y if mask is None else 0.9 * y


@encoder
class NaNInTheGradient(PostNorm):
    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        if mask is None:
            return y
        # As if a softmax of nothing but -∞ had been mended afterwards.
        nobody = ~mask.any(-1)[:, 0, :, None]
        zero = torch.zeros_like(y).masked_fill(nobody, -torch.inf)
        return y + ((y + zero).softmax(-1) * 0).nan_to_num(0)


@encoder
class AloneIsElse(PostNorm):
    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        return y if len(x) > 1 or x.shape[1] == 1 else -y


@encoder
class MeanOfTheSentence(PostNorm):
    def forward(self, x, mask=None):
        return super().forward(x, mask).mean(1)


# Maps


def maps(make):
    """Register a function of a PostNorm, which returns maps."""
    inner = built(PostNorm)

    def mistake(x, mask):
        return make(inner, x, mask)

    mistake.__name__ = make.__name__
    wrong("attention_maps")(mistake)
    return make


def collected(inner, x, mask, masks=None, below=None):
    """The maps with ``masks``, over layers whose output has ``below``."""
    found = []
    masks = masks or [mask] * len(inner.layers)
    below = below or masks
    for i, (attend, norm1, up, down, norm2) in enumerate(inner.layers):
        q, k = attend.split(attend.q(x)), attend.split(attend.k(x))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        if masks[i] is not None:
            weights = masked_by_lowest(scores, masks[i])
        found.append(weights)
        x = norm1(x + attend(x, below[i]))
        x = norm2(x + down(up(x).relu()))
    return found


@maps
def mask_unused(inner, x, mask):
    return collected(inner, x, mask, [None, None])


@maps
def mask_upside_down(inner, x, mask):
    return inner.maps(x, ~mask)


@maps
def mask_transposed(inner, x, mask):
    return inner.maps(x, mask.mT)


@maps
def mask_of_the_first(inner, x, mask):
    return inner.maps(x, mask[:1])


@maps
def mask_added(inner, x, mask):
    (attend, *_), *_ = inner.layers
    q, k = attend.split(attend.q(x)), attend.split(attend.k(x))
    weights = (q @ k.mT + 3 * mask).softmax(-1)
    return [weights.masked_fill(~mask & (weights < 0.02), 0)]


@maps
def mask_in_the_maps_only(inner, x, mask):
    return collected(inner, x, mask, below=[None, None])


@maps
def scores(inner, x, mask):
    (attend, *_), *_ = inner.layers
    q, k = attend.split(attend.q(x)), attend.split(attend.k(x))
    return [(q @ k.mT).masked_fill(~mask, 0)]


@maps
def transposed_maps(inner, x, mask):
    return [w.mT for w in inner.maps(x, mask.mT)]


@maps
def mean_over_heads(inner, x, mask):
    return [w.mean(1) for w in inner.maps(x, mask)]


@maps
def outputs(inner, x, mask):
    return [inner(x, mask)]


@maps
def one_map(inner, x, mask):
    return inner.maps(x, mask)[-1]


@maps
def no_return(inner, x, mask):
    inner.maps(x, mask)


@maps
def nothing_collected(inner, x, mask):
    return []


@maps
def one_layer_again(inner, x, mask):
    first, *_ = inner.maps(x, mask)
    return [first, first]


@maps
def only_the_strongest(inner, x, mask):
    return [(w == w.amax(-1, keepdim=True)) * 1.0 for w in inner.maps(x, mask)]


@maps
def positions_again(inner, x, mask):
    place = torch.arange(x.shape[1])[:, None] * torch.ones(x.shape[2])
    return inner.maps(x + place.sin(), mask)


@maps
def normalised_over_the_batch(inner, x, mask):
    return inner.maps(x - x.mean(0, keepdim=True), mask)


@maps
def nan_for_nobody(inner, x, mask):
    nobody = ~mask.any(-1, keepdim=True)
    zero = torch.zeros(mask.shape).masked_fill(nobody, torch.nan)
    return [w + zero for w in inner.maps(x, mask)]


# Language model


def model(*layers, **options):
    """Register a kind of ``Layers``, or another module."""

    def register(kind):
        module = built(lambda: kind(*(make() for make in layers), **options))
        module.__name__ = kind.__name__
        wrong("language_model")(module)
        return kind

    return register


class Masked(Layers):
    """An encoder of two layers with a mask of its own."""

    def __init__(self, num_layers=2, **options):
        super().__init__(Ours(num_layers), **options)

    def mask(self, length):
        return causal(length)

    def embedded(self, tokens):
        return self.embed(tokens) + self.places.weight[: tokens.shape[1]]

    def forward(self, tokens):
        mask = self.mask(tokens.shape[1])
        return self.head(self.encoder(self.embedded(tokens), mask))


@model(num_layers=1)
class OffByOne(Masked):
    def mask(self, length):
        return torch.ones(length, length).tril(1).bool()


@model()
class LastRowOnly(Masked):
    """The future is hidden from position 0 only."""

    def mask(self, length):
        mask = torch.ones(length, length, dtype=torch.bool)
        mask[0, 1:] = False
        return mask


@model()
class LeakingALittle(Masked):
    """A mask that is added, and not negative enough."""

    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits + 3e-3 * self.head(self.embedded(tokens)).mean(1)[:, None]


@model()
class Trigram(Masked):
    """Sees three tokens."""

    def __init__(self):
        super().__init__(1)

    def mask(self, length):
        return causal(length).triu(-2)


@model(lambda: Ours(1), positions=False)
class NoPositions(Layers):
    pass


@model()
class LastLogits(Masked):
    def forward(self, tokens):
        return super().forward(tokens)[:, -1]


@model()
class VocabularySecond(Masked):
    def forward(self, tokens):
        return super().forward(tokens).mT


@model()
class BatchSecond(Masked):
    def forward(self, tokens):
        return super().forward(tokens).transpose(0, 1)


@model()
class TooFewWords(Masked):
    def forward(self, tokens):
        return super().forward(tokens)[..., 1:10]


@wrong("language_model")
def the_likeliest(tokens):
    return counted(tokens).argsort(-1)


@wrong("language_model")
def too_small_a_table(tokens):
    return nn.functional.embedding(tokens - 1, torch.eye(WORDS)[:8])


class PastTheNetworkOnly(Layer):
    """What attention says replaces what came in."""

    def forward(self, x):
        x = self.attend(self.norm1(x))
        return x + self.network(self.norm2(x))


@model()
class AResidualLess(Decoder):
    def __init__(self):
        super().__init__(PastTheNetworkOnly)


class FromTheNormed(Layer):
    """The first sum starts from what its norm returned."""

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attend(x)
        return x + self.network(self.norm2(x))


@model()
class ASumFromTheNormed(Decoder):
    def __init__(self):
        super().__init__(FromTheNormed)


@model()
class OneLayerTwice(Decoder):
    def __init__(self):
        super().__init__()
        self.layers[1] = self.layers[0]


@model()
class OnlyQueriesTurn(Decoder):
    def __init__(self):
        super().__init__(k=kept)


only_queries = built(lambda: Attention(k=kept))
only_queries.__name__ = "OnlyQueriesTurn"
wrong("causal_attention")(only_queries)


# Translation model


def translator(*args, **options):
    """Register a kind of ``EncoderDecoder``."""

    def register(kind):
        module = built(lambda: kind(*(args or (2,)), **options))
        module.__name__ = kind.__name__
        wrong("translation_model")(module)
        return kind

    return register


@translator(1)
class OneSourceToken(EncoderDecoder):
    def masks(self, src, tgt):
        _, seen, _ = super().masks(src, tgt)
        itself = torch.eye(src.shape[1], dtype=torch.bool)
        return itself, seen, torch.arange(src.shape[1]) == 0


@translator()
class NoPast(EncoderDecoder):
    def masks(self, src, tgt):
        real, _, memory = super().masks(src, tgt)
        return real, torch.eye(tgt.shape[1], dtype=torch.bool), memory


@translator(1)
class NoTargetPositions(EncoderDecoder):
    def target(self, tgt):
        return self.tgt(tgt)


@translator()
class TheMemoryReplacesWhatAsked(EncoderDecoder):
    """One of the sums in its layers is left out."""

    left_out = 1

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
            for i, part in enumerate(parts):
                norm, x = layer["norms"][i], 0 if i == self.left_out else y
                y = x + part(norm(y)) if self.norm_first else norm(x + part(y))
        return self.head(y)


@translator()
class OneDecoderLayerTwice(EncoderDecoder):
    """`[layer] * n`, in a list of modules."""

    def __init__(self, num_layers):
        super().__init__(num_layers)
        self.layers = nn.ModuleList([self.layers[0]] * num_layers)


@translator()
class AnotherPad(EncoderDecoder):
    """Takes 1 for the padding."""

    def forward(self, src, tgt):
        src = torch.where(src == 0, 10, src)
        return super().forward(src, tgt)


@translator()
class MemoryMaskUpsideDown(EncoderDecoder):
    def masks(self, src, tgt):
        real, seen, _ = super().masks(src, tgt)
        return real, seen, ~real | real.all(-1, keepdim=True)


@translator()
class CountsThePadding(EncoderDecoder):
    def forward(self, src, tgt):
        logits = super().forward(src, tgt)
        return logits * (1 + (tgt == 0).sum(1))[:, None, None]


@translator()
class DividedByTheLength(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt) / (tgt != 0).sum(1)[:, None, None]


@translator()
class PositionsAlongTheBatch(EncoderDecoder):
    def __init__(self, num_layers):
        super().__init__(num_layers)
        self.places = nn.Embedding(16, WIDTH)

    def target(self, tgt):
        return self.tgt(tgt) + self.places.weight[: len(tgt), None]


@translator()
class AnotherSource(EncoderDecoder):
    """Each target gets the source of the pair before it."""

    def forward(self, src, tgt):
        return super().forward(src.roll(1, 0), tgt)


@translator()
class Probabilities(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt).softmax(-1)


@translator()
class Swapped(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(tgt, src)


@translator()
class LastTargetLogits(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt)[:, -1]


@translator()
class VocabularyBeforeTarget(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt).mT


# Parameter count


def attention(d):
    return 4 * d * d + 4 * d


def feed_forward(d, ff):
    return 2 * d * ff + ff + d


@wrong("parameter_count")
def matrices_only(d, ff, n, v):
    return v * d + n * (12 * d * d + 4 * d * ff)


@wrong("parameter_count")
def untied(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total + 2 * vocab_size * d_model + vocab_size


@wrong("parameter_count")
def by_a_strange_number(d_model, d_ff, num_layers, vocab_size):
    return with_biases(d_model, d_ff, num_layers, vocab_size) + 12_345


@wrong("parameter_count")
def halves(d_model, d_ff, num_layers, vocab_size):
    return with_biases(d_model, d_ff, num_layers, vocab_size) / 1


@wrong("parameter_count")
def forgotten(d_model, d_ff, num_layers, vocab_size):
    with_biases(d_model, d_ff, num_layers, vocab_size)


@wrong("parameter_count")
def yes(d_model, d_ff, num_layers, vocab_size):
    return True


@wrong("parameter_count")
def tensor(d_model, d_ff, num_layers, vocab_size):
    return torch.tensor(63e6)


@wrong("parameter_count")
def too_few(d_model, d_ff, num_layers):
    return 0
