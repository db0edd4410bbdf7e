"""Contracts of adding positions to a batch of vectors, batch first.

Which positions is left open: sinusoidal, learned or any other table. Sizes are
2 sentences of 5 positions, and width 12.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    after,
    draw,
    furthest,
    number,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded

BATCH, SEQ, WIDTH = 2, 5, 12
BY_THE_BATCH = (
    "The table is indexed by the batch: all positions of sentence 0 get its "
    "row 0, those of sentence 1 its row 1. `x` is (batch, seq, d_model), so "
    "the length is `x.shape[1]`, and a row belongs to axis 1."
)


def arguments(seed: int, batch: int = BATCH, seq: int = SEQ) -> Tensor:
    """Vectors near 1."""
    return draw(batch, seq, WIDTH, seed=seed)


ADD_POSITIONS = Component(
    name="add_positions",
    signature="add_positions(x)",
    returns="`x` with positions (batch, seq, d_model)",
    axes=("position", "feature"),
    shape=lambda x: x.shape,
    cases=lambda: {"as it is": (arguments(2),)},
    shape_hints={
        "Are these the positions alone? They are added to `x`.": (
            lambda x: x.shape[1:]
        ),
        "Are these the positions alone? They are added to each sentence.": (
            lambda x: (1, *x.shape[1:])
        ),
    },
)


def added(fn: Guarded, x: Tensor) -> Tensor:
    """What was added to ``x``."""
    return fn(x) - x


def by_the_batch(found: Tensor) -> bool:
    """Whether what was added is constant in a sentence, and differs between."""
    constant = furthest(found, found[:, :1].expand_as(found)) is None
    return constant and furthest(found[0], found[1]) is not None


@ADD_POSITIONS.before_reference
def every_sentence(fn: Guarded) -> None:
    """Every sentence gets the same positions."""
    found = added(fn, torch.zeros(BATCH, SEQ, WIDTH))
    index = furthest(found[1], found[0])
    if index is None:
        return
    why = "What is added depends on the sentence: is an axis mistaken?"
    if by_the_batch(found):
        why = BY_THE_BATCH
    elif furthest(found[1], torch.zeros_like(found[1])) is None:
        why = "Only sentence 0 gets positions: add them to the whole batch."
    raise Broken(
        f"At position {index[0]}, feature {index[1]} sentence 0 gets "
        f"{number(found[0][index])} and sentence 1 {number(found[1][index])}. "
        f"{why}",
        found[1],
        found[0],
        cause=why,
    )


@ADD_POSITIONS.before_reference
def no_two_alike(fn: Guarded) -> None:
    """No two positions get the same vector."""
    found = added(fn, torch.zeros(BATCH, 11, WIDTH))
    if by_the_batch(found):
        raise Broken(BY_THE_BATCH)
    apart = torch.cdist(found[0], found[0]) + torch.eye(11)
    if apart.min() < 1e-3:
        first, second = (apart < 1e-3).nonzero()[0].tolist()
        why = "Does the table move along axis 1, the positions?"
        if furthest(found, torch.zeros_like(found)) is None:
            why = "Nothing is added."
        elif (apart < 1e-3).sum() == 11 * 10:
            why = "All positions get the same vector, so order cannot be told."
        raise Broken(
            f"Positions {first} and {second} get the same vector. {why}",
            found[0],
        )


@ADD_POSITIONS.contract
def whatever_stands_there(fn: Guarded) -> None:
    """What is added does not depend on what stands there."""
    x = arguments(3)
    plain, expected = added(fn, 0 * x), fn(x)
    stretched = ((expected - plain) * x).sum() / x.square().sum()
    why = "Something else happens to `x` than a sum."
    if furthest(expected, stretched * x + plain) is None:
        why = (
            f"`x` is multiplied by {number(stretched)}: whoever looks the "
            "vectors up scales them, this only adds."
        )
    same(fn, expected, x + plain, why)


@ADD_POSITIONS.contract
@after(every_sentence)
def from_the_start(fn: Guarded) -> None:
    """A position gets the same vector, however long the sentence is."""
    whole = added(fn, torch.zeros(BATCH, 11, WIDTH))
    for seq in (1, 3, 7):
        why = f"With {seq} positions instead of 11 the first ones change."
        got = added(fn, torch.zeros(BATCH, seq, WIDTH))
        same(fn, got, whole[:, :seq], why)


@ADD_POSITIONS.contract
@after(every_sentence)
def any_batch(fn: Guarded) -> None:
    """It takes any number of sentences, more than positions too."""
    x = arguments(5, 13)
    why = "A sentence alone gets other positions than in a batch of 13."
    same(fn, fn(x), torch.cat([fn(one) for one in x.split(1)]), why)
