"""Tokens in, logits out.

Words for axes, the same in the book, the code and the tests:
    src    tokens of the source, tgt those of the target
    vocab  tokens that the target language has
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks import Dropout
from companion.checks import (
    check_device,
    check_ids,
    check_int,
    check_kind,
    check_mask_fits,
    check_positions,
    check_states,
    check_tokens,
    check_vectors,
    checked_by,
    checking,
)
from companion.masks import Masks, combine_masks
from companion.masks.build import check_pairs
from companion.multihead import Causal, Mask
from companion.positions import SinusoidalPositions, TokenEmbedding
from companion.transformer.config import TransformerConfig
from companion.transformer.layers import Decoder, Encoder, LayerCache

__all__ = [
    "EncoderDecoder",
    "Maps",
    "Transformer",
    "shift_right",
    "start_weights",
]


class Maps(NamedTuple):
    """Hold attention maps, one a layer, for the places that ``Masks`` has."""

    src: list[Float[Tensor, "batch head src src"]]
    tgt: list[Float[Tensor, "batch head tgt tgt"]]
    cross: list[Float[Tensor, "batch head tgt src"]]


class EncoderDecoder(nn.Module):
    """Share what all models have that read one sequence and write another.

    A model of this kind has a ``config`` with a ``pad``, an ``encoder`` and a
    ``decoder``, a ``tgt_embedding`` whose table also scores the tokens,
    ``_embed``, which makes what the first layer gets, and ``_check_tokens``.

    Example:
        >>> from companion.transformer import TransformerConfig
        >>> sizes = {"src_vocab_size": 7, "tgt_vocab_size": 11}
        >>> model = Transformer(TransformerConfig.tiny(**sizes))
        >>> isinstance(model, EncoderDecoder)
        True
    """

    def _check_all(
        self, src: Tensor, tgt: Tensor, masks: Masks | None = None
    ) -> None:
        if masks is None:
            check_pairs(src, tgt, self.config.pad)
        elif not isinstance(masks, Masks):
            raise TypeError(
                "masks: expected Masks(src, tgt, cross), as combine_masks "
                f"makes them, got {type(masks).__name__}"
            )
        self._check_tokens("src", src)
        self._check_tokens("tgt", tgt)
        if masks is not None:
            own, target = src.shape[1], tgt.shape[1]
            self._check_mask(masks.src, len(src), own, own)
            self._check_mask(masks.tgt, len(tgt), target, target)
            self._check_mask(masks.cross, len(tgt), target, own)

    @checked_by("_check_all")
    def forward(
        self,
        src: Int[Tensor, "batch src"],
        tgt: Int[Tensor, "batch tgt"],
        masks: Masks | None = None,
    ) -> Float[Tensor, "batch tgt vocab"]:
        """Score, at each target position, the token that comes next.

        Args:
            src: Ids of the source, padded at the end.
            tgt: What the decoder reads: the target shifted right.
            masks: Those that ``combine_masks`` makes unless given: no padding,
                no future.

        Returns:
            The logits.

        Raises:
            TypeError: tokens are no integers, or ``masks`` are not ``Masks``.
            ValueError: an id is outside its vocabulary, or a shape does not
                fit.
        """
        if masks is None:
            masks = combine_masks(src, tgt, self.config.pad)
        memory = self.encode(src, masks.src)
        return self.logits(self.decode(tgt, memory, masks.tgt, masks.cross))

    def _check_source(
        self, src: Tensor, mask: Mask, real: Tensor | None = None
    ) -> None:
        self._check_tokens("src", src)
        self._check_mask(mask, len(src), src.shape[1], src.shape[1])
        check_positions("real", real, src.numel())

    @checked_by("_check_source")
    def encode(
        self,
        src: Int[Tensor, "batch src"],
        mask: Mask,
        real: Int[Tensor, " real"] | None = None,
    ) -> Float[Tensor, "batch src d_model"]:
        """Compute the memory of a source, once for all target positions.

        Args:
            src: Ids of the source.
            mask: Which source positions may be looked at.
            real: As in ``EncoderLayer``.

        Returns:
            A vector for each position of the source.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        return self.encoder(self._embed("src", src), mask, real=real)

    def _check_target(
        self,
        tgt: Tensor,
        memory: Tensor,
        mask: Mask,
        memory_mask: Mask,
        caches: list[LayerCache] | None = None,
        real: Tensor | None = None,
    ) -> None:
        self._check_tokens("tgt", tgt)
        axes = {"batch": len(tgt), "src": None, "d_model": self.config.d_model}
        check_device("memory", memory, self.tgt_embedding.weight)
        check_vectors("memory", memory, memory, **axes)
        new = tgt.shape[1] - _length(caches)
        self._check_mask(mask, len(tgt), new, tgt.shape[1])
        self._check_mask(memory_mask, len(tgt), new, memory.shape[1])
        check_positions("real", real, len(tgt) * new)

    @checked_by("_check_target")
    def decode(
        self,
        tgt: Int[Tensor, "row tgt"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask,
        memory_mask: Mask,
        caches: list[LayerCache] | None = None,
        real: Int[Tensor, " real"] | None = None,
    ) -> Float[Tensor, "row new d_model"]:
        """Compute what ``logits`` turns into scores.

        Args:
            tgt: What the decoder reads.
            memory: What ``encode`` returned.
            mask: Which target positions may be looked at.
            memory_mask: Which source positions may be looked at.
            caches: What ``decoder.new_caches`` made, and earlier calls filled;
                only those positions of ``tgt`` are computed that are new.
            real: As in ``EncoderLayer``.

        Returns:
            A vector for each target position that is new.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        start = _length(caches)
        x = self._embed("tgt", tgt[:, start:], start)
        return self.decoder(x, memory, mask, memory_mask, caches, real)

    def logits(
        self,
        x: Float[Tensor, "*axes d_model"],
        table_mt: Float[Tensor, "d_model vocab"] | None = None,
    ) -> Float[Tensor, "*axes vocab"]:
        """Score each vector against each row of the target's table.

        Args:
            x: What ``decode`` returned.
            table_mt: The table, laid out by columns, if there is such a copy: a
                product of few rows takes less with it.

        Returns:
            A logit for each token.

        Raises:
            TypeError, ValueError: ``x`` is no output of ``decode``.
        """
        table = self.tgt_embedding.weight
        if checking():
            check_states("x", x, table, self.config.d_model)
        return x @ table_mt if table_mt is not None else F.linear(x, table)

    @checked_by("_check_all")
    def maps(
        self,
        src: Int[Tensor, "batch src"],
        tgt: Int[Tensor, "batch tgt"],
        masks: Masks | None = None,
    ) -> Maps:
        """Compute who looks at whom, everywhere; arguments as ``forward``.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        if masks is None:
            masks = combine_masks(src, tgt, self.config.pad)
        x, y = self._embed("src", src), self._embed("tgt", tgt)
        memory = self.encoder(x, masks.src)
        own, cross = self.decoder.maps(y, memory, masks.tgt, masks.cross)
        return Maps(src=self.encoder.maps(x, masks.src), tgt=own, cross=cross)

    def _check_mask(self, mask: Mask, *shape: int) -> None:
        if mask is None or isinstance(mask, Causal):
            return
        batch, query, key = shape
        check_mask_fits(mask, (batch, self.config.num_heads, query, key))
        check_device("mask", mask, self.tgt_embedding.weight)


def _length(caches: list[LayerCache] | None) -> int:
    """How many target positions the caches hold."""
    return caches[0].own.length if caches else 0


class Transformer(EncoderDecoder):
    """Read a source and score each next token of a target.

    The encoder-decoder of Vaswani et al. (2017), figure 1. The table that
    embeds target tokens also scores them at the output, and with
    ``shared_vocab`` embeds the source too (section 3.4). There is no bias at
    the output.

    Args:
        config: The sizes.

    Example:
        >>> from companion.transformer import TransformerConfig
        >>> sizes = {"src_vocab_size": 7, "tgt_vocab_size": 11}
        >>> model = Transformer(TransformerConfig.tiny(**sizes))
        >>> model(torch.tensor([[3, 5]]), torch.tensor([[1, 4, 9]])).shape
        torch.Size([1, 3, 11])
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        check_kind("config", config, TransformerConfig, article="a")
        self.config, width = config, config.d_model
        self.tgt_embedding = TokenEmbedding(config.tgt_vocab_size, width)
        self.src_embedding = (
            self.tgt_embedding
            if config.shared_vocab
            else TokenEmbedding(config.src_vocab_size, width)
        )
        self.positions = SinusoidalPositions(width)
        self.dropout = Dropout(config.dropout)
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.apply(start_weights)

    def _embed(self, name: str, tokens: Tensor, start: int = 0) -> Tensor:
        embedding = self.src_embedding if name == "src" else self.tgt_embedding
        x = embedding(tokens)
        x = self.positions(x, start) if start else self.positions(x)
        return self.dropout(x)

    def _check_tokens(self, name: str, tokens: Tensor) -> None:
        embedding = self.src_embedding if name == "src" else self.tgt_embedding
        check_device(f"{name} tokens", tokens, embedding.weight)
        check_ids(f"{name} tokens", tokens, len(embedding.weight), axes=2)


def shift_right(
    tokens: Int[Tensor, "batch tgt"], bos: int
) -> Int[Tensor, "batch tgt"]:
    """Make what a decoder reads: bos, and ``tokens`` without the last.

    Position i then holds token i - 1, so that no position holds the answer it
    is asked for. Section 3.1 of Vaswani et al. (2017).

    Raises:
        TypeError: ``tokens`` is no tensor of integers, or ``bos`` no int.
        ValueError: ``tokens`` is not (batch, tgt), or is empty.
    """
    if checking():
        check_int(bos=bos)
        check_tokens(tokens, "tokens")
    first = torch.full_like(tokens[:, :1], bos)
    return torch.cat([first, tokens[:, :-1]], dim=1)


def start_weights(module: nn.Module) -> None:
    """Start a linear map by Xavier: out comes about as much as went in.

    PyTorch's default for a linear map makes the feed-forward networks' outputs
    small beside the residual stream. The embeddings keep the N(0, 1 / d_model)
    that ``TokenEmbedding`` gave them: as an output layer they turn a normalised
    vector into logits of variance 1.

    Args:
        module: What is changed, if it is a linear map.
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
