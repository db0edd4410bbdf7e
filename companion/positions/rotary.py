"""Positions as rotations of queries and keys (RoPE).

Words for axes, the same in the book, the code and the tests:
    seq   positions in a sequence
    d     width of a query or a key, an even number
    pair  two neighbouring dimensions, 2i and 2i + 1, turned by one angle
A leading ``...`` is any number of batch-like axes, for example ``batch head``.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.checks import check_float, check_numbers, checking
from companion.positions.absolute import frequencies

__all__ = ["rotate", "rotate_complex"]

Positions = Float[Tensor, " seq"] | Int[Tensor, " seq"]


def rotate(
    x: Float[Tensor, "... seq d"], positions: Positions
) -> Float[Tensor, "... seq d"]:
    """Turns pair i of the vector at position p by the angle ``p · θ_i``.

    ``θ_i = 10000^(-2i / d)``, and a pair is the dimensions 2i and 2i + 1.
    Apply it to queries and to keys: their dot product then depends on how far
    apart the two are, and not on where. Equation 34 of Su et al. (2021).

    Raises:
        TypeError: ``x`` is not floating point, ``positions`` are no numbers.
        ValueError: ``d`` is odd; there is not one position for each vector.
    """
    angles = _angles(x, positions)
    cos, sin = angles.cos().to(_wide(x)), angles.sin().to(_wide(x))
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = [even * cos - odd * sin, even * sin + odd * cos]
    return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)


def rotate_complex(
    x: Float[Tensor, "... seq d"], positions: Positions
) -> Float[Tensor, "... seq d"]:
    """The same as ``rotate``: a pair is one complex number, times e^(i·angle).

    Section 3.4.1 of Su et al. (2021) derives it in this form.

    Raises:
        TypeError, ValueError: as ``rotate``.
    """
    angles = _angles(x, positions)
    turn = torch.polar(torch.ones_like(angles), angles)  # seq pair
    pairs = x.to(_wide(x)).unflatten(-1, (-1, 2)).contiguous()
    pairs = torch.view_as_complex(pairs)
    # The angle is rounded after its sine, as in `rotate`, and not before.
    turned = pairs * turn.to(pairs.dtype)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def _wide(x: Tensor) -> torch.dtype:
    """A complex half is experimental in PyTorch, and loses the angle."""
    return torch.promote_types(x.dtype, torch.float32)


def _angles(x: Tensor, positions: Tensor) -> Tensor:
    """The angle of each position and pair, in the widest float there is."""
    if checking():
        _check_turn(x, positions)
    rate = frequencies(x.shape[-1], device=x.device)
    return positions.to(rate.dtype).unsqueeze(-1) * rate


def _check_turn(x: Tensor, positions: Tensor) -> None:
    check_float("x", x, axes="seq, d", width=None)
    seq, d = x.shape[-2:]
    if d % 2 or not d:
        raise ValueError(f"x: expected an even width to pair, got {d}")
    check_numbers("positions", positions)
    if positions.shape != (seq,):
        raise ValueError(
            f"positions: expected shape ({seq},), one for each vector of x, "
            f"got {tuple(positions.shape)}"
        )
    if positions.device != x.device:
        raise ValueError(
            f"positions: expected device {x.device}, where x is, "
            f"got {positions.device}"
        )
