"""The contracts of every component, whatever it computes."""

import contextlib
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import (
    TOLERANCE,
    Broken,
    draw,
    furthest,
    gradients,
    is_float,
    same,
    tensors_in,
)
from companion.contracts.engine.component import Component, title
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.levels import FAULT, NOTE, RISK
from companion.contracts.engine.modules.common import (
    MADE_ANEW,
    held_apart,
    made_anew,
    module_kept,
    module_of,
    require_grad_mode,
)
from companion.contracts.engine.modules.rounding import Unrounded
from companion.contracts.engine.modules.taking_part import OF_MODULES

__all__ = [
    "GATE",
    "STAYS_ON",
    "contracts_of",
    "level_of_known",
    "recognised_mistake",
    "repeatable",
]

STAYS_ON = (
    "dropout is on in evaluation. `F.dropout` needs `training=self.training`, "
    "`dropout_p` has to be 0 there, and a module such as `nn.Dropout` belongs "
    "in `__init__`."
)
CUT = "`.detach()`, `.item()`, `torch.tensor(...)` and `no_grad` cut it."


def right_shape(fn: Guarded) -> None:
    """It returns a tensor of the right shape."""
    fn.require_call()
    try:
        fn(*fn.component.example)
    except Raised as raised:
        # With equal sizes a swapped argument does not raise: then its numbers
        # tell what was swapped.
        known = recognised_mistake(fn)
        if known:
            message = f"{known[0]} Here it raised {raised.cause}."
            raise Broken(message) from None
        raise


def agreement(fn: Guarded) -> None:
    """It agrees with the oracle; a component may give it a name."""
    if returns_the_same(fn):
        return
    known = recognised_mistake(fn)
    if known:
        hint, args, got = known
        same(fn, got, fn.component.oracle(*args), hint, cause=hint)
    for case, args in fn.component.cases().items():
        why = f"This is not what {fn.component.reference} returns {case}."
        same(fn, fn.raw(*args), fn.component.oracle(*args), why)


def returns_the_same(fn: Guarded) -> bool:
    """Tell whether it agrees with the oracle in each case."""
    try:
        return all(
            furthest(fn.raw(*args), fn.component.oracle(*args)) is None
            for args in fn.component.cases().values()
        )
    except Broken:
        return False


def recognised_mistake(fn: Guarded) -> tuple[str, tuple, Tensor] | None:
    """Find the known mistake with these numbers, and a case that shows it."""
    if not fn.component.oracle:
        return None
    for args in fn.component.cases().values():
        try:
            got = fn.raw(*args)
        except Broken:
            continue
        hint = hint_for(fn.component, args, got)
        if hint:
            return hint, args, got
    return None


def hint_for(component: Component, args: tuple, got: Tensor) -> str:
    """Return the hint of the known mistake that returns ``got``, or nothing."""
    if furthest(got, component.oracle(*args)) is None:
        return ""
    for hint, mistake in component.hints.items():
        try:
            numbers = mistake(*args)
            if component.read:
                guarded = Guarded(component, mistake)
                numbers = component.read(guarded, numbers, args)
        except Exception:
            continue  # This mistake needs other sizes.
        if numbers.shape == got.shape and torch.allclose(
            numbers, got, TOLERANCE, TOLERANCE, equal_nan=True
        ):
            return hint
    return ""


def level_of_known(fn: Guarded, hint: str) -> tuple[str, str]:
    """Return the level that the mistake with this hint declares, and why.

    Nothing if it declares none. What returns something else in any case is
    more than that mistake, and a fault. What raises there does not pass
    unnoticed: a table with n - 1 speeds has none where n is 1.
    """
    mistake = next((m for m in fn.component.mistakes if m.hint == hint), None)
    if not (hint and mistake and mistake.level and fn.component.oracle):
        return "", ""
    cases = fn.component.cases().values()
    if all(returns(fn, mistake.fn, args) for args in cases):
        return mistake.level, mistake.why
    return FAULT, ""


def returns(fn: Guarded, other: Callable, args: tuple) -> bool:
    """Tell whether ``fn`` returns what ``other`` does, if it returns."""
    try:
        got = fn.raw(*args)
    except Raised:
        return True
    except Broken:
        return False
    expected = Guarded(fn.component, other).raw(*args)
    return furthest(got, expected) is None


def repeatable(fn: Guarded) -> None:
    """The same inputs give the same output."""
    args = fn.component.example
    one, two = fn(*args), fn(*args)
    why = "The second call differs: does it draw, or keep something?"
    pairs = zip(tensors_in(one), tensors_in(two), strict=True)
    for before, after in pairs:
        if furthest(before, after) is not None and drops_out(fn, args):
            why = (
                "The second call differs: dropout is on. It belongs to "
                "training only: call `.eval()` on the module first."
            )
            if told := out_of_reach(fn, args):
                why = f"The second call differs. {told}"
            elif in_eval_mode(module_of(fn)):
                why = f"The second call differs: {STAYS_ON}"
        elif furthest(before, after) is not None and (made := made_anew(fn)):
            why = f"The second call differs. {MADE_ANEW.format(made)}"
        same(fn, before, after, why)
    if not tensors_in(one) and one != two:
        raise Broken(f"{why} It returned {one}, and then {two}.")


def out_of_reach(fn: Guarded, args: tuple) -> str:
    """Tell of the plain list in which dropout stays on, whatever `.eval()`."""
    module = module_of(fn)
    apart = held_apart(module) if module is not None else []
    if not apart:
        return ""
    with module_kept(module):
        module.eval()
        return apart[0].told if drops_out(fn, args) else ""


def in_eval_mode(module: nn.Module | None) -> bool:
    """Tell whether a module, with all that is registered in it, is in it."""
    parts = () if module is None else module.modules()
    return module is not None and not any(part.training for part in parts)


def drops_out(fn: Guarded, args: tuple) -> bool:
    """Tell whether what a call of ``fn`` draws is dropout."""
    with Drawing() as drawing:
        fn.raw(*args)
    return drawing.drops


class Drawing(TorchFunctionMode):
    """Notes whether a call draws, as dropout does.

    Attributes:
        drops: It is so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.drops = False

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        before = torch.get_rng_state()
        got = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        # What PyTorch's own functions call inside does not pass here, and with
        # `random_` blocks.Dropout draws its mask.
        attention = "attention" in name
        if "dropout" in name or attention or name == "random_":
            self.drops |= not torch.equal(torch.get_rng_state(), before)
        return got


def untouched(fn: Guarded) -> None:
    """It leaves its inputs as they were."""
    for args in fn.cases:
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
                why = fn.component.in_place
                if not why and casts_first(fn, args):
                    why = ON_A_COPY
                raise Broken(
                    f"It changes `{name}` in place: does a name end in `_`, "
                    f"or a line assign to `{name}[...]` or use `+=` on it?",
                    copy if a.shape == copy.shape and is_float(a) else None,
                    a if a.shape == copy.shape and is_float(a) else None,
                    ("row", "column"),
                    level=RISK if why else "",
                    why=why,
                )


ON_A_COPY = (
    "In half precision it works on a copy, as a cast such as `.float()` makes "
    "one there; in float32 that is the input itself."
)


def casts_first(fn: Guarded, args: tuple) -> bool:
    """Tell whether it leaves inputs in half precision as they were."""
    half = [a.bfloat16() if is_float(a) else a for a in args]
    copies = [a.clone() if isinstance(a, Tensor) else a for a in half]
    try:
        fn.call(*copies)
    except Raised:
        return False
    pairs = zip(half, copies, strict=True)
    return all(torch.equal(a, b) for a, b in pairs if isinstance(a, Tensor))


def gradient_is_slope(fn: Guarded) -> None:
    """The gradient of every input is the slope of the function."""
    try:
        require_slopes(fn, fn.component.example)
    except Broken:
        # A ReLU may bend right there. What is wrong is wrong elsewhere too.
        args = elsewhere(fn.component.example)
        try:
            require_slopes(fn, args)
        except WrongSlope as broken:
            if not right_unrounded(fn, args):
                raise
            told = f"The gradient of `{broken.name}` is none of its slopes."
            raise Broken(told, level=NOTE, why=STRAIGHT_THROUGH) from None


class WrongSlope(Broken):
    """There is a gradient of the argument ``name``, and it is another one."""

    name = ""


STRAIGHT_THROUGH = (
    "It rounds numbers, and rounding has no slope: where its gradient is "
    "passed on as if nothing were rounded, the straight-through estimator, it "
    "is right."
)


def right_unrounded(fn: Guarded, args: tuple) -> bool:
    """Tell whether each gradient is a slope where nothing is rounded."""
    with Unrounded() as unrounded, contextlib.suppress(Broken):
        require_slopes(fn, args)
        return unrounded.heard
    return False


def elsewhere(args: tuple) -> tuple:
    """Return arguments near ``args``."""
    return tuple(
        a + 0.1 * draw(*a.shape, seed=109) if is_float(a) else a for a in args
    )


def require_slopes(fn: Guarded, args: tuple) -> None:
    """Raise Broken unless each gradient is a slope at ``args``."""
    upstream = [draw(*x.shape, seed=97) for x in tensors_in(fn(*args))]
    found = gradients(fn.raw, args, upstream)
    if found is None:
        require_grad_mode(fn, args)
        raise Broken(f"The output has no gradient at all: {CUT}")
    inputs = [i for i, a in enumerate(args) if is_float(a)]
    for i, gradient in zip(inputs, found, strict=True):
        require_slope(fn, args, i, gradient, upstream)


def require_slope(
    fn: Guarded,
    args: tuple,
    i: int,
    gradient: Tensor | None,
    upstream: list[Tensor],
) -> None:
    """Raise Broken unless ``gradient`` is the slope along argument ``i``."""
    name, agreeing = fn.component.parameters[i], 0
    # A ReLU may bend within a step, and a wrong gradient be right by chance:
    # two of three directions have to agree, each with one of two steps.
    for seed in (101, 103, 107):
        way = draw(*args[i].shape, seed=seed) / args[i].numel() ** 0.5
        got = 0.0 if gradient is None else (gradient * way).sum().item()
        for step in (1e-2, 1e-3):
            measured = slope(fn, args, i, step * way, upstream) / step
            near = math.isclose(got, measured, rel_tol=0.02, abs_tol=2e-3)
            if gradient is not None and near:
                agreeing += 1
                break
        else:
            wrong = got, measured
        if agreeing == 2:
            return
    if gradient is not None:
        broken = WrongSlope(
            f"The gradient of `{name}` is wrong. In one direction it says "
            f"{wrong[0]:.3g}, but the output changes by {wrong[1]:.3g}: is "
            f"the path cut halfway? {CUT}"
        )
        broken.name = name
        raise broken
    raise Broken(
        f"No gradient reaches `{name}`: {CUT}"
        if wrong[1]
        else f"The output does not depend on `{name}`."
    )


def slope(
    fn: Guarded, args: tuple, i: int, step: Tensor, upstream: list[Tensor]
) -> float:
    """Measure how much the output changes as argument ``i`` makes a step."""
    ends = []
    for sign in (1, -1):
        moved = (*args[:i], args[i] + sign * step, *args[i + 1 :])
        results = tensors_in(fn(*moved))
        ends.append(
            sum(
                (x.detach() * up).double().sum().item()
                for x, up in zip(results, upstream, strict=True)
            )
        )
    return (ends[0] - ends[1]) / 2


GATE = (right_shape, repeatable)
"""Before these hold nothing else is tried: it would only confuse."""


def contracts_of(component: Component) -> dict[str, Callable]:
    """Return name -> contract, in the order in which they are tried."""
    tensors = [a for a in component.example if isinstance(a, Tensor)]
    slopes = component.gradient and any(map(is_float, tensors))
    order = (
        repeatable,
        *([untouched] if tensors else []),
        *component.early,
        *([agreement] if component.oracle else []),
        *component.own,
        *([gradient_is_slope] if slopes else []),
        *(OF_MODULES if component.weights else ()),
    )
    named = {
        component.agrees if contract is agreement else title(contract): contract
        for contract in order
    }
    return {component.shape_contract: right_shape, **named}
