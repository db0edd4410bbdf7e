"""Adding positions to a batch of vectors, batch first.

Which positions is left open: sinusoidal, learned or any other table. Sizes are
2 sentences of 5 positions, and width 12.
"""

import math

import torch
import torch.nn.functional as F
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
from companion.contracts.engine.families import alone_as_in_the_batch
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, RISK
from companion.positions import sinusoidal

__all__ = ["ADD_POSITIONS"]

BATCH, SEQ, WIDTH = 2, 5, 12
BY_THE_BATCH = (
    "The table is indexed by the batch: all positions of sentence 0 get its "
    "row 0, those of sentence 1 its row 1. `x` is (batch, seq, d_model), so "
    "the length is `x.shape[1]`, and a row belongs to axis 1."
)


def arguments(seed: int, batch: int = BATCH, seq: int = SEQ) -> Tensor:
    """Draw vectors near 1."""
    return draw(batch, seq, WIDTH, seed=seed)


ADD_POSITIONS = Component(
    name="add_positions",
    signature="add_positions(x)",
    returns="`x` with positions (batch, seq, d_model)",
    axes=("position", "feature"),
    shape=lambda x: x.shape,
    cases=lambda: {"as it is": (arguments(2),)},
    in_place=(
        "It is right where nobody else reads `x`, as behind an embedding that "
        "has just made it."
    ),
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
    """Return what was added to ``x``."""
    return fn(x) - x


def by_the_batch(found: Tensor) -> bool:
    """Tell whether it is constant in a sentence, and differs between two."""
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


SCALED = (
    "It is √d_model, the paper's factor for embeddings: right here too, where "
    "the embedding does not scale as well."
)


@ADD_POSITIONS.contract
def whatever_stands_there(fn: Guarded) -> None:
    """What is added does not depend on what stands there."""
    x = arguments(3)
    plain, expected = added(fn, 0 * x), fn(x)
    stretched = ((expected - plain) * x).sum() / x.square().sum()
    why, scaled = "Something else happens to `x` than a sum.", False
    if furthest(expected, stretched * x + plain) is None:
        why = (
            f"`x` is multiplied by {number(stretched)}: whoever looks the "
            "vectors up scales them, this only adds."
        )
        scaled = math.isclose(stretched.item(), WIDTH**0.5, rel_tol=1e-4)
    try:
        same(fn, expected, x + plain, why)
    except Broken as broken:
        if scaled:
            broken.level, broken.why = NOTE, SCALED
        raise


FROM_THE_END = (
    "Positions are counted from the end: the last one always gets the same "
    "vector."
)
LAST = (
    "It is right where the last position is meant to be the first, as where a "
    "recommender looks back; what writes on moves all that it has read."
)


@ADD_POSITIONS.contract
@after(every_sentence)
def from_the_start(fn: Guarded) -> None:
    """A position gets the same vector, however long the sentence is."""
    whole = added(fn, torch.zeros(BATCH, 11, WIDTH))
    shorter = {n: added(fn, torch.zeros(BATCH, n, WIDTH)) for n in (1, 3, 7)}
    from_the_end = all(
        furthest(found, whole[:, -seq:]) is None
        for seq, found in shorter.items()
    )
    for seq, found in shorter.items():
        why = f"With {seq} positions instead of 11 the first ones change."
        try:
            same(fn, found, whole[:, :seq], why)
        except Broken:
            if from_the_end:
                raise Broken(FROM_THE_END, level=RISK, why=LAST) from None
            raise


ADD_POSITIONS.contract(
    after(every_sentence)(
        alone_as_in_the_batch(
            "It takes any number of sentences, more than positions too",
            lambda: (arguments(5, 13),),
            why="A sentence alone gets other positions than in a batch of 13.",
        )
    )
)


# Known mistakes


@ADD_POSITIONS.mistake(
    symptom="word order is lost; each place in the batch has a colour instead"
)
def indexed_by_the_batch(x):
    """All words of sentence 0 get position 0, those of sentence 1 get 1."""
    table = sinusoidal(64, x.shape[-1]).unsqueeze(1)  # For (seq, batch, d).
    return x + table[: x.size(0)]


@ADD_POSITIONS.mistake(
    symptom="a sentence means something else in another row of the batch"
)
def counts_on(x):
    """Counts all tokens of the batch, and does not begin again."""
    table = sinusoidal(x.shape[0] * x.shape[1], x.shape[2])
    return x + table.view(x.shape)


@ADD_POSITIONS.mistake(
    symptom="the dog bites the man and the man the dog: no difference"
)
def one_vector_for_all(x):
    """One row of the table is added everywhere."""
    return x + sinusoidal(64, x.shape[-1])[5]


@ADD_POSITIONS.mistake(
    symptom="the first words of a sentence change when words follow them"
)
def fraction_of_the_length(x):
    """Positions run from 0 to 1, so a step means less in a long sentence."""
    return x + torch.linspace(0, 1, x.shape[1]).unsqueeze(-1)


@ADD_POSITIONS.mistake(
    symptom="one more word at the end, and all words before it move",
    level=RISK,
    why=LAST,
)
def counted_from_the_end(x):
    """The last word is position 0."""
    return x + sinusoidal(x.shape[1], x.shape[2]).flip(0)


@ADD_POSITIONS.mistake(
    symptom="the loss stays where guessing by the place in the text gets it"
)
def token_replaced(x):
    """The positions stand in for the word vectors, and not beside them."""
    return sinusoidal(x.shape[1], x.shape[2]).expand_as(x).clone() + 0 * x


@ADD_POSITIONS.mistake(
    symptom="where the embedding scales too, positions drown in the words"
)
def scaled_again(x):
    """√d_model once more, which the embedding has seen to."""
    return x * x.shape[-1] ** 0.5 + sinusoidal(x.shape[1], x.shape[2])


@ADD_POSITIONS.mistake(
    symptom="a second look at the same vectors finds positions added twice"
)
def added_in_place(x):
    """`+=`: the caller's vectors change, and the next call adds once more."""
    x += sinusoidal(x.shape[1], x.shape[2])
    return x


@ADD_POSITIONS.mistake(
    symptom="the same sentence is answered otherwise each time"
)
def dropout_left_on(x):
    """`F.dropout` is on unless it is told that training is over."""
    return F.dropout(x + sinusoidal(x.shape[1], x.shape[2]), 0.5)
