"""Measure how fast the columns of a table of sinusoids turn, and judge that.

The table may be in any layout: sines and cosines by turns or in halves, from
position 0 or 1, times any one number. Of a sinusoid c that turns by ω a step,
c(p + 1) + c(p - 1) = 2 cos(ω) c(p).
"""

import math
from types import CodeType, FunctionType

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.levels import FAULT, NOTE, RISK
from companion.contracts.positions.sinusoidal import ORDER, SINUSOIDAL

__all__ = ["wrongly_measured"]

HINTS = {mistake.id: mistake.hint for mistake in SINUSOIDAL.mistakes}
BY_A_HUNDRED = "It is right if the base is meant to be {}, and no 10000."
BASE = "The base is {}: the paper's is 10000."
CLOSE = 0.02
"""How far, relatively, a rate may be off, and which ones are too slow."""


def wrongly_measured(found: Tensor, kind: type) -> Broken | None:
    """Tell what is wrong with the rates in a table of sinusoids, if anything.

    Nothing of any other table, of rates that are the formula's, of those that
    fit no known mistake, and of an odd width.

    Args:
        found: The first rows of it, from 3 on.
        kind: The class that made it, whose code may name its base.
    """
    turning = sines_and_cosines(found.double())
    if turning is None or found.shape[1] % 2:
        return None
    sines, cosines = turning
    if broken := of_one_kind(sines, cosines):
        return broken
    if broken := unpaired(sines, cosines, found.shape[1]):
        return broken
    return by_another_ratio(sines, found.shape[1], kind)


def sines_and_cosines(table: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return how fast each sine turns, and each cosine, the fastest first.

    Nothing if a column is neither.
    """
    before, now, later = table[:-2], table[1:-1], table[2:]
    power = now.square().sum(0)
    if len(table) < 3 or not power.all():
        return None
    turns = (now * (before + later)).sum(0) / power / 2
    off = before + later - 2 * turns * now
    if off.abs().max() > 1e-4 * table.abs().max() or turns.min() < -1:
        return None
    sine = (1 - turns.clamp(max=1).square()).sqrt()
    if sine.max() < CLOSE:
        return None
    one = int(sine.argmax())
    beside = (table[1, one] - table[0, one] * turns[one]) / sine[one]
    high = torch.hypot(table[0, one], beside)
    first, second = table[0] / high, table[1] / high
    if not at_zero(first):
        # Positions may be counted from 1.
        first, second = 2 * turns * first - second, first
    if not at_zero(first):
        return None
    is_sine = first.abs() < 0.5
    sines = second[is_sine].clamp(-1, 1).asin()
    cosines = second[~is_sine].clamp(-1, 1).acos()
    return tuple(x.sort(descending=True).values for x in (sines, cosines))


def at_zero(row: Tensor) -> bool:
    """Tell whether a row holds what sines and cosines of 0 are."""
    return bool((row * (row - 1)).abs().max() < 1e-3)


def of_one_kind(sines: Tensor, cosines: Tensor) -> Broken | None:
    """Tell of columns that are all sines, or all cosines.

    Each stands there twice, or turns as a dimension for i makes it turn.
    """
    if len(sines) and len(cosines):
        return None
    every = torch.cat([sines, cosines])
    one, other = every[0::2], every[1::2]
    if len(one) != len(other) or len(one) < 2:
        return None
    j = torch.arange(len(every), dtype=torch.float64) / len(every)
    each = any(alike(every, 10000.0 ** (-factor * j)) for factor in (1, 2))
    if not (alike(one, other) or each):
        return None
    return Broken(HINTS["sines-only" if len(sines) else "cosines-only"])


def alike(got: Tensor, expected: Tensor) -> bool:
    """Tell whether rates agree, those apart that are too slow to tell."""
    return torch.allclose(got, expected, rtol=CLOSE, atol=CLOSE / 10)


def unpaired(sines: Tensor, cosines: Tensor, width: int) -> Broken | None:
    """Tell of cosines that turn otherwise than the sines beside them.

    Only of those that a dimension for i explains: more may be meant so.
    """
    if len(sines) != len(cosines) or alike(cosines, sines):
        return None
    for name, factor in (("no-shared-angle", 1), ("dimension-for-pair", 2)):
        j = torch.arange(width, dtype=torch.float64)
        rates = 10000.0 ** (-factor * j / width)
        first, second = rates[0::2], rates[1::2]
        if (alike(sines, first) and alike(cosines, second)) or (
            alike(cosines, first) and alike(sines, second)
        ):
            at = int((sines - cosines).abs().argmax())
            measured = (
                f"Pair {at}: its sine turns by {sines[at]:.3g} a step, and its "
                f"cosine by {cosines[at]:.3g}."
            )
            return Broken(f"{HINTS[name]} {measured}", cause=HINTS[name])
    return None


def by_another_ratio(sines: Tensor, width: int, kind: type) -> Broken | None:
    """Tell of rates of which each is another part of the one before.

    Where a base of 100 is not ruled out, half the exponent is a mere risk:
    10000^(i/d) is 100^(2i/d).
    """
    i = torch.arange(len(sines), dtype=torch.float64)
    slow = max(int((sines > CLOSE / 10).sum()) - 1, 0)
    if len(sines) < 2 or not slow or sines[slow] >= 1 - CLOSE:
        return None
    ratio = (sines[slow] / sines[0]) ** (1 / slow)
    if not alike(sines, ratio**i):
        return None
    base = float(ratio) ** (-width / 2)
    ends = float(ratio) ** -(len(sines) - 1)
    if near(base, 1e4) or near(ends, 1e4):
        return None
    if near(base, 1e4 * math.exp(width)):
        return Broken(HINTS["one-less"])
    return of_another_base(base, sines, width, kind)


def of_another_base(
    base: float, sines: Tensor, width: int, kind: type
) -> Broken | None:
    """Tell of rates whose base is not the paper's.

    Args:
        base: What it is.
        sines: How fast each sine turns.
        width: How wide the table is.
        kind: The class that made it.
    """
    for name, other in (("half-the-exponent", 1e2), ("dimension-for-i", 1e8)):
        if near(base, other):
            right = 10000 ** (-2 / width)
            level = FAULT if names(kind, 10000) else RISK
            why = BY_A_HUNDRED.format(f"{other:.0f}") if level == RISK else ""
            measured = (
                f"Pair 1 turns by {sines[1]:.3g} a step, expected {right:.3g}."
            )
            said = f"{HINTS[name]} {measured}"
            return Broken(said, cause=HINTS[name], level=level, why=why)
    rounded = float(f"{base:.2g}")
    if 1e3 <= rounded < 1e8 and near(base, rounded):
        said = BASE.format(f"{rounded:.0f}")
        return Broken(said, level=NOTE, why=ORDER)
    return None


def near(base: float, other: float) -> bool:
    """Tell whether a base that was measured is another one."""
    return math.isclose(base, other, rel_tol=0.02)


def names(kind: type, value: int) -> bool:
    """Tell whether a number stands in the code of a class.

    Also as a default, and in functions beside it that it calls.
    """
    used, known = {}, set()
    for owner in reversed(kind.__mro__):
        if not owner.__module__.startswith("torch."):
            used |= vars(owner)
    codes = [x for x in used.values() if isinstance(x, FunctionType)]
    while codes:
        one = codes.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        code = one
        if isinstance(one, FunctionType):
            more = (one.__kwdefaults__ or {}).values()
            if value in [*(one.__defaults__ or ()), *more]:
                return True
            code = one.__code__
            beside = (one.__globals__.get(n) for n in code.co_names)
            functions = [x for x in beside if isinstance(x, FunctionType)]
            codes += [x for x in functions if x.__module__ == one.__module__]
        if any(type(x) in (int, float) and x == value for x in code.co_consts):
            return True
        codes += [x for x in code.co_consts if isinstance(x, CodeType)]
    return False
