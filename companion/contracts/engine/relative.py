"""Attention that learns a number for each distance, judged as if it had none.

Equal numbers for all distances change no softmax. So what is left is attention
that knows no order, of which the contracts know more.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from companion.contracts.engine.families import DISTANCES, PLACES
from companion.contracts.engine.levels import FAULT
from companion.contracts.engine.modules import module_kept, modules_behind
from companion.contracts.engine.report import Report

__all__ = ["with_equal_distances"]

NAMES = re.compile(
    r"(?i)(.*\.)?(?P<own>([^.]*_)?(rel|relative|rpe|distance)\w*(\.weight)?)"
)
"""What learned numbers for each distance are called."""


def with_equal_distances(
    fn: object, report: Report, judged: Callable[[], Report]
) -> Report:
    """Judge attention with equal numbers for all distances, if it learns some.

    Args:
        fn: What ``check`` was given.
        report: What was found as it is.
        judged: Judges it once more.

    Returns:
        What was found with equal numbers, faults too; but ``report`` if there
        are none, or if they make wrong what was right, and so are for
        something else.
    """
    counts = any(
        f.level == FAULT or f.cause in (DISTANCES, PLACES)
        for f in report.failures
    )
    if report.component != "multihead" or not counts:
        return report
    with made_equal(fn) as name:
        # Whatever there is to find has to be found while they are equal.
        other = judged().whole() if name else report
    if not name:
        return report
    if not other.passed:
        usual = report.whole()
        right = {*usual.held, *(f.contract for f in usual.notes)}
        if other.untried or right & {f.contract for f in other.faults}:
            return report
    words = f"`{name}` was the same for all distances"
    return replace(other, assumed=(*other.assumed, words))


@contextlib.contextmanager
def made_equal(fn: object) -> Iterator[str]:
    """Make numbers for distances equal, and put them back; say their name.

    Not zeros, for what is zero is moved while it is checked.
    """
    modules, found = [], []
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        modules = modules_behind(fn)
        found = numbers_for_distances(modules)
    with contextlib.ExitStack() as kept:
        for module in modules if found else []:
            kept.enter_context(module_kept(module))
        for _, x in found:
            x.data.fill_(1.0)
        yield found[0][0] if found else ""


def numbers_for_distances(modules: list[nn.Module]) -> list[tuple[str, Tensor]]:
    """List the learned numbers for each distance, with their names."""
    return [
        (match["own"], x)
        for module in modules
        for name, x in module.named_parameters()
        if (match := NAMES.fullmatch(name)) and not is_lazy(x)
    ]
