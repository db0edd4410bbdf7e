"""The weights of the paper's Transformer counted wrongly."""

import torch
from contracts.odd import wrong
from contracts.right.parameter_count import with_biases


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
