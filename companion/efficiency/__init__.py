"""What a model costs to run, and how it is made to cost less.

Words, the same in the book, the code and the tests:
    operations  multiplications and additions, each of which counts as one
    bytes       what is read from memory and written to it
    prefill     reading a prompt: all its positions go through at once
    decoding    writing: one position a step
    context     positions that a new one attends to, itself among them
    block       neighbouring queries or keys that are handled together
    tile        the scores of a block of queries with a block of keys
"""

from companion.efficiency.flash import (
    flash_attention,
    kept_for_backward,
    split_attention,
)
from companion.efficiency.int8_cache import Int8Cache
from companion.efficiency.latent import LatentAttention
from companion.efficiency.online_softmax import (
    Running,
    merge,
    online_attention,
    online_softmax,
    running,
)
from companion.efficiency.paged import (
    BlockTables,
    PagedCache,
    PagedLists,
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
from companion.efficiency.roofline import (
    Machine,
    Sizes,
    Work,
    decoding_work,
    measure_machine,
    prefill_work,
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
    "Machine",
    "PagedCache",
    "PagedLists",
    "Quantized",
    "QuantizedLinear",
    "Request",
    "Running",
    "Served",
    "Sizes",
    "WindowCache",
    "Work",
    "acceptance",
    "decoding_work",
    "expected_tokens",
    "flash_attention",
    "integer_linear",
    "kept_for_backward",
    "measure_machine",
    "merge",
    "online_attention",
    "online_softmax",
    "pack_int4",
    "prefill_work",
    "quantize",
    "quantize_linears",
    "running",
    "serve",
    "shared_heads_attention",
    "speculative_step",
    "split_attention",
    "timeline",
    "unpack_int4",
    "window_mask",
]
