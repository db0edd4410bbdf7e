"""Layer normalisation: each vector by its own mean and variance.

Words for axes, the same in the book, the code and the tests:
    d_model  width of the residual stream, one vector for each position
A leading ``...`` is any number of batch-like axes, for example ``batch seq``.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.checks import check_eps, check_sizes, check_states, checking


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
    if checking():
        check_features(x, gain=gain, bias=bias)
        check_eps(eps)
    # In float16 the square of 256 overflows: statistics need 32 bits at least.
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    normal = centred * torch.rsqrt(variance + eps)
    return (normal * gain + bias).to(x.dtype)


class LayerNorm(nn.Module):
    """Apply ``layer_norm`` with a gain and a bias that learn, at first 1 and 0.

    Args:
        d_model: Width of a vector.
        eps: What is added to the variance, inside the root.

    Raises:
        TypeError: ``d_model`` is not an int.
        ValueError: ``d_model`` is below 1, or ``eps`` not positive.

    Example:
        >>> x = torch.tensor([[1.0, 3.0], [5.0, 5.0]])
        >>> LayerNorm(2)(x).detach()
        tensor([[-1.0000,  1.0000],
                [ 0.0000,  0.0000]])
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        check_sizes(d_model=d_model)
        check_eps(eps)
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... d_model"]:
        """Each vector of ``x``, normalised."""
        if checking():
            check_states("x", x, self.gain, len(self.gain))
        # ``layer_norm`` in one pass over x where that takes eight; equal but
        # for rounding.
        gain, bias = self.gain, self.bias
        return F.layer_norm(x, gain.shape, gain, bias, self.eps).to(x.dtype)


def check_features(x: Tensor, **parameters: Tensor) -> None:
    """Refuse what is not one number for each feature of ``x``.

    Raises:
        TypeError: ``x`` is not floating point, or a dtype differs from its.
        ValueError: a parameter has another shape.
    """
    check_states("x", x)
    for name, parameter in parameters.items():
        check_states(name, parameter, x)
        if parameter.shape != x.shape[-1:]:
            raise ValueError(
                f"{name}: expected {x.shape[-1]} numbers, one a feature of x "
                f"{tuple(x.shape)}, got {tuple(parameter.shape)}"
            )
