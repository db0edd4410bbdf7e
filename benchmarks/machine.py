"""The clock, and what machine a number is from.

Not torch.utils.benchmark: its Timer runs one statement many times and then the
next, by the time on the wall. Here statements take turns, and on a CPU the time
is its own, so that whatever else runs slows all of them down alike.
"""

import platform
import subprocess
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch

PACKAGES = ("torch", "transformers", "x-transformers")


class Times(NamedTuple):
    """Seconds, one for each round."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return median(self.rounds)

    def over(self, other: "Times") -> float:
        """How often ``other`` fits in, by the middle of all pairs of a round.

        What slows the machine down for a round then slows down both.
        """
        pairs = zip(self.rounds, other.rounds, strict=True)
        return median(mine / theirs for mine, theirs in pairs)


def clock(device: str) -> float:
    """Seconds: of CPU time on a CPU, of wall time once a GPU is done.

    CPU time, because what else runs on the machine disturbs it least.
    """
    if device == "cpu":
        return time.process_time()
    torch.accelerator.synchronize()
    return time.perf_counter()


def interleaved(
    runs: dict[str, Callable[[int], object]], *, rounds: int, device: str
) -> dict[str, Times]:
    """How long each takes, in turns: A B C, A B C, and so on.

    Whatever slows the machine down for a while then slows all of them. The
    first round is not counted. A run is told the number of its round.
    """
    taken = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            start = clock(device)
            run(number)
            taken[name].append(clock(device) - start)
    return {name: Times(tuple(some[1:])) for name, some in taken.items()}


def once(run: Callable[[int], object], *, device: str) -> Times:
    """How long it takes, for what takes too long to be repeated."""
    start = clock(device)
    run(0)
    return Times((clock(device) - start,))


def product(
    device: str, dtype: torch.dtype, side: int
) -> Callable[[int], object]:
    """A matrix product of ``2 * side**3`` operations, to be timed."""
    a = torch.randn(side, side, device=device, dtype=dtype)
    return lambda _: a @ a


def chip(device: str) -> str:
    """The name of what computes; a CPU's with its generation."""
    if device != "cpu":
        # Not every kind of device tells its name.
        named = getattr(
            torch.get_device_module(device), "get_device_name", None
        )
        return named() if named else device
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = info.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(":") for line in lines)
    told = {name.strip(): value.strip() for name, _, value in pairs}
    name = told.get("model name", platform.machine())
    kinds = (k for k in ("cpu family", "model") if k in told)
    return ", ".join([name, *(f"{k} {told[k]}" for k in kinds)])


def facts(device: str) -> dict[str, str]:
    """What a number means nothing without."""
    return {
        "date": date.today().isoformat(),
        "machine": chip(device),
        "device": device,
        "threads": str(torch.get_num_threads()),
        "clock": "CPU time" if device == "cpu" else "wall time",
        "commit": _commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"
