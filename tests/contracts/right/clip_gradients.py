"""Gradients unscaled and clipped, right in several ways."""

import torch
from contracts.right import right
from torch import nn


@right("clip_gradients")
def by_hand(gradients, scale, max_norm):
    """Squares added up one after the other."""
    gradients = [g / scale for g in gradients]
    norm = sum(g.square().sum() for g in gradients) ** 0.5
    if norm <= max_norm:
        return gradients
    return [g * (max_norm / norm) for g in gradients]


@right("clip_gradients")
def by_pytorch(gradients, scale, max_norm):
    """As a training step does it, on the parameters."""
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = g / scale
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


@right("clip_gradients")
def scaled_limit(gradients, scale, max_norm):
    """Clips what is scaled by a limit that is scaled too, and divides last."""
    norms = torch.stack(torch._foreach_norm(gradients))
    factor = (scale * max_norm / norms.norm().clamp(min=1e-12)).clamp(max=1)
    return tuple(g * factor / scale for g in gradients)
