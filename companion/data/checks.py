"""What a learner is told who passes ids or vectors that do not fit."""

import torch
from torch import Tensor


def check_ids(
    name: str, ids: Tensor, vocab_size: int, *, axes: int | None = None
) -> None:
    """Refuses token ids that no table of ``vocab_size`` rows can look up.

    Raises:
        TypeError: ``ids`` is not a tensor of integers.
        ValueError: it is empty, has not ``axes`` axes, or holds an id outside
            0 … vocab_size - 1.
    """
    kind = getattr(ids, "dtype", type(ids).__name__)
    if kind not in (torch.int64, torch.int32):
        raise TypeError(f"{name}: expected a tensor of integers, got {kind}")
    shape = tuple(ids.shape)
    if axes is not None and len(shape) != axes:
        raise ValueError(f"{name}: expected {axes} axes, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name}: expected at least one id, got shape {shape}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        wrong = low if low < 0 else high
        raise ValueError(
            f"{name}: expected ids from 0 to {vocab_size - 1}, got {wrong}"
        )


def check_vectors(
    name: str, x: Tensor, like: Tensor, **axes: int | None
) -> None:
    """Refuses a tensor of another number type or shape than its weights need.

    ``axes`` names each axis, in order, and gives its size, or None for any
    size but 0.

    Raises:
        TypeError: ``x`` is not a tensor of the number type of ``like``.
        ValueError: the axes of ``x`` are others, or one of them is empty.
    """
    kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
    wanted_kind = like.dtype if isinstance(like, Tensor) else "a tensor"
    if kind != wanted_kind:
        raise TypeError(f"{name}: expected {wanted_kind}, got {kind}")
    got, wanted = tuple(x.shape), tuple(axes.values())
    fits = len(got) == len(wanted) and all(
        size and size == (want or size)
        for size, want in zip(got, wanted, strict=True)
    )
    if not fits:
        words = (f"{a}={n}" if n else a for a, n in axes.items())
        raise ValueError(
            f"{name}: expected shape ({', '.join(words)}), got {got}"
        )


def check_mask(mask: Tensor, scores: Tensor) -> None:
    """Refuses a mask that does not say for each score whether it counts.

    Raises:
        TypeError: ``mask`` is not boolean; a 0/1 number would be added to the
            scores elsewhere, and mask nothing.
        ValueError: its shape is not that of ``scores``, or a row is all False.
    """
    kind = getattr(mask, "dtype", type(mask).__name__)
    if kind != torch.bool:
        raise TypeError(f"mask: expected torch.bool, got {kind}")
    if mask.shape != scores.shape:
        want, got = tuple(scores.shape), tuple(mask.shape)
        raise ValueError(f"mask: expected shape {want}, got {got}")
    empty = (~mask.any(dim=-1)).nonzero()
    if len(empty):
        row = empty[0].tolist()
        raise ValueError(f"mask: row {row} leaves nothing to look at")


def words_first(name: str, is_word: Tensor) -> Tensor:
    """The same mask (batch, seq), if each row is words and then padding.

    Raises:
        ValueError: a sentence has no word, or padding before one.
    """
    back = is_word[:, 1:] & ~is_word[:, :-1]
    wrong = (~is_word[:, 0] | back.any(dim=1)).nonzero()
    if len(wrong):
        raise ValueError(
            f"{name}: expected words, then padding, got a sentence that "
            f"begins with or resumes after padding, in row {int(wrong[0])}"
        )
    return is_word
