"""What reads the source, and what writes the target.

Words for axes, the same in the book, the code and the tests:
    src      positions of the source
    tgt      positions of the target
    d_model  width of the residual stream, one vector for each position
"""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks import PARTS, EncoderLayer, Parts, Residual
from companion.blocks.residual import apply_at
from companion.checks import check_vectors, checking
from companion.multihead import KVCache, Mask
from companion.transformer.config import StackConfig

__all__ = ["Decoder", "DecoderLayer", "Encoder", "LayerCache"]


class LayerCache(NamedTuple):
    """Hold what a decoder layer keeps while a target is written."""

    own: KVCache
    """Of the target positions so far."""
    cross: KVCache
    """Of the memory, which stays as it is."""

    def reorder(self, rows: Int[Tensor, " row"]) -> None:
        """Let row i go on from what row ``rows[i]`` has."""
        self.own.reorder(rows)

    def keep(
        self, sentences: Int[Tensor, " kept"], rows: Int[Tensor, " kept_row"]
    ) -> None:
        """Forget all other sentences; ``rows`` are those of the kept ones."""
        self.own.keep(rows)
        self.cross.keep(sentences)


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
        x: Float[Tensor, "row tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
        cache: LayerCache | None = None,
        real: Int[Tensor, " real"] | None = None,
    ) -> Float[Tensor, "row tgt d_model"]:
        """Apply one layer.

        The layer itself hides nothing: without ``mask`` it sees the future.

        Args:
            x: A vector for each target position; several rows may share a
                sentence, as the hypotheses of a beam do.
            memory: The encoder's output.
            mask: Which target positions may be looked at; True = may attend.
            memory_mask: Which source positions may be looked at.
            cache: What earlier positions have left behind; ``x`` is then what
                comes after them.
            real: As in ``EncoderLayer``.

        Returns:
            A vector for each position of ``x``.

        Raises:
            TypeError: a dtype is another than the parameters have, or a mask
                is not boolean.
            ValueError: a shape does not fit.
        """
        x = self._look_back(x, memory, mask, cache)
        cross = None if cache is None else cache.cross

        def look_at_source(y: Tensor) -> Tensor:
            # Rows that share a sentence are so many queries of one memory.
            asking = y.reshape(len(memory), -1, y.shape[-1])
            found = self.cross_attention(
                asking, memory_mask, key=memory, cache=cross
            )
            return found.view(y.shape)

        x = self.cross_residual(x, look_at_source)

        def think(y: Tensor) -> Tensor:
            return self.feed_forward_residual(y, self.feed_forward)

        return apply_at(real, think, x)

    def weights(
        self, x: Float[Tensor, "batch tgt d_model"], mask: Mask = None
    ) -> Float[Tensor, "batch head tgt tgt"]:
        """Compute which target positions each one looks at, head by head."""
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
        """Compute which source positions each looks at: a soft alignment."""
        asking = self.cross_residual.seen(self._look_back(x, memory, mask))
        return self.cross_attention.weights(asking, memory_mask, key=memory)

    def _look_back(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Mask,
        cache: LayerCache | None = None,
    ) -> Tensor:
        if checking():
            d_model = self.cross_attention.q_proj.in_features
            check_vectors("x", x, x, batch=None, tgt=None, d_model=d_model)
            axes = {"batch": len(x), "src": None, "d_model": d_model}
            check_vectors("memory", memory, x, **axes)
        own = None if cache is None else cache.own
        return self.attention_residual(
            x, lambda y: self.self_attention(y, mask, cache=own)
        )


class Encoder(nn.Module):
    """Stack ``num_layers`` encoder layers, each with weights of its own.

    With ``norm_first`` one more norm stands at the end, where nothing else
    would have normalised the sum. Post-LN has none, as in the paper.

    Args:
        config: The sizes.
        parts: What makes the parts of a layer.

    Example:
        >>> from companion.transformer import StackConfig
        >>> encoder = Encoder(StackConfig(d_model=6, num_heads=2, num_layers=1))
        >>> encoder(torch.zeros(2, 5, 6)).shape
        torch.Size([2, 5, 6])
    """

    def __init__(self, config: StackConfig, parts: Parts = PARTS):
        super().__init__()
        self.layers = _stack(EncoderLayer, config, parts)
        self.norm = _final_norm(config, parts)

    def forward(
        self,
        x: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        caches: list[KVCache] | None = None,
        real: Int[Tensor, " real"] | None = None,
    ) -> Float[Tensor, "batch src d_model"]:
        """Compute the memory: what each position means in its sentence.

        Args:
            x: A vector for each position.
            mask: True = may attend.
            caches: One a layer, where the stack writes a text: ``x`` is then
                what comes after the positions that the caches hold.
            real: As in ``EncoderLayer``.

        Returns:
            A vector for each position of ``x``.

        Raises:
            TypeError, ValueError: as ``EncoderLayer``.
        """
        caches = caches or [None] * len(self.layers)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, mask, cache, real)
        return self.norm(x)

    def new_caches(self) -> list[KVCache]:
        """Return an empty cache for each layer."""
        return [KVCache() for _ in self.layers]

    def maps(
        self, x: Float[Tensor, "batch src d_model"], mask: Mask = None
    ) -> list[Float[Tensor, "batch head src src"]]:
        """Compute who looks at whom, one map a layer, from first to last."""
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
        x: Float[Tensor, "row tgt d_model"],
        memory: Float[Tensor, "batch src d_model"],
        mask: Mask = None,
        memory_mask: Mask = None,
        caches: list[LayerCache] | None = None,
        real: Int[Tensor, " real"] | None = None,
    ) -> Float[Tensor, "row tgt d_model"]:
        """Compute what each target position knows about the token after it.

        Args:
            x: A vector for each target position.
            memory: The encoder's output.
            mask: As in ``DecoderLayer``.
            memory_mask: As in ``DecoderLayer``.
            caches: One a layer, as ``new_caches`` makes them.
            real: As in ``EncoderLayer``.

        Returns:
            A vector for each position of ``x``.

        Raises:
            TypeError, ValueError: as ``DecoderLayer``.
        """
        caches = caches or [None] * len(self.layers)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer(x, memory, mask, memory_mask, cache, real)
        return self.norm(x)

    def new_caches(self) -> list[LayerCache]:
        """Return an empty cache for each layer."""
        return [LayerCache(KVCache(), KVCache()) for _ in self.layers]

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
        """Compute the maps of self-attention and of cross-attention."""
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
