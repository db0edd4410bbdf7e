"""Contracts of dot-product alignment: which positions a decoder looks at.

Sizes are prime and differ: 2 sentences of 5 positions, vectors of width 7.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.attention.softmax import (
    FAR,
    none_negative,
    require_factor,
    rows_sum_to_one,
)
from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded


def arguments(
    seed: int, batch: int = 2, seq: int = 5, d: int = 7
) -> tuple[Tensor, Tensor]:
    """A query and keys whose dot products stay near 1."""
    query = draw(batch, d, seed=seed) / d**0.25
    return query, draw(batch, seq, d, seed=seed + 100) / d**0.25


def cases() -> dict[str, tuple]:
    """What a function and the oracle must agree on."""
    return {
        "for 2 sentences of 5 positions": arguments(2),
        # Where both are equal, exchanged axes show their numbers.
        "for 3 sentences of 3 positions": arguments(3, batch=3, seq=3),
    }


def scores(query: Tensor, keys: Tensor) -> Tensor:
    """The dot product of each sentence's query with each of its keys."""
    return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)


def oracle(query: Tensor, keys: Tensor) -> Tensor:
    """What is right, by PyTorch's own functions."""
    return F.softmax(scores(query, keys), dim=-1)


SUSPECTS = {
    "There is no softmax: these are the scores.": scores,
    "The scores are divided by √d: this alignment takes the plain dot "
    "product.": lambda query, keys: oracle(
        query / math.sqrt(query.shape[-1]), keys
    ),
    "The softmax runs over the batch: it belongs over the positions, "
    "`dim=-1`.": lambda query, keys: scores(query, keys).softmax(0),
    "This is a sigmoid of each score: a softmax weighs positions against each "
    "other.": lambda query, keys: scores(query, keys).sigmoid(),
    "The lengths are divided out (a cosine): take the plain dot product.": (
        lambda query, keys: oracle(
            F.normalize(query, dim=-1), F.normalize(keys, dim=-1)
        )
    ),
    "The sign is turned round: the key most like the query is to get most.": (
        lambda query, keys: oracle(-query, keys)
    ),
    "Scores divided by their sum may be negative: use the softmax.": (
        lambda query, keys: (
            scores(query, keys) / scores(query, keys).sum(-1, keepdim=True)
        )
    ),
    "Every position gets the same weight: the query is not used.": (
        lambda query, keys: 0 * keys[..., 0] + 1 / keys.shape[1]
    ),
    "Every sentence is asked with the query of sentence 0.": (
        lambda query, keys: oracle(query[:1].expand_as(query), keys)
    ),
    "Every query meets the keys of sentence 0.": (
        lambda query, keys: oracle(query, keys[:1].expand_as(keys))
    ),
    "This is the logarithm of the softmax.": (
        lambda query, keys: oracle(query, keys).log()
    ),
    "The axes of batch and position are exchanged in the keys.": (
        lambda query, keys: oracle(query, keys.transpose(0, 1))
    ),
    "The products are not added up over the whole width: the score is "
    "(query * keys).sum(-1).": lambda query, keys: (
        (query.unsqueeze(1) * keys).mean(-1).softmax(-1)
    ),
}

ALIGNMENT = Component(
    name="alignment",
    signature="alignment(query, keys)",
    returns="the weights (batch, seq)",
    axes=("batch", "position"),
    shape=lambda query, keys: keys.shape[:2],
    oracle=oracle,
    reference="F.softmax of torch.bmm(keys, query)",
    cases=cases,
    suspects=SUSPECTS,
    shape_hints={
        "Is this the context, the weighted sum of the keys? Return the "
        "weights.": lambda query, keys: query.shape,
        "Every query met the keys of every sentence: keep the batch apart.": (
            lambda query, keys: (len(query), *keys.shape[:2])
        ),
    },
)


@ALIGNMENT.contract
def sums_to_one(fn: Guarded) -> None:
    """Every row sums to 1."""
    rows_sum_to_one(fn, fn(*arguments(5)))


@ALIGNMENT.contract
def not_negative(fn: Guarded) -> None:
    """No weight is negative."""
    none_negative(fn, fn(*arguments(7)))


@ALIGNMENT.contract
def plain_dot_product(fn: Guarded) -> None:
    """The score is the plain dot product, whatever the width is."""
    for d in (2, 7, 64):
        query = draw(1, d, seed=11)
        # The dot products are 1 and 0.
        keys = torch.stack([query / (query**2).sum(), 0 * query], dim=1)
        require_factor(fn(query, keys)[0], 1.0, f"d = {d}")


@ALIGNMENT.contract
def keys_are_a_set(fn: Guarded) -> None:
    """Reordering the keys reorders the weights."""
    (query, keys), order = arguments(13), torch.tensor([3, 0, 4, 2, 1])
    why = "A weight depends on where its key stands."
    expected = fn(query, keys)[:, order]
    same(fn, fn(query, keys[:, order]), expected, why)


@ALIGNMENT.contract
def batch_apart(fn: Guarded) -> None:
    """One sentence does not touch another."""
    query, keys = arguments(17)
    before = fn(query, keys)
    query[0], keys[0] = query[0] + 1, keys[0].flip(0) - 1
    after = fn(query, keys)
    if furthest(after[1], before[1]) is not None:
        raise Broken(
            "Only sentence 0 was changed, and sentence 1 moved: over which "
            "axis does the softmax run?",
            after,
            before,
        )


@ALIGNMENT.contract
def shift(fn: Guarded) -> None:
    """Adding the same vector to every key changes nothing."""
    query, keys = arguments(19)
    why = "It adds the same to all scores of a row: only differences count."
    moved = keys + draw(7, seed=23)
    same(fn, fn(query, moved), fn(query, keys), why)


@ALIGNMENT.contract
def any_size(fn: Guarded) -> None:
    """It takes any length and any number of sentences, 1 included."""
    query, keys = arguments(29, batch=3, seq=11)
    weights = fn(query, keys)
    for batch, seq in ((3, 1), (1, 11), (1, 1), (2, 5)):
        why = (
            f"The first {seq} positions of the first {batch} sentences, taken "
            "alone, share the weight in another way than in the whole."
        )
        got = fn(query[:batch], keys[:batch, :seq])
        part = weights[:batch, :seq]
        same(fn, got, part / part.sum(-1, keepdim=True), why)


@ALIGNMENT.contract
def far_scores(fn: Guarded) -> None:
    """Scores of ±10⁴ give finite weights."""
    query, keys = torch.zeros(2, 7), torch.zeros(2, 5, 7)
    query[:, 0] = 1
    keys[0, :, 0] = torch.tensor([1e4, 5e3, -1e4, 1e4, 0])
    keys[1, :, 0] = -1e4
    got, expected = fn.raw(query, keys), oracle(query, keys)
    finite(fn, got, FAR, expected)
    same(fn, got, expected, "Large scores are not told apart.")


@ALIGNMENT.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    require_half_precision(fn, *arguments(31))
