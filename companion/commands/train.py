"""``python -m companion train``: from options to a trained folder."""

import dataclasses
import os
from argparse import (
    SUPPRESS,
    ArgumentParser,
    BooleanOptionalAction,
    Namespace,
)
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import torch

from companion.commands import STOPPED, rank
from companion.commands.curve import Row, draw
from companion.shell import typed
from companion.training import TrainConfig, read_log, train
from companion.training.checkpoint import every
from companion.training.config import help_of
from companion.training.log import LOG

__all__ = ["RUNS", "add_options", "chosen", "example_of", "run"]

RUNS = Path("runs")
"""Where a run lies if no folder is named."""


def add_options(parser: ArgumentParser) -> None:
    """Add a flag for each field of ``TrainConfig``, and where the run goes."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--preset", default="tiny", help="tiny (default), small or base"
    )
    source.add_argument(
        "--config", metavar="TOML", help="a file of the fields below"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help=f"where the run lies (default: {RUNS}/DATA); what is there "
        "already is gone on with",
    )
    fields = parser.add_argument_group(
        "fields", "Each wins over the preset or the file."
    )
    for field in dataclasses.fields(TrainConfig):
        flag = "--" + field.name.replace("_", "-")
        # A % is a format to argparse.
        text = help_of(field).replace("%", "%%")
        kind: dict[str, Any] = {"type": _reader(field.type), "metavar": "X"}
        if field.type is bool:
            kind = {"action": BooleanOptionalAction}
        fields.add_argument(flag, default=SUPPRESS, help=text, **kind)


def run(options: Namespace) -> int:
    """Train as ``options`` say, draw the curve, and print where things are.

    Raises:
        OSError, ValueError, TypeError, FloatingPointError: As ``train``.
    """
    config = chosen(options)
    _choose_threads(config)
    folder = options.folder or RUNS / config.data
    _print(_begins(config, options, folder))
    try:
        train(config, folder)
    except KeyboardInterrupt:
        _print(_stopped(folder))
        return STOPPED
    if not rank():
        _finish(config, folder)
    return 0


def chosen(options: Namespace) -> TrainConfig:
    """Make the configuration that the options name: flags win over the file.

    Raises:
        OSError, TypeError, ValueError: As ``TrainConfig.from_toml``.
    """
    names = {field.name for field in dataclasses.fields(TrainConfig)}
    flags = {k: v for k, v in vars(options).items() if k in names}
    if options.config:
        return TrainConfig.from_toml(options.config, **flags)
    return TrainConfig.preset(options.preset, **flags)


def _begins(config: TrainConfig, options: Namespace, folder: Path) -> str:
    """Say what begins; a warm-up that nobody asked for like this, too."""
    asked = {"steps", "warmup"} & vars(options).keys()
    warmup = f", warm-up {config.warmup}" if asked == {"steps"} else ""
    return f"{config.data}, {config.steps} steps{warmup}, in {folder}"


def _choose_threads(config: TrainConfig) -> None:
    """Take one thread for a small model, unless the user has chosen."""
    # At d_model 64 two threads wait for each other longer than they compute.
    if config.d_model <= 128 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)


def _reader(kind: Any) -> Callable:
    """Make what reads a flag; ``none`` is None where a field may be that."""
    kinds = get_args(kind) or (kind,)

    def read(text: str):
        if type(None) in kinds and text.lower() == "none":
            return None
        return kinds[0](text)

    # argparse names it in its errors.
    read.__name__ = kinds[0].__name__
    return read


def _finish(config: TrainConfig, folder: Path) -> None:
    log = read_log(folder)
    if log:
        picture = draw(log, folder / "curve.svg")
        _print(f"Done: {_reached(log)}. The curve: {picture}")
    else:
        _print(
            f"Done: step {config.steps}. No curve: {folder / LOG} has lost "
            "its rows."
        )
    if config.data != "shakespeare":
        example = ("translate", example_of(config), "--folder", str(folder))
        _print(f"Next: {typed(*example)}")


def _reached(log: Sequence[Row]) -> str:
    checked = [row for row in log if row["validation"] is not None]
    last = [f"step {log[-1]['step']:.0f}", f"loss {log[-1]['loss']:.3f}"]
    last += [f"validation {row['validation']:.3f}" for row in checked[-1:]]
    return ", ".join(last)


def example_of(config: TrainConfig) -> str:
    """Choose a sentence that a model of this configuration can read."""
    sides = config.sides()
    if sides is None:
        return "abc"
    read = sides[0]
    if config.data == "multi30k":  # Its text is in lower case, and in tokens.
        return {
            "en": "a small cat is sleeping .",
            "de": "eine kleine katze schläft .",
        }[read]
    return {"zh": "我爱小猫", "en": "I love little cats"}[read]


def _stopped(folder: Path) -> str:
    found = every(folder / "checkpoints")
    if not found:
        return (
            f"\nStopped: no checkpoint yet in {folder}. The same command "
            "begins anew."
        )
    return f"\nStopped: {found[-1].stem} in {folder}. The same command goes on."


def _print(line: str) -> None:
    if not rank():
        print(line, flush=True)
