"""Lengths instead of a mask."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from companion.contracts.adapters import (
    rows_by_lengths,
    valid_lengths,
)
from companion.contracts.engine.forms.fitting import fit_all, hides_keys
from companion.contracts.engine.forms.form import Form, entry, without_heads
from companion.contracts.engine.forms.results import FIRST_TAKEN
from companion.contracts.engine.forms.signature import SELF, Wanted
from companion.contracts.engine.guard import (
    Guarded,
    has_mask,
    lengths_beside,
)

__all__ = [
    "by_lengths",
    "lengths_for",
]


def by_lengths(
    fn: Guarded, form: Form, cases: list[tuple], word: str | None
) -> Iterator[Form]:
    """List the forms with lengths in place of a mask that fit all cases.

    Lengths have no True that could hide. ``word`` is what they are called.
    """
    name = fn.component.name
    if word is None or name not in (*SELF, "attention", "masked_softmax"):
        return
    of_x = name in SELF and form.wants.names[3:4] != (word,)
    if of_x and not form.wants.required <= {*form.wants.names[:1], word}:
        return
    for axes, shape in ((1, "(batch,)"), (2, "(batch, query)")):
        for first in (False, True):
            said = [
                f"`{word}` was taken for how many of the first keys count, "
                f"{shape}, so that it was called once for each row, with the "
                "keys in front that this row may see"
            ]
            said += [FIRST_TAKEN] * first
            found = replace(
                form,
                hidden=False,
                whole=counting(name, form.wants, word, axes, first, of_x),
                said=tuple(said),
            )
            if fit_all(fn, found, cases, []):
                yield found


def lengths_for(
    fn: Guarded, form: Form, cases: list[tuple], *, known: bool
) -> Form | None:
    """Return the form that gives lengths which stand beside a mask.

    Only where nothing else fits, or what is called a mask is a flag: any mask
    does the same there.

    Args:
        fn: What is tried.
        form: The plain form.
        cases: Those of the component.
        known: Whether a form was found.
    """
    word = next(iter(lengths_beside(form.wants.names)), None)
    usual = fn.form
    if word is None or getattr(usual, "no_mask", False):
        return None
    covered = [args for args in cases if has_mask(args)]
    if known and (
        fn.component.name not in SELF or hides_keys(fn, usual, covered)
    ):
        return None
    masks = [n for n in form.wants.names if "mask" in n.lower()]
    for found in by_lengths(fn, form, cases, word):
        if not known or hides_keys(fn, found, covered):
            said = (SAME_FOR_ALL.format(n) for n in masks if known)
            return replace(found, said=(*found.said, *said))
    return None


SAME_FOR_ALL = "`{}` was not given, for any mask does the same there"


def counting(
    name: str, wants: Wanted, word: str, axes: int, first: bool, of_x: bool
) -> Callable:
    """Call with lengths of so many axes in place of the mask."""

    def ask(fn: Callable, *vectors: Tensor) -> Any:
        given = [x for x in vectors if x.is_floating_point()]
        counts = [*vectors[len(given) :]]
        if not counts and word in wants.required:
            counts = [torch.full((len(given[0]),), given[:2][-1].shape[1])]
        if axes == 2:
            rows = given[0].shape[1]
            counts = [x[:, None].expand(-1, rows) for x in counts]
        words = {word: counts[0]} if counts else {}
        got = fn(*given, **words)
        return entry(0)(got, ()) if first else got

    def whole(fn: Callable, args: tuple) -> Tensor:
        yours = functools.partial(ask, fn)
        if name == "masked_softmax":
            return softmax_by_lengths(yours, *args)
        if name not in SELF or of_x:
            return valid_lengths(yours)(*args)
        x = args[0]
        masks = [without_heads(m, {"x": x}) for m in args[1:] if m is not None]
        return valid_lengths(yours)(x, x, x, *masks)

    return whole


def softmax_by_lengths(yours: Callable, scores: Tensor, mask: Tensor) -> Tensor:
    """Ask for the weights of each row, with what it may see in front."""
    three = scores.reshape(-1, *scores.shape[-2:])
    written = mask.expand(scores.shape).reshape(three.shape)

    def ask(order: Tensor, counts: Tensor) -> Tensor:
        place = order[:, None].expand_as(three)
        weights = yours(three.gather(2, place), counts)
        return weights.gather(2, place.argsort())

    return rows_by_lengths(written, ask).reshape(scores.shape)
