"""Build what takes sentences of one length anew for each length.

A causal mask that is not cut to the sentence insists on one. With the weights
of the first in all of them, they are as good as one module.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from companion.contracts.discovery.kinds.calls import answer, widths
from companion.contracts.discovery.make import make
from companion.contracts.discovery.sizes import LONG, WIDTH
from companion.contracts.discovery.verdict import in_time
from companion.contracts.engine.compare import draw
from companion.contracts.engine.modules.around import Around

__all__ = ["of_each_length"]

ANEW = (
    "it takes sentences of the length alone that it is built for, and was "
    "built anew for each"
)


class OfEachLength(Around):
    """Calls a module that is built for the length of what comes.

    Args:
        module: One of the class, whose weights all have.
        kind: The class.
        near: What else stands in its file.
    """

    def __init__(self, module: nn.Module, kind: type, near: dict):
        super().__init__(module, ANEW)
        self.kind, self.near = kind, near
        self.forward = self.like(module, self.at_its_length)
        self.others: dict[int, Callable] = {}

    def at_its_length(self, x: Tensor, *args: Any, **named: Any) -> Any:
        """Call the one for the length of ``x``."""
        length = x.shape[1]
        if length not in self.others:
            self.others[length], _ = make(self.kind, self.near, length=length)
        other = self.others[length].train(self.training)
        sizes = {n: p.shape for n, p in other.named_parameters()}
        weights = {
            # Of a table of positions as many rows as there are.
            name: weight[tuple(map(slice, sizes[name]))]
            for name, weight in self.module.named_parameters()
        }
        return functional_call(other, weights, (x, *args), named)


def of_each_length(kind: type, near: dict) -> tuple[nn.Module, str] | None:
    """Build a class for each length; None, if it takes others than its own.

    Raises:
        NotBuilt: It cannot be built.
    """
    module, said = make(kind, near)
    alone = in_time(lambda: takes_its_length_alone(module.eval()))
    whole = OfEachLength.named_as(module)(module, kind, near)
    return (whole, said) if alone else None


def takes_its_length_alone(module: nn.Module) -> bool:
    """Tell whether it takes vectors of the length that it is built for."""
    for width in dict.fromkeys([*widths(module), WIDTH]):
        own, shorter = (draw(2, n, width, seed=3) for n in (LONG, 5))
        if answer(module, (shorter,)) is None:
            got = answer(module, (own,))
            if got is not None and got.shape[:2] == own.shape[:2]:
                return True
    return False
