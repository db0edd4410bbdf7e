"""The sizes of a model."""

from dataclasses import dataclass

from companion.checks import (
    check_dropout,
    check_int,
    check_pad,
    check_sizes,
    check_switches,
)

__all__ = ["LanguageModelConfig", "StackConfig", "TransformerConfig"]


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """Say what a stack of layers is made of; the defaults are the paper's base.

    Table 3 of Vaswani et al. (2017), first row.

    Raises:
        TypeError: A size is not an int, or a switch not a bool.
        ValueError: A size is below 1, ``num_heads`` does not divide
            ``d_model``, or ``dropout`` is not a probability below 1.

    Example:
        >>> StackConfig(d_model=6, num_heads=2).num_layers
        6
    """

    d_model: int = 512
    num_heads: int = 8
    d_ff: int = 2048
    num_layers: int = 6
    dropout: float = 0.1
    norm_first: bool = False

    def __post_init__(self):
        check_sizes(
            d_model=self.d_model,
            num_heads=self.num_heads,
            d_ff=self.d_ff,
            num_layers=self.num_layers,
        )
        check_dropout(self.dropout)
        check_switches(norm_first=self.norm_first)
        if self.d_model % self.num_heads:
            raise ValueError(
                f"num_heads: expected a divisor of d_model = {self.d_model}, "
                f"got {self.num_heads}"
            )


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(StackConfig):
    """Say what a ``Transformer`` is made of; the defaults are the paper's base.

    ``shared_vocab`` gives source and target one vocabulary and one table of
    embeddings (section 3.4 of Vaswani et al., 2017).

    Raises:
        TypeError, ValueError: As ``StackConfig``; and ``pad`` is not in both
            vocabularies, or a shared vocabulary has two sizes.

    Example:
        >>> config = TransformerConfig.base()
        >>> config.d_model, config.num_heads, config.d_ff, config.num_layers
        (512, 8, 2048, 6)
    """

    src_vocab_size: int
    tgt_vocab_size: int
    pad: int = 0
    shared_vocab: bool = False

    def __post_init__(self):
        check_sizes(
            src_vocab_size=self.src_vocab_size,
            tgt_vocab_size=self.tgt_vocab_size,
        )
        super().__post_init__()
        check_int(pad=self.pad)
        check_switches(shared_vocab=self.shared_vocab)
        src, tgt = self.src_vocab_size, self.tgt_vocab_size
        check_pad(self.pad, min(src, tgt), what="smaller vocabulary")
        if self.shared_vocab and src != tgt:
            raise ValueError(
                f"shared_vocab: expected one vocabulary, got sizes {src} for "
                f"the source and {tgt} for the target"
            )

    @classmethod
    def base(cls, vocab_size: int = 37_000) -> "TransformerConfig":
        """The paper's base model, English to German.

        37,000 is "about 37000" in section 5.1 of Vaswani et al. (2017).
        """
        return cls(
            src_vocab_size=vocab_size,
            tgt_vocab_size=vocab_size,
            shared_vocab=True,
        )

    @classmethod
    def tiny(
        cls, src_vocab_size: int, tgt_vocab_size: int
    ) -> "TransformerConfig":
        """A model that learns a small task on one core, in seconds."""
        return cls(
            src_vocab_size=src_vocab_size,
            tgt_vocab_size=tgt_vocab_size,
            d_model=64,
            num_heads=4,
            d_ff=128,
            num_layers=2,
            dropout=0.0,
        )


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(StackConfig):
    """Say what a ``LanguageModel`` is made of.

    ``pad`` is the id to hide, or None.

    Raises:
        TypeError, ValueError: As ``StackConfig``; and ``pad`` is not in the
            vocabulary.

    Example:
        >>> LanguageModelConfig(vocab_size=7).d_model
        512
    """

    vocab_size: int
    pad: int | None = 0

    def __post_init__(self):
        check_sizes(vocab_size=self.vocab_size)
        super().__post_init__()
        if self.pad is not None:
            check_pad(
                self.pad, self.vocab_size, what="vocabulary", more=", or None"
            )
