"""What the proofs of the answers share: a question's numbers, and its code."""

import pytest
import torch

from companion.interview.model.bank import course
from companion.zoo import ANIMALS


def question(name):
    """The question of this id."""
    (found,) = (q for q in course() if q.id == name)
    return found


def answers(name, right, *wrong):
    """Assert that these are the numbers which the bank gives."""
    task = question(name).task
    given = [task.value, *(mistake.value for mistake in task.mistakes)]
    near = max(task.tolerance / 2, 1e-9)
    computed = [float(number) for number in (right, *wrong)]
    assert given == pytest.approx(computed, abs=near, rel=0)


def parameters(module):
    """Count the numbers that a module learns."""
    return sum(p.numel() for p in module.parameters())


def defined(source):
    """The only function that some lines of code define."""
    scope = {"torch": torch}
    exec(source, scope)
    (name,) = scope.keys() - {"torch", "__builtins__"}
    return scope[name]


def shown(name):
    """The function that a code question shows: in a repair, the broken one."""
    return defined(question(name).task.stub)


def solved(name):
    """The function that solves a code question."""
    return defined(question(name).task.solution)


def repair(name):
    """The broken function that a code question shows, and its repair."""
    return shown(name), solved(name)


def mistake(component, name):
    """A wrong implementation of a component."""
    (found,) = (
        a.fn for a in ANIMALS if (a.component, a.name) == (component, name)
    )
    return found


def moved(fn, x, *rest, position=-1):
    """Which rows of a result move with one position of ``x``."""
    other = x.clone()
    other[:, position] += 1
    change = fn(other, *rest) - fn(x, *rest)
    return (change.abs().amax((0, 2)) > 1e-5).tolist()
