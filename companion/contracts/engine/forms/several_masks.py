"""Tell which of several masks is meant."""

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from companion.contracts.adapters import (
    mask_added,
)
from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.forms.fitting import (
    candidates,
    fits,
    hides_keys,
)
from companion.contracts.engine.forms.form import (
    OF_KEYS,
    Form,
    alone,
    everything,
)
from companion.contracts.engine.forms.lengths import lengths_for
from companion.contracts.engine.forms.signature import (
    IDLE,
    OF_KEY,
    SELF,
    Call,
    Style,
    Wanted,
)
from companion.contracts.engine.forms.styles import by_word
from companion.contracts.engine.forms.translators import (
    NO_PADDING,
    OF_ANOTHER,
    breaks,
)
from companion.contracts.engine.guard import (
    Guarded,
    has_mask,
)
from companion.contracts.engine.masking import hides_rows, unchanged

__all__ = [
    "keeping",
    "keeps_out",
    "with_its_mask_of_several",
]


def with_its_mask_of_several(
    fn: Guarded, form: Form, cases: list[tuple], *, known: bool
) -> Form | None:
    """Return the form that gives the one of several masks that is judged.

    Args:
        fn: What is tried, as it is called so far.
        form: The plain form.
        cases: Those of the component.
        known: Whether a form was found.
    """
    usual = fn.form
    fn.form = usual = with_another_mask(fn, form, cases) or usual
    fn.form = usual = lengths_for(fn, form, cases, known=known) or usual
    if len(own_masks(fn, form)) < 2:
        return usual
    x, mask = next(args for args in cases[::-1] if has_mask(args))
    kept = bool([*keeping(fn, usual or form, x, mask)])
    fn.form = usual
    asked = [*other_masks(fn, form, cases, closely=kept)]
    if kept:
        usual = faulty_mask(fn, usual or form, asked, (x, mask)) or usual
    if idle := [one.name for one in asked if not one.moved]:
        said = (IDLE.format(name) for name in idle)
        whole = usual or form
        usual = replace(whole, said=(*whole.said, *said))
    return usual


def with_another_mask(
    fn: Guarded, form: Form, cases: list[tuple]
) -> Form | None:
    """Return the form that gives what hides keys, of several called masks.

    Nothing, if the one that is given does, or none of the others.
    """
    masks, usual = own_masks(fn, form), fn.form
    covered = [args for args in cases if has_mask(args)]
    if not masks or hides_keys(fn, usual, covered):
        return None
    offered: list[Form] = []
    for name in masks:
        for found in given_as(fn, form, name, cases):
            if hides_keys(fn, found, covered):
                offered.append(found)
                break
    return min(offered, key=lambda form: breaks(fn, form), default=None)


def own_masks(fn: Guarded, form: Form) -> list[str]:
    """List the masks of what sees itself, where there are several."""
    known = form.wants.bound.parameters if form.wants.bound else {}
    masks = [
        n for n in known if "mask" in n.lower() and not NO_PADDING.search(n)
    ]
    masks = [n for n in masks if n not in form.wants.flags]
    apart = fn.component.name not in SELF or getattr(fn.form, "whole", None)
    return [] if apart or len(masks) < 2 else masks


def given_as(
    fn: Guarded, form: Form, name: str, cases: list[tuple]
) -> Iterator[Form]:
    """List the forms that give the mask under a name."""
    read = replace(form, wants=replace(form.wants, mask=name))
    return candidates(fn, read, by_its_word(name), cases)


class Asked(NamedTuple):
    """One of several masks, asked for itself.

    Attributes:
        name: What it is called.
        forms: Those that give it.
        moved: Those in which it moves something.
        keeps: Those in which it keeps hidden keys out, read as they say.
        added: Those in which it does so if it is added to the scores.
    """

    name: str
    forms: list[Form]
    moved: list[Form]
    keeps: list[Form]
    added: list[Form]


def other_masks(
    fn: Guarded, form: Form, cases: list[tuple], *, closely: bool
) -> Iterator[Asked]:
    """List what each of several masks does, as far as one can be given.

    Those of another's keys are not asked, for nobody else is seen. Unless it is
    looked at ``closely``, only whether one moves anything is found out.
    """
    covered = [args for args in cases if has_mask(args)]
    names = (n for n in own_masks(fn, form) if not OF_ANOTHER.search(n))
    for name in names:
        asked = Asked(name, [], [], [], [])
        for found in given_as(fn, form, name, cases):
            asked.forms.append(found)
            fn.form = found
            if unchanged(fn, *covered[-1]):
                continue
            asked.moved.append(found)
            if not closely:
                break
            asked.keeps.extend(keeping(fn, found, *covered[-1]))
            added = Guarded(fn.component, mask_added(fn.fn))
            if keeps_out(added, found, *covered[-1]):
                asked.added.append(found)
            if asked.keeps:
                break
        if asked.forms:
            yield asked


def keeping(fn: Guarded, form: Form, x: Tensor, mask: Tensor) -> Iterator[Form]:
    """List the form in each reading in which hidden keys count nowhere."""
    for hidden in (False, True):
        read = replace(form, hidden=hidden)
        if keeps_out(fn, read, x, mask):
            yield read


def keeps_out(fn: Guarded, form: Form | None, x: Tensor, mask: Tensor) -> bool:
    """Tell whether no row of a word moves with padding, a mask's hidden keys.

    Args:
        fn: What is tried.
        form: How it is called.
        x: Its vectors.
        mask: It hides padding, (batch, 1, 1, key).
    """
    fn.form, real = form, mask[:, 0, 0]
    other = x + draw(*x.shape, seed=223) * ~real[..., None]
    try:
        gap = fn.raw(other, mask) - fn.raw(x, mask)
    except Broken:
        return False
    return not (gap.detach().nan_to_num(1)[real].abs() > 1e-5).any()


def faulty_mask(
    fn: Guarded, usual: Form, asked: list[Asked], case: tuple
) -> Form | None:
    """Return the form that gives a mask which is wrong, beside a right one.

    Of two that are right alone one may still be lost beside the other.
    """
    if len(asked) < 2:
        return None
    x, mask = case
    for one in asked:
        if one.keeps or one.added or not one.moved:
            continue
        if not any(for_rows(fn, one.name, f, x, mask) for f in one.forms):
            return replace(one.moved[0], hidden=usual.hidden)
    right = (one for one in asked if one.keeps)
    for one, other in itertools.permutations(right, 2):
        both = beside(one.keeps[0], other)
        lost = not keeps_out(fn, both, x, mask)
        if lost and fits(fn, (x, mask)):
            return replace(both, hidden=usual.hidden)
    return None


def beside(form: Form, other: Asked) -> Form:
    """Return the form that gives another mask too, which hides nothing."""
    bare, its = form.style, other.keeps[0]

    def style(wants: Wanted, named: dict) -> Call | None:
        call = bare(wants, named) if bare else None
        if call is None or named.get("mask") is None:
            return call
        full = everything(named, its.hidden)
        if its.layout in OF_KEYS:
            keys = full[:1].expand(len(named["x"]), -1)
            full = keys.unflatten(0, (-1, *[1] * OF_KEYS[its.layout]))
        elif its.layout not in (None, alone):
            full = its.layout(full, named)
        return call[0], {**call[1], other.name: full}

    said = (*form.said, HID_NOTHING.format(other.name))
    return replace(form, style=style, said=said)


HID_NOTHING = "`{}` hid nothing beside it"


def for_rows(
    fn: Guarded, name: str, form: Form, x: Tensor, mask: Tensor
) -> bool:
    """Tell whether a mask is made for rows, whatever True means in it.

    It hides them alone. If it is named after padding, they have to see nobody
    then, as what is set to 0; and it is not named after keys.
    """
    real = mask[:, 0, 0, :, None]
    for hidden in (False, True):
        fn.form = replace(form, hidden=hidden)
        with contextlib.suppress(Broken):
            if not hides_rows(fn, x, mask):
                continue
            if not OF_KEY.search(name):
                return True
            other = x + draw(*x.shape, seed=223) * real
            gap = (fn.raw(other, mask) - fn.raw(x, mask)).detach().abs()
            still = bool((gap * ~real).nan_to_num(1).amax() < 1e-6)
            return still and "key" not in name.lower()
    return False


def by_its_word(name: str) -> list[tuple[str, Style]]:
    """List the ways to give vectors, and a mask of this name."""
    return [
        (f"its mask was given as `{name}`", by_word("x")),
        (
            f"it was called as (x, x, x), and its mask as `{name}`",
            by_word("x", "x", "x"),
        ),
        (
            f"it was called as (x, x), and its mask as `{name}`",
            by_word("x", "x"),
        ),
    ]
