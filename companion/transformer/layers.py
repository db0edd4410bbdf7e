"""What reads the source, and what writes the target.

Words for axes, the same in the book, the code and the tests:
    src      positions of the source
    tgt      positions of the target
    d_model  width of the residual stream, one vector for each position
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from companion.blocks import PARTS, EncoderLayer, Parts, Residual
from companion.data.checks import check_vectors
from companion.transformer.config import StackConfig

Mask = Bool[Tensor, "..."] | None


class DecoderLayer(nn.Module):
    """Looks back, looks at the source, thinks; a residual around each.

    Figure 1 of Vaswani et al. (2017), right: self-attention under a causal
    mask, cross-attention, feed-forward. In cross-attention the target asks, and
    ``memory``, the encoder's output, is what answers.

    Raises:
        ValueError: a size is not a positive whole number, ``num_heads`` does
            not divide ``d_model``, or ``dropout`` is not a probability.
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
        self.cross_attention = parts.cross_attention(d_model, num_heads)
        self.cross_residual = Residual(d_model, **style)
        self.feed_forward = parts.feed_forward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, **style)

    def forward(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """``x`` after one layer.

        ``mask`` says which target positions may be looked at, ``memory_mask``
        which source positions; True = may attend. The layer itself hides
        nothing: without ``mask`` it sees the future.

        Raises:
            TypeError: a dtype is another than the parameters have, or a mask
                is not boolean.
            ValueError: a shape does not fit.
        """
        x = self._looked_back(x, memory, mask)
        x = self.cross_residual(
            x, lambda y: self.cross_attention(y, memory_mask, key=memory)
        )
        return self.feed_forward_residual(x, self.feed_forward)

    def weights(
        self, x: Float[Tensor, "batch tgt d_model"], mask: Mask = None
    ) -> Float[Tensor, "batch head tgt tgt"]:
        """Which target positions each one looks at, head by head."""
        return self.self_attention.weights(
            self.attention_residual.seen(x), mask
        )

    def cross_weights(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
    ) -> Float[Tensor, "batch head tgt src"]:
        """Which source positions each one looks at: a soft alignment."""
        asking = self.cross_residual.seen(self._looked_back(x, memory, mask))
        return self.cross_attention.weights(asking, memory_mask, key=memory)

    def _looked_back(self, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
        d_model = self.cross_attention.q_proj.in_features
        check_vectors("x", x, x, batch=None, tgt=None, d_model=d_model)
        axes = {"batch": len(x), "src": None, "d_model": d_model}
        check_vectors("memory", memory, x, **axes)
        return self.attention_residual(
            x, lambda y: self.self_attention(y, mask)
        )


class Encoder(nn.Module):
    """``num_layers`` encoder layers, each with weights of its own.

    With ``norm_first`` one more norm stands at the end, where nothing else
    would have normalised the sum. Post-LN has none, as in the paper.
    """

    def __init__(self, config: StackConfig, parts: Parts = PARTS):
        super().__init__()
        self.layers = _stack(EncoderLayer, config, parts)
        self.norm = _final_norm(config, parts)

    def forward(
        self, x: Float[Tensor, "batch src d_model"], mask: Mask = None
    ) -> Float[Tensor, "batch src d_model"]:
        """The memory: what each source position means in its sentence.

        Raises:
            TypeError, ValueError: as ``EncoderLayer``.
        """
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)

    def maps(
        self, x: Float[Tensor, "batch src d_model"], mask: Mask = None
    ) -> list[Float[Tensor, "batch head src src"]]:
        """Who looks at whom, one map a layer, from the first to the last."""
        found = []
        for layer in self.layers:
            found.append(layer.weights(x, mask))
            x = layer(x, mask)
        return found


class Decoder(nn.Module):
    """``num_layers`` decoder layers, each of which reads the same memory.

    The final norm is as in ``Encoder``.
    """

    def __init__(self, config: StackConfig, parts: Parts = PARTS):
        super().__init__()
        self.layers = _stack(DecoderLayer, config, parts)
        self.norm = _final_norm(config, parts)

    def forward(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
    ) -> Float[Tensor, "batch tgt d_model"]:
        """What each target position knows about the token that follows it.

        Raises:
            TypeError, ValueError: as ``DecoderLayer``.
        """
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)

    def maps(
        self,
        x: Float[Tensor, "batch tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
    ) -> tuple[
        list[Float[Tensor, "batch head tgt tgt"]],
        list[Float[Tensor, "batch head tgt src"]],
    ]:
        """The maps of self-attention and those of cross-attention, by layer."""
        own, cross = [], []
        for layer in self.layers:
            own.append(layer.weights(x, mask))
            cross.append(layer.cross_weights(x, memory, mask, memory_mask))
            x = layer(x, memory, mask, memory_mask)
        return own, cross


def _stack(
    layer: type[nn.Module], config: StackConfig, parts: Parts
) -> nn.ModuleList:
    return nn.ModuleList(
        layer(
            config.d_model,
            config.num_heads,
            config.d_ff,
            dropout=config.dropout,
            norm_first=config.norm_first,
            parts=parts,
        )
        for _ in range(config.num_layers)
    )


def _final_norm(config: StackConfig, parts: Parts) -> nn.Module:
    return parts.norm(config.d_model) if config.norm_first else nn.Identity()
