"""Name what makes NaN of whatever goes in."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from companion.contracts.discovery.make import has_nan
from companion.contracts.engine.report import Report
from companion.contracts.multihead.causal_attention import EXCHANGED, ITSELF

__all__ = [
    "held_nan",
    "holds_nan",
    "is_nan",
    "with_its_nan_named",
    "with_nan_by",
]

HELD = (
    "`{}` holds NaN as soon as it is built: is a number divided by 0, or 0 "
    "multiplied by ∞?"
)


def holds_nan(module: nn.Module) -> dict[str, Tensor]:
    """List the tensors of a module, but for its parameters, that hold NaN."""
    return {
        f"{place}.{name}".strip("."): x
        for place, part in module.named_modules()
        for name, x in (
            *part.named_buffers(recurse=False),
            *vars(part).items(),
        )
        if has_nan(x)
    }


def held_nan(module: nn.Module, finite: Callable[[], bool]) -> str:
    """Say which tensor that a module holds makes NaN of all, or nothing.

    What it keeps of an earlier call holds NaN as well, and makes none.

    Args:
        module: What makes NaN.
        finite: Calls it, and tells whether what comes back is finite.
    """
    held = {n: (x, x.detach().clone()) for n, x in holds_nan(module).items()}
    try:
        for x, _ in held.values():
            x.data.nan_to_num_(0)
        made = bool(held) and finite()
    finally:
        for x, before in held.values():
            x.data.copy_(before)
    return HELD.format(next(iter(held))) if made else ""


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
