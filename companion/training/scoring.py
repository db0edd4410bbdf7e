"""The summed loss of a step, in the memory that its logits already have.

Words for axes, the same in the book, the code and the tests:
    token  target tokens that are no padding
    vocab  tokens that the target language has
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

# Log-probabilities that are computed at a time: 4 MB, which a cache holds.
AT_A_TIME = 2**20


def summed_loss(
    logits: Float[Tensor, "token vocab"],
    target: Int[Tensor, " token"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """``label_smoothing`` times the number of tokens; **uses the logits up**.

    Equal to ``F.cross_entropy`` with ``reduction="sum"``, in at least 32
    bits. Where gradients are asked for, ``logits`` hold their own
    gradient afterwards, and no logits.
    """
    # On a CPU, the first touch of fresh memory costs more than the arithmetic,
    # and PyTorch's own loss asks for three more arrays as large as the logits.
    # Elsewhere memory is kept for the next step, and its kernels are faster.
    plain = not logits.is_cpu or torch.compiler.is_compiling()
    if plain or not torch.is_grad_enabled():
        return F.cross_entropy(
            _wide(logits), target, label_smoothing=smoothing, reduction="sum"
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
        """The gradient of a row is its softmax minus what was right."""
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
