"""Contracts of clipping gradients that a loss scale has made larger.

In half precision a loss is multiplied by a scale, so that small gradients do
not vanish. They are divided by it first, and clipped then: together, by the
norm of all of them.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw, finite, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, require_several

__all__ = ["CLIP_GRADIENTS"]

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


# Known mistakes


def altogether(change: Callable, given: Gradients) -> Gradients:
    """Change all gradients as if they were one row of numbers."""
    parts = change(flat(given)).split([g.numel() for g in given])
    return [p.view(g.shape) for p, g in zip(parts, given, strict=True)]


@CLIP_GRADIENTS.mistake(
    hint="It clips first and unscales then: what reaches the optimiser is "
    "shorter by the scale. Divide by the scale first.",
    symptom="in mixed precision the loss barely moves: the norm of every step "
    "is max_norm / scale",
)
def clipped_before_unscaled(gradients, scale, max_norm):
    """Clips what the loss scale has made a thousand times too long."""
    return altogether(lambda g: clipped(g, max_norm) / scale, gradients)


@CLIP_GRADIENTS.mistake(
    hint="It never divides by the scale.",
    symptom="it trains as if the learning rate were a thousand times as high",
)
def never_unscaled(gradients, scale, max_norm):
    """The loss was multiplied, and nobody divides."""
    return altogether(lambda g: clipped(g, max_norm), gradients)


@CLIP_GRADIENTS.mistake(hint="It multiplies by the scale: divide.")
def multiplied_by_the_scale(gradients, scale, max_norm):
    """Scales a second time what the loss has scaled already."""
    return altogether(lambda g: clipped(g * scale, max_norm), gradients)


@CLIP_GRADIENTS.mistake(hint="It does not clip.")
def unclipped(gradients, scale, max_norm):
    """Divides by the scale, and leaves the length as it is."""
    return [g / scale for g in gradients]


@CLIP_GRADIENTS.mistake(
    hint="Each gradient is clipped by a norm of its own, which turns the step: "
    "the norm is that of all together.",
    symptom="it trains, and small parameters learn as fast as large ones",
)
def clipped_one_by_one(gradients, scale, max_norm):
    """A loop over the parameters, with the clipping within it."""
    return [clipped(g / scale, max_norm) for g in gradients]


@CLIP_GRADIENTS.mistake(
    hint="The norms of the gradients are added up: the norm of all is the root "
    "of the sum of their squares.",
)
def norms_added_up(gradients, scale, max_norm):
    """Takes the sum of the norms for the norm of all."""
    norm = sum(g.norm() for g in gradients) / scale
    return [g / scale * (max_norm / norm).clamp(max=1) for g in gradients]


@CLIP_GRADIENTS.mistake(
    hint="Each number is clipped, not the norm: that turns the step.",
    symptom="it trains, and all steps seem to point into a corner",
)
def clipped_by_value(gradients, scale, max_norm):
    """Clipping by value instead of by norm."""
    return [(g / scale).clamp(-max_norm, max_norm) for g in gradients]


@CLIP_GRADIENTS.mistake(
    hint="Short gradients are made longer: only shorten.",
    symptom="the loss falls, and then never settles: the last steps are as "
    "long as the first",
)
def always_of_one_length(gradients, scale, max_norm):
    """Divides by the norm without asking whether it is too long."""
    norm = flat(gradients).norm() + 1e-12
    return [g / norm * max_norm for g in gradients]


@CLIP_GRADIENTS.mistake(
    hint="The root is missing: the norm is √Σg².",
)
def norm_without_its_root(gradients, scale, max_norm):
    """Takes the sum of the squares for the norm."""
    square = flat(gradients).div(scale).square().sum()
    return [g / scale * (max_norm / square).clamp(max=1) for g in gradients]


@CLIP_GRADIENTS.mistake(
    symptom="all is NaN from the first step on in which no gradient arrives",
)
def divided_by_no_norm(gradients, scale, max_norm):
    """Splits each step into a direction and a length, even if it has none."""
    gradients = [g / scale for g in gradients]
    norm = flat(gradients).norm()
    return [g / norm * norm.clamp(max=max_norm) for g in gradients]
