"""The weights of the paper's Transformer, counted wrongly.

Each of these has counted another model, and the number looks as good.
"""

from torch import nn

from companion.zoo.animal import animal

BASE = "It counts the base model of the paper"


def counted(d, ff, n, v, *, tables=1, heads=1, cross=True, biases=True):
    """Tables, and the layers of both sides, from parts that may be wrong."""
    attention = 4 * (heads * d * d + d)
    network = 2 * d * ff + (ff + d) * biases
    norm = 2 * d
    encoder = attention + network + 2 * norm
    decoder = encoder + (attention + norm if cross else 0)
    return tables * v * d + n * (encoder + decoder)


@animal(
    "parameter_count",
    seen="a common slip: a tied table is one tensor with two names",
    symptom="19 million weights more than the file has",
    contract=BASE,
    says="The embeddings are counted twice",
)
def tied_table_counted_twice(d_model, d_ff, num_layers, vocab_size):
    """The table of the embeddings, and the output layer that it is."""
    return counted(d_model, d_ff, num_layers, vocab_size, tables=2)


@animal(
    "parameter_count",
    seen="a common slip",
    symptom="38 million weights more than the paper says",
    contract=BASE,
    says="The embeddings are counted three times",
)
def nothing_is_tied(d_model, d_ff, num_layers, vocab_size):
    """A table for the source, one for the target, and one for the output."""
    return counted(d_model, d_ff, num_layers, vocab_size, tables=3)


@animal(
    "parameter_count",
    seen="a common slip",
    symptom="30,720 short, and nobody knows where",
    contract=BASE,
    says="The biases of the feed-forward networks are missing",
)
def matrices_without_biases(d_model, d_ff, num_layers, vocab_size):
    """The networks' two matrices, and not what is added to them."""
    return counted(d_model, d_ff, num_layers, vocab_size, biases=False)


@animal(
    "parameter_count",
    seen="a common slip",
    symptom="6.3 million weights short",
    contract=BASE,
    says="to the memory: it is missing with its LayerNorm",
)
def decoder_is_an_encoder(d_model, d_ff, num_layers, vocab_size):
    """Twelve layers of one kind: those of the decoder look at no memory."""
    return counted(d_model, d_ff, num_layers, vocab_size, cross=False)


@animal(
    "parameter_count",
    seen="note 1, lines 175-176, has heads add capacity (C-21)",
    symptom="three times the weights, and more for more heads",
    contract=BASE,
    says="The projections are multiplied by 8 heads, which share the width",
)
def a_full_projection_for_each_head(d_model, d_ff, num_layers, vocab_size):
    """Each head is given projections of the whole width."""
    return counted(d_model, d_ff, num_layers, vocab_size, heads=8)


@animal(
    "parameter_count",
    seen="a common slip",
    symptom="2,048 weights too many, in a model that should be the paper's",
    contract=BASE,
    says="A norm at the end of encoder and decoder belongs to pre-LN",
)
def pytorchs_whole_transformer(d_model, d_ff, num_layers, vocab_size):
    """Asks `nn.Transformer`, which ends both stacks with one more norm."""
    layers = nn.Transformer(
        d_model, 1, num_layers, num_layers, d_ff, device="meta"
    )
    total = sum(p.numel() for p in layers.parameters())
    return total + vocab_size * d_model


@animal(
    "parameter_count",
    seen="a common slip",
    symptom="37,000 weights too many: one for each word",
    contract=BASE,
    says="The output layer is tied to the embeddings and has no bias",
)
def output_with_a_bias(d_model, d_ff, num_layers, vocab_size):
    """The output layer is an `nn.Linear`, with all that it brings along."""
    return counted(d_model, d_ff, num_layers, vocab_size) + vocab_size


@animal(
    "parameter_count",
    seen="a common slip",
    symptom="right for the base model, and wrong for every other",
    contract="In a function one more unit of d_ff costs its weights and bias",
    says="one more unit in every feed-forward network costs",
)
def always_four_times_as_wide(d_model, d_ff, num_layers, vocab_size):
    """Takes 4 · d_model for d_ff, whatever d_ff is."""
    return counted(d_model, 4 * d_model, num_layers, vocab_size)


@animal(
    "parameter_count",
    seen="note 1, lines 168 and 186-196, projects, and then again (C-22)",
    symptom="14 million weights that change no answer",
    contract=BASE,
    says="Queries, keys and values are projected twice",
)
def projected_twice(d_model, d_ff, num_layers, vocab_size):
    """One projection for all heads, and behind it one for each head."""
    again = 3 * num_layers * 3 * (d_model * d_model + d_model)
    return counted(d_model, d_ff, num_layers, vocab_size) + again


@animal(
    "parameter_count",
    seen="note 4, lines 152 and 186, has three parts in a layer (C-91)",
    symptom="1.6 million weights more than the paper's model has",
    contract=BASE,
    says="A layer of the encoder has a dense layer too many",
)
def a_dense_layer_besides(d_model, d_ff, num_layers, vocab_size):
    """A layer of attention, of a feed-forward network, and a dense one."""
    dense = num_layers * (d_model * d_model + d_model)
    return counted(d_model, d_ff, num_layers, vocab_size) + dense


@animal(
    "parameter_count",
    seen="note 2, lines 372-400, has no decoder (T-12)",
    symptom="25 million weights short, and nothing that could translate",
    contract=BASE,
    says="The decoder is missing",
)
def an_encoder_called_transformer(d_model, d_ff, num_layers, vocab_size):
    """The table and the layers of the encoder."""
    pair = counted(d_model, d_ff, 1, 0, cross=False)
    return vocab_size * d_model + num_layers * pair // 2
