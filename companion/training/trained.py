"""What a run leaves in its folder, and how to read it.

config.json    the configuration
source.codec   text to ids and back; a language model has the target's only
target.codec
log.csv        a row a step
checkpoints/   step-00000100 and so on, the newest last
.lock          held by the process that trains
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from torch import nn

from companion.data import codecs
from companion.data.codecs import Codec
from companion.data.store import write_whole
from companion.training import checkpoint
from companion.training.config import TrainConfig
from companion.training.log import LOG
from companion.transformer import (
    LanguageModel,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
)

CONFIG, SOURCE, TARGET = "config.json", "source.codec", "target.codec"
CHECKPOINTS = "checkpoints"
Builder = Callable[[TrainConfig, Codec | None, Codec], nn.Module]


class Trained(NamedTuple):
    """A model, and what is needed to use it.

    ``src_codec`` is None for a language model.
    """

    model: nn.Module
    src_codec: Codec | None
    tgt_codec: Codec
    config: TrainConfig


def build(config: TrainConfig, src: Codec | None, tgt: Codec) -> nn.Module:
    """The model of a configuration, before it has learnt anything."""
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
    """The model that a run has reached, on the CPU, ready to be asked.

    ``average`` is the number of newest checkpoints whose mean it is, and
    ``build`` what ``train`` was given to make the model.

    Raises:
        FileNotFoundError: no run has left a checkpoint in ``folder``.
        ValueError: there are fewer checkpoints than ``average``, or a
            file is cut short.
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
    checkpoint.fill(model, mean, str(newest))
    return Trained(model.eval(), src, tgt, config)


def write_run(
    folder: Path, config: TrainConfig, src: Codec | None, tgt: Codec
) -> None:
    """Leaves in ``folder``, which is there, what each checkpoint needs.

    The configuration comes last: where it is, the codecs are, too.
    """
    if src is not None:
        src.save(folder / SOURCE)
    tgt.save(folder / TARGET)
    text = json.dumps(dataclasses.asdict(config), indent=1)
    write_whole(folder / CONFIG, text.encode())


def remove_rests(folder: Path) -> None:
    """Removes what a run that was killed as it wrote has left half written.

    Those names alone: who else keeps files in ``folder`` keeps them.
    """
    names = "|".join(map(re.escape, (CONFIG, SOURCE, TARGET, LOG)))
    for path in folder.glob("*.tmp"):
        if re.fullmatch(rf"({names})\.\d+\.tmp", path.name):
            path.unlink()


def read_codecs(
    folder: Path, config: TrainConfig
) -> tuple[Codec | None, Codec]:
    """The codecs of a run.

    Raises:
        FileNotFoundError, ValueError: as ``companion.data.codecs.load``.
    """
    alone = config.data == "shakespeare"
    src = None if alone else codecs.load(folder / SOURCE)
    return src, codecs.load(folder / TARGET)


def read_config(folder: Path) -> TrainConfig | None:
    """The configuration of the run in ``folder``, or None if there is no run.

    Raises:
        ValueError: the file holds something else.
    """
    path = folder / CONFIG
    if not path.exists():
        return None
    try:
        said = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: cut short, or no JSON: {error}") from None
    try:
        return TrainConfig.of(said)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def require_same(wanted: TrainConfig, found: TrainConfig, where: str) -> None:
    """Refuses to go on with what belongs to another configuration.

    Raises:
        ValueError: as said; the message names the first field that differs.
    """
    for name, value in dataclasses.asdict(wanted).items():
        got = getattr(found, name)
        if got != value:
            raise ValueError(
                f"{where} is of another configuration: expected {name} = "
                f"{value!r}, got {got!r}; take another folder, or the "
                "configuration it began with"
            )


def require_facts(wanted: Iterable[str], facts: dict, where: str) -> None:
    """Refuses a checkpoint that does not say what a run needs to go on.

    Raises:
        ValueError: as said; the message names the first fact that is missing.
    """
    for name in wanted:
        if name not in facts:
            raise ValueError(
                f"{where}: expected the fact {name!r} in its state, got none"
            )
