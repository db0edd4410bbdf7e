"""Encoders and their maps got wrong."""

import torch
from contracts.odd import wrong
from contracts.right import built
from contracts.right.attention import masked_by_lowest
from contracts.right.encoder import PostNorm

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
