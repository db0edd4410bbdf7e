"""Contracts of the padding mask: no query sees padding, wherever it stands.

What counts is the mask spread to (batch, 1, query, key): (batch, 1, 1, seq) is
right, and so is the same row written out for every query.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, place, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import causal
from companion.contracts.engine.universal import recognised_mistake
from companion.contracts.masks.causal_mask import boolean

BATCH, SEQ = 2, 5
WRITTEN_OUT = (
    "It is written out for {} heads, and fits no other number of them: an axis "
    "of size 1 broadcasts to any."
)


def ended() -> Tensor:
    """Two sentences with 0 as padding behind them."""
    return torch.tensor([[5, 3, 8, 0, 0], [2, 9, 4, 6, 0]])


def opened() -> Tensor:
    """Two sentences with 3 as padding before them; 0 is a word."""
    return torch.tensor([[3, 3, 4, 0, 2], [3, 1, 8, 7, 5]])


def square() -> Tensor:
    """As many sentences as positions: a wrong axis fits in silence."""
    return torch.tensor([[4, 2, 0], [7, 0, 0], [3, 5, 1]])


def oracle(tokens: Tensor, pad: int) -> Tensor:
    """Every query sees the keys that are not padding."""
    return over_keys(tokens != pad)


def over_keys(real: Tensor) -> Tensor:
    """(batch, 1, seq, seq): key j may be seen where ``real`` is True."""
    return real[:, None, None, :].expand(-1, 1, real.shape[-1], -1)


def over_queries(real: Tensor) -> Tensor:
    """(batch, 1, seq, seq): query i may see where ``real`` is True."""
    return over_keys(real).mT


def counted(real: Tensor) -> Tensor:
    """As many leading keys as there are real ones."""
    return torch.arange(real.shape[-1]) < real.sum(-1, keepdim=True)


def spread(
    fn: Guarded, mask: Tensor, shape: tuple[int, ...], name: str, why: str
) -> Tensor:
    """``mask`` as it broadcasts to ``shape``, (batch, 1, query, key).

    Raises Broken with ``why`` where it does not.
    """
    got = tuple(mask.shape)
    sizes = zip(got, shape, strict=True) if len(got) == 4 else [(0, 1)]
    wrong = [i for i, (n, wanted) in enumerate(sizes) if n not in (1, wanted)]
    if wrong:
        if wrong == [1] and got[3] > 1:
            why = WRITTEN_OUT.format(got[1])
        raise Broken(
            f"{name} shape {got}: expected one that broadcasts to "
            f"(batch, head, query, key), here to {shape}. {why}".rstrip()
        )
    return mask.expand(shape)


def read(fn: Guarded, result: object, args: tuple) -> Tensor:
    """The mask, spread to (batch, 1, seq, seq)."""
    mask, (tokens, _) = boolean(fn, result, args), args
    batch, seq = tokens.shape
    why = fn.lookalike(tuple(mask.shape), args)
    return spread(fn, mask, (batch, 1, seq, seq), "It returned", why)


PADDING_MASK = Component(
    name="padding_mask",
    signature="padding_mask(tokens, pad)",
    returns="a boolean mask (batch, 1, 1, seq), True = a real token",
    axes=("query", "key"),
    shape=lambda tokens, pad: (len(tokens), 1, 1, tokens.shape[-1]),
    dtype=torch.bool,
    read=read,
    oracle=oracle,
    reference="`tokens != pad`, seen by every query,",
    agrees="It agrees with tokens != pad",
    cases=lambda: {
        "with padding behind": (ended(), 0),
        "with padding before, and another pad": (opened(), 3),
        "for as many sentences as positions": (square(), 0),
    },
    shape_hints={
        "(batch, seq) is read as (query, key): sentence 1 would mask query 1. "
        "Add two axes, `[:, None, None, :]`.": lambda tokens, pad: tokens.shape,
        "(batch, 1, seq) is read as (head, query, key): sentence 1 would mask "
        "head 1. Add an axis for the heads, `[:, None, None, :]`.": (
            lambda tokens, pad: (len(tokens), 1, tokens.shape[-1])
        ),
        "(batch, seq, 1) is read as (head, query, key): keys come last, and "
        "heads need an axis, `[:, None, None, :]`.": (
            lambda tokens, pad: (*tokens.shape, 1)
        ),
        "(batch, seq, seq) is read as (head, query, key): add an axis for the "
        "heads, `[:, None]`.": (
            lambda tokens, pad: (*tokens.shape, tokens.shape[-1])
        ),
        "The last axis is the key's: `[:, None, None, :]`.": (
            lambda tokens, pad: (*tokens.shape, 1, 1)
        ),
        "The last axis is the key's, not the query's: `[:, None, None, :]`.": (
            lambda tokens, pad: (len(tokens), tokens.shape[-1], 1, 1)
        ),
    },
    suspects={
        "It is upside down: True marks a real token.": (
            lambda tokens, pad: over_keys(tokens == pad)
        ),
        "It hides the rows of padding, not the columns: the last axis is the "
        "key's, `[:, None, None, :]`.": (
            lambda tokens, pad: over_queries(tokens != pad)
        ),
        "It hides the rows of padding too: such a query would see nobody. Hide "
        "keys only; the loss leaves these rows out.": (
            lambda tokens, pad: (
                over_keys(tokens != pad) & over_queries(tokens != pad)
            )
        ),
        "It hides a pair only if both are padding: what hides is the key.": (
            lambda tokens, pad: (
                over_keys(tokens != pad) | over_queries(tokens != pad)
            )
        ),
        "`pad` is not used: it is 0 here whatever was asked.": (
            lambda tokens, pad: over_keys(tokens != 0)
        ),
        "Ids below `pad` are hidden too: compare with `!=`, not with `>`.": (
            lambda tokens, pad: over_keys(tokens > pad)
        ),
        "Tokens are compared with the last token, not with `pad`.": (
            lambda tokens, pad: over_keys(tokens != tokens[:, -1:])
        ),
        "Real tokens are counted, and padding is taken to stand behind: "
        "compare token by token.": (
            lambda tokens, pad: over_keys(counted(tokens != pad))
        ),
        "Every sentence gets the mask of the first.": (
            lambda tokens, pad: over_keys((tokens != pad)[:1].expand_as(tokens))
        ),
        "The future is hidden too: a padding mask knows no order.": (
            lambda tokens, pad: (
                over_keys(tokens != pad) & causal(tokens.shape[-1])
            )
        ),
        "It hides nothing.": lambda tokens, pad: over_keys(tokens == tokens),
        "It hides everything.": lambda tokens, pad: over_keys(tokens != tokens),
    },
)


def require_none(fn: Guarded, wrong: Tensor, sees: str, args: tuple) -> None:
    """Raises Broken at the first True of ``wrong``, which is like the mask."""
    if wrong.any():
        at = tuple(wrong.nonzero()[0].tolist())
        batch, _, query, key = at
        known = recognised_mistake(fn)
        why = known[0] if known else ""
        where = f"In sentence {batch}, query {query} {sees} key {key}, "
        tokens, pad = args
        token = f"token {tokens[batch, key]} where pad is {pad}."
        message = f"{where}{token} {why}".rstrip()
        raise Broken(message, fn(*args), oracle(*args), cause=why, at=at)


@PADDING_MASK.before_reference
def padding_is_hidden(fn: Guarded) -> None:
    """No query sees padding."""
    for args in PADDING_MASK.cases().values():
        require_none(fn, fn(*args) & ~oracle(*args), "sees", args)


@PADDING_MASK.before_reference
def tokens_are_seen(fn: Guarded) -> None:
    """Every query sees every real token."""
    for args in PADDING_MASK.cases().values():
        require_none(fn, ~fn(*args) & oracle(*args), "does not see", args)


@PADDING_MASK.contract
def queries_alike(fn: Guarded) -> None:
    """Every query of a sentence sees the same keys."""
    got = fn(ended(), 0)
    why = "A query sees other keys than query 0, though padding is the same."
    same(fn, got, got[:, :, :1].expand_as(got), why)


@PADDING_MASK.contract
def sentences_apart(fn: Guarded) -> None:
    """A sentence has the mask that it has alone."""
    tokens = ended()
    alone = torch.cat([fn(tokens[:1], 0), fn(tokens[1:], 0)])
    why = "Another sentence of the batch changes the mask."
    same(fn, fn(tokens, 0), alone, why)


@PADDING_MASK.contract
def any_pad(fn: Guarded) -> None:
    """Any id may be the padding."""
    tokens = torch.arange(10).view(2, 5)
    for pad in range(10):
        got, expected = fn(tokens, pad), oracle(tokens, pad)
        wrong = got != expected
        if wrong.any():
            at = tuple(wrong.nonzero()[0].tolist())
            where = place(at, ("query", "key"))
            why = f"The ids are 0 … 9, and pad is {pad}: {where} is wrong."
            raise Broken(why, got, expected, at=at)


@PADDING_MASK.contract
def any_size(fn: Guarded) -> None:
    """It takes any batch and any length, 1 included."""
    for batch, seq in ((1, 1), (1, 7), (3, 1), (7, 11)):
        tokens = (torch.arange(batch * seq) % 4).view(batch, seq)
        why = f"Of {batch} sentences of {seq} tokens it is not the mask."
        same(fn, fn(tokens, 3), oracle(tokens, 3), why)
