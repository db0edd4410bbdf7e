"""Examines a learner's test: it has to tell a sick one from the healthy.

from companion.zoo import check_test

def my_test(fn):
    assert not fn(5)[0, 1]

check_test("causal_mask", "transposed triangle", my_test)
"""

import copy
import difflib
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from companion.contracts import COMPONENTS
from companion.contracts.engine import runner
from companion.contracts.engine.blame import raised_at, said_by
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component, Mistake
from companion.contracts.engine.correct import (
    Healthy,
    each,
    healthy,
    with_names,
)
from companion.contracts.engine.exam_words import (
    ExamReport,
    Run,
    Tried,
    verdicts,
)
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.report import Report, failure

RUNS = 5
"""How often a test is tried on each, with other random numbers."""

FILLS = (0, 1, None)
"""What looks only at shapes passes for results of nothing but 0, of nothing
but 1, and for numbers drawn at random."""


class Tester(Guarded):
    """A learner's test behind the guard.

    Attributes:
        who: The name of what it is given.
        error: What it raised last.
    """

    def __init__(self, component: str, test: object):
        super().__init__(
            Component(
                name="my_test",
                signature="my_test(fn)",
                returns=f"nothing, and asserts what a healthy {component} does",
                cases=lambda: {"as it is": (None,)},
            ),
            test,
        )
        self.who, self.error = "", None

    def explain(self, error: BaseException, args: tuple) -> str:
        """What was raised, where, and what it probably means."""
        self.error = error
        return super().explain(error, args)

    def describe(self, args: tuple) -> str:
        """Whom it was given."""
        return f"`fn`, {self.who}"

    def require_call(self) -> None:
        """Raises Broken if the test cannot be called with one function."""
        if not callable(self.fn):
            raise Broken(
                f"Your test is not a function but a {type(self.fn).__name__}: "
                "pass the test itself, and do not call it."
            )
        super().require_call()

    def run(self, fn: Callable, who: str) -> Run:
        """What came of the test for ``fn``, which is called ``who``."""
        self.who = who
        try:
            return Run(returned=self.call(fn))
        except Raised as raised:
            broken = raised.message
        error = self.error
        if not isinstance(error, AssertionError):
            return Run(broken=broken)
        where = f"It fails {raised_at(error)}".rstrip()
        return Run(failed=where, said=said_by(error))


def check_test(component: str, animal: str, test: object) -> Report:
    """Tries a test on a sick implementation and on healthy ones.

    ``test`` is called with one argument, the implementation. It has to fail,
    by an assertion, for the animal of the zoo that has this name, and to pass
    for every healthy one. As with ``check``, whatever it does is reported.

    Raises:
        TypeError: ``component`` or ``animal`` is not a string.
        ValueError: no component, or no animal of it, has this name, or there
            is no healthy one to compare with.
    """
    sick = found(component, animal)
    tester = Tester(component, test)
    with runner.undisturbed(tester):
        return examined(tester, sick, healthy(component))


def found(component: str, animal: str) -> Mistake:
    """The animal of this name, or an error that says which there are."""
    for argument, name in (("component", component), ("animal", animal)):
        if not isinstance(name, str):
            raise TypeError(
                f"{argument}: expected a name, got a {type(name).__name__}; "
                "the test comes third"
            )
    if component not in COMPONENTS:
        raise ValueError(f"component: {expected(component, COMPONENTS)}")
    mistakes = COMPONENTS[component].mistakes
    among = {m.name: m for m in mistakes if m.symptom}
    if animal not in among:
        raise ValueError(f"animal: {expected(animal, among)}")
    if not healthy(component):
        raise ValueError(
            f"component: expected one with a healthy implementation to "
            f"compare with, got {component!r}"
        )
    return among[animal]


def expected(name: str, known: dict) -> str:
    """Which names there are, and which one was probably meant."""
    near = difflib.get_close_matches(name, known, 1)
    ask = f" Did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(sorted(known))}, got {name!r}.{ask}"


def examined(tester: Tester, sick: Mistake, others: list[Healthy]) -> Report:
    """The report on a test that is tried on all of them."""
    lines = [f"It passes for a healthy one: {one.name}" for one in others]
    lines.append(f"It fails for the sick one: {sick.name}")
    tried = Tried([], [], [])
    late = runner.in_time(tester, lambda: try_all(tester, sick, others, tried))
    found = verdicts(tried, sick, others)
    if late is not None:
        where = f"was stopped {late}".rstrip()
        message = (
            f"Your test had not come back after {runner.SECONDS:g} seconds and "
            f"{where}. It is run {RUNS} times on each: does a loop never end?"
        )
        found.append(Broken(message))
    pairs = list(zip(lines, found, strict=False))
    return ExamReport(
        tester.name,
        [line for line, broken in pairs if broken is None],
        [failure(tester.component, *pair) for pair in pairs if pair[1]],
        lines[len(found) :],
    )


def try_all(
    tester: Tester, sick: Mistake, others: list[Healthy], tried: Tried
) -> None:
    """Appends to ``tried`` as it goes, so that what was found is kept."""
    try:
        tester.require_call()
    except Broken as broken:
        tried.healthy.append([Run(broken=broken.message)])
        return
    component = COMPONENTS[sick.component]
    for one in others:
        tried.healthy.append(several(tester, component, one.name, one.fn))
        if tried.healthy[0][0].broken:
            return
    tried.sick.extend(several(tester, component, "the sick one", sick.fn))
    if all(run.passed for run in tried.sick):
        for fill in FILLS:
            blank = filled(fill)
            runs = several(tester, component, "", others[0].fn, blank)
            tried.blank.extend(runs)


def filled(number: int | None) -> Callable:
    """What leaves only the shapes of a result; None draws its numbers."""

    def fill(x: Any) -> Any:
        if isinstance(x, Tensor):
            drawn = torch.rand(x.shape) * 10 if number is None else number
            full = torch.empty_like(x, requires_grad=False)
            return full.copy_(drawn > 5 if x.dtype == torch.bool else drawn)
        if isinstance(x, int | float):
            return type(x)(random.random() * 10 if number is None else number)
        return x

    return partial(each, change=fill)


def several(
    tester: Tester,
    component: Component,
    who: str,
    fn: Callable,
    change: Callable = lambda result: result,
) -> list[Run]:
    """The test on one of them, again and again with other random numbers."""
    runs = []
    for seed in range(RUNS):
        calls: list[None] = []
        one = watched(component, fn, calls, change)
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        runs.append(tester.run(one, who)._replace(called=bool(calls)))
        if runs[-1].broken:
            break
    return runs


def watched(
    component: Component, fn: Callable, calls: list, change: Callable
) -> Callable:
    """``fn``, which notes each call, and whose results are changed."""
    if isinstance(fn, nn.Module):
        module = copy.deepcopy(fn)
        module.register_forward_hook(
            lambda _, args, result: calls.append(None) or change(result)
        )
        return module
    named = with_names(component, fn)

    def function(*args: Any, **names: Any) -> Any:
        calls.append(None)
        return change(named(*args, **names))

    function.__name__ = component.name
    return function
