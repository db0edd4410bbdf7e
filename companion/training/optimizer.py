"""What turns gradients into a step."""

from collections.abc import Iterable

import torch
from torch import nn

__all__ = ["adam"]


def adam(
    parameters: Iterable[nn.Parameter],
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
) -> torch.optim.Adam:
    """Make Adam (Kingma and Ba, 2015) as section 5.3 of the paper uses it.

    Its memory is shorter than PyTorch's default: β₂ is 0.98, not 0.999, which
    averages squared gradients over some 50 steps and not some 1000.

    Args:
        parameters: What it moves.
        lr: Learning rate.
        betas: How much of the two running means stays at each step.
        eps: Keeps the step finite where the gradient is 0.

    Returns:
        The optimizer; a schedule writes the rate of each step into its groups.

    Raises:
        ValueError: A number is out of its range, or there is no parameter.

    Example:
        >>> weight = nn.Parameter(torch.tensor([1.0, 1.0]))
        >>> optimizer = adam([weight], lr=0.1)
        >>> (weight * torch.tensor([1.0, 1000.0])).sum().backward()
        >>> optimizer.step()
        >>> weight.data  # The first step is as long, whatever the gradient.
        tensor([0.9000, 0.9000])
    """
    # Fused: one pass over each parameter where the plain loop makes about ten,
    # each of which reads and writes all of them. The numbers are the same.
    return torch.optim.Adam(parameters, lr=lr, betas=betas, eps=eps, fused=True)
