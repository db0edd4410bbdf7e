"""One pytest test for each contract, in somebody's own test file."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from companion.contracts.engine.component import Component
from companion.contracts.engine.forms.adopt import NO_MASK
from companion.contracts.engine.levels import FAULT
from companion.contracts.engine.report import Failure, Report
from companion.contracts.engine.runner import NOT_TRIED
from companion.contracts.engine.universal import contracts_of

__all__ = ["ContractBroken", "parametrized"]


class ContractBroken(AssertionError):
    """A contract does not hold: the text is what the report says of it."""

    shown_bare = True
    """``companion.pytest_plugin`` shows the text alone, without a traceback."""


def parametrized(
    component: str,
    options: Mapping[str, Any],
    check: Callable[..., Report],
    components: Mapping[str, Component],
) -> Callable:
    """Make the decorator that ``each_contract`` returns."""
    import pytest

    if component not in components:
        raise ValueError(
            f"component: expected one of {', '.join(sorted(components))}, got "
            f"{component!r}"
        )
    names = list(contracts_of(components[component]))

    def decorate(make: Callable) -> Callable:
        @functools.wraps(make)
        def test(*args: Any, contract: str, **named: Any) -> None:
            __tracebackhide__ = True
            report = check(component, make(*args, **named), **options)
            judge(report, contract)

        signature = with_contract(make)
        test.__signature__ = signature  # pyrefly: ignore
        return pytest.mark.parametrize("contract", names)(test)

    return decorate


def with_contract(make: Callable) -> Any:
    """Return the signature of ``make``, and one argument more."""
    import inspect

    signature = inspect.signature(make)
    own = inspect.Parameter("contract", inspect.Parameter.KEYWORD_ONLY)
    return signature.replace(parameters=[*signature.parameters.values(), own])


def judge(report: Report, contract: str) -> None:
    """Pass, skip, or raise what a report says of one contract.

    Raises:
        ContractBroken: It does not hold.
    """
    import pytest

    __tracebackhide__ = True
    for group in report.grouped():
        for failure in group:
            if failure.contract == contract:
                tell(report, failure, group)
                return
    if contract in report.untried:
        pytest.skip(report.say("waits until the first contract holds"))
    if contract not in report.held:
        start = NOT_TRIED + contract
        for said in report.assumed:
            if said.startswith(start):
                pytest.skip(report.say(said))
        masks = any(NO_MASK in said for said in report.assumed)
        why = "needs a mask" if masks else "is tried on modules only"
        pytest.skip(report.say(why))


def tell(report: Report, failure: Failure, group: list[Failure]) -> None:
    """Fail for a fault; what is none is an expected failure."""
    import pytest

    __tracebackhide__ = True
    say = report.say
    message = say(failure.message)
    if failure.level != FAULT:
        excuse = say(failure.excuse)
        pytest.xfail(f"{say(failure.level)}: {message} {excuse}")
    text = f"✗ {say(failure.contract)}\n    {message}"
    if failure is not group[0]:
        cause = say(f"The cause is that of: {group[0].contract}")
        text += f"\n    {cause}"
    for said in report.assumed:
        text += f"\n    {say(f'({said})')}"
    raise ContractBroken(text)
