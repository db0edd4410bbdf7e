"""The block: feed-forward, residual connection, layer normalisation.

norm          each vector at mean 0 and variance 1
dropout       features at 0, by a mask that is drawn fast
feed_forward  the same network at every position
residual      what a sub-layer says is added to what it was told
layer         the encoder's layer, and the parts that a layer is made of
"""

from companion.blocks.dropout import Dropout
from companion.blocks.feed_forward import FeedForward
from companion.blocks.layer import PARTS, EncoderLayer, Parts
from companion.blocks.norm import LayerNorm, layer_norm
from companion.blocks.residual import Residual

__all__ = [
    "PARTS",
    "Dropout",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "Parts",
    "Residual",
    "layer_norm",
]
