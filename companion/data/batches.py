"""Sentences to padded tensors: which go together, and in what order.

A batch is known by its number, counted from 0 through all epochs: number n has
index ``n % len(batches)`` in epoch ``n // len(batches)``. It depends on the
seed and that number alone, so a training run that stops needs to remember one
number to go on.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

import torch
from jaxtyping import Int
from torch import Tensor

from companion.checks import check_sizes
from companion.data.codecs import Codec
from companion.data.vocabulary import Vocabulary

__all__ = [
    "PairBatches",
    "WindowBatches",
    "collate",
    "cut",
    "drop_long",
    "encode_pairs",
    "every_window",
]

Pair = tuple[Sequence[int], Sequence[int]]


def encode_pairs(
    pairs: Sequence[tuple[str, str]], src: Codec, tgt: Codec
) -> list[tuple[list[int], list[int]]]:
    """Encode pairs of texts, each from bos to eos.

    Args:
        pairs: Texts, source and target.
        src: The codec of the sources.
        tgt: The codec of the targets.

    Returns:
        The ids of each pair.

    Raises:
        ValueError: There is no pair, or a text holds what its codec never saw.
    """
    if len(pairs) == 0:
        raise ValueError("pairs: expected at least one, got none")
    return [
        (_with_ends(src, source), _with_ends(tgt, target))
        for source, target in pairs
    ]


def _with_ends(codec: Codec, text: str) -> list[int]:
    return [codec.bos, *codec.encode(text), codec.eos]


def collate(rows: Sequence[Sequence[int]]) -> Int[Tensor, "batch seq"]:
    """Make one tensor of rows of ids, filled up with pad.

    Raises:
        ValueError: There is no row.

    Example:
        >>> collate([[1, 5, 2], [1, 2]])
        tensor([[1, 5, 2],
                [1, 2, 0]])
    """
    if len(rows) == 0:
        raise ValueError("rows: expected at least one, got none")
    width = max(map(len, rows))
    # One tensor of lists is three times as fast as one tensor a row.
    return torch.tensor(
        [[*row, *[Vocabulary.pad] * (width - len(row))] for row in rows]
    )


def drop_long(pairs: Sequence[Pair], max_len: int) -> tuple[list[Pair], int]:
    """Keep the pairs with at most ``max_len`` ids a side.

    Returns:
        These pairs, and how many others there were.

    Raises:
        ValueError: None is left.
    """
    kept = [pair for pair in pairs if max(map(len, pair)) <= max_len]
    if not kept:
        raise ValueError(
            f"max_len: expected a number that keeps a pair, got {max_len}"
        )
    return kept, len(pairs) - len(kept)


def cut(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Cut sentences into batches of about the same length, short ones first.

    Args:
        lengths: The number of ids of each sentence.
        max_tokens: The most ids of a batch, padded to its longest sentence.

    Returns:
        The indices of the sentences in each batch.

    Raises:
        ValueError: A sentence is longer than ``max_tokens``, or there is none.

    Example:
        >>> cut([5, 2, 3, 2], max_tokens=6)
        [[1, 3], [2], [0]]
    """
    check_sizes(max_tokens=max_tokens)
    _check_lengths(lengths, max_tokens)
    indices = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return _cut_sorted(indices, lengths, max_tokens)


def _check_lengths(lengths: Sequence[int], max_tokens: int) -> None:
    if len(lengths) == 0:
        raise ValueError("pairs: expected at least one, got none")
    long = sum(length > max_tokens for length in lengths)
    if long:
        raise ValueError(
            f"max_tokens: expected at least {max(lengths)}, the ids of the "
            f"longest sentence, got {max_tokens}; {long} of {len(lengths)} "
            "are longer: drop_long leaves them out"
        )


def _cut_sorted(
    indices: Sequence[int], lengths: Sequence[int], max_tokens: int
) -> list[list[int]]:
    batches: list[list[int]] = [[]]
    for index in indices:
        # Lengths go up, so the last one is the longest.
        if (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


class _Numbered(ABC):
    """Batches that are known by their number."""

    def __init__(self, seed: int):
        self._seed = seed
        self._epoch: tuple[int, list] | None = None

    def at(self, number: int) -> tuple[Tensor, ...]:
        """Make the batch of that number, counted from 0 through all epochs.

        Raises:
            ValueError: ``number`` is below 0.
        """
        if number < 0:
            raise ValueError(f"number: expected at least 0, got {number}")
        epoch, index = divmod(number, len(self))
        if self._epoch is None or self._epoch[0] != epoch:
            # Only random() is promised to stay the same in every Python.
            rng = Random(f"{self._seed} {epoch}")
            self._epoch = epoch, self._order(rng)
        return self._made(self._epoch[1][index])

    def stream(self, start: int = 0) -> Iterator[tuple[Tensor, ...]]:
        """Make every batch from that number on, without end."""
        return map(self.at, count(start))

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _order(self, rng: Random) -> list: ...

    @abstractmethod
    def _made(self, batch: list) -> tuple[Tensor, ...]: ...


class PairBatches(_Numbered):
    """Batches of sentence pairs of about the same length.

    An epoch has each pair once. Pairs are sorted by the longer of their sides,
    those of equal length at random, and cut; then the batches are shuffled. The
    lengths are the same in each epoch, hence so is the number of batches.

    Args:
        pairs: Ids from bos to eos, source and target.
        max_tokens: The most ids that a side of a batch has with its padding.
        seed: Decides the order.

    Raises:
        ValueError: There is no pair, or one is longer than ``max_tokens``: to
            leave it out is for the caller to decide, with ``drop_long``.

    Example:
        >>> batches = PairBatches([([1, 5, 2], [1, 2])], max_tokens=8, seed=0)
        >>> batches.at(0)
        (tensor([[1, 5, 2]]), tensor([[1, 2]]))
    """

    def __init__(self, pairs: Sequence[Pair], *, max_tokens: int, seed: int):
        super().__init__(seed)
        self._pairs = pairs
        self._max_tokens = max_tokens
        self._lengths = [max(map(len, pair)) for pair in pairs]
        self._size = len(cut(self._lengths, max_tokens))

    def __len__(self) -> int:
        return self._size

    def _order(self, rng: Random) -> list[list[int]]:
        noise = [rng.random() for _ in self._pairs]
        indices = sorted(
            range(len(noise)), key=lambda i: (self._lengths[i], noise[i])
        )
        batches = _cut_sorted(indices, self._lengths, self._max_tokens)
        return sorted(batches, key=lambda batch: noise[batch[0]])

    def _made(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        src, tgt = zip(*(self._pairs[i] for i in indices), strict=True)
        return collate(src), collate(tgt)


class WindowBatches(_Numbered):
    """Batches of windows of a long text, for a language model.

    A window has ``length + 1`` ids: a model reads all but the last and predicts
    all but the first. Windows follow each other by ``length``, so an id is a
    target once an epoch; where the first begins differs from epoch to epoch.

    Args:
        ids: The text.
        length: Targets in a window.
        size: Windows in a batch.
        seed: Decides the order.

    Raises:
        TypeError: A size is not an int.
        ValueError: A size is below 1, or the text is too short for a batch.
    """

    def __init__(
        self, ids: Int[Tensor, " text"], *, length: int, size: int, seed: int
    ):
        super().__init__(seed)
        check_sizes(length=length, size=size)
        self._ids, self._length, self._batch = ids, length, size
        # Up to length - 1 ids before the first window are left out.
        self._windows = (len(ids) - length) // length
        if self._windows < size:
            raise ValueError(
                f"ids: expected at least {(size + 1) * length} for a batch of "
                f"{size} windows of {length}, got {len(ids)}"
            )

    def __len__(self) -> int:
        return self._windows // self._batch

    def _order(self, rng: Random) -> list[list[int]]:
        skip = int(rng.random() * self._length)
        noise = [rng.random() for _ in range(self._windows)]
        order = sorted(range(self._windows), key=lambda i: noise[i])
        starts = [skip + i * self._length for i in order]
        firsts = range(0, len(self) * self._batch, self._batch)
        return [starts[i : i + self._batch] for i in firsts]

    def _made(self, starts: list[int]) -> tuple[Tensor]:
        width = self._length + 1
        return (torch.stack([self._ids[i : i + width] for i in starts]),)


def every_window(
    ids: Int[Tensor, " text"], *, length: int, size: int
) -> list[tuple[Int[Tensor, "batch seq"]]]:
    """Cut a text into batches in which each id but the first is a target once.

    For measuring a loss: nothing is drawn at random and nothing left out; the
    last window, shorter than the others, is a batch of its own.

    Args:
        ids: The text.
        length: Targets in a window.
        size: Windows in a batch.

    Raises:
        TypeError: A size is not an int.
        ValueError: A size is below 1, or there are fewer than two ids.

    Example:
        >>> every_window(torch.arange(4), length=2, size=1)
        [(tensor([[0, 1, 2]]),), (tensor([[2, 3]]),)]
    """
    check_sizes(length=length, size=size)
    if len(ids) < 2:
        raise ValueError(f"ids: expected at least 2, got {len(ids)}")
    whole = (len(ids) - 1) // length
    batches = []
    if whole:
        windows = ids[: whole * length + 1].unfold(0, length + 1, length)
        batches = [(batch,) for batch in windows.split(size)]
    rest = ids[whole * length :]
    return [*batches, (rest[None],)] if len(rest) > 1 else batches
