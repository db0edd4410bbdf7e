"""``python -m benchmarks``: the race against three other libraries."""

import argparse
import sys
import time
from pathlib import Path

import torch

from benchmarks import (
    checking,
    imports,
    learning,
    memory,
    race_decoding,
    race_training,
    report,
)
from benchmarks.machine import facts

SECTIONS = {
    "imports": imports.race,
    "check": checking.race,
    "memory": memory.race,
    "training": race_training.race,
    "compiled": race_training.race_compiled,
    "limit": race_training.limit,
    "decoding": race_decoding.race,
    "learning": learning.race,
}
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> None:
    """Runs the sections that are asked for, and writes what they found."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(
            f"device: expected cpu, for PyTorch finds no CUDA here, got "
            f"{asked.device}"
        )
    # One thread: what several threads take depends on who else is running.
    torch.set_num_threads(1)
    found = {}
    for name in asked.sections or SECTIONS:
        start = time.perf_counter()
        found[name] = SECTIONS[name](small=asked.small, device=asked.device)
        spent = time.perf_counter() - start
        print(f"{name}: {spent:.0f} s", flush=True)
        print("\n".join(report.table(found[name])), flush=True)
    told = facts(asked.device)
    if asked.device == "cpu" and "training" in found:
        errors = race_training.rerouting_error()
        told |= {
            f"error of a {k} product": f"{v:.1g}" for k, v in errors.items()
        }
    for path in report.write(told, found, asked.out):
        print(f"Wrote {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=sys.modules[__name__].__doc__
    )
    parser.add_argument(
        "sections",
        nargs="*",
        metavar="section",
        choices=[*SECTIONS, []],
        help=", ".join(SECTIONS),
    )
    parser.add_argument("--device", default="cpu", help="cpu, cuda")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument(
        "--small", action="store_true", help="toy sizes, in seconds: for tests"
    )
    return parser


if __name__ == "__main__":
    main()
