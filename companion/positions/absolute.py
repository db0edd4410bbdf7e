"""Positions that are added to the word vectors, once, below the first layer.

Words for axes, the same in the book, the code and the tests:
    seq      positions in a sequence
    d_model  width of the vector of one token
    pair     two neighbouring dimensions, 2i and 2i + 1, that share a frequency
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.checks import (
    check_device,
    check_float,
    check_ids,
    check_like,
    check_numbers,
    check_sizes,
    checking,
)

__all__ = [
    "LearnedPositions",
    "SinusoidalPositions",
    "TokenEmbedding",
    "frequencies",
    "sinusoidal",
    "sinusoids",
]

BASE = 10_000


def frequencies(
    width: int, *, device: torch.device | str | None = None
) -> Float[Tensor, " pair"]:
    """Radians a step for each pair of dimensions: ``10000^(-2i / width)``.

    ``i`` counts pairs, not dimensions. An odd width has half a pair at the end.
    In float64 where the device has it: the angles are products with positions,
    and those can be large. Section 3.5 of Vaswani et al. (2017).

    Raises:
        TypeError, ValueError: ``width`` is no whole number from 1 up.
    """
    if checking():
        check_sizes(width=width)
    pairs, dtype = math.ceil(width / 2), _widest(device)
    if dtype == torch.float64:
        i = torch.arange(pairs, dtype=dtype, device=device)
        return torch.pow(BASE, -2 * i / width)
    # In 32 bits the powers would be coarser: they are made here, and copied.
    exact = [BASE ** (-2 * i / width) for i in range(pairs)]
    return torch.tensor(exact, dtype=dtype, device=device)


def sinusoids(
    positions: Float[Tensor, " seq"] | Int[Tensor, " seq"],
    d_model: int,
    *,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "seq d_model"]:
    """Sine at dimension 2i and cosine at 2i + 1 of ``position · frequency_i``.

    Positions may be negative or lie between two whole numbers. ``dtype`` is
    the default floating-point type unless given; the angles are computed in
    the widest one, because float16 has no numbers between 2048 and 2050.

    Raises:
        TypeError: ``positions`` is no tensor of numbers.
        ValueError: it has not one axis, or ``d_model`` is below 1.
    """
    if checking():
        check_numbers("positions", positions)
        if positions.ndim != 1:
            raise ValueError(
                f"positions: expected one axis, got {tuple(positions.shape)}"
            )
    rate = frequencies(d_model, device=positions.device)
    angles = positions.to(rate.dtype).unsqueeze(-1) * rate  # seq pair
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1)
    waves = waves.flatten(-2)[:, :d_model]  # An odd width ends with a sine.
    return waves.to(dtype or torch.get_default_dtype())


def sinusoidal(
    length: int,
    d_model: int,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "length d_model"]:
    """Compute the sinusoidal encodings of the positions 0 … length - 1.

    Section 3.5 of Vaswani et al. (2017).

    Args:
        length: How many positions.
        d_model: How wide an encoding is.
        device: Where it is made.
        dtype: As in ``sinusoids``.

    Returns:
        One encoding a position.

    Raises:
        TypeError, ValueError: A size is no whole number from 1 up.

    Example:
        >>> sinusoidal(2, 4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if checking():
        check_sizes(length=length, d_model=d_model)
    positions = torch.arange(length, device=device)
    return sinusoids(positions, d_model, dtype=dtype)


class SinusoidalPositions(nn.Module):
    """Add the sinusoidal encodings: no parameters and no longest length.

    Args:
        d_model: Width of the vectors.

    Example:
        >>> SinusoidalPositions(2)(torch.zeros(2, 2), start=0)
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """

    def __init__(self, d_model: int):
        super().__init__()
        check_sizes(d_model=d_model)
        self.d_model, self._table = d_model, torch.empty(0)

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], start: int = 0
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Add the encoding of each position, the first of which is ``start``.

        Raises:
            TypeError: ``x`` is not floating point.
            ValueError: its last axis is not ``d_model`` wide.
        """
        if checking():
            check_float("x", x, axes="seq, d_model", width=self.d_model)
        stop = start + x.shape[-2]
        return x + self._rows(stop, x)[start:stop]

    def _rows(self, stop: int, x: Tensor) -> Tensor:
        """The first rows, which are computed once for each room they need."""
        like = {"device": x.device, "dtype": x.dtype}
        if torch.compiler.is_compiling():  # It knows no values, and keeps none.
            return sinusoidal(stop, self.d_model, **like)
        table = self._table
        fits = len(table) >= stop and table.dtype == x.dtype
        if not fits or table.device != x.device:
            # A table made in inference mode could not be trained with.
            with torch.inference_mode(False), torch.no_grad():
                room = max(64, 2 ** (stop - 1).bit_length())
                table = sinusoidal(room, self.d_model, **like)
            self._table = table
        return table


class LearnedPositions(nn.Module):
    """Add one learned row for each position, up to the last row of the table.

    As in Gehring et al. (2017) and BERT, whose small initial scale is used.

    Args:
        max_len: How many rows there are.
        d_model: Width of the vectors.

    Example:
        >>> LearnedPositions(max_len=7, d_model=3)(torch.zeros(2, 5, 3)).shape
        torch.Size([2, 5, 3])
    """

    def __init__(self, max_len: int, d_model: int):
        super().__init__()
        check_sizes(max_len=max_len, d_model=d_model)
        self.weight = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.weight, std=0.02)

    def forward(
        self, x: Float[Tensor, "*batch seq d_model"], start: int = 0
    ) -> Float[Tensor, "*batch seq d_model"]:
        """Add the row of each position, the first of which is ``start``.

        Raises:
            TypeError: ``x`` has another number type than the table.
            ValueError: ``x`` is longer than the table, or of another width.
        """
        if checking():
            self._check(x, start)
        return x + self.weight[start : start + x.shape[-2]]

    def _check(self, x: Tensor, start: int) -> None:
        max_len, d_model = self.weight.shape
        check_float("x", x, axes="seq, d_model", width=d_model)
        check_like("x", x, "the table of positions", self.weight)
        stop = start + x.shape[-2]
        if stop > max_len:
            raise ValueError(
                f"x: expected at most max_len={max_len} positions, the rows "
                f"that were learned, got {stop}"
            )


class TokenEmbedding(nn.Module):
    """Look up one vector for each token, times √d_model.

    The rows have variance 1/d_model, so that the same table can score tokens
    at the output. √d_model brings what is looked up to variance 1, beside
    which the positions, of mean square 1/2, stay readable. Section 3.4 of
    Vaswani et al. (2017) multiplies, and gives no reason.

    Args:
        vocab_size: How many token ids there are.
        d_model: Width of a vector.

    Attributes:
        weight: The table, vocab_size × d_model.

    Example:
        >>> embed = TokenEmbedding(vocab_size=7, d_model=4)
        >>> torch.equal(embed(torch.tensor([5]))[0], 2 * embed.weight[5])
        True
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        check_sizes(vocab_size=vocab_size, d_model=d_model)
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(
        self, tokens: Int[Tensor, "*axes"]
    ) -> Float[Tensor, "*axes d_model"]:
        """The row of each token, times √d_model.

        Raises:
            TypeError: ``tokens`` is no tensor of integers.
            ValueError: an id is outside the vocabulary, or the devices differ.
        """
        if checking():
            check_device("tokens", tokens, self.weight)
            check_ids("tokens", tokens, len(self.weight))
        d_model = self.weight.shape[1]
        return F.embedding(tokens, self.weight) * math.sqrt(d_model)


def _widest(device: torch.device | str | None) -> torch.dtype:
    # Apple's accelerator knows no float64.
    kind = torch.empty(0, device=device).device.type
    return torch.float32 if kind == "mps" else torch.float64
