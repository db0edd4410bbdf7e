"""Masks: who may look at whom, here and in other libraries.

A mask is boolean, **True = may attend**, and broadcasts to
``(batch, head, query, key)``. Words for axes, in the code and the tests:
    batch   sequences
    seq     tokens of one sequence, whether they ask or are asked
    query   positions that ask
    key     positions that are asked
    src     tokens of the source, tgt those of the target
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Integer
from torch import Tensor

from companion.checks import (
    check_int,
    check_sizes,
    check_tokens,
    checked_by,
    checking,
)

__all__ = ["Masks", "causal_mask", "combine_masks", "padding_mask"]


class Masks(NamedTuple):
    """Hold one mask for each place of attention in a Transformer.

    Example:
        >>> tokens = torch.tensor([[5, 7, 0]])
        >>> masks = combine_masks(tokens, tokens, pad=0)
        >>> [tuple(mask.shape) for mask in masks]
        [(1, 1, 1, 3), (1, 1, 3, 3), (1, 1, 1, 3)]
    """

    src: Bool[Tensor, "batch 1 1 src"]
    """For the encoder: every source token sees all real source tokens."""
    tgt: Bool[Tensor, "batch 1 tgt tgt"]
    """For the decoder: a token sees itself and the real tokens before it."""
    cross: Bool[Tensor, "batch 1 1 src"]
    """From decoder to encoder: all real source tokens may be seen."""


def causal_mask(
    length: int, *, device: torch.device | str | None = None
) -> Bool[Tensor, "length length"]:
    """Position i may see the positions up to and including i.

    Section 3.2.3 of Vaswani et al. (2017). The diagonal is True: a decoder's
    input is shifted right, so position i holds the token before the one that
    it predicts.

    Raises:
        TypeError: ``length`` is not an int.
        ValueError: ``length`` is less than 1.
    """
    if checking():
        check_sizes(length=length)
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def padding_mask(
    tokens: Integer[Tensor, "batch seq"], pad: int
) -> Bool[Tensor, "batch 1 1 seq"]:
    """True where a token is real, as a row of keys that every query shares.

    It hides keys, not queries: a padded position still computes something,
    which the loss must leave out.

    Raises:
        TypeError: ``tokens`` is not a tensor of integers; ``pad`` is no int.
        ValueError: ``tokens`` is not (batch, seq), or is empty.
    """
    if checking():
        check_tokens(tokens, "tokens")
        check_int(pad=pad)
    return (tokens != pad)[:, None, None, :]


def check_pairs(src_tokens: Tensor, tgt_tokens: Tensor, pad: int) -> None:
    """Refuse what is not a batch of sources, each with its target.

    Raises:
        TypeError, ValueError: as ``combine_masks``.
    """
    check_tokens(src_tokens, "src_tokens")
    check_tokens(tgt_tokens, "tgt_tokens")
    check_int(pad=pad)
    src, tgt = src_tokens, tgt_tokens
    if len(src) != len(tgt) or src.device != tgt.device:
        raise ValueError(
            "tgt_tokens: expected one target for each source, "
            f"{tuple(src.shape)} on {src.device}, got {tuple(tgt.shape)} on "
            f"{tgt.device}"
        )


@checked_by(check_pairs)
def combine_masks(
    src_tokens: Integer[Tensor, "batch src"],
    tgt_tokens: Integer[Tensor, "batch tgt"],
    pad: int,
) -> Masks:
    """The three masks of a Transformer: what is allowed by all reasons at once.

    ``tgt_tokens`` are what the decoder reads, so the target shifted right.
    Section 3.2.3 of Vaswani et al. (2017), and padding.

    Raises:
        TypeError: tokens are not tensors of integers; ``pad`` is no int.
        ValueError: tokens are not (batch, seq), or empty; source and target
            differ in their batch or their device.
    """
    src, tgt = padding_mask(src_tokens, pad), padding_mask(tgt_tokens, pad)
    causal = causal_mask(tgt.shape[-1], device=tgt.device)
    return Masks(src=src, tgt=tgt & causal, cross=src)
