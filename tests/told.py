"""What ``check`` says of a function that nothing can be done with."""

from companion.contracts import check


def told(component, fn):
    """The one message about a function that does not pass the gate."""
    report = check(component, fn)
    assert not report.passed
    assert len(report.failures) == 1
    assert report.untried, str(report)
    return report.failures[0].message
