"""Attention that is given the tables by which it turns queries and keys.

A model makes these once, and hands them to each of its layers: cosines and
sines, or complex numbers. Nobody says in which layout, so that all usual ones
are tried; the right one leaves scores that the distance alone decides.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import draw
from companion.contracts.engine.forms.rotations import (
    COSINES,
    GOT_ANGLES,
    GOT_TABLES,
    LAYOUTS,
    SHAPES,
    SINES,
    angles_of,
    shaped,
)
from companion.contracts.engine.modules.around import Around
from companion.contracts.positions.turned import (
    KEYS_ONLY,
    QUERIES_ONLY,
    VALUES,
    hear_turning,
    turned_by_distance,
)

__all__ = ["GivenTables", "given_tables", "takes_tables"]

SEQ = 7
"""So long is no other axis."""

WIDEST, MOST_WIDTHS = 4096, 8
OF_A_HEAD = re.compile(r"(?i)head_?(dim|size|width)|(d|dim)_?(k|head)$")
"""What it keeps as the width of a head, how wide, and how many are tried."""

TABLE = re.compile(
    r"(?i)(\w+_)?freqs?(_?(cis|complex|tables?))?|(\w+_)?cis"
    r"|(rope|rotary|pos(ition(al)?)?)_?(cos_?sin|cache|tables?|(pos_?)?"
    r"emb(edding)?s?)|cos_?sin|sin_?cos|rope|rotary"
)
"""What a single argument with all tables is called."""

PLACES = re.compile(
    r"(?i)((input|token)_?)?(pos(itions?)?|position_?ids|pos_?ids)"
)
STARTS = re.compile(r"(?i)(start|cur(rent)?|cache)_?pos(ition)?|start|offset")
MASKS_AND_CACHES = re.compile(r"(?i).*(mask|cache|past).*")
"""What else such attention may want, and may be given as nothing."""

Tables = Callable[[int], dict[str, Any]]
"""From a number of positions, what is given, by name."""


class GivenTables(Around):
    """Hands attention its tables, so that it takes vectors, and perhaps masks.

    Args:
        module: The attention.
        tables: What it is given for so many positions.
        said: In words, how.
    """

    def __init__(self, module: nn.Module, tables: Tables, said: str):
        super().__init__(module, said)
        self.tables = tables
        self.forward = self.like(module, self.handed, tables(SEQ))

    def handed(self, *args: Any, **named: Any) -> Any:
        """Call the attention with tables for so many positions as there are."""
        bound = inspect.signature(self.forward).bind(*args, **named).arguments
        length = next(iter(bound.values())).shape[1]
        return self.module(**bound, **self.tables(length))


def given_tables(module: nn.Module, widths: list[int]) -> GivenTables | None:
    """Return attention with its tables, if it wants some; None otherwise.

    Args:
        module: What may be such attention.
        widths: How wide its vectors may be.
    """
    with torch.no_grad():
        for fn, call in taken(module, widths):
            if turned_by_distance(call, SEQ):
                return fn
        for fn, call in taken(module, widths):
            # In no layout would these be right.
            if hear_turning(call, SEQ) in (KEYS_ONLY, QUERIES_ONLY, VALUES):
                return fn
    return None


def takes_tables(module: nn.Module, widths: list[int]) -> bool:
    """Tell whether it comes back with tables in some layout, right or not."""
    return any(True for _ in taken(module, widths))


def taken(
    module: nn.Module, widths: list[int]
) -> Iterator[tuple[GivenTables, Callable[[], object]]]:
    """List the ways to give tables that it takes, with a call for each."""
    for named, said in ways_to_give(module):
        for width in widths:
            x = draw(2, 1, width, seed=7).expand(-1, SEQ, -1).contiguous()
            for head in widths_of_heads(module):
                tables = partial(for_positions, named, head)
                fn = GivenTables.named_as(module)(module, tables, said).eval()
                call = partial(answer, fn, x)
                if call() is not None:
                    yield fn, call


def answer(fn: nn.Module, x: Tensor) -> Tensor | None:
    """Return what comes back for vectors alone, or with a mask of nothing."""
    parameters = [*inspect.signature(fn.forward).parameters.values()][1:]
    wants = [p.name for p in parameters if p.default is p.empty]
    may = torch.ones(1, 1, SEQ, SEQ, dtype=torch.bool)
    for mask in (None, may) if wants else (None,):
        try:
            got = fn(x, **dict.fromkeys(wants, mask))
        except Exception:
            continue
        while isinstance(got, tuple | list) and got:
            got = got[0]
        if isinstance(got, Tensor) and got.shape == x.shape:
            return got
    return None


def ways_to_give(
    module: nn.Module,
) -> Iterator[tuple[Callable[[Tensor], dict[str, Any]], str]]:
    """List what may be given for angles, by name, and what is said of it.

    Nothing, where something else is wanted that cannot be known.
    """
    parameters = inspect.signature(module.forward).parameters.values()
    wants = [p.name for p in parameters if p.default is p.empty][1:]
    cosines = [n for n in wants if COSINES.fullmatch(n)]
    sines = [n for n in wants if SINES.fullmatch(n)]
    tables = [n for n in wants if TABLE.fullmatch(n)]
    others = [n for n in wants if n not in (*cosines, *sines, *tables)]
    starts = dict.fromkeys(filter(STARTS.fullmatch, others), 0)
    places = [*filter(PLACES.fullmatch, others)]
    nothing = [*filter(MASKS_AND_CACHES.fullmatch, others)]
    counts = len(cosines), len(sines), len(tables)
    wanted_so = KNOWN.get(counts)
    unknown = {*others} - {*starts, *places, *nothing}
    if wanted_so is None or unknown or not (places or any(counts)):
        return

    def with_others(make: Made, lead: tuple, angles: Tensor) -> dict[str, Any]:
        at = torch.arange(len(angles))[lead]
        made = dict(zip((*cosines, *sines, *tables), make(angles), strict=True))
        return made | starts | dict.fromkeys(places, at)

    for make, said in wanted_so():
        for lead in ((None,), ()) if places else ((None,),):
            yield partial(with_others, make, lead), said


Made = Callable[[Tensor], tuple]
"""From angles (seq, head_dim / 2), what is given."""


def pairs_of_tables() -> Iterator[tuple[Made, str]]:
    """List how cosines and sines may be given, and what is said of it."""
    for told, layout in LAYOUTS.items():
        for axes in SHAPES:
            made = partial(cosines_and_sines, layout, axes)
            yield made, GOT_TABLES.format(told)


def single_tables() -> Iterator[tuple[Made, str]]:
    """List what may stand in a single argument, and what is said of it."""
    for axes in SHAPES:
        yield partial(complex_numbers, axes), COMPLEX
    for made, said in pairs_of_tables():
        yield partial(in_one, made), said
    for told, layout in LAYOUTS.items():
        for axes in SHAPES:
            yield partial(angles_alone, layout, axes), GOT_ANGLES.format(told)
    yield side_by_side, GOT_TABLES.format("side by side")


def places_alone() -> Iterator[tuple[Made, str]]:
    """List that no table is given, to what turns by the positions that it gets.

    Nothing is made of the angles.
    """
    yield nothing_of, "it got the positions 0, 1, 2, …"


def nothing_of(angles: Tensor) -> tuple:
    """Return no table."""
    return ()


KNOWN = {
    (1, 1, 0): pairs_of_tables,
    (0, 0, 1): single_tables,
    (0, 0, 0): places_alone,
}
"""How many tables of cosines, of sines, and of both in one -> what they are."""

COMPLEX = "it got complex numbers that turn, of base 10000"


def cosines_and_sines(layout: Callable, axes: tuple, angles: Tensor) -> tuple:
    """Return two tables."""
    written = shaped(layout(angles), axes)
    return written.cos(), written.sin()


def in_one(made: Made, angles: Tensor) -> tuple:
    """Return two tables as a single argument."""
    return (made(angles),)


def complex_numbers(axes: tuple[int, ...], angles: Tensor) -> tuple:
    """Return a table of complex numbers of modulus 1."""
    return (shaped(torch.polar(torch.ones_like(angles), angles), axes),)


def angles_alone(layout: Callable, axes: tuple, angles: Tensor) -> tuple:
    """Return a table of angles."""
    return (shaped(layout(angles), axes),)


def side_by_side(angles: Tensor) -> tuple:
    """Return a table in whose last axis a cosine and its sine stand."""
    return (torch.stack([angles.cos(), angles.sin()], -1),)


def for_positions(
    named: Callable[[Tensor], dict[str, Any]], width: int, length: int
) -> dict[str, Any]:
    """Return what is given for so many positions."""
    return named(angles_of(torch.arange(length), width))


def widths_of_heads(module: nn.Module) -> list[int]:
    """List how wide its heads may be, likely widths first.

    A number that it keeps, or a width that it keeps, shared among so many.
    """
    kept = {
        name: n
        for part in module.modules()
        for name, n in vars(part).items()
        if type(n) is int and 1 < n <= WIDEST
    }
    named = [n for name, n in kept.items() if OF_A_HEAD.search(name)]
    shared = [
        d // h for d in kept.values() for h in kept.values() if d % h == 0
    ]
    all_of_them = dict.fromkeys([*named, *shared, *kept.values()])
    return [n for n in all_of_them if n > 1 and n % 2 == 0][:MOST_WIDTHS]
