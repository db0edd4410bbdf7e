"""The parts of today's block, made to fit where those of 2017 stood.

Words for axes, the same in the book, the code and the tests:
    d_model  width of the residual stream, one vector for each position
    d_ff     width inside the feed-forward network
A leading ``...`` is any number of batch-like axes, for example ``batch seq``.
"""

from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.blocks import FeedForward, Parts
from companion.blocks.norm import check_features
from companion.checks import check_eps, check_sizes, check_states, checking
from companion.variants.grouped import GroupedQueryAttention

__all__ = ["RMSNorm", "SwiGLU", "rms_norm", "today"]


def rms_norm(
    x: Float[Tensor, "... d_model"],
    gain: Float[Tensor, " d_model"],
    eps: float = 1e-6,
) -> Float[Tensor, "... d_model"]:
    """Bring each vector to a mean square of 1, times ``gain``.

    ``layer_norm`` without its mean and without its bias: what all features have
    in common stays. Equation 4 of Zhang & Sennrich (2019).

    Args:
        x: Vectors.
        gain: One factor a feature.
        eps: What is added to the mean square, inside the root.

    Returns:
        The vectors, normalised.

    Raises:
        TypeError: ``x`` is not floating point, or ``gain`` of another dtype.
        ValueError: ``gain`` is not one number a feature; ``eps`` is not
            positive.

    Example:
        >>> rms_norm(torch.tensor([1.0, 7.0]), torch.ones(2))
        tensor([0.2000, 1.4000])
    """
    if checking():
        check_features(x, gain=gain)
        check_eps(eps)
    # In float16 the square of 256 overflows.
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale * gain).to(x.dtype)


class RMSNorm(nn.Module):
    """Apply ``rms_norm`` with a gain that learns, at first 1.

    Args:
        d_model: Width of a vector.
        eps: What is added to the mean square, inside the root.

    Raises:
        TypeError: ``d_model`` is not an int.
        ValueError: ``d_model`` is below 1, or ``eps`` not positive.

    Example:
        >>> RMSNorm(2)(torch.tensor([1.0, 7.0])).detach()
        tensor([0.2000, 1.4000])
    """

    def __init__(self, d_model: int, *, eps: float = 1e-6):
        super().__init__()
        check_sizes(d_model=d_model)
        check_eps(eps)
        self.gain = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... d_model"]:
        """Each vector of ``x``, normalised."""
        if checking():
            check_states("x", x, self.gain, len(self.gain))
        return rms_norm(x, self.gain, self.eps)


class SwiGLU(FeedForward):
    """Apply a feed-forward network with a gate at every position.

    ``down(silu(gate(x)) · up(x))``, equation 6 of Shazeer (2020). It has three
    matrices where the network of 2017 has two: two thirds of the ``d_ff`` make
    as many weights.

    Args:
        d_model: Width of a vector.
        d_ff: Width inside.

    Raises:
        TypeError: A size is not an int.
        ValueError: A size is below 1.

    Example:
        >>> sum(weight.numel() for weight in SwiGLU(6, 8).parameters())
        144
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__(d_model, d_ff, activation=F.silu, bias=False)
        self.gate_proj = nn.Linear(d_model, d_ff, bias=False)

    def _bend(self, x: Tensor) -> Tensor:
        gate = self.activation(self.gate_proj(x))
        return self.down_proj(gate * self.up_proj(x))


def today(num_kv_heads: int) -> Parts:
    """The parts of a block of the LLaMA family, none with a bias.

    RMSNorm, SwiGLU and rotary positions are those of Touvron et al. (2023),
    shared keys and values those of Ainslie et al. (2023). They belong in a
    pre-LN layer. The cross-attention is not turned: source and target have no
    common positions.

    Raises:
        TypeError, ValueError: ``num_kv_heads`` is no whole number from 1 up.
    """
    check_sizes(num_kv_heads=num_kv_heads)
    cross = partial(
        GroupedQueryAttention, num_kv_heads=num_kv_heads, bias=False
    )
    return Parts(
        norm=RMSNorm,
        attention=partial(cross, rotary=True),
        cross_attention=cross,
        feed_forward=SwiGLU,
    )
