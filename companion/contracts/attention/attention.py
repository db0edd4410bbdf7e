"""Contracts of scaled dot-product attention."""

import torch
import torch.nn.functional as F

from companion.contracts.attention.attention_cases import SUSPECTS, cases, qkv
from companion.contracts.attention.softmax import FAR, require_factor
from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    place,
    require_half_precision,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import (
    PATCHY,
    causal,
    fully_masked,
    require_attended,
    require_finite_gradients,
    require_hidden,
    require_zeros_in_row_one,
    some_mask,
    visible,
)

ATTENTION = Component(
    name="attention",
    signature="attention(q, k, v, mask=None)",
    returns="the output (..., query, d_v)",
    axes=("row", "feature"),
    shape=lambda q, k, v, mask=None: (*q.shape[:-1], v.shape[-1]),
    oracle=F.scaled_dot_product_attention,
    reference="F.scaled_dot_product_attention",
    cases=cases,
    suspects=SUSPECTS,
    shape_hints={
        "Are these the weights, before they meet the values?": (
            lambda q, k, v, mask=None: (*q.shape[:-1], k.shape[-2])
        ),
    },
)

COUNTED = (
    "The softmax still counts the hidden keys: put -∞ into their scores "
    "before it."
)


@ATTENTION.before_reference
def future(fn: Guarded) -> None:
    """With a causal mask no row sees its future."""
    args = (*(draw(2, 5, 7, seed=s) for s in (31, 37, 41)), causal(5))
    sees = visible(fn, args, 2)
    require_hidden(fn, sees, args, "which is in its future")


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
def allowed_is_heard(fn: Guarded) -> None:
    """Every key that the mask allows is heard."""
    q, k, v = qkv(43)
    # Small scores, so that no weight is too small to be noticed.
    require_attended(visible(fn, (q / 4, k, v, PATCHY), 2), PATCHY)


@ATTENTION.contract
def broadcasts(fn: Guarded) -> None:
    """A mask may be (1, key), (query, key) or (batch, 1, query, key)."""
    q = draw(2, 3, 5, 11, seed=47)
    k, v = draw(2, 3, 7, 11, seed=53), draw(2, 3, 7, 13, seed=59)
    for shape in ((1, 7), (5, 7), (2, 1, 5, 7)):
        mask = some_mask(*shape)
        why = f"A mask of shape {shape} is not spread over the scores."
        expected = fn(q, k, v, mask.expand(2, 3, 5, 7))
        same(fn, fn(q, k, v, mask), expected, why)


@ATTENTION.contract
def nobody_to_see(fn: Guarded) -> None:
    """A row that may attend to nothing gets zeros."""
    q, k, v = (x[0] for x in qkv(61))
    require_zeros_in_row_one(fn, fn.raw(q, k, v, fully_masked()), v.mean(0))


@ATTENTION.contract
def nobody_to_see_gradient(fn: Guarded) -> None:
    """A row that may attend to nothing has finite gradients."""
    require_finite_gradients(fn, *(x[0] for x in qkv(61)), fully_masked())


@ATTENTION.contract
def keys_are_a_set(fn: Guarded) -> None:
    """Reordering keys and values together changes nothing."""
    (q, k, v), order = qkv(67), torch.tensor([3, 0, 4, 2, 1])
    why = "Attention knows no order of the keys."
    same(fn, fn(q, k[:, order], v[:, order]), fn(q, k, v), why)


@ATTENTION.contract
def queries_are_apart(fn: Guarded) -> None:
    """Reordering the queries reorders the rows."""
    (q, k, v), order = qkv(71), torch.tensor([2, 0, 1])
    why = "What a row gets depends on where its query stands."
    same(fn, fn(q[:, order], k, v), fn(q, k, v)[:, order], why)


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


@ATTENTION.contract
def any_leading_axes(fn: Guarded) -> None:
    """It takes any number of axes before (query, d_k)."""
    for lead in ((), (2,), (2, 3), (2, 3, 2)):
        q = draw(*lead, 3, 11, seed=89)
        k, v = draw(*lead, 5, 11, seed=97), draw(*lead, 5, 7, seed=101)
        got = fn(q, k, v)
        why = (
            f"With {len(lead)} axes before (query, d_k) it is not what it is "
            "block by block."
        )
        blocks = [x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v)]
        each = [fn(*block) for block in zip(*blocks, strict=True)]
        same(fn, got, torch.cat(each).reshape(got.shape), why)


@ATTENTION.contract
def shift(fn: Guarded) -> None:
    """Adding the same vector to every key changes nothing."""
    q, k, v = qkv(103)
    why = "It adds the same to all scores of a row: only differences count."
    same(fn, fn(q, k + draw(11, seed=107), v), fn(q, k, v), why)


@ATTENTION.contract
def far_scores(fn: Guarded) -> None:
    """Scores of ±10⁴ give finite weights."""
    # Powers of 2 and √4 = 2 are exact, whatever is multiplied first.
    q = torch.tensor([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]])
    k = torch.zeros(5, 4)
    k[:, 0] = torch.tensor([1e4, 5e3, -1e4, 1e4, 0])
    v = draw(5, 7, seed=109)
    got, expected = fn.raw(q, k, v), F.scaled_dot_product_attention(q, k, v)
    finite(fn, got, FAR, expected)
    same(fn, got, expected, "Large scores are not told apart.")


@ATTENTION.contract
def however_large(fn: Guarded) -> None:
    """A hidden score of 10⁴ changes nothing."""
    q, k, v = torch.ones(3, 4), draw(5, 4, seed=131), draw(5, 7, seed=137)
    loud = k.clone()
    loud[1] = 5e3
    mask = torch.tensor([True, False, True, True, True]).expand(3, 5)
    why = (
        "The score of key 1 was 10⁴: is it -∞ before the softmax, or only "
        "wiped out after it?"
    )
    got, expected = fn.raw(q, loud, v, mask), fn(q, k, v, mask)
    finite(fn, got, why, expected)
    same(fn, got, expected, why)


@ATTENTION.contract
def half(fn: Guarded) -> None:
    """It works in half precision."""
    require_half_precision(fn, *qkv(113))
    require_half_precision(fn, *qkv(113), PATCHY)


@ATTENTION.contract
def transposed_views(fn: Guarded) -> None:
    """It takes tensors that are transposed views, as split heads are."""
    args = qkv(127)
    views = (x.mT.contiguous().mT for x in args)
    why = "The strides of the inputs matter."
    same(fn, fn(*views), fn(*args), why)
