"""Calls of what turns vectors: by positions, or by tables that it is given."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from companion.contracts.engine.forms.signature import Call, Wanted, filled

__all__ = [
    "ANGLES",
    "COSINES",
    "GOT_ANGLES",
    "GOT_TABLES",
    "HEADS_FIRST",
    "LAYOUTS",
    "SHAPES",
    "SINES",
    "TABLES",
    "angles_of",
    "behind",
    "in_turn_and_heads_first",
    "positions_each",
    "queries_and_keys",
    "queries_keys_and_each",
    "shaped",
    "stacked_and_heads_first",
    "table_and_heads_first",
    "table_in_turn",
    "takes_table",
    "with_complex_table",
    "with_heads",
    "with_stacked_table",
]


def positions_each(wants: Wanted, named: dict) -> Call | None:
    """Give each sentence positions of its own."""
    x, positions = named["x"], named["positions"]
    # Two axes are one sentence, without an axis for it.
    count = len(x) if x.ndim > 2 else 1
    call = (x, positions.expand(count, *positions.shape)), {}
    return filled(wants, call, named)


def queries_and_keys(wants: Wanted, named: dict) -> Call | None:
    """Give what turns queries and keys at once the same for both."""
    call = (named["x"], named["x"], named["positions"]), {}
    return filled(wants, call, named)


def queries_keys_and_each(wants: Wanted, named: dict) -> Call | None:
    """Give both the same, and each sentence positions of its own."""
    x, positions = with_heads(named["x"]), named["positions"]
    each = positions.expand(len(x), *positions.shape)
    return filled(wants, ((x, x, each), {}), named)


def with_heads(x: Tensor) -> Tensor:
    """Give vectors the axes (batch, head, seq, head_dim)."""
    four = x.reshape(-1, *x.shape[-3:]) if x.ndim > 3 else x
    return four[(None,) * (4 - four.ndim)]


def behind(wants: Wanted, named: dict) -> Call | None:
    """Give vectors with their heads behind the positions."""
    four = with_heads(named["x"]).transpose(1, 2)
    return filled(wants, ((four, named["positions"]), {}), named)


def takes_table(wants: Wanted) -> bool:
    """Tell whether a rotation says that it wants tables, by their names."""
    several = vectors_before_tables(wants) + vectors_before_a_pair(wants)
    return vectors_before_a_table(wants) + several > 0


def vectors_before_a_table(wants: Wanted) -> int:
    """Return how many arguments a rotation takes before its table, if any.

    What follows, such as a device, is left at its default.
    """
    places = range(1, len(wants.names))
    found = [i for i in places if "freq" in wants.names[i]]
    required = [i for i in found if wants.names[i] in wants.required]
    last = [i for i in found if i == len(wants.names) - 1]
    return next(iter(required + last), 0)


def with_complex_table(wants: Wanted, named: dict) -> Call | None:
    """Give what turns complex numbers a table of them, (seq, head_dim / 2).

    Its vectors have their heads behind the positions.
    """
    return turned_by_table(wants, named, with_heads(named["x"]).transpose(1, 2))


def table_and_heads_first(wants: Wanted, named: dict) -> Call | None:
    """Give the same, and vectors with their heads before the positions."""
    return turned_by_table(wants, named, with_heads(named["x"]))


def with_stacked_table(wants: Wanted, named: dict) -> Call | None:
    """Give cosines and sines in one table, (seq, head_dim / 2, 2).

    Its vectors have their heads behind the positions.
    """
    vectors = with_heads(named["x"]).transpose(1, 2)
    return turned_by_table(wants, named, vectors, torch.view_as_real)


def stacked_and_heads_first(wants: Wanted, named: dict) -> Call | None:
    """Give the same, and vectors with their heads before the positions."""
    vectors = with_heads(named["x"])
    return turned_by_table(wants, named, vectors, torch.view_as_real)


def table_in_turn(wants: Wanted, named: dict) -> Call | None:
    """Give cosines and sines in turn in one table, (seq, head_dim)."""
    vectors = with_heads(named["x"]).transpose(1, 2)
    return turned_by_table(wants, named, vectors, in_turn)


def in_turn_and_heads_first(wants: Wanted, named: dict) -> Call | None:
    """Give the same, and vectors with their heads before the positions."""
    return turned_by_table(wants, named, with_heads(named["x"]), in_turn)


def in_turn(table: Tensor) -> Tensor:
    """Write a cosine and a sine side by side for each pair."""
    return torch.view_as_real(table).flatten(-2)


def turned_by_table(
    wants: Wanted,
    named: dict,
    vectors: Tensor,
    layout: Callable[[Tensor], Tensor] = lambda table: table,
) -> Call | None:
    """Give vectors and a table of complex numbers, of base 10000."""
    count = vectors_before_a_table(wants)
    if not count:
        return None
    angles = angles_of(named["positions"], vectors.shape[-1])
    table = torch.polar(torch.ones_like(angles), angles)
    call = (*(vectors,) * count, layout(table)), {}
    return filled(wants, call, named)


def angles_of(positions: Tensor, width: int) -> Tensor:
    """Return the angles (seq, width / 2) of positions, for base 10000."""
    even = torch.arange(0, width, 2) / width
    return torch.outer(positions.float(), 10000.0**-even)


HEADS_FIRST = (
    table_and_heads_first,
    stacked_and_heads_first,
    in_turn_and_heads_first,
    queries_keys_and_each,
)
"""Calls with vectors (batch, head, seq, head_dim), whatever their axes were."""


COSINES = re.compile(r"(?i)(\w*_)?cos(ines?|_?\w*)?")


SINES = re.compile(r"(?i)(\w*_)?sin(es?|_?\w*)?")
"""What a rotation calls the two tables that it is given."""


def vectors_before_tables(wants: Wanted) -> int:
    """Return how many arguments a rotation takes before its two, if any."""
    pairs = enumerate(itertools.pairwise(wants.names))
    return next(
        (
            i
            for i, (one, two) in pairs
            if (COSINES.fullmatch(one) and SINES.fullmatch(two))
            or (SINES.fullmatch(one) and COSINES.fullmatch(two))
        ),
        0,
    )


PAIR = re.compile(r"(?i)(cos_?sin|sin_?cos)s?")
"""What it calls both in one, in this order."""


def vectors_before_a_pair(wants: Wanted) -> int:
    """Return how many arguments it takes before both in one, if any."""
    found = (i for i, name in enumerate(wants.names) if PAIR.fullmatch(name))
    return next(found, 0)


@dataclass(frozen=True)
class ByTables:
    """Gives what turns vectors the cosines and sines for it, of base 10000.

    Attributes:
        layout: From the angles (seq, head_dim / 2), the table.
        axes: Where axes of size 1 stand in it.
        first: Whether the heads stand before the positions.
    """

    layout: Callable[[Tensor], Tensor]
    axes: tuple[int, ...]
    first: bool

    def __call__(self, wants: Wanted, named: dict) -> Call | None:
        """Return the call; None, if tables are not what it takes."""
        pair = vectors_before_a_pair(wants)
        count = pair or vectors_before_tables(wants)
        if not count:
            return None
        vectors, positions = with_heads(named["x"]), named["positions"]
        if not self.first:
            vectors = vectors.transpose(1, 2)
        more = wants.names[count + (1 if pair else 2) :]
        more = [n for n in more if n in wants.required]
        at = positions
        if more and "pos" in more[0]:  # It looks them up in the tables.
            at = torch.arange(int(positions.max()) + 1)
        written = self.layout(angles_of(at, vectors.shape[-1]))
        angles = shaped(written, self.axes)
        tables = angles.cos(), angles.sin()
        if "sin" in wants.names[count].lower().partition("cos")[0]:
            tables = tables[::-1]
        args = *(vectors,) * count, *((tables,) if pair else tables)
        words = {} if at is positions else {more[0]: positions[None]}
        return filled(wants, (args, words), named)


def shaped(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Insert axes of size 1."""
    for axis in axes:
        x = x.unsqueeze(axis)
    return x


def both_halves(angles: Tensor) -> Tensor:
    """Write the angles out for two halves that are alike."""
    return torch.cat([angles, angles], -1)


def each_twice(angles: Tensor) -> Tensor:
    """Write each angle out twice in a row."""
    return angles.repeat_interleave(2, -1)


def one_a_pair(angles: Tensor) -> Tensor:
    """Leave the angles as they are."""
    return angles


@dataclass(frozen=True)
class ByAngles:
    """Gives what turns vectors the angles to turn by, of base 10000.

    Attributes:
        layout: From the angles (seq, head_dim / 2), the table.
        axes: Where axes of size 1 stand in it.
        first: Whether the heads stand before the positions.
    """

    layout: Callable[[Tensor], Tensor]
    axes: tuple[int, ...]
    first: bool

    def __call__(self, wants: Wanted, named: dict) -> Call | None:
        """Return the call; None, if a table is not what it takes."""
        vectors = with_heads(named["x"])
        if not self.first:
            vectors = vectors.transpose(1, 2)

        def laid(table: Tensor) -> Tensor:
            return shaped(self.layout(table.angle()), self.axes)

        return turned_by_table(wants, named, vectors, laid)


GOT_TABLES = "it got tables of cosines and sines, {}, of base 10000"


LAYOUTS = {
    "both halves alike": both_halves,
    "each angle twice in a row": each_twice,
    "one angle for a pair": one_a_pair,
}
"""How the angles of pairs may be written out, by what is said of it."""


SHAPES = ((), (0,), (0, 0), (1,), (0, 2))
"""Where axes of size 1 may stand in tables."""


TABLES = [
    (GOT_TABLES.format(told), ByTables(layout, axes, first=first))
    for told, layout in LAYOUTS.items()
    for first in (True, False)
    for axes in SHAPES
]
"""In which layouts and shapes a rotation may want its tables."""


GOT_ANGLES = "it got the angles to turn by, {}, of base 10000"


ANGLES = [
    (GOT_ANGLES.format(told), ByAngles(layout, axes, first=first))
    for told, layout in LAYOUTS.items()
    for first in (True, False)
    for axes in ((), (0,))
]
"""The same for angles, of which it takes the cosines and sines itself."""
