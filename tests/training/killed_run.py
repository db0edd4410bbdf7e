"""A small training run to be killed, in a process that starts in no time.

What every run needs is imported here, once, by the server that the processes
are forked from: the optimizer alone would import for a second.
"""

import os
import signal
from pathlib import Path

import torch
import torch._dynamo

from companion.training import TrainConfig, train

# The random numbers matter (dropout), so does the place in the data (several
# epochs), and each step ends with a checkpoint, so that most kills meet one.
STEPS = 150
CONFIG = TrainConfig(
    data="copy",
    max_len=13,
    batch_tokens=400,
    d_model=6,
    num_heads=2,
    d_ff=5,
    dropout=0.3,
    steps=STEPS,
    accumulate=2,
    warmup=7,
    seed=3,
    save_every=1,
    validate_every=100,
    keep=2,
)


def run(folder: str, fatal: int | None = None) -> None:
    """Trains in ``folder``; at the ``fatal``-th call to the disk, dies."""
    torch.set_num_threads(1)
    if fatal is not None:
        _arm(fatal)
    train(CONFIG, folder, progress=False)


def _arm(fatal: int) -> None:
    calls = 0

    def deadly(function):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    # Between two of these lies each state that a save can be in.
    for place, names in (
        (os, ("fsync", "unlink", "replace")),
        (Path, ("mkdir", "open")),
    ):
        for name in names:
            setattr(place, name, deadly(getattr(place, name)))
