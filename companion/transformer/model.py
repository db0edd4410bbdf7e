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
from companion.data.checks import check_states
from companion.masks import Masks, combine_masks
from companion.masks.checks import require_int, require_tokens
from companion.positions import SinusoidalPositions, TokenEmbedding
from companion.transformer.config import TransformerConfig
from companion.transformer.layers import Decoder, Encoder, Mask


class Maps(NamedTuple):
    """Attention maps, one a layer, for the three places that ``Masks`` has."""

    src: list[Float[Tensor, "batch head src src"]]
    tgt: list[Float[Tensor, "batch head tgt tgt"]]
    cross: list[Float[Tensor, "batch head tgt src"]]


class EncoderDecoder(nn.Module):
    """What all models share that read one sequence and write another.

    A model of this kind has a ``config`` with a ``pad``, an ``encoder`` and a
    ``decoder``, a ``tgt_embedding`` whose table also scores the tokens, and
    ``_embed``, which says what the first layer gets.
    """

    def forward(
        self,
        src: Int[Tensor, "batch src"],
        tgt: Int[Tensor, "batch tgt"],
        masks: Masks | None = None,
    ) -> Float[Tensor, "batch tgt vocab"]:
        """At each target position, the scores of the token that comes next.

        ``tgt`` is what the decoder reads: the target shifted right. Without
        ``masks`` they are those that ``combine_masks`` makes: no padding, no
        future.

        Raises:
            TypeError: tokens are no integers, or ``masks`` are not ``Masks``.
            ValueError: an id is outside its vocabulary, or a shape does not
                fit.
        """
        masks = self._masks(src, tgt, masks)
        memory = self.encode(src, masks.src)
        return self.logits(self.decode(tgt, memory, masks.tgt, masks.cross))

    def encode(
        self, src: Int[Tensor, "batch src"], mask: Mask
    ) -> Float[Tensor, "batch src d_model"]:
        """The memory of a source, once for all of its target positions.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        return self.encoder(self._embed("src", src), mask)

    def decode(
        self,
        tgt: Int[Tensor, "batch tgt"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask,
        memory_mask: Mask,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """What ``logits`` turns into scores, at each target position.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        return self.decoder(self._embed("tgt", tgt), memory, mask, memory_mask)

    def logits(
        self, x: Float[Tensor, "*axes d_model"]
    ) -> Float[Tensor, "*axes vocab"]:
        """The generator: each vector against each row of the target's table.

        Raises:
            TypeError, ValueError: ``x`` is no output of ``decode``.
        """
        table = self.tgt_embedding.weight
        check_states("x", x, table, self.config.d_model)
        return F.linear(x, table)

    def maps(
        self,
        src: Int[Tensor, "batch src"],
        tgt: Int[Tensor, "batch tgt"],
        masks: Masks | None = None,
    ) -> Maps:
        """Who looks at whom, everywhere in the model; arguments as ``forward``.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        masks = self._masks(src, tgt, masks)
        x, y = self._embed("src", src), self._embed("tgt", tgt)
        memory = self.encoder(x, masks.src)
        own, cross = self.decoder.maps(y, memory, masks.tgt, masks.cross)
        return Maps(src=self.encoder.maps(x, masks.src), tgt=own, cross=cross)

    def _masks(self, src: Tensor, tgt: Tensor, masks: Masks | None) -> Masks:
        if masks is None:
            return combine_masks(src, tgt, self.config.pad)
        if not isinstance(masks, Masks):
            raise TypeError(
                "masks: expected Masks(src, tgt, cross), as combine_masks "
                f"makes them, got {type(masks).__name__}"
            )
        return masks


class Transformer(EncoderDecoder):
    """The encoder-decoder of Vaswani et al. (2017), figure 1.

    The table that embeds target tokens also scores them at the output, and
    with ``shared_vocab`` embeds the source too (section 3.4). There is no bias
    at the output.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        if not isinstance(config, TransformerConfig):
            raise TypeError(
                "config: expected a TransformerConfig, got "
                f"{type(config).__name__}"
            )
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

    def _embed(self, name: str, tokens: Tensor) -> Tensor:
        embedding = self.src_embedding if name == "src" else self.tgt_embedding
        try:
            x = embedding(tokens)
        except (TypeError, ValueError) as error:
            # The embedding cannot know which of the two sentences it was.
            raise type(error)(f"{name} {error}") from None
        return self.dropout(self.positions(x))


def shift_right(
    tokens: Int[Tensor, "batch tgt"], bos: int
) -> Int[Tensor, "batch tgt"]:
    """What a decoder reads to predict ``tokens``: bos, and all but the last.

    Position i then holds token i - 1, so that no position holds the answer it
    is asked for. Section 3.1 of Vaswani et al. (2017).

    Raises:
        TypeError: ``tokens`` is no tensor of integers, or ``bos`` no int.
        ValueError: ``tokens`` is not (batch, tgt), or is empty.
    """
    require_int(bos=bos)
    require_tokens(tokens, "tokens")
    first = torch.full_like(tokens[:, :1], bos)
    return torch.cat([first, tokens[:, :-1]], dim=1)


def start_weights(module: nn.Module) -> None:
    """Xavier for every linear map: what comes out is about as large as went in.

    PyTorch's default for a linear map lets the feed-forward networks whisper.
    The embeddings keep the N(0, 1 / d_model) that ``TokenEmbedding`` gave them:
    as an output layer they turn a normalised vector into logits of variance 1.
    """
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
