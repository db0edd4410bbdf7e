"""Two processes learn what one learns: real ones, started by torchrun."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from training.shared_run import CONFIG, gradients

from companion.training import load_trained, read_log, train
from companion.training.checkpoint import every

pytestmark = pytest.mark.once

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What ``shared_run.py`` leaves, run by two processes."""
    folder = tmp_path_factory.mktemp("shared")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", str(TESTS / "shared_run.py")]
    done = subprocess.run(
        [*command, str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_gradients_of_two_processes_are_those_of_one(folder):
    alone, told = gradients(lambda objective: objective)
    assert len({grad.shape for grad in alone.values()}) > 3
    for process in (0, 1):
        shared = load_file(folder / f"gradients-{process}.safetensors")
        loss, tokens = shared.pop("loss").tolist()
        assert loss == pytest.approx(told.loss, rel=1e-6)
        assert tokens == told.tokens
        assert shared.keys() == alone.keys()
        for name, grad in alone.items():
            torch.testing.assert_close(shared[name], grad, rtol=1e-4, atol=1e-7)


def test_a_run_of_two_processes_goes_as_one_of_one(folder, tmp_path):
    train(CONFIG, tmp_path, progress=False)
    pairs = zip(read_log(folder / "plain"), read_log(tmp_path), strict=True)
    for ours, alone in pairs:
        assert ours.keys() == alone.keys()
        for name in ours.keys() - {"speed"}:
            # Where nothing was measured there is None, in both.
            got, wanted = ours[name] or 0, alone[name] or 0
            assert got == pytest.approx(wanted, rel=1e-4), name
    assert ours["validation"] is not None


def test_only_one_process_writes(folder):
    steps = [path.name for path in every(folder / "plain" / "checkpoints")]
    assert steps == [f"step-0000000{step}.safetensors" for step in (2, 4, 6)]
    assert len(read_log(folder / "plain")) == CONFIG.steps
    assert load_trained(folder / "plain").config == CONFIG


def test_two_processes_go_on_as_if_never_stopped(folder):
    """Each with its own random numbers: what it drops is not the other's."""
    last = Path("checkpoints") / "step-00000006.safetensors"
    cut, whole = (folder / run / last for run in ("cut", "whole"))
    assert cut.read_bytes() == whole.read_bytes()


@pytest.mark.bad_input
def test_a_run_of_two_processes_is_not_gone_on_with_by_one(folder):
    with pytest.raises(ValueError, match=r"expected processes = 1.*got 2"):
        train(CONFIG, folder / "plain", progress=False)
