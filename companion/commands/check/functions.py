"""Functions that have the name of a component, and how they are called."""

import ast
import contextlib
import inspect
import re
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from companion.commands.check.file import File
from companion.commands.check.imports import silent
from companion.commands.check.judging import Judge, with_risk
from companion.commands.check.names import another_argument, takes_arrays
from companion.contracts import COMPONENTS
from companion.contracts.adapters import heads_after_positions
from companion.contracts.attention.attention import UNSCALED
from companion.contracts.discovery.filters import as_sampling_filter
from companion.contracts.discovery.heads import BEHIND
from companion.contracts.discovery.mask_makers import (
    CAUSAL,
    as_combined,
    less_what_is_not_its_own,
)
from companion.contracts.discovery.published import by_convention
from companion.contracts.discovery.rotary import BY_PLACE, turning_by_place
from companion.contracts.discovery.verdict import Judged, Unjudged, in_time
from companion.contracts.discovery.warmup import rate_of
from companion.contracts.engine.component import title
from companion.contracts.engine.guard import AN_INDEX
from companion.contracts.engine.report import Report
from companion.contracts.masks.combine_masks import ALWAYS
from companion.contracts.masks.padding_mask import any_pad

__all__ = [
    "as_function",
    "other_than",
    "scaled_by_its_caller",
    "turned",
    "with_queries_scaled",
]

FOR_ARRAYS = (
    "its name is that of {}, and it could not be called with tensors, for it "
    "is written with NumPy: `adapters.from_numpy(…)` lets it stay as it is. "
    "See check.md#adapters."
)

OTHER_ARGUMENTS = (
    "its name is that of {}, and its argument `{}` is another's: what the "
    "contracts know is called as `{}`"
)

FOR_KEYS = "its masks are (batch, seq), as PyTorch's `key_padding_mask`"
FOR_HEADS = (
    "its masks are (batch, 1, seq), to which attention adds the axis for its "
    "heads"
)

PAD_OF_MANY = 1
"""The id for padding in many vocabularies, behind that of unknown words."""

ONLY_ONE = "Its masks are right where padding is 1, and else they are not."

OTHER_MASKS = (
    "its name says that it makes masks, and it makes neither those of source "
    "and target nor that of the target"
)

SCALED_BEFORE = (
    "It is right if its queries are scaled before, as they may be in line {}."
)

A_SCALE = re.compile(r"scal|sqrt|\*\* ?\(?-?0?\.5")
"""How a scale is written that scores, or queries, are multiplied by."""


def as_function(judge: Judge, component: str, fn: Any) -> Judged:
    """Judge a function in the call that fits.

    Raises:
        Unjudged: It cannot be called as that component.
    """
    judged = (
        called_otherwise(judge, component, fn)
        or judge.without_a_mask(component, fn)
        or judge.as_component(component, fn)
    )
    judged = judge.of_three_axes(judged, fn)
    if judged.report.untried and callable(fn):
        judged = turned(judge, component, fn) or judged
    if judged.report.untried and takes_arrays(fn):
        raise Unjudged(FOR_ARRAYS.format(component))
    if judged.report.untried:
        raise Unjudged(
            f"its name is that of {component}, and it could not be called "
            f"as one. {judged.report.failures[0].message}"
        )
    return replace(judged, report=by_convention(fn, judged.report))


def turned(judge: Judge, component: str, fn: Any) -> Judged | None:
    """Judge what wants another order of axes, or no positions."""
    own, said = None, ""
    if component == "attention":
        own, said = heads_after_positions(fn), BEHIND
    elif component == "rope":
        with silent():
            own, said = in_time(lambda: turning_by_place(fn)), BY_PLACE
    if own is None:
        return None
    judged = judge.as_component(component, own)
    if judged.report.untried:
        return None
    return replace(judged, assumed=(said, *judged.assumed))


def called_otherwise(judge: Judge, component: str, fn: Any) -> Judged | None:
    """Judge what is usually called otherwise than its contracts call."""
    if component == "combine_masks":
        return of_masks(judge, fn)
    if component == "padding_mask":
        return of_keys(judge, fn)
    if component == "schedule" and (schedule := rate_of(fn)):
        return judge.as_component(component, schedule)
    return of_filter(judge, fn) if component == "sampling_filter" else None


def of_keys(judge: Judge, fn: Any) -> Judged | None:
    """Judge what makes (batch, seq) of padding; None, if it does not.

    Or (batch, 1, seq), to which attention adds the axis for its heads.
    """
    component = COMPONENTS["padding_mask"]
    tokens = component.example[0]
    if "device" in inspect.signature(fn).parameters:
        fn = partial(fn, device="cpu")
    own = component.adapt(fn) if component.adapt else fn
    try:
        with silent():
            made = in_time(lambda: own(*component.example))
    except Unjudged:
        return None
    shape = tuple(getattr(made, "shape", ()))
    if shape[-2:] == (tokens.shape[1],) * 2:
        # It may hide the future as well, as that of a decoder does.
        with contextlib.suppress(Unjudged):
            whole = of_masks(judge, fn)
            return None if whole.report.faults else whole
    batch, seq = tokens.shape
    said = FOR_KEYS if shape == (batch, seq) else FOR_HEADS
    if shape not in ((batch, seq), (batch, 1, seq)):
        return None

    def padding_mask(tokens: Tensor, pad: int) -> Tensor:
        made = own(tokens, pad)
        return made.reshape(len(tokens), 1, 1, -1)

    judged = judge.as_component("padding_mask", padding_mask)
    return replace(judged, assumed=(said, *judged.assumed))


def of_masks(judge: Judge, fn: Any) -> Judged:
    """Judge what makes a translator's masks.

    Raises:
        Unjudged: What it makes is not known.
    """

    def combined(pad: int | None = None) -> tuple[Any, tuple[str, ...]]:
        with silent():
            found = in_time(lambda: as_combined(fn, pad))
        if found is None:
            raise Unjudged(OTHER_MASKS)
        return found

    own, said = combined()
    if CAUSAL in said:
        return judge.as_component("causal_mask", fn)
    judged = judge.as_component("combine_masks", own)
    if judged.report.faults:
        own, told = combined(PAD_OF_MANY)
        other = judge.as_component("combine_masks", own)
        if other.report.passed and told != said:
            report = with_risk(other.report, title(any_pad), ONLY_ONE, ALWAYS)
            judged, said = replace(other, report=report), told
    report = less_what_is_not_its_own(judged.report, said)
    return replace(judged, report=report, assumed=(*said, *judged.assumed))


def of_filter(judge: Judge, fn: Any) -> Judged:
    """Judge what filters logits before they are drawn from."""
    filters, said = as_sampling_filter(fn)
    judged = judge.as_component("sampling_filter", filters)
    return replace(judged, assumed=(*said, *judged.assumed))


FOUR = re.compile(r"to unpack \(expected 4, got 3\)")
"""What is raised by what takes an axis for heads, in no call that is known."""


def other_than(fn: object, report: Report) -> str:
    """Say why a function with a component's name may be something else."""
    named = report.component
    if report.faults and (other := another_argument(fn, named)):
        return OTHER_ARGUMENTS.format(named, other, COMPONENTS[named].signature)
    if not report.untried:
        return ""
    (first, *_) = report.failures
    if takes_arrays(fn):
        return FOR_ARRAYS.format(named)
    refused = AN_INDEX.search(first.message) or FOUR.search(first.message)
    if "It cannot be called as" in first.message or refused:
        return (
            f"its name is that of {named}, and it could not be called as "
            f"one. {first.message}"
        )
    return ""


def scaled_by_its_caller(file: File, name: str) -> int:
    """Return the line that may scale the queries for a function; 0 if none.

    Args:
        file: The file in which both stand.
        name: The function that is called.
    """
    functions = [
        node
        for statement in file.body
        for node in ast.walk(statement)
        if isinstance(node, ast.FunctionDef) and node.name != name
    ]
    for function in functions:
        nodes = [*ast.walk(function)]
        calls = any(
            isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
            for node in nodes
        )
        for node in nodes if calls else []:
            if (
                isinstance(node, ast.BinOp | ast.AugAssign)
                and isinstance(node.op, ast.Mult | ast.Div)
                and A_SCALE.search(ast.unparse(node))
            ):
                return node.lineno
    return 0


def with_queries_scaled(judged: Judged, line: int) -> Judged:
    """Make a risk of scores that are not scaled, if that is all that is wrong.

    Args:
        judged: A function, as attention.
        line: Where queries may be scaled for it.
    """
    report = judged.report.whole()
    if {fault.cause for fault in report.faults} != {UNSCALED}:
        return judged
    why = SCALED_BEFORE.format(line)
    report = report.milder(lambda f: f.cause == UNSCALED, why)
    return replace(judged, report=report)
