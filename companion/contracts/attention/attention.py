"""Scaled dot-product attention.

Sizes are prime and differ: 2 batch elements, 3 queries, 5 keys, d_k = 11 and
d_v = 7. Scores stay near 1, where a softmax shows a wrong scale.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.attention import masked_softmax, scaled_dot_product_attention
from companion.contracts.engine.compare import (
    Broken,
    draw,
    furthest,
    place,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    block_by_block,
    equivariance,
    fully_masked_row_gets_zeros,
    fully_masked_row_has_finite_gradients,
    future_hidden,
    half_precision,
    hidden_score_changes_nothing,
    large_scores_stay_finite,
    leading_axes,
    mask_broadcasts,
    require_factor,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import (
    MASK_HINTS,
    PATCHY,
    causal,
    fully_masked,
    require_attended,
    require_hidden,
    visible,
)

__all__ = ["ATTENTION", "UNSCALED", "right_scale"]


def qkv(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draw queries, keys and values."""
    return (
        draw(2, 3, 11, seed=seed),
        draw(2, 5, 11, seed=seed + 100),
        draw(2, 5, 7, seed=seed + 200),
    )


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    # Where all sizes are equal, swapped arguments and axes show their numbers.
    square = tuple(draw(2, 5, 5, seed=s) for s in (3, 5, 7))
    return {
        "without a mask": qkv(2),
        "with a causal mask": (*square, causal(5)),
        "with a mask": (*qkv(11), PATCHY),
    }


ATTENTION = Component(
    name="attention",
    signature="attention(q, k, v, mask=None)",
    returns="the output (..., query, d_v)",
    axes=("row", "feature"),
    shape=lambda q, k, v, mask=None: (*q.shape[:-1], v.shape[-1]),
    oracle=F.scaled_dot_product_attention,
    reference="F.scaled_dot_product_attention",
    cases=cases,
    shape_hints={
        "Are these the weights, before they meet the values?": (
            lambda q, k, v, mask=None: (*q.shape[:-1], k.shape[-2])
        )
    },
)

COUNTED = (
    "The softmax still counts the hidden keys: put -∞ into their scores "
    "before it."
)
KEYS = torch.tensor([3, 0, 4, 2, 1], device="cpu")
QUERIES = torch.tensor([2, 0, 1], device="cpu")

ATTENTION.before_reference(
    future_hidden(
        lambda: (*(draw(2, 5, 7, seed=s) for s in (31, 37, 41)), causal(5))
    )
)


@ATTENTION.before_reference
def no_leak(fn: Guarded) -> None:
    """A masked key cannot leak into any row."""
    args = (*qkv(29), PATCHY)
    for moved, what, why in ((2, "value", ""), (1, "score", COUNTED)):
        sees = visible(fn, args, moved)
        how = f"which the mask hides: changing its {what} moves the row"
        require_hidden(fn, sees, args, how, why)


@ATTENTION.contract
def weights_sum_to_one(fn: Guarded) -> None:
    """The weights of every row sum to 1."""
    q, k, v = qkv(13)
    got = fn(q, k, torch.ones_like(v))
    why = "The values are all 1, so the output is the sum of the weights."
    same(fn, got, torch.ones_like(got), why)


@ATTENTION.contract
def between_values(fn: Guarded) -> None:
    """The output lies between the smallest and the largest value."""
    q, k, v = qkv(17)
    got = fn(q, k, v)
    low, high = (x.expand_as(got) for x in (v.amin(-2, True), v.amax(-2, True)))
    why = "An average stays among what it averages: is a weight negative?"
    same(fn, got, got.clamp(low, high), why)


@ATTENTION.contract
def right_scale(fn: Guarded) -> None:
    """The scores are divided by √d_k, whatever d_k is."""
    for d_k in (2, 11, 64):
        q = draw(1, 1, d_k, seed=19)
        # The dot products are 1 and 0, and the values show the weights.
        k = torch.cat([q / (q * q).sum(), torch.zeros_like(q)], -2)
        weights = fn(q, k, torch.eye(2).unsqueeze(0))
        require_factor(weights[0, 0], d_k**-0.5, f"d_k = {d_k}")


@ATTENTION.contract
def allowed_is_attended(fn: Guarded) -> None:
    """Every key that the mask allows is heard."""
    q, k, v = qkv(43)
    # Small scores, so that no weight is too small to be noticed.
    require_attended(visible(fn, (q / 4, k, v, PATCHY), 2), PATCHY)


ATTENTION.contract(
    mask_broadcasts(
        "A mask may be (1, key), (query, key) or (batch, 1, query, key)",
        lambda: (
            draw(2, 3, 5, 11, seed=47),
            draw(2, 3, 7, 11, seed=53),
            draw(2, 3, 7, 13, seed=59),
        ),
        ((1, 7), (5, 7), (2, 1, 5, 7)),
        (2, 3, 5, 7),
    )
)
ATTENTION.contract(
    fully_masked_row_gets_zeros(
        lambda: (*(x[0] for x in qkv(61)), fully_masked()),
        lambda q, k, v, mask: v.mean(0),
    )
)
ATTENTION.contract(
    fully_masked_row_has_finite_gradients(
        lambda: (*(x[0] for x in qkv(61)), fully_masked())
    )
)
ATTENTION.contract(
    equivariance(
        "Reordering keys and values together changes nothing",
        lambda: qkv(67),
        lambda q, k, v: (q, k[:, KEYS], v[:, KEYS]),
        why="Attention knows no order of the keys.",
    )
)
ATTENTION.contract(
    equivariance(
        "Reordering the queries reorders the rows",
        lambda: qkv(71),
        lambda q, k, v: (q[:, QUERIES], k, v),
        lambda rows: rows[:, QUERIES],
        why="What a row gets depends on where its query stands.",
    )
)


@ATTENTION.contract
def blocks_apart(fn: Guarded) -> None:
    """One batch element or head does not touch another."""
    q = draw(2, 3, 5, 11, seed=73)
    k, v = draw(2, 3, 7, 11, seed=79), draw(2, 3, 7, 13, seed=83)
    before, expected = fn(q, k, v), fn(q, k, v)
    q, k, v = (x.clone() for x in (q, k, v))
    for x in (q, k, v):
        x[1, 2] += 1
    after = fn(q, k, v)
    expected[1, 2] = after[1, 2]
    index = furthest(after, expected)
    if index is not None:
        raise Broken(
            f"Only batch 1, head 2 was changed, and {place(index[:2], ())} "
            "moved: which axis do the softmax and the products run over?",
            after,
            before,
        )


ATTENTION.contract(
    leading_axes(
        "(query, d_k)",
        ((), (2,), (2, 3), (2, 3, 2)),
        lambda lead: (
            draw(*lead, 3, 11, seed=89),
            draw(*lead, 5, 11, seed=97),
            draw(*lead, 5, 7, seed=101),
        ),
        block_by_block(3),
    )
)
ATTENTION.contract(
    equivariance(
        "Adding the same vector to every key changes nothing",
        lambda: qkv(103),
        lambda q, k, v: (q, k + draw(11, seed=107), v),
        why="It adds the same to all scores of a row: only differences count.",
    )
)


def far() -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values with scores of ±10⁴."""
    # Powers of 2 and √4 = 2 are exact, whatever is multiplied first.
    q = torch.tensor([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]])
    k = torch.zeros(5, 4)
    k[:, 0] = torch.tensor([1e4, 5e3, -1e4, 1e4, 0])
    return q, k, draw(5, 7, seed=109)


def loud(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple:
    """Return the arguments, with a score of 10⁴ for key 1."""
    k = k.clone()
    k[..., 1, :] = 5e3
    return q, k, v, mask


ATTENTION.contract(large_scores_stay_finite(far))
ATTENTION.contract(
    hidden_score_changes_nothing(
        lambda: (
            torch.ones(3, 4),
            draw(5, 4, seed=131),
            draw(5, 7, seed=137),
            torch.tensor([True, False, True, True, True]).expand(3, 5),
        ),
        loud,
        "The score of key 1 was 10⁴: is it -∞ before the softmax, or only "
        "wiped out after it?",
    )
)
ATTENTION.contract(
    half_precision(lambda: qkv(113), lambda: (*qkv(113), PATCHY))
)
ATTENTION.contract(
    equivariance(
        "It takes tensors that are transposed views, as split heads are",
        lambda: qkv(127),
        lambda *args: (x.mT.contiguous().mT for x in args),
        why="The strides of the inputs matter.",
    )
)


# Known mistakes, in the order in which they are recognised


def attend(q, k, v, mask, *, scale=None, weigh=masked_softmax):
    """Attend with another scale, or another masked softmax."""
    scale = 1 / math.sqrt(k.shape[-1]) if scale is None else scale
    scores = q @ k.mT * scale
    return (scores.softmax(-1) if mask is None else weigh(scores, mask)) @ v


def scaled_by(scale):
    """Make attention whose scores are multiplied by ``scale(q, k, v)``."""
    return lambda q, k, v, mask=None: attend(
        q, k, v, mask, scale=scale(q, k, v)
    )


def with_weights(weigh):
    """Make attention with the weights ``weigh(scores, mask)``."""

    def attention(q, k, v, mask=None):
        scores = q @ k.mT / math.sqrt(k.shape[-1])
        seen = torch.ones_like(scores, dtype=torch.bool)
        return weigh(scores, seen if mask is None else mask) @ v

    return attention


UNSCALED = "The scores are not scaled: divide them by √d_k before the softmax."


@ATTENTION.mistake(
    hint=UNSCALED,
    symptom="attention is all or nothing from the start, and hardly learns",
)
def unscaled(q, k, v, mask=None):
    """√d_k is forgotten: scores spread as far as √d_k, the softmax is full."""
    return attend(q, k, v, mask, scale=1)


@ATTENTION.mistake(
    hint="The scores are divided by d_k: divide them by its square root.",
    symptom="attention stays almost uniform for thousands of steps",
)
def scaled_by_d_k(q, k, v, mask=None):
    """Divided by d_k and not by its root: all keys look alike."""
    return attend(q, k, v, mask, scale=1 / k.shape[-1])


ATTENTION.mistake(
    "multiplied", hint="The scores are multiplied by √d_k: divide them by it."
)(scaled_by(lambda q, k, v: math.sqrt(k.shape[-1])))
ATTENTION.mistake(
    "scaled-by-d-v",
    hint="The scores are divided by √d_v: what counts is the width of a key, "
    "d_k.",
)(scaled_by(lambda q, k, v: v.shape[-1] ** -0.5))
ATTENTION.mistake(
    "scaled-by-length",
    hint="The scores are divided by the root of the number of keys: what "
    "counts is their width, d_k.",
)(scaled_by(lambda q, k, v: k.shape[-2] ** -0.5))
ATTENTION.mistake(
    "scaled-by-the-number-of-queries",
    hint="The scores are divided by the root of the number of queries: what "
    "counts is their width, d_k.",
)(scaled_by(lambda q, k, v: q.shape[-2] ** -0.5))


@ATTENTION.mistake(
    hint=MASK_HINTS["over-the-queries"],
    symptom="rows differ in size; keys compete for queries, not the reverse",
)
def over_the_queries(q, k, v, mask=None):
    """The softmax runs over the queries: columns sum to 1, rows do not."""
    scores = q @ k.mT / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(q.dtype).min)
    return scores.softmax(-2) @ v


@ATTENTION.mistake(
    hint="The softmax runs over the batch: it belongs over the keys, `dim=-1`."
)
def over_the_batch(q, k, v, mask=None):
    """`dim=0`, where there is no mask."""
    scores = q @ k.mT / math.sqrt(k.shape[-1])
    if mask is not None:
        return masked_softmax(scores, mask) @ v
    return scores.softmax(0) @ v


ATTENTION.mistake(
    "no-softmax",
    hint="There is no softmax: the weights of a row must sum to 1.",
)(with_weights(lambda scores, mask: scores * mask))


@ATTENTION.mistake(
    hint="The scale comes after the softmax: divide the scores before it.",
    symptom="the output of a layer is √d_k times too small, its maps too hard",
)
def scaled_late(q, k, v, mask=None):
    """Divides the weights by √d_k, and not the scores."""
    return attend(q, k, v, mask, scale=1) / math.sqrt(k.shape[-1])


ATTENTION.mistake(
    "sigmoid",
    hint="This is a sigmoid of each score: a softmax weighs keys against each "
    "other.",
)(with_weights(lambda scores, mask: scores.sigmoid() * mask))
ATTENTION.mistake(
    "uniform", hint="Every key gets the same weight: the scores do not arrive."
)(scaled_by(lambda q, k, v: 0))


@ATTENTION.mistake(
    hint="The future is hidden although no mask was given.",
    symptom="an encoder which never learns what stands to the right",
)
def always_causal(q, k, v, mask=None):
    """Hides the future without being asked, in the encoder too."""
    past = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    mask = past if mask is None else mask & past
    return scaled_dot_product_attention(q, k, v, mask)


ATTENTION.mistake(
    "k-and-v-swapped",
    hint="k and v are swapped: the query meets the keys, and the weights meet "
    "the values.",
)(lambda q, k, v, mask=None: attend(q, v, k, mask))
ATTENTION.mistake(
    "q-and-k-swapped",
    hint="q and k are swapped: the scores are q kᵀ, one row for each query.",
)(lambda q, k, v, mask=None: attend(k, q, v, mask))
ATTENTION.mistake(
    "not-transposed",
    hint="k is not transposed: the scores are q kᵀ, `q @ k.mT`.",
)(lambda q, k, v, mask=None: attend(q, k.mT, v, mask))


@ATTENTION.mistake(
    hint=MASK_HINTS["upside-down"],
    symptom="the loss falls below what the data allow, and it writes nonsense",
)
def upside_down(q, k, v, mask=None):
    """Made as True = hidden, used as True = may attend: it sees the rest."""
    return attend(q, k, v, None if mask is None else ~mask)


@ATTENTION.mistake(
    hint=MASK_HINTS["transposed"],
    symptom="the loss is near 0 within minutes; the text repeats itself",
)
def transposed(q, k, v, mask=None):
    """Rows and columns of a square mask change places."""
    if mask is not None and mask.shape[-1] == mask.shape[-2]:
        mask = mask.mT
    return attend(q, k, v, mask)


@ATTENTION.mistake(
    hint=MASK_HINTS["unused"],
    symptom="next to no loss in training, and nonsense when it must write",
)
def unused(q, k, v, mask=None):
    """The mask is taken, and passed on to nobody."""
    return attend(q, k, v, None)


@ATTENTION.mistake(
    hint=MASK_HINTS["multiplied-afterwards"],
    symptom="early words get small vectors, for most of their row is hidden",
)
def multiplied_afterwards(q, k, v, mask=None):
    """The mask wipes weights out after the softmax has shared them out."""
    return attend(q, k, v, mask, weigh=lambda s, m: s.softmax(-1) * m)


@ATTENTION.mistake(
    hint=MASK_HINTS["filled-with-zero"],
    symptom="padding takes its share of every row, and the future leaks",
)
def hidden_before_the_scores(q, k, v, mask=None):
    """Wipes hidden keys out before the product: their score is then 0."""
    if mask is None:
        return attend(q, k, v, mask)
    keys = k.unsqueeze(-3) * mask.unsqueeze(-1)
    scores = (q.unsqueeze(-2) * keys).sum(-1) / math.sqrt(k.shape[-1])
    return scores.softmax(-1) @ v


@ATTENTION.mistake(
    hint=MASK_HINTS["added"],
    symptom="as if there were no mask: the loss is far too good",
)
def added(q, k, v, mask=None):
    """A mask of 0 and 1 is added to the scores: it hides nothing."""
    mask = None if mask is None else mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, mask)


@ATTENTION.mistake(
    symptom="the same sentence is translated otherwise each time"
)
def dropout_left_on(q, k, v, mask=None):
    """`dropout_p` is passed on without asking whether this is training."""
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.5)


@ATTENTION.mistake(
    symptom="works for weeks, and stops with an error once autocast is on"
)
def minus_a_billion(q, k, v, mask=None):
    """Hidden scores become -1e9, a number that float16 does not have."""

    def weigh(scores, mask):
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)
        return weights.masked_fill(~mask, 0)

    return attend(q, k, v, mask, weigh=weigh)


@ATTENTION.mistake(
    symptom="a sentence of padding alone still answers, with a mean"
)
def uniform_in_empty_rows(q, k, v, mask=None):
    """A query that may look at nobody looks at everybody alike."""

    def weigh(scores, mask):
        return scores.masked_fill(~mask, torch.finfo(q.dtype).min).softmax(-1)

    return attend(q, k, v, mask, weigh=weigh)
