"""One sequence that is continued: a stack of layers that sees no future.

Words for axes, the same in the book, the code and the tests:
    seq    tokens of one sequence
    vocab  tokens that the language has
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks import Dropout
from companion.checks import (
    check_device,
    check_ids,
    check_kind,
    check_states,
    check_tokens,
    checked_by,
    checking,
)
from companion.masks import causal_mask, padding_mask
from companion.multihead import CAUSAL, KVCache, Mask
from companion.positions import SinusoidalPositions, TokenEmbedding
from companion.transformer.config import LanguageModelConfig
from companion.transformer.layers import Encoder
from companion.transformer.model import start_weights

__all__ = ["CausalModel", "LanguageModel"]


class CausalModel(nn.Module):
    """Share what all models have that score what comes next.

    A model of this kind has a ``config`` with a ``pad``, an ``embedding`` whose
    table also scores the tokens, ``positions``, a ``dropout`` and an
    ``encoder``, the stack that reads under the causal mask.

    Example:
        >>> from companion.transformer import LanguageModelConfig
        >>> sizes = {"vocab_size": 7, "d_model": 6, "num_heads": 2}
        >>> model = LanguageModel(LanguageModelConfig(**sizes))
        >>> isinstance(model, CausalModel)
        True
    """

    @checked_by("_check_tokens")
    def forward(
        self, tokens: Int[Tensor, "batch seq"]
    ) -> Float[Tensor, "batch seq vocab"]:
        """Score, at each position, the token that comes next.

        Raises:
            TypeError: ``tokens`` are no integers.
            ValueError: they are not (batch, seq), are empty, or one is outside
                the vocabulary.
        """
        return self.logits(self.states(tokens))

    @checked_by("_check_tokens")
    def states(
        self,
        tokens: Int[Tensor, "batch seq"],
        caches: list[KVCache] | None = None,
    ) -> Float[Tensor, "batch new d_model"]:
        """Compute what ``logits`` turns into scores, at each position.

        Args:
            tokens: Ids; with ``caches``, those of earlier calls too.
            caches: What ``encoder.new_caches`` made, and earlier calls filled;
                only those positions are computed that are new.

        Returns:
            A vector for each position that is new.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        start = caches[0].length if caches else 0
        x = self._embed(tokens[:, start:], start)
        return self.encoder(x, self._mask(tokens, start), caches)

    def logits(
        self, x: Float[Tensor, "*axes d_model"]
    ) -> Float[Tensor, "*axes vocab"]:
        """Score each vector against each row of the table.

        Raises:
            TypeError, ValueError: ``x`` is no output of ``states``.
        """
        table = self.embedding.weight
        if checking():
            check_states("x", x, table, self.config.d_model)
        return F.linear(x, table)

    def _embed(self, tokens: Tensor, start: int) -> Tensor:
        x = self.embedding(tokens)
        x = self.positions(x, start) if start else self.positions(x)
        return self.dropout(x)

    def _check_tokens(self, tokens: Tensor, caches: object = None) -> None:
        check_tokens(tokens, "tokens")
        check_device("tokens", tokens, self.embedding.weight)
        check_ids("tokens", tokens, self.config.vocab_size)

    def _mask(self, tokens: Tensor, start: int) -> Mask:
        """No position sees the future, nor padding, if there is any."""
        if self.config.pad is None:
            return CAUSAL
        causal = causal_mask(tokens.shape[1], device=tokens.device)[start:]
        return causal & padding_mask(tokens, self.config.pad)


class LanguageModel(CausalModel):
    """Score what comes next, at each position, from the tokens up to it.

    The encoder's stack under a causal mask: a decoder with nothing to read but
    its own past, as in Liu et al. (2018). The table that embeds the tokens
    also scores them (section 3.4 of Vaswani et al., 2017).

    Args:
        config: The sizes.

    Raises:
        TypeError: ``config`` is no ``LanguageModelConfig``.

    Example:
        >>> from companion.transformer import LanguageModelConfig
        >>> sizes = {"vocab_size": 7, "d_model": 6, "num_heads": 2}
        >>> model = LanguageModel(LanguageModelConfig(**sizes))
        >>> model(torch.tensor([[3, 5, 2]])).shape
        torch.Size([1, 3, 7])
    """

    def __init__(self, config: LanguageModelConfig):
        super().__init__()
        check_kind("config", config, LanguageModelConfig, article="a")
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.apply(start_weights)
