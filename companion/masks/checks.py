"""What a mask and its tokens must be, and the words for what they are not."""

import torch
from torch import Tensor


def what(x: object) -> str:
    """How an error names what came."""
    return str(x.dtype) if isinstance(x, Tensor) else type(x).__name__


def is_whole(x: Tensor) -> bool:
    """Whether ``x`` holds integers; True and False are none."""
    return not (
        x.dtype == torch.bool or x.is_floating_point() or x.is_complex()
    )


def require_int(**numbers: int) -> None:
    """Raises TypeError unless each is an int."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name}: expected an int, got {number!r}")


def require_tokens(tokens: Tensor, name: str) -> None:
    """Raises TypeError or ValueError unless these are ids, (batch, seq)."""
    if not isinstance(tokens, Tensor) or not is_whole(tokens):
        raise TypeError(
            f"{name}: expected a tensor of token ids, which are integers, "
            f"got {what(tokens)}"
        )
    if tokens.ndim != 2 or not tokens.numel():
        raise ValueError(
            f"{name}: expected (batch, seq) with at least one token, "
            f"got {tuple(tokens.shape)}"
        )


def require_rows(**tensors: Tensor) -> None:
    """Raises TypeError or ValueError unless each is a tensor (batch, key)."""
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {what(x)}")
        if x.ndim != 2 or not x.numel():
            raise ValueError(
                f"{name}: expected (batch, key), got {tuple(x.shape)}"
            )


def require_axes(name: str, x: Tensor) -> None:
    """Raises ValueError unless ``x`` has the four axes of a mask."""
    if x.ndim != 4 or not x.numel():
        advice = {
            2: "; a causal mask becomes that by `[None, None]`, one of keys, "
            "(batch, key), by `[:, None, None]`",
            3: "; one mask for all heads becomes that by `[:, None]`",
        }
        raise ValueError(
            f"{name}: expected (batch, head, query, key), got "
            f"{tuple(x.shape)}{advice.get(x.ndim, '')}"
        )


def require_mask(mask: Tensor, *, keys_only: bool = False) -> None:
    """Raises TypeError or ValueError unless this is a mask of this course.

    With ``keys_only`` all heads and queries share it: (batch, 1, 1, key).
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            "mask: expected a boolean tensor, True = may attend, got "
            f"{what(mask)}{_advice(mask)}"
        )
    require_axes("mask", mask)
    if keys_only and mask.shape[1:3] != (1, 1):
        raise ValueError(
            "mask: expected (batch, 1, 1, key), as padding_mask makes it, got "
            f"{tuple(mask.shape)}; where queries or heads differ, no list of "
            "keys can tell"
        )


def _advice(mask: object) -> str:
    if not isinstance(mask, Tensor):
        return ""
    if is_whole(mask):
        return "; from_ones reads 1 = real, 0 = padding"
    return (
        "; from_additive reads a mask that is added to the scores, and "
        "`mask.bool()` one of zeros and ones"
    )
