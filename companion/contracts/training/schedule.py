"""Contracts of the learning rate: a warm-up, and then a slow descent.

Equation 3 of Vaswani et al. (2017). The first step is 1. What is returned for
step 0, an error or a number, is up to the writer.
"""

import math
from collections.abc import Callable

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, read_number
from companion.contracts.engine.levels import NOTE, RISK

__all__ = ["SCHEDULE"]

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


def mistake(fn: Guarded) -> str:
    """The hint of the known mistake whose rates these are, or nothing."""
    asked = [(s, d, w) for d, w in SIZES for s in STEPS]
    rates = [fn(*args) for args in asked]

    def explains(known: Callable) -> bool:
        pairs = zip(asked, rates, strict=True)
        return all(close(known(*args), rate) for args, rate in pairs)

    return next((h for h, f in SCHEDULE.hints.items() if explains(f)), "")


def close(one: float, other: float) -> bool:
    """Whether two rates are the same but for rounding in float32."""
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12)


def refuse(fn: Guarded, says: str) -> None:
    """Raise Broken with the mistake that explains it, if one is known."""
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


LEAP = (
    "Step 0 has the rate {:.4g}, and with d_model 512 and warmup 4000 no later "
    "one has more than {:.4g}: the first of all steps goes too far."
)
FIRST = (
    "It is right if the first step is 1, and PyTorch's schedulers begin with "
    "0, `LambdaLR` too."
)


@SCHEDULE.contract
def no_leap(fn: Guarded) -> None:
    """If it has a rate for step 0, that is no more than the peak."""
    try:
        first = fn(0, 512, 4000)
    except Broken:
        return  # 0 to a negative power, as in equation 3.
    peak = fn(4000, 512, 4000)
    if first > peak and not close(first, peak):
        says = LEAP.format(first, peak)
        if getattr(fn.fn, "begins_with_0", False):
            raise Broken(says)
        raise Broken(says, level=RISK, why=FIRST)


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


FACTOR = "At every step it is {:.4g} times equation 3, whatever is asked for."
PEAK = "It is right where another peak is meant: the equation has no factor."


@SCHEDULE.contract
def formula(fn: Guarded) -> None:
    """It is equation 3 of the paper, at every step."""
    asked = [PAPER, *((s, d, w) for d, w in SIZES for s in STEPS)]
    factor = fn(*PAPER) / noam(*PAPER)
    scaled = all(close(fn(*args), factor * noam(*args)) for args in asked)
    if factor > 0 and scaled and not close(factor, 1.0):
        raise Broken(FACTOR.format(factor), level=NOTE, why=PEAK)
    for args in asked:
        got, expected = fn(*args), noam(*args)
        if not close(got, expected):
            refuse(
                fn,
                f"For {fn.describe(args)} the rate is {got:.4g}: expected "
                f"{expected:.4g}.",
            )


# Known mistakes


@SCHEDULE.mistake(
    hint="The larger of the two is taken: `min` joins the ramp and the "
    "descent, `max` avoids both.",
    symptom="the loss leaps up in the first steps, and never comes back",
)
def the_larger_one(step, d_model, warmup):
    """`max` for `min`: high at first, and rising without end later."""
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@SCHEDULE.mistake(
    hint="There is no warm-up: it falls from the first step.",
    symptom="post-LN diverges in the first hundred steps",
)
def without_warm_up(step, d_model, warmup):
    """The descent alone: the first step is the largest of all."""
    return d_model**-0.5 * step**-0.5


@SCHEDULE.mistake(
    hint="It never falls: after the warm-up it is step^-0.5.",
    symptom="all is well up to the end of the warm-up, then the loss climbs",
)
def rises_for_ever(step, d_model, warmup):
    """The ramp alone."""
    return d_model**-0.5 * step * warmup**-1.5


@SCHEDULE.mistake(
    hint="It stays at the peak: after the warm-up the rate is step^-0.5.",
    symptom="the loss falls, and then trembles at one height",
)
def stays_at_the_peak(step, d_model, warmup):
    """A warm-up, and nothing after it."""
    return noam(min(step, warmup), d_model, warmup)


@SCHEDULE.mistake(
    hint="d_model is missing: the rate is d_model^-0.5 times as large.",
    symptom="the small model trains, and the wide one diverges",
)
def of_any_width(step, d_model, warmup):
    """Takes d_model, and does not use it."""
    return noam(step, 1, warmup)


@SCHEDULE.mistake(
    hint="The sign of d_model's exponent is wrong: a wider model takes "
    "smaller steps, d_model^-0.5.",
)
def wide_and_fast(step, d_model, warmup):
    """A wider model takes larger steps."""
    return d_model * noam(step, d_model, warmup)


@SCHEDULE.mistake(
    symptom="the loss of the second step is far above that of the first",
    level=RISK,
    why=FIRST,
)
def one_for_step_0(step, d_model, warmup):
    """A factor of 1 in place of 0^-0.5, where schedulers begin with step 0."""
    return noam(step, d_model, warmup) if step else 1


@SCHEDULE.mistake(
    hint="The rate falls as 1 / √d_model, not as 1 / d_model.",
)
def inverse_width(step, d_model, warmup):
    """The root of d_model is missing."""
    return noam(step, d_model, warmup) / d_model**0.5


@SCHEDULE.mistake(
    hint="The exponents have changed places: step^-0.5, and step · "
    "warmup^-1.5.",
)
def exponents_exchanged(step, d_model, warmup):
    """-1.5 where -0.5 belongs, and the other way round."""
    return d_model**-0.5 * min(step**-1.5, step * warmup**-0.5)


@SCHEDULE.mistake(
    hint="The ramp is step · warmup^-1.5, not step · warmup^-0.5: it would "
    "not meet the descent at the end of the warm-up.",
    symptom="the rate jumps to the peak within a few dozen steps",
)
def a_ramp_too_steep(step, d_model, warmup):
    """The exponent of the warm-up is -0.5: the two curves meet too early."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


@SCHEDULE.mistake(
    hint="The ramp is step · warmup^-1.5, not step / warmup: it would not "
    "meet the descent at the end of the warm-up.",
)
def a_ramp_to_one(step, d_model, warmup):
    """The ramp ends at 1, and the descent begins far below it."""
    return d_model**-0.5 * min(step**-0.5, step / warmup)


@SCHEDULE.mistake(
    hint="It is one step late: the first step is 1, so that nothing is to be "
    "added.",
    symptom="nothing to see: a run that goes on has another rate than before",
)
def a_step_late(step, d_model, warmup):
    """Adds 1 to a step that a scheduler has counted from 1 already."""
    return noam(step + 1, d_model, warmup)


@SCHEDULE.mistake(
    hint="It is one step early: the first step is 1, so that nothing is to be "
    "subtracted.",
    symptom="the first batch is read, and nothing is learned from it",
)
def a_step_early(step, d_model, warmup):
    """The rate is computed before the step is counted: the first one is 0."""
    return noam(step - 1, d_model, warmup) if step > 1 else 0.0


@SCHEDULE.mistake(
    hint="It falls as 1 / step: after the warm-up the rate is step^-0.5.",
    symptom="the loss falls as it should, and then stands still too soon",
)
def falls_too_fast(step, d_model, warmup):
    """1 / step instead of 1 / √step, from the same peak."""
    return noam(min(step, warmup), d_model, warmup) * min(1, warmup / step)


@SCHEDULE.mistake(
    hint="It is scaled to a peak of 1: the peak is (d_model · warmup)^-0.5.",
)
def a_peak_of_one(step, d_model, warmup):
    """A factor for the optimiser's own rate, not a rate."""
    return min((step / warmup) ** -0.5, step / warmup)
