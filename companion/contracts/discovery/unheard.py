"""What a part that was judged right takes, or computes, and does not use.

No contract of what comes out can see it: a mask that is taken and never read,
and rotations that turn each head, and not each position.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import BATCH, SEQ
from companion.contracts.discovery.kinds.calls import (
    Called,
    first,
    understood,
    widths,
)
from companion.contracts.discovery.kinds.ids import never_read, unheard_mask
from companion.contracts.discovery.verdict import (
    ATTENDING,
    Judged,
    Unjudged,
    in_time,
)
from companion.contracts.engine.compare import draw
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.common import module_kept
from companion.contracts.engine.report import Failure

__all__ = ["with_what_is_unheard"]

HEARD = "What it takes as a mask can change something"
NEVER_READ = (
    "Whatever `{}` hides, nothing changes, in all shapes that it was given: is "
    "it handed on to the scores?"
)
PADDED_BEHIND = (
    "It is right if padding only ever stands behind the words: there the "
    "causal mask alone keeps it out."
)

IN_ORDER = "What is turned by its position knows places"
IN_VAIN = (
    "It computes sines and cosines, and still knows no order: put the words "
    "before the last one in another order, and the last row stays as it is. "
    "Are vectors turned before the heads stand in front of the positions, so "
    "that each head gets an angle, and not each position?"
)
MEANT_OTHERWISE = "It is right if these are for something else than positions."


def with_what_is_unheard(
    judged: Judged, module: nn.Module, hints: list[int]
) -> Judged:
    """Add a risk to a report on attention, or a model, for what it leaves.

    Args:
        judged: What came of it; with a fault it stays as it is.
        module: What was judged.
        hints: How wide its vectors may be, if it does not show.
    """
    if not judged.report.passed:
        return judged
    if judged.component == "language_model":
        return with_its_mask_unheard(judged, module)
    if judged.component not in ATTENDING:
        return judged
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        try:
            found = in_time(lambda: risks(judged, module, hints))
        except Unjudged:
            return judged
    return replace(judged, report=judged.report.with_more(*found))


def with_its_mask_unheard(judged: Judged, module: nn.Module) -> Judged:
    """Add a risk to a report on a model of ids that never reads its mask."""
    name = in_time(lambda: unheard_mask(module))
    if not name:
        return judged
    said = NEVER_READ.format(name)
    risk = Failure(HEARD, said, level=RISK, why=PADDED_BEHIND, cause=NEVER_READ)
    return replace(judged, report=judged.report.with_more(risk))


def risks(judged: Judged, module: nn.Module, hints: list[int]) -> list[Failure]:
    """List what is not used, each as a risk."""
    width, args = understood(module, [*hints, *widths(module)])
    args = with_places(module, args)
    x = draw(BATCH, SEQ, width, seed=7)

    def call(vectors: Tensor, **named: Tensor) -> Tensor | None:
        own = tuple(vectors if a is args[0] else a for a in args)
        placed = own[: given_by_place(module, own, named)]
        try:
            got = first(module(*placed, **named))
        except Exception:
            return None
        return got if isinstance(got, Tensor) else None

    found = []
    name = its_mask(module) if judged.component == "causal_attention" else ""
    if name and never_read(lambda mask: call(x, **{name: mask})):
        said = NEVER_READ.format(name)
        found.append((HEARD, said, NEVER_READ, PADDED_BEHIND))
    if turns_in_vain(call, x):
        found.append((IN_ORDER, IN_VAIN, IN_VAIN, MEANT_OTHERWISE))
    return [
        Failure(contract, said, level=RISK, why=why, cause=cause)
        for contract, said, cause, why in found
    ]


def with_places(module: nn.Module, args: tuple) -> tuple:
    """Give positions to what is called so, in place of what was understood."""
    names = [*inspect.signature(module.forward).parameters]
    places = torch.arange(SEQ).expand(BATCH, SEQ)
    of_places = {i for i, name in enumerate(names) if "pos" in name.lower()}
    return tuple(
        places if i and i in of_places else x for i, x in enumerate(args)
    )


def given_by_place(module: nn.Module, args: tuple, named: dict) -> int:
    """Tell how many arguments stand before those that are named."""
    names = [*inspect.signature(module.forward).parameters]
    places = [names.index(name) for name in named]
    return min([len(args), *places])


def its_mask(module: nn.Module) -> str:
    """Return the name of the one mask that a module takes, if it takes one."""
    known = inspect.signature(module.forward).parameters.values()
    masks = [one.name for one in known if "mask" in one.name.lower()]
    return masks[0] if len(masks) == 1 else ""


def waves(names: set[str]) -> bool:
    """Tell whether sines and cosines were computed, or complex numbers."""
    found = {name.strip("_") for name in names}
    return {"sin", "cos"} <= found or "polar" in found


def turns_in_vain(call: Callable[[Tensor], Any], x: Tensor) -> bool:
    """Tell whether sinusoids are computed, and no row knows any order.

    Args:
        call: Calls a module with vectors.
        x: Those, (batch, seq, width).
    """
    with Called() as called:
        got = call(x)
    if got is None or not waves(called.names):
        return False
    others = torch.cat([x[:, [2, 0, 3, 1]], x[:, 4:]], 1)
    turned = call(others)
    return turned is not None and torch.allclose(
        got[:, -1], turned[:, -1], atol=1e-5
    )
