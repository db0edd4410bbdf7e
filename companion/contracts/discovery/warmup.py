"""Ask a class for its learning rate at a step, if its name says how it goes.

It is made with a small optimizer, and its own count of steps is put to the one
that is asked for.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

__all__ = [
    "NO_WIDTH",
    "as_schedule",
    "is_named_so",
    "knows_its_width",
    "rate_of",
    "sets_a_rate",
    "warms_up",
]

NOAM = re.compile(
    r"(?i)noam_?(lr|rate|opt(im(i[sz]er)?)?|_|schedule[rd]?|wrapper|decay"
    r"|anneal(ing)?|warm_?up)*"
)
"""What is called so warms up as in the paper, which is Noam Shazeer's."""

SCHEDULED = re.compile(
    r"(?i)(lr_?)?(warm_?up|schedul(ed?|er|ing))_?"
    r"(lr|rate|opt(im(i[sz]er)?)?|_|schedule[rd]?|wrapper|decay)*"
)
"""What is called so may do too, and does if it wants a model's width."""

OF_A_RATE = re.compile(
    r"(?i)(warm_?up|cosine|(lr|learning_?rate|linear|step)_?)\w*schedul|"
    r"warm_?up_?(cosine|linear)|(cosine|linear)_?\w*warm_?up"
)
"""What is called so sets learning rates by some rule."""

NO_WIDTH = (
    "it warms up by a rule of its own: the one that the contracts know also "
    "wants the width of the model, as `schedule(step, d_model, warmup)`"
)

ARGUMENTS = {
    "params": r"params|parameters",
    "optimizer": r"(?i)opt|optim|(base_?)?optimi[sz]er",
    "d_model": r"(?i)d_?model|model_?(size|dim)|dim|size"
    r"|(embed(ding)?|hidden|feature)_?(dim|size)",
    "warmup": r"(?i)(n_|num_)?warm_?up(_?steps?)?",
    "factor": r"(?i)factor|(lr_?)?scale(_?factor)?|lr_?(mul|factor)|k"
    r"|mult(iplier)?"
    r"|(init(ial)?|base)_?lr(_?(mul|scale|factor))?",
}
"""What it may take, by its name."""

A_WIDTH = r"(?i)d_?model|model_?(size|dim)|n_?embd"
"""What the width of a model is called, and hardly anything else."""

OF_AN_OPTIMIZER = re.compile(r"(?i)eps(ilon)?|betas?\d?|weight_?decay|momentum")
"""What has no part in a rate."""

BEGINS = re.compile(
    r"(?i)last_?epoch|(init(ial)?_?|start_?|cur(rent)?_?|n_)?steps?(_?num)?"
)
"""What is called so is where it begins to count."""

STEPS = "step", "step_and_update_lr"
"""What it does for a step is called so."""


def warms_up(kind: type) -> bool:
    """Tell whether a class warms up as in the paper, by its names.

    So it does, whatever its own, if it wants the width of a model besides.
    """
    if NOAM.fullmatch(kind.__name__):
        return True
    try:
        names = [*inspect.signature(kind).parameters]
    except Exception:  # A class may raise whatever it is asked.
        return False

    def wants(pattern: str) -> bool:
        return any(re.fullmatch(pattern, name) for name in names)

    named = SCHEDULED.fullmatch(kind.__name__) or wants(A_WIDTH)
    steps = wants(ARGUMENTS["optimizer"]) or wants(ARGUMENTS["params"])
    return bool(named) and steps and wants(ARGUMENTS["warmup"])


def is_named_so(kind: type) -> bool:
    """Tell whether a class is called after what it does to a rate."""
    name = kind.__name__
    return bool(NOAM.fullmatch(name) or SCHEDULED.fullmatch(name))


def sets_a_rate(kind: type) -> bool:
    """Tell whether a class sets a learning rate, by its kind or its name."""
    return issubclass(kind, LRScheduler) or bool(
        OF_A_RATE.search(kind.__name__)
    )


def knows_its_width(kind: type) -> bool:
    """Tell whether a class that warms up wants the width of the model."""
    names = inspect.signature(kind).parameters
    return any(re.fullmatch(ARGUMENTS["d_model"], name) for name in names)


def as_schedule(kind: type) -> Callable[[int, int, int], float] | None:
    """Return the learning rate at a step, from a width and the warm-up.

    None, if nothing says what an argument is, or its steps are not counted. A
    number of another name could be a factor.

    Args:
        kind: The class.
    """
    which = {}
    for one in inspect.signature(kind).parameters.values():
        if role := role_of(one.name, ARGUMENTS):
            which[one.name] = role
        elif OF_AN_OPTIMIZER.fullmatch(one.name):
            continue
        elif one.default is one.empty or (
            type(one.default) in (int, float) and not BEGINS.fullmatch(one.name)
        ):
            return None
    if {"d_model", "warmup"} - {*which.values()}:
        return None

    @cache
    def built(d_model: int, warmup: int) -> Any:
        weights = [nn.Parameter(torch.ones(1))]
        given = {
            "params": weights,
            "optimizer": torch.optim.SGD(weights, 1.0),
            "d_model": d_model,
            "warmup": warmup,
            "factor": 1.0,
        }
        return kind(**{n: given[x] for n, x in which.items()}), given

    try:
        count = counter(built(64, 100)[0])
        if not count:
            return None
        one, two = (rate(*built(64, 100), count, step) for step in (1, 2))
    except Exception:
        return None
    # Some count from 0, and add 1 where they compute it.
    before = 1 if abs(2 * two - 3 * one) < 1e-6 * two else 0

    def schedule(step: int, d_model: int, warmup: int) -> float:
        return rate(*built(d_model, warmup), count, step - before)

    # What counts as PyTorch's do is asked for step 0 before all others.
    vars(schedule)["begins_with_0"] = counts_epochs(built(64, 100)[0])
    return schedule


def role_of(name: str, patterns: dict[str, str]) -> str:
    """Return what an argument is, by its name; empty, if it does not say it."""
    return next((r for r, p in patterns.items() if re.fullmatch(p, name)), "")


def rate_of(fn: Callable) -> Callable[[int, int, int], float] | None:
    """Return a function of a step, a width and a warm-up, called as a contract.

    None, if its arguments are others, by their names.
    """
    try:
        known = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return None
    which = {}
    patterns = {"step": A_STEP, **ARGUMENTS, "d_model": A_WIDTH}
    for one in known:
        if role := role_of(one.name, patterns):
            which[one.name] = role
        elif one.default is one.empty:
            return None
    if not {"step", "d_model", "warmup"} <= {*which.values()}:
        return None

    def schedule(step: int, d_model: int, warmup: int) -> float:
        sizes = {"step": step, "d_model": d_model, "warmup": warmup}
        given = sizes | {"factor": 1.0}
        return float(fn(**{n: given[role] for n, role in which.items()}))

    return schedule


A_STEP = r"(?i)(cur(rent)?_?|global_?|n_?)?(steps?|iter(ation)?)(_?num(ber)?)?"
"""What the number of a step is called."""


def counter(made: Any) -> str:
    """Name the attribute that counts its steps, if one does."""
    if counts_epochs(made):
        return "last_epoch"
    seen = []
    for _ in range(3):
        seen.append(dict(vars(made)))
        take_a_step(made)
    return next(
        (
            name
            for name, first in seen[0].items()
            if type(first) is int
            and [x.get(name) for x in seen] == [first, first + 1, first + 2]
        ),
        "",
    )


def counts_epochs(made: Any) -> bool:
    """Tell whether it counts its steps as PyTorch's schedulers do.

    One that has a `step` of its own may not.
    """
    return isinstance(made, LRScheduler) and hasattr(made, "last_epoch")


def take_a_step(made: Any) -> None:
    """Let it do what it does for a step."""
    next(getattr(made, name) for name in STEPS if hasattr(made, name))()


def rate(made: Any, given: dict[str, Any], count: str, step: int) -> float:
    """Return the rate of a step, which is counted as ``count`` says."""
    if counts_epochs(made):
        made.last_epoch, made._step_count = step, step + 1
        return float(made.get_lr()[0])
    setattr(made, count, step - 1)
    take_a_step(made)
    own = isinstance(made, torch.optim.Optimizer)
    stepped = made if own else given["optimizer"]
    return float(stepped.param_groups[0]["lr"])
