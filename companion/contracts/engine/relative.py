"""What knows positions inside, judged as if it knew none.

Equal numbers for all distances change no softmax. So what is left is attention
that knows no order, of which the contracts know more. A table of positions that
an encoder adds is made equal likewise, and a convolution is silenced.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy

from companion.contracts.engine.compare import Broken, draw, furthest
from companion.contracts.engine.families import (
    DISTANCES,
    PLACES,
    UNDER_A_MASK,
    keeps_order,
)
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.levels import FAULT, NOTE, RISK
from companion.contracts.engine.modules.common import (
    last_part,
    module_kept,
    modules_behind,
    watched,
)
from companion.contracts.engine.report import Report

__all__ = [
    "CONVOLVES",
    "NEIGHBOURS",
    "WITHOUT_PLACES",
    "by_sinusoids",
    "orders_inside",
    "require_far_distances",
    "unless_a_convolution_sees_it",
    "with_equal_distances",
]

NAMES = re.compile(
    r"(?i)(.*\.)?(?P<own>([^.]*_)?(rel|relative|rpe|distance)\w*(\.weight)?)"
)
"""What learned numbers for each distance are called."""


def with_equal_distances(
    fn: object, report: Report, judged: Callable[[], Report]
) -> Report:
    """Judge attention with equal numbers for all distances, if it learns some.

    Args:
        fn: What ``check`` was given.
        report: What was found as it is.
        judged: Judges it once more.

    Returns:
        What was found with equal numbers, faults too; but ``report`` if there
        are none, or if they make wrong what was right, and so are for
        something else.
    """
    counts = any(
        f.level == FAULT or f.cause in (DISTANCES, PLACES, UNDER_A_MASK)
        for f in report.failures
    )
    if report.component != "multihead" or not counts:
        return report
    with made_equal(fn) as name:
        # Whatever there is to find has to be found while they are equal.
        other = judged().whole() if name else report
    if not name:
        return report
    if not other.passed:
        usual = report.whole()
        right = {*usual.held, *(f.contract for f in usual.notes)}
        if other.untried or right & {f.contract for f in other.faults}:
            return report
    words = f"`{name}` was the same for all distances"
    return replace(other, assumed=(*other.assumed, words))


@contextlib.contextmanager
def made_equal(fn: object) -> Iterator[str]:
    """Make numbers for distances equal, and put them back; say their name.

    Not zeros, for what is zero is moved while it is checked.
    """
    modules, found = [], []
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        modules = modules_behind(fn)
        found = numbers_for_distances(modules)
    with contextlib.ExitStack() as kept:
        for module in modules if found else []:
            kept.enter_context(module_kept(module))
        for _, x in found:
            x.data.fill_(1.0)
        yield found[0][0] if found else ""


def numbers_for_distances(modules: list[nn.Module]) -> list[tuple[str, Tensor]]:
    """List the learned numbers for each distance, with their names."""
    return [
        (match["own"], x)
        for module in modules
        for name, x in module.named_parameters()
        if (match := NAMES.fullmatch(name)) and not is_lazy(x)
    ]


CONVOLVES = (
    "`{}` is a convolution over positions: reordering them changes their rows, "
    "and without it it does not."
)
NEIGHBOURS = "A convolution is to see neighbours, as in a Conformer."

FAR, MOST_BUCKETS = 512, 64

NO_ROW = (
    "Of {} positions it raises IndexError, and of {} it does not: a distance "
    "asks `{}` for a row that it does not have. Are far distances kept within "
    "the rows of their own direction?"
)
SO_LONG = "It comes where a sentence is that long, and not before."


def require_far_distances(fn: Guarded, width: int) -> None:
    """Raise Broken if a table of buckets lacks a row for far distances.

    What takes more than twice as many positions as its table has rows puts
    distances into buckets, as a T5 does, and takes any number of positions.

    Args:
        fn: Attention that is called without a mask.
        width: How wide its vectors are.
    """
    for name, rows in buckets_of(fn):
        few = 2 * rows + 3
        try:
            fn.raw(draw(1, few, width, seed=229))
        except Broken:
            continue
        try:
            fn.raw(draw(1, FAR, width, seed=233))
        except Raised as raised:
            if raised.cause.startswith("IndexError"):
                says = NO_ROW.format(FAR, few, name)
                raise Broken(says, level=RISK, why=SO_LONG) from None


def buckets_of(fn: Guarded) -> list[tuple[str, int]]:
    """List tables of few rows for distances: their names, how many rows."""
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        found = numbers_for_distances(modules_behind(fn.given))
        rows = [(n.removesuffix(".weight"), max(x.shape)) for n, x in found]
        return [(name, n) for name, n in rows if n <= MOST_BUCKETS]
    return []


def orders_inside(fn: Guarded, x: Tensor) -> tuple[str, str, str]:
    """Name what makes an encoder know an order, if that explains all of it.

    Where all positions get the same row of a table, and a convolution says
    nothing, an encoder knows no order. It still does if heads and positions
    are mixed up. Beside a convolution all distances get the same numbers too.

    Args:
        fn: An encoder that knows an order.
        x: Its vectors.

    Returns:
        The name of a table of positions, that of a convolution, and that of
        numbers for distances beside it; nothing for what there is not, or for
        what does not explain it.
    """
    tables: dict[str, Tensor] = {}
    kernels: dict[str, Tensor] = {}
    distances: dict[str, Tensor] = {}
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        modules = modules_behind(fn.given)
        kernels = kernels_in(modules)
        tables = {
            name: rows
            for name, rows in tables_in(modules).items()
            if counts_its_first_rows(fn, x, rows)
        }
        if kernels and not tables:
            distances = {n: d.data for n, d in numbers_for_distances(modules)}
    with contextlib.ExitStack() as kept:
        for rows in tables.values():
            kept.enter_context(put_back(rows))
            rows.copy_(rows[:1].clone().expand_as(rows))
        for kernel in kernels.values():
            kept.enter_context(put_back(kernel))
            kernel.zero_()
        for numbers in distances.values():
            kept.enter_context(put_back(numbers))
            numbers.fill_(1.0)
        try:
            explained = (tables or kernels) and keeps_order(fn, x)
        except Broken:
            explained = False
    if not explained:
        return "", "", ""
    return first_of(tables), first_of(kernels), first_of(distances)


PAST_THE_MASK = (
    "`{}` is a convolution over positions beside the attention, and sees what "
    "the mask hides; without it no row does."
)
NOTHING_HIDDEN = (
    "It is right where all may be seen, as in a picture; a mask of padding, or "
    "a causal one, has to reach the convolution too."
)


def unless_a_convolution_sees_it(contract: Callable) -> Callable:
    """Make a risk of what holds once no convolution stands beside it."""

    @functools.wraps(contract)
    def told(fn: Guarded) -> None:
        try:
            contract(fn)
        except Broken as broken:
            kernels: dict[str, Tensor] = {}
            # What is given may be anything, and break whoever looks into it.
            with contextlib.suppress(Exception):
                kernels = kernels_in(modules_behind(fn.given))
            if not kernels:
                raise
            with contextlib.ExitStack() as kept:
                for kernel in kernels.values():
                    kept.enter_context(put_back(kernel))
                    kernel.zero_()
                try:
                    contract(fn)
                except Broken:
                    raise broken from None
            says = PAST_THE_MASK.format(first_of(kernels))
            raise Broken(
                says, cause=PAST_THE_MASK, level=RISK, why=NOTHING_HIDDEN
            ) from None

    return told


SINUSOIDS = (
    "It adds sinusoids to `x`: reordering the positions changes their rows, "
    "and without these it does not."
)
WITHOUT_PLACES = "It is right if `x` comes without positions."


def by_sinusoids(fn: Guarded, x: Tensor, broken: Broken) -> Broken | None:
    """Make a note of a lost order that sinusoids added inside explain."""
    if not adds_sinusoids(fn, x):
        return None
    return Broken(
        SINUSOIDS,
        broken.got,
        broken.expected,
        cause=SINUSOIDS,
        level=NOTE,
        why=WITHOUT_PLACES,
    )


def adds_sinusoids(fn: Guarded, x: Tensor) -> bool:
    """Tell whether sinusoids are added inside, and no order is known without.

    What goes into a module inside is then ``x``, and more that depends on the
    position alone. Sines and cosines of the same angles have rows of one
    length, in whatever layout.
    """
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        added = added_to_positions(fn, x)
        lengths = added.norm(dim=-1) if added is not None else x[..., 0]
        if furthest(lengths, lengths[:1, :1].expand_as(lengths)) is None:
            order = torch.arange(x.shape[1]).flip(0)
            got, usual = (fn.raw(y - added) for y in (x[:, order], x))
            return furthest(got, usual[:, order]) is None
    return False


def added_to_positions(fn: Guarded, x: Tensor) -> Tensor | None:
    """Return what is added to the positions of ``x``, whatever stands there."""
    modules = modules_behind(fn.given)
    inside = [y for m in modules for y in m.modules() if y is not m]
    given: list[Tensor] = []

    def note(part: nn.Module, args: tuple, words: dict) -> None:
        vectors = [y for y in args if isinstance(y, Tensor)]
        given.extend(y for y in vectors if y.shape == x.shape)

    moved = draw(*x.shape, seed=239)
    calls = []
    with watched(inside, note):
        for vectors in (x, x + moved):
            fn.raw(vectors)
            calls.append([*given])
            given.clear()
    for one, other in zip(*calls, strict=True):
        # A model may multiply by √d first.
        times = ((other - one) * moved).sum() / (moved**2).sum()
        added = one / times - x
        same_for_all = added[:1].expand_as(added)
        if furthest(other - one, times * moved) is not None:
            return None  # From here on there is no more to be heard.
        if furthest(added, 0 * added) is not None:
            alike = furthest(added, same_for_all) is None
            return added if alike else None
    return None


def first_of(named: dict[str, Tensor]) -> str:
    """Return the first name, as its writer gave it."""
    return last_part(next(iter(named), "").removesuffix(".weight"))


def kernels_in(modules: list[nn.Module]) -> dict[str, Tensor]:
    """List the weights of convolutions that see more than one place."""
    return {
        name: part.weight.data
        for module in modules
        for name, part in module.named_modules()
        if isinstance(part, _ConvNd)
        and max(part.kernel_size) > 1
        and not is_lazy(part.weight)
    }


def tables_in(modules: list[nn.Module]) -> dict[str, Tensor]:
    """List what may be a table of positions, a row for each; also unregistered.

    It shares its memory with the module.
    """
    held = {
        f"{prefix}.{name}".lstrip("."): x
        for module in modules
        for prefix, part in module.named_modules()
        for name, x in (
            *part.named_parameters(recurse=False),
            *part.named_buffers(recurse=False),
            *vars(part).items(),
        )
        if isinstance(x, Tensor) and not is_lazy(x) and x.is_floating_point()
    }
    found = {name: x.data.squeeze() for name, x in held.items()}
    return {name: x for name, x in found.items() if x.ndim == 2}


def counts_its_first_rows(fn: Guarded, x: Tensor, rows: Tensor) -> bool:
    """Tell whether only the first rows of a table count, as of positions.

    Of a matrix that multiplies, all do.
    """
    few, usual = 2 * x.shape[1], fn.raw(x)
    if len(rows) <= few or bool((rows == rows[:1]).all()):
        return False
    moves = []
    for part in (rows[:few], rows[few:]):
        with put_back(rows):
            # Unlike numbers, for a norm or a softmax loses a constant.
            part += draw(*part.shape, seed=227)
            moves.append(furthest(fn.raw(x), usual) is not None)
    return moves == [True, False]


@contextlib.contextmanager
def put_back(x: Tensor) -> Iterator[None]:
    """Undo what is done to a tensor meanwhile."""
    before = x.clone()
    try:
        yield
    finally:
        x.copy_(before)
