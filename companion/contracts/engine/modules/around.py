"""A module around another one, whose parts keep their names."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import nn

__all__ = ["Around", "inmost"]


class Around(nn.Module):
    """Stands between whoever calls and a module.

    What is told of a weight names it as its writer does, without the way to it
    through what stands around.

    Args:
        module: What is inside.
        said: What it does, if that is to be told.

    Attributes:
        said: The same.
    """

    def __init__(self, module: nn.Module, said: str = ""):
        super().__init__()
        self.module, self.said = module, said

    @classmethod
    def named_as(cls, module: nn.Module) -> type:
        """Return the class under the name of a module, which may say a lot."""
        return type(type(module).__name__, (cls,), {})

    @staticmethod
    def like(
        module: nn.Module,
        call: Callable,
        less: Iterable[str] = (),
    ) -> Callable:
        """Return what has the signature of a module, and calls another way.

        Args:
            module: The module.
            call: What is called.
            less: The arguments that are not among its own.
        """
        known = inspect.signature(module.forward)
        left = [x for n, x in known.parameters.items() if n not in less]

        def forward(*args: Any, **named: Any) -> Any:
            return call(*args, **named)

        forward.__signature__ = known.replace(  # pyrefly: ignore
            parameters=left
        )
        return forward

    def __getattr__(self, name: str) -> Any:
        """Return what it has not itself, as a part that is asked by name."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    def named_modules(
        self,
        memo: set[nn.Module] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, nn.Module]]:
        """List it, and all that is inside, as if it was not around it."""
        memo = set() if memo is None else memo
        if self not in memo:
            memo.add(self)
            yield prefix, self
        yield from self.module.named_modules(memo, prefix, remove_duplicate)


def inmost(module: nn.Module) -> nn.Module:
    """Return what its writer has written, without what stands around it."""
    while isinstance(module, Around):
        module = module.module
    return module
