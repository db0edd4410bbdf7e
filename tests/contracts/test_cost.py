"""What a check costs, in operations of PyTorch: no clock runs here."""

import pytest
from contracts.right import RIGHT
from contracts.right.standins import STANDINS
from torch.utils._python_dispatch import TorchDispatchMode

from companion.contracts import check
from companion.contracts.engine import runner

MOST = 30_000
"""Operations of one check. With tensors as small as the contracts send, one
takes 10 to 15 microseconds with what Python does around it, so that this is
the half second that a check may take. The dearest of all needs 27 300."""

MANY = 200_000
"""Where single numbers are drawn by the thousand, one takes 2 microseconds."""

DRAWN = ("mask_tokens", "speculative_step")


def every(component):
    """What is right, and with which words ``check`` is told of its masks."""
    for fn in RIGHT[component]:
        yield fn, {}
    for one in STANDINS.values():
        if one.component == component:
            yield one.make(), {"mask": one.mask} if one.mask else {}


class Operations(TorchDispatchMode):
    """Counts what PyTorch computes."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def operations(monkeypatch):
    """Listen in the thread in which the contracts run."""
    counter, plain = Operations(), runner.in_time

    def counted(fn, task):
        def heard():
            with counter:
                task()

        return plain(fn, heard)

    monkeypatch.setattr(runner, "in_time", counted)
    # A busy machine is no loop that never ends.
    monkeypatch.setattr(runner, "SECONDS", 60.0)
    return counter


@pytest.mark.once
@pytest.mark.parametrize("component", RIGHT)
def test_no_check_of_what_is_right_needs_more_operations_than_it_may(
    component, operations
):
    most = MANY if component in DRAWN else MOST
    for fn, words in every(component):
        operations.count = 0
        report = check(component, fn, **words)
        assert report.passed, str(report)
        assert operations.count <= most, str(fn)
