"""What ``check`` found, as text and as a page."""

import textwrap
from dataclasses import dataclass

from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.page import html
from companion.contracts.engine.runner import contracts_for
from companion.sanitize import sanitize

__all__ = ["Failure", "Report", "failure", "report_on"]


@dataclass(frozen=True, eq=False)
class Failure:
    """A contract that does not hold.

    Attributes:
        contract: Its name, a sentence.
        message: The likely mistake, and the place.
        got: The learner's tensor, if there is one to show.
        expected: What it should have been, if that is known.
        axes: Words for the last axes of both.
        cause: Failures with one cause are told together.
        at: The index that the message names, if that is not where both
            differ most.
    """

    contract: str
    message: str
    got: Tensor | None = None
    expected: Tensor | None = None
    axes: tuple[str, ...] = ()
    cause: str = ""
    at: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """Which contracts hold, which fail, and why.

    Attributes:
        component: What was checked.
        held: The names of the contracts that hold.
        failures: Those that do not, in the order in which they were tried.
        untried: The names of those that wait until the first one holds.
    """

    component: str
    held: list[str]
    failures: list[Failure]
    untried: list[str]

    @property
    def passed(self) -> bool:
        """Whether every contract holds."""
        return not self.failures and not self.untried

    @property
    def headline(self) -> str:
        """The result in one line."""
        tried = len(self.held) + len(self.failures)
        if self.passed:
            return f"{self.component}: all {tried} contracts hold"
        if self.untried:
            return (
                f"{self.component}: {len(self.failures)} fails, and "
                f"{len(self.untried)} contracts wait until it holds"
            )
        return (
            f"{self.component}: {len(self.failures)} of {tried} contracts fail"
        )

    def grouped(self) -> list[list[Failure]]:
        """Group the failures by cause, which is reported once."""
        groups: dict[str, list[Failure]] = {}
        for failure in self.failures:
            groups.setdefault(failure.cause, []).append(failure)
        return list(groups.values())

    def __str__(self) -> str:
        lines = [self.headline, ""]
        for failures in self.grouped():
            lines += [f"✗ {failure.contract}" for failure in failures]
            message = textwrap.wrap(
                failures[0].message, 76, break_on_hyphens=False
            )
            lines += [f"    {line}" for line in message]
        lines += [f"✓ {name}" for name in self.held]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": html(self), "text/plain": str(self)}


def report_on(fn: Guarded, found: list[tuple[str, Broken | None]]) -> Report:
    """Make the report on what each contract found in ``fn``."""
    component, names = fn.component, list(contracts_for(fn))
    return Report(
        component.name,
        [name for name, broken in found if broken is None],
        [failure(component, *pair) for pair in found if pair[1] is not None],
        names[len(found) :],
    )


def failure(component: Component, contract: str, broken: Broken) -> Failure:
    """Copy ``broken`` in plain text, without the call stack it came from."""
    got, expected = (
        None if x is None else x.detach().clone()
        for x in (broken.got, broken.expected)
    )
    axes = broken.axes or component.axes
    return Failure(
        contract,
        sanitize(broken.message),
        got,
        expected,
        axes,
        broken.cause,
        broken.at,
    )
