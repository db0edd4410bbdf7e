"""Contracts of the learning rate: a warm-up, and then a slow descent.

Equation 3 of Vaswani et al. (2017). The first step is 1. What is returned for
step 0, an error or a number, is up to the writer.
"""

import math
from collections.abc import Callable

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, read_number

PAPER = (4000, 512, 4000)
STEPS = (1, 2, 3, 7, 50, 99, 100, 101, 400, 4000, 100_000)
SIZES = ((512, 4000), (64, 100), (7, 13), (300, 1), (16, 400))


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


SCHEDULE = Component(
    name="schedule",
    signature="schedule(step, d_model, warmup)",
    returns="the learning rate of this step, a number",
    shape_contract="It returns a number",
    read=read_number,
    cases=lambda: {"in the paper": PAPER},
)

SUSPECTS = {
    "The larger of the two is taken: `min` joins the ramp and the descent, "
    "`max` avoids both.": lambda s, d, w: d**-0.5 * max(s**-0.5, s * w**-1.5),
    "There is no warm-up: it falls from the first step.": lambda s, d, w: (
        (d * s) ** -0.5
    ),
    "It never falls: after the warm-up it is step^-0.5.": lambda s, d, w: (
        d**-0.5 * s * w**-1.5
    ),
    "It stays at the peak: after the warm-up the rate is step^-0.5.": (
        lambda s, d, w: d**-0.5 * min(w**-0.5, s * w**-1.5)
    ),
    "d_model is missing: the rate is d_model^-0.5 times as large.": (
        lambda s, d, w: noam(s, 1, w)
    ),
    "The sign of d_model's exponent is wrong: a wider model takes smaller "
    "steps, d_model^-0.5.": lambda s, d, w: d * noam(s, d, w),
    "The rate falls as 1 / √d_model, not as 1 / d_model.": lambda s, d, w: (
        noam(s, d, w) * d**-0.5
    ),
    "The exponents have changed places: step^-0.5, and step · warmup^-1.5.": (
        lambda s, d, w: d**-0.5 * min(s**-1.5, s * w**-0.5)
    ),
    "The ramp is step · warmup^-1.5, not step · warmup^-0.5: it would not "
    "meet the descent at the end of the warm-up.": lambda s, d, w: (
        d**-0.5 * min(s**-0.5, s * w**-0.5)
    ),
    "The ramp is step · warmup^-1.5, not step / warmup: it would not meet the "
    "descent at the end of the warm-up.": lambda s, d, w: (
        d**-0.5 * min(s**-0.5, s / w)
    ),
    "It is one step late: the first step is 1, so that nothing is to be "
    "added.": lambda s, d, w: noam(s + 1, d, w),
    "It is one step early: the first step is 1, so that nothing is to be "
    "subtracted.": lambda s, d, w: noam(s - 1, d, w) if s > 1 else 0.0,
    "It falls as 1 / step: after the warm-up the rate is step^-0.5.": (
        lambda s, d, w: d**-0.5 * min(w**0.5 / s, s * w**-1.5)
    ),
    "It is scaled to a peak of 1: the peak is (d_model · warmup)^-0.5.": (
        lambda s, d, w: noam(s, d, w) / noam(w, d, w)
    ),
}
"""Hint -> the mistake it hints at."""


def mistake(fn: Guarded) -> str:
    """The known mistake whose rates these are, or nothing."""
    asked = [(s, d, w) for d, w in SIZES for s in STEPS]
    rates = [fn(*args) for args in asked]

    def explains(suspect: Callable) -> bool:
        pairs = zip(asked, rates, strict=True)
        return all(close(suspect(*args), rate) for args, rate in pairs)

    return next((h for h, s in SUSPECTS.items() if explains(s)), "")


def close(one: float, other: float) -> bool:
    """Whether two rates are the same but for rounding in float32."""
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12)


def refuse(fn: Guarded, says: str) -> None:
    """Raises Broken with the mistake that explains it, if one is known."""
    hint = mistake(fn)
    raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@SCHEDULE.before_reference
def warm_up(fn: Guarded) -> None:
    """Until `warmup` it rises in a straight line, from the first step."""
    for d_model, warmup in ((512, 4000), (64, 100)):
        first = fn(1, d_model, warmup)
        for step in (2, 3, warmup // 2, warmup):
            rate = fn(step, d_model, warmup)
            if not close(rate, step * first):
                refuse(
                    fn,
                    f"With d_model {d_model} and warmup {warmup}, step 1 has "
                    f"the rate {first:.4g}, so that step {step} should have "
                    f"{step} times as much, {step * first:.4g}: yours has "
                    f"{rate:.4g}.",
                )


@SCHEDULE.before_reference
def descent(fn: Guarded) -> None:
    """After that it falls: four times as late, half as large."""
    for d_model, warmup in ((512, 4000), (64, 100)):
        for step in (warmup, 3 * warmup):
            before, after = (fn(n, d_model, warmup) for n in (step, 4 * step))
            if not close(after, before / 2):
                refuse(
                    fn,
                    f"With d_model {d_model} and warmup {warmup}, step {step} "
                    f"has the rate {before:.4g} and step {4 * step} has "
                    f"{after:.4g}: expected half as much.",
                )


@SCHEDULE.contract
def width(fn: Guarded) -> None:
    """Four times the width halves the rate."""
    narrow, wide = fn(10, 64, 100), fn(10, 256, 100)
    if not close(wide, narrow / 2):
        refuse(
            fn,
            f"d_model 64 has the rate {narrow:.4g} and d_model 256 has "
            f"{wide:.4g}: expected half as much.",
        )


@SCHEDULE.contract
def formula(fn: Guarded) -> None:
    """It is equation 3 of the paper, at every step."""
    asked = [PAPER, *((s, d, w) for d, w in SIZES for s in STEPS)]
    for args in asked:
        got, expected = fn(*args), noam(*args)
        if not close(got, expected):
            refuse(
                fn,
                f"For {fn.describe(args)} the rate is {got:.4g}: expected "
                f"{expected:.4g}.",
            )
