"""An activation belongs between the two linear maps of a network.

Without one, both are together one linear map.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.guard import Guarded

__all__ = ["Straight", "activation_between"]

WIDER = 1.5
"""A network widens its vectors by more. What projects to a rank need not."""

BETWEEN = "Between the two linear maps of a network stands an activation"
NO_ACTIVATION = (
    "A linear map from {0} to {1} numbers is followed at once by one back to "
    "{0}: without an activation between, such as ReLU or GELU, both are "
    "together one linear map."
)


class Mapped(NamedTuple):
    """What a linear map returned.

    Attributes:
        result: Its numbers. What works in place changes its version.
        version: That of the result, when it was returned.
        shape: That of its matrix, (out, in).
        source: Where its input stood.
    """

    result: Tensor
    version: int
    shape: tuple[int, int]
    source: int


class Maps(TorchFunctionMode):
    """Listens to pairs of linear maps that follow each other at once.

    Attributes:
        pairs: The first of each, where the second leads back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Mapped] = []
        self.pairs: list[Mapped] = []

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        got = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "linear" and len(args) > 1:
            x, weight = args[:2]
            self.pairs += [
                one
                for one in self.made
                if one.result.data_ptr() == x.data_ptr()
                and one.result.numel() == x.numel()
                and one.version == version_of(x)
                and weight.shape == one.shape[::-1]
                and one.shape[0] >= WIDER * one.shape[1]
            ]
            shape = (weight.shape[0], weight.shape[1])
            self.made.append(Mapped(got, version_of(got), shape, x.data_ptr()))
        return got


def version_of(x: Tensor) -> int:
    """Count what has worked on it in place, where PyTorch counts that."""
    return 0 if x.is_inference() else x._version


def activation_between(args: Callable[[], tuple]) -> Callable:
    """Make: between the two linear maps of a network stands an activation.

    Several pairs with one input are projections by way of a rank.

    Args:
        args: The arguments.
    """

    def holds(fn: Guarded) -> None:
        with Maps() as maps:
            fn.raw(*args())
        inputs = Counter(one.source for one in maps.pairs)
        if maps.pairs and max(inputs.values()) == 1:
            wide, narrow = maps.pairs[0].shape
            said = NO_ACTIVATION.format(narrow, wide)
            raise Broken(said, cause=said)

    holds.__doc__ = f"{BETWEEN}."
    return holds


class Straight(nn.Sequential):
    """A network of two linear maps, and nothing between."""

    def __init__(self, d_model: int, d_ff: int):
        super().__init__(nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model))
