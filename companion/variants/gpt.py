"""GPT: a stack that sees no future, and says what comes next.

Words for axes, the same in the book, the code and the tests:
    seq    tokens of one sequence
    vocab  tokens that the language has

A ``LanguageModel`` of chapter 08 with learned positions, GELU, a norm before
each sub-layer and an embedding that is not multiplied by √d_model.

Where this differs from the published code of GPT-2, and why:
    queries, keys and values are three maps; published, one of three times the
    width. The numbers are the same, and a cache needs the three apart.
    padding can be hidden (``pad``); published, there is none to hide.
    positions begin with the same spread as the tokens, 0.02; published, 0.01.
    dropout spares the attention weights; in the GPT of 2018 it does not.
"""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.blocks import Dropout, FeedForward, Parts
from companion.checks import check_device, check_ids, check_kind, check_sizes
from companion.positions import LearnedPositions
from companion.transformer import CausalModel, LanguageModelConfig
from companion.transformer.layers import Encoder

__all__ = ["GPT", "GPTConfig"]

GPT_PARTS = Parts(
    feed_forward=partial(
        FeedForward, activation=partial(F.gelu, approximate="tanh")
    )
)
SPREAD = 0.02
"""Standard deviation of every weight at first."""


@dataclass(frozen=True, kw_only=True)
class GPTConfig(LanguageModelConfig):
    """Say what a ``GPT`` is made of; the defaults are the smallest GPT-2's.

    Table 2 of Radford et al. (2019), first row, whose layers have the sizes of
    the GPT of Radford et al. (2018). ``norm_first`` False is that one's order.
    ``max_len`` None adds no positions, and sets no longest length: for parts
    that tell the order themselves.

    Raises:
        TypeError, ValueError: As ``LanguageModelConfig``; ``max_len`` is
            neither None nor a whole number from 1 up.

    Example:
        >>> config = GPTConfig(vocab_size=11)
        >>> config.d_model, config.num_layers, config.norm_first
        (768, 12, True)
    """

    d_model: int = 768
    num_heads: int = 12
    d_ff: int = 3072
    num_layers: int = 12
    max_len: int | None = 1024
    pad: int | None = None
    norm_first: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.max_len is not None:
            check_sizes(max_len=self.max_len)

    @classmethod
    def base(cls, vocab_size: int = 50_257) -> "GPTConfig":
        """The smallest published GPT-2; 50,257 is its vocabulary."""
        return cls(vocab_size=vocab_size)

    @classmethod
    def tiny(cls, vocab_size: int) -> "GPTConfig":
        """A model that learns a small task on one core, in seconds."""
        return cls(
            vocab_size=vocab_size,
            max_len=64,
            pad=0,
            d_model=64,
            num_heads=4,
            d_ff=128,
            num_layers=2,
            dropout=0.0,
        )


class NoPositions(nn.Module):
    """Adds nothing, where the attentions tell the order themselves."""

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], start: int = 0
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Return ``x``."""
        return x


class GPT(CausalModel):
    """What comes next, as Radford et al. (2018, 2019) ask it.

    Its layers are the encoder's, under a causal mask. The table that embeds
    the tokens also scores them.

    Raises:
        TypeError: ``config`` is no ``GPTConfig``.
    """

    def __init__(self, config: GPTConfig, parts: Parts = GPT_PARTS):
        super().__init__()
        check_kind("config", config, GPTConfig, article="a")
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.positions = (
            NoPositions()
            if config.max_len is None
            else LearnedPositions(config.max_len, config.d_model)
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config, parts)
        self._start()

    def _check_tokens(self, tokens: Tensor, caches: object = None) -> None:
        check_device("tokens", tokens, self.embedding.weight)
        check_ids("tokens", tokens, self.config.vocab_size, axes=2)
        longest = self.config.max_len
        if longest is not None and tokens.shape[1] > longest:
            raise ValueError(
                f"tokens: expected at most max_len = {longest} in a row, got "
                f"{tokens.shape[1]}"
            )

    def _start(self) -> None:
        """Small weights, smaller still where a sum over the layers grows.

        Section 2.3 of Radford et al. (2019): 1 / √N, with N sums, two a layer.
        """
        shrunk = SPREAD / (2 * self.config.num_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                adds = name.endswith(("out_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=shrunk if adds else SPREAD)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
