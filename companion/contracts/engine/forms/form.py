"""One way to call code: how masks are laid out, and what is read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from companion.contracts.engine.forms.signature import Call, Style, Wanted
from companion.contracts.engine.guard import (
    Guarded,
    copied,
)

__all__ = [
    "FIRST",
    "OF_KEYS",
    "Form",
    "alone",
    "behind_adapter",
    "entry",
    "everything",
    "flat",
    "for_heads",
    "joined",
    "last_layer",
    "layouts",
    "of_keys",
    "without_heads",
    "written_out",
]


@dataclass(frozen=True)
class Form:
    """A way to call, which may also be to read what comes back.

    Attributes:
        parameters: The names of the contracts' arguments.
        style: Makes the call; None calls as the contracts do.
        layout: From a mask and the arguments by name, the mask as it is wanted.
        absent: What stands for a mask where there is none.
        reading: From what came back and the arguments, the result.
        hidden: Whether True hides in the learner's masks.
        first: Whether the sequence comes first, and the batch second.
        whole: The whole call, where it is none of these.
        no_mask: Whether no mask is ever handed over.
        ungiven: Masks of padding that may be given, and are not.
        wants: The signature.
        said: What all this is, in sentences.
    """

    parameters: tuple[str, ...]
    style: Style | None = None
    layout: Callable | None = None
    absent: str = "omitted"
    reading: Callable | None = None
    hidden: bool = False
    first: bool = False
    whole: Callable | None = None
    no_mask: bool = False
    ungiven: tuple[str, ...] = ()
    wants: Wanted = field(default_factory=Wanted)
    said: tuple[str, ...] = ()

    @property
    def row_by_row_asked(self) -> bool:
        """Whether a mask has no rows, so that each row is asked alone."""
        return self.layout in OF_KEYS

    def __call__(self, fn: Callable, args: tuple) -> Any:
        """Call ``fn`` in this way."""
        if self.hidden:
            args = tuple(map(turned, args))
        if self.first:
            fn = exchanged(fn)
        call = self.whole or self.styled
        result = call(fn, args)
        if self.reading:
            result = self.reading(result, args)
        return turned(result) if self.hidden else result

    def styled(self, fn: Callable, args: tuple) -> Any:
        """Call ``fn`` as the style and the mask's layout say."""
        if not self.style:
            return fn(*args)
        named = dict(zip(self.parameters, args, strict=False))
        if "mask" in self.parameters:
            mask = named.get("mask")
            if mask is None and self.absent == "full":
                mask = everything(named, self.hidden)
            if mask is not None and self.layout:
                if self.layout is alone:
                    return self.one_by_one(fn, named, mask)
                if self.layout in OF_KEYS:
                    return self.row_by_row(fn, named, mask)
                mask = self.layout(mask, named)
            named["mask"] = mask
            if mask is None and self.absent == "omitted":
                del named["mask"]
        given, words = self.style(self.wants, named)
        if self.hidden and "mask" not in self.parameters:
            # The style has made its masks.
            given = turned(given)
            words = {name: turned(x) for name, x in words.items()}
        return fn(*given, **words)

    def one_by_one(self, fn: Callable, named: dict, mask: Tensor) -> Any:
        """Ask for each sentence alone, with a mask (seq, seq) of its own."""
        x = named["x"]
        four = without_heads(mask, named)
        results = []
        for i in range(len(x)):
            one = {**named, "x": x[i : i + 1], "mask": four[i]}
            call = self.style(self.wants, one)
            results.append(fn(*call[0], **call[1]))
        return joined(results, 0)

    def row_by_row(self, fn: Callable, named: dict, mask: Tensor) -> Any:
        """Ask for each row alone, with the mask (batch, key) that it has."""
        lead = next(iter(named.values())).shape[:-2]
        if len(lead) != 1:
            return self.without_leading_axes(fn, named, mask, lead)
        three, axes = without_heads(mask, named), OF_KEYS[self.layout]
        results = []
        for i in range(three.shape[1]):
            its = three[:, i].unflatten(0, (-1, *[1] * axes))
            # What adds to its input in place must not see its own sum again.
            own = {name: copied(x) for name, x in named.items()}
            call = self.style(self.wants, {**own, "mask": its})
            got = fn(*call[0], **call[1])
            if self.reading is last_layer:
                got = last_layer(got, ())
            whole = type(got) in (tuple, list)
            out = got[0] if whole else got
            axis = axis_of_rows(out, three.shape[1])
            if axis is None:
                return got
            row = out.narrow(axis, i, 1)
            results.append((row, *got[1:]) if whole else row)
        return joined(results, axis)

    def without_leading_axes(
        self, fn: Callable, named: dict, mask: Tensor, lead: torch.Size
    ) -> Any:
        """Ask for vectors with one axis for the batch, and give the rest back.

        A mask (batch, key) has no axis for heads, nor one too few.
        """
        rows = next(iter(named.values())).shape[-2]
        keys = named.get("k", next(iter(named.values()))).shape[-2]
        flat = {
            name: x.reshape(-1, *x.shape[-2:])
            for name, x in named.items()
            if name != "mask"
        }
        its = mask.expand(*lead, rows, keys).reshape(-1, 1, rows, keys)
        got = self.row_by_row(fn, flat, its)
        whole = type(got) in (tuple, list)
        out, *more = got if whole else (got,)
        if isinstance(out, Tensor) and out.ndim == 3:
            out = out.reshape(*lead, *out.shape[1:])
        return (out, *more) if whole else out


def axis_of_rows(x: Any, rows: int) -> int | None:
    """Return along which axis the rows of a result stand; None if along none.

    It is the second, or the third behind that of a single head.
    """
    if not isinstance(x, Tensor) or x.ndim < 2:
        return None
    if x.shape[1] == rows:
        return 1
    return 2 if x.ndim == 4 and x.shape[1:3] == (1, rows) else None


def joined(results: list, axis: int) -> Any:
    """Join what was asked for in pieces; of several results, the first."""
    if not isinstance(results[0], tuple | list):
        return torch.cat(results, axis)
    return tuple(
        torch.cat(parts, axis)
        if isinstance(parts[0], Tensor) and not (axis and i)
        else parts[0]
        for i, parts in enumerate(zip(*results, strict=True))
    )


def turned(x: Any) -> Any:
    """Turn a mask round, and masks in a tuple; leave all else as it is."""
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)(map(turned, x))
    masks = isinstance(x, Tensor) and x.dtype == torch.bool
    return ~x if masks else x


def other_first(x: Any) -> Any:
    """Exchange batch and sequence, of vectors and of ids; leave masks."""
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)(map(other_first, x))
    if not isinstance(x, Tensor) or x.dtype == torch.bool:
        return x
    axes = 3 if x.is_floating_point() else 2
    return x.transpose(0, 1) if x.ndim == axes else x


def exchanged(fn: Callable) -> Callable:
    """Hand over the sequence first, and the batch second."""

    def call(*args: Any, **named: Any) -> Any:
        words = {name: other_first(x) for name, x in named.items()}
        return other_first(fn(*map(other_first, args), **words))

    return call


def everything(named: dict, hidden: bool) -> Tensor:
    """Make a mask that hides nothing."""
    one = next(iter(named.values()))
    keys = named.get("k", one)
    mask = torch.ones(one.shape[-2], keys.shape[-2], dtype=torch.bool)
    return ~mask if hidden else mask


def written_out(mask: Tensor, named: dict) -> Tensor:
    """Write a mask out for each sentence: (batch, 1, query, key)."""
    x = next(iter(named.values()))
    keys = named.get("k", x).shape[-2]
    four = mask[(None,) * (4 - mask.ndim)]
    return four.expand(len(x), four.shape[1], x.shape[-2], keys)


def without_heads(mask: Tensor, named: dict) -> Tensor:
    """Leave out the axis of the heads: (batch, query, key).

    Vectors with more axes than one for the batch have masks with these.
    """
    x = next(iter(named.values()))
    if x.ndim != 3:
        keys = named.get("k", x).shape[-2]
        return mask.expand(*(x.shape[:-2] or (1,)), x.shape[-2], keys)
    return written_out(mask, named)[:, 0]


def alone(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.one_by_one``, which makes masks (seq, seq)."""
    raise NotImplementedError


def of_keys(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.row_by_row``, which makes masks (batch, key)."""
    raise NotImplementedError


def of_keys_in_three(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.row_by_row``, which makes masks (batch, 1, key)."""
    raise NotImplementedError


def of_keys_in_four(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.row_by_row``, which makes masks (batch, 1, 1, key)."""
    raise NotImplementedError


OF_KEYS: dict[Callable | None, int] = {
    of_keys: 0,
    of_keys_in_three: 1,
    of_keys_in_four: 2,
}
"""Layouts of a mask for each sentence -> axes of size 1 before the keys."""


def as_numbers(layout: Callable | None) -> Callable:
    """Make 1 and 0 of True and False, in the number type of the input."""

    def numbers(mask: Tensor, named: dict) -> Tensor:
        laid = layout(mask, named) if layout else mask
        return laid.to(next(iter(named.values())).dtype)

    return numbers


def for_heads(heads: int, axes: int) -> Callable:
    """Write a mask out for each head: in 4 axes, or in 3."""

    def laid(mask: Tensor, named: dict) -> Tensor:
        four = written_out(mask, named)
        four = four.expand(len(four), heads, *four.shape[2:])
        return four if axes == 4 else four.flatten(0, 1)

    return laid


def layouts(fn: object) -> Iterator[tuple[str, Callable | None]]:
    """List what masks look like elsewhere, the plainest first."""
    yield "", None
    yield "its masks are (batch, 1, seq, seq)", written_out
    yield (
        "its masks have no axis for the heads, (batch, seq, seq)",
        without_heads,
    )
    yield (
        "its masks are (seq, seq), so that each sentence was asked alone",
        alone,
    )
    if heads := heads_of(fn):
        yield (
            f"its masks are written out for each head, (batch, {heads}, seq, "
            "seq)",
            for_heads(heads, 4),
        )
        yield (
            "its masks have batch and heads on one axis, (batch × "
            f"{heads}, seq, seq)",
            for_heads(heads, 3),
        )
    numbers = "its masks are numbers, 1 and 0 for True and False"
    yield numbers, as_numbers(None)
    yield f"{numbers}, (batch, 1, seq, seq)", as_numbers(written_out)
    yield f"{numbers}, (batch, seq, seq)", as_numbers(without_heads)
    for layout, axes in OF_KEYS.items():
        shape = ", ".join(["batch", *["1"] * axes, "key"])
        yield (
            f"its masks are ({shape}), so that each row was asked alone",
            layout,
        )


def heads_of(fn: object) -> int:
    """Return how many heads a module says that it has, or 0."""
    for name in ("num_heads", "n_heads", "n_head", "heads", "h", "nhead"):
        heads = getattr(fn, name, None)
        if type(heads) is int and heads > 0:
            return heads
    # Behind an adapter.
    inner = getattr(fn, "yours", None)
    return heads_of(inner) if inner is not None else 0


def flat(wants: Wanted, named: dict) -> Call:
    """Give a loss one row a token, (tokens, vocab) and (tokens,)."""
    logits, target, *rest = named.values()
    return (logits.flatten(0, -2), target.flatten(), *rest), {}


def entry(i: int) -> Callable:
    """Take one of several things."""
    return lambda result, args: (
        result[i]
        if isinstance(result, tuple | list) and len(result) > i
        else result
    )


last_layer = entry(-1)


def behind_adapter(inner: Guarded) -> Form:
    """Return the form that calls what an adapter stands before."""
    form = inner.form or Form(tuple(inner.component.parameters))
    return Form(
        form.parameters,
        whole=lambda fn, args: form(inner.fn, args),
        no_mask=form.no_mask,
    )


FIRST = ("multihead", "encoder", "add_positions", "causal_attention",
         "language_model", "translation_model")  # fmt: skip
