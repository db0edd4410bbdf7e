"""What is tried on attention, and the known ways to get it wrong.

Sizes are prime and differ: 2 batch elements, 3 queries, 5 keys, d_k = 11 and
d_v = 7. Scores stay near 1, where a softmax shows a wrong scale.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import draw
from companion.contracts.engine.masking import (
    PATCHY,
    WRONGLY_MASKED,
    causal,
)


def qkv(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values."""
    return (
        draw(2, 3, 11, seed=seed),
        draw(2, 5, 11, seed=seed + 100),
        draw(2, 5, 7, seed=seed + 200),
    )


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    # Where all sizes are equal, swapped arguments and axes show their numbers.
    square = tuple(draw(2, 5, 5, seed=s) for s in (3, 5, 7))
    return {
        "without a mask": qkv(2),
        "with a causal mask": (*square, causal(5)),
        "with a mask": (*qkv(11), PATCHY),
    }


def scaled(q: Tensor, k: Tensor) -> Tensor:
    """The scores as they should be."""
    return q @ k.mT / math.sqrt(q.shape[-1])


def plain(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention as it should be."""
    return F.scaled_dot_product_attention(q, k, v, mask)


def with_scale(scale):
    """Attention whose scores are multiplied by ``scale(q, k, v)``."""

    def suspect(q, k, v, mask=None):
        correction = scale(q, k, v) * math.sqrt(q.shape[-1])
        return plain(q * correction, k, v, mask)

    return suspect


def with_weights(weigh):
    """Attention without a mask whose weights are ``weigh(q, k)``."""

    def suspect(q, k, v, mask=None):
        if mask is not None:
            raise RuntimeError("this mistake shows without a mask")
        return weigh(q, k) @ v

    return suspect


def with_mask(weigh):
    """Attention whose masked softmax is ``weigh(scores, mask)``."""

    def suspect(q, k, v, mask=None):
        if mask is None:
            return plain(q, k, v, mask)
        return weigh(scaled(q, k), mask) @ v

    return suspect


SUSPECTS = {
    "The scores are not scaled: divide them by √d_k before the softmax.": (
        with_scale(lambda q, k, v: 1)
    ),
    "The scores are divided by d_k: divide them by its square root.": (
        with_scale(lambda q, k, v: 1 / q.shape[-1])
    ),
    "The scores are multiplied by √d_k: divide them by it.": (
        with_scale(lambda q, k, v: math.sqrt(q.shape[-1]))
    ),
    "The scores are divided by √d_v: what counts is the width of a key, d_k.": (
        with_scale(lambda q, k, v: v.shape[-1] ** -0.5)
    ),
    "The scores are divided by the root of the number of keys: what counts is "
    "their width, d_k.": with_scale(lambda q, k, v: k.shape[-2] ** -0.5),
    "The scores are divided by the root of the number of queries: what counts "
    "is their width, d_k.": with_scale(lambda q, k, v: q.shape[-2] ** -0.5),
    "The softmax runs over the queries: it belongs over the keys, `dim=-1`.": (
        with_weights(lambda q, k: scaled(q, k).softmax(-2))
    ),
    "The softmax runs over the batch: it belongs over the keys, `dim=-1`.": (
        with_weights(lambda q, k: scaled(q, k).softmax(0))
    ),
    "There is no softmax: the weights of a row must sum to 1.": (
        with_weights(scaled)
    ),
    "The scale comes after the softmax: divide the scores before it.": (
        with_weights(
            lambda q, k: (q @ k.mT).softmax(-1) / math.sqrt(q.shape[-1])
        )
    ),
    "This is a sigmoid of each score: a softmax weighs keys against each "
    "other.": with_weights(lambda q, k: scaled(q, k).sigmoid()),
    "Every key gets the same weight: the scores do not arrive.": (
        with_weights(lambda q, k: torch.zeros_like(scaled(q, k)).softmax(-1))
    ),
    "The future is hidden although no mask was given.": (
        with_weights(
            lambda q, k: (
                scaled(q, k)
                .masked_fill(~causal(k.shape[-2])[: q.shape[-2]], -torch.inf)
                .softmax(-1)
            )
        )
    ),
    "k and v are swapped: the query meets the keys, and the weights meet the "
    "values.": lambda q, k, v, mask=None: plain(q, v, k, mask),
    "q and k are swapped: the scores are q kᵀ, one row for each query.": (
        lambda q, k, v, mask=None: plain(k, q, v, mask)
    ),
    "k is not transposed: the scores are q kᵀ, `q @ k.mT`.": (
        lambda q, k, v, mask=None: plain(q, k.mT, v, mask)
    ),
    **{hint: with_mask(wrong) for hint, wrong in WRONGLY_MASKED.items()},
}
"""Hint -> the mistake it hints at."""
