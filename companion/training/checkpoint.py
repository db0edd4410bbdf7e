"""Checkpoints: all that a run needs to go on as if it had never stopped.

A checkpoint is a folder ``step-00000100`` of two files of tensors, of the model
and of its optimizer, and ``state.json``: the step, the states of the random
numbers, and a checksum of each file. It is written beside its place and then
renamed, so that it is there as a whole or not at all. Nothing is pickled: to
read a checkpoint runs no code of whoever wrote it.
"""

import errno
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from companion.extras import lazy
from companion.training.disk import fingerprint, write_folder
from companion.training.randomness import random_state, restore
from companion.training.state import (
    MODEL,
    OPTIMIZER,
    STATE,
    check,
)

safetensors = lazy("safetensors.torch", "train")

Tensors = dict[str, Shaped[Tensor, "..."]]


def save(
    folder: Path | str,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    facts: dict | None = None,
    rng: list[dict] | None = None,
) -> Path:
    """Writes a checkpoint of ``step`` into ``folder``, and returns its path.

    ``facts`` is anything that JSON can hold. ``rng`` is the state of the random
    numbers of each process, by default those of this one alone.

    Raises:
        FileExistsError: there is a checkpoint of that step.
        OSError: it could not be written, for example because the disk is full;
            the checkpoints before it are whole, and nothing of it stays.
    """
    final = Path(folder) / f"step-{step:08d}"
    if final.exists():
        raise FileExistsError(errno.EEXIST, "is there already", str(final))
    files = {
        MODEL: safetensors.save(parameters_of(model)),
        OPTIMIZER: safetensors.save(_optimizer_tensors(optimizer)),
    }
    state = {
        "step": step,
        "facts": facts or {},
        "files": {name: fingerprint(data) for name, data in files.items()},
        "rng": rng or [random_state()],
    }
    files[STATE] = json.dumps(state, indent=1).encode()
    write_folder(final, files)
    return final


def load(
    path: Path | str,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    process: int = 0,
) -> dict:
    """Brings everything back as it was, and returns the saved ``facts``.

    The random numbers of Python and PyTorch go on where ``process`` was.

    Raises:
        FileNotFoundError: there is no checkpoint at ``path``.
        ValueError: it is cut short, or of a model or optimizer of another
            shape; the message names the file or the parameter.
    """
    path = Path(path)
    state = check(path)
    fill(model, read_tensors(path), str(path))
    kept: dict[int, Tensors] = {}
    for name, tensor in safetensors.load_file(path / OPTIMIZER).items():
        index, key = name.split(".")
        kept.setdefault(int(index), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": kept, "param_groups": groups})
    restore(state["rng"][process])
    return state["facts"]


def latest(folder: Path | str) -> Path | None:
    """The newest checkpoint in ``folder``, or None if there is none.

    Raises:
        ValueError: the newest is cut short. An older one is never taken in
            silence: the message names it and says how to go on from there.
    """
    found = every(folder)
    if not found:
        return None
    try:
        check(found[-1])
    except ValueError as error:
        raise ValueError(f"{error}; {_way_on(found)}") from None
    return found[-1]


def every(folder: Path | str) -> list[Path]:
    """The checkpoints in ``folder``, the oldest first.

    Another name, such as ``step-old``, is none of them.
    """
    found = Path(folder).glob("step-*")
    named = [p for p in found if re.fullmatch(r"step-\d+", p.name)]
    return sorted(named, key=lambda path: int(path.name.split("-")[1]))


def tidy(folder: Path | str, *, keep: int | None = None) -> None:
    """Removes what a killed run left half written, and all but ``keep``."""
    for path in every(folder)[: -keep if keep else 0]:
        # A folder cannot go at once. Under this name it is no checkpoint, even
        # if the process is killed with half of it removed.
        path.rename(path.with_name(f".{path.name}.old"))
    for rest in Path(folder).glob(".step-*"):
        if re.fullmatch(r"\.step-\d+\.(part|old)", rest.name):
            shutil.rmtree(rest)


def average(paths: Sequence[Path | str]) -> Tensors:
    """The mean of each parameter over some checkpoints.

    Section 6.1 of Vaswani et al. (2017) averages the last 5 of its base model.

    Raises:
        ValueError: there is no path, or the checkpoints are of different models
            or cut short.
    """
    if not paths:
        raise ValueError("paths: expected at least one checkpoint, got none")
    first = read_tensors(Path(paths[0]))
    # In 64 bits, so that the mean of equal numbers is the number itself.
    total = {name: tensor.double() for name, tensor in first.items()}
    for path in paths[1:]:
        tensors = read_tensors(Path(path))
        _require_same(first, tensors, str(path))
        for name, tensor in tensors.items():
            total[name] += tensor
    return {
        name: (total[name] / len(paths)).to(tensor.dtype)
        for name, tensor in first.items()
    }


def read_tensors(path: Path) -> Tensors:
    """The parameters in a checkpoint, on the CPU.

    Raises:
        FileNotFoundError, ValueError: as ``check``.
    """
    check(path)
    return safetensors.load_file(path / MODEL)


def parameters_of(model: nn.Module) -> Tensors:
    """Each parameter once; a table that is used twice has one name."""
    return {name: p.detach().cpu() for name, p in model.named_parameters()}


def fill(model: nn.Module, tensors: Tensors, where: str) -> None:
    """Gives the parameters of ``model`` these values.

    Raises:
        ValueError: names or shapes differ; the message names ``where``.
    """
    _require_same(parameters_of(model), tensors, where)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])


def _require_same(wanted: Tensors, got: Tensors, where: str) -> None:
    for name in sorted({*wanted, *got}):
        shapes = [
            tuple(side[name].shape) if name in side else "nothing"
            for side in (wanted, got)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{where}: expected {shapes[0]} for the parameter {name}, "
                f"got {shapes[1]}"
            )


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> Tensors:
    return {
        f"{index}.{name}": tensor.cpu()
        for index, kept in optimizer.state_dict()["state"].items()
        for name, tensor in kept.items()
    }


def _way_on(found: list[Path]) -> str:
    for path in reversed(found[:-1]):
        try:
            check(path)
        except ValueError:
            continue
        return f"{path} is whole: to go on from there, move the others away"
    return "no older checkpoint is whole"
