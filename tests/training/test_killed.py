"""A run that is killed, again and again, ends as one that never was."""

import multiprocessing
import os
import random
import signal
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest
from training.killed_run import STEPS, run

from companion.training import read_log
from companion.training.checkpoint import every

pytestmark = pytest.mark.once

KILLS = 12  # Of each of two kinds.


@pytest.fixture(scope="module")
def start():
    """Starts ``run`` in a process of its own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["training.killed_run"])
    with pytest.MonkeyPatch.context() as patch:
        # Without a path to it the server preloads nothing, in silence.
        tests = str(Path(__file__).parents[1])
        patch.setenv("PYTHONPATH", tests, prepend=os.pathsep)
        forkserver.ensure_running()

    def begin(*args):
        process = context.Process(target=run, args=args)
        process.start()
        return process

    return begin


def newest(folder):
    found = every(folder / "checkpoints")
    return int(found[-1].stem.split("-")[1]) if found else 0


def kill_at_some_time(start, folder, rng):
    """From outside, some steps later, wherever it is by then."""
    target = newest(folder) + rng.randrange(5)
    process = start(str(folder))
    while newest(folder) < target and process.is_alive():
        time.sleep(0.001)
    time.sleep(rng.random() * 0.03)
    process.kill()
    return process


def kill_at_some_call(start, folder, rng):
    """From inside, between two calls to the disk, most of them in a save."""
    return start(str(folder), rng.randrange(1, 60))


def rows(folder):
    """What the log says, without the speed, which no two runs share."""
    log = read_log(folder)
    return [{**row, "speed": None} for row in log]


def contents(folder):
    """All files but the log: the checkpoints, bit by bit."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "log.csv"
    }


def test_killed_at_24_moments_it_ends_bit_identical(start, tmp_path):
    rng = random.Random(0)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    begun = start(str(whole))
    begun.join()
    assert begun.exitcode == 0
    reached = []
    for _ in range(KILLS):
        for kill in (kill_at_some_time, kill_at_some_call):
            process = kill(start, killed, rng)
            process.join()
            assert process.exitcode == -signal.SIGKILL
            reached.append(newest(killed))
    # They died on the way, at different steps, and never lost one.
    assert reached == sorted(reached)
    assert len(set(reached)) > KILLS
    assert reached[-1] < STEPS
    last = start(str(killed))
    last.join()
    assert last.exitcode == 0
    assert rows(killed) == rows(whole)
    assert contents(killed) == contents(whole)
