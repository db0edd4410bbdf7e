"""A small Chinese-English corpus, written by a grammar.

Chinese is one character a token, English one word a token. The two orders
differ as they do in life: 我今天在公园看到一只小猫 is "I saw a little cat in
the park today". A character can need its neighbours (画 is a picture or to
draw; 看到 is to see, 看 a book is to read it), and number and tense stand in
only one of the two languages.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from companion.data.grammar import (
    Text,
    belongings,
    deeds,
    doubts,
    likes,
    whereabouts,
)
from companion.data.vocabulary import Vocabulary

__all__ = ["Pair", "batch", "pairs", "phrasebook_batches", "split", "thinned"]


class Pair(NamedTuple):
    """A sentence: Chinese characters, English words."""

    zh: tuple[str, ...]
    en: tuple[str, ...]


# Of each family, one sentence in so many is kept.
FAMILIES = {likes: 1, deeds: 8, doubts: 2, belongings: 3, whereabouts: 2}
ALWAYS = "我今天在公园看到一只小猫"
HELD_OUT = "我爱小猫"


def thinned(texts: Iterable[Text], one_in: int) -> Iterator[Pair]:
    """Keep about one in so many, by a checksum: the same ones each time."""
    for zh, en in texts:
        if crc32(zh.encode()) % one_in == 0 or zh == ALWAYS:
            yield Pair(tuple(zh), tuple(en.split()))


def pairs() -> list[Pair]:
    """Write the whole corpus; no Chinese sentence is in it twice.

    Example:
        >>> print(len(pairs()), *pairs()[0].zh, *pairs()[0].en)
        7202 我 爱 猫 I love cats
    """
    return [
        pair
        for family, one_in in FAMILIES.items()
        for pair in thinned(family(), one_in)
    ]


def split(
    corpus: Sequence[Pair] | None = None,
) -> tuple[list[Pair], list[Pair]]:
    """Split the corpus into a part to train on, and a tenth to test on.

    Each test sentence is new as a whole, in either language; 我爱小猫 is one of
    them. Its words are known, and nearly always its pairs of neighbours are.
    What is held out but has a word that training lacks is in neither part.
    """
    train, held = [], []
    for pair in pairs() if corpus is None else corpus:
        unseen = crc32(" ".join(pair.en).encode()) % 10 == 0
        part = held if unseen or pair.zh == tuple(HELD_OUT) else train
        part.append(pair)
    known = {word for pair in train for word in (*pair.zh, *pair.en)}
    test = [pair for pair in held if known.issuperset((*pair.zh, *pair.en))]
    return train, test


def batch(
    sentences: Sequence[Sequence[str]], vocabulary: Vocabulary
) -> Int[Tensor, "batch seq"]:
    """Encode some sentences, each from bos to eos, then pad to the end.

    Args:
        sentences: Each a sequence of tokens.
        vocabulary: Gives their ids.

    Raises:
        TypeError: A string stands where a sequence of tokens belongs.
        ValueError: There is no sentence, one is empty, or a token is unknown.

    Example:
        >>> batch([["a", "b"], ["b"]], Vocabulary(["a", "b"]))
        tensor([[1, 3, 4, 2],
                [1, 4, 2, 0]])
    """
    if len(sentences) == 0:
        raise ValueError("sentences: expected at least one, got none")
    rows = []
    for index, tokens in enumerate(sentences):
        if isinstance(tokens, str):
            raise TypeError(
                f"sentences: expected sequences of tokens, got the string "
                f"{tokens!r} at {index}"
            )
        if len(tokens) == 0:
            raise ValueError(f"sentences: the one at {index} has no tokens")
        ids = vocabulary.bos, *vocabulary.encode(tokens), vocabulary.eos
        rows.append(torch.tensor(ids))
    return pad_sequence(rows, batch_first=True, padding_value=vocabulary.pad)


def phrasebook_batches(
    corpus: Sequence[Pair],
    zh: Vocabulary,
    en: Vocabulary,
    *,
    size: int,
    steps: int,
    seed: int,
) -> list[tuple[Int[Tensor, "batch src"], Int[Tensor, "batch tgt"]]]:
    """Draw batches of pairs at random, Chinese to English.

    Args:
        corpus: What is drawn from.
        zh: The vocabulary of the sources.
        en: That of the targets.
        size: Pairs in a batch.
        steps: How many batches.
        seed: Decides what is drawn.

    Raises:
        ValueError: The corpus is empty, or a token is unknown.
    """
    if len(corpus) == 0:
        raise ValueError("corpus: expected at least one pair, got none")
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(steps):
        indices = torch.randint(len(corpus), (size,), generator=generator)
        drawn = [corpus[i] for i in indices.tolist()]
        src = batch([pair.zh for pair in drawn], zh)
        made.append((src, batch([pair.en for pair in drawn], en)))
    return made
