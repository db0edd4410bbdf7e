"""What ``state.json`` says of a checkpoint, and whether all of it is whole."""

import errno
import json
from pathlib import Path

from companion.training.disk import fingerprint

MODEL, OPTIMIZER = "model.safetensors", "optimizer.safetensors"
STATE = "state.json"


def check(path: Path) -> dict:
    """The state that a checkpoint holds, once each of its files is whole.

    Raises:
        FileNotFoundError: there is no checkpoint at ``path``.
        ValueError: a file is missing, cut short or changed.
    """
    state = read_state(path)
    for name, wanted in state["files"].items():
        file = path / name
        data = file.read_bytes() if file.exists() else b""
        got = fingerprint(data)
        if got["bytes"] != wanted["bytes"]:
            raise ValueError(
                f"{file}: cut short: expected {wanted['bytes']} bytes, got "
                f"{got['bytes']}"
            )
        if got != wanted:
            raise ValueError(f"{file}: its checksum is not the one it had")
    return state


def read_state(path: Path) -> dict:
    """What ``state.json`` holds: step, facts, fingerprints, random numbers.

    Raises:
        FileNotFoundError: there is no checkpoint at ``path``.
        ValueError: the file is missing, cut short or not of a checkpoint.
    """
    if not path.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no checkpoint", str(path))
    try:
        state = json.loads((path / STATE).read_bytes())
    except (FileNotFoundError, ValueError):
        raise ValueError(f"{path / STATE}: missing or cut short") from None
    _check_state(state, f"{path / STATE}")
    return state


def _check_state(state: object, where: str) -> None:
    kinds = {"step": int, "facts": dict, "files": dict, "rng": list}
    for name, kind in kinds.items():
        got = state.get(name) if isinstance(state, dict) else None
        if not isinstance(got, kind):
            raise ValueError(
                f"{where}: expected {name} of type {kind.__name__}, as a "
                f"checkpoint has, got {got!r}"
            )
    for name in (MODEL, OPTIMIZER):
        if {"bytes", "sha256"} - {*(state["files"].get(name) or ())}:
            raise ValueError(
                f"{where}: expected a fingerprint of {name}, got none"
            )
