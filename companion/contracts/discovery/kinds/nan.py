"""Name what makes NaN of whatever goes in."""

from dataclasses import replace

from torch import Tensor, nn

from companion.contracts.discovery.make import has_nan
from companion.contracts.engine.report import Report
from companion.contracts.multihead.causal_attention import EXCHANGED, ITSELF

__all__ = ["held_nan", "is_nan", "with_its_nan_named", "with_nan_by"]

HELD = (
    "`{}` holds NaN as soon as it is built: is a number divided by 0, or 0 "
    "multiplied by ∞?"
)


def held_nan(module: nn.Module) -> str:
    """Say which tensor of a module holds NaN, or nothing."""
    for place, part in module.named_modules():
        for name, x in (
            *part.named_buffers(recurse=False),
            *vars(part).items(),
        ):
            if has_nan(x):
                return HELD.format(f"{place}.{name}".strip("."))
    return ""


def is_nan(report: Report) -> bool:
    """Tell whether nothing could be tried, for NaN came back."""
    got = report.failures[0].got if report.untried else None
    return got is not None and not bool(got.isfinite().all())


def with_nan_by(report: Report, cause: str) -> Report:
    """Say what makes NaN, in a report on what waits until it is finite."""
    first, *others = report.failures
    told = replace(first, message=f"{first.message} {cause}", cause=cause)
    return replace(report, failures=[told, *others])


def with_its_nan_named(report: Report, got: Tensor, over: str) -> Report:
    """Say what makes NaN: a row that sees nothing, or a softmax's axis.

    Args:
        report: What waits until it is finite.
        got: What came back, with NaN.
        over: Over which axis a softmax runs, if that is another one.
    """
    rows = got.isnan().any(-1) if got.ndim == 3 else got[:0]
    places = {tuple(row.nonzero().flatten().tolist()) for row in rows}
    last = ((got.shape[1] - 1,),)
    hint = over or {((0,),): ITSELF, last: EXCHANGED}.get((*places,))
    return with_nan_by(report, hint) if hint else report
