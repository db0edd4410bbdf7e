"""The block: feed-forward, residual connection, layer normalisation.

Words for axes, the same in the book, the code and the tests:
    d_model  width of the residual stream, one vector for each position
    d_ff     width inside the feed-forward network
A leading ``...`` is any number of batch-like axes, for example ``batch seq``.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from companion.data.checks import (
    check_dropout,
    check_sizes,
    check_states,
    check_switches,
)
from companion.multihead import MultiHeadAttention


def layer_norm(
    x: Float[Tensor, "... d_model"],
    gain: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d_model"]:
    """Each vector at mean 0 and variance 1, times ``gain``, plus ``bias``.

    The statistics are those of one position: no other position and no other
    sentence moves them. The variance divides by d_model, and ``eps`` stands
    inside the root. Equation 4 of Ba et al. (2016), without the recurrence.

    Raises:
        TypeError: ``x`` is not floating point, or a dtype differs from its.
        ValueError: ``gain`` or ``bias`` is not one number a feature; ``eps`` is
            not positive.
    """
    check_states("x", x)
    for name, parameter in (("gain", gain), ("bias", bias)):
        check_states(name, parameter, x)
        if parameter.shape != x.shape[-1:]:
            raise ValueError(
                f"{name}: expected {x.shape[-1]} numbers, one a feature of x "
                f"{_shape(x)}, got {_shape(parameter)}"
            )
    _require_positive(eps)
    # In float16 the square of 256 overflows: statistics need 32 bits at least.
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    normal = centred * torch.rsqrt(variance + eps)
    return (normal * gain + bias).to(x.dtype)


class LayerNorm(nn.Module):
    """``layer_norm`` with a gain and a bias that learn, at first 1 and 0.

    Raises:
        TypeError: ``d_model`` is not an int.
        ValueError: ``d_model`` is below 1, or ``eps`` not positive.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        check_sizes(d_model=d_model)
        _require_positive(eps)
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... d_model"]:
        """Each vector of ``x``, normalised."""
        check_states("x", x, self.gain, len(self.gain))
        # ``layer_norm`` in one pass over x where that takes eight, in a third
        # of the time; equal but for rounding.
        gain, bias = self.gain, self.bias
        return F.layer_norm(x, gain.shape, gain, bias, self.eps).to(x.dtype)


class Dropout(nn.Dropout):
    """``nn.Dropout``, whose mask costs a CPU half as much.

    ``p`` is rounded to a whole number of 1/65536, and what is kept is scaled by
    the rounded one, so that the mean stays what it was.
    """

    def forward(self, x: Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
        """``x`` with features at 0, in training only."""
        # A GPU, and compiled code, draw and multiply in one pass already.
        slow = x.is_cpu and not torch.compiler.is_compiling()
        if slow and self.training and self.p:
            return x * _kept(x, self.p)
        return super().forward(x)


class FeedForward(nn.Module):
    """The same two-layer network at every position: widen, ReLU, narrow.

    Equation 2 of Vaswani et al. (2017). A position sees no other position:
    this is a convolution of width 1.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1.
    """

    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        check_sizes(d_model=d_model, d_ff=d_ff)
        self.up_proj = nn.Linear(d_model, d_ff)
        self.down_proj = nn.Linear(d_ff, d_model)

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... d_model"]:
        """What each position makes of its own vector.

        Raises:
            TypeError: ``x`` has another dtype than the weights.
            ValueError: a vector of ``x`` is not d_model wide.
        """
        check_states("x", x, self.up_proj.weight, self.up_proj.in_features)
        return self.down_proj(self.up_proj(x).relu())


class Residual(nn.Module):
    """Adds what a sub-layer says to what it was told, and normalises.

    Post-LN, the paper's form (section 3.1 of Vaswani et al., 2017):
    ``norm(x + dropout(sublayer(x)))``. Pre-LN, if ``norm_first``:
    ``x + dropout(sublayer(norm(x)))``, which leaves the sum as it is, so that a
    stack of them needs one more norm at its end.

    Raises:
        TypeError: ``d_model`` is not an int.
        ValueError: ``d_model`` is below 1; ``dropout`` is not a probability
            below 1.
    """

    def __init__(
        self, d_model: int, *, dropout: float = 0.0, norm_first: bool = False
    ):
        super().__init__()
        check_switches(norm_first=norm_first)
        self.norm = LayerNorm(d_model)
        self.dropout = Dropout(check_dropout(dropout))
        self.norm_first = norm_first

    def seen(
        self, x: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... d_model"]:
        """What the sub-layer gets to see of ``x``."""
        return self.norm(x) if self.norm_first else x

    def forward(
        self, x: Float[Tensor, "... d_model"], sublayer: Callable
    ) -> Float[Tensor, "... d_model"]:
        """``x`` after ``sublayer``, which must keep the shape.

        Raises:
            TypeError: ``sublayer`` returns no tensor of the dtype of ``x``.
            ValueError: it returns another shape, which a sum would broadcast
                in silence, or something on another device.
        """
        said = sublayer(self.seen(x))
        check_states("sublayer", said, x)
        if said.shape != x.shape:
            raise ValueError(
                f"sublayer: expected it to return the shape {_shape(x)} that "
                f"it is added to, got {_shape(said)}"
            )
        total = x + self.dropout(said)
        return total if self.norm_first else self.norm(total)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with a residual.

    Figure 1 of Vaswani et al. (2017), left. ``dropout`` acts on what a
    sub-layer says, before it is added (section 5.4).

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1, ``num_heads`` does not divide
            ``d_model``, or ``dropout`` is not a probability below 1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        style = {"dropout": dropout, "norm_first": norm_first}
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.attention_residual = Residual(d_model, **style)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.feed_forward_residual = Residual(d_model, **style)

    def forward(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch seq d_model"]:
        """``x`` after one layer. ``mask``: True = may attend.

        Raises:
            TypeError, ValueError: as ``MultiHeadAttention``.
        """
        x = self.attention_residual(x, lambda y: self.self_attention(y, mask))
        return self.feed_forward_residual(x, self.feed_forward)

    def weights(
        self,
        x: Float[Tensor, "batch seq d_model"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch head seq seq"]:
        """Who looks at whom in this layer, head by head."""
        return self.self_attention.weights(
            self.attention_residual.seen(x), mask
        )


def _kept(x: Tensor, p: float) -> Tensor:
    """0 where a feature is dropped, elsewhere what keeps the mean."""
    # One draw of 64 bits decides on four features.
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
    bits = draws.random_(-(2**63), None).view(torch.int16)[: x.numel()]
    dropped = min(round(p * 2**16), 2**16 - 1)
    kept = bits.view(x.shape) >= dropped - 2**15
    return kept.to(x.dtype).mul_(2**16 / (2**16 - dropped))


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _require_positive(eps: float) -> None:
    if not isinstance(eps, int | float) or not eps > 0:
        raise ValueError(f"eps: expected a positive number, got {eps!r}")
