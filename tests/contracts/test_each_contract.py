"""One pytest test for each contract, in somebody else's test file."""

import subprocess
import sys

import pytest

from companion.contracts import each_contract
from companion.contracts.attention.softmax import SOFTMAX
from companion.contracts.engine.universal import contracts_of

pytestmark = pytest.mark.once
MINE = """
import pytest
import torch
from companion.contracts import each_contract


@each_contract("softmax")
def test_right():
    return torch.softmax


@pytest.fixture
def axis():
    return 0


@each_contract("softmax")
def test_wrong(axis):
    return lambda scores, dim: scores.softmax(axis)


def test_other():
    assert 1 + 1 == 3
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What pytest prints for somebody's file, with the plug-in."""
    path = tmp_path_factory.mktemp("theirs") / "test_mine.py"
    path.write_text(MINE)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly"]  # What is installed brings the plug-in.
    done = subprocess.run(
        [*command, path.name],
        cwd=path.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_each_contract_is_a_test_of_its_own(told):
    names = list(contracts_of(SOFTMAX))
    assert told.count("test_right[") >= len(names)
    assert "test_right[It returns a tensor of the right shape] PASSED" in told
    right = [x for x in told.splitlines() if "::test_right[" in x]
    assert all("PASSED" in x or "SKIPPED" in x for x in right)


def test_the_report_is_what_fails_without_a_traceback(told):
    wrong = told.partition("test_wrong[")[2].partition("= FAILURES =")[2]
    first = wrong.partition("_ test_wrong[")[2].partition("\n__")[0]
    assert "\n✗ " in first
    assert "companion/contracts" not in first
    assert "Error" not in first
    # Another test fails as always.
    assert "assert (1 + 1) == 3" in told


def test_a_component_that_does_not_exist_is_named():
    with pytest.raises(
        ValueError, match=r"component: expected one of .* 'sof'"
    ):
        each_contract("sof")
