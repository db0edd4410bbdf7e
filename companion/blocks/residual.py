"""The residual connection around a sub-layer, with its norm.

Words for axes, the same in the book, the code and the tests:
    d_model  width of the residual stream, one vector for each position
A leading ``...`` is any number of batch-like axes, for example ``batch seq``.
"""

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.blocks.dropout import Dropout
from companion.blocks.norm import LayerNorm
from companion.checks import (
    check_dropout,
    check_states,
    check_switches,
    checking,
)


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
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        norm: Callable[[int], nn.Module] = LayerNorm,
    ):
        super().__init__()
        check_switches(norm_first=norm_first)
        self.norm = norm(d_model)
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
        change = sublayer(self.seen(x))
        if checking():
            _check_change(change, x)
        total = x + self.dropout(change)
        return total if self.norm_first else self.norm(total)


def apply_at(
    positions: Int[Tensor, " some"] | None,
    function: Callable[[Tensor], Tensor],
    x: Float[Tensor, "batch seq d_model"],
) -> Float[Tensor, "batch seq d_model"]:
    """Apply a function of single positions to some of them.

    Args:
        positions: Which ones, counted through all sentences; None is all.
        function: Makes of each vector another one, whatever the axes before.
        x: A vector for each position.

    Returns:
        ``x``, in which only the vectors at ``positions`` have changed.

    Example:
        >>> x = torch.ones(2, 2, 1)
        >>> apply_at(torch.tensor([0, 3]), torch.neg, x).flatten().tolist()
        [-1.0, 1.0, 1.0, -1.0]
    """
    if positions is None:
        return function(x)
    flat = x.flatten(0, 1)
    new = function(flat.index_select(0, positions))
    return flat.to(new.dtype).index_copy(0, positions, new).view(x.shape)


def _check_change(change: Tensor, x: Tensor) -> None:
    check_states("sublayer", change, x)
    if change.shape != x.shape:
        raise ValueError(
            f"sublayer: expected it to return the shape {tuple(x.shape)} that "
            f"it is added to, got {tuple(change.shape)}"
        )
