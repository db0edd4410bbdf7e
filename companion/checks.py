"""What every public function checks: one clear error, at the boundary.

An error names the argument, what was expected and what came. Arguments are
checked where a user calls. What is called inside a whole model's forward pass
trusts its caller: ``checked_by`` turns ``checking`` off until the model is
done. Nothing is checked in a compiled graph, and nothing waits for a device.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = [
    "check_broadcasts",
    "check_device",
    "check_dropout",
    "check_eps",
    "check_float",
    "check_generator",
    "check_ids",
    "check_int",
    "check_kind",
    "check_like",
    "check_mask_fits",
    "check_number",
    "check_numbers",
    "check_pad",
    "check_share",
    "check_sizes",
    "check_states",
    "check_switches",
    "check_tensor",
    "check_tokens",
    "check_vectors",
    "check_words_first",
    "checked_by",
    "checking",
    "describe",
    "is_whole",
    "trusting",
]


class _State(threading.local):
    trusting = False


_state = _State()


def checking() -> bool:
    """Tell whether arguments are to be checked here.

    Returns:
        False in a compiled graph, and inside of what has checked already.
    """
    return not torch.compiler.is_compiling() and not _state.trusting


@contextmanager
def trusting() -> Iterator[None]:
    """Check nothing within: whoever opened this has checked."""
    before, _state.trusting = _state.trusting, True
    try:
        yield
    finally:
        _state.trusting = before


def checked_by(check: Callable | str) -> Callable[[Callable], Callable]:
    """Check the arguments of a function once, and trust them inside of it.

    Args:
        check: What gets the same arguments, and raises; or the name of a
            method that does, which a subclass may extend.

    Example:
        >>> def check_even(n): check_sizes(n=n)
        >>> @checked_by(check_even)
        ... def half(n): return n // 2
        >>> half(4)
        2
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args, **kwargs):
            if not checking():
                return function(*args, **kwargs)
            if isinstance(check, str):
                getattr(args[0], check)(*args[1:], **kwargs)
            else:
                check(*args, **kwargs)
            with trusting():
                return function(*args, **kwargs)

        return call

    return decorate


# Numbers and settings


def check_int(**numbers: int) -> None:
    """Refuse what is no int; a bool is none.

    Raises:
        TypeError: a number is no int.
    """
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name}: expected an int, got {number!r}")


def check_sizes(**sizes: int) -> None:
    """Refuse a size that is no whole number from 1 up.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1.
    """
    check_int(**sizes)
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}: expected at least 1, got {size}")


def check_switches(**switches: bool) -> None:
    """Refuse what is neither True nor False.

    Raises:
        TypeError: a switch is no bool.
    """
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise TypeError(f"{name}: expected True or False, got {switch!r}")


def check_number(name: str, number: int | float, *, above: int | None) -> None:
    """Refuse what is no number from 0 up, or none larger than ``above``.

    Raises:
        TypeError: it is no number.
        ValueError: it is too small, infinite or NaN.
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name}: expected a number, got {number!r}")
    fits = number >= 0 if above is None else number > above
    if not fits or number == float("inf"):
        expected = "from 0 up" if above is None else f"above {above}"
        raise ValueError(f"{name}: expected a number {expected}, got {number}")


def check_share(share: int | float) -> None:
    """Refuse what is no share of a whole.

    Raises:
        TypeError: ``share`` is no number.
        ValueError: it is not from 0 to 1.
    """
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise TypeError(f"share: expected a number, got {share!r}")
    if not 0 <= share <= 1:
        raise ValueError(f"share: expected a number from 0 to 1, got {share}")


def check_dropout(dropout: int | float) -> int | float:
    """Return the same number, if it is a probability that keeps something.

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


def check_eps(eps: int | float) -> None:
    """Refuse an ``eps`` that would not keep a root from dividing by 0.

    Raises:
        ValueError: it is no positive number.
    """
    if not isinstance(eps, int | float) or not eps > 0:
        raise ValueError(f"eps: expected a positive number, got {eps!r}")


def check_pad(pad: int, vocab_size: int, *, what: str, more: str = "") -> None:
    """Refuse padding that is no id of the vocabulary.

    Raises:
        TypeError: ``pad`` is no int.
        ValueError: it is not from 0 to below ``vocab_size``.
    """
    check_int(pad=pad)
    if not 0 <= pad < vocab_size:
        raise ValueError(
            f"pad: expected an id from 0 to below {vocab_size}, the size of "
            f"the {what}{more}, got {pad}"
        )


def check_generator(generator: torch.Generator) -> None:
    """Refuse what cannot be drawn from.

    Raises:
        TypeError: ``generator`` is no ``torch.Generator``.
    """
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            "generator: expected a torch.Generator, got "
            f"{type(generator).__name__}"
        )


def check_kind(name: str, x: object, kind: type, *, article: str = "") -> None:
    """Refuse an object of another class.

    Raises:
        TypeError: ``x`` is no ``kind``.
    """
    if not isinstance(x, kind):
        expected = article or "the class"
        raise TypeError(
            f"{name}: expected {expected} {kind.__name__}, got "
            f"{type(x).__name__}"
        )


# Tensors of numbers


def describe(x: object) -> str:
    """Name what came: the dtype of a tensor, else the type."""
    return str(x.dtype) if isinstance(x, Tensor) else type(x).__name__


def check_tensor(name: str, x: Tensor, axes: str, least: int) -> None:
    """Refuse what has fewer than ``least`` axes, or is no tensor.

    Raises:
        TypeError: ``x`` is no tensor.
        ValueError: it has too few axes.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
    if x.ndim < least:
        raise ValueError(f"{name}: expected {axes}, got {tuple(x.shape)}")


def check_numbers(name: str, x: Tensor) -> None:
    """Refuse what is no tensor of whole or floating-point numbers.

    Raises:
        TypeError: it is something else.
    """
    dtype = getattr(x, "dtype", type(x).__name__)
    refused = torch.bool, torch.complex64, torch.complex128
    if not isinstance(dtype, torch.dtype) or dtype in refused:
        raise TypeError(f"{name}: expected a tensor of numbers, got {dtype}")


def check_device(name: str, x: Tensor, like: Tensor) -> None:
    """Refuse a tensor that is elsewhere than the one it meets.

    Raises:
        ValueError: the devices differ.
    """
    if getattr(x, "device", like.device) != like.device:
        raise ValueError(
            f"{name}: expected a tensor on {like.device}, got one on {x.device}"
        )


def check_like(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    """Refuse ``x`` if its dtype or its device is not that of ``other``.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the devices differ.
    """
    dtype = getattr(x, "dtype", type(x).__name__)
    if dtype != other.dtype:
        raise TypeError(
            f"{name}: expected {other.dtype} as {other_name} has, got {dtype}"
        )
    if x.device != other.device:
        raise ValueError(
            f"{name}: expected device {other.device}, where {other_name} is, "
            f"got {x.device}"
        )


def check_float(name: str, x: Tensor, *, axes: str, width: int | None) -> None:
    """Refuse what is no floating-point tensor with the named last two axes.

    ``width`` is the size of the last axis, or None for any size.

    Raises:
        TypeError: ``x`` is no tensor of floating-point numbers.
        ValueError: it has fewer than two axes, or another width.
    """
    _check_floating(name, x)
    if x.ndim < 2 or not x.numel() or x.shape[-1] != (width or x.shape[-1]):
        size = "" if width is None else f" = (..., {width})"
        raise ValueError(
            f"{name}: expected shape (..., {axes}){size}, got {tuple(x.shape)}"
        )


def check_states(
    name: str, x: Tensor, like: Tensor | None = None, width: int | None = None
) -> None:
    """Refuse vectors that a layer's weights cannot be applied to.

    Raises:
        TypeError: ``x`` is not floating point, or not of the dtype of ``like``.
        ValueError: its last axis is not ``width``, or it is on another device
            than ``like``.
    """
    _check_floating(name, x)
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


def check_vectors(
    name: str, x: Tensor, like: Tensor, **axes: int | None
) -> None:
    """Refuse a tensor of another dtype or shape than its weights need.

    ``axes`` names each axis, in order, and gives its size, or None for any
    size but 0.

    Raises:
        TypeError: ``x`` is not a tensor of the dtype of ``like``.
        ValueError: the axes of ``x`` are others, or one of them is empty.
    """
    dtype = x.dtype if isinstance(x, Tensor) else type(x).__name__
    expected = like.dtype if isinstance(like, Tensor) else "a tensor"
    if dtype != expected:
        raise TypeError(f"{name}: expected {expected}, got {dtype}")
    shape = tuple(x.shape)
    fits = len(shape) == len(axes) and all(
        size and size == (expected or size)
        for size, expected in zip(shape, axes.values(), strict=True)
    )
    if not fits:
        words = (f"{a}={n}" if n else a for a, n in axes.items())
        raise ValueError(
            f"{name}: expected shape ({', '.join(words)}), got {shape}"
        )


def check_broadcasts(
    name: str, shape: tuple[int, ...], target: tuple[int, ...], axes: str
) -> None:
    """Refuse a shape that does not broadcast to ``target``.

    Raises:
        ValueError: it does not, or would enlarge it.
    """
    if not _broadcasts(shape, target):
        raise ValueError(
            f"{name}: expected a shape that broadcasts to {axes} = "
            f"{tuple(target)}, got {tuple(shape)}"
        )


def check_mask_fits(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    """Refuse a mask that does not say for each score whether it counts.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: it does not broadcast to ``scores_shape``.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            "mask: expected a boolean tensor, True = may attend, got "
            f"{describe(mask)}"
        )
    target = tuple(scores_shape)
    if not _broadcasts(mask.shape, target):
        # A list of keys for each sentence is what most people try first.
        heads = len(target) == 4 and mask.shape == (target[0], target[3])
        advice = "; write (batch, key) as (batch, 1, 1, key)" if heads else ""
        raise ValueError(
            "mask: expected a shape that broadcasts to (..., query, key) = "
            f"{target}, got {tuple(mask.shape)}{advice}"
        )


# Tokens


def is_whole(x: Tensor) -> bool:
    """Tell whether ``x`` holds integers; True and False are none."""
    return not (
        x.dtype == torch.bool or x.is_floating_point() or x.is_complex()
    )


def check_tokens(tokens: Tensor, name: str) -> None:
    """Refuse what are no ids, (batch, seq), of any kind of integer.

    Raises:
        TypeError: ``tokens`` is no tensor of integers.
        ValueError: it has not two axes, or is empty.
    """
    if not isinstance(tokens, Tensor) or not is_whole(tokens):
        raise TypeError(
            f"{name}: expected a tensor of token ids, which are integers, "
            f"got {describe(tokens)}"
        )
    if tokens.ndim != 2 or not tokens.numel():
        raise ValueError(
            f"{name}: expected (batch, seq) with at least one token, "
            f"got {tuple(tokens.shape)}"
        )


def check_ids(
    name: str, ids: Tensor, vocab_size: int, *, axes: int | None = None
) -> None:
    """Refuse token ids that no table of ``vocab_size`` rows can look up.

    Where the ids are on an accelerator only their type and shape are checked:
    to look at a number there is to wait for the device.

    Raises:
        TypeError: ``ids`` is not a tensor of integers.
        ValueError: it is empty, has not ``axes`` axes, or holds an id outside
            0 … vocab_size - 1.
    """
    dtype = getattr(ids, "dtype", type(ids).__name__)
    if dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name}: expected a tensor of integers, got {dtype}")
    shape = tuple(ids.shape)
    if axes is not None and len(shape) != axes:
        raise ValueError(f"{name}: expected {axes} axes, got shape {shape}")
    if 0 in shape:
        raise ValueError(f"{name}: expected at least one id, got shape {shape}")
    if not ids.is_cpu:
        return
    outside = (ids < 0) | (ids >= vocab_size)
    if outside.any():
        where = tuple(outside.nonzero()[0].tolist())
        raise ValueError(
            f"{name}: expected ids from 0 to {vocab_size - 1} for a "
            f"vocabulary of {vocab_size}, got {ids[where].item()} at {where}"
        )


def check_positions(name: str, positions: Tensor | None, count: int) -> None:
    """Refuse what does not say which of ``count`` positions are meant.

    Raises:
        TypeError: ``positions`` is not a tensor of integers.
        ValueError: it has not one axis, or holds something outside
            0 … count - 1 (on an accelerator this is not looked at).
    """
    if positions is None:
        return
    dtype = getattr(positions, "dtype", type(positions).__name__)
    if dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name}: expected a tensor of integers, got {dtype}")
    if positions.ndim != 1:
        raise ValueError(
            f"{name}: expected one axis, got shape {tuple(positions.shape)}"
        )
    if not positions.is_cpu:
        return
    outside = positions[(positions < 0) | (positions >= count)]
    if len(outside):
        raise ValueError(
            f"{name}: expected positions from 0 to {count - 1}, got "
            f"{outside[0].item()}"
        )


def check_words_first(name: str, is_word: Tensor) -> Tensor:
    """Return the same mask (batch, seq), if each row is words, then padding.

    On an accelerator nothing is looked at: a forward pass would wait for it.

    Raises:
        ValueError: a sentence has no word, or padding before one.
    """
    if not is_word.is_cpu:
        return is_word
    back = is_word[:, 1:] & ~is_word[:, :-1]
    wrong = (~is_word[:, 0] | back.any(dim=1)).nonzero()
    if len(wrong):
        raise ValueError(
            f"{name}: expected words, then padding, got a sentence that "
            f"begins with or resumes after padding, in row {int(wrong[0])}"
        )
    return is_word


def _check_floating(name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        raise TypeError(
            f"{name}: expected a floating-point tensor, got {describe(x)}"
        )


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    # Not ``torch.broadcast_shapes``, which imports SymPy: 0.3 seconds.
    axes = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(n in (1, m) for n, m in axes)
