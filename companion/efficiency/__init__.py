"""What a model costs to run, and how it is made to cost less."""

from companion.efficiency.int8_cache import Int8Cache
from companion.efficiency.latent import LatentAttention
from companion.efficiency.paged import (
    BlockTables,
    PagedCache,
    Request,
    Served,
    serve,
    timeline,
)
from companion.efficiency.quantize import (
    Quantized,
    QuantizedLinear,
    integer_linear,
    pack_int4,
    quantize,
    quantize_linears,
    unpack_int4,
)
from companion.efficiency.shared_heads import shared_heads_attention
from companion.efficiency.speculative import (
    acceptance,
    expected_tokens,
    speculative_step,
)
from companion.efficiency.windows import WindowCache, window_mask

__all__ = [
    "BlockTables",
    "Int8Cache",
    "LatentAttention",
    "PagedCache",
    "Quantized",
    "QuantizedLinear",
    "Request",
    "Served",
    "WindowCache",
    "acceptance",
    "expected_tokens",
    "integer_linear",
    "pack_int4",
    "quantize",
    "quantize_linears",
    "serve",
    "shared_heads_attention",
    "speculative_step",
    "timeline",
    "unpack_int4",
    "window_mask",
]
