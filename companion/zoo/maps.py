"""Maps of an encoder, taken at the wrong moment or with the wrong mask."""

from torch import nn

from companion.multihead import MultiHeadAttention
from companion.zoo.animal import animal


class Maps(nn.Module):
    """Two layers of attention, and who looks at whom in each."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(12, 3) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(2))

    def map(self, layer, x, mask):
        """The weights of a layer that reads ``x``."""
        return self.layers[layer].weights(x, mask)

    def forward(self, x, mask):
        """A list of weights (batch, head, query, key)."""
        found = []
        for i, (layer, norm) in enumerate(
            zip(self.layers, self.norms, strict=True)
        ):
            found.append(self.map(i, x, mask))
            x = norm(x + layer(x, mask))
        return found


@animal(
    "attention_maps",
    seen="a common slip",
    symptom="the loss is too good: what layer 0 hides, layer 1 reads",
    contract="What the mask hides has weight 0 in every layer",
    says="Layer 0 hides it: does every layer get the mask",
)
class MaskInTheFirstLayerOnly(Maps):
    """The mask is handed to the first layer, and to no other."""

    def map(self, layer, x, mask):
        return super().map(layer, x, None if layer else mask)


@animal(
    "attention_maps",
    seen="a common slip",
    symptom="drawn maps look right, and rows are paler where more is hidden",
    contract="Every row sums to 1",
    says="Are they masked, or dropped out, after the softmax",
)
class MaskedForTheDrawing(Maps):
    """The weights are wiped out when they are drawn, after the softmax."""

    def map(self, layer, x, mask):
        return super().map(layer, x, None) * mask


@animal(
    "attention_maps",
    seen="a common slip",
    symptom="a figure in which a word seems to look at itself only, or nothing",
    contract="A layer looks at what the layer below has made",
    says="is a layer asked for its map after it has run",
)
class AskedAfterItHasRun(Maps):
    """A layer is asked for its map with what it has returned."""

    def forward(self, x, mask):
        found = []
        for i, (layer, norm) in enumerate(
            zip(self.layers, self.norms, strict=True)
        ):
            x = norm(x + layer(x, mask))
            found.append(self.map(i, x, mask))
        return found


@animal(
    "attention_maps",
    seen="a common slip",
    symptom="all layers draw much the same picture",
    contract="A layer looks at what the layer below has made",
    says="looks at the same vectors as layer 0",
)
class EveryLayerReadsTheInput(Maps):
    """Each layer is asked with the input, and none with the layer below."""

    def forward(self, x, mask):
        return [self.map(i, x, mask) for i in range(len(self.layers))]
