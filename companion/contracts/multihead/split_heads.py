"""Splitting heads: consecutive columns, position by position.

Sizes are prime and differ: 2 sentences of 5 positions, 3 heads of width 7.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, after, draw, place, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.universal import recognised_mistake

__all__ = ["SPLIT_HEADS"]

BATCH, SEQ, HEADS, HEAD_DIM = 2, 5, 3, 7
WIDTH = HEADS * HEAD_DIM


def arguments(seed: int, batch: int = BATCH, seq: int = SEQ) -> Tensor:
    """Draw vectors wide enough for three heads."""
    return draw(batch, seq, WIDTH, seed=seed)


def oracle(x: Tensor, num_heads: int) -> Tensor:
    """Put the pieces of ``torch.chunk`` on an axis of their own."""
    return torch.stack(x.chunk(num_heads, -1), 1)


def shape(x: Tensor, num_heads: int) -> tuple[int, ...]:
    """Return the shape of what is right: (batch, head, seq, head_dim)."""
    batch, seq, width = x.shape
    return batch, num_heads, seq, width // num_heads


def axes(*order: int):
    """Return the shape whose axes are those of ``shape`` in another order."""
    return lambda x, num_heads: tuple(shape(x, num_heads)[i] for i in order)


SPLIT_HEADS = Component(
    name="split_heads",
    signature="split_heads(x, num_heads)",
    returns="the heads (batch, head, seq, head_dim)",
    axes=("head", "position", "column"),
    shape=shape,
    oracle=oracle,
    reference="torch.chunk",
    cases=lambda: {
        "for 3 heads of width 7": (arguments(2), HEADS),
        "for 7 heads of width 3": (arguments(3), HEAD_DIM),
        # Where sizes are equal, exchanged axes show their numbers.
        "for 3 positions and 3 heads of width 3": (draw(2, 3, 9, seed=5), 3),
    },
    shape_hints={
        "The heads stand behind the positions: transpose these two axes, so "
        "that attention compares positions.": axes(0, 2, 1, 3),
        "Position and column are swapped within each head.": axes(0, 1, 3, 2),
        "The batch must stay first.": axes(1, 0, 2, 3),
        "The heads have lost their axis: one head keeps an axis of size 1.": (
            lambda x, h: x.shape
        ),
        "Batch and heads must be two axes.": (
            lambda x, h: (len(x) * h, x.shape[1], x.shape[2] // h)
        ),
        "Has each head all columns? It gets d_model // num_heads of them.": (
            lambda x, h: (len(x), h, *x.shape[1:])
        ),
    },
)


@SPLIT_HEADS.before_reference
def lands(fn: Guarded) -> None:
    """Every number lands in its own head and at its own position."""
    x = torch.arange(1.0 * BATCH * SEQ * WIDTH).view(BATCH, SEQ, WIDTH)
    got, expected = fn(x, HEADS), oracle(x, HEADS)
    wrong = (got - expected).abs() > 0.1
    if wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        known = recognised_mistake(fn)
        why = known[0] if known else ""
        stands, belongs = origin(got[index]), origin(expected[index])
        where = place(index, fn.component.axes).capitalize()
        message = f"{where} holds {stands}, and not {belongs}. {why}".rstrip()
        axes = ("position", "column")
        raise Broken(message, got, expected, axes, why, index)


def origin(number: Tensor) -> str:
    """Tell where in ``x`` the number of ``lands`` stood."""
    whole = int(number.round())
    if not 0 <= whole < BATCH * SEQ * WIDTH:
        return f"{number:.4g}, which is nowhere in `x`"
    rest, column = divmod(whole, WIDTH)
    batch, position = divmod(rest, SEQ)
    return f"`x[{batch}, {position}, {column}]`"


@SPLIT_HEADS.contract
@after(lands)
def one_head(fn: Guarded) -> None:
    """One head is the whole vector."""
    x = arguments(13)
    why = "With one head there is nothing to split."
    same(fn, fn(x, 1), x.unsqueeze(1), why)


@SPLIT_HEADS.contract
@after(lands)
def any_size(fn: Guarded) -> None:
    """It takes any batch, any length and any number of heads that divides."""
    for batch, seq, heads in ((1, 1, 3), (1, 11, 7), (3, 2, 21), (7, 7, 1)):
        x = arguments(17, batch, seq)
        why = (
            f"With {batch} sentences of {seq} positions and {heads} heads it "
            "is not what torch.chunk cuts."
        )
        same(fn, fn(x, heads), oracle(x, heads), why)


# Known mistakes, in the order in which they are recognised


@SPLIT_HEADS.mistake(
    hint="A `view` straight to (batch, head, seq, head_dim) only cuts memory "
    "anew, and mixes positions with heads: view to (batch, seq, head, "
    "head_dim), then transpose.",
    symptom="it trains, worse than one head: each head reads a few words only",
)
def viewed_straight(x, num_heads):
    """One `view` to the right shape: a head gets positions, not columns."""
    return x.reshape(shape(x, num_heads))


@SPLIT_HEADS.mistake(
    hint="Head 0 takes every num_heads-th column: the columns of a head stand "
    "side by side, so in the view the heads come before head_dim.",
    symptom="trains well; weights of another library give nonsense in it",
)
def every_third_column(x, num_heads):
    """The two sizes of the `view` changed places: heads are dealt out."""
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


@SPLIT_HEADS.mistake(
    hint="The transpose comes before the view: it must swap seq and head, "
    "which are axes of their own only after the view.",
    symptom="words and features change places, and no head makes sense",
)
def transposed_too_early(x, num_heads):
    """Transposed first and viewed then, to the same shape."""
    return x.mT.reshape(shape(x, num_heads))


SPLIT_HEADS.mistake(
    "transposed-within-the-heads",
    hint="The transpose swaps the wrong axes, head and head_dim: after the "
    "view it is seq and head that change places, `.transpose(1, 2)`.",
)(
    lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).mT.reshape(
        shape(x, num_heads)
    )
)


@SPLIT_HEADS.mistake(
    hint="The axes are read as (seq, batch, d_model): here the batch is first.",
    symptom="sentences of one batch read each other",
)
def batch_and_heads_mixed(x, num_heads):
    """Splits as if the positions came first: batch and heads are mixed."""
    batch, seq, d_model = x.shape
    heads = x.reshape(seq, batch * num_heads, d_model // num_heads)
    return heads.transpose(0, 1).reshape(batch, num_heads, seq, -1)


SPLIT_HEADS.mistake(
    "first-columns-only", hint="Every head gets the columns of head 0."
)(lambda x, num_heads: oracle(x, num_heads)[:, :1].expand(shape(x, num_heads)))
SPLIT_HEADS.mistake("reversed", hint="The heads are in reverse order.")(
    lambda x, num_heads: oracle(x, num_heads).flip(1)
)
