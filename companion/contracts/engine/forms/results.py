"""What may come back beside the output, or in place of it."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.engine.forms.form import entry
from companion.contracts.engine.forms.rotations import (
    HEADS_FIRST,
    with_heads,
)
from companion.contracts.engine.forms.signature import MODELS, SHAPED, Style
from companion.contracts.engine.forms.styles import of_queries_and_keys
from companion.contracts.engine.guard import (
    Guarded,
)
from companion.contracts.engine.modules.common import module_of

__all__ = [
    "FIRST_TAKEN",
    "LAST_TAKEN",
    "of_layers",
    "readings",
]


def readings(
    name: str, style: Style | None
) -> list[tuple[str, Callable | None]]:
    """List what may come back, the plainest first."""
    if style is of_queries_and_keys:
        rows = "its masks have no axis for the heads, (batch, seq, seq)"
        return [("", None), (rows, first_row)]
    table = style in HEADS_FIRST
    if table or getattr(style, "first", False):
        return [("", as_given), (FIRST_TAKEN, first_as_given)]
    if name == "sinusoidal":
        return [("", None), ("its axis of size 1 was left out", only_row)]
    if name not in SHAPED:
        return [("", None)]
    found = [
        ("", None),
        (FIRST_TAKEN, entry(0)),
        ("the second of what it returned was taken", entry(1)),
        *(
            (f"`{key}` of what it returned was taken", attribute(key))
            for key in (
                "logits",
                "last_hidden_state",
                "output",
                "hidden_states",
            )
        ),
    ]
    if name in ("attention", "flash_attention"):
        found.append(("", without_head))
        found.append((FIRST_TAKEN, first_head))
    if name == "causal_attention":
        found.append(("", without_head))
        found.append((FIRST_TAKEN, first_head))
    if name == "rope":
        found.append(("", heads_back))
        found.append((FIRST_TAKEN, first_heads_back))
    if name in MODELS:
        flat = "its logits, one row a token, got their axes back"
        found += [(flat, unflattened), (f"the first was taken, and {flat}",
                                        first_unflattened)]  # fmt: skip
    if name == "translation_model":
        found.append((IN_COLUMNS, turned))
    return found


IN_COLUMNS = "its logits came with the sequence first"


FIRST_TAKEN = "the first of what it returned was taken"


LAST_TAKEN = (
    "the last of what it returned was taken, for these are the outputs of its "
    "layers in order"
)


def only_row(result: Any, args: tuple) -> Any:
    """Return what stands behind a first axis of size 1."""
    three = isinstance(result, Tensor) and result.ndim == 3
    return result[0] if three and len(result) == 1 else result


def of_layers(fn: Guarded, result: Any) -> bool:
    """Tell whether the outputs of all layers came back, in order.

    The last then moves with all weights that the first moves with, and with
    namesakes of theirs, as `layers.1.out` is of `layers.0.out`. That is so of
    no state beside an output, nor of an output that is projected once more.
    """
    module = module_of(fn)
    if module is None or not isinstance(result, tuple | list):
        return False
    if not all(
        isinstance(x, Tensor) and x.shape == result[0].shape for x in result
    ):
        return False
    try:
        early, late = (weights_behind(result[i], module) for i in (0, -1))
    except RuntimeError:
        return False  # What a later line changed in place has no gradient.
    more = {NUMBER.sub("", name) for name in late - early}
    return early < late and any(NUMBER.sub("", name) in more for name in early)


NUMBER = re.compile(r"\d+")


def weights_behind(x: Tensor, module: nn.Module) -> set[str]:
    """Name the parameters that a result was computed with."""
    named = {n: p for n, p in module.named_parameters() if p.requires_grad}
    if not named or not x.requires_grad:
        return set()
    found = torch.autograd.grad(
        x.sum(), [*named.values()], retain_graph=True, allow_unused=True
    )
    pairs = zip(named, found, strict=True)
    return {name for name, gradient in pairs if gradient is not None}


def attribute(key: str) -> Callable:
    """Take what a dictionary, or an object, has under a name."""

    def read(result: Any, args: tuple) -> Any:
        if isinstance(result, dict):
            return result.get(key, result)
        return result if isinstance(result, Tensor) else getattr(
            result, key, result
        )  # fmt: skip

    return read


def without_head(result: Any, args: tuple) -> Any:
    """Take away the axis of the one head that was added."""
    one = isinstance(result, Tensor) and result.ndim == 4
    if not one or result.shape[1] != 1:
        return result
    return result.reshape(*args[0].shape[:-2], *result.shape[-2:])


def heads_back(result: Any, args: tuple) -> Any:
    """Put the heads before the positions again."""
    if not isinstance(result, Tensor) or result.ndim != 4:
        return result
    return result.transpose(1, 2).reshape(args[0].shape)


def as_given(result: Any, args: tuple) -> Any:
    """Put the axes in front as they were given."""
    if not isinstance(result, Tensor) or result.ndim != 4:
        return result
    like = with_heads(args[0]).shape
    return result.reshape(args[0].shape) if result.shape == like else result


def first_as_given(result: Any, args: tuple) -> Any:
    """Take the first of several, with its axes as they were given."""
    return as_given(entry(0)(result, args), args)


def first_heads_back(result: Any, args: tuple) -> Any:
    """Take the first of several, with its heads before the positions."""
    return heads_back(entry(0)(result, args), args)


def first_head(result: Any, args: tuple) -> Any:
    """Take the first of several, without the head that was added."""
    return without_head(entry(0)(result, args), args)


def first_row(result: Any, args: tuple) -> Any:
    """Take the mask of one row, if all rows have the same."""
    three = isinstance(result, Tensor) and result.ndim == 3
    if not three or not torch.equal(result, result[:, :1].expand_as(result)):
        return result
    return result[:, None, :1]


def unflattened(result: Any, args: tuple) -> Any:
    """Give logits (tokens, vocab) their axes back."""
    last = args[-1]
    flat = isinstance(result, Tensor) and result.ndim == 2
    if flat and len(result) == last.numel():
        return result.unflatten(0, last.shape)
    return result


def turned(result: Any, args: tuple) -> Any:
    """Give logits (seq, batch, vocab) the batch first."""
    three = isinstance(result, Tensor) and result.ndim == 3
    return result.transpose(0, 1) if three else result


def first_unflattened(result: Any, args: tuple) -> Any:
    """Take the first of several, and give it its axes back."""
    return unflattened(entry(0)(result, args), args)
