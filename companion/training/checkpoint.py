"""Checkpoints: all that a run needs to go on as if it had never stopped.

A checkpoint is one safetensors file, ``step-00000100.safetensors``:

model.NAME       each parameter and each persistent buffer, once
optimizer.I.KEY  what the optimizer keeps of parameter number I
metadata         JSON: the step, the facts of the run, the states of the random
                 numbers, and a checksum of all of it

It is written beside its place and then moved there, so that it is there as a
whole or not at all. Nothing is pickled: reading a checkpoint runs no code of
whoever wrote it.
"""

import contextlib
import errno
import json
import random
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from companion.data.atomic import remove_temporaries, write_atomically
from companion.extras import lazy

__all__ = [
    "Checkpoint",
    "average",
    "every",
    "fill",
    "latest",
    "load",
    "random_state",
    "read",
    "restore",
    "restore_random_state",
    "save",
    "seed_all",
    "seeded",
    "tensors_of",
    "tidy",
]

safetensors = lazy("safetensors", "train")
safetensors_torch = lazy("safetensors.torch", "train")

Tensors = dict[str, Shaped[Tensor, "..."]]
NAME = r"step-(\d+)\.safetensors"
# One key: the order of several is not the same in every process.
KEY = "checkpoint"


class Checkpoint(NamedTuple):
    """What a checkpoint holds.

    Attributes:
        step: The last step that it has seen.
        facts: What ``save`` was given to note.
        rng: The state of the random numbers of each process.
        model: Parameters and persistent buffers, by name.
        optimizer: What the optimizer keeps, by the number of the parameter.

    Example:
        >>> saved = Checkpoint(1, {}, [], {"bias": torch.zeros(2)}, {})
        >>> saved.step, saved.model["bias"].shape
        (1, torch.Size([2]))
    """

    step: int
    facts: dict
    rng: list[dict]
    model: Tensors
    optimizer: dict[int, Tensors]


def save(
    folder: Path | str,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    facts: dict | None = None,
    rng: list[dict] | None = None,
) -> Path:
    """Write a checkpoint of ``step`` into ``folder``.

    Args:
        folder: Where it goes; it is made if need be.
        step: The last step that was taken.
        model: Of which parameters and persistent buffers are kept.
        optimizer: What moves them.
        facts: Anything that JSON can hold.
        rng: The states of the random numbers of each process; by default those
            of this one alone.

    Returns:
        The path of the checkpoint.

    Raises:
        FileExistsError: There is a checkpoint of that step.
        OSError: It could not be written, for example because the disk is full;
            the checkpoints before it are whole, and nothing of it stays.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters())
        >>> save("saved", 100, model, sgd, facts={"data": "copy"}).name
        'step-00000100.safetensors'
    """
    path = Path(folder) / f"step-{step:08d}.safetensors"
    if path.exists():
        raise FileExistsError(errno.EEXIST, "is there already", str(path))
    tensors = {f"model.{name}": t for name, t in tensors_of(model).items()}
    for index, state in optimizer.state_dict()["state"].items():
        for key, tensor in state.items():
            tensors[f"optimizer.{index}.{key}"] = tensor.cpu()
    note: dict[str, Any] = {
        "step": step,
        "facts": facts or {},
        "rng": rng or [random_state()],
    }
    note["sha256"] = _checksum(note, tensors)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(
        path, safetensors_torch.save(tensors, {KEY: json.dumps(note)})
    )
    return path


def read(path: Path | str) -> Checkpoint:
    """Read a checkpoint, on the CPU, and make sure that it is whole.

    Args:
        path: Where it lies.

    Returns:
        All that it holds; no model has changed.

    Raises:
        FileNotFoundError: There is no checkpoint at ``path``.
        ValueError: The file is cut short, changed, or of something else.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> path = save("read", 7, model, torch.optim.SGD(model.parameters()))
        >>> saved = read(path)
        >>> saved.step, sorted(saved.model)
        (7, ['bias', 'weight'])
    """
    if not Path(path).is_file():
        raise FileNotFoundError(errno.ENOENT, "no checkpoint", str(path))
    try:
        with safetensors.safe_open(path, "pt") as file:
            note = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        checksum = note.pop("sha256")
    except (
        safetensors.SafetensorError,
        OSError,
        KeyError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path}: expected a checkpoint, got a file that is cut short or "
            f"something else ({error})"
        ) from None
    if _checksum(note, tensors) != checksum:
        raise ValueError(f"{path}: its checksum is not the one it had")
    model, optimizer = {}, {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "model":
            model[rest] = tensor
        else:
            index, _, key = rest.partition(".")
            optimizer.setdefault(int(index), {})[key] = tensor
    return Checkpoint(**note, model=model, optimizer=optimizer)


def load(
    path: Path | str,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    process: int = 0,
) -> dict:
    """Bring model, optimizer and random numbers back to where they were.

    Args:
        path: A checkpoint.
        model: Whose parameters and buffers are overwritten.
        optimizer: Whose state is overwritten.
        process: Whose random numbers this process goes on with.

    Returns:
        The saved ``facts``.

    Raises:
        FileNotFoundError: There is no checkpoint at ``path``.
        ValueError: It is cut short, or of a model of another shape; the
            message names the file or the tensor.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters())
        >>> path = save("load", 1, model, sgd, facts={"data": "copy"})
        >>> before = model.bias.item()
        >>> _ = nn.init.zeros_(model.bias)
        >>> load(path, model, sgd), model.bias.item() == before
        ({'data': 'copy'}, True)
    """
    saved = read(path)
    restore(saved, model, optimizer, process=process, where=str(path))
    return saved.facts


def restore(
    saved: Checkpoint,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    process: int,
    where: str,
) -> None:
    """Do what ``load`` does, with a checkpoint that was read already.

    Args:
        saved: What ``read`` returned.
        model: Whose parameters and buffers are overwritten.
        optimizer: Whose state is overwritten.
        process: Whose random numbers this process goes on with, from 0 up.
        where: What a message calls the checkpoint.

    Raises:
        ValueError: The checkpoint is of a model of another shape.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters())
        >>> saved = read(save("restore", 1, model, sgd))
        >>> _ = nn.init.zeros_(model.bias)
        >>> restore(saved, model, sgd, process=0, where="the first")
        >>> torch.equal(model.bias, saved.model["bias"])
        True
    """
    fill(model, saved.model, where)
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict(
        {"state": saved.optimizer, "param_groups": groups}
    )
    restore_random_state(saved.rng[process])


def latest(folder: Path | str) -> Path | None:
    """Find the newest checkpoint in ``folder``.

    Args:
        folder: Where checkpoints lie; it need not be there.

    Returns:
        Its path, or None if there is no checkpoint.

    Raises:
        ValueError: The newest is damaged. An older one is never taken in
            silence: the message names it and says how to go on from there.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters())
        >>> paths = [save("latest", step, model, sgd) for step in (9, 10)]
        >>> latest("latest").name
        'step-00000010.safetensors'
        >>> print(latest("an empty one"))
        None
    """
    found = every(folder)
    if not found:
        return None
    try:
        read(found[-1])
    except ValueError as error:
        raise ValueError(f"{error}; {_way_on(found)}") from None
    return found[-1]


def every(folder: Path | str) -> list[Path]:
    """List the checkpoints in ``folder``, the oldest first.

    A file of another name, such as ``step-old``, is none of them.

    Args:
        folder: Where they lie; it need not be there.

    Returns:
        Their paths, by their steps.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters())
        >>> paths = [save("every", step, model, sgd) for step in (10, 9)]
        >>> [path.stem for path in every("every")]
        ['step-00000009', 'step-00000010']
    """
    found = {}
    for path in Path(folder).glob("step-*"):
        if match := re.fullmatch(NAME, path.name):
            found[path] = int(match[1])
    return sorted(found, key=found.__getitem__)


def tidy(folder: Path | str, *, keep: int | None = None) -> None:
    """Remove what a killed run left half written, and all but ``keep``.

    Args:
        folder: Where checkpoints lie.
        keep: How many of the newest stay; None keeps all.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> sgd = torch.optim.SGD(model.parameters())
        >>> paths = [save("tidy", step, model, sgd) for step in (8, 9, 10)]
        >>> tidy("tidy", keep=2)
        >>> [path.stem for path in every("tidy")]
        ['step-00000009', 'step-00000010']
    """
    for path in every(folder)[: -keep if keep else 0]:
        path.unlink()
    remove_temporaries(Path(folder), NAME)


def average(paths: Sequence[Path | str]) -> Tensors:
    """Compute the mean of each tensor of a model over some checkpoints.

    Section 6.1 of Vaswani et al. (2017) averages the last 5 of its base model.
    What is no floating point number, such as a counter, is that of the last.

    Args:
        paths: Checkpoints of one model.

    Returns:
        The tensors by name, as ``fill`` takes them.

    Raises:
        ValueError: There is no path, or the checkpoints are of different models
            or damaged.

    Example:
        >>> model, paths = nn.Linear(2, 1), []
        >>> for step in (1, 4):
        ...     _ = nn.init.constant_(model.bias, step)
        ...     sgd = torch.optim.SGD(model.parameters())
        ...     paths.append(save("average", step, model, sgd))
        >>> average(paths)["bias"]
        tensor([2.5000])
    """
    if not paths:
        raise ValueError("paths: expected at least one checkpoint, got none")
    # In 64 bits, so that the mean of equal numbers is the number itself.
    total: Tensors = {}
    tensors: Tensors = {}
    for path in paths:
        tensors = read(path).model
        _require_same(total or tensors, tensors, str(path))
        for name, tensor in tensors.items():
            total[name] = total.get(name, 0) + tensor.double()
    return {
        name: (total[name] / len(paths)).to(last.dtype)
        if last.is_floating_point()
        else last
        for name, last in tensors.items()
    }


def tensors_of(model: nn.Module) -> Tensors:
    """Collect each parameter and each persistent buffer once, on the CPU.

    A table that is used twice has one name, the first.

    Args:
        model: Whose they are; it stays as it is.

    Returns:
        Detached tensors, by name.

    Example:
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        >>> model[1].weight = model[0].weight
        >>> sorted(tensors_of(model))
        ['0.bias', '0.weight', '1.bias']
    """
    found = dict(model.named_parameters()) | dict(model.named_buffers())
    kept = model.state_dict(keep_vars=True)
    return {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in found.items()
        if name in kept
    }


def fill(model: nn.Module, tensors: Tensors, where: str) -> None:
    """Give the parameters and buffers of ``model`` these values.

    Args:
        model: Is changed in place, on the device where it is.
        tensors: By name, as ``tensors_of`` returns them.
        where: What a message calls them, such as the path of a checkpoint.

    Raises:
        ValueError: Names or shapes differ; the message names ``where``.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> fill(model, {"weight": torch.ones(1, 2)}, "these")
        >>> model(torch.ones(2)).item()
        2.0
    """
    _require_same(tensors_of(model), tensors, where)
    own = dict(model.named_parameters()) | dict(model.named_buffers())
    with torch.no_grad():
        for name, tensor in tensors.items():
            own[name].copy_(tensor)


def random_state() -> dict:
    """Read where Python's and PyTorch's random numbers are, for JSON.

    Returns:
        The states by name; with CUDA its own, too.

    Example:
        >>> state = random_state()
        >>> first = torch.rand(()), random.random()
        >>> restore_random_state(state)
        >>> first == (torch.rand(()), random.random())
        True
    """
    state = {
        "python": random.getstate(),
        "torch": _to_text(torch.get_rng_state()),
    }
    if torch.cuda.is_available():
        state["cuda"] = _to_text(torch.cuda.get_rng_state())
    return state


def restore_random_state(state: dict) -> None:
    """Take the random numbers back to where ``random_state`` found them.

    Args:
        state: What it returned, also after a way through JSON.

    Example:
        >>> state = json.loads(json.dumps(random_state()))
        >>> first = torch.rand(3)
        >>> restore_random_state(state)
        >>> torch.equal(torch.rand(3), first)
        True
    """
    version, words, spare = state["python"]
    random.setstate((version, tuple(words), spare))
    torch.set_rng_state(_to_bytes(state["torch"]))
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.set_rng_state(_to_bytes(state["cuda"]))


def seed_all(seed: int) -> None:
    """Begin Python's and PyTorch's random numbers at ``seed``.

    Args:
        seed: Any number that ``torch.manual_seed`` takes.

    Example:
        >>> seed_all(0)
        >>> first = torch.rand(()), random.random()
        >>> seed_all(0)
        >>> first == (torch.rand(()), random.random())
        True
    """
    random.seed(seed)
    torch.manual_seed(seed)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Begin at ``seed`` inside; outside, the random numbers go on as before.

    Args:
        seed: Any number that ``torch.manual_seed`` takes.

    Returns:
        A context manager.

    Example:
        >>> with seeded(0):
        ...     first = torch.rand(3)
        >>> with seeded(0):
        ...     print(torch.equal(torch.rand(3), first))
        True
    """
    before = random_state()
    seed_all(seed)
    try:
        yield
    finally:
        restore_random_state(before)


def _require_same(expected: Tensors, got: Tensors, where: str) -> None:
    for name in sorted({*expected, *got}):
        shapes = [
            tuple(side[name].shape) if name in side else "nothing"
            for side in (expected, got)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{where}: expected {shapes[0]} for the tensor {name}, "
                f"got {shapes[1]}"
            )


def _checksum(note: dict, tensors: Tensors) -> str:
    digest = sha256(json.dumps(note).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(
            tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data
        )
    return digest.hexdigest()


def _way_on(found: list[Path]) -> str:
    for path in reversed(found[:-1]):
        with contextlib.suppress(ValueError):
            read(path)
            return f"{path} is whole: to go on from there, move the others away"
    return "no older checkpoint is whole"


def _to_text(state: Tensor) -> str:
    return state.numpy().tobytes().hex()


def _to_bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
