"""What contracts raise, draw and compare with."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

__all__ = [
    "TOLERANCE",
    "Broken",
    "after",
    "draw",
    "finite",
    "furthest",
    "gaps",
    "gradients",
    "is_float",
    "number",
    "other_inputs",
    "place",
    "require_half_precision",
    "same",
    "seeded",
    "tensors_in",
    "weighed",
]

TOLERANCE = 1e-4
"""Above any rounding in float32, far below what a mistake changes."""


class Broken(Exception):
    """A contract does not hold.

    Attributes:
        message: The likely mistake, and the place.
        got: The learner's tensor, if there is one to show.
        expected: What it should have been.
        axes: Words for the last axes of both, if not the component's.
        cause: What other contracts may break of too; said only once.
        at: The index that the message names, if it is not where the two
            differ most.
        level: "fault", "risk" or "note"; by default what the contract declares.
        why: Why it is no fault, if it is none.
    """

    def __init__(
        self,
        message: str,
        got: Tensor | None = None,
        expected: Tensor | None = None,
        axes: tuple[str, ...] = (),
        cause: str = "",
        at: tuple[int, ...] = (),
        level: str = "",
        why: str = "",
    ):
        super().__init__(message)
        self.message, self.cause = message, cause or message
        self.got, self.expected, self.axes = got, expected, axes
        self.at, self.level, self.why = at, level, why


class NotTried(Exception):
    """A contract that this code gives no chance to be tried; it says why."""


def after(*earlier: Callable) -> Callable:
    """Have a contract report what breaks ``earlier`` ones, if both break.

    Its own message may then point at what is in order. An earlier one that is
    a mere note explains nothing.
    """

    def decorate(contract: Callable) -> Callable:
        @functools.wraps(contract)
        def with_earlier(fn) -> None:
            try:
                contract(fn)
            except Broken:
                for other in earlier:
                    if fn.takes_no_mask and hasattr(other, "sends_masks"):
                        continue
                    try:
                        other(fn)
                    except Broken as cause:
                        if cause.level != "note":
                            raise
                raise

        return with_earlier

    return decorate


class Shift:
    """By how much every seed of the contracts is moved: 0 but in tests."""

    # Of the process, not of a thread: contracts run in one of their own.
    by = 0


@contextlib.contextmanager
def other_inputs(series: int) -> Iterator[None]:
    """Have contracts draw other numbers inside the block; 0 are the usual.

    A contract that holds for lucky numbers only is found so.
    """
    before, Shift.by = Shift.by, 10_000 * series
    try:
        yield
    finally:
        Shift.by = before


def seeded(seed: int) -> torch.Generator:
    """Make the generator a contract draws with; torch's own is not touched."""
    return torch.Generator().manual_seed(seed + Shift.by)


def draw(*shape: int, seed: int) -> Tensor:
    """Draw normal numbers, always the same ones."""
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float32)


def gaps(got: Tensor, expected: Tensor) -> Tensor:
    """Measure the distance in units of 1 + |expected|; NaN is ∞."""
    got, expected = got.detach().double(), expected.detach().double()
    gap = (got - expected).abs() / (1 + expected.abs())
    return gap.masked_fill(got == expected, 0).nan_to_num(torch.inf)


def furthest(
    got: Tensor, expected: Tensor, tolerance: float = TOLERANCE
) -> tuple[int, ...] | None:
    """Find the index at which two tensors differ most; None if they agree."""
    gap = gaps(got, expected)
    if gap.max() <= tolerance:
        return None
    # Not ``torch.unravel_index``, which imports SymPy: 0.3 seconds.
    flat, index = int(gap.argmax()), []
    for size in reversed(gap.shape):
        flat, at = divmod(flat, size)
        index.append(at)
    return tuple(reversed(index))


def place(index: tuple[int, ...], axes: tuple[str, ...]) -> str:
    """Write an index in words: ``batch 0, row 2, key 3``."""
    axes = axes[-len(index) :] if index else ()
    lead = index[: len(index) - len(axes)]
    names = ("batch", "head") if len(lead) < 3 else ()
    words = [f"{n} {i}" for n, i in zip(names, lead, strict=False)]
    if lead and not names:
        words = [f"batch {lead}"]
    tail = zip(axes, index[len(lead) :], strict=True)
    return ", ".join([*words, *(f"{n} {i}" for n, i in tail)])


def number(x: Tensor) -> str:
    """Write four digits, which tell apart what the tolerance tells apart."""
    if x.dtype == torch.bool:
        return str(x.item())
    words = {"nan": "NaN", "inf": "∞", "-inf": "-∞"}
    return words.get(str(x.item()), f"{x.item():.4g}")


def same(
    fn,
    got: Tensor,
    expected: Tensor,
    why: str,
    tolerance: float = TOLERANCE,
    cause: str = "",
) -> None:
    """Raise Broken with ``why`` and the place if the tensors differ."""
    index = furthest(got, expected, tolerance)
    if index is not None:
        where = place(index, fn.component.axes)
        yours, right = number(got[index]), number(expected[index])
        found = (
            f"At {where} yours is {yours}, expected {right}."
            if where
            else f"Yours is {yours}, expected {right}."
        )
        raise Broken(
            f"{why} {found}",
            got,
            expected,
            cause=cause,
        )


def finite(
    fn, got: Tensor, why: str, expected: Tensor | None = None, cause: str = ""
) -> None:
    """Raise Broken with ``why`` and the place if a number is NaN or ±∞."""
    wrong = ~got.detach().isfinite()
    if wrong.any():
        index = tuple(wrong.nonzero()[0].tolist())
        raise Broken(
            f"{place(index, fn.component.axes).capitalize() or 'It'} is "
            f"{number(got[index])}. {why}",
            got,
            expected,
            cause=cause,
        )


def weighed(pairs: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """Sum results times what comes from above: their gradient is just that.

    PyTorch takes weights of its own, too, and then imports SymPy: 0.3 seconds.
    """
    return sum((result * up).sum() for result, up in pairs)


def gradients(
    fn: Callable, args: tuple, upstream: Sequence[Tensor]
) -> tuple[Tensor | None, ...] | None:
    """Compute the gradient of ``Σ (result * upstream).sum()`` by each float.

    None instead of a gradient where none arrives, and None alone where the
    result has no gradient at all.
    """
    args = [a.clone().requires_grad_() if is_float(a) else a for a in args]
    results = tensors_in(fn(*args))
    pairs = zip(results, upstream, strict=True)
    pairs = [(r, up) for r, up in pairs if r.requires_grad]
    if not pairs:
        return None
    leaves = [a for a in args if is_float(a)]
    try:
        return torch.autograd.grad(weighed(pairs), leaves, allow_unused=True)
    except RuntimeError as error:
        said = str(error).partition(":")[0]
        raise Broken(
            f"backward() raised RuntimeError: {said}. Does a line change a "
            "tensor in place (`/=`, `x[...] =`) that autograd needs?"
        ) from None


def tensors_in(result: object) -> list[Tensor]:
    """Return the tensors of a result: itself, or those in a tuple or list."""
    several = result if isinstance(result, tuple | list) else (result,)
    return [x for x in several if isinstance(x, Tensor)]


def is_float(x: object) -> bool:
    """Tell whether ``x`` is a tensor that may have a gradient."""
    return isinstance(x, Tensor) and x.is_floating_point()


def require_half_precision(fn, *args) -> None:
    """Raise Broken unless ``fn`` works in float16 and in bfloat16."""
    for dtype in (torch.float16, torch.bfloat16):
        small = [a.to(dtype) if is_float(a) else a for a in args]
        exact = [a.float() if is_float(a) else a for a in small]
        expected = fn(*exact)
        got = fn.raw(*small)
        name = str(dtype).removeprefix("torch.")
        finite(fn, got, why_not_finite(fn, small, name), expected)
        # bfloat16 has eight bits: a score of 4 is known to 1/64 only.
        why = f"{name} gives another result than float32."
        same(fn, got, expected, why, 0.05)


def why_not_finite(fn, args: list, name: str) -> str:
    """Name the likely reason for NaN and ∞ in a small number type."""
    masked = any(isinstance(a, Tensor) and a.dtype == torch.bool for a in args)
    zeros = [0 * a if is_float(a) else a for a in args]
    if masked and not fn.raw(*zeros).isfinite().all():
        return (
            f"Without any score it is so too: a mask times -1e9 is -∞ in {name}"
            ", and 0 times -∞ is NaN. Use `masked_fill` with "
            "`torch.finfo(scores.dtype).min`."
        )
    return f"In {name} `exp` overflows early: subtract the row's largest."
