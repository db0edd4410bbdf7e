"""BART: an encoder-decoder that reads a damaged text and says it whole.

Words for axes, the same in the book, the code and the tests:
    src      tokens of the damaged text, tgt those of the whole one
    d_model  width of the residual stream, one vector for each position

Where this differs from the published code, and why:
    the tables of positions have ``max_len`` rows; published, each has two rows
    more that nothing reads, left from ids that padding once had. The count of
    the base model is therefore 139,417,344 and not 139,420,416: 2 · 2 · 768
    numbers less.
    there is no bias at the output; published, it is a constant 0 that does not
    learn.
    linear maps start as elsewhere in this course, by Xavier; published, all
    weights have a standard deviation of 0.02, which suits a width of 768.
"""

from dataclasses import dataclass
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from companion.blocks import Dropout, FeedForward, LayerNorm, Parts
from companion.checks import (
    check_device,
    check_ids,
    check_int,
    check_kind,
    check_sizes,
)
from companion.positions import LearnedPositions
from companion.transformer import (
    Decoder,
    Encoder,
    EncoderDecoder,
    LanguageModelConfig,
)
from companion.transformer.model import start_weights

__all__ = ["BART", "BARTConfig"]

PARTS = Parts(feed_forward=partial(FeedForward, activation=F.gelu))


@dataclass(frozen=True, kw_only=True)
class BARTConfig(LanguageModelConfig):
    """Say what a ``BART`` is made of; the defaults are the base model's.

    Section 2 of Lewis et al. (2020). ``num_layers`` is that of each side.

    Raises:
        TypeError, ValueError: As ``LanguageModelConfig``; ``pad`` is None.

    Example:
        >>> BARTConfig(vocab_size=11).d_model
        768
    """

    d_model: int = 768
    num_heads: int = 12
    d_ff: int = 3072
    num_layers: int = 6
    max_len: int = 1024

    def __post_init__(self):
        check_sizes(max_len=self.max_len)
        check_int(pad=self.pad)
        super().__post_init__()

    @classmethod
    def base(cls, vocab_size: int = 50_265) -> "BARTConfig":
        """The published base model, whose sub-words are those of RoBERTa."""
        return cls(vocab_size=vocab_size)

    @classmethod
    def tiny(cls, vocab_size: int, *, max_len: int = 64) -> "BARTConfig":
        """A model that learns a small grammar on one core, in seconds."""
        return cls(
            vocab_size=vocab_size,
            max_len=max_len,
            d_model=64,
            num_heads=8,
            d_ff=128,
            num_layers=1,
            dropout=0.0,
        )


class BART(EncoderDecoder):
    """Read a text with holes and write the whole one.

    The encoder-decoder of 2017 with learned positions and GELU. Post-LN, and
    one norm more on what the first layer of each side gets. One table embeds
    what is read and what is written, and scores the output. Nothing multiplies
    it. Section 2.1 of Lewis et al. (2020).

    Args:
        config: The sizes.

    Raises:
        TypeError: ``config`` is no ``BARTConfig``.

    Example:
        >>> sizes = {"d_model": 6, "num_heads": 2, "d_ff": 12, "num_layers": 1}
        >>> model = BART(BARTConfig(vocab_size=11, **sizes))
        >>> model(torch.tensor([[5, 6, 7]]), torch.tensor([[5, 6]])).shape
        torch.Size([1, 2, 11])
    """

    def __init__(self, config: BARTConfig):
        super().__init__()
        check_kind("config", config, BARTConfig, article="a")
        self.config, d_model = config, config.d_model
        self.tgt_embedding = nn.Embedding(config.vocab_size, d_model)
        nn.init.normal_(self.tgt_embedding.weight, std=0.02)
        self.positions, self.norms = nn.ModuleDict(), nn.ModuleDict()
        for side in ("src", "tgt"):
            self.positions[side] = LearnedPositions(config.max_len, d_model)
            self.norms[side] = LayerNorm(d_model)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config, PARTS)
        self.decoder = Decoder(config, PARTS)
        self.apply(start_weights)

    def _embed(self, name: str, tokens: Tensor, start: int = 0) -> Tensor:
        x = self.positions[name](self.tgt_embedding(tokens), start)
        return self.dropout(self.norms[name](x))

    def _check_tokens(self, name: str, tokens: Tensor) -> None:
        check_device(name, tokens, self.tgt_embedding.weight)
        check_ids(name, tokens, self.config.vocab_size, axes=2)
        length, max_len = tokens.shape[1], self.config.max_len
        if length > max_len:
            raise ValueError(
                f"{name}: expected at most max_len={max_len} tokens, the rows "
                f"of the table of positions, got {length}"
            )
