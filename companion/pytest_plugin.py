"""The pytest plug-in: a contract that does not hold shows its report alone.

It is loaded by every pytest of an environment that has the package, so it
imports nothing, and costs nothing where no contract is tried.
"""

__all__ = ["pytest_runtest_makereport"]


def pytest_runtest_makereport(item, call):
    """Put what the report says in the place of a traceback."""
    raised = getattr(call, "excinfo", None)
    if raised is None or not getattr(raised.value, "shown_bare", False):
        return None
    from _pytest.reports import TestReport

    report = TestReport.from_item_and_call(item, call)
    report.longrepr = str(raised.value)
    return report
