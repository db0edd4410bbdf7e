"""Encoders whose layers are right, and that are put together wrongly."""

import torch
import torch.nn.functional as F
from torch import nn

from companion.blocks import PARTS, EncoderLayer
from companion.masks import causal_mask
from companion.zoo.animal import animal

PADS = "In no layer does a word see the padding of its sentence"
TAKES_PART = "Every weight of a module takes part"


class Stack(nn.Module):
    """Two layers, one after the other."""

    parts = PARTS

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(12, 3, 29, parts=self.parts) for _ in "12"
        )

    def forward(self, x, mask=None):
        """What every position has come to mean."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


@animal(
    "encoder",
    seen="a common slip",
    symptom="a sentence means something else in every batch, though the maps "
    "of the first layer look right",
    contract=PADS,
    says="The mask counts, but not everywhere",
)
class MaskInTheFirstLayerOnly(Stack):
    """The loop hands the mask to the first layer, and to no other."""

    def forward(self, x, mask=None):
        first, second = self.layers
        return second(first(x, mask))


@animal(
    "encoder",
    seen="note 3, lines 118-119 and 223-235 (C-57)",
    symptom="words listen to padding only, and no word notices another",
    contract=PADS,
    says="The mask is upside down: True means may attend",
)
class MaskUpsideDown(Stack):
    """Takes True for hidden, and is given True for may attend."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else ~mask)


@animal(
    "encoder",
    seen="a common slip",
    symptom="right in batches of one, and wrong where lengths differ",
    contract=PADS,
    says="Every sentence gets the mask of the first",
)
class MaskOfTheFirstSentence(Stack):
    """Only the mask of sentence 0 is kept, and it broadcasts."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask[:1])


@animal(
    "encoder",
    seen="a common slip",
    symptom="it works with padding; under a causal mask the loss is too good",
    contract="In no layer does a position see what its own row of the mask "
    "hides",
    says="The mask counts, but not everywhere",
)
class TakesEveryMaskForPadding(Stack):
    """Keeps one row of the mask, as padding needs no more."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask[..., -1:, :])


@animal(
    "encoder",
    seen="a common slip",
    symptom="a tagger that does not know how the sentence goes on",
    contract="Without a mask every position sees every position",
    says="Is a mask at work that nobody gave",
)
class CausalUnlessTold(Stack):
    """The layers come from a decoder, whose mask is the default."""

    def forward(self, x, mask=None):
        mask = causal_mask(x.shape[1]) if mask is None else mask
        return super().forward(x, mask)


@animal(
    "encoder",
    seen="a common slip",
    symptom="from a few layers on all positions are alike, and nothing learns",
    contract="A position keeps its own vector, whomever it looks at",
    says="is the residual connection around it missing",
)
class ForgetsItself(Stack):
    """What attention says replaces what a position was."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            said = layer.self_attention(x, mask)
            x = layer.attention_residual.norm(said)
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return x


@animal(
    "encoder",
    seen="a common slip",
    symptom="as many weights as planned, and the loss of half as many layers",
    contract=TAKES_PART,
    says="takes no part: no gradient reaches it",
)
class TheSameLayerTwice(Stack):
    """The loop counts the layers, and calls number 0 each time."""

    def forward(self, x, mask=None):
        for _ in self.layers:
            x = self.layers[0](x, mask)
        return x


@animal(
    "encoder",
    seen="note 3, line 319, has dropout after the residual too (C-62)",
    symptom="the same sentence means something else each time, in use too",
    contract="The same inputs give the same output",
    says="dropout is on",
)
class DropoutOnTheStream(Stack):
    """Drops from the stream itself, and goes on when training is over."""

    def forward(self, x, mask=None):
        return F.dropout(super().forward(x, mask), 0.1, training=True)


@animal(
    "encoder",
    seen="a common slip",
    symptom="it trains; positions count double, and words less",
    contract="Reordering the positions reorders the rows",
    says="`x` brings its positions along",
)
class AddsPositionsAgain(Stack):
    """Positions were added with the embeddings, and are again here."""

    def forward(self, x, mask=None):
        place = torch.arange(x.shape[1])[:, None] * torch.ones(x.shape[2])
        return super().forward(x + place.sin(), mask)


@animal(
    "encoder",
    seen="note 2, lines 229-231 (C-40)",
    symptom="the loss is NaN at the first batch that has an empty sentence",
    contract="A sentence of nothing but padding is finite",
    says="All its scores are -∞",
)
class InfinityForWhatIsHidden(Stack):
    """Hides by -∞, and a row that sees nobody is 0/0."""

    def forward(self, x, mask=None):
        hidden = torch.zeros(())
        if mask is not None:
            hidden = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        for layer in self.layers:
            attend = layer.self_attention
            q, k = attend.queries(x), attend.keys(x)
            weights = (q @ k.mT / q.shape[-1] ** 0.5 + hidden).softmax(-1)
            said = (weights @ attend.values(x)).transpose(1, 2).flatten(2)
            x = layer.attention_residual.norm(x + attend.out_proj(said))
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return x
