"""Call a function that makes a translator's masks as ``combine_masks``.

Tutorials write them in four ways: the masks of source and target, perhaps with
one more; that of the target alone; the four of `nn.Transformer`, whose True
hides; and of these only the two of padding, and that of the order.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from companion.contracts.discovery.readings import ADDED
from companion.contracts.engine.compare import is_float
from companion.contracts.engine.component import title
from companion.contracts.engine.report import Report
from companion.contracts.engine.scale import HIDDEN
from companion.contracts.masks.combine_masks import cross, source

__all__ = [
    "CAUSAL",
    "FIRST",
    "as_combined",
    "less_what_is_not_its_own",
    "makes_masks",
]

MAKERS = r"((make|create|get|generate|build|compute)_)?(\w+_)?masks?"
OF_THE_TARGET = (
    r"\w*(std|trg|tgt|target|dec(oder)?)(_self)?(_att(entio)?n)?_masks?"
)
"""What such functions are called."""

ROLES = (
    ("pad", r"(\w+_)?pad(ding)?(_\w+)?|pad\w*"),
    ("device", r"device"),
    ("tgt", r"(t(gt|rg|arg?|arget)s?|dec(oder)?|labels?|y)(_\w+)?"),
    ("src", r"(src|source|enc(oder)?|inputs?|inp|x|seqs?|ids|tokens)(_\w+)?"),
)
"""What an argument is -> what it is called."""

PAIR = (
    "it makes the masks of source and target; that of the source was taken "
    "where the target asks the source"
)
THREE = "it makes three masks"
ALONE = "it makes the target's mask alone"
FOUR = "it makes the four masks of `nn.Transformer`, whose True hides"
ALWAYS_THE_SAME = "its padding is {}, whoever asks"
APART = (
    "it makes masks of padding for source and target, and that of the order, "
    "as `nn.Transformer` wants them: True hides"
)
GIVEN_PAD = "it was given {} for padding"
FIRST = "it got the sequence first"

SRC, TGT, WORDS = (2, 5), (2, 4), 10
"""Sizes of sentences to try it with, and how many ids there are."""

NOT_ITS_OWN = title(source), title(cross)
"""Contracts that say nothing of what makes the target's mask alone."""

CAUSAL = "causal"
"""Said of a mask that is the same whatever stands there."""


def makes_masks(name: str, fn: Callable) -> bool:
    """Tell whether a function is called so, and what its arguments are."""
    roles, name = roles_of(fn), name.strip("_").lower()
    both = roles is not None and "src" in roles
    pattern = MAKERS if both else OF_THE_TARGET
    return roles is not None and re.fullmatch(pattern, name) is not None


def less_what_is_not_its_own(report: Report, said: tuple[str, ...]) -> Report:
    """Leave out what holds whatever it does."""
    if ALONE not in said:
        return report
    held = [name for name in report.held if name not in NOT_ITS_OWN]
    return replace(report, held=held)


def as_combined(
    fn: Callable, pad: int | None = None
) -> tuple[Callable, tuple[str, ...]] | None:
    """Make of a function one that is called as ``combine_masks``.

    Args:
        fn: It makes masks.
        pad: The one id for padding that it is given, whoever asks.

    Returns:
        It, and how it calls the other in words; None, if that is not known.
    """
    roles = roles_of(fn)
    if roles is None:
        return None
    for first in (False, True):
        call = called_with(fn, roles, first=first)
        src, tgt = torch.ones(SRC).long(), torch.ones(TGT).long()
        try:
            three, said = read(call(src, tgt, 0), src, tgt)
        except Exception:
            continue
        if three is None:
            continue
        words = [said, FIRST] if first else [said]
        if said not in (FOUR, APART) and any(map(is_added, three)):
            words.append(ADDED)
        own = pad if "pad" in roles else own_padding(call)
        if own is not None:
            told = GIVEN_PAD if "pad" in roles else ALWAYS_THE_SAME
            words.append(told.format(own))
        elif said == ALONE and "pad" not in roles:
            words = [CAUSAL]
        return combining(call, own), tuple(words)
    return None


def roles_of(fn: Callable) -> list[str] | None:
    """Tell what each argument is; None, if a name does not say it."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None
    roles = []
    for one in signature.parameters.values():
        found = (r for r, names in ROLES if re.fullmatch(names, one.name, re.I))
        role = next(found, None)
        if role is None and one.default is not one.empty:
            break  # What follows is left as it is.
        if role is None or one.kind is not one.POSITIONAL_OR_KEYWORD:
            return None
        roles.append(role)
    if "tgt" not in roles and roles.count("src") == 1:
        roles[roles.index("src")] = "tgt"
    most = roles.count("src") < 2 and roles.count("pad") < 3
    return roles if most and roles.count("tgt") == 1 else None


def called_with(fn: Callable, roles: list[str], *, first: bool) -> Callable:
    """Call it with what its arguments are."""

    def call(src: Tensor, tgt: Tensor, pad: int) -> Any:
        if first:
            src, tgt = src.mT.contiguous(), tgt.mT.contiguous()
        known = {"src": src, "tgt": tgt, "pad": pad, "device": "cpu"}
        return fn(*(known[role] for role in roles))

    return call


def read(
    got: object, src: Tensor, tgt: Tensor
) -> tuple[tuple[Tensor, ...] | None, str]:
    """Return the three masks, and what they were made of in words."""
    size = tgt.shape[1]
    if isinstance(got, Tensor) and got.shape[-2:] == (size, size):
        real = torch.ones_like(src, dtype=torch.bool)
        return (real, got, real), ALONE
    if isinstance(got, tuple | list):
        got = [x for x in got if x is not None]
    several = isinstance(got, list) and all(isinstance(x, Tensor) for x in got)
    if several and len(got) == 4:
        pads = [tuple(x.shape) for x in got[2:]]
        square = tuple(got[1].shape[-2:]) == (size, size)
        if square and pads == [tuple(src.shape), tuple(tgt.shape)]:
            return tuple(got), FOUR
    if several and len(got) == 3:
        # Two of padding, and that of the order.
        shapes = [tuple(x.shape) for x in got]
        if shapes == [tuple(src.shape), tuple(tgt.shape), (size, size)]:
            none = torch.zeros(src.shape[1], src.shape[1], dtype=torch.bool)
            return (none, got[2], got[0], got[1]), APART
    if several and len(got) in (2, 3):
        one, other, *rest = got
        (cross,) = rest or [one]
        keys = one.shape[-1] == cross.shape[-1] == src.shape[1]
        if keys and other.shape[-2:] == (size, size):
            return (one, other, cross), THREE if rest else PAIR
    return None, ""


def own_padding(call: Callable) -> int | None:
    """Return the one id that changes what it makes; None, if several do."""
    found = []
    usual = [torch.full(size, WORDS + 1) for size in (SRC, TGT)]
    plain = masks_in(call(*usual, 0))
    for pad in range(WORDS):
        src, tgt = (x.clone() for x in usual)
        src[:, -1] = tgt[:, 0] = pad
        now = masks_in(call(src, tgt, 0))
        if any(not torch.equal(*pair) for pair in zip(plain, now, strict=True)):
            found.append(pad)
    return found[0] if len(found) == 1 else None


def masks_in(got: object) -> list[Tensor]:
    """List the masks that came."""
    several = [got] if isinstance(got, Tensor) else [*got]  # pyrefly: ignore
    return [x for x in several if x is not None]


def combining(call: Callable, own: int | None) -> Callable:
    """Make the three masks of what a call makes.

    Args:
        call: It.
        own: Its own padding, which then changes places with another's.
    """

    def combine_masks(src: Tensor, tgt: Tensor, pad: int) -> tuple:
        given = [swapped(x, pad, own) for x in (src, tgt)]
        got = call(*given, pad if own is None else own)
        three, said = read(got, src, tgt)
        if three is None:
            return got  # pyrefly: ignore
        if said in (FOUR, APART):
            return of_four(three)
        masks = [with_heads(as_shown(x)) for x in three]
        if said == ALONE:
            # It shows where it is True, if a word sees itself so.
            words = [torch.full_like(x, WORDS + 1) for x in (src, tgt)]
            plain = call(*words, pad if own is None else own)
            shown = bool(as_shown(plain).flatten()[0])
            rows = ((src != pad) == shown)[:, None, None]
            masks = [rows, masks[1], rows]
        return tuple(masks)

    return combine_masks


def swapped(ids: Tensor, pad: int, own: int | None) -> Tensor:
    """Have two ids change places, so that its own stands for padding."""
    if own is None or own == pad:
        return ids
    there, here = ids == pad, ids == own
    return ids.masked_fill(there, own).masked_fill(here, pad)


def with_heads(mask: Tensor) -> Tensor:
    """Put an axis for the heads behind the batch, where there is none."""
    return mask[:, None] if mask.ndim == 3 else mask


def is_added(mask: Tensor) -> bool:
    """Tell whether a mask hides with -∞, or a large negative number."""
    return is_float(mask) and bool((mask < 0).any())


def as_shown(mask: Tensor) -> Tensor:
    """Make a boolean mask, in which True is what it was, or what it shows."""
    return mask == 0 if is_added(mask) else mask.bool()


def of_four(got: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Join masks of which True, or -∞, hides to three of which True shows."""
    src, tgt, src_padding, tgt_padding = map(shows, got)
    pads = [x[:, None, None] for x in (src_padding, tgt_padding)]
    return src & pads[0], tgt & pads[1], pads[0]


def shows(mask: Tensor) -> Tensor:
    """Tell what a mask shows that is added, or whose True hides.

    One of numbers is always added by PyTorch, so that 1 hides nothing.
    """
    return mask > HIDDEN if is_float(mask) else ~mask.bool()
