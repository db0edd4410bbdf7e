"""Attention to the last positions only, and to the very first.

Words for axes, the same in the book, the code and the tests:
    query  positions that ask
    key    positions that are asked, and that answer
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.checks import check_int, check_sizes
from companion.multihead import KVCache

__all__ = ["WindowCache", "window_mask"]


def window_mask(
    length: int,
    window: int,
    sinks: int = 0,
    device: torch.device | str | None = None,
) -> Bool[Tensor, "query key"]:
    """Say who is among the last ``window`` positions, or the first ``sinks``.

    A position sees itself, the ``window`` - 1 before it, and the first
    ``sinks`` (Xiao et al., 2024, who call those attention sinks). Through
    several layers it hears of more: a layer reaches ``window`` - 1 further.

    Args:
        length: How many positions there are.
        window: How many of the last each sees, itself among them.
        sinks: How many of the first each sees besides, none of its future.
        device: Where the mask is to be.

    Returns:
        True = may attend.

    Raises:
        TypeError: a size is no int.
        ValueError: a size is below 1, or ``sinks`` below 0.

    Example:
        >>> window_mask(5, 2, sinks=1).int()
        tensor([[1, 0, 0, 0, 0],
                [1, 1, 0, 0, 0],
                [1, 1, 1, 0, 0],
                [1, 0, 1, 1, 0],
                [1, 0, 0, 1, 1]], dtype=torch.int32)
    """
    check_sizes(length=length, window=window)
    _check_sinks(sinks)
    query = torch.arange(length, device=device).unsqueeze(1)
    key = torch.arange(length, device=device)
    return (key <= query) & ((key > query - window) | (key < sinks))


class WindowCache(KVCache):
    """A cache that forgets: it keeps the last positions and the first few.

    Its room does not grow with the text. A model that decodes a position at a
    time with it computes what it would under ``window_mask``. Positions keep
    the numbers they had; Xiao et al. count anew within the cache.

    Args:
        window: How many of the last positions are kept, the new one included.
        sinks: How many of the first are kept besides.

    Raises:
        TypeError, ValueError: as ``window_mask``.

    Example:
        >>> cache, new = WindowCache(window=2, sinks=1), torch.zeros(1, 3, 1, 4)
        >>> [cache.append(new, new)[0].shape[2] for _ in range(5)]
        [1, 2, 3, 3, 3]
    """

    _room: tuple[Tensor, ...]

    def __init__(self, window: int, sinks: int = 0):
        super().__init__()
        check_sizes(window=window)
        _check_sinks(sinks)
        self.window, self.sinks = window, sinks

    def append(
        self,
        k: Float[Tensor, "batch kv_head new head_dim"],
        v: Float[Tensor, "batch kv_head new v_head_dim"],
    ) -> tuple[Tensor, ...]:
        """Store one position, forget what left the window, return the rest.

        Raises:
            ValueError: several positions come at once: the first of them would
                have to see what the last of them makes this cache forget.
        """
        if k.shape[2] != 1:
            raise ValueError(
                f"k: expected one new position at a time, got {k.shape[2]}"
            )
        if self.length:
            old_k, old_v = self._room
            k, v = torch.cat([old_k, k], dim=2), torch.cat([old_v, v], dim=2)
        self.length += 1
        self._room = self._kept(k), self._kept(v)
        self._show()
        return self._stored

    def _kept(self, x: Tensor) -> Tensor:
        """Drop what is neither among the first nor among the last."""
        outside = x.shape[2] - self.window
        if outside <= self.sinks:
            return x
        return torch.cat([x[:, :, : self.sinks], x[:, :, outside:]], dim=2)


def _check_sinks(sinks: int) -> None:
    check_int(sinks=sinks)
    if sinks < 0:
        raise ValueError(f"sinks: expected 0 or more, got {sinks}")
