"""Masks: who may look at whom, here and in other libraries.

A mask is boolean, **True = may attend**, and broadcasts to
``(batch, head, query, key)``. ``build`` makes the three of a Transformer,
``rosetta`` translates to and from what other libraries mean by a mask.
"""

from companion.masks.build import (
    Masks,
    causal_mask,
    combine_masks,
    padding_mask,
)
from companion.masks.rosetta import (
    from_additive,
    from_lengths,
    from_ones,
    from_torch_padding,
    to_additive,
    to_keras,
    to_lengths,
    to_ones,
    to_torch_attention,
    to_torch_padding,
    to_torch_transformer,
)

__all__ = [
    "Masks",
    "causal_mask",
    "combine_masks",
    "from_additive",
    "from_lengths",
    "from_ones",
    "from_torch_padding",
    "padding_mask",
    "to_additive",
    "to_keras",
    "to_lengths",
    "to_ones",
    "to_torch_attention",
    "to_torch_padding",
    "to_torch_transformer",
]
