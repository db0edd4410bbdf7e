"""The feed-forward network: what a position makes of its own vector.

Words for axes, the same in the book, the code and the tests:
    d_model  width of the residual stream, one vector for each position
    d_ff     width inside the network
A leading ``...`` is any number of batch-like axes, for example ``batch seq``.
"""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from companion.checks import check_sizes, check_states, checking


class FeedForward(nn.Module):
    """The same two-layer network at every position: widen, bend, narrow.

    Equation 2 of Vaswani et al. (2017), whose ``activation`` is the ReLU. A
    position sees no other position: this is a convolution of width 1.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Callable[[Tensor], Tensor] = F.relu,
        bias: bool = True,
    ):
        super().__init__()
        check_sizes(d_model=d_model, d_ff=d_ff)
        self.up_proj = nn.Linear(d_model, d_ff, bias=bias)
        self.down_proj = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = activation

    def forward(
        self, x: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... d_model"]:
        """What each position makes of its own vector.

        Raises:
            TypeError: ``x`` has another dtype than the weights.
            ValueError: a vector of ``x`` is not d_model wide.
        """
        if checking():
            w = self.up_proj.weight
            check_states("x", x, w, w.shape[1])
        return self._bend(x)

    def _bend(self, x: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.up_proj(x)))
