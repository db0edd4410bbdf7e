"""Contracts: what every correct implementation of a component does.

    from companion.contracts import check

    report = check("attention", attention)

A report says which contracts hold, and names the likely mistake where one does
not. Whatever the function does, ``check`` reports it and comes back.
"""

import difflib

from companion.contracts.alignment import ALIGNMENT
from companion.contracts.attention import ATTENTION
from companion.contracts.guard import Guarded
from companion.contracts.masked_softmax import MASKED_SOFTMAX
from companion.contracts.report import Failure, Report, report_on
from companion.contracts.rnn import RNN
from companion.contracts.runner import outcomes, undisturbed
from companion.contracts.softmax import SOFTMAX

COMPONENTS = {
    c.name: c for c in (SOFTMAX, MASKED_SOFTMAX, ATTENTION, RNN, ALIGNMENT)
}
"""Name -> what can be checked."""

__all__ = ["COMPONENTS", "Failure", "Report", "check"]


def check(component: str, fn: object) -> Report:
    """Tries every contract of ``component`` on the function ``fn``.

    Torch's and Python's random numbers, grad mode and default number type are
    afterwards what they were. A function that does not come back is stopped,
    unless it sits in C code that lets no other thread run.

    Raises:
        TypeError: ``component`` is not a string.
        ValueError: no component has this name.
    """
    if not isinstance(component, str):
        raise TypeError(
            "component: expected a name such as 'attention', got a "
            f"{type(component).__name__}; the function comes second"
        )
    if component not in COMPONENTS:
        near = difflib.get_close_matches(component, COMPONENTS, 1)
        ask = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"component: expected one of {', '.join(sorted(COMPONENTS))}, "
            f"got {component!r}.{ask}"
        )
    found = COMPONENTS[component]
    guarded = Guarded(found, fn)
    with undisturbed(guarded):
        return report_on(found, outcomes(guarded))
