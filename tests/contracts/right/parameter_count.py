"""Counting the weights of the paper's Transformer, right in several ways."""

from contracts.right import right
from torch import nn


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
