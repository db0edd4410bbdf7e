"""Norms: gain and bias are inside, and the contracts put their own in."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.discovery.make import NotBuilt, make
from companion.contracts.discovery.verdict import Check, Judged, Unjudged
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.report import Failure

__all__ = [
    "ELSEWHERE",
    "MORE_THAN_A_NORM",
    "NORM",
    "OVER_OTHERS",
    "ZERO_GAIN",
    "by_its_name",
    "is_called_a_norm",
    "judged_norm",
    "kind_of_norm",
]

NO_LAYERS = (
    "its list of layers is empty, and what is left of it is its norm: build it "
    "with layers"
)


def no_layers(part: nn.Module) -> bool:
    """Tell whether it is a list of modules in which there is none."""
    lists = isinstance(part, nn.ModuleList | nn.ModuleDict | nn.Sequential)
    return lists and not len(part)


ZERO_GAIN = "its name says so, and its gain is 0"


NO_GAIN = Failure(
    "Its gain lets something through",
    "Its gain is 0 as it is built, so that nothing of the input is left: does "
    "it begin at 1, or is `1 +` missing where it multiplies?",
    level=RISK,
    why="It is right if a branch is to begin with nothing, as in Swin v2.",
    cause="gain",
)


MORE_THAN_A_NORM = "it ends with a norm, and is more than a norm"


def is_a_norm(part: nn.Module) -> bool:
    """Tell whether a part is a norm, as its name says."""
    return "norm" in type(part).__name__.lower()


def kind_of_norm(got: Tensor) -> tuple[str, str] | None:
    """Tell which norm returns such vectors, before it has learned."""
    mean, power = got.mean(-1), got.square().mean(-1)
    one = torch.ones_like(power)
    # One that divides by n - 1 is a norm too, and its contracts say so.
    size = torch.allclose(power, one, atol=1.5 / got.shape[-1])
    if not size:
        return None
    if torch.allclose(mean, 0 * one, atol=1e-3):
        return "layer_norm", "each vector has mean 0 and variance 1"
    if torch.allclose(power, one, atol=1e-3):
        return "rms_norm", "each vector has mean square 1"
    return None


NORM = re.compile(r"(?i)\w*(layer|rms)_?norm(ali[sz]ation)?|rms|ln")
"""What norms are called, also those that norm nothing."""


ELSEWHERE = re.compile(
    r"(?i)chan|spat|time|temp|group|batch|instance|gated|ada(?!ms?\b)|cond|film"
    r"|partial"
)
"""What is called so norms over other axes on purpose, or does more."""


OVER_OTHERS = "its name says so, and one vector moves with another"


def is_called_a_norm(module: nn.Module) -> bool:
    """Tell whether it is a norm by its name and its vectors.

    One that is to run over channels or over time says so in its name.
    """
    matrices = [p for p in module.parameters() if p.squeeze().ndim > 1]
    return has_its_name(module) and not matrices


def has_its_name(module: nn.Module) -> bool:
    """Tell whether it bears the name of a norm, and of none over other axes."""
    name = type(module).__name__
    return bool(NORM.fullmatch(name)) and not ELSEWHERE.search(name)


def by_its_name(module: nn.Module, said: str) -> tuple[nn.Module, str, str]:
    """Take a module for the norm that its name says."""
    # With a gain alone it is that of T5, whatever it is called.
    lone = len([*module.parameters()]) == 1
    lone |= "rms" in type(module).__name__.lower()
    return module, "rms_norm" if lone else "layer_norm", said


def judged_norm(
    module: nn.Module, component: str, said: str, check: Check, near: dict
) -> Judged:
    """Judge a norm, built anew for each width and eps.

    Raises:
        Unjudged: It is no norm alone, or cannot be called as one.
    """
    if any(no_layers(part) for part in module.modules()):
        raise Unjudged(NO_LAYERS)
    report = check(component, module)
    # One number is no gain: it may be the root of the width, as in ScaleNorm.
    if report.faults and all(p.numel() == 1 for p in module.parameters()):
        anew = check(component, OfEachWidth(type(module), near))
        report = report if anew.untried or anew.faults else anew
    if report.untried:
        fn = as_function(type(module), near)
        report = check(component, fn)
        if report.untried:
            raise Unjudged(
                f"it looks like {component}: {said}. "
                f"{report.failures[0].message}"
            )
    if said == ZERO_GAIN:
        report = report.with_more(NO_GAIN)
    return Judged(component, report, (said,))


class OfEachWidth(nn.Module):
    """Builds a norm without a gain anew for the width of what comes.

    Args:
        kind: Its class.
        near: What else stands in its file.
    """

    def __init__(self, kind: type, near: dict):
        super().__init__()
        self.kind, self.near = kind, near

    def forward(self, x: Tensor) -> Tensor:
        """Norm ``x``."""
        own, _ = make(self.kind, self.near, x.shape[-1])
        return own.eval().to(x.dtype)(x)


def as_function(kind: type, near: dict) -> Callable:
    """Make of a norm's class the function that the contracts call."""
    try:
        built, _ = make(kind, near)
    except NotBuilt as reason:
        raise Unjudged(f"it is a norm, and {reason}") from None
    names = [name for name, _ in built.named_parameters()]
    epsilon = next(
        (n for n in vars(built) if re.fullmatch(r"(?i).*eps(ilon)?", n)), None
    )
    if epsilon is None and any(is_a_norm(part) for part in built.children()):
        raise Unjudged(MORE_THAN_A_NORM)
    if epsilon is None:
        raise Unjudged("it is a norm whose eps cannot be chosen")

    def norm(x: Tensor, *rest: Any) -> Tensor:
        *vectors, eps = rest
        own, _ = make(kind, near, x.shape[-1])
        setattr(own, epsilon, eps)
        for name, vector in zip(names, vectors, strict=False):
            delattr(own, name)
            setattr(own, name, vector)
        return own(x)

    return norm
