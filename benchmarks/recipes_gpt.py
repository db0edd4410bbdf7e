"""What the recipes of tiny shakespeare train, and what counting reaches."""

import dataclasses
from collections import Counter
from math import log

from companion.data.codecs import Codec
from companion.data.corpora import shakespeare
from companion.training import TrainConfig
from companion.variants import GPT, GPTConfig


def gpt(config: TrainConfig, src: None, tgt: Codec) -> GPT:
    """A GPT for windows of a text, of which it reads all but the last."""
    sizes = dataclasses.asdict(config.stack())
    longest = config.max_len - 1
    return GPT(GPTConfig(vocab_size=len(tgt), max_len=longest, **sizes))


def from_counts() -> str:
    """What those reach who count how often characters follow each other."""
    text = shakespeare()
    losses = (counted_loss(*text, context=n) for n in range(4))
    told = ", ".join(f"{loss:.2f}" for loss in losses)
    return f"counts of runs of 1, 2, 3, 4 characters: {told}"


def counted_loss(train: str, valid: str, *, context: int) -> float:
    """Nats a character of ``valid``, all but the first ``context`` of them.

    A character's probability is how often it came in ``train`` after the same
    ``context`` characters, each count plus one.
    """
    known = len(set(train))
    whole, begun = _grams(train, context + 1), _grams(train[:-1], context)
    asked = _grams(valid, context + 1)
    total = sum(
        times * log((begun[gram[:-1]] + known) / (whole[gram] + 1))
        for gram, times in asked.items()
    )
    return total / asked.total()


def _grams(text: str, size: int) -> Counter:
    return Counter(text[i : i + size] for i in range(len(text) - size + 1))
