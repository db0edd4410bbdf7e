"""The folder of a run: what lies in it, and how to read it.

config.json    the configuration
source.codec   text to ids and back; a language model has the target's only
target.codec
log.csv        a row a step
checkpoints/   step-00000100.safetensors and so on, the newest last
.lock          held by the process that trains
"""

import dataclasses
import errno
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from torch import nn

from companion.data import codecs
from companion.data.atomic import remove_temporaries, write_atomically
from companion.data.codecs import Codec
from companion.extras import lazy
from companion.training import checkpoint
from companion.training.config import TrainConfig
from companion.training.log import LOG
from companion.transformer import (
    LanguageModel,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
)

filelock = lazy("filelock", "train")

__all__ = [
    "CHECKPOINTS",
    "CONFIG",
    "LOCK",
    "SOURCE",
    "TARGET",
    "Builder",
    "Trained",
    "build",
    "load_trained",
    "lock",
    "read_codecs",
    "read_config",
    "remove_leftovers",
    "require_same",
    "write_run",
]

CONFIG, SOURCE, TARGET = "config.json", "source.codec", "target.codec"
CHECKPOINTS, LOCK = "checkpoints", ".lock"
Builder = Callable[[TrainConfig, Codec | None, Codec], nn.Module]


class Trained(NamedTuple):
    """A model, and what is needed to use it.

    Attributes:
        model: In evaluation mode.
        src_codec: Text to ids; None for a language model.
        tgt_codec: Ids to text.
        config: What it was trained by.
    """

    model: nn.Module
    src_codec: Codec | None
    tgt_codec: Codec
    config: TrainConfig


def build(config: TrainConfig, src: Codec | None, tgt: Codec) -> nn.Module:
    """Build the model of a configuration, before it has learnt anything.

    Args:
        config: The sizes.
        src: What reads the source; None makes a language model.
        tgt: What reads the target.
    """
    sizes = dataclasses.asdict(config.stack())
    if src is None:
        # Windows of a text have no padding to hide.
        return LanguageModel(
            LanguageModelConfig(vocab_size=len(tgt), pad=None, **sizes)
        )
    return Transformer(
        TransformerConfig(
            src_vocab_size=len(src),
            tgt_vocab_size=len(tgt),
            shared_vocab=config.shared_vocab,
            **sizes,
        )
    )


def load_trained(
    folder: Path | str, average: int = 1, *, build: Builder = build
) -> Trained:
    """Load the model that a run has reached, on the CPU, ready to be used.

    Args:
        folder: That of the run.
        average: The number of newest checkpoints whose mean the model is.
        build: What ``train`` was given to make the model.

    Raises:
        FileNotFoundError: No run has left a checkpoint in ``folder``.
        ValueError: There are fewer checkpoints than ``average``, or a file is
            damaged or of another run.
    """
    folder = Path(folder)
    config = read_config(folder)
    newest = checkpoint.latest(folder / CHECKPOINTS)
    if config is None or newest is None:
        raise FileNotFoundError(f"{folder}: no run has left a checkpoint here")
    found = checkpoint.every(folder / CHECKPOINTS)
    if not 1 <= average <= len(found):
        raise ValueError(
            f"average: expected 1 to {len(found)}, the number of "
            f"checkpoints, got {average}"
        )
    src, tgt = read_codecs(folder, config)
    model = build(config, src, tgt)
    mean = checkpoint.average(found[-average:])
    try:
        checkpoint.fill(model, mean, str(newest))
    except ValueError as fault:
        read = CONFIG if src is None else f"{CONFIG}, {SOURCE}"
        raise ValueError(
            f"{fault}. The sizes expected are those of {read} and {TARGET} "
            f"in {folder}; one of these files is of another run"
        ) from None
    return Trained(model.eval(), src, tgt, config)


def lock(folder: Path) -> AbstractContextManager:
    """Keep other processes out of ``folder``, which is made if need be.

    Returns:
        A context manager that lets them in again. The system does so, too,
        when a process dies, however it dies.

    Raises:
        BlockingIOError: Another process is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return filelock.FileLock(folder / LOCK).acquire(timeout=0)
    except filelock.Timeout:
        raise BlockingIOError(
            errno.EAGAIN,
            "another process is training here; wait until it has ended, or "
            "take another folder",
            str(folder),
        ) from None


def write_run(
    folder: Path, config: TrainConfig, src: Codec | None, tgt: Codec
) -> None:
    """Write into ``folder``, which is there, what each checkpoint needs.

    The configuration comes last: where it is, the codecs are, too.
    """
    if src is not None:
        src.save(folder / SOURCE)
    tgt.save(folder / TARGET)
    text = json.dumps(dataclasses.asdict(config), indent=1)
    write_atomically(folder / CONFIG, text.encode())


def remove_leftovers(folder: Path) -> None:
    """Remove what a run that was killed as it wrote has left half written."""
    names = map(re.escape, (CONFIG, SOURCE, TARGET, LOG))
    remove_temporaries(folder, *names)
    checkpoint.tidy(folder / CHECKPOINTS)


def read_codecs(
    folder: Path, config: TrainConfig
) -> tuple[Codec | None, Codec]:
    """Read the codecs of a run; a language model has no first one.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is cut short.
    """
    alone = config.data == "shakespeare"
    src = None if alone else codecs.load(folder / SOURCE)
    return src, codecs.load(folder / TARGET)


def read_config(folder: Path) -> TrainConfig | None:
    """Read the configuration of the run in ``folder``.

    Returns:
        The configuration, or None if there is no run.

    Raises:
        ValueError: The file holds something else.
    """
    path = folder / CONFIG
    if not path.exists():
        return None
    try:
        values = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: cut short, or no JSON: {error}") from None
    try:
        return TrainConfig.of(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def require_same(expected: TrainConfig, got: TrainConfig, where: str) -> None:
    """Refuse to go on with what belongs to another configuration.

    Raises:
        ValueError: Two fields differ; the message names the first.
    """
    for name, value in dataclasses.asdict(expected).items():
        if getattr(got, name) != value:
            raise ValueError(
                f"{where} is of another configuration: expected {name} = "
                f"{value!r}, got {getattr(got, name)!r}; take another folder, "
                "or the configuration it began with"
            )
