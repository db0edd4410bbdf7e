"""Find the calls whose results have the right shape."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.forms.form import (
    FIRST,
    OF_KEYS,
    Form,
    last_layer,
    layouts,
    without_heads,
    written_out,
)
from companion.contracts.engine.forms.results import (
    FIRST_TAKEN,
    LAST_TAKEN,
    of_layers,
    readings,
)
from companion.contracts.engine.forms.rotations import takes_table
from companion.contracts.engine.forms.signature import (
    ATTENDING,
    MASKS,
    MODELS,
    SELF,
    Right,
)
from companion.contracts.engine.forms.styles import FOR_ONE_HEAD, NO_PADDING
from companion.contracts.engine.guard import (
    Guarded,
    Raised,
    copied,
    has_mask,
    one_tensor,
)
from companion.contracts.engine.masking import hides_rows, unchanged

__all__ = [
    "CLOSE",
    "ONES",
    "bindable",
    "candidates",
    "fit_all",
    "fits",
    "heeding_masks",
    "hides_keys",
    "hides_nothing",
    "makes_ones",
    "of_keys_alone",
    "right_so",
    "sequence_first",
    "takes_mask",
    "truth",
    "usual",
    "usual_cases",
]


def usual_cases(component: Component) -> list[tuple]:
    """List the cases that a form must fit; of long ones the first will do."""
    cases = [*component.cases().values()]
    return cases[:1] if component.name == "flash_attention" else cases


def hides_nothing(fn: Guarded, *args: Tensor) -> bool:
    """Tell whether a mask all True, or all False, is as good as none.

    Args:
        fn: What is given vectors, and last a mask.
        args: These.
    """
    *vectors, mask = args
    bare = fn.raw(*vectors)
    return any(
        torch.allclose(fn.raw(*vectors, full), bare, atol=1e-5)
        for full in (torch.ones_like(mask), torch.zeros_like(mask))
    )


ONES = "its 0 and 1 were read as False and True"


def makes_ones(fn: Guarded, form: Form) -> bool:
    """Tell whether the masks it makes are numbers, 0 and 1."""
    try:
        made = form(fn.fn, tuple(map(copied, fn.component.example)))
    except Exception:
        return False
    return any(map(are_ones, made if isinstance(made, tuple) else (made,)))


def are_ones(x: object) -> bool:
    """Tell whether it is a tensor of numbers that are all 0 or 1."""
    number = isinstance(x, Tensor) and x.dtype != torch.bool
    return number and bool(((x == 0) | (x == 1)).all())


def truth(made: Any, args: tuple) -> Any:
    """Read 0 and 1 as False and True, in each of several masks."""
    if isinstance(made, tuple):
        each = (truth(x, args) for x in made)
        return type(made)(*each) if hasattr(made, "_fields") else (*each,)
    return made != 0 if are_ones(made) else made


CLOSE = 1e-4
"""A mean that is so small, beside the largest number, is 0."""


def usual(
    fn: Guarded,
    form: Form,
    offered: Iterable,
    cases: list[tuple],
    right: Right | None,
) -> list[Form]:
    """List the first form that fits, if one does.

    Tables fit in several layouts, heads before the positions and behind, a
    scale may multiply or divide, and a mask of padding hide where it is True or
    where it is not: there it is the first that is right, if any.
    """
    rotates = fn.component.name == "rope" and takes_table(form.wants)
    either = rotates or "scale" in form.wants.required
    found = candidates(fn, form, offered, cases)
    if fn.component.name == "translation_model":
        return with_padding_too(fn, found)
    fitting = [*itertools.islice(found, None if either else 1)]
    padded = [style for _, style in NO_PADDING]
    if fitting and fitting[0].style in padded:
        return tried_most(fn, [*fitting, *found], right) or fitting
    good = (f for f in fitting if either and right_so(fn, f, right))
    return [*itertools.islice(good, 1)] or fitting


def of_keys_alone(
    fn: Guarded,
    form: Form,
    offered: Iterable,
    cases: list[tuple],
    right: Right | None,
) -> list[Form]:
    """List the form of an encoder whose masks have no row for a position.

    None where they may have, too. Whoever knows the keys' alone may `view` a
    mask so, and that of pairs has more numbers.
    """
    if fn.component.name != "encoder":
        return []
    del right  # By its shapes alone.
    plain, (x, mask) = fn.form, next(filter(has_mask, cases))
    if fits(fn, (x, mask.expand(-1, -1, x.shape[1], -1))):
        return []
    others = candidates(fn, form, offered, cases)
    found = (one for one in others if one.layout in OF_KEYS)
    best = [*itertools.islice(found, 1)]
    fn.form = plain
    return best


def heeding_masks(
    fn: Guarded, form: Form | None, plain: Form, cases: list[tuple]
) -> Form | None:
    """Return a form with masks of four axes, if fewer count nothing; or this.

    Args:
        fn: What is called.
        form: How it is called, if not plainly.
        plain: What stands for the plain call.
        cases: What it is called with.
    """
    base = form or plain
    few = [args for args in cases if has_mask(args) and args[-1].ndim < 4]
    known = fn.component.name == "multihead" and not fn.unwritten
    if not (known and few) or base.layout:
        return form
    (*vectors, mask) = few[0]

    def ignored(one: Form | None) -> bool:
        fn.form = one
        fitting = fits(fn, (*vectors, mask))
        return fitting and torch.equal(fn.raw(*vectors, mask), fn.raw(*vectors))

    said = (*base.said, ITS_MASKS_TOO)
    four = replace(base, layout=written_out, said=said)
    better = ignored(form) and not ignored(four) and fits(fn, few[0])
    fn.form = form
    return four if better else form


def tried_most(
    fn: Guarded, fitting: list[Form], right: Right | None
) -> list[Form]:
    """List the right form with which most contracts could be tried, if any.

    A mask that hides all keys alike may look like one that hides none.
    """
    good = [(form, fn.kept[1]) for form in fitting if right_so(fn, form, right)]
    good.sort(key=lambda pair: -len(pair[1]))
    return [form for form, _ in good[:1]]


def with_padding_too(fn: Guarded, found: Iterator[Form]) -> list[Form]:
    """List the first form in which a translator takes padding, or the first.

    Of a mask that hides nothing it may not look at what type it has.
    """
    src, tgt = torch.tensor([[1, 2, 3, 0, 0]]), torch.tensor([[1, 2, 3]])
    first = next(found, None)
    if first is None:
        return []
    for form in itertools.chain([first], found):
        fn.form = form
        if fits(fn, (src, tgt)):
            return [form]
    return [first]


def sequence_first(
    fn: Guarded, form: Form, offered: Iterable, cases: list[tuple]
) -> Iterator[Form]:
    """List the first forms that fit with the sequence first, if one does.

    Where a form fits with the batch first, there is none: what sees other
    sentences may be called just so, and is wrong.
    """
    if fn.component.name in FIRST:
        other = replace(form, first=True, said=(*form.said, ONLY_SO))
        # Of a mask that is given too, the first kind need not be the right one.
        most = 4 if fn.component.name == "language_model" else 1
        yield from itertools.islice(candidates(fn, other, offered, cases), most)


ONLY_SO = "the sequence comes first in it, for its shapes fit only so"


def right_so(fn: Guarded, form: Form | None, right: Right | None) -> bool:
    """Tell whether nothing is wrong with ``fn``, if it is called so."""
    fn.form = form
    return right is not None and right(fn)


def fits(fn: Guarded, args: tuple) -> bool:
    """Tell whether a call gives what has the right shape."""
    try:
        fn.raw(*args)
    except Broken:
        return False
    return True


def candidates(
    fn: Guarded, form: Form, offered: Iterable, cases: list[tuple]
) -> Iterator[Form]:
    """List the forms that fit all cases."""
    name = fn.component.name
    masked = "mask" in fn.component.parameters
    bare = [args for args in cases if not has_mask(args)]
    covered = [args for args in cases if has_mask(args)]
    given = bool(covered) and (name in SELF or name in ATTENDING)
    for said, style in offered or [("", None)]:
        for absent in ABSENT if masked else ("omitted",):
            # What stands for no mask has the layout of all masks.
            full = absent == "full" and given
            for first, outer in layouts(fn.fn) if full else [("", None)]:
                styled = replace(form, style=style, absent=absent, layout=outer)
                if not bindable(styled, bare):
                    continue
                laid = layouts(fn.fn) if given else [("", None)]
                laid = [(first, outer)] if full else laid
                for told, reading in readings_that_fit(fn, styled, bare, said):
                    read = replace(styled, reading=reading)
                    else_given = at_the_start(styled)
                    more = filter(None, (said, told, else_given))
                    words = (*form.said, *more)
                    if not covered:
                        yield replace(read, said=words)
                        continue
                    for which, layout in laid:
                        whole = replace(read, layout=layout)
                        if layout is without_heads and FOR_ONE_HEAD in said:
                            which = ITS_MASKS_TOO
                        more = filter(None, (which, ABSENT[absent]))
                        whole = replace(whole, said=(*words, *more))
                        if fit_all(fn, whole, covered, bare):
                            yield whole


ITS_MASKS_TOO = "its masks are (batch, 1, seq, seq)"
"""What is said of masks that get the axis for one head, as vectors do."""


ABSENT = {
    "omitted": "",
    "none": "",
    "full": "where there is no mask, it got one that hides nothing",
}
"""What stands for a mask where there is none -> how that is told."""


def bindable(form: Form, cases: list[tuple]) -> bool:
    """Tell whether its style can make a call at all."""
    if form.style is None:
        return True
    for args in cases:
        named = dict(zip(form.parameters, args, strict=False))
        if form.absent != "omitted" and "mask" in form.parameters:
            named["mask"] = None
        try:
            if form.style(form.wants, named) is None:
                return False
        except (KeyError, AttributeError, IndexError):
            return False
    return True


def at_the_start(form: Form) -> str:
    """Tell of a `start_pos` that it must be given, if it gets one."""
    if form.style is None or "start_pos" not in form.wants.required:
        return ""
    return "`start_pos` was 0: a start further on, with a cache, was not tried"


def readings_that_fit(
    fn: Guarded, form: Form, cases: list[tuple], said: str = ""
) -> Iterator[tuple[str, Callable | None]]:
    """List what can be read of the results, of all cases without a mask.

    What a model raises that is called so, as ``said`` tells, is kept.
    """
    results = []
    for args in cases:
        fn.form = form
        try:
            results.append((fn.call(*map(copied, args)), args))
        except Broken as broken:
            model = fn.component.name in MODELS and not form.first
            # Whichever way a mask is given, it is asked whether it is true.
            model |= "Boolean value of Tensor" in broken.message
            if model and said and isinstance(broken, Raised):
                fn.note(broken, f"Called as yours: {said}.")
            return
    read = fn.component.read or one_tensor
    for told, reading in readings(fn.component.name, form.style):
        try:
            for result, args in results:
                got = reading(result, args) if reading else result
                read(fn, got, args)
        except Broken:
            continue
        if told == FIRST_TAKEN and of_layers(fn, results[0][0]):
            told, reading = LAST_TAKEN, last_layer
        yield told, reading
        return


def fit_all(
    fn: Guarded, form: Form, covered: list[tuple], bare: list[tuple]
) -> bool:
    """Tell whether a form fits the cases with a mask."""
    fn.form = form
    try:
        fitting = all(fits(fn, args) for args in covered)
        return fitting and all(wants_heads(fn, form, a) for a in covered)
    except (TypeError, KeyError, AttributeError, IndexError):
        return False


def wants_heads(fn: Guarded, form: Form, args: tuple) -> bool:
    """Tell whether an axis for one head is wanted, where masks are of keys.

    What takes vectors without it may be given lengths in place of a mask, and
    beside that axis these fit too, by their shapes.
    """
    one_head = any(FOR_ONE_HEAD in said for said in form.said)
    if not (one_head and form.row_by_row_asked):
        return True
    fn.form = None
    return not fits(fn, args[:3])


def takes_mask(component: Component) -> bool:
    """Tell whether there are masks that a component is given, or returns."""
    named = component.name in (*MASKS, *MODELS)
    return named or "mask" in component.parameters


def hides_keys(fn: Guarded, form: Form | None, covered: list[tuple]) -> bool:
    """Tell whether a mask counts, and not for the rows of its keys alone.

    One that has an axis for its rows is meant for both, and may be wrong.
    """
    fn.form = form
    x, mask = covered[-1]
    of_keys = form is not None and form.row_by_row_asked
    try:
        only_rows = of_keys and hides_rows(fn, x, mask)
        return not only_rows and not unchanged(fn, x, mask)
    except Broken:
        return False
