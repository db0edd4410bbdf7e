"""What it costs to import, in processes of their own."""

import resource
import subprocess
import sys
from statistics import median

MODULES = (
    "torch",
    "companion",
    "companion.transformer",
    "companion.decoding",
    "companion.training",
    "transformers",
    "x_transformers",
)


def race(*, small: bool, device: str) -> list[dict]:
    """A row for each module: CPU seconds, and how many times torch's."""
    names = MODULES[:2] if small else MODULES
    taken = {name: [] for name in names}
    for _ in range(1 if small else 5):
        for name in names:
            taken[name].append(_seconds(name))
    middle = {name: median(some) for name, some in taken.items()}
    return [
        {
            "import": name,
            "seconds": seconds,
            "times torch": seconds / middle["torch"],
        }
        for name, seconds in middle.items()
    ]


def _seconds(name: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return user + after.ru_stime - before.ru_stime
