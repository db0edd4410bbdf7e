"""The whole Transformer: what reads, what writes, and what joins them.

config          the sizes of a model, checked before anything is allocated
layers          the decoder layer, the encoder's stack and the decoder's
model           tokens in, logits out; and the shift that teacher forcing needs
language_model  one stack that continues a sequence
"""

from companion.transformer.config import (
    LanguageModelConfig,
    StackConfig,
    TransformerConfig,
)
from companion.transformer.language_model import CausalModel, LanguageModel
from companion.transformer.layers import Decoder, DecoderLayer, Encoder
from companion.transformer.model import (
    EncoderDecoder,
    Maps,
    Transformer,
    shift_right,
)

__all__ = [
    "CausalModel",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "LanguageModel",
    "LanguageModelConfig",
    "Maps",
    "StackConfig",
    "Transformer",
    "TransformerConfig",
    "shift_right",
]
