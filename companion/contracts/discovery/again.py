"""Build a class once more, with what its contracts do not show."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from companion.contracts.discovery.kinds import (
    Judged,
    Unjudged,
    in_time,
    understood,
    widths,
)
from companion.contracts.discovery.limits import outcome, rows
from companion.contracts.discovery.make import NotBuilt, make
from companion.contracts.discovery.raising import arranged, wanted
from companion.contracts.engine.component import title
from companion.contracts.engine.modules import module_kept
from companion.contracts.engine.report import Failure
from companion.contracts.engine.universal import STAYS_ON, repeatable

__all__ = ["with_dropout"]

SEQ = 5
RATE = 0.5
"""With a smaller rate a call of so few numbers may drop nothing."""

MODELS = "language_model", "translation_model"


def with_dropout(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add a fault to a report if dropout stays on in evaluation.

    What was judged was built without any.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    if judged.report.untried:
        return judged
    try:
        module, said = make(kind, near, rate=RATE)
        ids = judged.component in MODELS
        on = in_time(lambda: draws_in_evaluation(module, ids=ids))
    except (NotBuilt, Unjudged):
        return judged
    if not on:
        return judged
    report, name = judged.report, title(repeatable)
    fault = Failure(
        name,
        f"Built as {said} and in eval mode, the second call differs: "
        f"{STAYS_ON}",
        cause=STAYS_ON,
    )
    held = [one for one in report.held if one != name]
    failures = [fault, *report.failures]
    return replace(judged, report=replace(report, held=held, failures=failures))


def draws_in_evaluation(module: nn.Module, *, ids: bool) -> bool:
    """Tell whether what a module answers in eval mode depends on what it draws.

    What differs though the same is drawn is no dropout: it keeps something.

    Args:
        module: The module.
        ids: Whether ids go in, and no vectors.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        args = a_call(module, ids=ids)
        if args is None:
            return False
        calls = (outcome(module, args, seed=seed) for seed in (0, 0, 1))
        one, again, other = (
            None if x is None else x.nan_to_num() for x in calls
        )
    if one is None or again is None or other is None:
        return False
    return torch.equal(one, again) and not torch.equal(one, other)


def a_call(module: nn.Module, *, ids: bool) -> tuple | None:
    """Return what a module can be called with; None, if nothing was found."""
    if not ids:
        try:
            return understood(module, widths(module))[1]
        except Unjudged:
            return None
    for args in arranged(wanted(module), [rows(SEQ)]):
        if outcome(module, args) is not None:
            return args
    return None
