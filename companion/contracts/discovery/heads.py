"""Attention without weights whose vectors have an axis for their heads.

``attention`` takes (…, query, d_k). Some insist on four axes: (batch, head,
seq, head_dim), or with the heads behind the positions.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.contracts.adapters import heads_after_positions, mask_added
from companion.contracts.attention.attention import ATTENTION, right_scale
from companion.contracts.discovery.kinds.calls import (
    first,
    masks_are_told,
    was_called,
)
from companion.contracts.discovery.readings import (
    EITHER,
    said_by,
    settled,
)
from companion.contracts.discovery.sizes import HEADS, WIDTH
from companion.contracts.discovery.verdict import Check, Judged
from companion.contracts.engine.compare import draw, furthest
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.adopt import NO_MASK
from companion.contracts.engine.forms.signature import Wanted, wanted
from companion.contracts.engine.levels import FAULT, RISK
from companion.contracts.engine.modules.common import module_kept
from companion.contracts.engine.report import Report
from companion.contracts.engine.scale import BY_THE_ROOT
from companion.contracts.multihead.causal_attention import past
from companion.contracts.multihead.multihead import everybody

__all__ = [
    "BEHIND",
    "judged_on_heads",
    "judged_without_a_mask",
    "made_for_a_width",
    "with_its_scale",
]

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
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        *usual, causal = ways_to_ask(module, wants)
        each = (judged_in_a_way(module, ways, check) for ways in usual)
        found = next(filter(None, each), None)
        flagged = any(
            x is True and A_FLAG.fullmatch(n) for n, x in vars(module).items()
        )
        if found and found.report.passed:
            return found
        if found and found.component == "attention" and not flagged:
            return found
        own = judged_in_a_way(module, causal, check)
        # What takes a mask, or none, is not meant to hide the future itself.
        return own if own and (own.report.passed or not found) else found


ALSO_ELSEWHERE = (
    "It is right if its queries are scaled before, or if dot products are "
    "meant as they are, as in Luong's attention."
)


def with_its_scale(module: nn.Module, judged: Judged, check: Check) -> Judged:
    """Judge what has no weights by its very queries and keys, where it fits.

    It was judged as if it made these itself, so that nobody could tell by what
    their products are divided. A scale that is wrong is a fault in what is
    called scaled, and else a risk.

    Args:
        module: It took vectors (batch, seq, width).
        judged: What came of that.
        check: ``companion.contracts.check``.
    """
    if judged.component != "multihead" or judged.report.faults:
        return judged
    other = judged_on_heads(module, check)
    if other is None or other.component == "causal_attention":
        return judged
    scales = {ATTENTION.agrees, title(right_scale), BY_THE_ROOT}
    faults = other.report.faults
    if {fault.contract for fault in faults} - scales:
        return judged
    if not faults or "scaled" in type(module).__name__.lower():
        return other
    report = other.report.milder(faults.__contains__, ALSO_ELSEWHERE)
    return replace(other, report=without_faults(report))


class Way(NamedTuple):
    """A way to ask attention that takes its heads as an axis.

    Attributes:
        component: What it is judged as.
        fn: It, as the contracts call it.
        said: How it is called then.
        masked: Whether it gets the masks that it takes.
    """

    component: str
    fn: Callable
    said: tuple[str, ...]
    masked: bool = True


def ways_to_ask(module: nn.Module, wants: Wanted) -> Iterator[list[Way]]:
    """List the ways to ask it; of a later list only if no earlier one fits.

    The last one is for what hides the future itself.
    """
    bare = (module, BESIDE), (heads_after_positions(module), BEHIND)
    causal = [Way("causal_attention", fn, (said,)) for fn, said in bare]
    others = {*wants.all} - wants.flags - {*map(wants.named, "qkv")}
    several = len(others) > 1 and all("mask" in name for name in others)
    if not others or several:
        left = (SEVERAL.format(", ".join(sorted(others))),) * several
        yield [
            Way("multihead", OnHeads(fn), (said, *left), masked=not several)
            for fn, said in bare
        ]
    word = None if several else wants.named("mask")
    if word:
        beside, behind = (WholeMasks(module, word, axis) for axis in (1, 2))
        whole = (beside, BESIDE), (heads_after_positions(behind), BEHIND)
        yield [Way("attention", fn, (said,)) for fn, said in bare] + [
            Way("attention", fn, (said, WRITTEN_OUT)) for fn, said in whole
        ]
        # Its values may have to be as wide as its keys.
        within = [
            Way("multihead", OnHeadsWithMasks(fn), (said, WRITTEN_OUT))
            for fn, said in whole
        ] + [
            Way("multihead", OnHeadsWithMasks(fn), (said,)) for fn, said in bare
        ]
        yield within
    yield causal


def judged_in_a_way(
    module: Callable, ways: list[Way], check: Check
) -> Judged | None:
    """Judge it in the way in which the least is wrong; None if none fits."""
    reports = [check(way.component, way.fn, brief=True) for way in ways]
    if all(report.faults for report in reports):
        # Which way is meant is told by how much is in order.
        reports = [report.whole() for report in reports]
    tried = zip(reports, ways, strict=True)
    # Of one head several may fit by their shapes, and one attends.
    for report, way in sorted(tried, key=lambda one: how_wrong(one[0])):
        if not was_called(report):
            continue
        whole, words = settled_masks(way.component, way.fn, report, check)
        if not way.masked:  # It takes some, and was given none.
            rest = (x for x in whole.assumed if NO_MASK not in x)
            whole = replace(whole, assumed=(*rest,))
        whole = made_for_a_width(module, way.fn, whole)
        told = filter(None, (*way.said, words))
        return Judged(way.component, whole, tuple(told))
    return None


def how_wrong(report: Report) -> tuple[int, bool]:
    """Return how many faults there are, and if rows do not see each other."""
    broken = {fault.contract for fault in report.faults}
    return len(report.faults), bool(broken & {title(everybody), title(past)})


WIDEST = 1025
"""No head is as wide."""
FEWER = "its masks were read so that True hides, for so fewer contracts fail"
MADE_FOR = "It is right if its heads have {} numbers: for these `{}` is made."


def made_for_a_width(module: Callable, fn: Callable, report: Report) -> Report:
    """Make a risk of a scale that is made for one width of the heads.

    So it is with what stands in a model. For that width it is PyTorch's
    attention; if it is not, or anything else is wrong, the report is left.

    Args:
        module: Attention without weights, a module or a function.
        fn: How it is called.
        report: What was found.
    """
    broken = {fault.contract for fault in report.faults}
    if not broken or broken - {ATTENTION.agrees, title(right_scale)}:
        return report
    for name, value in (*vars(module).items(), *read_by(module)):
        for width in widths_of(value):
            if 1.5 < width < WIDEST and is_right_at(fn, round(width)):
                why = MADE_FOR.format(round(width), name)
                failures = [
                    replace(f, level=RISK, why=why) if f.level == FAULT else f
                    for f in report.failures
                ]
                return without_faults(replace(report, failures=failures))
    return report


def without_faults(report: Report) -> Report:
    """Say how masks were read, in a report that tells of no fault any more."""
    said = (FEWER if told == EITHER else told for told in report.assumed)
    return replace(report, assumed=(*said,))


def read_by(made: Callable) -> list[tuple[str, object]]:
    """List what the code of attention reads of its file, by name."""
    own = type(made).forward if isinstance(made, nn.Module) else made
    if not isinstance(own, FunctionType):
        return []
    known = own.__globals__
    return [(n, known[n]) for n in own.__code__.co_names if n in known]


def widths_of(value: object) -> tuple[float, ...]:
    """Return how wide heads may be for which a number is kept.

    It is the width, or the root of it, or 1 over that.
    """
    if type(value) not in (int, float) or value <= 0:
        return ()
    return (value**2, value**-2) if type(value) is float else (value,)


def is_right_at(fn: Callable, width: int) -> bool:
    """Tell whether attention is PyTorch's for heads of this width."""
    q, k, v = (draw(2, 3, 5, width, seed=seed) for seed in (3, 5, 7))
    expected = F.scaled_dot_product_attention(q, k, v)
    all_shown = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    # A mask may be required, and True may show or hide in it.
    for masks in ((), (all_shown,), (~all_shown,)):
        with contextlib.suppress(Exception):
            if furthest(first(fn(q, k, v, *masks)), expected) is None:
                return True
    return False


class OnHeads(nn.Module):
    """Multi-head attention around what takes queries, keys and values alone.

    Of what takes no mask more contracts can be tried so.
    """

    def __init__(self, yours: Callable):
        super().__init__()
        self.yours = yours
        self.made = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the heads gather, side by side."""
        return self.gathered(x)

    def gathered(self, x: Tensor, *masks: Tensor) -> Tensor:
        """Return that, with weights left out that come beside it."""
        each = self.made(x).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        found = first(self.yours(*each.permute(2, 0, 3, 1, 4), *masks))
        return found.transpose(1, 2).flatten(2)  # pyrefly: ignore


class WithinTheBatch(OnHeads):
    """The same around what takes three axes: its heads are sentences."""

    def gathered(self, x: Tensor, *masks: Tensor) -> Tensor:
        """Return what the heads gather, side by side."""
        each = self.made(x).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        flat = each.permute(2, 0, 3, 1, 4).flatten(1, 2)
        found = first(self.yours(*flat))
        four = found.unflatten(0, (len(x), HEADS))  # pyrefly: ignore
        return four.transpose(1, 2).flatten(2)


AROUND = (WithinTheBatch, OnHeads)


def judged_causal(fn: Callable, check: Check) -> Judged | None:
    """Judge a function of three vectors that hides the future by itself."""
    ways = [Way("causal_attention", kind(fn), (BESIDE,)) for kind in AROUND]
    return judged_in_a_way(fn, ways, check)


def judged_without_a_mask(fn: object, check: Check) -> Judged | None:
    """Judge a function of queries, keys and values alone, within heads.

    None, if it takes anything else but flags, or is not understood.

    Args:
        fn: The function.
        check: ``companion.contracts.check``.
    """
    wants = wanted(fn)
    own = wants.all - wants.flags
    masked = any("mask" in name.lower() for name in own)
    if len(own) != 3 or masked or wants.bound is None:
        return None
    if not callable(fn):
        return None
    flag = causal_flag(wants)
    off = partial(fn, **{flag: False}) if flag else fn
    told = (BESIDE, SWITCHED.format(flag)) if flag else (BESIDE,)
    # They draw the projections around it.
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        ways = [Way("multihead", kind(off), told) for kind in AROUND]
        found = judged_in_a_way(fn, ways, check)
        if found is None or found.report.faults:
            on = None if flag else judged_causal(fn, check)
            rated = [one for one in (on, found) if one is not None]
            return min(rated, key=lambda x: how_wrong(x.report), default=None)
        if not flag:
            return found
        on = judged_causal(fn, check)
        if on is None:
            return found
        told = (*found.assumed, HIDES.format(flag))
        return on if on.report.faults else replace(found, assumed=told)


SWITCHED = "`{}` was off"
HIDES = "with `{}`, as by default, no row sees its future"
ON = re.compile(
    r"(?i)(is_|use_)?(causal|auto_?regressive)(_?(mask(ing)?|flag))?"
)
"""What is called so, and is on by default, hides the future."""


A_FLAG = re.compile(rf"{ON.pattern}|mask_?flag")
"""What an attribute is called that says so, if it is True."""


def causal_flag(wants: Wanted) -> str:
    """Return the name of a flag by which the future is hidden by default."""
    known = wants.bound.parameters.values() if wants.bound else ()
    return next(
        (p.name for p in known if p.default is True and ON.fullmatch(p.name)),
        "",
    )


class OnHeadsWithMasks(OnHeads):
    """The same around what takes a mask too."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what the heads gather, under a mask for all of them."""
        return self.gathered(x, *([] if mask is None else [mask]))


class WholeMasks(nn.Module):
    """What takes vectors and masks with four axes, and no fewer.

    Args:
        yours: Attention.
        word: What its argument for a mask is called.
        axis: Where its vectors have their heads: 1, or 2 behind the positions.
    """

    def __init__(self, yours: nn.Module, word: str, axis: int):
        super().__init__()
        self.yours, self.word, self.axis = yours, word, axis

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
    ) -> object:
        """Hand a mask over as (batch, head, query, key)."""
        if mask is None:
            return self.yours(q, k, v)
        rows = 3 - self.axis
        sizes = len(q), q.shape[self.axis], q.shape[rows], k.shape[rows]
        return self.yours(q, k, v, **{self.word: mask.expand(sizes)})


SEVERAL = "it takes several masks, {}, and got none"
WRITTEN_OUT = "its masks were written out, (batch, head, query, key)"


def settled_masks(
    component: str, fn: Callable, report: Report, check: Check
) -> tuple[Report, str]:
    """Settle what True means in its masks, if it gets any."""
    if component != "attention" or masks_are_told(check):
        return report.whole(), ""
    return settled(
        report,
        lambda: check(component, fn, mask="hidden", brief=True),
        lambda: check(component, mask_added(fn), brief=True),
        lambda: said_by(fn),
    )
