"""Contracts of clipping gradients that a loss scale has made larger.

In half precision a loss is multiplied by a scale, so that small gradients do
not vanish. They are divided by it first, and clipped then: together, by the
norm of all of them.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, numel

from companion.contracts.engine.compare import Broken, draw, finite, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, require_several

Gradients = list[Tensor]
SHAPES = ((3, 5), (7,), (2, 2, 2))


def gradients(norm: float, scale: float, seed: int) -> Gradients:
    """Of three parameters; unscaled, their norm is ``norm``."""
    found = [draw(*s, seed=seed + i) for i, s in enumerate(SHAPES)]
    whole = torch.cat([g.flatten() for g in found]).norm()
    return [g * (norm * scale / whole) for g in found]


def cases() -> dict[str, tuple]:
    """Long gradients and short ones, scaled and not."""
    return {
        # Too short for any clipping, whoever forgets the scale.
        "for a scale of 2": (gradients(0.15, 2.0, 13), 2.0, 1.0),
        "for long gradients": (gradients(5.0, 1024.0, 2), 1024.0, 1.0),
        "for short gradients": (gradients(0.5, 1024.0, 3), 1024.0, 1.0),
        "for very short gradients": (gradients(1e-3, 1024.0, 5), 1024.0, 1.0),
        "without a scale": (gradients(5.0, 1.0, 7), 1.0, 2.0),
        "without a scale, for short gradients": (
            gradients(1.5, 1.0, 11),
            1.0,
            2.0,
        ),
    }


def flat(found: Sequence[Tensor]) -> Tensor:
    """All numbers in one row."""
    return torch.cat([g.flatten() for g in found])


def read(fn: Guarded, result: object, args: tuple) -> Tensor:
    """All numbers in one row, if each gradient has its shape."""
    require_several(fn, result, len(args[0]))
    for place, (got, given) in enumerate(zip(result, args[0], strict=True)):
        fn.require_tensor(got, (given,))
        if got.shape != given.shape:
            raise Broken(
                f"Gradient {place} has shape {tuple(got.shape)}: expected "
                f"{tuple(given.shape)}, that of its parameter."
            )
    return flat(result)


def clipped(whole: Tensor, limit: float) -> Tensor:
    """Shorter where it is too long."""
    return whole * (limit / whole.norm()).clamp(max=1)


def oracle(given: Gradients, scale: float, max_norm: float) -> Tensor:
    """What ``unscale_`` and then ``clip_grad_norm_`` leave."""
    return clipped(flat(given) / scale, max_norm)


def altogether(change: Callable) -> Callable:
    """A mistake that treats all gradients together."""

    def mistaken(given: Gradients, scale: float, limit: float) -> Gradients:
        parts = change(flat(given), scale, limit).split([*map(numel, given)])
        return [p.view(g.shape) for p, g in zip(parts, given, strict=True)]

    return mistaken


def one_by_one(given: Gradients, scale: float, limit: float) -> Gradients:
    """Each clipped by its own norm."""
    return [clipped(g / scale, limit) for g in given]


def by_the_sum(given: Gradients, scale: float, limit: float) -> Gradients:
    """The norms of the gradients added up."""
    factor = (scale * limit / sum(g.norm() for g in given)).clamp(max=1)
    return [g / scale * factor for g in given]


SUSPECTS = {
    "It clips first and unscales then: what reaches the optimiser is shorter "
    "by the scale. Divide by the scale first.": altogether(
        lambda g, scale, limit: clipped(g, limit) / scale
    ),
    "It never divides by the scale.": altogether(
        lambda g, scale, limit: clipped(g, limit)
    ),
    "It multiplies by the scale: divide.": altogether(
        lambda g, scale, limit: clipped(g * scale, limit)
    ),
    "It does not clip.": altogether(lambda g, scale, limit: g / scale),
    "Each gradient is clipped by a norm of its own, which turns the step: the "
    "norm is that of all together.": one_by_one,
    "The norms of the gradients are added up: the norm of all is the root of "
    "the sum of their squares.": by_the_sum,
    "Each number is clipped, not the norm: that turns the step.": altogether(
        lambda g, scale, limit: (g / scale).clamp(-limit, limit)
    ),
    "Short gradients are made longer: only shorten.": altogether(
        lambda g, scale, limit: g / g.norm() * limit
    ),
    "The root is missing: the norm is √Σg².": altogether(
        lambda g, scale, limit: (
            g / scale * (limit / (g / scale).square().sum()).clamp(max=1)
        )
    ),
}
"""Hint -> the gradients after the mistake."""

CLIP_GRADIENTS = Component(
    name="clip_gradients",
    signature="clip_gradients(gradients, scale, max_norm)",
    returns="the gradients for the optimiser, in a list",
    shape_contract="It returns one gradient for each",
    axes=("number",),
    read=read,
    dtype=torch.float32,
    oracle=oracle,
    reference="clip_grad_norm_",
    agrees="It unscales, then clips by the norm of all, as PyTorch does",
    cases=cases,
    suspects=SUSPECTS,
    gradient=False,
)


@CLIP_GRADIENTS.contract
def direction(fn: Guarded) -> None:
    """The step keeps its direction."""
    given, scale, limit = gradients(7.0, 8.0, 13), 8.0, 1.0
    got, before = fn(given, scale, limit), flat(given)
    why = "All numbers are to be multiplied by one and the same factor."
    expected = before * (got.norm() / before.norm())
    same(fn, got, expected, why)


@CLIP_GRADIENTS.contract
def zeros(fn: Guarded) -> None:
    """Gradients of 0 stay 0."""
    given = [0 * g for g in gradients(1.0, 1.0, 17)]
    got = fn.raw(given, 8.0, 1.0)
    why = "The norm is 0, and 0/0 is NaN: divide only where it is too long."
    finite(fn, got, why)
    same(fn, got, flat(given), "All gradients were 0.")
