"""How large a step is, at each step of training."""

from companion.checks import check_sizes

__all__ = ["linear", "noam"]


def noam(step: int, d_model: int, warmup: int) -> float:
    """Compute the paper's learning rate at ``step``.

    It rises in proportion to the step until ``warmup``, and falls with the
    root of the step after that; its peak is (d_model · warmup)^-½. Equation 3
    of Vaswani et al. (2017), nicknamed after Noam Shazeer.

    Args:
        step: Which step; the first is 1.
        d_model: Width of the model.
        warmup: Steps until the peak.

    Returns:
        The learning rate of that step.

    Raises:
        TypeError: An argument is not an int.
        ValueError: An argument is below 1; at step 0 the formula divides by 0.

    Example:
        >>> round(noam(4000, d_model=512, warmup=4000), 6)
        0.000699
    """
    check_sizes(step=step, d_model=d_model, warmup=warmup)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def linear(step: int, steps: int, *, peak: float, warmup: int = 0) -> float:
    """Compute a learning rate that rises to ``peak`` and falls on a line.

    The line would reach 0 one step after the last, so that every step still
    learns something.

    Args:
        step: Which step, from 1 to ``steps``.
        steps: How many there are.
        peak: The largest rate.
        warmup: Steps until the peak, from 0 to ``steps``.

    Returns:
        The learning rate of that step.

    Raises:
        TypeError: A number of steps is not an int.
        ValueError: ``step`` or ``warmup`` is out of its range.

    Example:
        >>> [linear(step, 4, peak=1.0, warmup=2) for step in (1, 2, 3, 4)]
        [0.5, 1.0, 0.6666666666666666, 0.3333333333333333]
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
