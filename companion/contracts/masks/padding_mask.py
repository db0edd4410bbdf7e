"""The padding mask: no query sees padding, wherever it stands.

What counts is the mask spread to (batch, 1, query, key): (batch, 1, 1, seq) is
right, and so is the same row written out for every query.
"""

import inspect
from collections.abc import Callable
from functools import cache
from types import CodeType

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, place, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import alone_as_in_the_batch
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.masking import causal
from companion.contracts.engine.universal import recognised_mistake
from companion.contracts.masks.causal_mask import boolean

__all__ = [
    "PADDING_MASK",
    "any_pad",
    "exchanged",
    "numbers_read_by",
    "spread",
]

BATCH, SEQ = 2, 5
WRITTEN_OUT = (
    "It is written out for {} heads, and fits no other number of them: an axis "
    "of size 1 broadcasts to any."
)


def ended() -> Tensor:
    """Return two sentences with 0 as padding behind them."""
    return torch.tensor([[5, 3, 8, 0, 0], [2, 9, 4, 6, 0]])


def opened() -> Tensor:
    """Return two sentences with 3 as padding before them; 0 is a word."""
    return torch.tensor([[3, 3, 4, 0, 2], [3, 1, 8, 7, 5]])


def square() -> Tensor:
    """Return as many sentences as positions: a wrong axis fits in silence."""
    return torch.tensor([[4, 2, 0], [7, 0, 0], [3, 5, 1]])


def oracle(tokens: Tensor, pad: int) -> Tensor:
    """Let every query see the keys that are not padding."""
    return over_keys(tokens != pad)


def over_keys(real: Tensor) -> Tensor:
    """Make (batch, 1, seq, seq): key j may be seen where ``real`` is True."""
    return real[:, None, None, :].expand(-1, 1, real.shape[-1], -1)


def over_queries(real: Tensor) -> Tensor:
    """Make (batch, 1, seq, seq): query i may see where ``real`` is True."""
    return over_keys(real).mT


def spread(
    fn: Guarded, mask: Tensor, shape: tuple[int, ...], name: str, why: str
) -> Tensor:
    """Spread ``mask`` to ``shape``, (batch, 1, query, key).

    Raise Broken with ``why`` where it does not.
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
    """Return the mask, spread to (batch, 1, seq, seq)."""
    mask, (tokens, _) = boolean(fn, result, args), args
    batch, seq = tokens.shape
    why = fn.shape_hint(tuple(mask.shape), args)
    return spread(fn, mask, (batch, 1, seq, seq), "It returned", why)


def with_own_padding(fn: Callable) -> Callable:
    """Give what takes tokens alone its own padding, if that is not 0.

    Both ids change places in what it gets. Which it is shows in its first
    call, and not before.
    """
    try:
        taken = [*inspect.signature(fn).parameters.values()]
    except (TypeError, ValueError):
        return fn
    if len(taken) != 1 or taken[0].kind is not taken[0].POSITIONAL_OR_KEYWORD:
        return fn
    own = cache(lambda: own_padding(fn))

    def padding_mask(tokens: Tensor, pad: int) -> Tensor:
        return fn(exchanged(tokens, pad, own()) if own() else tokens)

    padding_mask.__name__ = getattr(fn, "__name__", padding_mask.__name__)
    return padding_mask


def exchanged(ids: Tensor, one: int, other: int) -> Tensor:
    """Return ids in which two of them have changed places."""
    moved = torch.where(ids == one, -1, ids)
    moved = torch.where(moved == other, one, moved)
    return torch.where(moved == -1, other, moved)


def own_padding(fn: Callable) -> int:
    """Return the one id that differs from all others; 0, if there is none."""
    ids = torch.tensor(sorted({*range(10), *numbers_read_by(fn)}))
    got = fn(ids[None])
    try:
        flat = (got != 0).expand(1, 1, len(ids), len(ids))[0, 0, 0]
    except (AttributeError, RuntimeError, TypeError):
        return 0
    for value in (True, False):
        if (flat == value).sum() == 1:
            return int(ids[flat == value])
    return 0


def numbers_read_by(fn: Callable) -> set[int]:
    """List the integers that a function reads where it was written.

    One may be the padding of a tokeniser that is defined elsewhere.
    """
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if not isinstance(code, CodeType):
        return set()
    known = getattr(inspect.unwrap(fn), "__globals__", {})
    read = [known.get(name) for name in code.co_names]
    kept = [getattr(x, "__dict__", {}) for x in read]
    read += [own.get(name) for own in kept for name in code.co_names]
    return {x for x in (*code.co_consts, *read) if type(x) is int and x >= 0}


PADDING_MASK = Component(
    name="padding_mask",
    signature="padding_mask(tokens, pad)",
    returns="a boolean mask (batch, 1, 1, seq), True = a real token",
    axes=("query", "key"),
    shape=lambda tokens, pad: (len(tokens), 1, 1, tokens.shape[-1]),
    dtype=torch.bool,
    read=read,
    adapt=with_own_padding,
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
        "Add two axes, `[:, None, None, :]`, or take "
        "`adapters.padding_from_keys`.": lambda tokens, pad: tokens.shape,
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
)


def require_none(fn: Guarded, wrong: Tensor, sees: str, args: tuple) -> None:
    """Raise Broken at the first True of ``wrong``, which is like the mask."""
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


PADDING_MASK.contract(
    alone_as_in_the_batch(
        "A sentence has the mask that it has alone",
        lambda: (ended(), 0),
        why="Another sentence of the batch changes the mask.",
        batched=1,
    )
)


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


# Known mistakes, in the order in which they are recognised


@PADDING_MASK.mistake(
    hint="It is upside down: True marks a real token.",
    symptom="all the weight lies on padding, and no word notices another",
)
def marks_the_padding(tokens, pad):
    """True means padding where it is made, and may attend where it is used."""
    return (tokens == pad)[:, None, None, :]


@PADDING_MASK.mistake(
    hint="It hides the rows of padding, not the columns: the last axis is the "
    "key's, `[:, None, None, :]`.",
    symptom="a sentence comes out otherwise when its batch has a longer one",
)
def hides_rows_of_padding(tokens, pad):
    """It stands on the queries: padding asks nobody, and answers everybody."""
    return over_queries(tokens != pad)


@PADDING_MASK.mistake(
    hint="It hides the rows of padding too: such a query would see nobody. "
    "Hide keys only; the loss leaves these rows out.",
    symptom="NaN in the first batch that has padding",
    level=RISK,
    why="It is right where scores are hidden by a finite number such as -1e9, "
    "for nobody looks at what padding gets; of -∞ alone it gets NaN.",
)
def hides_rows_and_columns(tokens, pad):
    """Padding may not ask either, so that its rows see nobody at all."""
    real = tokens != pad
    return over_keys(real) & over_queries(real)


@PADDING_MASK.mistake(
    hint="It hides a pair only if both are padding: what hides is the key.",
    symptom="words look at padding, and only padding never looks at padding",
)
def one_of_them_is_enough(tokens, pad):
    """A pair may look if either of the two is a word."""
    real = tokens != pad
    return over_keys(real) | over_queries(real)


@PADDING_MASK.mistake(
    hint="`pad` is not used: it is 0 here whatever was asked.",
    symptom="right until a tokenizer comes whose padding is not 0",
    level=RISK,
    why="It bites once a tokenizer comes that has another id for padding.",
)
def padding_is_always_zero(tokens, pad):
    """Compares with 0 whatever the padding is."""
    return oracle(tokens, 0)


@PADDING_MASK.mistake(
    hint="Ids below `pad` are hidden too: compare with `!=`, not with `>`.",
    symptom="a few words are never seen: those whose ids are below padding's",
)
def real_means_greater(tokens, pad):
    """Takes every id above the padding for a word, and no other."""
    return (tokens > pad)[:, None, None]


PADDING_MASK.mistake(
    "unlike-the-last",
    hint="Tokens are compared with the last token, not with `pad`.",
)(lambda tokens, pad: over_keys(tokens != tokens[:, -1:]))


@PADDING_MASK.mistake(
    hint="Real tokens are counted, and padding is taken to stand behind: "
    "compare token by token.",
    symptom="right until sentences are padded on the left, to write in batches",
)
def counts_from_the_left(tokens, pad):
    """Counts the words, and takes so many from the left."""
    lengths = (tokens != pad).sum(-1)[:, None]
    seen = torch.arange(tokens.shape[-1]) < lengths
    return seen[:, None, None]


@PADDING_MASK.mistake(
    hint="Every sentence gets the mask of the first.",
    symptom="right in batches of one, and worse the more lengths differ",
)
def mask_of_the_first_sentence(tokens, pad):
    """The mask is made from sentence 0, and broadcasts to all the others."""
    return oracle(tokens[:1], pad)


PADDING_MASK.mistake(
    "causal-too",
    hint="The future is hidden too: a padding mask knows no order.",
)(lambda tokens, pad: oracle(tokens, pad) & causal(tokens.shape[-1]))
PADDING_MASK.mistake("hides-nothing", hint="It hides nothing.")(
    lambda tokens, pad: over_keys(tokens == tokens)
)
PADDING_MASK.mistake("hides-everything", hint="It hides everything.")(
    lambda tokens, pad: over_keys(tokens != tokens)
)
