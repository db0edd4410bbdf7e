"""Examine a learner's test: it has to tell a sick one from the healthy."""

import copy
import difflib
import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from companion.contracts import COMPONENTS
from companion.contracts.engine import runner
from companion.contracts.engine.blame import raised_at, text_of
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component, Mistake
from companion.contracts.engine.correct import (
    Healthy,
    each,
    healthy,
    with_names,
)
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.report import Report, failure
from companion.words import ENGLISH, require_language

__all__ = ["RUNS", "check_test"]

RUNS = 5
"""How often a test is tried on each, with other random numbers."""

FILLS = (0, 1, None)
"""What looks only at shapes passes for results of nothing but 0, of nothing
but 1, and for numbers drawn at random."""


class Run(NamedTuple):
    """One run of a test.

    Attributes:
        failed: Where an assertion did not hold.
        said: What it said.
        broken: What else it raised, in words.
        returned: What it returned.
        called: Whether it called what it is to test.
    """

    failed: str = ""
    said: str = ""
    broken: str = ""
    returned: object = None
    called: bool = False

    @property
    def passed(self) -> bool:
        """Whether it came to its end."""
        return not self.failed and not self.broken

    @property
    def text(self) -> str:
        """Where it failed, and why, in a sentence."""
        return f"{self.failed}: {self.said}" if self.said else f"{self.failed}."


class Tried(NamedTuple):
    """All runs: on each healthy one, on the sick one, and on blank results."""

    healthy: list[list[Run]]
    sick: list[Run]
    blank: list[Run]


@dataclass(frozen=True, repr=False, eq=False)
class ExamReport(Report):
    """What a learner's test told apart, and what not."""

    @property
    def headline(self) -> str:
        """The result in one line."""
        if self.untried:
            return f"{self.component}: it cannot be judged yet"
        healthy = len(self.held) + len(self.failures) - 1
        if self.passed:
            return (
                f"{self.component}: it fails for the sick one, and passes for "
                f"all {healthy} healthy ones"
            )
        return f"{self.component}: it does not tell the sick from the healthy"


class LearnersTest(Guarded):
    """A learner's test behind the guard.

    Attributes:
        who: The name of what it is given.
        error: What it raised last.
    """

    moves_zeros = False

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
        """Tell what was raised, where, and what it probably means."""
        self.error = error
        return super().explain(error, args)

    def describe(self, args: tuple) -> str:
        """Tell what it was given."""
        return f"`fn`, {self.who}"

    def require_call(self) -> None:
        """Raise Broken if the test cannot be called with one function."""
        if not callable(self.fn):
            raise Broken(
                f"Your test is not a function but a {type(self.fn).__name__}: "
                "pass the test itself, and do not call it."
            )
        super().require_call()

    def way_out(self, signature: inspect.Signature) -> str:
        """Tell how a test is written."""
        return f"Write `def {self.signature}`."

    def others_wanted(self, said: str, likely: str) -> str:
        """Ask nothing: a test wants one function, and gets it."""
        return ""

    def run(self, fn: Callable, who: str) -> Run:
        """Run the test on ``fn``, which is called ``who``."""
        self.who = who
        try:
            return Run(returned=self.call(fn))
        except Raised as raised:
            broken = raised.message
        error = self.error
        if not isinstance(error, AssertionError):
            return Run(broken=broken)
        where = f"It fails {raised_at(error)}".rstrip()
        return Run(failed=where, said=text_of(error))


def check_test(
    component: str, animal: str, test: object, *, lang: str = ENGLISH
) -> Report:
    """Try a test on a sick implementation and on healthy ones.

    Args:
        component: What the test is for, a key of COMPONENTS.
        animal: The name of the sick one: a known mistake with a symptom.
        test: Called with one argument, the implementation. It has to fail, by
            an assertion, for the sick one, and to pass for every healthy one.
        lang: In which language the report is shown, ``"en"`` or ``"zh"``.

    Returns:
        Whether it does, and what is wrong with it. As with ``check``, whatever
        the test does is reported.

    Raises:
        TypeError: ``component`` or ``animal`` is not a string.
        ValueError: no component, or no animal of it, has this name, there is
            no healthy one to compare with, or ``lang`` is another word.

    Example:
        >>> def my_test(fn):
        ...     assert not fn(5)[0, 1]
        >>> check_test("causal_mask", "transposed triangle", my_test).passed
        True
    """
    require_language(lang)
    sick = found(component, animal)
    tester = LearnersTest(component, test)
    with runner.undisturbed(tester):
        report = examined(tester, sick, healthy(component))
    return replace(report, lang=lang)


def found(component: str, animal: str) -> Mistake:
    """Find the animal of this name."""
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
    """Write which names there are, and which one was probably meant."""
    near = difflib.get_close_matches(name, known, 1)
    ask = f" Did you mean {near[0]!r}?" if near else ""
    return f"expected one of {', '.join(sorted(known))}, got {name!r}.{ask}"


def examined(
    tester: LearnersTest, sick: Mistake, others: list[Healthy]
) -> Report:
    """Report on a test that is tried on all of them."""
    lines = [f"It passes for a healthy one: {one.name}" for one in others]
    lines.append(f"It fails for the sick one: {sick.name}")
    tried = Tried([], [], [])
    late = runner.in_time(tester, lambda: try_all(tester, sick, others, tried))
    found = verdicts(tried, sick, others)
    if late is not None:
        where = f"was stopped {late}".rstrip()
        message = (
            "Your test had not come back after "
            f"{runner.too_long(runner.SECONDS)} and {where}. It is run {RUNS} "
            "times on each: does a loop never end?"
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
    tester: LearnersTest, sick: Mistake, others: list[Healthy], tried: Tried
) -> None:
    """Append to ``tried`` at each step, so that what was found remains."""
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
    """Make what leaves only the shapes of a result; None draws its numbers."""

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
    tester: LearnersTest,
    component: Component,
    who: str,
    fn: Callable,
    change: Callable = lambda result: result,
) -> list[Run]:
    """Run the test on one of them, each time with other random numbers."""
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
    """Let ``fn`` note each call, and change its results."""
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


# What is said of it


def verdicts(
    tried: Tried, sick: Mistake, others: list[Healthy]
) -> list[Broken | None]:
    """Return what is wrong with the test on each of them, or None."""
    healthy = [run for runs in tried.healthy for run in runs]
    upside_down = bool(tried.sick) and (
        all(run.passed for run in tried.sick)
        and not any(run.passed for run in healthy)
    )
    found = [
        of_healthy(one, runs, upside_down)
        for one, runs in zip(others, tried.healthy, strict=False)
    ]
    if tried.sick:
        found.append(found[0] if upside_down else of_sick(sick, tried))
    return found


def of_healthy(
    one: Healthy, runs: list[Run], upside_down: bool
) -> Broken | None:
    """Return what is wrong with a test that fails for a healthy one."""
    broken = next((run.broken for run in runs if run.broken), "")
    if broken:
        return Broken(broken)
    red = [run for run in runs if run.failed]
    if not red:
        return None
    text, cause = red[0].text, red[0].failed
    if len(red) < len(runs):
        return Broken(
            f"Your test depends on luck: in {len(red)} of {len(runs)} runs it "
            f"calls a healthy one sick, {one.name}. {text} A healthy one "
            "passes whatever the numbers, but for rounding: allow a tolerance.",
            cause=cause,
        )
    if upside_down:
        return Broken(
            "Your test is the wrong way round: it passes for the sick one, and "
            f"for no healthy one. {text} What does a healthy one do there?",
            cause=cause,
        )
    why = f"Your test calls a healthy one sick: {one.name}. {text}"
    return Broken(f"{why} {one.note}".rstrip(), cause=cause)


def of_sick(sick: Mistake, tried: Tried) -> Broken | None:
    """Return what is wrong with a test that passes for the sick one."""
    runs = tried.sick
    broken = next((run.broken for run in runs if run.broken), "")
    if broken:
        return Broken(
            "Your test finds the sick one by accident: it asserts nothing that "
            f"does not hold. {broken}"
        )
    green = [run for run in runs if run.passed]
    if not green:
        return None
    if len(green) < len(runs):
        return Broken(
            f"Your test depends on luck: in {len(green)} of {len(runs)} runs "
            "it lets the sick one through. Choose the numbers yourself, or "
            "draw so many that one of them must show it."
        )
    return Broken(
        f"Your test lets the sick one through. {what_is_missed(sick, tried)}"
    )


def what_is_missed(sick: Mistake, tried: Tried) -> str:
    """Tell what a test does not see that passes for the sick one."""
    run = tried.sick[0]
    if not run.called:
        return (
            "It never calls `fn`, so it cannot know one from another: "
            "`fn` is what is to be tested."
        )
    if run.returned is not None:
        return (
            f"It returns a {type(run.returned).__name__}, which nobody looks "
            "at: a test fails by an `assert` that does not hold."
        )
    if all(blank.passed for blank in tried.blank):
        return (
            "It would pass for results of nothing but 0, and for results "
            "drawn at random: it looks at the shape, and not at the numbers."
        )
    return (
        f"What ails it: {sick.story} What is noticed: {sick.symptom}. For "
        "which arguments does that show?"
    )
