"""What a component is: something a learner writes, for example attention.

A contract is a property that every correct implementation of a component has,
however it is written. Adding one means adding one function to the component's
module:

    @COMPONENT.contract
    def rows_sum_to_one(fn):
        \"\"\"Every row sums to 1.\"\"\"

The first sentence of its docstring is its name. It calls ``fn``, the learner's
function behind a guard, and raises ``Broken`` with the likely mistake.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, kw_only=True)
class Component:
    """What the contracts need to know of a component.

    A component with weights of its own has no oracle, and no suspects either:
    its contracts are properties.

    Attributes:
        signature: How it is called, as a learner would write it.
        returns: What it returns, in words.
        axes: Words for the last axes of the result.
        shape: From the arguments, the shape of the result, None for any size.
        cases: In words -> arguments, on which it must agree with the oracle.
            The first is the plainest one.
        dtype: The number type of the result, if not that of the first argument.
        oracle: An independent implementation, PyTorch's own.
        peer: What the oracle is called.
        agrees: The name of the contract that compares with the oracle.
        suspects: Hint -> the mistake it hints at, as a function.
        lookalikes: Hint -> from the arguments, the shape of something else
            that a learner may have returned.
        promise: The name of the contract that looks at what is returned.
        read: From the guard, what was returned and the arguments, what the
            contracts see. For all that is not one tensor of ``shape``.
        adapt: From what was given to ``check``, the function to call.
        gradient: Whether a gradient reaches the arguments.
        weights: Whether it has weights of its own, if it is a module. Its
            arguments are then tensors of two sentences at least.
    """

    name: str
    signature: str
    returns: str
    cases: Callable[[], dict[str, tuple]]
    axes: tuple[str, ...] = ("row", "feature")
    shape: Callable | None = None
    dtype: torch.dtype | None = None
    oracle: Callable | None = None
    peer: str = ""
    agrees: str = "It agrees with PyTorch"
    suspects: dict[str, Callable] = field(default_factory=dict)
    lookalikes: dict[str, Callable] = field(default_factory=dict)
    promise: str = "It returns a tensor of the right shape"
    read: Callable | None = None
    adapt: Callable | None = None
    gradient: bool = True
    weights: bool = False
    early: list[Callable] = field(default_factory=list)
    own: list[Callable] = field(default_factory=list)

    def contract(self, function: Callable) -> Callable:
        """Registers ``function`` as a contract of this component."""
        self.own.append(function)
        return function

    def telling(self, function: Callable) -> Callable:
        """Registers a contract that shows more than a comparison of numbers.

        It is tried before the one with the oracle, so its message comes first.
        """
        self.early.append(function)
        return function

    @property
    def parameters(self) -> list[str]:
        """The names of the arguments, in order."""
        inside = self.signature.partition("(")[2].rstrip(")")
        return [p.partition("=")[0] for p in inside.split(", ")]

    @property
    def example(self) -> tuple:
        """Arguments for a plain call."""
        return next(iter(self.cases().values()))


def title(contract: Callable) -> str:
    """The name of a contract: the first sentence of its docstring."""
    first = inspect.getdoc(contract).split("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")
