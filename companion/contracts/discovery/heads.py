"""Attention without weights whose vectors have an axis for their heads.

``attention`` takes (…, query, d_k). Some insist on four axes: (batch, head,
seq, head_dim), or with the heads behind the positions.
"""

from collections.abc import Callable

import torch
from torch import nn

from companion.contracts.adapters import heads_after_positions, mask_added
from companion.contracts.discovery.kinds import (
    Check,
    Judged,
    masks_are_told,
    was_called,
)
from companion.contracts.discovery.readings import said_by, settled
from companion.contracts.engine.forms import wanted
from companion.contracts.engine.modules import module_kept
from companion.contracts.engine.report import Report

__all__ = ["BEHIND", "judged_on_heads"]

BESIDE = "queries, keys and values go in, with an axis for their heads"
BEHIND = (
    "queries, keys and values go in, with an axis for their heads behind that "
    "of the positions"
)


def judged_on_heads(module: nn.Module, check: Check) -> Judged | None:
    """Judge attention that takes its heads as an axis; None if it is none.

    What hides the future itself is judged as causal attention.

    Args:
        module: It took no vectors (batch, seq, width).
        check: ``companion.contracts.check``.
    """
    wants = wanted(module)
    matrices = any(p.ndim > 1 for p in module.parameters())
    if matrices or not all(map(wants.named, "qkv")):
        return None
    ways = [(module, BESIDE), (heads_after_positions(module), BEHIND)]
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        for component in ("attention", "causal_attention"):
            reports = [check(component, fn, brief=True) for fn, _ in ways]
            tried = zip(reports, ways, strict=True)
            # Of one head both may fit by their shapes, and one attends.
            for report, (fn, said) in sorted(
                tried, key=lambda one: len(one[0].faults)
            ):
                if was_called(report):
                    whole, words = settled_masks(component, fn, report, check)
                    told = filter(None, (said, words))
                    return Judged(component, whole, tuple(told))
    return None


def settled_masks(
    component: str, fn: Callable, report: Report, check: Check
) -> tuple[Report, str]:
    """Settle what True means in its masks, if it gets any."""
    if component == "causal_attention" or masks_are_told(check):
        return report.whole(), ""
    return settled(
        report,
        lambda: check(component, fn, mask="hidden", brief=True),
        lambda: check(component, mask_added(fn), brief=True),
        lambda: said_by(fn),
    )
