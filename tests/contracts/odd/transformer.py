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
from torch import nn

# Encoder


SEES = r"^Row 0 moves with position 3, which the mask hides. "


def encoder(says):
    """Registers a kind of PostNorm."""

    def register(kind):
        module = built(kind)
        module.__name__ = kind.__name__
        wrong("encoder", says)(module)
        return kind

    return register


@encoder(SEES + "The mask is not used")
class Unmasked(PostNorm):
    def forward(self, x, mask=None):
        return super().forward(x)


@encoder(SEES + "The mask is transposed")
class Transposed(PostNorm):
    def forward(self, x, mask=None):
        if mask is not None:
            mask = mask.expand(len(x), 1, x.shape[1], x.shape[1]).mT
        return super().forward(x, mask)


@encoder("^Row 0 does not move with position 1, .*Each sees itself only")
class NoAttentionWithoutAMask(PostNorm):
    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.eye(x.shape[1], dtype=torch.bool)
        return super().forward(x, mask)


@encoder("^Only sentence 0 was changed, and sentence 1 moved: .* norm run over")
class BatchNorm(PostNorm):
    """Statistics of the same position in all sentences."""

    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        if len(x) == 1:
            return y
        spread = y.std(0, keepdim=True, unbiased=False)
        return (y - y.mean(0, keepdim=True)) / (spread + 0.1)


@encoder("^Positions 3 and 4 are hidden from all, and still change the rows")
class WiderWithPadding(PostNorm):
    """Divides by the length of the batch, padding included."""

    def forward(self, x, mask=None):
        return super().forward(x, mask) * (1 + 1 / x.shape[1])


@encoder("^Every entry of the mask is True")
class SofterWithAMask(PostNorm):
    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        return y if mask is None else 0.9 * y


@encoder("^The gradient of `x` is NaN in row 0")
class NaNInTheGradient(PostNorm):
    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        if mask is None:
            return y
        # As if a softmax of nothing but -∞ had been mended afterwards.
        nobody = ~mask.any(-1)[:, 0, :, None]
        zero = torch.zeros_like(y).masked_fill(nobody, -torch.inf)
        return y + ((y + zero).softmax(-1) * 0).nan_to_num(0)


@encoder("^Of 3 positions, each sentence alone gives other rows")
class AloneIsElse(PostNorm):
    def forward(self, x, mask=None):
        y = super().forward(x, mask)
        return y if len(x) > 1 or x.shape[1] == 1 else -y


@encoder(r"^It returned shape \(2, 12\).* one vector for a whole sentence")
class MeanOfTheSentence(PostNorm):
    def forward(self, x, mask=None):
        return super().forward(x, mask).mean(1)


# Maps


def maps(says):
    """Registers a function of a PostNorm, which returns maps."""

    def register(make):
        inner = built(PostNorm)

        def mistake(x, mask):
            return make(inner, x, mask)

        mistake.__name__ = make.__name__
        wrong("attention_maps", says)(mistake)
        return make

    return register


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


@maps("^Layer 0, batch 0, head 0, query 0, key 1: .* The mask is not used")
def mask_unused(inner, x, mask):
    return collected(inner, x, mask, [None, None])


@maps("^Layer 0, batch 0, head 0, query 0, key 1: .* The mask is upside down")
def mask_upside_down(inner, x, mask):
    return inner.maps(x, ~mask)


@maps("^Layer 0, batch 0, head 0, query 0, key 1: .* The mask is transposed")
def mask_transposed(inner, x, mask):
    return inner.maps(x, mask.mT)


@maps("^Layer 0, batch 1, .* Every sentence gets the mask of the first")
def mask_of_the_first(inner, x, mask):
    return inner.maps(x, mask[:1])


@maps("^Layer 0, .* Does the mask reach the scores, as -∞")
def mask_added(inner, x, mask):
    (attend, *_), *_ = inner.layers
    q, k = attend.split(attend.q(x)), attend.split(attend.k(x))
    weights = (q @ k.mT + 3 * mask).softmax(-1)
    return [weights.masked_fill(~mask & (weights < 0.02), 0)]


@maps("^The last position was changed, .* moved: do the layers below")
def mask_in_the_maps_only(inner, x, mask):
    return collected(inner, x, mask, below=[None, None])


@maps("^Layer 0, batch 0, head 0, query 2: .* Some are negative")
def scores(inner, x, mask):
    (attend, *_), *_ = inner.layers
    q, k = attend.split(attend.q(x)), attend.split(attend.k(x))
    return [(q @ k.mT).masked_fill(~mask, 0)]


@maps("^Layer 0, .*: the weights sum to .* The columns do")
def transposed_maps(inner, x, mask):
    return [w.mT for w in inner.maps(x, mask.mT)]


@maps("^The map of layer 0 has shape .* the mean over the heads")
def mean_over_heads(inner, x, mask):
    return [w.mean(1) for w in inner.maps(x, mask)]


@maps("^The map of layer 0 has shape .* Is it the output of the layer")
def outputs(inner, x, mask):
    return [inner(x, mask)]


@maps("^It returned a Tensor: expected a list of weights")
def one_map(inner, x, mask):
    return inner.maps(x, mask)[-1]


@maps("^It returned None: expected a list of weights")
def no_return(inner, x, mask):
    inner.maps(x, mask)


@maps("^The list is empty")
def nothing_collected(inner, x, mask):
    return []


@maps("^The maps of the layers 0 and 1 are the same")
def one_layer_again(inner, x, mask):
    first, *_ = inner.maps(x, mask)
    return [first, first]


@maps("^Layer 0, batch 0, .* is 0, though the mask allows this key")
def only_the_strongest(inner, x, mask):
    return [(w == w.amax(-1, keepdim=True)) * 1.0 for w in inner.maps(x, mask)]


@maps("^`x` brings its positions along: the maps know no order")
def positions_again(inner, x, mask):
    place = torch.arange(x.shape[1])[:, None] * torch.ones(x.shape[2])
    return inner.maps(x + place.sin(), mask)


@maps("^Only sentence 0 was changed, and the map of sentence 1 in layer 0 mov")
def normalised_over_the_batch(inner, x, mask):
    return inner.maps(x - x.mean(0, keepdim=True), mask)


@maps("^Batch 1, head 0, query 2, key 0 is NaN. All its scores are -∞")
def nan_for_nobody(inner, x, mask):
    nobody = ~mask.any(-1, keepdim=True)
    zero = torch.zeros(mask.shape).masked_fill(nobody, torch.nan)
    return [w + zero for w in inner.maps(x, mask)]


# Language model


KNOWS = "^The logits of position 0 move with token 1, which is in their future"


def model(says, *layers, **options):
    """Registers a kind of ``Layers``, or another module."""

    def register(kind):
        module = built(lambda: kind(*(make() for make in layers), **options))
        module.__name__ = kind.__name__
        wrong("language_model", says)(module)
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


@model(KNOWS + ".*off by one: a row sees the very token", num_layers=1)
class OffByOne(Masked):
    def mask(self, length):
        return torch.ones(length, length).tril(1).bool()


@model("^The logits of position 1 move with token 2, .* Does every layer get")
class LastRowOnly(Masked):
    """The future is hidden from position 0 only."""

    def mask(self, length):
        mask = torch.ones(length, length, dtype=torch.bool)
        mask[0, 1:] = False
        return mask


@model(KNOWS + ".*Every row sees all tokens")
class LeakingALittle(Masked):
    """A mask that is added, and not negative enough."""

    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits + 3e-3 * self.head(self.embedded(tokens)).mean(1)[:, None]


@model("^The logits of position 4 do not move with token 1, whatever it is.$")
class Trigram(Masked):
    """Sees three tokens."""

    def __init__(self):
        super().__init__(1)

    def mask(self, length):
        return causal(length).triu(-2)


@model(
    "^Tokens 0 and 1 changed places.* are positions added",
    lambda: Ours(1),
    positions=False,
)
class NoPositions(Layers):
    pass


@model(r"^It returned shape \(2, 11\).* Only the last position has logits")
class LastLogits(Masked):
    def forward(self, tokens):
        return super().forward(tokens)[:, -1]


@model(r"^It returned shape \(2, 11, 5\).* The vocabulary comes last")
class VocabularySecond(Masked):
    def forward(self, tokens):
        return super().forward(tokens).mT


@model(r"^It returned shape \(5, 2, 11\).* Are positions and batch swapped")
class BatchSecond(Masked):
    def forward(self, tokens):
        return super().forward(tokens).transpose(0, 1)


@model("^It returned 9 logits for each position: the ids go up to 9")
class TooFewWords(Masked):
    def forward(self, tokens):
        return super().forward(tokens)[..., 1:10]


@wrong("language_model")
def the_likeliest(tokens):
    return counted(tokens).argsort(-1)


@wrong("language_model")
def too_small_a_table(tokens):
    return nn.functional.embedding(tokens - 1, torch.eye(WORDS)[:8])


# Translation model


def translator(says, *args, **options):
    """Registers a kind of ``EncoderDecoder``."""

    def register(kind):
        module = built(lambda: kind(*(args or (2,)), **options))
        module.__name__ = kind.__name__
        wrong("translation_model", says)(module)
        return kind

    return register


@translator(
    "^The logits of position 0 do not move with source .* Only one token", 1
)
class OneSourceToken(EncoderDecoder):
    def masks(self, src, tgt):
        _, seen, _ = super().masks(src, tgt)
        itself = torch.eye(src.shape[1], dtype=torch.bool)
        return itself, seen, torch.arange(src.shape[1]) == 0


@translator(
    "^The logits of position 3 do not move with target .*its own token only"
)
class NoPast(EncoderDecoder):
    def masks(self, src, tgt):
        real, _, memory = super().masks(src, tgt)
        return real, torch.eye(tgt.shape[1], dtype=torch.bool), memory


@translator("^Target tokens 0 and 1 changed places, .* added to the target", 1)
class NoTargetPositions(EncoderDecoder):
    def target(self, tgt):
        return self.tgt(tgt)


@translator(
    "^Two tokens of padding .* Do the encoder and the attention to the mem"
)
class AnotherPad(EncoderDecoder):
    """Takes 1 for the padding."""

    def forward(self, src, tgt):
        src = torch.where(src == 0, 10, src)
        return super().forward(src, tgt)


@translator(
    "^Two tokens of padding .* Do the encoder and the attention to the mem"
)
class MemoryMaskUpsideDown(EncoderDecoder):
    def masks(self, src, tgt):
        real, seen, _ = super().masks(src, tgt)
        return real, seen, ~real | real.all(-1, keepdim=True)


@translator("^Three tokens of padding .* behind the target move earlier rows")
class CountsThePadding(EncoderDecoder):
    def forward(self, src, tgt):
        logits = super().forward(src, tgt)
        return logits * (1 + (tgt == 0).sum(1))[:, None, None]


@translator("^The first 1 target tokens alone have other logits than within 4")
class DividedByTheLength(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt) / (tgt != 0).sum(1)[:, None, None]


@translator(
    "^In a batch a pair has other logits than alone: .* along the batch"
)
class PositionsAlongTheBatch(EncoderDecoder):
    def __init__(self, num_layers):
        super().__init__(num_layers)
        self.places = nn.Embedding(16, WIDTH)

    def target(self, tgt):
        return self.tgt(tgt) + self.places.weight[: len(tgt), None]


@translator("^In a batch a pair has other logits than alone: do sentences see")
class AnotherSource(EncoderDecoder):
    """Each target gets the source of the pair before it."""

    def forward(self, src, tgt):
        return super().forward(src.roll(1, 0), tgt)


@translator("^Every row is positive and sums to 1: leave the softmax")
class Probabilities(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt).softmax(-1)


@translator(r"^It returned shape \(2, 5, 11\).* are source and target swapped")
class Swapped(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(tgt, src)


@translator(r"^It returned shape \(2, 11\).* Only the last position has logits")
class LastTargetLogits(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt)[:, -1]


@translator(r"^It returned shape \(2, 11, 4\).* The vocabulary comes last")
class VocabularyBeforeTarget(EncoderDecoder):
    def forward(self, src, tgt):
        return super().forward(src, tgt).mT


# Parameter count


def count(says):
    """Registers a function, whose message has to match ``says``."""
    return wrong("parameter_count", f"^For d_model 512, .*{says}")


def attention(d):
    return 4 * d * d + 4 * d


def feed_forward(d, ff):
    return 2 * d * ff + ff + d


@count("0 too few: expected 63,082,496 .* The LayerNorms are missing.$")
def no_norms(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total - num_layers * 10 * d_model


@count("A LayerNorm has a gain and a bias, not one of them.$")
def norms_without_bias(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total - num_layers * 5 * d_model


@count("The LayerNorms are missing. The biases of the feed-forward networks ar")
def matrices_only(d, ff, n, v):
    return v * d + n * (12 * d * d + 4 * d * ff)


@count("The embeddings are counted three times.* has no bias.$")
def untied(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total + 2 * vocab_size * d_model + vocab_size


@count("The embeddings are missing.$")
def no_tables(d_model, d_ff, num_layers, vocab_size):
    return with_biases(d_model, d_ff, num_layers, 0)


@count("a second attention, to the memory: it is missing.$")
def no_cross_attention(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total - num_layers * attention(d_model)


@count("The decoder is missing.$")
def encoder_only(d_model, d_ff, num_layers, vocab_size):
    layer = attention(d_model) + feed_forward(d_model, d_ff) + 4 * d_model
    return vocab_size * d_model + num_layers * layer


@count("The encoder is missing.$")
def decoder_only(d_model, d_ff, num_layers, vocab_size):
    layer = 2 * attention(d_model) + feed_forward(d_model, d_ff) + 6 * d_model
    return vocab_size * d_model + num_layers * layer


@count("The encoder is counted as a second decoder")
def two_decoders(d_model, d_ff, num_layers, vocab_size):
    one = decoder_only(d_model, d_ff, num_layers, 0)
    return vocab_size * d_model + 2 * one


@count("The feed-forward networks of one side are missing.$")
def one_network(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total - num_layers * feed_forward(d_model, d_ff)


@count("Attention has a fourth projection, of its output: it is missing.$")
def three_projections(d_model, d_ff, num_layers, vocab_size):
    total = with_biases(d_model, d_ff, num_layers, vocab_size)
    return total - num_layers * 3 * (d_model**2 + d_model)


@count("One layer on each side is counted")
def one_layer(d_model, d_ff, num_layers, vocab_size):
    return with_biases(d_model, d_ff, 1, vocab_size)


@count("12,345 too many: expected [0-9,]* with .* without.$")
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
