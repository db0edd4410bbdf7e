"""Training steps that make gradients too short, or turn them."""

import torch
from torch import nn

from companion.zoo.animal import animal

AGREES = "It unscales, then clips by the norm of all, as PyTorch does"


def clipped(gradients, max_norm):
    """PyTorch's own clipping, on copies."""
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = g.clone()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


@animal(
    "clip_gradients",
    seen="note 3, lines 377-381 with 395-397 (C-70)",
    symptom="in mixed precision the loss barely moves: the norm of every step "
    "is max_norm / scale",
    contract=AGREES,
    says="It clips first and unscales then",
)
def clipped_before_unscaled(gradients, scale, max_norm):
    """Clips what the loss scale has made a thousand times too long."""
    return [g / scale for g in clipped(gradients, max_norm)]


@animal(
    "clip_gradients",
    seen="a common slip",
    symptom="it trains as if the learning rate were a thousand times as high",
    contract=AGREES,
    says="It never divides by the scale",
)
def never_unscaled(gradients, scale, max_norm):
    """The loss was multiplied, and nobody divides."""
    return clipped(gradients, max_norm)


@animal(
    "clip_gradients",
    seen="a common slip",
    symptom="it trains, and small parameters learn as fast as large ones",
    contract=AGREES,
    says="Each gradient is clipped by a norm of its own",
)
def clipped_one_by_one(gradients, scale, max_norm):
    """A loop over the parameters, with the clipping within it."""
    return [clipped([g / scale], max_norm)[0] for g in gradients]


@animal(
    "clip_gradients",
    seen="a common slip",
    symptom="it trains, and all steps seem to point into a corner",
    contract=AGREES,
    says="Each number is clipped, not the norm",
)
def clipped_by_value(gradients, scale, max_norm):
    """Clipping by value instead of by norm."""
    return [(g / scale).clamp(-max_norm, max_norm) for g in gradients]


@animal(
    "clip_gradients",
    seen="a common slip",
    symptom="the loss falls, and then never settles: the last steps are as "
    "long as the first",
    contract=AGREES,
    says="Short gradients are made longer",
)
def always_of_one_length(gradients, scale, max_norm):
    """Divides by the norm without asking whether it is too long."""
    norm = torch.cat([g.flatten() for g in gradients]).norm() + 1e-12
    return [g / norm * max_norm for g in gradients]


@animal(
    "clip_gradients",
    seen="a common slip",
    symptom="all is NaN from the first step on in which no gradient arrives",
    contract="Gradients of 0 stay 0",
    says="The norm is 0, and 0/0 is NaN",
)
def divided_by_no_norm(gradients, scale, max_norm):
    """Splits each step into a direction and a length, even if it has none."""
    gradients = [g / scale for g in gradients]
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g / norm * norm.clamp(max=max_norm) for g in gradients]
