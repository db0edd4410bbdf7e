"""What a contract is, and what the contracts of one component share.

A component is something a learner writes, for example attention. A contract is
a property that every correct implementation has, however it is written. Adding
one means adding one function to the component's module:

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
from torch import Tensor

TOLERANCE = 1e-4
"""Above any rounding in float32, far below what a mistake changes."""


class Broken(Exception):
    """A contract does not hold.

    Attributes:
        message: The likely mistake, and the place.
        got: The learner's tensor, if there is one to show.
        expected: What it should have been.
        axes: Words for the last axes of both, if not the component's.
        cause: What other contracts may break of too; said only once.
    """

    def __init__(
        self,
        message: str,
        got: Tensor | None = None,
        expected: Tensor | None = None,
        axes: tuple[str, ...] = (),
        cause: str = "",
    ):
        super().__init__(message)
        self.message, self.cause = message, cause or message
        self.got, self.expected, self.axes = got, expected, axes


@dataclass(frozen=True, kw_only=True)
class Component:
    """What the contracts need to know of a component.

    Attributes:
        signature: How it is called, as a learner would write it.
        returns: What it returns, in words.
        axes: Words for the last axes of the result.
        shape: From the arguments, the shape of the result.
        oracle: An independent implementation, PyTorch's own.
        peer: What the oracle is called.
        cases: In words -> arguments, on which both must agree. The first is
            the plainest one.
        suspects: Hint -> the mistake it hints at, as a function.
        lookalikes: Hint -> from the arguments, the shape of something else
            that a learner may have returned.
    """

    name: str
    signature: str
    returns: str
    axes: tuple[str, ...]
    shape: Callable
    oracle: Callable
    peer: str
    cases: Callable[[], dict[str, tuple]]
    suspects: dict[str, Callable]
    lookalikes: dict[str, Callable] = field(default_factory=dict)
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


def draw(*shape: int, seed: int) -> Tensor:
    """Normal numbers, always the same ones, without touching torch's own."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float32)


def gaps(got: Tensor, expected: Tensor) -> Tensor:
    """How far two tensors are apart, in units of 1 + |expected|; NaN is ∞."""
    got, expected = got.detach().double(), expected.detach().double()
    gap = (got - expected).abs() / (1 + expected.abs())
    return gap.masked_fill(got == expected, 0).nan_to_num(torch.inf)


def furthest(
    got: Tensor, expected: Tensor, tolerance: float = TOLERANCE
) -> tuple[int, ...] | None:
    """The index at which two tensors differ most; None if they agree."""
    gap = gaps(got, expected)
    if gap.max() <= tolerance:
        return None
    index = torch.unravel_index(gap.argmax(), gap.shape)
    return tuple(int(i) for i in index)


def place(index: tuple[int, ...], axes: tuple[str, ...]) -> str:
    """An index in words: ``batch 0, row 2, key 3``."""
    axes = axes[-len(index) :]
    lead = index[: len(index) - len(axes)]
    names = ("batch", "head") if len(lead) < 3 else ()
    words = [f"{n} {i}" for n, i in zip(names, lead, strict=False)]
    if lead and not names:
        words = [f"batch {lead}"]
    tail = zip(axes, index[len(lead) :], strict=True)
    return ", ".join([*words, *(f"{n} {i}" for n, i in tail)])


def number(x: Tensor) -> str:
    """Four digits, which tell apart what the tolerance tells apart."""
    words = {"nan": "NaN", "inf": "∞", "-inf": "-∞"}
    return words.get(str(x.item()), f"{x.item():.4g}")


def same(
    fn,
    got: Tensor,
    expected: Tensor,
    why: str,
    tolerance: float = TOLERANCE,
    cause: str = "",
) -> None:
    """Raises Broken with ``why`` and the place if the tensors differ."""
    index = furthest(got, expected, tolerance)
    if index is not None:
        raise Broken(
            f"{why} At {place(index, fn.component.axes)} yours is "
            f"{number(got[index])}, expected {number(expected[index])}.",
            got,
            expected,
            cause=cause,
        )


def finite(
    fn,
    got: Tensor,
    why: str,
    expected: Tensor | None = None,
    cause: str = "",
) -> None:
    """Raises Broken with ``why`` and the place if a number is NaN or ±∞."""
    wrong = ~got.detach().isfinite()
    if wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        raise Broken(
            f"{place(index, fn.component.axes).capitalize()} is "
            f"{number(got[index])}. {why}",
            got,
            expected,
            cause=cause,
        )


def gradients(
    fn: Callable, args: tuple, upstream: Tensor
) -> tuple[Tensor | None, ...] | None:
    """The gradient of ``(fn(*args) * upstream).sum()`` for each float argument.

    None instead of a gradient where none arrives, and None alone where the
    result has no gradient at all.
    """
    args = [a.clone().requires_grad_() if is_float(a) else a for a in args]
    result = fn(*args)
    if not result.requires_grad:
        return None
    leaves = [a for a in args if is_float(a)]
    try:
        return torch.autograd.grad(result, leaves, upstream, allow_unused=True)
    except RuntimeError as error:
        said = str(error).partition(":")[0]
        raise Broken(
            f"backward() raised RuntimeError: {said}. Does a line change a "
            "tensor in place (`/=`, `x[...] =`) that autograd needs?"
        ) from None


def is_float(x: object) -> bool:
    """Whether ``x`` is a tensor that may have a gradient."""
    return isinstance(x, Tensor) and x.is_floating_point()


def in_half_precision(fn, *args) -> None:
    """Raises Broken unless ``fn`` works in float16 and in bfloat16."""
    for dtype in (torch.float16, torch.bfloat16):
        small = [a.to(dtype) if is_float(a) else a for a in args]
        exact = [a.float() if is_float(a) else a for a in small]
        expected = fn(*exact)
        got = fn.raw(*small)
        name = str(dtype).removeprefix("torch.")
        why = f"In {name} `exp` overflows early: subtract the row's largest."
        finite(fn, got, why, expected)
        # bfloat16 has eight bits: a score of 4 is known to 1/64 only.
        why = f"{name} gives another result than float32."
        same(fn, got, expected, why, 0.05)
