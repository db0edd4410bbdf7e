"""The contracts of every component, whatever it computes."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import (
    TOLERANCE,
    Broken,
    furthest,
    is_float,
    same,
    tensors_in,
)
from companion.contracts.engine.component import Component, title
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.modules import OF_MODULES
from companion.contracts.engine.slopes import gradient


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
    known = recognised_mistake(fn)
    if known:
        hint, args, got = known
        same(fn, got, fn.component.oracle(*args), hint, cause=hint)
    for case, args in fn.component.cases().items():
        why = f"This is not what {fn.component.reference} returns {case}."
        same(fn, fn.raw(*args), fn.component.oracle(*args), why)


def recognised_mistake(fn: Guarded) -> tuple[str, tuple, Tensor] | None:
    """The known mistake whose numbers these are, with a case that shows it."""
    if not fn.component.oracle:
        return None
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
    for hint, suspect in component.hints.items():
        try:
            numbers = suspect(*args)
            if component.read:
                guarded = Guarded(component, suspect)
                numbers = component.read(guarded, numbers, args)
        except Exception:
            continue  # This mistake needs other sizes.
        if numbers.shape == got.shape and torch.allclose(
            numbers, got, TOLERANCE, TOLERANCE, equal_nan=True
        ):
            return hint
    return ""


def repeatable(fn: Guarded) -> None:
    """The same inputs give the same output."""
    args = fn.component.example
    before, after = fn(*args), fn(*args)
    why = "The second call differs: does it draw, or keep something?"
    pairs = zip(tensors_in(before), tensors_in(after), strict=True)
    for one, other in pairs:
        if furthest(one, other) is not None and drops_out(fn, args):
            why = (
                "The second call differs: dropout is on. It belongs to "
                "training only: call `.eval()` on the module first."
            )
        same(fn, one, other, why)
    if not tensors_in(before) and before != after:
        raise Broken(f"{why} It returned {before}, and then {after}.")


def drops_out(fn: Guarded, args: tuple) -> bool:
    """Whether a call of ``fn`` draws, and calls on dropout."""

    class Listener(TorchFunctionMode):
        heard = False

        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            name = getattr(func, "__name__", "")
            # What PyTorch's own module calls inside is not heard.
            named = "dropout" in name or "multi_head_attention" in name
            # With this one blocks.Dropout draws its mask.
            named |= name == "random_"
            self.heard |= named or kwargs.get("dropout_p", 0) > 0
            return func(*args, **kwargs)

    # A dropout that is off is called too, but draws nothing.
    before = torch.get_rng_state()
    with Listener() as listener:
        fn.raw(*args)
    drawn = not torch.equal(torch.get_rng_state(), before)
    return drawn and listener.heard


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


GATE = (right_shape, repeatable)
"""Before these hold nothing else is tried: it would only confuse."""


def contracts_of(component: Component) -> dict[str, Callable]:
    """Name -> contract, in the order in which they are tried."""
    tensors = [a for a in component.example if isinstance(a, Tensor)]
    slopes = component.gradient and any(map(is_float, tensors))
    order = (
        repeatable,
        *([untouched] if tensors else []),
        *component.early,
        *([agreement] if component.oracle else []),
        *component.own,
        *([gradient] if slopes else []),
        *(OF_MODULES if component.weights else ()),
    )
    named = {
        component.agrees if contract is agreement else title(contract): contract
        for contract in order
    }
    return {component.shape_contract: right_shape, **named}
