"""Whether a gradient is the slope that can be measured."""

import math

from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    gradients,
    is_float,
    tensors_in,
)
from companion.contracts.engine.guard import Guarded

CUT = "`.detach()`, `.item()`, `torch.tensor(...)` and `no_grad` cut it."


def gradient(fn: Guarded) -> None:
    """The gradient of every input is the slope of the function."""
    try:
        require_slopes(fn, fn.component.example)
    except Broken:
        # A ReLU may bend right there. What is wrong is wrong elsewhere too.
        require_slopes(fn, elsewhere(fn.component.example))


def elsewhere(args: tuple) -> tuple:
    """Arguments near ``args``."""
    return tuple(
        a + 0.1 * draw(*a.shape, seed=109) if is_float(a) else a for a in args
    )


def require_slopes(fn: Guarded, args: tuple) -> None:
    """Raises Broken unless each gradient is a slope at ``args``."""
    upstream = [draw(*x.shape, seed=97) for x in tensors_in(fn(*args))]
    found = gradients(fn.raw, args, upstream)
    if found is None:
        raise Broken(f"The output has no gradient at all: {CUT}")
    places = [i for i, a in enumerate(args) if is_float(a)]
    for i, mine in zip(places, found, strict=True):
        require_slope(fn, args, i, mine, upstream)


def require_slope(
    fn: Guarded,
    args: tuple,
    i: int,
    mine: Tensor | None,
    upstream: list[Tensor],
) -> None:
    """Raises Broken unless ``mine`` is the slope along argument ``i``."""
    name, agreeing = fn.component.parameters[i], 0
    # A ReLU may bend within a step, and a wrong gradient be right by chance:
    # two of three directions have to agree, each with one of two steps.
    for seed in (101, 103, 107):
        way = draw(*args[i].shape, seed=seed) / args[i].numel() ** 0.5
        said = 0.0 if mine is None else (mine * way).sum().item()
        for step in (1e-2, 1e-3):
            is_ = slope(fn, args, i, step * way, upstream) / step
            near = math.isclose(said, is_, rel_tol=0.02, abs_tol=2e-3)
            if mine is not None and near:
                agreeing += 1
                break
        else:
            wrong = said, is_
        if agreeing == 2:
            return
    wrong_slope(name, mine, *wrong)


def wrong_slope(
    name: str, mine: Tensor | None, said: float, is_: float
) -> None:
    """Raises Broken for a gradient that says another slope than there is."""
    if mine is None:
        raise Broken(
            f"No gradient reaches `{name}`: {CUT}"
            if is_
            else f"The output does not depend on `{name}`."
        )
    raise Broken(
        f"The gradient of `{name}` is wrong. In one direction it says "
        f"{said:.3g}, but the output changes by {is_:.3g}: is the path "
        f"cut halfway? {CUT}"
    )


def slope(
    fn: Guarded, args: tuple, i: int, step: Tensor, upstream: list[Tensor]
) -> float:
    """How much the output changes as argument ``i`` makes a step, measured."""
    ends = []
    for sign in (1, -1):
        moved = (*args[:i], args[i] + sign * step, *args[i + 1 :])
        results = tensors_in(fn(*moved))
        ends.append(
            sum(
                (x.detach() * up).double().sum().item()
                for x, up in zip(results, upstream, strict=True)
            )
        )
    return (ends[0] - ends[1]) / 2
