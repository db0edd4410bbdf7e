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
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import nn

__all__ = ["Component", "Mistake", "built", "title"]


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A known wrong implementation of a component.

    The one record of it: what ``check`` recognises, the zoo, the learner's
    exercises with ``check_test`` and the tests are all made from it.

    Attributes:
        component: The name of what it claims to be.
        id: What it is called, in words joined by hyphens; unique in its
            component, and never changed.
        make: The implementation: a function, or the class of a module that is
            built without arguments.
        story: What is wrong with it, the docstring of ``make``.
        hint: What ``check`` says to whoever returns the same numbers.
        symptom: What one notices who trains with it or uses it. A mistake with
            a symptom returns the right shape for every case, and is in the zoo.
        level: "risk" if it is wrong only where a rare input comes, and "note"
            if it is another convention; a fault otherwise.
        why: Why it is no fault, in one sentence, if it is none.
    """

    component: str
    id: str
    make: Callable
    story: str = ""
    hint: str = ""
    symptom: str = ""
    level: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """The id as words."""
        return self.id.replace("-", " ")

    @cached_property
    def fn(self) -> Callable:
        """What ``check`` takes: the function, or a module with weights."""
        return self.seeded(0)

    def seeded(self, seed: int) -> Callable:
        """Return the implementation with weights that only ``seed`` decides."""
        return (
            built(self.make, seed) if isinstance(self.make, type) else self.make
        )


def built(kind: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """Build a module in eval mode with weights that only ``seed`` decides."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        module = kind().eval()
    module.__name__ = getattr(kind, "__name__", type(module).__name__)
    return module


@dataclass(frozen=True, kw_only=True)
class Component:
    """What the contracts need to know of a component.

    A component with weights of its own has no reference, and its mistakes have
    no hints either: its contracts are properties.

    Attributes:
        signature: How it is called, as a learner would write it.
        returns: What it returns, in words.
        axes: Words for the last axes of the result.
        shape: From the arguments, the shape of the result, None for any size.
        cases: In words -> arguments, on which it must agree with the oracle.
            The first is the plainest one.
        dtype: The number type of the result, if not that of the first argument.
        oracle: An independent implementation, PyTorch's own.
        reference: What the oracle is called.
        agrees: The name of the contract that compares with the oracle.
        mistakes: The known mistakes. Those with a hint are compared with a
            learner's numbers in this order; the first that agrees is reported.
        shape_hints: Hint -> from the arguments, the shape of something else
            that a learner may have returned.
        shape_contract: The name of the contract that looks at what is returned.
        read: From the guard, what was returned and the arguments, what the
            contracts see. For all that is not one tensor of ``shape``.
        plain: Arguments for a plain call, where all cases take long to make.
        adapt: From what was given to ``check``, the function to call.
        in_place: Why it is only a risk to change an argument in place, if it
            is no fault.
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
    reference: str = ""
    agrees: str = "It agrees with PyTorch"
    shape_hints: dict[str, Callable] = field(default_factory=dict)
    shape_contract: str = "It returns a tensor of the right shape"
    read: Callable | None = None
    plain: Callable[[], tuple] | None = None
    adapt: Callable | None = None
    in_place: str = ""
    gradient: bool = True
    weights: bool = False
    mistakes: list[Mistake] = field(default_factory=list)
    early: list[Callable] = field(default_factory=list)
    own: list[Callable] = field(default_factory=list)

    def contract(self, function: Callable) -> Callable:
        """Register ``function`` as a contract of this component."""
        self.own.append(function)
        return function

    def before_reference(self, function: Callable) -> Callable:
        """Register a contract that shows more than a comparison of numbers.

        It is tried before the one with the oracle, so its message comes first.
        """
        self.early.append(function)
        return function

    def mistake(
        self,
        id: str = "",
        *,
        hint: str = "",
        symptom: str = "",
        level: str = "",
        why: str = "",
    ) -> Callable[[Callable], Callable]:
        """Register a function, or the class of a module, as a known mistake.

        Its docstring is the story: what is wrong with it.

        Args:
            id: What it is called, in words joined by hyphens; by default the
                words of its own name.
            hint: The message to a learner whose function returns the same.
            symptom: What one notices who trains with it; puts it into the zoo.
            level: "risk" or "note", if it is no fault.
            why: Why it is none, in one sentence.

        Returns:
            A decorator that leaves what it decorates as it was.

        Raises:
            ValueError: another mistake of the component has this id or hint.
        """

        def register(make: Callable) -> Callable:
            named = id or hyphenated(make.__name__)
            for other in self.mistakes:
                if other.id == named or other.hint == hint != "":
                    raise ValueError(
                        f"{self.name}: expected a new id and a new hint, got "
                        f"{named!r}, {hint!r} beside {other.id!r}"
                    )
            self.mistakes.append(
                Mistake(
                    component=self.name,
                    id=named,
                    make=make,
                    story=" ".join((make.__doc__ or "").split()),
                    hint=hint,
                    symptom=symptom,
                    level=level,
                    why=why,
                )
            )
            return make

        return register

    @property
    def hints(self) -> dict[str, Callable]:
        """Hint -> the mistake it hints at, in the order of recognition."""
        return {m.hint: m.fn for m in self.mistakes if m.hint}

    @property
    def parameters(self) -> list[str]:
        """The names of the arguments, in order."""
        inside = self.signature.partition("(")[2].rstrip(")")
        return [p.partition("=")[0] for p in inside.split(", ")]

    @property
    def example(self) -> tuple:
        """Arguments for a plain call."""
        if self.plain is not None:
            return self.plain()
        return next(iter(self.cases().values()))


def hyphenated(name: str) -> str:
    """Turn the name of a function or a class into an id.

    Example:
        >>> hyphenated("EndsWithARelu"), hyphenated("one_sum_for_all")
        ('ends-with-a-relu', 'one-sum-for-all')
    """
    words = r"_|(?<=[a-z])(?=[A-Z])|(?<=A)(?=[A-Z])"
    return re.sub(words, "-", name).lower()


def title(contract: Callable) -> str:
    """Return the name of a contract: its docstring's first sentence."""
    first = inspect.getdoc(contract).split("\n\n")[0]
    return " ".join(first.split()).removesuffix(".")
