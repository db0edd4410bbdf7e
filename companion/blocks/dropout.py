"""Dropout, whose mask takes fewer draws."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """Drop features as ``nn.Dropout`` does; a CPU draws four of them at once.

    ``p`` is rounded to a whole number of 1/65536, and what is kept is scaled by
    the rounded one, so that the mean stays what it was.

    Args:
        p: How likely a feature is to be dropped.

    Example:
        >>> set(Dropout(p=0.5)(torch.ones(1000)).tolist())
        {0.0, 2.0}
    """

    def forward(self, x: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
        """``x`` with features at 0, in training only."""
        # A GPU draws and multiplies in one pass already.
        if not (x.is_cpu and self.training and self.p):
            return super().forward(x)
        if torch.compiler.is_compiling():
            return x * _kept_compiled(x.detach(), self.p)
        return x * _kept(x, self.p)


def _kept(x: Tensor, p: float) -> Tensor:
    """0 where a feature is dropped, elsewhere what keeps the mean."""
    # One draw of 64 bits decides on four features.
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
    bits = draws.random_(-(2**63), None).view(torch.int16)[: x.numel()]
    dropped = min(round(p * 2**16), 2**16 - 1)
    kept = bits.view(x.shape) >= dropped - 2**15
    return kept.to(x.dtype).mul_(2**16 / (2**16 - dropped))


# Compiled code for a CPU would draw feature by feature, and once more for the
# backward pass. What it cannot look into it calls, once.
@torch.library.custom_op(
    "companion::kept",
    mutates_args=(),
    tags=(torch.Tag.nondeterministic_seeded,),
)
def _kept_compiled(x: Tensor, p: float) -> Tensor:
    return _kept(x, p)


@_kept_compiled.register_fake
def _(x: Tensor, p: float) -> Tensor:
    del p
    return torch.empty_like(x, memory_format=torch.contiguous_format)
