"""What came of a learner's test, in words."""

from dataclasses import dataclass
from typing import NamedTuple

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Mistake
from companion.contracts.engine.correct import Healthy
from companion.contracts.engine.report import Report


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
    def told(self) -> str:
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


def verdicts(
    tried: Tried, sick: Mistake, others: list[Healthy]
) -> list[Broken | None]:
    """What is wrong with the test, one after another, or None."""
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
    """What is wrong with a test that does not pass for a healthy one."""
    broken = next((run.broken for run in runs if run.broken), "")
    if broken:
        return Broken(broken)
    red = [run for run in runs if run.failed]
    if not red:
        return None
    told, cause = red[0].told, red[0].failed
    if len(red) < len(runs):
        return Broken(
            f"Your test depends on luck: in {len(red)} of {len(runs)} runs it "
            f"calls a healthy one sick, {one.name}. {told} A healthy one "
            "passes whatever the numbers, but for rounding: allow a tolerance.",
            cause=cause,
        )
    if upside_down:
        return Broken(
            "Your test is the wrong way round: it passes for the sick one, and "
            f"for no healthy one. {told} What does a healthy one do there?",
            cause=cause,
        )
    why = f"Your test calls a healthy one sick: {one.name}. {told}"
    return Broken(f"{why} {one.note}".rstrip(), cause=cause)


def of_sick(sick: Mistake, tried: Tried) -> Broken | None:
    """What is wrong with a test that does not fail for the sick one."""
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
    return Broken(f"Your test lets the sick one through. {blind(sick, tried)}")


def blind(sick: Mistake, tried: Tried) -> str:
    """What a test does not see that passes for the sick one."""
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
