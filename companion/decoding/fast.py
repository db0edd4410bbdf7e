"""The decoder, a position at a time, for many sentences and as fast as it goes.

Words for axes, the same in the book, the code and the tests:
    sentence  sources that are being translated
    beam      rows that each sentence has, side by side
    row       sentence · beam, the beams of a sentence next to each other
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks import Residual
from companion.decoding.cache import keys_and_values
from companion.decoding.checks import require_model
from companion.masks import padding_mask
from companion.masks.checks import require_tokens
from companion.positions import sinusoidal
from companion.transformer import DecoderLayer, Transformer

FIRST_LENGTH = 64


class CachedDecoder:
    """Writes rows of tokens, and remembers what each position was asked by.

    The same numbers as ``cached_decode`` for tokens that are not padding,
    where what costs time in small steps has been left out: no tensor is
    checked twice, no key is copied when one is added, queries, keys and values
    are one product, and a norm is one call. Dropout is off.

    Raises:
        TypeError, ValueError: as ``Transformer.encode``; ``model`` is no
            ``Transformer``.
    """

    def __init__(
        self,
        model: Transformer,
        src: Int[Tensor, "sentence src"],
        beam: int = 1,
    ):
        require_model(model, Transformer)
        require_tokens(src, "src")
        real = padding_mask(src, model.config.pad)
        memory = model.encode(src, real)
        rows = len(src) * beam
        self.layers = [
            FastLayer(layer, memory, real, rows)
            for layer in model.decoder.layers
        ]
        self.norm = model.decoder.norm
        self.table = model.tgt_embedding.weight
        # A product of few rows takes less with a table that lies this way.
        self.table_mt = self.table.mT.contiguous()
        self.length, self.places = 0, self.table[:0]

    def step(self, tokens: Int[Tensor, " row"]) -> Float[Tensor, "row vocab"]:
        """Reads one token more in each row; the logits of the next one."""
        if self.length == len(self.places):
            self._grow()
        table, d_model = self.table, self.table.shape[1]
        place = self.places[self.length]
        words = F.embedding(tokens, table)
        x = torch.add(place, words, alpha=math.sqrt(d_model))
        self.length += 1
        for layer in self.layers:
            x = layer.step(x, self.length)
        return _norm(x, self.norm) @ self.table_mt

    def reorder(self, rows: Int[Tensor, " row"]) -> None:
        """Row i goes on from what row ``rows[i]`` of its sentence has said."""
        for layer in self.layers:
            layer.reorder(rows, self.length)

    def keep(
        self, sentences: Int[Tensor, " kept"], rows: Int[Tensor, " kept_row"]
    ) -> None:
        """Forgets all other sentences; ``rows`` are those of the kept ones."""
        for layer in self.layers:
            layer.keep(sentences, rows)

    def _grow(self) -> None:
        """Room for twice as many positions: copies few times, wastes half."""
        length = max(FIRST_LENGTH, 2 * len(self.places))
        like = {"device": self.table.device, "dtype": self.table.dtype}
        self.places = sinusoidal(length, self.table.shape[1], **like)
        for layer in self.layers:
            layer.grow(length)


class FastLayer:
    """A ``CachedLayer`` without ceremony; a head of a row is a row of its own.

    In self-attention the scale of the scores, 1 / √head_dim, is multiplied
    into the weights of the queries.
    """

    def __init__(
        self, layer: DecoderLayer, memory: Tensor, real: Tensor, rows: int
    ):
        own, cross = layer.self_attention, layer.cross_attention
        self.layer, self.heads = layer, own.num_heads
        width = own.q_proj.out_features
        self.scale = (width // self.heads) ** -0.5
        # One product of three times the width takes less than three products.
        self.weight, self.bias = (
            torch.cat([q * self.scale, k, v])
            for q, k, v in zip(
                *(p.parameters() for p in (own.q_proj, own.k_proj, own.v_proj)),
                strict=True,
            )
        )
        shape = 2, rows * self.heads, 0, width // self.heads
        self.stored = memory.new_empty(shape)
        self.spare = self.stored[:0]
        self.memory = torch.stack(keys_and_values(cross, memory)).flatten(1, 2)
        # Added to the scores: 0 for a token, and for padding -inf.
        hidden = torch.zeros_like(real, dtype=memory.dtype)
        hidden = hidden.masked_fill_(~real, -torch.inf)
        self.hidden = hidden[:, 0].repeat_interleave(self.heads, dim=0)

    def step(self, x: Tensor, length: int) -> Tensor:
        """The newest position of each row after this layer."""
        layer = self.layer
        x = _residual(layer.attention_residual, x, self._look_back, length)
        x = _residual(layer.cross_residual, x, self._look_at_source)
        return _residual(layer.feed_forward_residual, x, self._think)

    def grow(self, length: int) -> None:
        """The same keys and values, with room for those of more positions."""
        before = self.stored
        stored, rows, positions, width = before.shape
        self.stored = before.new_empty(stored, rows, length, width)
        self.stored[:, :, :positions] = before

    def reorder(self, rows: Tensor, length: int) -> None:
        """As in ``CachedDecoder``."""
        # Two stores by turns: fresh memory costs more than what is copied.
        if self.spare.shape != self.stored.shape:
            self.spare = torch.empty_like(self.stored)
        before, after = (x[:, :, :length] for x in (self.stored, self.spare))
        torch.index_select(before, 1, self._with_heads(rows), out=after)
        self.stored, self.spare = self.spare, self.stored

    def keep(self, sentences: Tensor, rows: Tensor) -> None:
        """As in ``CachedDecoder``."""
        self.stored = self.stored.index_select(1, self._with_heads(rows))
        kept = self._with_heads(sentences)
        self.memory = self.memory.index_select(1, kept)
        self.hidden = self.hidden.index_select(0, kept)

    def _with_heads(self, rows: Tensor) -> Tensor:
        heads = torch.arange(self.heads, device=rows.device)
        return (rows.unsqueeze(1) * self.heads + heads).flatten()

    def _look_back(self, x: Tensor, length: int) -> Tensor:
        new = F.linear(x, self.weight, self.bias)
        shape = len(x), 3, self.heads, -1
        q, k, v = new.view(shape).unbind(1)
        past = self.stored[:, :, :length]
        past[0, :, -1] = k.reshape(past[0, :, -1].shape)
        past[1, :, -1] = v.reshape(past[1, :, -1].shape)
        # All that is stored lies in the past, so there is no mask. With one
        # query a row, two products take less than the fused attention.
        weights = torch.bmm(q.reshape(len(past[0]), 1, -1), past[0].mT)
        gathered = torch.bmm(weights.softmax(-1), past[1])
        out_proj = self.layer.self_attention.out_proj
        return _linear(gathered.view(x.shape), out_proj)

    def _look_at_source(self, x: Tensor) -> Tensor:
        cross, (keys, values) = self.layer.cross_attention, self.memory
        # The beams of a sentence ask the same memory: they are its queries,
        # and the memory need not be copied for each of them.
        q = _linear(x, cross.q_proj)
        q = q.view(len(keys) // self.heads, -1, self.heads, keys.shape[-1])
        scores = torch.baddbmm(
            self.hidden,
            q.transpose(1, 2).flatten(0, 1),
            keys.mT,
            alpha=self.scale,
        )
        gathered = torch.bmm(scores.softmax(-1), values)
        merged = gathered.unflatten(0, (-1, self.heads)).transpose(1, 2)
        return _linear(merged.reshape(x.shape), cross.out_proj)

    def _think(self, x: Tensor) -> Tensor:
        network = self.layer.feed_forward
        return _linear(_linear(x, network.up_proj).relu_(), network.down_proj)


def _linear(x: Tensor, linear: nn.Linear) -> Tensor:
    return F.linear(x, linear.weight, linear.bias)


def _norm(x: Tensor, norm: nn.Module) -> Tensor:
    if isinstance(norm, nn.Identity):
        return x
    return F.layer_norm(x, x.shape[-1:], norm.gain, norm.bias, norm.eps)


def _residual(residual: Residual, x: Tensor, sublayer, *length: int) -> Tensor:
    if residual.norm_first:
        return x + sublayer(_norm(x, residual.norm), *length)
    return _norm(x + sublayer(x, *length), residual.norm)
