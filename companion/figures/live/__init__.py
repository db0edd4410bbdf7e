"""Figures for people with a kernel: they run the package itself."""

from companion.extras import extra

with extra("figures"):
    import ipywidgets  # noqa: F401
    import matplotlib  # noqa: F401

from companion.figures.live.first import (
    try_attention,
    try_gradients,
    type_a_sentence,
)
from companion.figures.live.masking import try_masking
from companion.figures.live.model import try_norms, try_sizes
from companion.figures.live.parts import try_heads, try_masks, try_positions
from companion.figures.live.rounding import try_rounding
from companion.figures.live.tokens import try_tokens
from companion.figures.live.trained import try_schedule, try_translation
from companion.figures.live.widget import Live

__all__ = [
    "Live",
    "try_attention",
    "try_gradients",
    "try_heads",
    "try_masking",
    "try_masks",
    "try_norms",
    "try_positions",
    "try_rounding",
    "try_schedule",
    "try_sizes",
    "try_tokens",
    "try_translation",
    "type_a_sentence",
]
