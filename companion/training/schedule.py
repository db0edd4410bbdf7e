"""How large a step is, at each step of training."""

from companion.data.checks import check_sizes


def noam(step: int, d_model: int, warmup: int) -> float:
    """The paper's learning rate at ``step``, of which the first is 1.

    It rises in proportion to the step until ``warmup``, and falls with the
    root of the step after that; its peak is (d_model · warmup)^-½. Equation 3
    of Vaswani et al. (2017), nicknamed after Noam Shazeer.

    Raises:
        TypeError: an argument is not an int.
        ValueError: an argument is below 1; at step 0 the formula divides by 0.
    """
    check_sizes(step=step, d_model=d_model, warmup=warmup)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def linear(step: int, steps: int, *, peak: float, warmup: int = 0) -> float:
    """Up to ``peak`` at step ``warmup``, then down in a straight line.

    The first step is 1 and the last is ``steps``. The line would reach 0 one
    step after the last, so that every step still learns something.

    Raises:
        TypeError: a number of steps is not an int.
        ValueError: ``step`` is not from 1 to ``steps``, or ``warmup`` not from
            0 to ``steps``.
    """
    check_sizes(step=step, steps=steps, warmup=warmup + 1)
    for name, number in (("step", step), ("warmup", warmup)):
        if number > steps:
            raise ValueError(
                f"{name}: expected at most steps = {steps}, got {number}"
            )
    if step < warmup:
        return peak * step / warmup
    return peak * (steps + 1 - step) / (steps + 1 - max(warmup, 1))
