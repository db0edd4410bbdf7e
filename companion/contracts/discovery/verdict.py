"""What can come of judging somebody's code, and how long that may take."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.guard import Stop
from companion.contracts.engine.report import Report
from companion.contracts.engine.runner import (
    finishes,
    stop,
    thread_for,
    too_long,
)

__all__ = [
    "ATTENDING",
    "STOPPED",
    "Check",
    "Judged",
    "NoAnswer",
    "Raises",
    "Suspect",
    "Unjudged",
    "in_time",
]

ATTENDING = ("causal_attention", "encoder", "multihead")
"""The components of vectors in which positions see each other."""

Check = Callable[..., Report]


class Unjudged(Exception):
    """There is no contract for it; the message says why."""


class Raises(Unjudged):
    """It raises in every call that one of its kind takes.

    Args:
        why: What is raised.
    """

    def __init__(self, why: str):
        super().__init__(f"{why} {OTHERWISE}")
        self.why = why


OTHERWISE = "Only a risk: it is right if yours wants to be called otherwise."


class Suspect(Unjudged):
    """It is not judged, and something about it is seen to be wrong."""


class NoAnswer(Unjudged):
    """A call takes too long, or wants to end the process."""


@dataclass(frozen=True)
class Judged:
    """What something was taken for, and what came of it.

    Attributes:
        component: The name of the component.
        report: What the contracts say.
        assumed: How it was recognised, and how it was called, in sentences.
    """

    component: str
    report: Report
    assumed: tuple[str, ...] = ()


STOPPED = re.compile("had not come back after")
"""What is said of a call that was stopped."""

SECONDS = 5.0
"""How long it may take to find out what something is."""


LATE = (
    f"it had not come back after {too_long(SECONDS)} and was stopped: is it "
    "large, or does a loop never end?"
)


def in_time(task: Callable[[], Any]) -> Any:
    """Return what ``task`` does, which calls somebody's code.

    Raises:
        NoAnswer: It takes too long, or wants to end the process.
    """
    done: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            with torch.no_grad():
                done.append((task(), None))
        except Stop:
            raise
        except BaseException as error:
            done.append((None, error))

    thread, finished, clock = thread_for(work)
    try:
        thread.start()
        finishes(finished, clock, SECONDS)
    finally:
        if not finished.is_set():
            stop(thread, finished)
    if not done:
        raise NoAnswer(LATE)
    [(found, error)] = done
    if error is None:
        return found
    if isinstance(error, Unjudged):
        raise error
    if isinstance(error, Exception):
        raise Unjudged(
            f"one call of it came back, and another raised {raised_in(error)}"
        )
    raise NoAnswer(f"a call of it raised {type(error).__name__}")
