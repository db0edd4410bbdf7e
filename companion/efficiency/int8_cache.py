"""Keys and values in eight bits each."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.checks import trusting
from companion.efficiency.quantize import Quantized, quantize
from companion.multihead import KVCache

__all__ = ["Int8Cache"]


class Int8Cache(KVCache):
    """A cache whose keys and values are integers, with a scale a vector.

    A vector is the key, or the value, of one head at one position; it is
    rounded once, when it comes. Here all of them are turned back into numbers
    at each step: it shows what is lost and what is stored, and saves no time.

    Args:
        bits: Of each number, from 2 to 8; each takes a byte here.

    Example:
        >>> cache, new = Int8Cache(), torch.ones(2, 3, 1, 16)
        >>> k, v = cache.append(new, new)
        >>> k.shape, cache.nbytes
        (torch.Size([2, 3, 1, 16]), 216)
    """

    def __init__(self, bits: int = 8):
        super().__init__()
        self.bits = bits
        self._small: tuple[Quantized, ...] = ()

    @property
    def stored(self) -> tuple[Tensor, ...]:
        """The keys and the values, as numbers."""
        return tuple(x.dequantize() for x in self._small)

    @property
    def nbytes(self) -> int:
        """How many bytes it stores: integers, and a scale for each vector."""
        return sum(x.nbytes for x in self._small)

    def append(
        self,
        k: Float[Tensor, "batch kv_head new head_dim"],
        v: Float[Tensor, "batch kv_head new v_head_dim"],
    ) -> tuple[Tensor, ...]:
        """Round and store what is new; return all keys and values so far."""
        # To look whether they are finite would be to wait for an accelerator,
        # in each layer and step; NaN stays NaN.
        with trusting():
            new = tuple(
                quantize(x, self.bits, scale_dtype=torch.float16)
                for x in (k, v)
            )
        if self.length:
            pairs = zip(self._small, new, strict=True)
            new = tuple(_joined(old, more) for old, more in pairs)
        self._small = new
        self.length += k.shape[2]
        return tuple(x.dequantize(k.dtype) for x in self._small)

    def reorder(self, rows: Int[Tensor, " row"]) -> None:
        """Let row i go on from what row ``rows[i]`` has."""
        self._small = tuple(_rows(x, rows) for x in self._small)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Forget all rows but these."""
        self.reorder(rows)


def _joined(old: Quantized, new: Quantized) -> Quantized:
    """Put new positions behind the old ones."""
    return Quantized(
        torch.cat([old.integers, new.integers], dim=2),
        torch.cat([old.scale, new.scale], dim=2),
        torch.cat([old.zero_point, new.zero_point], dim=2),
        old.bits,
    )


def _rows(x: Quantized, rows: Tensor) -> Quantized:
    """Take these rows, in this order."""
    return Quantized(
        x.integers[rows], x.scale[rows], x.zero_point[rows], x.bits
    )
