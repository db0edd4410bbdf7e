"""Masks that a translator need not be given."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from companion.contracts.engine.forms.fitting import (
    candidates,
    fit_all,
    fits,
    right_so,
    sequence_first,
)
from companion.contracts.engine.forms.form import Form
from companion.contracts.engine.forms.signature import (
    OF_SOURCE,
    OF_TARGET,
    Call,
    Right,
    Wanted,
    filled,
    wanted,
)
from companion.contracts.engine.forms.styles import STYLES
from companion.contracts.engine.guard import (
    Guarded,
)

__all__ = [
    "NO_PADDING",
    "OF_ANOTHER",
    "added",
    "breaks",
    "with_its_masks",
]


class Roles(NamedTuple):
    """Which masks of a translator are for what, by their names.

    Attributes:
        source: Those of the source's padding.
        target: Those of the target.
        order: Those of the target's order alone, where padding is apart.
        memory: Those of the source's padding for the attention to the memory,
            beside one for the encoder: their shape may be another.
    """

    source: tuple[str, ...]
    target: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()


NO_PADDING = re.compile(r"(?i)head|token|ratio|prob|_id$|^use|^return")
"""What is called a mask, and hides no padding."""


OF_ANOTHER = re.compile("(?i)cross|mem|encoder|context|(^|_)kv_mask")
"""How masks are called that hide keys of something else."""


def of_memory(name: str) -> bool:
    """Tell whether a mask is for the attention to the memory, by its name."""
    both = OF_SOURCE.search(name) and OF_TARGET.search(name)
    return bool(both or re.search("(?i)cross|mem", name))


def optional_masks(wants: Wanted) -> list[str]:
    """List the masks that may be given, and need not."""
    known = wants.bound.parameters if wants.bound else {}
    return [
        name
        for name, one in known.items()
        if "mask" in name.lower()
        and one.default is None
        and not NO_PADDING.search(name)
    ]


def roles(masks: list[str]) -> Iterator[Roles]:
    """List what masks of these names may be for, the likeliest first."""
    pads = [n for n in masks if "pad" in n.lower()]
    apart = bool(pads) and len(pads) < len(masks)
    kept = pads if apart else masks
    source = [n for n in kept if OF_SOURCE.search(n)]
    target = [n for n in kept if OF_TARGET.search(n) and n not in source]
    for name in kept:
        if name not in (*source, *target):
            # A name that says nothing is the source's, if no other is.
            own = target if source and not target else source
            own.append(name)
    order = [n for n in masks if n not in pads and not OF_SOURCE.search(n)]
    # PyTorch's `memory_mask` hides no padding; another of the memory does.
    cross = [n for n in source if of_memory(n)] or [
        n for n in masks if n not in kept and of_memory(n)
    ]
    yield Roles(
        tuple(source),
        tuple(target),
        tuple(order) if apart else (),
        tuple(cross) if {*source} - {*cross} else (),
    )
    if len(source) == len(target) == 1 and not (
        OF_SOURCE.search(source[0]) and OF_TARGET.search(target[0])
    ):
        yield Roles(tuple(target), tuple(source), tuple(order) if apart else ())


class Made(NamedTuple):
    """How a mask is made, and what is told of it.

    Attributes:
        name: What it is called.
        of: Makes True = may attend, of the ids of source and target.
        kind: Makes of that what the learner wants.
        said: What it does, with its shape.
    """

    name: str
    of: Callable[[Tensor, Tensor], Tensor]
    kind: Callable[[Tensor], Tensor]
    said: str


def of_padding(which: int, axes: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a mask (batch, key) of source or target; with more axes 1 stands."""
    return lambda *ids: (ids[which] != 0)[(slice(None), *[None] * (axes - 2))]


def of_pairs(axes: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a mask of the source's padding with a row for each target token."""
    padding = of_padding(0, axes)
    return lambda src, tgt: padding(src, tgt).repeat_interleave(
        tgt.shape[1], -2
    )


def of_future(src: Tensor, tgt: Tensor) -> Tensor:
    """Make a causal mask, (seq, seq)."""
    return torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()


def of_both(axes: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a mask of the target's future and padding."""
    own = of_padding(1, axes)
    return lambda src, tgt: own(src, tgt) & of_future(src, tgt)


def added(may: Tensor) -> Tensor:
    """Make of a mask one that is added to the scores."""
    return torch.zeros(may.shape).masked_fill(~may, -torch.inf)


PLAIN, NUMBERS, ADDED = "{}", "{} of 1 and 0", "{} of 0 and −∞"


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    PLAIN: lambda may: may,
    NUMBERS: lambda may: may.float(),
    ADDED: added,
}
"""What is told of masks -> how they are made of True = may attend."""


PADDED = {2: "(batch, key)", 4: "(batch, 1, 1, key)", 3: "(batch, 1, key)"}


WHOLE = {4: "(batch, 1, seq, seq)", 3: "(batch, seq, seq)"}


PAIRS = {4: "(batch, 1, tgt, src)", 3: "(batch, tgt, src)"}
"""Axes -> the shape of a mask of padding, of one with the future, and of one of
the memory with a row for each target token.
"""


def for_source(role: Roles, kind: str) -> Iterator[tuple[Made, ...]]:
    """List the usual masks of the source's padding."""

    def made(
        names: Iterable[str], of: Callable, shape: str
    ) -> tuple[Made, ...]:
        shape = kind.format(shape)
        return tuple(
            Made(
                name,
                of,
                KINDS[kind],
                f"`{name}` hid the source's padding, {shape}",
            )
            for name in names
        )

    own = [name for name in role.source if name not in role.memory]
    for axes, shape in PADDED.items():
        first = made(own, of_padding(0, axes), shape)
        if not role.memory:
            yield first
            continue
        # That of the memory has the same shape rather than another.
        for other in sorted(PADDED, key=lambda n: n != axes):
            of = of_padding(0, other)
            yield (*first, *made(role.memory, of, PADDED[other]))
        for other, pairs in PAIRS.items():
            yield (*first, *made(role.memory, of_pairs(other), pairs))
        if not {*role.memory} <= {*role.source}:
            yield first


def for_target(role: Roles, kind: str) -> Iterator[tuple[Made, ...]]:
    """List the usual masks of the target, and none at last."""

    def made(names: tuple[str, ...], of: Callable, said: str) -> tuple:
        return tuple(
            Made(name, of, KINDS[kind], f"`{name}` {kind.format(said)}")
            for name in names
        )

    order = made(role.order, of_future, f"{FUTURE}, (seq, seq)")
    for axes, shape in PADDED.items():
        own = made(role.target, of_padding(1, axes), f"{PADDING}, {shape}")
        yield (*own, *order)
    for axes, shape in WHOLE.items():
        yield made(role.target, of_both(axes), f"{BOTH}, {shape}")
    yield made(role.target, of_future, f"{FUTURE}, (seq, seq)")
    yield order
    yield ()


PADDING = "hid the target's padding"


FUTURE = "hid the target's future"


BOTH = "hid the target's future and padding"


def with_made(form: Form, made: Iterable[Made]) -> Form:
    """Return a form that gives these masks too."""
    made, bare = tuple(made), form.style

    def style(wants: Wanted, named: dict) -> Call | None:
        call = bare(wants, named) if bare else None
        if call is None:
            return None
        ids = named["src"], named["tgt"]
        masks = {one.name: one.kind(one.of(*ids)) for one in made}
        return filled(wants, (call[0], {**call[1], **masks}), named)

    if not made:
        return form
    told = () if GOT_MASKS in form.said else (GOT_MASKS,)
    more = (*told, *(one.said for one in made))
    return replace(form, style=style, said=(*form.said, *more))


GOT_MASKS = "it got masks too"


def with_its_masks(
    fn: Guarded, form: Form, mask: str | None, right: Right
) -> Form | None:
    """Return the form that gives a translator the masks that it may be given.

    Nothing, where it has none, or is as good without them. It is the first in
    which no contract finds a fault, or else one in which few do: a mask that
    does not arrive stays a fault.

    Args:
        fn: What is tried.
        form: The plain form.
        mask: What True means in its masks, if that was said.
        right: Tells whether no contract finds a fault.
    """
    usual, drawn = fn.form, torch.get_rng_state()
    form = replace(form, wants=wanted(fn.fn))
    cases = list(fn.component.cases().values())
    given = None
    if optional_masks(form.wants):
        fitting = all(fits(fn, args) for args in cases)
        plain = called_bare(fn, form, cases)
        bare = usual if fitting else plain
        if plain and (mask or not right_without(fn, bare, right)):
            given = masks_given(fn, plain, mask, right, cases)
    fn.form = usual
    torch.set_rng_state(drawn)
    return given


def right_without(fn: Guarded, bare: Form | None, right: Right) -> bool:
    """Tell whether no contract finds a fault if no mask is given.

    Those about padding are asked first: where they find one, it is enough.
    """
    return keeps_padding_out(fn, bare) and right_so(fn, bare, right)


def called_bare(fn: Guarded, form: Form, cases: list[tuple]) -> Form | None:
    """Return the form that calls a translator without masks, if one fits."""
    offered = STYLES["translation_model"][:2]
    found = next(candidates(fn, form, offered, cases), None)
    return found or next(sequence_first(fn, form, offered, cases), None)


class Given(NamedTuple):
    """Masks of the source's padding that fit.

    Attributes:
        role: Which masks are for what.
        kind: How they are made of True = may attend.
        form: Gives them.
    """

    role: Roles
    kind: str
    form: Form


def masks_given(
    fn: Guarded, plain: Form, mask: str | None, right: Right, cases: list[tuple]
) -> Form | None:
    """Do what ``with_its_masks`` does; ``plain`` is the call without masks."""
    hidden = mask == "hidden"
    found: list[Given] = []
    for given in source_given(fn, plain, mask, cases):
        as_said = given.form.hidden == hidden
        if not keeps_padding_out(fn, given.form):
            found += [given] * as_said
            continue
        whole = with_target(fn, given, cases)
        for form in (whole, given.form):
            if right_so(fn, form, right):
                # What True means is asked for, and never guessed.
                return replace(form, hidden=hidden)
        if as_said:
            return whole  # What is wrong is no matter of masks.
    role = next(roles(optional_masks(plain.wants)))
    if not mask and keeps_padding_out(fn, plain):
        # It makes masks of the padding itself.
        form = with_target(fn, Given(role, PLAIN, plain), cases)
        better = breaks(fn, form) < breaks(fn, plain)
        return form if better else None
    if found:
        return with_target(fn, found[0], cases)
    names = " and ".join(f"`{name}`" for name in role.source)
    said = (*plain.said, UNGIVEN.format(names)) if names else plain.said
    form = replace(plain, ungiven=role.source, said=said)
    return with_target(fn, Given(role, PLAIN, form), cases)


UNGIVEN = "{0} was not given, for no usual mask of padding fits"


def source_given(
    fn: Guarded, plain: Form, mask: str | None, cases: list[tuple]
) -> Iterator[Given]:
    """List the masks of the source's padding that fit, the usual ones first."""
    hides = [mask == "hidden"] if mask else [False, True]
    tries = [(kind, h) for h in hides for kind in (PLAIN, NUMBERS)]
    # To some what is not 0 is True, as −∞ is: so that comes last.
    for kind, hidden in [*tries, (ADDED, hides[0])]:
        if hidden and kind != PLAIN:
            continue  # Only True and False are turned round.
        for role in roles(optional_masks(plain.wants)):
            for made in for_source(role, kind):
                form = with_made(replace(plain, hidden=hidden), made)
                if made and fit_all(fn, form, cases, []):
                    yield Given(role, kind, form)


def with_target(fn: Guarded, given: Given, cases: list[tuple]) -> Form:
    """Return the form with masks of the target in which the fewest break."""
    offered: dict[tuple[str, ...], tuple[int, Form]] = {}
    for made in for_target(given.role, given.kind):
        form = with_made(given.form, made)
        if form.said not in offered and fit_all(fn, form, cases, []):
            broken = breaks(fn, form)
            if not broken:
                return form
            offered[form.said] = broken, form
    return min(offered.values(), key=lambda one: one[0])[1]


def keeps_padding_out(fn: Guarded, form: Form | None) -> bool:
    """Tell whether padding of the source counts nowhere if it is called so."""
    fn.form = form
    return all(holds(contract, fn) for contract in about("source", fn))


def breaks(fn: Guarded, form: Form) -> int:
    """Count what does not hold of who moves with whom if it is called so."""
    fn.form = form
    tried = [*fn.component.early, *about("target", fn)]
    return sum(not holds(contract, fn) for contract in tried)


def about(which: str, fn: Guarded) -> list[Callable]:
    """List the contracts about the padding of source or target."""
    own = fn.component.own
    return [c for c in own if getattr(c, "hides_padding", "") == which]


def holds(contract: Callable, fn: Guarded) -> bool:
    """Tell whether a contract holds."""
    with fn.without_causes():
        try:
            contract(fn)
        except Exception:  # Raised while a result was looked at, perhaps.
            return False
    return True
