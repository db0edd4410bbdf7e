"""The decoder, a position at a time, with what it need not compute again.

A new position asks all earlier ones. Their keys and values never change: under
a causal mask, nothing that comes later can reach them. So they are stored. The
queries are not: each asks once, and is never asked.

This is the version to read. ``CachedDecoder`` computes the same, faster.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from companion.attention import scaled_dot_product_attention
from companion.decoding.checks import require_model
from companion.decoding.modes import evaluating
from companion.masks import combine_masks
from companion.multihead import MultiHeadAttention, merge_heads
from companion.positions import sinusoids
from companion.transformer import DecoderLayer, Transformer

KeysAndValues = tuple[
    Float[Tensor, "batch kv_head key head_dim"],
    Float[Tensor, "batch kv_head key head_dim"],
]


class Past:
    """What an attention has been shown so far, as keys and values."""

    def __init__(self, attention: MultiHeadAttention):
        self.attention, self.stored = attention, None

    def look_back(
        self,
        x: Float[Tensor, "batch 1 d_model"],
        mask: Bool[Tensor, "batch 1 1 key"],
    ) -> Float[Tensor, "batch 1 d_model"]:
        """What the newest position gathers; its key and value are stored."""
        place = 0 if self.stored is None else self.stored[0].shape[2]
        new = keys_and_values(self.attention, x, place)
        if self.stored is not None:
            pairs = zip(self.stored, new, strict=True)
            new = tuple(torch.cat(pair, dim=2) for pair in pairs)
        self.stored = new
        return attend(self.attention, x, new, mask, place)


class CachedLayer:
    """A decoder layer that remembers the keys and values it has made."""

    def __init__(
        self,
        layer: DecoderLayer,
        memory: Float[Tensor, "batch src d_model"],
    ):
        self.layer = layer
        # The memory stays as it is, so these are made once.
        self.cross = keys_and_values(layer.cross_attention, memory)
        self.past = Past(layer.self_attention)

    def __call__(
        self,
        x: Float[Tensor, "batch 1 d_model"],
        mask: Bool[Tensor, "batch 1 1 key"],
        memory_mask: Bool[Tensor, "batch 1 1 src"],
    ) -> Float[Tensor, "batch 1 d_model"]:
        """The newest position after this layer; it is stored on the way."""
        layer = self.layer
        x = layer.attention_residual(x, lambda y: self.past.look_back(y, mask))
        cross = layer.cross_attention
        x = layer.cross_residual(
            x, lambda y: attend(cross, y, self.cross, memory_mask)
        )
        return layer.feed_forward_residual(x, layer.feed_forward)


def keys_and_values(
    attention: MultiHeadAttention,
    x: Float[Tensor, "batch key d_model"],
    start: int = 0,
) -> KeysAndValues:
    """What each position of ``x`` is asked by, and what it answers.

    ``start`` is the place of the first, for an attention that counts places.
    """
    return attention.keys(x, start), attention.values(x)


def attend(
    attention: MultiHeadAttention,
    x: Float[Tensor, "batch query d_model"],
    stored: KeysAndValues,
    mask: Bool[Tensor, "batch 1 1 key"],
    start: int = 0,
) -> Float[Tensor, "batch query d_model"]:
    """What ``x`` gathers from keys and values that are there already."""
    q = attention.queries(x, start)
    # Neighbouring heads may share what is stored (grouped-query attention).
    group = q.shape[1] // stored[0].shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in stored)
    gathered = scaled_dot_product_attention(q, k, v, mask)
    return attention.out_proj(merge_heads(gathered))


@torch.no_grad()
def cached_decode(
    model: Transformer,
    src: Int[Tensor, "batch src"],
    tokens: Int[Tensor, "batch tgt"],
) -> Float[Tensor, "batch tgt vocab"]:
    """The logits of ``model(src, tokens)``, one position after another.

    The encoder runs once. A step computes one position, and no position is
    computed twice. Dropout is off, whatever the mode of the model.

    Raises:
        TypeError, ValueError: as ``Transformer.forward``; ``model`` is no
            ``Transformer``.
    """
    require_model(model, Transformer)
    pad = model.config.pad
    seen, real = combine_masks(src, tokens, pad)[1:]
    with evaluating(model):
        memory = model.encode(src, real)
        layers = [CachedLayer(layer, memory) for layer in model.decoder.layers]
        logits = []
        for i in range(tokens.shape[1]):
            x = model.tgt_embedding(tokens[:, i : i + 1])
            # Its own place in the sentence: i, though it comes alone.
            place = torch.tensor([i], device=x.device)
            x = x + sinusoids(place, x.shape[-1], dtype=x.dtype)
            for layer in layers:
                x = layer(x, seen[:, :, i : i + 1, : i + 1], real)
            logits.append(model.logits(model.decoder.norm(x)))
    return torch.cat(logits, dim=1)
