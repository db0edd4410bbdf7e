"""The loss: cross-entropy against a target that is not quite certain.

Words for axes, the same in the book, the code and the tests:
    vocab  tokens that the target language has
    token  target tokens that are no padding
A leading ``*batch`` is any number of batch-like axes, such as ``batch seq``.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from companion.checks import check_states

__all__ = ["IGNORED", "check_smoothing", "label_smoothing", "summed_loss"]

# Log-probabilities that are computed at a time: 4 MB, which a cache holds.
AT_A_TIME = 2**20
# A target that counts for nothing, where shapes must not depend on data.
IGNORED = -100


def label_smoothing(
    logits: Float[Tensor, "*batch vocab"],
    target: Int[Tensor, "*batch"],
    smoothing: float,
    pad: int | None,
) -> Float[Tensor, ""]:
    """Compute the cross-entropy in nats, the mean over all real tokens.

    A share of the target's certainty is spread over the whole vocabulary, the
    right token and ``pad`` included, as Szegedy et al. (2016) do in section 7,
    and ``F.cross_entropy`` after them. Section 5.4 of Vaswani et al. (2017)
    smooths by 0.1.

    Args:
        logits: One score a token of the vocabulary, before the softmax.
        target: The right token of each row.
        smoothing: The share, from 0 to below 1.
        pad: Which target is padding and left out; None if there is none.

    Returns:
        The loss in nats a token.

    Raises:
        TypeError: ``logits`` are not floating point.
        ValueError: ``smoothing`` is not from 0 to below 1, or no token of
            ``target`` is real.

    Example:
        >>> target = torch.tensor([3, 0])
        >>> label_smoothing(torch.zeros(2, 5), target, 0.1, pad=0).exp()
        tensor(5.0000)
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
    """Refuse what is no share of certainty.

    Args:
        smoothing: What ``label_smoothing`` is to be given.

    Raises:
        TypeError: It is no number.
        ValueError: It is not from 0 to below 1.

    Example:
        >>> check_smoothing(1)
        Traceback (most recent call last):
        ValueError: smoothing: expected a share from 0 to below 1, got 1
    """
    if not isinstance(smoothing, int | float):
        raise TypeError(f"smoothing: expected a number, got {smoothing!r}")
    if not 0 <= smoothing < 1:
        raise ValueError(
            f"smoothing: expected a share from 0 to below 1, got {smoothing}"
        )


def summed_loss(
    logits: Float[Tensor, "token vocab"],
    target: Int[Tensor, " token"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """Compute ``label_smoothing`` times the number of tokens, in little memory.

    Equal to ``F.cross_entropy`` with ``reduction="sum"``, in at least 32 bits.

    Args:
        logits: **Used up**: where gradients are asked for, they hold their own
            gradient afterwards, and no logits.
        target: The right token of each row; none is padding. In a compiled
            graph or on an accelerator, and only there, a row whose target is
            ``IGNORED`` is left out.
        smoothing: As in ``label_smoothing``.

    Returns:
        The loss in nats, summed.

    Example:
        >>> target = torch.tensor([3, 0])
        >>> summed_loss(torch.zeros(2, 5), target, 0.0).div(2).exp()
        tensor(5.)
    """
    # On a CPU, the first touch of fresh memory costs more than the arithmetic,
    # and PyTorch's own loss asks for three more arrays as large as the logits.
    # Elsewhere memory is kept for the next step, and its kernels are faster.
    plain = not logits.is_cpu or torch.compiler.is_compiling()
    if plain or not torch.is_grad_enabled():
        return F.cross_entropy(
            _wide(logits),
            target,
            label_smoothing=smoothing,
            ignore_index=IGNORED,
            reduction="sum",
        )
    # In float16 a small gradient would be 0 before a scaler makes it large.
    narrow = logits.dtype == torch.bfloat16
    held = logits if narrow else _wide(logits)
    return _InPlace.apply(held, target, smoothing)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, target: Tensor, smoothing: float):
        """Turn each row into its gradient: its softmax minus the target."""
        narrow = logits.dtype == torch.bfloat16
        loss, vocab = _wide(logits.new_zeros(())), logits.shape[1]
        size = max(1, AT_A_TIME // vocab)
        right = target[:, None].split(size)
        for rows, here in zip(logits.split(size), right, strict=True):
            log_p = _wide(rows).log_softmax(-1)
            loss -= (1 - smoothing) * log_p.gather(1, here).sum()
            if smoothing:
                loss -= smoothing / vocab * log_p.sum()
            p = torch.exp(log_p, out=log_p if narrow else rows)
            if smoothing:
                p -= smoothing / vocab
            p.scatter_add_(1, here, p.new_full(here.shape, smoothing - 1))
            if narrow:
                rows.copy_(p)
        ctx.save_for_backward(logits)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx, scale: Tensor):
        (gradient,) = ctx.saved_tensors
        return gradient.mul_(scale), None, None
