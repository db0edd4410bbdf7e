"""Where a token stands, told to a network that sees a set.

absolute  added to the word vectors, once: sinusoidal, learned
relative  in the scores, by content and offset: Shaw, Transformer-XL
bias      in the scores, by offset alone: T5, ALiBi
rotary    queries and keys turned by their position: RoPE
"""

from companion.positions.absolute import (
    LearnedPositions,
    SinusoidalPositions,
    TokenEmbedding,
    frequencies,
    sinusoidal,
    sinusoids,
)
from companion.positions.bias import (
    T5Bias,
    alibi_bias,
    alibi_slopes,
    biased_attention,
    biased_weights,
    offsets,
    t5_bucket,
)
from companion.positions.relative import Shaw, TransformerXL, shift
from companion.positions.rotary import rotate, rotate_complex

__all__ = [
    "LearnedPositions",
    "Shaw",
    "SinusoidalPositions",
    "T5Bias",
    "TokenEmbedding",
    "TransformerXL",
    "alibi_bias",
    "alibi_slopes",
    "biased_attention",
    "biased_weights",
    "frequencies",
    "offsets",
    "rotate",
    "rotate_complex",
    "shift",
    "sinusoidal",
    "sinusoids",
    "t5_bucket",
]
