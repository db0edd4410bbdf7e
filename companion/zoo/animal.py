"""What an animal of the zoo is: a wrong implementation that looks right."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

ANIMALS: list["Animal"] = []
"""Every animal, in the order in which they came."""


@dataclass(frozen=True, kw_only=True)
class Animal:
    """A wrong implementation that returns the right shape and number type.

    Attributes:
        name: What it is called.
        component: What it claims to be, as ``check`` calls it.
        story: What is wrong with it, in a line or two.
        seen: Where such a fault was seen: lines of the notes with the row of
            their audit, a published course, or ``a common slip`` of learners,
            which is in none of the notes.
        symptom: What a person notices who trains or uses it.
        contract: The title of the first contract that it breaks.
        says: Plain words within that contract's message.
        fn: What ``check`` takes: a function, or a module with weights.
    """

    name: str
    component: str
    story: str
    seen: str
    symptom: str
    contract: str
    says: str
    fn: Callable


def animal(component: str, **told: str) -> Callable:
    """Registers a function, or a module that is built without arguments.

    The story is the docstring. ``told`` is seen, symptom, contract and says.
    """

    def register(fn: Callable) -> Callable:
        ANIMALS.append(
            Animal(
                name=called(fn.__name__),
                component=component,
                story=" ".join(fn.__doc__.split()),
                fn=built(fn) if isinstance(fn, type) else fn,
                **told,
            )
        )
        return fn

    return register


def called(name: str) -> str:
    """A name in Python as words: ``LostItsNorm`` is "lost its norm"."""
    return re.sub(r"_|(?<=[a-z])(?=[A-Z])|(?<=A)(?=[A-Z])", " ", name).lower()


def built(kind: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A module in eval mode, whose weights only ``seed`` decides."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        module = kind().eval()
    module.__name__ = kind.__name__
    return module
