"""Tell what a module is by what it takes and returns, and judge it as that."""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn

from companion.contracts.discovery.kinds.beside_memory import (
    OF_A_LAYER,
    BesideMemory,
    keys_and_values_follow,
    layer_beside_memory,
)
from companion.contracts.discovery.kinds.calls import (
    DECODER,
    LOOKS,
    NOTHING,
    hides,
    masks_are_told,
    understood,
    widths,
)
from companion.contracts.discovery.kinds.embeddings import at_positions
from companion.contracts.discovery.kinds.ids import judged_on_ids, takes_ids
from companion.contracts.discovery.kinds.keywords import called_by_position
from companion.contracts.discovery.kinds.lone_block import hiding_nothing
from companion.contracts.discovery.kinds.narrow import filled_up, plus_rows
from companion.contracts.discovery.kinds.recognition import (
    LINEAR_MAP,
    NOTHING_COUNTS,
)
from companion.contracts.discovery.kinds.vectors import (
    judged_on_vectors,
    of_nan,
    require_no_other_kind,
)
from companion.contracts.discovery.published import by_convention
from companion.contracts.discovery.raising import POSITIONS
from companion.contracts.discovery.readings import said_by
from companion.contracts.discovery.verdict import (
    Check,
    Judged,
    NoAnswer,
    Unjudged,
    in_time,
)
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.forms.styles import BY_NAMES
from companion.contracts.engine.modules.around import Around
from companion.contracts.engine.modules.common import (
    gains_moved,
    is_lazy,
    module_kept,
    moved_from_zero,
)
from companion.contracts.positions.given_tables import (
    given_tables,
    takes_tables,
)

__all__ = ["Thrice", "judge"]


def judge(
    module: nn.Module,
    check: Check,
    near: dict | None = None,
    hints: list[int] | None = None,
    said: Callable[[], str] = str,
) -> Judged:
    """Find out what ``module`` is, and judge it as that.

    Args:
        module: It may be of any width.
        check: ``companion.contracts.check``, or a partial of it with what True
            means in masks; then no other reading is tried.
        near: What else stands in its file.
        hints: How wide its vectors may be, if it does not show.
        said: By what its model says that True hides in its masks, if it does.

    Returns:
        What it was taken for, and the report.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    if any(map(is_lazy, (*module.parameters(), *module.buffers()))):
        raise Unjudged(
            "its parameters have no shape yet: call it once, with a batch of "
            "yours, and then again"
        )
    with (
        called_by_position(module) as named,
        moved_from_zero([module]),
        gains_moved([module]) as told,
    ):
        try:
            judged = judged_as_it_is(
                module, check, near or {}, hints or [], said
            )
        except Unjudged as reason:
            if str(reason) != NOTHING:
                raise
            # What it adds may begin behind a gate of one number.
            with moved_from_zero([module], 0):
                judged = judged_as_it_is(
                    module, check, near or {}, hints or [], said
                )
    require_no_other_kind(module, judged)
    more = (BY_NAMES if named else "", told.rstrip("."))
    return replace(
        judged,
        report=by_convention(module, judged.report),
        assumed=(*judged.assumed, *filter(None, more)),
    )


def judged_as_it_is(
    module: nn.Module,
    check: Check,
    near: dict,
    hints: list[int],
    said: Callable[[], str],
) -> Judged:
    """Do what ``judge`` does, with the numbers that a module has.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        hidden = hides(check)
        if not masks_are_told(check):
            hidden = bool(said_by(module))
        try:
            module.eval()
        except Exception as error:
            raise Unjudged(f"`eval()` raised {raised_in(error)}") from None
        try:
            width, args = in_time(
                lambda: understood(module, hints, hidden=hidden)
            )
        except NoAnswer:
            raise
        except Unjudged as reason:
            named = POSITIONS.fullmatch(type(module).__name__)
            placed = in_time(lambda: at_positions(module)) if named else None
            if placed is None and in_time(lambda: takes_ids(module)):
                return judged_on_ids(module, check, reason)
            why = str(reason)
            module = placed or in_time(lambda: completed(module, why))
            if module is None:
                raise
            width, args = in_time(
                lambda: understood(module, hints, hidden=hidden)
            )
        try:
            return of_what(module, check, near, width, args, said)
        except Unjudged as reason:
            why = str(reason)
            other = in_time(lambda: in_another_way(module, why))
            if other is None:
                raise
        width, args = in_time(lambda: understood(other, hints, hidden=hidden))
        return of_what(other, check, near, width, args, said)


def of_what(
    module: nn.Module,
    check: Check,
    near: dict,
    width: int,
    args: tuple,
    said: Callable[[], str],
) -> Judged:
    """Judge what takes vectors, and tell what stands around it."""
    judged = of_nan(module, width, check) or judged_on_vectors(
        module, check, near, width, args, said
    )
    told = OF_A_LAYER if isinstance(module, BesideMemory) else ""
    return replace(judged, assumed=(*filter(None, (told,)), *judged.assumed))


def in_another_way(module: nn.Module, why: str) -> nn.Module | None:
    """Return what may be judged in place of a module, by why it is not."""
    if why == NOTHING_COUNTS:
        return plus_rows(module)
    if why == LINEAR_MAP:
        return at_positions(module)
    if DECODER in why or keys_and_values_follow(module):
        return layer_beside_memory(module)
    return hiding_nothing(module) if WANTS_A_MASK.search(why) else None


WANTS_A_MASK = re.compile(
    f"{LOOKS} causal_attention.* missing a required argument: '\\w*mask'"
)
"""What is said of causal attention that cannot do without another mask."""


class Thrice(Around):
    """Gives queries, keys and values of a layer the same vectors.

    Args:
        module: It takes three, and adds to one of them.
    """

    def __init__(self, module: nn.Module):
        super().__init__(module, AS_ONE)
        names = [*inspect.signature(module.forward).parameters]
        self.forward = self.like(module, self.thrice, names[1:3])

    def thrice(self, x: object, *args: object, **named: object) -> object:
        """Call it with ``x`` in place of three."""
        return self.module(x, x, x, *args, **named)


AS_ONE = "its queries, keys and values were the same"


IN_NO_LAYOUT = (
    "it is given tables that turn its vectors, and in no usual layout do its "
    "scores depend on the distance alone: is the rotation wrong, or the layout "
    "another one?"
)


def completed(module: nn.Module, why: str) -> nn.Module | None:
    """Return attention with the tables that turn its vectors, if it wants any.

    Or a layer of a decoder, beside a memory that stays the same; or a single
    head, whose output is filled up to the width of its input.

    Args:
        module: What takes vectors.
        why: Why it could not be called.

    Raises:
        Unjudged: It wants some, and none does what it should.
    """
    if DECODER in why:
        return layer_beside_memory(module)
    own = widths(module)
    given = given_tables(module, own)
    if given is None and takes_tables(module, own):
        raise Unjudged(IN_NO_LAYOUT)
    return given or filled_up(module) or plus_rows(module)
