"""BERT: an encoder that reads a text with holes, and fills them.

Words for axes, the same in the book, the code and the tests:
    seq      tokens of one example: [CLS] text [SEP], or [CLS] a [SEP] b [SEP]
    d_model  width of the residual stream, one vector for each position
    vocab    tokens that the language has
    class    answers that a classifier chooses from

Where this differs from the published code, and why:
    GELU is exact, as in the port that most people run; the published code, as
    it stands, approximates it by tanh, 0.0005 off at most.
    ``next_logits`` scores "no" at 0 and "yes" at 1, so that ``is_next`` is the
    target; published, 0 is "yes".
    linear maps start as elsewhere in this course, by Xavier; published, all
    weights have a standard deviation of 0.02, which suits a width of 768.
"""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks import Dropout, FeedForward, LayerNorm, Parts
from companion.checks import (
    check_device,
    check_ids,
    check_kind,
    check_sizes,
    check_states,
    check_tokens,
    checked_by,
    checking,
)
from companion.masks import padding_mask
from companion.multihead import MultiHeadAttention
from companion.positions import LearnedPositions
from companion.transformer import Encoder, LanguageModelConfig
from companion.transformer.model import start_weights

__all__ = ["BERT", "BERTConfig", "Classifier"]

_norm = partial(LayerNorm, eps=1e-12)


@dataclass(frozen=True, kw_only=True)
class BERTConfig(LanguageModelConfig):
    """Say what a ``BERT`` is made of; the defaults are the base model's.

    Section 3 of Devlin et al. (2019). An example holds up to ``num_segments``
    texts.

    Raises:
        TypeError, ValueError: As ``LanguageModelConfig``.

    Example:
        >>> config = BERTConfig(vocab_size=11)
        >>> config.d_model, config.num_layers, config.num_heads
        (768, 12, 12)
    """

    d_model: int = 768
    num_heads: int = 12
    d_ff: int = 3072
    num_layers: int = 12
    max_len: int = 512
    num_segments: int = 2

    def __post_init__(self):
        check_sizes(max_len=self.max_len, num_segments=self.num_segments)
        super().__post_init__()

    @classmethod
    def base(cls, vocab_size: int = 30_522) -> "BERTConfig":
        """The published base model; 30,522 is its English vocabulary."""
        return cls(vocab_size=vocab_size)

    @classmethod
    def tiny(cls, vocab_size: int) -> "BERTConfig":
        """A model that learns a small grammar on one core, in seconds."""
        return cls(
            vocab_size=vocab_size,
            max_len=64,
            d_model=64,
            num_heads=4,
            d_ff=128,
            num_layers=2,
            dropout=0.0,
        )


class BERT(nn.Module):
    """What stands at each position, from the tokens on both of its sides.

    The encoder's stack, which sees all but padding, between embeddings of
    token, position and segment and two heads: one for masked tokens, one for
    whether the second text comes next. Devlin et al. (2019), section 3.

    Raises:
        TypeError: ``config`` is no ``BERTConfig``.
    """

    def __init__(self, config: BERTConfig):
        super().__init__()
        check_kind("config", config, BERTConfig, article="a")
        self.config, width = config, config.d_model
        self.embedding = nn.Embedding(config.vocab_size, width)
        self.segments = nn.Embedding(config.num_segments, width)
        self.positions = LearnedPositions(config.max_len, width)
        self.norm, self.dropout = _norm(width), Dropout(config.dropout)
        self.encoder = Encoder(config, _parts(config))
        self.pooler = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.transform = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), _norm(width)
        )
        self.logits_bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.next_proj = nn.Linear(width, 2)
        self.apply(_start)

    @checked_by("_check_texts")
    def forward(
        self,
        tokens: Int[Tensor, "batch seq"],
        segments: Int[Tensor, "batch seq"] | None = None,
    ) -> Float[Tensor, "batch seq vocab"]:
        """At each position, the scores of the token that belongs there.

        Raises:
            TypeError, ValueError: as ``states``.
        """
        return self.logits(self.states(tokens, segments))

    @checked_by("_check_texts")
    def states(
        self,
        tokens: Int[Tensor, "batch seq"],
        segments: Int[Tensor, "batch seq"] | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """What each position means in its text.

        ``segments`` says which text a token is of; without it all are of the
        first.

        Raises:
            TypeError: tokens or segments are no integers.
            ValueError: they are not (batch, seq), both alike; an id is outside
                its table; there are more than ``max_len`` positions.
        """
        x = self.positions(self.embedding(tokens))
        first = segments is None
        x = x + (self.segments.weight[0] if first else self.segments(segments))
        pad = self.config.pad
        mask = None if pad is None else padding_mask(tokens, pad)
        return self.encoder(self.dropout(self.norm(x)), mask)

    def pooled(
        self, x: Float[Tensor, "batch seq d_model"]
    ) -> Float[Tensor, "batch d_model"]:
        """The whole example as one vector, made from the state of [CLS].

        Raises:
            TypeError, ValueError: ``x`` is no output of ``states``.
        """
        if checking():
            self._check_states(x)
            if x.ndim != 3:
                raise ValueError(
                    f"x: expected (batch, seq, d_model), got {tuple(x.shape)}"
                )
        return self.pooler(x[:, 0])

    def logits(
        self, x: Float[Tensor, "*axes d_model"]
    ) -> Float[Tensor, "*axes vocab"]:
        """The scores of each token: once more bent, then against its row.

        Raises:
            TypeError, ValueError: ``x`` is no output of ``states``.
        """
        if checking():
            self._check_states(x)
        bent = self.transform(x)
        return F.linear(bent, self.embedding.weight, self.logits_bias)

    def next_logits(
        self, x: Float[Tensor, "batch seq d_model"]
    ) -> Float[Tensor, "batch 2"]:
        """The scores of "no" and of "yes, the second text comes next".

        Raises:
            TypeError, ValueError: ``x`` is no output of ``states``.
        """
        return self.next_proj(self.pooled(x))

    def _check_texts(
        self, tokens: Tensor, segments: Tensor | None = None
    ) -> None:
        check_tokens(tokens, "tokens")
        self._check_rows("tokens", tokens, self.embedding)
        length, max_len = tokens.shape[1], self.config.max_len
        if length > max_len:
            raise ValueError(
                f"tokens: expected at most max_len={max_len} positions, the "
                f"rows that were learned, got {length}"
            )
        if segments is None:
            return
        check_tokens(segments, "segments")
        if segments.shape != tokens.shape:
            raise ValueError(
                f"segments: expected one for each token, "
                f"{tuple(tokens.shape)}, got {tuple(segments.shape)}"
            )
        self._check_rows("segments", segments, self.segments)

    def _check_rows(self, name: str, ids: Tensor, table: nn.Embedding) -> None:
        check_device(name, ids, table.weight)
        check_ids(name, ids, table.num_embeddings)

    def _check_states(self, x: Tensor) -> None:
        check_states("x", x, self.embedding.weight, self.config.d_model)


class Classifier(nn.Module):
    """Classify a text: BERT, and one linear map of its [CLS].

    Fine-tuning trains all of it, from a ``bert`` that is pre-trained. Section
    4.1 of Devlin et al. (2019).

    Args:
        bert: What reads.
        num_classes: How many answers there are.

    Raises:
        TypeError: ``bert`` is no ``BERT``, ``num_classes`` is not an int.
        ValueError: It is below 1.

    Example:
        >>> sizes = {"d_model": 6, "num_heads": 2, "d_ff": 12, "num_layers": 1}
        >>> bert = BERT(BERTConfig(vocab_size=11, **sizes))
        >>> Classifier(bert, num_classes=3)(torch.tensor([[5, 6, 7]])).shape
        torch.Size([1, 3])
    """

    def __init__(self, bert: BERT, num_classes: int):
        super().__init__()
        check_kind("bert", bert, BERT)
        check_sizes(num_classes=num_classes)
        self.bert, self.dropout = bert, Dropout(bert.config.dropout)
        self.out_proj = nn.Linear(bert.config.d_model, num_classes)
        self.out_proj.apply(_start)

    def forward(
        self,
        tokens: Int[Tensor, "batch seq"],
        segments: Int[Tensor, "batch seq"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """The scores of each class.

        Raises:
            TypeError, ValueError: as ``BERT.states``.
        """
        pooled = self.bert.pooled(self.bert.states(tokens, segments))
        return self.out_proj(self.dropout(pooled))


def _parts(config: BERTConfig) -> Parts:
    attention = partial(MultiHeadAttention, dropout=config.dropout)
    feed_forward = partial(FeedForward, activation=F.gelu)
    return Parts(_norm, attention, feed_forward=feed_forward)


def _start(module: nn.Module) -> None:
    start_weights(module)
    if isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
