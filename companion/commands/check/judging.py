"""Judge something as a component, and tell what came of it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from torch import Tensor, nn

from companion.contracts import COMPONENTS, check, report_for
from companion.contracts.adapters import causal_from_added, mask_added
from companion.contracts.discovery.heads import judged_without_a_mask
from companion.contracts.discovery.kinds.calls import RAISED
from companion.contracts.discovery.readings import (
    HIDES,
    said_by,
    settled,
    without_the_word,
)
from companion.contracts.discovery.verdict import Judged
from companion.contracts.engine.forms.fitting import takes_mask
from companion.contracts.engine.forms.signature import MASKS, wanted
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.report import Failure, Report

__all__ = ["Judge", "report_of", "told", "with_risk"]


def report_of(component: str, fn: object, *, strict: bool = False) -> dict:
    """Check ``fn``, and tell what the report says as JSON."""
    fn = fn.eval() if isinstance(fn, nn.Module) else fn
    return told(check(component, fn, strict=strict))


def told(report: Report) -> dict:
    """Tell what a report says as JSON: failures by cause, and what holds."""
    failed = [
        {
            "names": [f.contract for f in group],
            "message": group[0].message,
            "level": group[0].level,
            "excuse": group[0].excuse,
        }
        for group in report.grouped()
    ]
    return {
        "headline": report.headline,
        "failed": failed,
        "held": report.held,
        "untried": len(report.untried),
        "waiting": report.untried,
        "assumed": list(getattr(report, "assumed", ())),
    }


class Judge:
    """Tries the contracts, with what the user says of masks.

    Args:
        mask: What True means in masks, as ``check`` takes it.
    """

    def __init__(self, mask: str | None = None):
        self.options: dict[str, Any] = {"mask": mask} if mask else {}

    def check(self, component: str, fn: object, **options: Any) -> Report:
        """Try the contracts, and report."""
        fn = fn.eval() if isinstance(fn, nn.Module) else fn
        try:
            return report_for(component, fn, **{**self.options, **options})
        except ValueError:  # It has no mask to say something of.
            return report_for(component, fn)

    def without_a_mask(self, component: str, fn: object) -> Judged | None:
        """Judge attention of three vectors alone; None, if it is none."""
        if component != "attention":
            return None
        return judged_without_a_mask(fn, self.check)

    def of_three_axes(self, judged: Judged, fn: object) -> Judged:
        """Judge attention with three axes alone, if it raises with any others.

        Whoever has it checked by its name need not split heads with it.

        Args:
            judged: What came of it with any number of axes.
            fn: The function.
        """
        faults = [fault.message for fault in judged.report.faults]
        raises = faults and all(RAISED in message for message in faults)
        if judged.component != "attention" or not (raises and callable(fn)):
            return judged
        other = self.as_component("attention", with_three_axes(fn))
        return other if other.report.passed else judged

    def as_component(
        self, component: str, fn: Any, *, marked: bool = False
    ) -> Judged:
        """Judge it as a component; what True means is asked, if need be."""
        if component in MASKS:
            fn = on_the_cpu(fn)
        report = self.check(component, fn, brief=True)
        masks = takes_mask(COMPONENTS[component])
        if self.options or not (report.faults and masks):
            return Judged(component, report.whole())
        if marked:
            # As `check` does, unless the code says what True means.
            said = said_by(fn)
            if said:
                turned = self.check(component, fn, mask="hidden", brief=True)
                if turned.passed:
                    turned = without_the_word(turned.whole())
                    return Judged(component, turned, (f"{HIDES}, {said}",))
            return Judged(component, report.whole())
        added = None
        if "causal_from_added" in report.failures[0].message:
            added = causal_from_added(fn)
        elif component not in MASKS:
            added = mask_added(fn)
        report, said = settled(
            report,
            lambda: self.check(component, fn, mask="hidden", brief=True),
            (lambda: self.check(component, added, brief=True))
            if added
            else None,
            lambda: said_by(fn),
        )
        return Judged(component, report, tuple(filter(None, (said,))))


def with_three_axes(fn: Callable) -> Callable:
    """Refuse vectors with any other number of axes, in PyTorch's words."""

    @wraps(fn)
    def attention(*args: Any, **named: Any) -> Any:
        every = (*args, *named.values())
        if next((x.ndim for x in every if isinstance(x, Tensor)), 0) != 3:
            raise RuntimeError("queries must be a 3D tensor")
        return fn(*args, **named)

    return attention


def on_the_cpu(fn: Any) -> Any:
    """Give a device to a function that wants one, and makes masks there."""
    required = wanted(fn).required
    name = next((n for n in required if n.lower() == "device"), None)
    if name is None:
        return fn
    given = partial(fn, **{name: "cpu"})
    given.__name__ = fn.__name__  # pyrefly: ignore
    return given


def with_risk(report: Report, contract: str, told: str, why: str) -> Report:
    """Make a risk of one contract, whatever came of it."""
    held = [one for one in report.held if one != contract]
    risk = Failure(contract, told, level=RISK, why=why, cause=told)
    return replace(report, held=held, failures=[*report.failures, risk])
