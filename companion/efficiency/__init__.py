"""What a model costs to run, and how it is made to cost less."""

from companion.efficiency.quantize import (
    Quantized,
    QuantizedLinear,
    integer_linear,
    pack_int4,
    quantize,
    quantize_linears,
    unpack_int4,
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
