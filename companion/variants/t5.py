"""T5: an encoder and a decoder that turn every task into text to text.

Words for axes, the same in the book, the code and the tests:
    src, tgt  tokens of the source and of the target
    query     positions that ask
    key       positions that are asked
    head      attentions side by side
    d_model   width of the residual stream

Where this differs from the published code, and why:
    the table is theirs divided by √d_model, and what is looked up is
    multiplied by it. Published, the output is divided by √d_model instead.
    The model is the same one, as a function of its tokens; ours needs nothing
    that chapter 08 had not.
    a head is d_model / num_heads wide. In the two largest published models it
    is not.
    dropout acts on the embeddings and on what a sub-layer says. Published, it
    also acts on the weights of attention, within the feed-forward network and
    behind the last norm. With a dropout of 0 there is no difference.
    a target begins with bos, as everywhere in this course; published, with pad.
"""

import math
from dataclasses import dataclass
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from companion.blocks import Dropout, FeedForward, Parts
from companion.checks import check_device, check_ids, check_int, check_kind
from companion.multihead import Mask, MultiHeadAttention, mask_tensor
from companion.positions import (
    T5Bias,
    TokenEmbedding,
    biased_attention,
    biased_weights,
)
from companion.transformer import (
    Decoder,
    Encoder,
    EncoderDecoder,
    LanguageModelConfig,
)
from companion.variants.parts import RMSNorm

__all__ = ["T5", "T5Config", "UnscaledAttention"]


@dataclass(frozen=True, kw_only=True)
class T5Config(LanguageModelConfig):
    """Say what a ``T5`` is made of; source and target have one vocabulary.

    ``num_buckets`` and ``max_distance`` are those of ``t5_bucket``.

    Raises:
        TypeError, ValueError: As ``LanguageModelConfig``; ``pad`` is None.

    Example:
        >>> T5Config(vocab_size=11).num_buckets
        32
    """

    num_buckets: int = 32
    max_distance: int = 128
    norm_first: bool = True

    def __post_init__(self):
        check_int(pad=self.pad)
        super().__post_init__()

    @classmethod
    def base(cls, vocab_size: int = 32_128) -> "T5Config":
        """The base model of Raffel et al. (2020), section 3.1.2.

        32,000 pieces of words and 100 sentinels, filled up to what a
        processor likes.
        """
        return cls(
            vocab_size=vocab_size,
            d_model=768,
            num_heads=12,
            d_ff=3072,
            num_layers=12,
        )

    @classmethod
    def tiny(cls, vocab_size: int) -> "T5Config":
        """A model that learns a small task on one core, in seconds."""
        return cls(
            vocab_size=vocab_size,
            d_model=64,
            num_heads=8,
            d_ff=128,
            num_layers=1,
            dropout=0.0,
            num_buckets=8,
            max_distance=16,
        )


class UnscaledAttention(MultiHeadAttention):
    """Attend without the 1 / √d_k, and with T5's bias, if any.

    ``bias`` is a number for each head, query and key, added to the scores: all
    that tells positions apart. Queries start smaller by √d_k instead, so that
    scores have a variance of 1 at first. There are no biases in the linear
    maps. Section 2.1 of Raffel et al. (2020), and their code.

    Args:
        d_model: Width of the vectors.
        num_heads: Heads.
        offset_bias: What makes the bias, or None.

    Raises:
        TypeError, ValueError: As ``MultiHeadAttention``.

    Example:
        >>> UnscaledAttention(6, 2)(torch.zeros(1, 5, 6)).shape
        torch.Size([1, 5, 6])
    """

    def __init__(
        self, d_model: int, num_heads: int, offset_bias: T5Bias | None = None
    ):
        super().__init__(d_model, num_heads, bias=False)
        self.offset_bias = offset_bias

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        mask, bias = mask_tensor(mask, q, k), self._bias(q, k)
        return biased_attention(q, k, v, bias, mask, scale=1.0)

    def _weights(self, q: Tensor, k: Tensor, mask: Mask) -> Tensor:
        mask, bias = mask_tensor(mask, q, k), self._bias(q, k)
        return biased_weights(q, k, bias, mask, scale=1.0)

    def _bias(self, q: Tensor, k: Tensor) -> Float[Tensor, "..."]:
        if self.offset_bias is None:
            return q.new_zeros(())
        length = k.shape[-2]  # The last query stands where the last key does.
        return self.offset_bias(length, length - q.shape[-2]).to(q.dtype)


class T5(EncoderDecoder):
    """Read a text and write another: the model of Raffel et al. (2020).

    As it was first published: the Transformer of 2017 but for its norms, which
    come first and only scale, its positions, which are a number for each
    offset, and its biases, of which it has none. One table of offsets serves
    all layers of the encoder, another one all layers of the decoder;
    cross-attention has none.

    Args:
        config: The sizes.

    Raises:
        TypeError: ``config`` is no ``T5Config``.
        ValueError: The buckets are odd, too few, or reach too near.

    Example:
        >>> sizes = {"d_model": 6, "num_heads": 2, "d_ff": 12, "num_layers": 1}
        >>> model = T5(T5Config(vocab_size=11, **sizes))
        >>> model(torch.tensor([[5, 6, 7]]), torch.tensor([[5, 6]])).shape
        torch.Size([1, 2, 11])
    """

    def __init__(self, config: T5Config):
        super().__init__()
        check_kind("config", config, T5Config, article="a")
        self.config = config
        self.tgt_embedding = TokenEmbedding(config.vocab_size, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config, _parts(config, bidirectional=True))
        self.decoder = Decoder(config, _parts(config, bidirectional=False))
        self.apply(_start)

    def _embed(self, name: str, tokens: Tensor, start: int = 0) -> Tensor:
        return self.dropout(self.tgt_embedding(tokens))

    def _check_tokens(self, name: str, tokens: Tensor) -> None:
        check_device(name, tokens, self.tgt_embedding.weight)
        check_ids(name, tokens, self.config.vocab_size, axes=2)


def _parts(config: T5Config, *, bidirectional: bool) -> Parts:
    """What the layers of one stack are made of, with one table for them all."""
    bias = T5Bias(
        config.num_heads,
        num_buckets=config.num_buckets,
        max_distance=config.max_distance,
        bidirectional=bidirectional,
    )
    nn.init.normal_(bias.weight, std=config.d_model**-0.5)
    return Parts(
        norm=RMSNorm,
        attention=partial(UnscaledAttention, offset_bias=bias),
        cross_attention=UnscaledAttention,
        feed_forward=partial(FeedForward, bias=False),
    )


def _start(module: nn.Module) -> None:
    """The first weights of the published code: a variance of 1 / inputs.

    A score is a sum of d_k products, each of variance 1 then, so it would have
    a variance of d_k. The queries are divided by √d_k once, here; the scores
    at no step. Elsewhere in this course it is Xavier and a scale.
    """
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=module.in_features**-0.5)
    if isinstance(module, UnscaledAttention):
        head_dim = module.q_proj.out_features // module.num_heads
        module.q_proj.weight.data.div_(math.sqrt(head_dim))
