"""Weights in few bits: a small integer for each number, a scale for many.

    number ≈ scale · (integer - zero_point)

The numbers that share a scale are a group: a whole matrix, one row of it (one
output of a layer; the field says *channel*), or a few neighbours in a row. The
largest number of a group decides its scale, and the scale decides the error of
all others. So one outlier costs its whole group, and small groups are exact
and cost more scales.

Words for axes, the same in the book, the code and the tests:
    row     outputs of a layer, as in the weight of ``nn.Linear``
    column  its inputs
    group   neighbouring columns of a row that share a scale
    packed  bytes of a row, in which several integers may lie
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int8, UInt8
from torch import Tensor, nn

from companion.checks import (
    check_int,
    check_kind,
    check_states,
    check_switches,
    checking,
)

__all__ = [
    "Quantized",
    "QuantizedLinear",
    "integer_linear",
    "pack_int4",
    "quantize",
    "quantize_linears",
    "unpack_int4",
]


@dataclass(frozen=True, eq=False)
class Quantized:
    """Integers, and what turns them back into numbers.

    Attributes:
        integers: One for each number, within ``bits`` bits.
        scale: What one step of an integer is worth, for each group; (1, 1)
            for a whole matrix, (row, 1) for each row.
        zero_point: Which integer stands for 0, for each group; 0 everywhere
            if it is symmetric.
        bits: How many bits an integer has.

    Example:
        >>> stored = quantize(torch.tensor([[0.1, -0.3, 0.4, 0.7]]), 4)
        >>> stored.integers.tolist(), round(stored.scale.item(), 6)
        ([[1, -3, 4, 7]], 0.1)
        >>> stored.dequantize()
        tensor([[ 0.1000, -0.3000,  0.4000,  0.7000]])
    """

    integers: Int8[Tensor, "*row column"]
    scale: Float[Tensor, "*scale_row group"]
    zero_point: Int8[Tensor, "*scale_row group"]
    bits: int

    def dequantize(
        self, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "*row column"]:
        """Compute the numbers that the integers stand for.

        Args:
            dtype: Of what is returned, and computed with.

        Returns:
            A number for each integer.
        """
        groups = self.integers.unflatten(-1, (self.scale.shape[-1], -1))
        steps = groups.to(dtype) - self.zero_point.unsqueeze(-1).to(dtype)
        return (steps * self.scale.unsqueeze(-1).to(dtype)).flatten(-2)

    @property
    def symmetric(self) -> bool:
        """Whether 0 stands for 0 in each group."""
        return not self.zero_point.any()

    @property
    def nbytes(self) -> int:
        """How many bytes it takes: integers of up to 4 bits two a byte.

        Zero points count only if one of them is not 0.
        """
        rows = self.integers.numel() // self.integers.shape[-1]
        columns = self.integers.shape[-1]
        wide = columns if self.bits > 4 else (columns + 1) // 2
        zeros = 0 if self.symmetric else self.zero_point.nbytes
        return rows * wide + self.scale.nbytes + zeros

    @property
    def bits_per_number(self) -> float:
        """How many bits each number takes, its share of the scale included."""
        return 8 * self.nbytes / self.integers.numel()


def quantize(
    weight: Float[Tensor, "*row column"],
    bits: int,
    *,
    per: str | int = "row",
    symmetric: bool = True,
    scale_dtype: torch.dtype | None = None,
) -> Quantized:
    """Round numbers to integers of few bits, each group with a scale.

    Symmetric, the largest magnitude of a group becomes 2^(bits - 1) - 1, and
    the scale is magnitude / (2^(bits - 1) - 1). Otherwise the integers from
    -2^(bits - 1) to 2^(bits - 1) - 1 span from the smallest number of the group
    to the largest, or to 0 if that lies outside: 0 is always exact (Jacob et
    al., 2018, section 2.1).

    No number is off by more than half a scale, rounding in ``scale_dtype``
    aside.

    Args:
        weight: What to store; a vector is one row.
        bits: From 2 to 8.
        per: Who shares a scale: ``"tensor"``, ``"row"``, or how many
            neighbours of a row.
        symmetric: Whether 0 stands for 0; else each group has a zero point.
        scale_dtype: Of the scales, by default that of ``weight``. Integers
            are chosen for the scale as it is stored.

    Returns:
        The integers with their scales and zero points.

    Raises:
        TypeError: ``weight`` is not floating point, or an argument is of
            another kind.
        ValueError: ``weight`` is empty or not finite, ``bits`` are not from 2
            to 8, ``per`` is another word or does not divide the columns.

    Example:
        >>> with_outlier = torch.tensor([0.1, -0.3, 0.4, 0.7, 7.0])
        >>> quantize(with_outlier, 4).integers
        tensor([0, 0, 0, 1, 7], dtype=torch.int8)
    """
    groups = _grouped(weight, bits, per)
    check_switches(symmetric=symmetric)
    top, dtype = 2 ** (bits - 1) - 1, scale_dtype or weight.dtype
    if symmetric:
        scale = _stored_scale(groups.abs().amax(-1) / top, dtype)
        zero_point = torch.zeros_like(scale)
        bottom = -top
    else:
        bottom = -top - 1
        low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
        scale = _stored_scale((high - low) / (2**bits - 1), dtype)
        zero_point = (bottom - low / scale.to(low)).round().clamp(bottom, top)
    steps = (groups / scale.to(groups).unsqueeze(-1)).round()
    integers = (steps + zero_point.to(groups).unsqueeze(-1)).clamp(bottom, top)
    return Quantized(
        integers.to(torch.int8).reshape(weight.shape),
        scale,
        zero_point.to(torch.int8),
        bits,
    )


def pack_int4(
    integers: Int8[Tensor, "*row column"],
) -> UInt8[Tensor, "*row packed"]:
    """Lay two integers of four bits into each byte, the first in its low half.

    Args:
        integers: From -8 to 7. An odd row is filled up with a 0.

    Returns:
        Half as many bytes, rounded up.

    Raises:
        ValueError: an integer does not fit into four bits.

    Example:
        >>> pack_int4(torch.tensor([1, -3, 7], dtype=torch.int8)).tolist()
        [209, 7]
    """
    if integers.numel() and not -8 <= integers.min() <= integers.max() <= 7:
        raise ValueError(
            "integers: expected numbers from -8 to 7, got "
            f"{integers.min().item()} to {integers.max().item()}"
        )
    even = F.pad(integers, (0, integers.shape[-1] % 2)).to(torch.uint8)
    low, high = even.unflatten(-1, (-1, 2)).unbind(-1)
    # Two's complement: & 15 keeps the four bits, also of a negative number.
    return (low & 15) | (high << 4)


def unpack_int4(
    packed: UInt8[Tensor, "*row packed"], columns: int
) -> Int8[Tensor, "*row column"]:
    """Take the integers out again that ``pack_int4`` laid into bytes.

    Args:
        packed: Two integers a byte.
        columns: How many integers a row has.

    Returns:
        The integers, from -8 to 7.

    Raises:
        ValueError: so many do not lie in a row.

    Example:
        >>> unpack_int4(torch.tensor([209, 7], dtype=torch.uint8), 3).tolist()
        [1, -3, 7]
    """
    if (columns + 1) // 2 != packed.shape[-1]:
        raise ValueError(
            f"columns: expected 2 for each of {packed.shape[-1]} bytes, or one "
            f"less, got {columns}"
        )
    halves = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)
    # 8 … 15 are -8 … -1.
    return ((halves.to(torch.int8) ^ 8) - 8)[..., :columns]


class QuantizedLinear(nn.Module):
    """``nn.Linear`` whose weight is stored in integers.

    Each call computes the weight anew from its integers: that saves memory,
    and bytes to be read, where a kernel does it on the way. Here it is for
    its numbers and its size, and takes longer than ``nn.Linear``.

    Args:
        weight: What ``quantize`` returned for the weight of a layer.
        bias: Of that layer, as it is.

    Raises:
        ValueError: ``weight`` is no matrix.

    Example:
        >>> layer = nn.Linear(32, 5)
        >>> small = QuantizedLinear.of(layer, bits=4, per=16)
        >>> small.packed.shape, small(torch.ones(2, 32)).shape
        (torch.Size([5, 16]), torch.Size([2, 5]))
    """

    def __init__(
        self,
        weight: Quantized,
        bias: Float[Tensor, " row"] | None = None,
    ):
        super().__init__()
        if weight.integers.ndim != 2:
            raise ValueError(
                "weight: expected (row, column), got "
                f"{tuple(weight.integers.shape)}"
            )
        self.out_features, self.in_features = weight.integers.shape
        self.bits = weight.bits
        integers = weight.integers
        packed = pack_int4(integers) if self.bits <= 4 else integers
        self.register_buffer("packed", packed)
        self.register_buffer("scale", weight.scale)
        self.register_buffer("zero_point", weight.zero_point)
        self.register_buffer("bias", None if bias is None else bias.detach())

    @classmethod
    def of(
        cls,
        layer: nn.Linear,
        bits: int,
        *,
        per: str | int = "row",
        symmetric: bool = True,
    ) -> "QuantizedLinear":
        """Make one of a layer, which stays as it is.

        Args:
            layer: Any ``nn.Linear``.
            bits: As in ``quantize``.
            per: As in ``quantize``.
            symmetric: As in ``quantize``.

        Returns:
            A layer that computes nearly the same.

        Raises:
            TypeError: ``layer`` is no ``nn.Linear``.
            ValueError: as ``quantize``.
        """
        check_kind("layer", layer, nn.Linear)
        weight = layer.weight.detach()
        stored = quantize(weight, bits, per=per, symmetric=symmetric)
        return cls(stored, layer.bias)

    @property
    def quantized(self) -> Quantized:
        """The stored weight, as ``quantize`` returned it."""
        integers = self.packed
        if self.bits <= 4:
            integers = unpack_int4(integers, self.in_features)
        return Quantized(integers, self.scale, self.zero_point, self.bits)

    def forward(
        self, x: Float[Tensor, "*axes column"]
    ) -> Float[Tensor, "*axes row"]:
        """Compute what the layer would, with the rounded weight."""
        return F.linear(x, self.quantized.dequantize(x.dtype), self.bias)

    def extra_repr(self) -> str:
        """Describe the layer as ``nn.Linear`` does, and the bits."""
        return (
            f"in_features={self.in_features}, "
            f"out_features={self.out_features}, bits={self.bits}"
        )


def quantize_linears(
    model: nn.Module,
    bits: int,
    *,
    per: str | int = "row",
    symmetric: bool = True,
    skip: Iterable[str] = (),
) -> nn.Module:
    """Replace each linear layer of a model, in place, by one of few bits.

    Embeddings, norms and biases stay as they are.

    Args:
        model: Whose layers to replace; itself no ``nn.Linear``.
        bits: As in ``quantize``.
        per: As in ``quantize``.
        symmetric: As in ``quantize``.
        skip: Names of layers to leave, as ``named_modules`` has them.

    Returns:
        The same model.

    Raises:
        TypeError, ValueError: as ``quantize``.

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> quantize_linears(model, 8, skip=["2"])
        Sequential(
          (0): QuantizedLinear(in_features=4, out_features=8, bits=8)
          (1): ReLU()
          (2): Linear(in_features=8, out_features=2, bias=True)
        )
    """
    skip = set(skip)
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            full = f"{name}.{child_name}" if name else child_name
            if type(child) is nn.Linear and full not in skip:
                small = QuantizedLinear.of(
                    child, bits, per=per, symmetric=symmetric
                )
                setattr(module, child_name, small)
    return model


def integer_linear(
    x: Float[Tensor, "token column"],
    weight: Quantized,
    bits: int = 8,
) -> Float[Tensor, "token row"]:
    """Multiply in integers: the activations are rounded too, token by token.

    With one scale for a token and one for a row of the weight, both factors
    stand before the sum: y = scale_x · scale_w · Σ x_int · w_int. A scale for
    a group of columns could not be drawn out of the sum.

    Args:
        x: Activations, a row for each token.
        weight: Symmetric, with a scale for each row or one for all.
        bits: Of the activations.

    Returns:
        What ``nn.Linear`` without a bias computes, nearly.

    Raises:
        ValueError: ``weight`` has groups or zero points.

    Example:
        >>> weight = quantize(torch.tensor([[1.0, -1.0, 0.5]]), 8)
        >>> integer_linear(torch.tensor([[1.0, 1.0, 1.0]]), weight)
        tensor([[0.5039]])
    """
    if weight.scale.shape[-1] != 1 or not weight.symmetric:
        raise ValueError(
            "weight: expected one scale a row and no zero points, got "
            f"{weight.scale.shape[-1]} scales a row"
        )
    tokens = quantize(x, bits)
    # Sums of products of integers are exact in float64, on any device.
    sums = tokens.integers.double() @ weight.integers.double().mT
    factor = tokens.scale.double() * weight.scale.double().mT
    return (sums * factor).to(x.dtype)


def _grouped(
    weight: Tensor, bits: int, per: str | int
) -> Float[Tensor, "*row group size"]:
    """Refuse what cannot be quantised; view it as groups that share a scale."""
    check_states("weight", weight)
    check_int(bits=bits)
    # bfloat16 has eight bits itself: a quotient of two could be off by one.
    weight = weight.to(torch.promote_types(weight.dtype, torch.float32))
    if not 2 <= bits <= 8:
        raise ValueError(f"bits: expected from 2 to 8, got {bits}")
    if not weight.numel() or (checking() and not weight.isfinite().all()):
        raise ValueError(
            "weight: expected finite numbers, at least one, got "
            f"{tuple(weight.shape)}"
            + (" with NaN or ∞" if weight.numel() else "")
        )
    columns = weight.shape[-1]
    if per == "row":
        return weight.unsqueeze(-2)
    if per == "tensor":
        ones = [1] * max(weight.ndim - 1, 0)
        return weight.reshape(*ones, 1, -1)
    if isinstance(per, bool) or not isinstance(per, int):
        raise ValueError(
            'per: expected "tensor", "row" or how many columns share a '
            f"scale, got {per!r}"
        )
    if per < 1 or columns % per:
        raise ValueError(
            f"per: expected a size of groups that divides the {columns} "
            f"columns, got {per}"
        )
    return weight.unflatten(-1, (-1, per))


def _stored_scale(scale: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a scale to its own number type; 1 for a group of zeros."""
    scale = scale.to(dtype)
    return scale.masked_fill(scale == 0, 1)
