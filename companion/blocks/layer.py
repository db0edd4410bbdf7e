"""The encoder's layer, and what a layer is made of.

Words for axes, the same in the book, the code and the tests:
    d_model  width of the residual stream, one vector for each position
"""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks.feed_forward import FeedForward
from companion.blocks.norm import LayerNorm
from companion.blocks.residual import Residual, apply_at
from companion.multihead import KVCache, Mask, MultiHeadAttention

__all__ = ["PARTS", "EncoderLayer", "Parts"]


class Parts(NamedTuple):
    """Hold what makes the parts of a layer from their sizes.

    The defaults are those of 2017: a norm and a feed-forward network, and the
    attentions that look at their own sequence and at the memory.

    Example:
        >>> from companion.variants import RMSNorm
        >>> layer = EncoderLayer(6, 2, 12, parts=PARTS._replace(norm=RMSNorm))
        >>> type(layer.attention_residual.norm).__name__
        'RMSNorm'
    """

    norm: Callable[[int], nn.Module] = LayerNorm
    attention: Callable[[int, int], nn.Module] = MultiHeadAttention
    cross_attention: Callable[[int, int], nn.Module] = MultiHeadAttention
    feed_forward: Callable[[int, int], nn.Module] = FeedForward


PARTS = Parts()


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with a residual.

    Figure 1 of Vaswani et al. (2017), left. ``dropout`` acts on what a
    sub-layer says, before it is added (section 5.4).

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1, ``num_heads`` does not divide
            ``d_model``, or ``dropout`` is not a probability below 1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        parts: Parts = PARTS,
    ):
        super().__init__()
        style = {"dropout": dropout, "norm_first": norm_first}
        style |= {"norm": parts.norm}
        self.self_attention = parts.attention(d_model, num_heads)
        self.attention_residual = Residual(d_model, **style)
        self.feed_forward = parts.feed_forward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, **style)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Mask = None,
        cache: KVCache | None = None,
        real: Int[Tensor, " real"] | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """Apply one layer.

        Args:
            x: A vector for each position.
            mask: True = may attend, or ``CAUSAL``.
            cache: What earlier positions of the sequence have left behind;
                ``x`` is then what comes after them.
            real: The positions that are no padding, counted through all
                sentences: the feed-forward network works at them alone, and
                leaves the vectors of padding as they are. All unless given.

        Returns:
            A vector for each position of ``x``.

        Raises:
            TypeError, ValueError: as ``MultiHeadAttention``.
        """
        x = self.attention_residual(
            x, lambda y: self.self_attention(y, mask, cache=cache)
        )

        def think(y: Tensor) -> Tensor:
            return self.feed_forward_residual(y, self.feed_forward)

        return apply_at(real, think, x)

    def weights(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Mask = None,
    ) -> Float[Tensor, "batch head seq seq"]:
        """Compute who looks at whom in this layer, head by head."""
        return self.self_attention.weights(
            self.attention_residual.seen(x), mask
        )
