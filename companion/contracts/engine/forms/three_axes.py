"""What takes three axes, and no others."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.forms.fitting import fit_all, fits
from companion.contracts.engine.forms.form import Form, joined
from companion.contracts.engine.guard import (
    Guarded,
    Raised,
    has_mask,
)

__all__ = [
    "OF_THREE",
    "of_three_axes",
]


def of_three_axes(fn: Guarded, form: Form) -> Form | None:
    """Return the form that gives attention three axes, if it says so itself.

    With any other number it has to raise something; what gives wrong numbers
    then, or was to take heads, is wrong.
    """
    usual = fn.form or form
    q, k, v = (draw(2, 3, n, d, seed=d) for n, d in ((5, 11), (7, 11), (7, 13)))
    try:
        fn.raw(q, k, v)
    except Broken as broken:
        if not (isinstance(broken, Raised) and THREE.search(broken.message)):
            return None
    else:
        return of_several_axes(fn, usual)
    if fits(fn, (q[0, 0], k[0, 0], v[0, 0])):
        return None
    mask = torch.ones(2, 3, 5, 7, dtype=torch.bool).tril(2)
    for each in (False, True):
        found = replace(
            usual,
            style=None,
            layout=None,
            reading=None,
            whole=in_three_axes(replace(usual, hidden=False), each),
            said=(*usual.said, OF_THREE, *[ONE_BY_ONE] * each),
        )
        if fit_all(fn, found, [(q, k, v), (q, k, v, mask)], []):
            return found
    return None


def of_several_axes(fn: Guarded, usual: Form) -> Form | None:
    """Return the form that gives a lone sentence an axis, if it says so itself.

    Of three axes and of more it takes any number.
    """
    q, k, v = (draw(n, d, seed=d) for n, d in ((5, 11), (7, 11), (7, 13)))
    try:
        fn.raw(q, k, v)
    except Broken as broken:
        if not (isinstance(broken, Raised) and TOO_FEW.search(broken.message)):
            return None
    else:
        return None
    found = replace(
        usual,
        style=None,
        layout=None,
        reading=None,
        whole=with_an_axis(replace(usual, hidden=False)),
        said=(*usual.said, A_BATCH),
    )
    mask = torch.ones(5, 7, dtype=torch.bool).tril(2)
    fitting = fit_all(fn, found, [(q, k, v), (q, k, v, mask)], [])
    return found if fitting else None


def with_an_axis(form: Form) -> Callable:
    """Call with an axis for the batch, and leave it out of what comes back."""

    def whole(fn: Callable, args: tuple) -> Any:
        if args[0].ndim != 2:
            return form(fn, args)
        got = form(fn, tuple(x if x is None else x[None] for x in args))
        return got[0] if isinstance(got, Tensor) else got

    return whole


TOO_FEW = re.compile(
    r"subscripts in the equation \(3\) is more than the number of dimensions"
    r"|unpack \(expected (at least )?[34], got 2\)|be a 3D tensor"
)


A_BATCH = "it wants an axis for the batch, so that a lone sentence got one"


THREE = re.compile(
    "be a 3D tensor|unpack \\(expected 3|subscripts in the equation \\(3\\)"
    "|equal to len\\(dims\\) = 3"
)


OF_THREE = "it takes three axes and no others, so that more were made one"


ONE_BY_ONE = "of masks with more than two axes each was given alone"


def in_three_axes(form: Form, each: bool) -> Callable:
    """Call with vectors of three axes, and give the others back.

    Args:
        form: How it is called.
        each: Whether it is given each sentence alone, with a mask (query, key),
            where sentences have masks of their own.
    """

    def whole(fn: Callable, args: tuple) -> Any:
        *vectors, mask = args if has_mask(args) else (*args, None)
        vectors = [x for x in vectors if x is not None]
        lead = vectors[0].shape[:-2]
        three = [x.reshape(-1, *x.shape[-2:]) for x in vectors]
        if mask is None:
            got = form(fn, tuple(three))
        else:
            shape = vectors[0].shape[-2], vectors[1].shape[-2]
            full = mask.expand(*lead, *shape).reshape(-1, *shape)
            if mask.ndim < 3:
                got = form(fn, (*three, full[0]))
            elif each:
                rows = zip(*(x.split(1) for x in three), full, strict=True)
                got = joined([form(fn, row) for row in rows], 0)
            else:
                got = form(fn, (*three, full))
        flat = isinstance(got, Tensor) and got.ndim == 3
        return got.reshape(*lead, *got.shape[-2:]) if flat else got

    return whole
