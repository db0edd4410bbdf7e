"""The command line as a process: stopped by hand, and by torchrun in two."""

import os
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from companion.training import read_log
from companion.training.run_folder import lock

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
SMALL = "--d-model 8 --d-ff 11 --num-heads 2 --warmup 3 --batch-tokens 256"
PATIENCE = 120
RUNNING = []


@pytest.fixture
def environment(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    yield {**os.environ, "OMP_NUM_THREADS": "1"}
    # A test that failed must not leave a run behind that trains for hours.
    while RUNNING:
        process = RUNNING.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


def started(environment, folder, *more, by=("-m", "companion")):
    RUNNING.append(_process(environment, folder, *more, by=by))
    return RUNNING[-1]


def _process(environment, folder, *more, by):
    return subprocess.Popen(
        [sys.executable, *by, "train", "--folder", folder, *SMALL.split()]
        + [str(argument) for argument in more],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # What a shell runs in the background is born deaf to it.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def test_control_c_says_where_it_stopped_and_how_to_go_on(
    tmp_path, environment
):
    options = ("--steps", 100_000, "--save-every", 2)
    process = started(environment, tmp_path, *options)
    deadline = time.monotonic() + PATIENCE
    while not list(tmp_path.glob("checkpoints/step-*.safetensors")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err == ""
    assert "Stopped: step-0" in out
    assert "The same command goes on." in out


def test_a_second_run_is_refused_until_the_first_is_killed(
    tmp_path, environment
):
    options = ("--steps", 100_000, "--save-every", 2)
    first = started(environment, tmp_path, *options)
    deadline = time.monotonic() + PATIENCE
    while not list(tmp_path.glob("checkpoints/step-*.safetensors")):
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second = started(environment, tmp_path, *options)
    _, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 2
    assert err.count("\n") == 1
    assert "another process is training here" in err
    assert first.poll() is None
    first.kill()
    first.communicate(timeout=PATIENCE)
    # Killed, it stands in nobody's way.
    with lock(tmp_path):
        pass
    steps = [row["step"] for row in read_log(tmp_path)]
    assert steps == [*range(1, len(steps) + 1)]


def test_what_it_says_to_type_next_can_be_typed_there(tmp_path, environment):
    """The interpreter as it was started, and a folder with spaces and marks."""
    (tmp_path / "a place").symlink_to(sys.prefix)
    options = [*SMALL.split(), "--steps", "5", "--folder", "课 程/it's a run"]
    typed = f"'a place/bin/python' -m companion train {shlex.join(options)}"
    here = {
        "shell": True,
        "cwd": tmp_path,
        "env": environment | {"PYTHONPATH": str(ROOT)},
        "check": True,
    }
    told = subprocess.run(typed, capture_output=True, text=True, **here)
    line = told.stdout.splitlines()[-1].removeprefix("Next: ")
    assert line.startswith("'a place/bin/python' -m companion translate ")
    subprocess.run(line, **here)


def test_of_two_processes_one_speaks(tmp_path, environment):
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node=2")
    process = started(
        environment,
        tmp_path,
        "--steps",
        5,
        by=(*torchrun, "-m", "companion"),
    )
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert [line.split()[0] for line in out.splitlines()] == [
        "phrasebook,",
        "Done:",
        "Next:",
    ]
    assert [row["step"] for row in read_log(tmp_path)] == [1, 2, 3, 4, 5]
    assert (tmp_path / "curve.svg").exists()
