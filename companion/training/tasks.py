"""What a run learns from: codecs, batches to train on and to check with."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple
from zlib import crc32

import torch

from companion.data.batches import (
    PairBatches,
    WindowBatches,
    collate,
    cut,
    drop_long,
    encode_pairs,
    every_window,
)
from companion.data.codecs import Characters, Codec, Subwords, Words
from companion.data.corpora import Splits, multi30k, shakespeare, tatoeba
from companion.data.phrasebook import Pair, split
from companion.training.config import TrainConfig
from companion.training.steps import Batch

__all__ = ["Codecs", "Task", "corpus", "make_task"]

LETTERS = "abcdefghijklmnop"
Codecs = tuple[Codec | None, Codec]


class Task(NamedTuple):
    """What a run learns from.

    Attributes:
        src_codec: Of what is read; None for a language model.
        tgt_codec: Of what is written.
        batches: To train on, by number.
        validation: To check with.
    """

    src_codec: Codec | None
    tgt_codec: Codec
    batches: PairBatches | WindowBatches
    validation: Sequence[Batch]


def make_task(config: TrainConfig, stored: Codecs | None = None) -> Task:
    """Make the task of a configuration.

    The validation part of the phrasebook is its test part: nothing is chosen by
    it.

    Args:
        config: Names the data, and the sizes of batches.
        stored: The codecs of a run that has begun. New ones are made of the
            training part alone.

    Raises:
        OSError: The data cannot be had; ConnectionError, if no network is.
        ValueError: The data are damaged, or no sentence is short enough.

    Example:
        >>> task = make_task(TrainConfig(data="reverse"))
        >>> len(task.tgt_codec)
        19
    """
    if config.data == "shakespeare":
        return _windows(config, stored)
    parts = corpus(config)
    src, tgt = stored or _codecs(config, parts.train)
    assert src is not None  # Only a language model has none.
    train, valid = (
        drop_long(encode_pairs(part, src, tgt), config.max_len)[0]
        for part in (parts.train, parts.valid)
    )
    size = config.batch_tokens
    batches = PairBatches(train, max_tokens=size, seed=config.seed)
    validation = []
    for indices in cut([max(map(len, pair)) for pair in valid], size):
        sides = zip(*(valid[i] for i in indices), strict=True)
        validation.append(tuple(collate(side) for side in sides))
    return Task(src, tgt, batches, validation)


def corpus(config: TrainConfig) -> Splits:
    """Load the pairs of texts to train on, to validate with and to test on.

    Multi30k comes tokenised and in lower case, as its published scores do.

    Raises:
        OSError: The data cannot be had; ConnectionError, if no network is.
        ValueError: The data are damaged, or no pairs.

    Example:
        >>> corpus(TrainConfig(data="reverse")).train[0]
        ('mgeigmehj', 'jhemgiegm')
    """
    match config.data, config.sides():
        case "tatoeba", (src, tgt):
            return tatoeba(src, tgt, script=config.script)
        case "multi30k", (src, tgt):
            return multi30k(src, tgt, tokenised=True)
        case "phrasebook", (src, tgt):
            train, test = (_texts(part, (src, tgt)) for part in split())
            return Splits(train, test, test)
        case "copy" | "reverse", _:
            return _letters(config.data == "reverse")
    raise ValueError(f"data: expected pairs of texts, got {config.data!r}")


def _texts(part: Sequence[Pair], sides: tuple[str, str]) -> list:
    texts = [{"zh": "".join(p.zh), "en": " ".join(p.en)} for p in part]
    return [tuple(text[side] for side in sides) for text in texts]


def _letters(backwards: bool) -> Splits:
    """Draw 5000 strings of 3 to 10 letters, the same ones each time.

    A checksum decides in which part each is, so that no part depends on
    another's size.
    """
    rng = Random(0)
    drawn = dict.fromkeys(
        "".join(rng.choices(LETTERS, k=rng.randint(3, 10))) for _ in range(5000)
    )
    parts = Splits([], [], [])
    for text in drawn:
        part = {0: parts.test, 1: parts.valid}.get(
            crc32(text.encode()) % 10, parts.train
        )
        part.append((text, text[::-1] if backwards else text))
    return parts


def _codecs(config: TrainConfig, train: Sequence[tuple[str, str]]) -> Codecs:
    src, tgt = ([pair[side] for pair in train] for side in (0, 1))
    if config.data == "phrasebook":
        kinds = {"zh": Characters, "en": Words}
        src_kind, tgt_kind = (kinds[side] for side in config.sides() or ())
        return src_kind.train(src), tgt_kind.train(tgt)
    if config.data in ("copy", "reverse"):
        return Characters(LETTERS), Characters(LETTERS)
    if config.shared_vocab:
        both = Subwords.train([*src, *tgt], config.vocab_size)
        return both, both
    return (
        Subwords.train(src, config.vocab_size),
        Subwords.train(tgt, config.vocab_size),
    )


def _windows(config: TrainConfig, stored: Codecs | None) -> Task:
    text = shakespeare()
    codec = stored[1] if stored else Characters.train([text.train])
    train, valid = (
        torch.tensor(codec.encode(part)) for part in (text.train, text.valid)
    )
    # A model reads all but the last id of a window.
    length = max(config.max_len - 1, 1)
    size = max(config.batch_tokens // length, 1)
    return Task(
        None,
        codec,
        WindowBatches(train, length=length, size=size, seed=config.seed),
        every_window(valid, length=length, size=size),
    )
