"""The causal mask: a position sees itself and what came before."""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, OtherNumbers, kind
from companion.contracts.engine.masking import causal
from companion.contracts.engine.universal import recognised_mistake

__all__ = ["CAUSAL_MASK", "boolean"]

LENGTH = 5
ADDED = (
    "0 and -∞ are for libraries that add the mask to the scores. Here a mask "
    "is boolean, True = may attend; `adapters.causal_from_added` makes it so."
)
ONES = "Compare, or end with `.bool()`."


def boolean(fn: Guarded, result: object, args: tuple) -> Tensor:
    """Return the result, if it is a boolean tensor."""
    if isinstance(result, Tensor) and result.dtype != torch.bool:
        # Masks of ±∞ may hold NaN too: 0 · ∞ is a way to make one.
        large = not ((result == 0) | (result == 1)).all()
        raise OtherNumbers(
            f"It returned {kind(result)}: expected bool. "
            f"{ADDED if large else ONES}"
        )
    fn.require_tensor(result, args)
    return result


def read(fn: Guarded, result: object, args: tuple) -> Tensor:
    """Return the mask (length, length), without axes of size 1 before it."""
    mask = boolean(fn, result, args)
    if mask.ndim > 2 and set(mask.shape[:-2]) == {1}:
        mask = mask[(0,) * (mask.ndim - 2)]
    fn.require_shape(mask, args)
    return mask


CAUSAL_MASK = Component(
    name="causal_mask",
    signature="causal_mask(length)",
    returns="a boolean mask (length, length), True = may attend",
    axes=("query", "key"),
    shape=lambda length: (length, length),
    dtype=torch.bool,
    read=read,
    oracle=causal,
    reference="torch.tril",
    cases=lambda: {f"for length {n}": (n,) for n in (LENGTH, 2, 7)},
    shape_hints={
        "Each query needs a row of its own.": lambda length: (length,)
    },
)


def require_none(fn: Guarded, wrong: Tensor, sees: str, where: str) -> None:
    """Raise Broken at the first True of ``wrong``."""
    if wrong.any():
        query, key = wrong.nonzero()[0].tolist()
        known = recognised_mistake(fn)
        why = known[0] if known else ""
        place = f"Position {query} {sees} position {key}, {where}."
        message = f"{place} {why}".rstrip()
        raise Broken(message, fn(LENGTH), causal(LENGTH), cause=why)


@CAUSAL_MASK.before_reference
def future(fn: Guarded) -> None:
    """No position sees its future."""
    wrong = fn(LENGTH) & ~causal(LENGTH)
    require_none(fn, wrong, "sees", "which is in its future")


@CAUSAL_MASK.before_reference
def itself(fn: Guarded) -> None:
    """Every position sees itself."""
    wrong = torch.eye(LENGTH, dtype=torch.bool) & ~fn(LENGTH)
    require_none(fn, wrong, "does not see", "which is itself")


@CAUSAL_MASK.before_reference
def past(fn: Guarded) -> None:
    """Every position sees its whole past."""
    wrong = causal(LENGTH).tril(-1) & ~fn(LENGTH)
    require_none(fn, wrong, "does not see", "which is in its past")


@CAUSAL_MASK.contract
def any_length(fn: Guarded) -> None:
    """It takes any length, 1 included."""
    for length in (1, 3, 11, 101):
        why = f"For length {length} it is not what torch.tril gives."
        same(fn, fn(length), causal(length), why)


# Known mistakes, in the order in which they are recognised


@CAUSAL_MASK.mistake(
    hint="It is upside down: True means may attend here, and hidden in "
    "`nn.Transformer`.",
    symptom="all the weight lies on the future, and the last row, which has "
    "none, looks at everything alike",
)
def marks_what_is_hidden(length):
    """True means hidden where it is made, and may attend where it is used."""
    return ~causal(length)


@CAUSAL_MASK.mistake(
    hint="The triangle is transposed: rows are queries, so the past is below "
    "the diagonal, `tril`.",
    symptom="the loss falls to nearly 0 in minutes, and what it writes is one "
    "sentence over and over",
)
def transposed_triangle(length):
    """Rows and columns changed places: every position sees its future, and
    nothing of its past."""
    return causal(length).mT


@CAUSAL_MASK.mistake(
    hint="The diagonal is missing: a position sees itself. Position 0 would "
    "see nobody.",
    symptom="row 0 sees nobody and becomes NaN, or the mean of everything",
)
def hides_itself(length):
    """Strictly earlier positions only, as if a word might not know itself."""
    return causal(length).tril(-1)


@CAUSAL_MASK.mistake(
    hint="It is off by one: a position sees the next one, which it is to "
    "predict.",
    symptom="the loss is near 0, as each row reads the token it is to predict",
)
def sees_the_next_one_too(length):
    """The diagonal is counted from 1: one token of the future is seen."""
    return torch.ones(length, length, dtype=torch.bool).tril(1)


CAUSAL_MASK.mistake("hides-nothing", hint="It hides nothing.")(
    lambda length: causal(length) | True
)
CAUSAL_MASK.mistake("hides-everything", hint="It hides everything.")(
    lambda length: causal(length) & False
)
CAUSAL_MASK.mistake("only-itself", hint="Each position sees itself only.")(
    lambda length: torch.eye(length, dtype=torch.bool)
)


@CAUSAL_MASK.mistake(
    hint="The triangle is mirrored: row 0 sees key 0, not the last one.",
    symptom="early rows see only the end of the sentence, and the loss is too "
    "good",
)
def mirrored_triangle(length):
    """Row 0 sees the last key, and each row one more from the right."""
    return causal(length).flip(-1)


@CAUSAL_MASK.mistake(
    symptom="it writes well, and forgets who the sentence was about"
)
def remembers_three_words(length):
    """A band instead of a triangle: a position sees three words, itself among
    them."""
    return causal(length).triu(-2)


@CAUSAL_MASK.mistake(
    symptom="all is well until the first text that is longer than the table"
)
def begins_anew_after_64(length):
    """Places come from a table of 64, and start again at its end."""
    place = torch.arange(length) % 64
    return place[None] <= place[:, None]
