"""Dot-product alignment: which positions a decoder looks at.

Sizes are prime and differ: 2 sentences of 5 positions, vectors of width 7.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import draw
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    batch_independence,
    equivariance,
    half_precision,
    large_scores_stay_finite,
    no_weight_is_negative,
    part_as_in_the_whole,
    require_factor,
    rows_sum_to_one,
)
from companion.contracts.engine.guard import Guarded

__all__ = ["ALIGNMENT"]


def arguments(
    seed: int, batch: int = 2, seq: int = 5, d: int = 7
) -> tuple[Tensor, Tensor]:
    """Draw a query and keys whose dot products stay near 1."""
    query = draw(batch, d, seed=seed) / d**0.25
    return query, draw(batch, seq, d, seed=seed + 100) / d**0.25


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    return {
        "for 2 sentences of 5 positions": arguments(2),
        # Where both are equal, exchanged axes show their numbers.
        "for 3 sentences of 3 positions": arguments(3, batch=3, seq=3),
    }


def scores(query: Tensor, keys: Tensor) -> Tensor:
    """Multiply each sentence's query with each of its keys."""
    return torch.bmm(keys, query.unsqueeze(-1)).squeeze(-1)


def oracle(query: Tensor, keys: Tensor) -> Tensor:
    """Compute what is right, by PyTorch's own functions."""
    return F.softmax(scores(query, keys), dim=-1)


ALIGNMENT = Component(
    name="alignment",
    signature="alignment(query, keys)",
    returns="the weights (batch, seq)",
    axes=("batch", "position"),
    shape=lambda query, keys: keys.shape[:2],
    oracle=oracle,
    reference="F.softmax of torch.bmm(keys, query)",
    cases=cases,
    shape_hints={
        "Is this the context, the weighted sum of the keys? Return the "
        "weights.": lambda query, keys: query.shape,
        "Every query met the keys of every sentence: keep the batch apart.": (
            lambda query, keys: (len(query), *keys.shape[:2])
        ),
    },
)
ORDER = torch.tensor([3, 0, 4, 2, 1], device="cpu")

ALIGNMENT.contract(rows_sum_to_one(lambda: arguments(5)))
ALIGNMENT.contract(no_weight_is_negative(lambda: arguments(7)))


@ALIGNMENT.contract
def plain_dot_product(fn: Guarded) -> None:
    """The score is the plain dot product, whatever the width is."""
    for d in (2, 7, 64):
        query = draw(1, d, seed=11)
        # The dot products are 1 and 0.
        keys = torch.stack([query / (query**2).sum(), 0 * query], dim=1)
        require_factor(fn(query, keys)[0], 1.0, f"d = {d}")


ALIGNMENT.contract(
    equivariance(
        "Reordering the keys reorders the weights",
        lambda: arguments(13),
        lambda query, keys: (query, keys[:, ORDER]),
        lambda weights: weights[:, ORDER],
        why="A weight depends on where its key stands.",
    )
)
ALIGNMENT.contract(
    batch_independence(
        "One sentence does not touch another",
        lambda: arguments(17),
        lambda query, keys: (
            torch.cat([query[:1] + 1, query[1:]]),
            torch.cat([keys[:1].flip(1) - 1, keys[1:]]),
        ),
        why="over which axis does the softmax run?",
    )
)
ALIGNMENT.contract(
    equivariance(
        "Adding the same vector to every key changes nothing",
        lambda: arguments(19),
        lambda query, keys: (query, keys + draw(7, seed=23)),
        why="It adds the same to all scores of a row: only differences count.",
    )
)
ALIGNMENT.contract(
    part_as_in_the_whole(
        "It takes any length and any number of sentences, 1 included",
        lambda: arguments(29, batch=3, seq=11),
        lambda batch, seq, query, keys: (query[:batch], keys[:batch, :seq]),
        lambda part: part / part.sum(-1, keepdim=True),
        why="The first {seq} positions of the first {batch} sentences, taken "
        "alone, share the weight in another way than in the whole.",
    )
)


def far() -> tuple[Tensor, Tensor]:
    """Return a query and keys with scores of ±10⁴."""
    query, keys = torch.zeros(2, 7), torch.zeros(2, 5, 7)
    query[:, 0] = 1
    keys[0, :, 0] = torch.tensor([1e4, 5e3, -1e4, 1e4, 0])
    keys[1, :, 0] = -1e4
    return query, keys


ALIGNMENT.contract(large_scores_stay_finite(far))
ALIGNMENT.contract(half_precision(lambda: arguments(31)))


# Known mistakes, in the order in which they are recognised

ALIGNMENT.mistake(
    "scores-only", hint="There is no softmax: these are the scores."
)(scores)
ALIGNMENT.mistake(
    "scaled",
    hint="The scores are divided by √d: this alignment takes the plain dot "
    "product.",
)(lambda query, keys: oracle(query / query.shape[-1] ** 0.5, keys))


@ALIGNMENT.mistake(
    hint="The softmax runs over the batch: it belongs over the positions, "
    "`dim=-1`.",
    symptom="in a batch of one every position gets weight 1",
)
def over_the_batch(query, keys):
    """`dim=0`: sentences share one weight for each position."""
    return scores(query, keys).softmax(0)


ALIGNMENT.mistake(
    "sigmoid",
    hint="This is a sigmoid of each score: a softmax weighs positions against "
    "each other.",
)(lambda query, keys: scores(query, keys).sigmoid())


@ALIGNMENT.mistake(
    hint="The lengths are divided out (a cosine): take the plain dot product.",
    symptom="no position ever gets more than a little more than the others",
)
def cosine(query, keys):
    """A cosine, which ends at 1, for the dot product."""
    return torch.cosine_similarity(query[:, None], keys, dim=-1).softmax(-1)


ALIGNMENT.mistake(
    "turned-round",
    hint="The sign is turned round: the key most like the query is to get "
    "most.",
)(lambda query, keys: oracle(-query, keys))


@ALIGNMENT.mistake(
    hint="Scores divided by their sum may be negative: use the softmax."
)
def shares(query, keys):
    """Each score is divided by the sum of all."""
    parts = scores(query, keys)
    return parts / parts.sum(-1, keepdim=True)


ALIGNMENT.mistake(
    "uniform",
    hint="Every position gets the same weight: the query is not used.",
)(lambda query, keys: 0 * keys[..., 0] + 1 / keys.shape[1])


@ALIGNMENT.mistake(
    hint="Every sentence is asked with the query of sentence 0.",
    symptom="right in a batch of one, and every sentence asks the same in two",
)
def first_query_for_all(query, keys):
    """An index too many: all sentences are asked with the first query."""
    return torch.softmax(keys @ query[0], dim=-1)


ALIGNMENT.mistake(
    "first-keys-for-all", hint="Every query meets the keys of sentence 0."
)(lambda query, keys: oracle(query, keys[:1].expand_as(keys)))
ALIGNMENT.mistake("logarithm", hint="This is the logarithm of the softmax.")(
    lambda query, keys: scores(query, keys).log_softmax(-1)
)
ALIGNMENT.mistake(
    "axes-exchanged",
    hint="The axes of batch and position are exchanged in the keys.",
)(lambda query, keys: oracle(query, keys.transpose(0, 1)))
ALIGNMENT.mistake(
    "averaged",
    hint="The products are not added up over the whole width: the score is "
    "(query * keys).sum(-1).",
)(lambda query, keys: (query.unsqueeze(1) * keys).mean(-1).softmax(-1))


@ALIGNMENT.mistake(
    symptom="training goes well for a while, then the loss is NaN for ever"
)
def naive_softmax(query, keys):
    """A softmax by hand, which overflows where scores are large."""
    parts = scores(query, keys).exp()
    return parts / parts.sum(-1, keepdim=True)
