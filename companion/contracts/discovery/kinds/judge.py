"""Tell what a module is by what it takes and returns, and judge it as that."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from companion.contracts.discovery.keywords import called_by_position
from companion.contracts.discovery.kinds.calls import (
    Check,
    Judged,
    NoAnswer,
    Unjudged,
    hides,
    in_time,
    understood,
)
from companion.contracts.discovery.kinds.ids import judged_on_ids, takes_ids
from companion.contracts.discovery.kinds.vectors import (
    judged_on_vectors,
    require_no_other_kind,
)
from companion.contracts.discovery.published import by_convention
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.forms.styles import BY_NAMES
from companion.contracts.engine.modules.common import (
    gains_moved,
    is_lazy,
    module_kept,
)

__all__ = ["judge"]


def judge(
    module: nn.Module,
    check: Check,
    near: dict | None = None,
    hints: list[int] | None = None,
    said: Callable[[], str] = str,
) -> Judged:
    """Find out what ``module`` is, and judge it as that.

    Args:
        module: It may be of any width.
        check: ``companion.contracts.check``, or a partial of it with what True
            means in masks; then no other reading is tried.
        near: What else stands in its file.
        hints: How wide its vectors may be, if it does not show.
        said: By what its model says that True hides in its masks, if it does.

    Returns:
        What it was taken for, and the report.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    if any(map(is_lazy, (*module.parameters(), *module.buffers()))):
        raise Unjudged(
            "its parameters have no shape yet: call it once, with a batch of "
            "yours, and then again"
        )
    with called_by_position(module) as named, gains_moved([module]) as told:
        judged = judged_as_it_is(module, check, near or {}, hints or [], said)
    require_no_other_kind(module, judged)
    more = (BY_NAMES if named else "", told.rstrip("."))
    return replace(
        judged,
        report=by_convention(module, judged.report),
        assumed=(*judged.assumed, *filter(None, more)),
    )


def judged_as_it_is(
    module: nn.Module,
    check: Check,
    near: dict,
    hints: list[int],
    said: Callable[[], str],
) -> Judged:
    """Do what ``judge`` does, with the numbers that a module has.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        try:
            module.eval()
        except Exception as error:
            raise Unjudged(f"`eval()` raised {raised_in(error)}") from None
        try:
            width, args = in_time(
                lambda: understood(module, hints, hidden=hides(check))
            )
        except NoAnswer:
            raise
        except Unjudged as reason:
            if not in_time(lambda: takes_ids(module)):
                raise
            why = reason
        else:
            return judged_on_vectors(module, check, near, width, args, said)
        return judged_on_ids(module, check, why)
