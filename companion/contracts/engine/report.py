"""What ``check`` found, as text and as a page."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import FAULT, LEVELS, NOTE, RISK, SIGNS
from companion.contracts.engine.page import html
from companion.contracts.engine.runner import contracts_for
from companion.sanitize import sanitize
from companion.words import ENGLISH, say, wrapped

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
        level: "fault" if what it computes is wrong for inputs it will meet,
            "risk" if only where a rare one comes, and "note" if it is another
            convention.
        why: Why it is no fault, in one sentence, if it is none.
    """

    contract: str
    message: str
    got: Tensor | None = None
    expected: Tensor | None = None
    axes: tuple[str, ...] = ()
    cause: str = ""
    at: tuple[int, ...] = ()
    level: str = FAULT
    why: str = ""

    @property
    def sign(self) -> str:
        """The level as a sign: ✗, ! or ·."""
        return SIGNS[self.level]

    @property
    def excuse(self) -> str:
        """Why it is no fault, as the report shows it; nothing if it is one."""
        return f"Only a {self.level}: {self.why}" if self.why else ""


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """Which contracts hold, which fail, and why.

    Attributes:
        component: What was checked.
        held: The names of the contracts that hold.
        failures: Those that do not, in the order in which they were tried.
        untried: The names of those that wait until the first one holds.
        assumed: How the learner's code was called, where that is not as the
            contracts call, and what else may have been meant: in sentences.
        rest: Goes on, where only the contracts up to the first fault were
            wanted, and there is one.
        lang: In which language it is shown; its attributes are English.
    """

    component: str
    held: list[str]
    failures: list[Failure]
    untried: list[str]
    assumed: tuple[str, ...] = ()
    rest: Callable[[], "Report"] | None = None
    lang: str = ENGLISH

    def whole(self) -> "Report":
        """Return the report on all contracts."""
        return replace(self.rest(), lang=self.lang) if self.rest else self

    def with_more(self, *failures: Failure) -> "Report":
        """Return the report with more that does not hold, behind the rest."""
        return replace(self, failures=[*self.failures, *failures])

    def milder(self, which: Callable[[Failure], bool], why: str) -> "Report":
        """Return the report with risks in place of some of its failures."""
        kept = [
            replace(f, level=RISK, why=why) if which(f) else f
            for f in self.failures
        ]
        return replace(self, failures=kept)

    @property
    def faults(self) -> list[Failure]:
        """What is wrong for inputs that it will meet."""
        return [f for f in self.failures if f.level == FAULT]

    @property
    def risks(self) -> list[Failure]:
        """What is wrong only where a rare input comes."""
        return [f for f in self.failures if f.level == RISK]

    @property
    def notes(self) -> list[Failure]:
        """What is another convention than the contract's."""
        return [f for f in self.failures if f.level == NOTE]

    @property
    def passed(self) -> bool:
        """Whether there is no fault, and every contract was tried."""
        return not self.faults and not self.untried

    @property
    def sign(self) -> str:
        """✓ if every contract holds, or the sign of the worst that does not."""
        worst = min(self.failures, key=severity, default=None)
        return worst.sign if worst else "✗" if self.untried else "✓"

    @property
    def headline(self) -> str:
        """The result in one line."""
        tried = len(self.held) + len(self.failures)
        if not self.failures and not self.untried:
            return f"{self.component}: all {tried} contracts hold"
        if self.untried:
            return (
                f"{self.component}: {len(self.failures)} fails, and "
                f"{len(self.untried)} contracts wait until it holds"
            )
        fail = f"{len(self.faults)} of {tried} contracts fail"
        parts = (
            fail if self.faults else f"no fault in {tried} contracts",
            counted(self.risks),
            counted(self.notes),
        )
        return f"{self.component}: {', '.join(filter(None, parts))}"

    def grouped(self) -> list[list[Failure]]:
        """Group the failures by cause, which is reported once: faults first."""
        groups: dict[str, list[Failure]] = {}
        for failure in sorted(self.failures, key=severity):
            groups.setdefault(failure.cause, []).append(failure)
        return list(groups.values())

    def __str__(self) -> str:
        lines = [self.say(self.headline)]
        for said in self.assumed:
            told = self.say(f"({said})")
            lines += wrapped(told, self.lang, 78, more=" ")
        lines.append("")
        for failures in self.grouped():
            lines += [f"{f.sign} {self.say(f.contract)}" for f in failures]
            for text in (failures[0].message, failures[0].excuse):
                message = wrapped(self.say(text), self.lang, 76)
                lines += [f"    {line}" for line in message]
        lines += [f"✓ {self.say(name)}" for name in self.held]
        return "\n".join(lines)

    def say(self, text: str) -> str:
        """Say one of its texts in its language."""
        return say(text, self.lang)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": html(self), "text/plain": str(self)}


def severity(failure: Failure) -> int:
    """Count how many levels matter more."""
    return LEVELS.index(failure.level)


def counted(failures: list[Failure]) -> str:
    """Write how many there are of one level; nothing for none."""
    if not failures:
        return ""
    many = "s" if len(failures) > 1 else ""
    return f"{len(failures)} {failures[0].level}{many}"


def report_on(
    fn: Guarded,
    found: list[tuple[str, Broken | None]],
    assumed: tuple[str, ...] = (),
    *,
    strict: bool = False,
) -> Report:
    """Make the report on what each contract found in ``fn``.

    With ``strict`` whatever does not hold is a fault.
    """
    component, names = fn.component, list(contracts_for(fn))
    for _, broken in found:
        if strict and broken:
            broken.level, broken.why = FAULT, ""
    return Report(
        component.name,
        [name for name, broken in found if broken is None],
        [failure(component, *pair) for pair in found if pair[1] is not None],
        names[len(found) :],
        tuple(map(sanitize, assumed)),
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
        broken.level or FAULT,
        broken.why,
    )
