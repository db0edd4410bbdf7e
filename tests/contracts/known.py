"""Every wrong implementation that the tests know, and what check says of it.

``known_mistakes.json`` holds the first failing contract and its message for
each: it is the one place where the texts are asserted. Record it again with

    PYTHONPATH=tests python -m contracts.known

and read each line of the difference: a message may change for a better one.
"""

import functools
import json
from pathlib import Path
from typing import Any

import torch
from contracts.odd import WRONG

import companion.zoo  # noqa: F401  # Some mistakes are registered there.
from companion.contracts import COMPONENTS, check
from companion.contracts.engine.report import Report

RECORD = Path(__file__).with_name("known_mistakes.json")

SHIPPED = {
    f"{m.component}/{m.id}": m
    for component in COMPONENTS.values()
    for m in component.mistakes
}
"""What the package knows."""

ODD: dict[str, Any] = {}
"""What no learner would write, or no user sees: known to the tests alone."""
for _wrong in WRONG:
    key = f"{_wrong.component}/odd/{_wrong.fn.__name__}"
    number = sum(k.partition("#")[0] == key for k in ODD)
    ODD[f"{key}#{number + 1}" if number else key] = _wrong


KEYS = sorted([*SHIPPED, *ODD])


@functools.cache
def report_on(key: str) -> Report:
    """What check says of the mistake."""
    known = SHIPPED.get(key) or ODD[key]
    torch.manual_seed(0)  # For what draws from torch's own generator.
    return check(known.component, known.fn)


def first(key: str) -> list[str]:
    """The first contract that fails, and its message."""
    failures = report_on(key).failures
    return [failures[0].contract, failures[0].message] if failures else []


def gate_message(component: str, fn: object) -> str:
    """The one message about a function that does not pass the gate."""
    report = check(component, fn)
    assert not report.passed
    assert len(report.failures) == 1
    assert report.untried, str(report)
    return report.failures[0].message


if __name__ == "__main__":
    found = {key: first(key) for key in KEYS}
    text = json.dumps(found, ensure_ascii=False, indent=1)
    RECORD.write_text(text + "\n", encoding="utf-8")
