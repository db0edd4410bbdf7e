"""The contracts of every component, whatever it computes."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.core import (
    TOLERANCE,
    Broken,
    Component,
    draw,
    furthest,
    gradients,
    is_float,
    same,
    title,
)
from companion.contracts.guard import Guarded, Raised


def right_shape(fn: Guarded) -> None:
    """It returns a tensor of the right shape."""
    fn.require_call()
    try:
        fn(*fn.component.example)
    except Raised as raised:
        # With equal sizes a swapped argument does not raise: then its numbers
        # tell what was swapped.
        known = suspicion(fn)
        if known:
            message = f"{known[0]} Here it raised {raised.cause}."
            raise Broken(message) from None
        raise


def agreement(fn: Guarded) -> None:
    """It agrees with PyTorch."""
    known = suspicion(fn)
    if known:
        hint, args, got = known
        same(fn, got, fn.component.oracle(*args), hint, cause=hint)
    for case, args in fn.component.cases().items():
        why = f"This is not what {fn.component.peer} returns {case}."
        same(fn, fn.raw(*args), fn.component.oracle(*args), why)


def suspicion(fn: Guarded) -> tuple[str, tuple, Tensor] | None:
    """The known mistake whose numbers these are, with a case that shows it."""
    for args in fn.component.cases().values():
        try:
            got = fn.raw(*args)
        except Broken:
            continue
        hint = recognised(fn.component, args, got)
        if hint:
            return hint, args, got
    return None


def recognised(component: Component, args: tuple, got: Tensor) -> str:
    """The suspect that returns what was got, or nothing."""
    if furthest(got, component.oracle(*args)) is None:
        return ""
    for hint, suspect in component.suspects.items():
        try:
            numbers = suspect(*args)
        except (RuntimeError, IndexError):
            continue  # This mistake needs other sizes.
        if numbers.shape == got.shape and torch.allclose(
            numbers, got, TOLERANCE, TOLERANCE, equal_nan=True
        ):
            return hint
    return ""


def repeatable(fn: Guarded) -> None:
    """The same inputs give the same output."""
    args = fn.component.example
    why = "The second call differs: does it draw, or keep something?"
    same(fn, fn(*args), fn(*args), why)


def untouched(fn: Guarded) -> None:
    """It leaves its inputs as they were."""
    for args in fn.component.cases().values():
        copies = [a.clone() if isinstance(a, Tensor) else a for a in args]
        try:
            fn.call(*copies)
        except Raised:
            continue
        names = fn.component.parameters
        for name, a, copy in zip(names, args, copies, strict=False):
            if not isinstance(a, Tensor) or a is copy:
                continue
            if a.shape != copy.shape or not torch.equal(a, copy):
                raise Broken(
                    f"It changes `{name}` in place: does a name end in `_`, "
                    f"or a line assign to `{name}[...]` or use `+=` on it?",
                    copy if a.shape == copy.shape and is_float(a) else None,
                    a if a.shape == copy.shape and is_float(a) else None,
                    ("row", "column"),
                )


def gradient(fn: Guarded) -> None:
    """The gradient of every input is the slope of the function."""
    args = fn.component.example
    upstream = draw(*fn(*args).shape, seed=97)
    found = gradients(fn.raw, args, upstream)
    cut = "`.detach()`, `.item()`, `torch.tensor(...)` and `no_grad` cut it."
    if found is None:
        raise Broken(f"The output has no gradient at all: {cut}")
    places = [i for i, a in enumerate(args) if is_float(a)]
    for i, mine in zip(places, found, strict=True):
        name = fn.component.parameters[i]
        way = draw(*args[i].shape, seed=101) / args[i].numel() ** 0.5
        is_ = slope(fn, args, i, way, upstream)
        if mine is None:
            raise Broken(
                f"No gradient reaches `{name}`: {cut}"
                if is_
                else f"The output does not depend on `{name}`."
            )
        said = (mine * way).sum().item()
        if not math.isclose(said, is_, rel_tol=0.02, abs_tol=2e-3):
            raise Broken(
                f"The gradient of `{name}` is wrong. In one direction it says "
                f"{said:.3g}, but the output changes by {is_:.3g}: is the path "
                f"cut halfway? {cut}"
            )


def slope(
    fn: Guarded, args: tuple, i: int, way: Tensor, upstream: Tensor
) -> float:
    """How fast the output changes as argument ``i`` moves ``way``, measured."""
    step, ends = 1e-2, []
    for sign in (1, -1):
        moved = (*args[:i], args[i] + sign * step * way, *args[i + 1 :])
        ends.append((fn(*moved).detach() * upstream).double().sum().item())
    return (ends[0] - ends[1]) / (2 * step)


GATE = (right_shape, repeatable)
"""Before these hold nothing else is tried: it would only confuse."""


def contracts_of(component: Component) -> dict[str, Callable]:
    """Name -> contract, in the order in which they are tried."""
    order = (
        *GATE,
        untouched,
        *component.early,
        agreement,
        *component.own,
        gradient,
    )
    return {title(contract): contract for contract in order}
