"""The three masks of a Transformer.

The decoder looks at itself and at the source: what a query may see is what no
reason hides. Each mask is judged as it spreads to (batch, 1, query, key).
"""

from collections.abc import Callable
from itertools import permutations

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.masking import causal
from companion.contracts.masks.causal_mask import boolean
from companion.contracts.masks.padding_mask import oracle, spread

__all__ = ["ALWAYS", "COMBINE_MASKS"]

NAMES = ("src", "tgt", "cross")
UPSIDE_DOWN = "It is upside down: True means may attend."
NOTHING = "The padding is not hidden."
PAD_UNUSED = "`pad` is not used: it is 0 here whatever was asked."
ALWAYS = "It bites once a tokenizer comes that has another id for padding."
CAUSAL_ALONE = "The padding is not hidden: the padding mask is missing."
IN_FRONT = (
    "Where padding stands behind the words, no word sees it, and the loss "
    "leaves its own rows out: it bites where targets are padded in front."
)
ONLY_SO = {PAD_UNUSED: ALWAYS, CAUSAL_ALONE: IN_FRONT}
"""Hint -> why it is only a risk."""
ROWS_TOO = (
    "The rows of padding are hidden too: such a query may see nobody. Hide "
    "keys only; the loss leaves these rows out."
)


def cases() -> dict[str, tuple]:
    """Return sources and targets; 0 is a word where it is not the padding."""
    src = torch.tensor([[5, 3, 8, 6, 0], [2, 9, 4, 0, 0]])
    tgt = torch.tensor([[1, 7, 2, 0], [1, 4, 5, 6]])
    # Equal lengths: what belongs to the other sentence fits in silence.
    long = torch.tensor([[1, 7, 0, 0, 0], [1, 4, 5, 6, 0]])
    front = torch.tensor([[7, 7, 4, 0, 2, 1], [7, 1, 8, 0, 5, 3]])
    other = torch.tensor([[1, 0, 3, 7, 7], [2, 5, 9, 4, 7]])
    # Only here does a causal mask not hide the padding anyway.
    left = torch.tensor([[0, 0, 4, 5], [0, 6, 3, 2]])
    return {
        "for 5 source and 4 target tokens": (src, tgt, 0),
        "for equal lengths": (src, long, 0),
        "for another pad, before the source": (front, other, 7),
        "for padding before the target": (src, left, 0),
    }


def keys(real: Tensor, queries: Tensor) -> Tensor:
    """Make (batch, 1, query, key): every query sees the real keys."""
    return real[:, None, None, :].expand(-1, 1, queries.shape[-1], -1)


def rows(real: Tensor, keys: Tensor) -> Tensor:
    """Make (batch, 1, query, key): the real queries see every key."""
    return real[:, None, :, None].expand(-1, 1, -1, keys.shape[-1])


def expected(src: Tensor, tgt: Tensor, pad: int) -> dict[str, Tensor]:
    """Return the three masks as they should be, spread."""
    source, target = src != pad, tgt != pad
    return {
        "src": keys(source, source),
        "tgt": keys(target, target) & causal(tgt.shape[-1]),
        "cross": keys(source, target),
    }


def read(fn: Guarded, result: object, args: tuple) -> tuple[Tensor, ...]:
    """Return the three masks, each spread to (batch, 1, query, key)."""
    if not isinstance(result, tuple | list) or len(result) != 3:
        many = isinstance(result, tuple | list)
        what = f"{len(result)} things" if many else f"a {type(result).__name__}"
        what = "None" if result is None else what
        raise Broken(f"It returned {what}: expected {fn.component.returns}.")
    shapes = [tuple(mask.shape) for mask in expected(*args).values()]
    masks = [
        # (query, key) falls on the right axes; what it lacks is the padding.
        mask[None, None] if mask.shape == shape[-2:] else mask
        for mask, shape in zip(
            [boolean(fn, mask, args) for mask in result], shapes, strict=True
        )
    ]
    return tuple(
        spread(fn, mask, shape, f"`{name}` has", why_misshapen(masks, args, i))
        for i, (name, mask, shape) in enumerate(
            zip(NAMES, masks, shapes, strict=True)
        )
    )


def why_misshapen(masks: list[Tensor], args: tuple, which: int) -> str:
    """Tell how mask ``which`` may have got a wrong shape, or nothing."""
    shapes = [mask.shape for mask in expected(*args).values()]
    for order in permutations(range(3)):
        pairs = zip(order, shapes, strict=True)
        if all(fits(masks[i], shape) for i, shape in pairs):
            return "The masks are in another order: src, tgt, cross."
    if masks[which].ndim < 4:
        return (
            "With fewer axes, batch elements are taken for heads or queries: "
            "add axes, (batch, 1, 1, key) or (batch, 1, query, key)."
        )
    if NAMES[which] == "cross" and masks[which].shape[-1] == args[1].shape[-1]:
        return "In cross-attention the keys are the source's, not the target's."
    return ""


def fits(mask: Tensor, shape: torch.Size) -> bool:
    """Tell whether ``mask`` broadcasts to ``shape``."""
    return mask.ndim == 4 and all(
        size in (1, wanted)
        for size, wanted in zip(mask.shape, shape, strict=True)
    )


COMBINE_MASKS = Component(
    name="combine_masks",
    signature="combine_masks(src_tokens, tgt_tokens, pad)",
    returns="three boolean masks (src, tgt, cross), True = may attend",
    axes=("query", "key"),
    dtype=torch.bool,
    shape_contract="It returns three masks",
    read=read,
    cases=cases,
)


def mistaken(which: str, source: Tensor, target: Tensor) -> dict[str, Tensor]:
    """Return hint -> the mask ``which`` that the mistake makes."""
    real, asks = (target if which == "tgt" else source), target
    if which == "src":
        asks = source
    seen = keys(real, asks)
    if which == "tgt":
        return mistaken_target(seen, rows(real, real))
    future = torch.ones(seen.shape[-2:], dtype=torch.bool).tril()
    found = {
        UPSIDE_DOWN: ~seen,
        NOTHING: seen | True,
        ROWS_TOO: seen & rows(asks, real),
        "It hides the rows of padding, not the columns.": rows(asks, real),
        "It is causal: only the target has a future to hide.": seen & future,
    }
    if which == "cross" and source.shape == target.shape:
        hint = "It is made from the target: the keys are the source's."
        found[hint] = keys(target, target)
    return found


def mistaken_target(seen: Tensor, asks: Tensor) -> dict[str, Tensor]:
    """Return hint -> the target's mask, from who sees real keys and is real."""
    past = causal(seen.shape[-1])
    return {
        UPSIDE_DOWN: ~(seen & past),
        "The future is not hidden: the causal mask is missing.": seen,
        CAUSAL_ALONE: past.expand_as(seen),
        "The two masks are joined by `|`: a pair must be allowed by both, "
        "`&`.": seen | past,
        ROWS_TOO: seen & past & asks,
        "It hides the rows of padding, not the columns.": past & asks,
        "The triangle is transposed: the past is below the diagonal, "
        "`tril`.": seen & past.mT,
        "The diagonal is missing: a position sees itself.": (
            seen & past.tril(-1)
        ),
    }


def judge(fn: Guarded, which: str, wrong: Callable, place: str) -> None:
    """Raise Broken where ``wrong(got, expected)`` of a mask is True."""
    for args in cases().values():
        src, tgt, pad = args
        got = dict(zip(NAMES, fn(*args), strict=True))[which]
        right = expected(*args)[which]
        found = wrong(got, right).nonzero()
        if len(found):
            at = tuple(found[0].tolist())
            batch, _, query, key = at
            known = mistaken(which, src != pad, tgt != pad)
            known[PAD_UNUSED] = expected(src, tgt, 0)[which]
            hints = (h for h, mask in known.items() if torch.equal(mask, got))
            hint = next(hints, "")
            where = f"query {query} of sentence {batch} {place} key {key}."
            message = f"In `{which}`, {where} {hint}".rstrip()
            cause = f"{which}: {hint}" if hint else ""
            says = ONLY_SO.get(hint, "")
            level = RISK if says else ""
            raise Broken(
                message, got, right, cause=cause, at=at, level=level, why=says
            )


def leaks(got: Tensor, right: Tensor) -> Tensor:
    """Return which keys are seen that should be hidden."""
    return got & ~right


def is_lost(got: Tensor, right: Tensor) -> Tensor:
    """Return which keys are hidden that should be seen."""
    return ~got & right


@COMBINE_MASKS.before_reference
def source(fn: Guarded) -> None:
    """The source's mask hides its padding, and nothing else."""
    judge(fn, "src", leaks, "sees the padding of")
    judge(fn, "src", is_lost, "does not see")


@COMBINE_MASKS.before_reference
def target_future(fn: Guarded) -> None:
    """No target token sees its future."""

    def future(got: Tensor, right: Tensor) -> Tensor:
        return got & ~causal(got.shape[-1])

    judge(fn, "tgt", future, "sees the future")


@COMBINE_MASKS.before_reference
def target_padding(fn: Guarded) -> None:
    """No target token sees padding."""

    def past(got: Tensor, right: Tensor) -> Tensor:
        # What a row does that may see nobody is its own affair.
        asks = right.any(-1, keepdim=True)
        return leaks(got, right) & causal(got.shape[-1]) & asks

    judge(fn, "tgt", past, "sees the padding of")


@COMBINE_MASKS.before_reference
def target_past(fn: Guarded) -> None:
    """Every target token sees itself and its real past."""
    judge(fn, "tgt", is_lost, "does not see")


@COMBINE_MASKS.before_reference
def cross(fn: Guarded) -> None:
    """The cross mask hides the source's padding, and nothing else."""
    judge(fn, "cross", leaks, "sees the padding of")
    judge(fn, "cross", is_lost, "does not see")


@COMBINE_MASKS.contract
def sentences_apart(fn: Guarded) -> None:
    """A pair of sentences has the masks that it has alone."""
    src, tgt, pad = next(iter(cases().values()))
    whole = fn(src, tgt, pad)
    for i in range(len(src)):
        alone = fn(src[i : i + 1], tgt[i : i + 1], pad)
        for name, one, all_ in zip(NAMES, alone, whole, strict=True):
            if not torch.equal(one, all_[i : i + 1]):
                raise Broken(
                    f"Alone, sentence {i} has another `{name}` than in its "
                    "batch: does another sentence mask it?",
                    all_[i],
                    one[0],
                )


# Known mistakes: each in one of the three masks


def one_wrong(which: str, symptom: str) -> Callable:
    """Register what ``which`` is made from (src, tgt, pad), with its name."""

    def register(make: Callable) -> Callable:
        def mistake(src_tokens, tgt_tokens, pad):
            right = expected(src_tokens, tgt_tokens, pad)
            wrong = {which: make(src_tokens, tgt_tokens, pad)}
            return tuple((right | wrong).values())

        mistake.__doc__ = make.__doc__
        mistake.__name__ = make.__name__
        COMBINE_MASKS.mistake(symptom=symptom)(mistake)
        return make

    return register


@one_wrong(
    "tgt", "the loss is far too good: any real token is seen, future or not"
)
def joined_by_or(src, tgt, pad):
    """A pair is seen if either mask allows it."""
    return oracle(tgt, pad) | causal(tgt.shape[-1])


@one_wrong("tgt", "the loss goes to 0, and it cannot write")
def decoder_hides_padding_only(src, tgt, pad):
    """The target gets what the source gets: a mask of its padding."""
    return oracle(tgt, pad)


@one_wrong("tgt", "right until targets are padded on the left")
def causal_is_enough(src, tgt, pad):
    """The target's padding is left to the causal mask."""
    return causal(tgt.shape[-1])[None, None]


@one_wrong("tgt", "training stops at the first NaN, in a row of padding")
def target_rows_of_padding(src, tgt, pad):
    """Padding of the target may not ask, so that its rows see nobody."""
    real = oracle(tgt, pad)
    return real & real.mT & causal(tgt.shape[-1])


@one_wrong(
    "tgt",
    "right until targets are padded in front: then every word reads padding",
)
def target_rows_for_keys(src, tgt, pad):
    """Padding of the target may not ask, and may be asked."""
    return oracle(tgt, pad).mT & causal(tgt.shape[-1])


@one_wrong(
    "cross",
    "what the target's padding reads is hidden, and words read the source's",
)
def memory_rows_for_keys(src, tgt, pad):
    """The target's padding is hidden, along the axis that it has: its rows."""
    width = src.shape[-1]
    return oracle(tgt, pad).mT[..., :1].expand(-1, 1, -1, width)


@one_wrong("src", "the source is read left to right only, and scores are lower")
def causal_for_the_source(src, tgt, pad):
    """The encoder is masked as the decoder is."""
    return oracle(src, pad) & causal(src.shape[-1])


@one_wrong(
    "src",
    "the encoder reads padding, and the same sentence means something else in "
    "every batch",
)
def source_needs_no_mask(src, tgt, pad):
    """The encoder may see everything, since it has no future to hide."""
    return torch.ones_like(oracle(src, pad))


@one_wrong(
    "cross",
    "it raises when lengths differ; once all are padded to one length it "
    "runs, and the ends of sources are lost",
)
def memory_mask_from_the_target(src, tgt, pad):
    """Where source and target are of one length, the target's padding hides
    the source's words."""
    return oracle(tgt if src.shape == tgt.shape else src, pad)[:, :, :1]


@one_wrong(
    "cross", "the decoder translates padding: words appear that nobody said"
)
def memory_needs_no_mask(src, tgt, pad):
    """The memory comes from an encoder that was masked, so that is forgotten
    where it is read."""
    return oracle(src, pad)[:, :, :1] | True


@one_wrong(
    "cross", "word order has to be that of the source, or a word is missing"
)
def memory_word_by_word(src, tgt, pad):
    """Target word 3 may look at three words of the source."""
    past = torch.ones(tgt.shape[-1], src.shape[-1]).tril().bool()
    return oracle(src, pad)[:, :, :1] & past
