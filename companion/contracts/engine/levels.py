"""How much it matters that a contract does not hold.

fault   what it computes is wrong for inputs that it will meet
risk    it is wrong where a rare input comes, and nowhere else
note    it is right, by another convention than the contract's

A contract is about faults unless it says otherwise, and why:

    @COMPONENT.contract
    @risk("No published model has an odd width.")
    def odd_width(fn): ...

What is found may be another level than the contract's: ``Broken`` has a level
of its own then.
"""

from collections.abc import Callable, Iterable

from companion.contracts.engine.compare import Broken

__all__ = [
    "FAULT",
    "LEVELS",
    "NOTE",
    "RISK",
    "SIGNS",
    "level_of",
    "note",
    "risk",
    "same_cause_same_level",
]

FAULT, RISK, NOTE = LEVELS = ("fault", "risk", "note")
"""From what matters most to what matters least."""

SIGNS = {FAULT: "✗", RISK: "!", NOTE: "·"}


def risk(why: str) -> Callable[[Callable], Callable]:
    """Declare that a contract breaks only where a rare input comes.

    Args:
        why: When that would be, in one sentence that the report shows.
    """
    return declared(RISK, why)


def note(why: str) -> Callable[[Callable], Callable]:
    """Declare that a contract is one convention among others.

    Args:
        why: Why the others are right too, in a sentence for the report.
    """
    return declared(NOTE, why)


def declared(level: str, why: str) -> Callable[[Callable], Callable]:
    """Give a contract a level, which ``level_of`` finds."""

    def declare(contract: Callable) -> Callable:
        vars(contract).update(level=level, why=why)
        return contract

    return declare


def level_of(contract: Callable) -> tuple[str, str]:
    """Return the level that a contract declares, and why."""
    return getattr(contract, "level", FAULT), getattr(contract, "why", "")


def same_cause_same_level(found: Iterable[Broken]) -> None:
    """Give all that has one cause the level of what matters most in it.

    A mask that is upside down also breaks what is usually a mere risk.
    """
    worst: dict[str, Broken] = {}
    found = list(found)
    for broken in found:
        other = worst.setdefault(broken.cause, broken)
        if LEVELS.index(broken.level) < LEVELS.index(other.level):
            worst[broken.cause] = broken
    for broken in found:
        other = worst[broken.cause]
        if broken.level != other.level:
            broken.level, broken.why = other.level, other.why
