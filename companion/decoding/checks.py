"""What a search is told whose limits, tokens or scores make no sense."""

from collections.abc import Callable

import torch
from torch import Tensor

from companion.data.checks import check_sizes
from companion.masks.checks import require_int


def require_model(model: object, kind: type, name: str = "model") -> None:
    """Refuses a model of another class, whose numbers would come out wrong.

    Raises:
        TypeError: ``model`` is no ``kind``.
    """
    if not isinstance(model, kind):
        raise TypeError(
            f"{name}: expected the class {kind.__name__}, got "
            f"{type(model).__name__}"
        )


def check_search(*, bos: int, eos: int, **sizes: int) -> None:
    """Refuses ids that are no ids, and limits below 1.

    Raises:
        TypeError: something is no int.
        ValueError: an id is negative, or a size is below 1.
    """
    require_int(bos=bos, eos=eos)
    for name, token in (("bos", bos), ("eos", eos)):
        if token < 0:
            raise ValueError(f"{name}: expected an id from 0 up, got {token}")
    check_sizes(**sizes)


def check_number(name: str, number: int | float, *, above: int | None) -> None:
    """Refuses what is no number from 0 up, or none larger than ``above``.

    Raises:
        TypeError: it is no number.
        ValueError: it is too small, infinite or NaN.
    """
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name}: expected a number, got {number!r}")
    fits = number >= 0 if above is None else number > above
    if not fits or number == float("inf"):
        wanted = "from 0 up" if above is None else f"above {above}"
        raise ValueError(f"{name}: expected a number {wanted}, got {number}")


def next_logits(step_fn: Callable, rows: list[list[int]]) -> Tensor:
    """What ``step_fn`` says about the token after each row.

    Raises:
        TypeError: it returns no floating-point tensor.
        ValueError: it has not one row of scores for each row of tokens, or a
            row has no largest finite score: NaN, or every token forbidden.
    """
    logits = step_fn(torch.tensor(rows))
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        got = getattr(logits, "dtype", type(logits).__name__)
        raise TypeError(
            f"step_fn: expected it to return a floating-point tensor, got {got}"
        )
    shape = tuple(logits.shape)
    if len(shape) != 2 or shape[0] != len(rows) or not logits.numel():
        raise ValueError(
            f"step_fn: expected logits of shape ({len(rows)}, vocab), one row "
            f"for each row of tokens, got {shape}"
        )
    best = logits.detach().amax(-1)
    if not best.isfinite().all():
        row = int((~best.isfinite()).nonzero()[0])
        raise ValueError(
            "step_fn: expected a finite score for some token in each row, "
            f"got {best[row].item()} as the largest one after {rows[row]}"
        )
    return logits.detach()
