"""What is tried on multi-head attention, and who sees whom if it goes wrong.

Sizes are 2 sentences of 5 positions, and width 12, which 2, 3, 4 and 6 heads
divide.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import TOLERANCE, draw
from companion.contracts.engine.masking import causal

BATCH, SEQ, WIDTH = 2, 5, 12
EYE = torch.eye(SEQ, dtype=torch.bool, device="cpu")


def arguments(seed: int, seq: int = SEQ) -> Tensor:
    """Vectors near 1, in 2 sentences."""
    return draw(BATCH, seq, WIDTH, seed=seed)


def padding(*lengths: int, seq: int = SEQ) -> Tensor:
    """(batch, 1, 1, seq): True where a sentence has a word."""
    return (torch.arange(seq) < torch.tensor(lengths)[:, None])[:, None, None]


def fully_masked() -> Tensor:
    """A mask (seq, seq) with which row 1 may see nothing."""
    mask = causal(SEQ)
    mask[1] = False
    return mask


MISTAKEN = {
    "The mask is upside down: True means may attend.": lambda may: ~may,
    "The mask is transposed: its rows are the queries, its last axis the "
    "keys.": lambda may: may.mT,
    "Every sentence gets the mask of the first.": (
        lambda may: may[:1].expand_as(may)
    ),
    "Sentences get each other's mask: where batch and heads are one axis, the "
    "mask needs `repeat_interleave`, not `repeat`.": (
        lambda may: may | may.flip(0)
    ),
}
"""Hint -> who would then see whom."""


def allowed(mask: Tensor) -> Tensor:
    """Who may see whom in each sentence: (batch, row, key)."""
    four = mask[(None,) * (4 - mask.ndim)]
    return four.expand(BATCH, 1, SEQ, SEQ)[:, 0]


def looks_like(seen: Tensor, may: Tensor) -> bool:
    """Whether rows move as if ``may`` were the mask, as far as that is known.

    What a row with nobody to see does differs from softmax to softmax. A row
    also moves with its own query, unless all weight is on one key.
    """
    keys = may.sum(-1, keepdim=True)
    known = (may | ~EYE | (keys == 1)) & (keys > 0)
    return torch.equal(seen[known], may[known])


def deaf_alike(rows: Tensor, may: Tensor) -> bool:
    """Whether rows that may see nobody are the same in each sentence.

    Zeros, NaN or equal weights over all: none of them has a say.
    """
    deaf = ~may.any(-1)
    pairs = zip(rows.detach(), deaf, strict=True)
    return all(
        torch.allclose(
            row[none], row[none][:1], TOLERANCE, TOLERANCE, equal_nan=True
        )
        for row, none in pairs
        if none.any()
    )
