"""Encoder layers that got the same weights, and compute something else."""

import torch
import torch.nn.functional as F

from companion.zoo.animal import animal

AGREES = "With the same weights it agrees with PyTorch's layer"


def normed(x, weights, place):
    """Layer normalisation, with the gain and the bias of one place."""
    gain, bias = weights[f"gain_{place}"], weights[f"bias_{place}"]
    return F.layer_norm(x, x.shape[-1:], gain, bias)


def projected(x, weights, num_heads):
    """Queries, keys and values, cut into heads."""
    rows = (F.linear(x, weights[f"w_{name}"]) for name in "qkv")
    return [y.unflatten(-1, (num_heads, -1)).transpose(1, 2) for y in rows]


def gathered(x, weights, num_heads, mask, *, scale=None):
    """What the heads found, side by side, before W_O."""
    q, k, v = projected(x, weights, num_heads)
    found = F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    return found.transpose(1, 2).flatten(2)


def network(x, weights):
    """The feed-forward network."""
    inner = F.linear(x, weights["w_1"], weights["b_1"]).relu()
    return F.linear(inner, weights["w_2"], weights["b_2"])


def finished(x, said, weights):
    """The layer from what attention said on: two sums, two norms."""
    x = normed(x + F.linear(said, weights["w_o"]), weights, 1)
    return normed(x + network(x, weights), weights, 2)


@animal(
    "encoder_layer",
    seen="note 2, lines 364-368 (T-10, T-11)",
    symptom="it trains, a little worse, and 527,872 of its parameters never "
    "get a gradient",
    contract="Every weight that it is given changes the output",
    says="Is the feed-forward network called",
)
def repaired_and_lost_its_network(x, weights, num_heads, mask=None):
    """It raised a NameError at its last line; whoever repaired it returned the
    variable before, and the feed-forward network is never called."""
    said = gathered(x, weights, num_heads, mask)
    return normed(x + F.linear(said, weights["w_o"]), weights, 1)


@animal(
    "encoder_layer",
    seen="a common slip",
    symptom="the loss falls, and no head can use what another one found",
    contract="Every weight that it is given changes the output",
    says="`w_o` changes nothing",
)
def joined_without_the_last_matrix(x, weights, num_heads, mask=None):
    """The heads are laid side by side, and that already has the right width."""
    said = gathered(x, weights, num_heads, mask)
    x = normed(x + said, weights, 1)
    return normed(x + network(x, weights), weights, 2)


@animal(
    "encoder_layer",
    seen="a common slip",
    symptom="with wide heads each row of weights is nearly all on one key, and "
    "training stalls",
    contract=AGREES,
    says="The scores are not divided by √d_k",
)
def unscaled_scores(x, weights, num_heads, mask=None):
    """The scores go into the softmax as they are."""
    said = gathered(x, weights, num_heads, mask, scale=1.0)
    return finished(x, said, weights)


@animal(
    "encoder_layer",
    seen="a common slip",
    symptom="attention stays flatter the more heads there are",
    contract=AGREES,
    says="The scores are divided by √d_model",
)
def scaled_by_the_whole_width(x, weights, num_heads, mask=None):
    """Divides by √d_model, though a head compares fewer numbers."""
    scale = x.shape[-1] ** -0.5
    said = gathered(x, weights, num_heads, mask, scale=scale)
    return finished(x, said, weights)


@animal(
    "encoder_layer",
    seen="note 3, whose formula (line 200) is post-LN, its code pre-LN (C-61)",
    symptom="trained weights of another library load without complaint, and "
    "the answers are noise",
    contract=AGREES,
    says="The norms come first",
)
def norms_in_the_other_place(x, weights, num_heads, mask=None):
    """Pre-LN, with the weights of a post-LN model."""
    said = gathered(normed(x, weights, 1), weights, num_heads, mask)
    x = x + F.linear(said, weights["w_o"])
    return x + network(normed(x, weights, 2), weights)


@animal(
    "encoder_layer",
    seen="a common slip",
    symptom="the loss ends a little higher, whatever is tuned",
    contract=AGREES,
    says="The second residual connection is missing",
)
def one_residual_is_enough(x, weights, num_heads, mask=None):
    """The network's result replaces what came in, instead of adding to it."""
    said = gathered(x, weights, num_heads, mask)
    x = normed(x + F.linear(said, weights["w_o"]), weights, 1)
    return normed(network(x, weights), weights, 2)


@animal(
    "encoder_layer",
    seen="a common slip",
    symptom="the loss is too low to be true: rows find what is in their future",
    contract=AGREES,
    says="The mask is upside down",
)
def mask_of_the_other_library(x, weights, num_heads, mask=None):
    """Takes True for hidden, as some modules do."""
    q, k, v = projected(x, weights, num_heads)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, torch.finfo(x.dtype).min)
    said = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return finished(x, said, weights)
