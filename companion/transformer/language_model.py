"""One sequence that is continued: a stack of layers that sees no future.

Words for axes, the same in the book, the code and the tests:
    seq    tokens of one sequence
    vocab  tokens that the language has
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.blocks import Dropout
from companion.data.checks import check_states
from companion.masks import causal_mask, padding_mask
from companion.masks.checks import require_tokens
from companion.positions import SinusoidalPositions, TokenEmbedding
from companion.transformer.config import LanguageModelConfig
from companion.transformer.layers import Encoder
from companion.transformer.model import start_weights


class CausalModel(nn.Module):
    """What all models share that say what comes next.

    A model of this kind has a ``config`` with a ``pad``, an ``embedding`` whose
    table also scores the tokens, ``positions``, a ``dropout`` and an
    ``encoder``, the stack that reads under the causal mask.
    """

    def forward(
        self, tokens: Int[Tensor, "batch seq"]
    ) -> Float[Tensor, "batch seq vocab"]:
        """At each position, the scores of the token that comes next.

        Raises:
            TypeError: ``tokens`` are no integers.
            ValueError: they are not (batch, seq), are empty, or one is outside
                the vocabulary.
        """
        return self.logits(self.states(tokens))

    def states(
        self, tokens: Int[Tensor, "batch seq"]
    ) -> Float[Tensor, "batch seq d_model"]:
        """What ``logits`` turns into scores, at each position.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        require_tokens(tokens, "tokens")
        x = self.dropout(self.positions(self.embedding(tokens)))
        return self.encoder(x, self._mask(tokens))

    def logits(
        self, x: Float[Tensor, "*axes d_model"]
    ) -> Float[Tensor, "*axes vocab"]:
        """The generator: each vector against each row of the table.

        Raises:
            TypeError, ValueError: ``x`` is no output of ``states``.
        """
        table = self.embedding.weight
        check_states("x", x, table, self.config.d_model)
        return F.linear(x, table)

    def _mask(self, tokens: Tensor) -> Bool[Tensor, "..."]:
        mask = causal_mask(tokens.shape[1], device=tokens.device)[None, None]
        pad = self.config.pad
        return mask if pad is None else mask & padding_mask(tokens, pad)


class LanguageModel(CausalModel):
    """What comes next, at each position, from the tokens up to that position.

    The encoder's stack under a causal mask: a decoder with nothing to read but
    its own past, as in Liu et al. (2018). The table that embeds the tokens
    also scores them (section 3.4 of Vaswani et al., 2017).

    Raises:
        TypeError: ``config`` is no ``LanguageModelConfig``.
    """

    def __init__(self, config: LanguageModelConfig):
        super().__init__()
        if not isinstance(config, LanguageModelConfig):
            raise TypeError(
                "config: expected a LanguageModelConfig, got "
                f"{type(config).__name__}"
            )
        self.config = config
        self.embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.apply(start_weights)
