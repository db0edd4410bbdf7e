"""The loss: cross-entropy against a target that is not quite certain.

Words for axes, the same in the book, the code and the tests:
    vocab  tokens that the target language has
A leading ``*batch`` is any number of batch-like axes, such as ``batch seq``.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.data.checks import check_states


def label_smoothing(
    logits: Float[Tensor, "*batch vocab"],
    target: Int[Tensor, "*batch"],
    smoothing: float,
    pad: int | None,
) -> Float[Tensor, ""]:
    """Cross-entropy in nats, the mean over the tokens that are no padding.

    A share ``smoothing`` of the target's certainty is spread over the whole
    vocabulary, the right token and ``pad`` included, as Szegedy et al. (2016)
    do in section 7, and ``F.cross_entropy`` after them. Without padding,
    ``pad`` is None. Section 5.4 of Vaswani et al. (2017) smooths by 0.1.

    Raises:
        TypeError: ``logits`` are not floating point.
        ValueError: ``smoothing`` is not from 0 to below 1, or no token of
            ``target`` is real.
    """
    check_states("logits", logits)
    check_smoothing(smoothing)
    if target.shape != logits.shape[:-1]:
        raise ValueError(
            f"target: expected one id a row of logits, "
            f"{tuple(logits.shape[:-1])}, got {tuple(target.shape)}"
        )
    real = torch.ones_like(target).bool() if pad is None else target != pad
    if not real.any():
        raise ValueError("target: expected a token that is no padding")
    log_p = logits[real].log_softmax(-1)
    right = log_p.gather(-1, target[real].long().unsqueeze(-1)).squeeze(-1)
    everywhere = log_p.mean(-1)
    return -((1 - smoothing) * right + smoothing * everywhere).mean()


def check_smoothing(smoothing: float) -> None:
    """Refuses what is no share of certainty.

    Raises:
        TypeError: it is no number.
        ValueError: it is not from 0 to below 1.
    """
    if not isinstance(smoothing, int | float):
        raise TypeError(f"smoothing: expected a number, got {smoothing!r}")
    if not 0 <= smoothing < 1:
        raise ValueError(
            f"smoothing: expected a share from 0 to below 1, got {smoothing}"
        )
