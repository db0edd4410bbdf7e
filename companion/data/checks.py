"""What a learner is told who passes ids or vectors that do not fit."""

import torch
from torch import Tensor


def check_ids(
    name: str, ids: Tensor, vocab_size: int, *, axes: int | None = None
) -> None:
    """Refuses token ids that no table of ``vocab_size`` rows can look up.

    On a GPU the look-up itself would fail with an assertion that names neither
    the id nor its place, and take the GPU from the process.

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
    if ids.is_meta:  # It has shapes only.
        return
    outside = ((ids < 0) | (ids >= vocab_size)).nonzero()
    if len(outside):
        place = tuple(outside[0].tolist())
        raise ValueError(
            f"{name}: expected ids from 0 to {vocab_size - 1} for a "
            f"vocabulary of {vocab_size}, got {ids[place].item()} at {place}"
        )


def check_device(name: str, x: Tensor, like: Tensor) -> None:
    """Refuses a tensor that is elsewhere than the one it meets.

    Raises:
        ValueError: as said.
    """
    if getattr(x, "device", like.device) != like.device:
        raise ValueError(
            f"{name}: expected a tensor on {like.device}, got one on {x.device}"
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


def check_states(
    name: str, x: Tensor, like: Tensor | None = None, width: int | None = None
) -> None:
    """Refuses vectors that a layer's weights cannot be applied to.

    Raises:
        TypeError: ``x`` is not floating point, or not of the dtype of ``like``.
        ValueError: its last axis is not ``width``, or it is on another device
            than ``like``.
    """
    if not isinstance(x, Tensor) or not x.is_floating_point():
        got = getattr(x, "dtype", type(x).__name__)
        raise TypeError(f"{name}: expected a floating-point tensor, got {got}")
    shape = tuple(x.shape)
    if not shape:
        raise ValueError(f"{name}: expected at least one axis, got a scalar")
    if width is not None and shape[-1] != width:
        raise ValueError(
            f"{name}: expected vectors of width {width}, got {shape}"
        )
    if like is None:
        return
    check_device(name, x, like)
    # Autocast mixes dtypes on purpose, and converts where it must.
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"{name}: expected {like.dtype}, got {x.dtype}")


def check_switches(**switches: bool) -> None:
    """Refuses what is neither True nor False.

    Raises:
        TypeError: as said.
    """
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise TypeError(f"{name}: expected True or False, got {switch!r}")


def check_mask_fits(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    """Refuses a mask that does not say for each score whether it counts.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: it does not broadcast to ``scores_shape``.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = getattr(mask, "dtype", type(mask).__name__)
        raise TypeError(
            f"mask: expected a boolean tensor, True = may attend, got {got}"
        )
    wanted = tuple(scores_shape)
    try:
        fits = torch.broadcast_shapes(mask.shape, wanted) == wanted
    except RuntimeError:
        fits = False
    if not fits:
        # A list of keys for each sentence is what most people try first.
        heads = len(wanted) == 4 and mask.shape == (wanted[0], wanted[3])
        advice = "; write (batch, key) as (batch, 1, 1, key)" if heads else ""
        raise ValueError(
            "mask: expected a shape that broadcasts to (..., query, key) = "
            f"{wanted}, got {tuple(mask.shape)}{advice}"
        )


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


def check_sizes(**sizes: int) -> None:
    """Refuses a size that is no whole number from 1 up.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1.
    """
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(f"{name}: expected an int, got {size!r}")
        if size < 1:
            raise ValueError(f"{name}: expected at least 1, got {size}")


def check_dropout(dropout: float) -> float:
    """The same number, if it is a probability and keeps something.

    Raises:
        TypeError: it is no number.
        ValueError: it is not from 0 to below 1.
    """
    if not isinstance(dropout, int | float):
        raise TypeError(f"dropout: expected a number, got {dropout!r}")
    if not 0 <= dropout < 1:
        raise ValueError(
            f"dropout: expected a probability from 0 to below 1, got {dropout}"
        )
    return dropout
