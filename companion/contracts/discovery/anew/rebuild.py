"""Build a class once more, with what its contracts do not show."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import (
    SEQ,
    arranged,
    required_names,
)
from companion.contracts.discovery.kinds.calls import first, understood
from companion.contracts.discovery.kinds.vectors import A_LAYER
from companion.contracts.discovery.limits import outcome, rows
from companion.contracts.discovery.make import (
    arguments,
    make,
    no_larger,
    own_defaults,
    said_of,
)
from companion.contracts.discovery.sizes import HEAD, HEADS, WIDTH
from companion.contracts.discovery.verdict import Judged, Unjudged, in_time
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.compare import draw
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.signature import MODELS
from companion.contracts.engine.levels import NOTE, RISK
from companion.contracts.engine.modules.common import module_kept
from companion.contracts.engine.report import Failure
from companion.contracts.engine.runner import finishes, stop, thread_for
from companion.contracts.engine.universal import STAYS_ON, repeatable
from companion.contracts.positions.given_tables import (
    GivenTables,
    given_tables,
    takes_tables,
)

__all__ = [
    "ANSWERS",
    "MODELS",
    "NOT_TAKEN",
    "a_call",
    "with_dropout",
    "with_dropout_on_the_stream",
    "with_fewer_key_heads",
    "with_gradients_behind_dropout",
    "with_own_defaults",
    "with_what_is_unsaved",
]

RATE = 0.5
"""With a smaller rate a call of so few numbers may drop nothing."""


def with_dropout(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add a fault to a report if dropout stays on in evaluation.

    What was judged was built without any.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    if judged.report.untried:
        return judged
    module, said = make(kind, near, rate=RATE)
    ids = judged.component in MODELS
    plain, _ = make(kind, near)
    if not ids:
        plain, module = in_time(lambda: both_given_tables(plain, module))
    on = in_time(lambda: draws_in_evaluation(module, ids=ids))
    moves = in_time(lambda: differ_by_their_rate(plain, module, ids=ids))
    # What draws without a rate draws something else.
    on = on and not in_time(lambda: draws_in_evaluation(plain, ids=ids))
    if moves and not on:
        risk = Failure(
            RATE_COUNTS,
            f"Built as {said} and in eval mode, it computes something else "
            "than without dropout, with the same weights. Does its rate go "
            "where another argument stands?",
            level=RISK,
            why=SCALES,
            cause=RATE_COUNTS,
        )
        return replace(judged, report=judged.report.with_more(risk))
    if not on:
        return judged
    report, name = judged.report, title(repeatable)
    fault = Failure(
        name,
        f"Built as {said} and in eval mode, the second call differs: "
        f"{STAYS_ON}",
        cause=STAYS_ON,
    )
    held = [one for one in report.held if one != name]
    failures = [fault, *report.failures]
    return replace(judged, report=replace(report, held=held, failures=failures))


def both_given_tables(
    plain: nn.Module, module: nn.Module
) -> tuple[nn.Module, nn.Module]:
    """Hand two of a class the tables that turn their vectors, if they want any.

    Args:
        plain: The one that draws nothing: it shows in which layout.
        module: The other.
    """
    if a_call(plain.eval(), ids=False) is not None:
        return plain, module
    given = given_tables(plain, [WIDTH])
    if given is None:
        return plain, module
    return given, GivenTables(module, given.tables, given.said)


def draws_in_evaluation(module: nn.Module, *, ids: bool) -> bool:
    """Tell whether what a module answers in eval mode depends on what it draws.

    What differs though the same is drawn is no dropout: it keeps something.

    Args:
        module: The module.
        ids: Whether ids go in, and no vectors.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        args = a_call(module, ids=ids)
        if args is None:
            return False
        calls = (outcome(module, args, seed=seed) for seed in (0, 0, 1))
        one, again, other = (
            None if x is None else x.nan_to_num() for x in calls
        )
    if one is None or again is None or other is None:
        return False
    return torch.equal(one, again) and not torch.equal(one, other)


CARRIED = "Dropout falls on what a sub-layer adds, and on nothing else"
FALLS_ON_IT = (
    "Built as {}, it still draws in training mode where all matrices are 0, so "
    "that no sub-layer adds anything: dropout falls on what is carried past "
    "them too, as in `drop(x) + f(x)` or `drop(norm(x + f(x)))`."
)
OFTEN_SO = (
    "Some published code has it so. The paper drops what a sub-layer adds, "
    "`x + drop(f(x))`, so that what is carried stays whole."
)


def with_dropout_on_the_stream(
    judged: Judged, kind: Callable, near: dict
) -> Judged:
    """Add a note to a report if dropout falls on what a layer carries on.

    Args:
        judged: What came of it.
        kind: The class.
        near: What else stands in its file.
    """
    # A layer has no embeddings, whose sum is dropped.
    layer = judged.component == "encoder" and not judged.report.untried
    if not (layer and A_LAYER.fullmatch(kind.__name__)):
        return judged
    module, said = make(kind, near, rate=RATE)
    falls = not is_a_stack(module) and in_time(
        lambda: drops_what_is_carried(module)
    )
    if not falls:
        return judged
    note = Failure(
        CARRIED,
        FALLS_ON_IT.format(said),
        level=NOTE,
        why=OFTEN_SO,
        cause=CARRIED,
    )
    return replace(judged, report=judged.report.with_more(note))


def is_a_stack(module: nn.Module) -> bool:
    """Tell whether there are layers of an encoder in it.

    What is dropped in front of these is the sum of embeddings.
    """
    inside = (type(part).__name__ for part in [*module.modules()][1:])
    return any(LAYER_INSIDE.fullmatch(name) for name in inside)


LAYER_INSIDE = re.compile(r"(?i)\w*(encoder|transformer)_?(layer|block)")


def drops_what_is_carried(module: nn.Module) -> bool:
    """Tell whether a layer still draws where no sub-layer adds anything."""
    with torch.random.fork_rng([]), torch.no_grad():
        args = a_call(module.eval(), ids=False)
        if args is None:
            return False
        for part in module.modules():
            own = [*part.parameters(recurse=False)]
            # The gains and biases of norms stay.
            for weight in own if any(x.ndim > 1 for x in own) else ():
                weight.zero_()
        module.train()
        one, again, other = (outcome(module, args, seed=n) for n in (0, 0, 1))
    if one is None or again is None or other is None:
        return False
    return torch.equal(one, again) and not torch.equal(one, other)


IN_PLACE = re.compile("modified by an inplace operation")
ANOTHER_TENSOR = (
    "It trains with a rate of dropout: that makes another tensor of what the "
    "line changes. It raises with a rate of 0, and in eval mode."
)


def with_gradients_behind_dropout(
    judged: Judged, kind: Callable, near: dict
) -> Judged:
    """Make a risk of what is changed in place, and behind dropout need not be.

    What was judged was built without any, which returns what it is given.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    faults = [f for f in judged.report.faults if IN_PLACE.search(f.message)]
    if not faults:
        return judged
    module, _ = make(kind, near, rate=RATE)
    ids = judged.component in MODELS
    trains = in_time(lambda: has_a_gradient(module, ids=ids))
    if not trains:
        return judged
    report = judged.report.milder(faults.__contains__, ANOTHER_TENSOR)
    return replace(judged, report=report)


def has_a_gradient(module: nn.Module, *, ids: bool) -> bool:
    """Tell whether `backward()` comes back in training mode."""
    with torch.random.fork_rng([]):
        args = a_call(module.eval(), ids=ids)
        if args is None:
            return False
        module.train()
        try:
            with torch.enable_grad():
                got = first(module(*args))
                got.square().sum().backward()  # pyrefly: ignore
        except Exception:
            return False
    return True


FEWER = "It answers with fewer heads for keys and values than for queries"
AS_MANY = "It is right if yours always has as many of both."
OF_KEYS = re.compile(r"(?i)((num|n)_?)?(kv|key_?value)_?heads?")
"""What the number of these heads is called."""


def with_fewer_key_heads(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add a risk to a report if one head for all keys is too few.

    What was judged has as many for them as for queries.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    if judged.report.untried:
        return judged
    named = arguments(kind, near)
    few = fewer_for_keys(named)
    if few is None:
        return judged
    small, _ = make(kind, near)
    ids = judged.component in MODELS
    args = in_time(lambda: a_call(small.eval(), ids=ids))
    if args is None or not (raised := raised_by(kind, few, args)):
        return judged
    if not ids and in_time(lambda: takes_tables(kind(**few).eval(), [WIDTH])):
        return judged  # Its own are as wide as its heads.
    risk = Failure(
        FEWER,
        f"Built as {said_of(kind, few)}, it does not answer the same "
        f"call. It raised {raised}",
        level=RISK,
        why=AS_MANY,
        cause=FEWER,
    )
    return replace(judged, report=judged.report.with_more(risk))


def fewer_for_keys(named: dict[str, Any]) -> dict[str, Any] | None:
    """Return arguments with 6 heads, of which 2 are for keys and values.

    With a single one, what does not repeat it may still be broadcast. None, if
    no argument says how many there are.
    """
    if not any(map(OF_KEYS.fullmatch, named)):
        return None
    twice = {HEADS: 2 * HEADS, HEAD: HEAD // 2}
    few = {
        name: twice.get(x, x)
        for name, x in named.items()
        if type(x) is int and "head" in name.lower()
    }
    return named | few | {n: 2 for n in named if OF_KEYS.fullmatch(n)}


RATE_COUNTS = "In eval mode its rate of dropout changes nothing"
SCALES = (
    "It is right if it does not scale in training, and in eval mode multiplies "
    "by what is kept."
)


def differ_by_their_rate(
    plain: nn.Module, module: nn.Module, *, ids: bool
) -> bool:
    """Tell whether two that differ by their rate of dropout answer otherwise.

    They have the same weights, or else nothing is said.

    Args:
        plain: The module without dropout.
        module: That with a rate.
        ids: Whether ids go in, and no vectors.
    """
    left, right = plain.state_dict(), module.state_dict()
    same = left.keys() == right.keys() and all(
        torch.equal(one, other)
        for one, other in zip(left.values(), right.values(), strict=True)
    )
    if not same:
        return False
    with torch.random.fork_rng([]), torch.no_grad():
        plain.eval(), module.eval()
        args = a_call(plain, ids=ids)
        if args is None:
            return False
        one, other, again = (outcome(x, args) for x in (plain, module, module))
    if one is None or other is None or again is None:
        return False
    # What differs from call to call keeps something, whatever its rate.
    if one.shape != other.shape or not torch.equal(*calm(other, again)):
        return False
    return not torch.allclose(*calm(one, other))


def calm(*calls: Tensor) -> list[Tensor]:
    """Return results in which NaN is equal to itself."""
    return [x.nan_to_num() for x in calls]


def a_call(module: nn.Module, *, ids: bool) -> tuple | None:
    """Return what a module can be called with; None, if nothing was found."""
    if not ids:
        try:
            return understood(module, [])[1]
        except Unjudged:
            return None
    for args in arranged(required_names(module), [rows(SEQ)]):
        if outcome(module, args) is not None:
            return args
    return None


SECONDS = 1.0
"""How long that, and a call of it, may compute."""

ANSWERS = "It answers with its own defaults"
NOT_TAKEN = "It is right if nobody takes these defaults as they are."


def with_own_defaults(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add a risk to a report if a class with its own defaults always raises.

    What was judged was built with other sizes. The call is one that was
    understood there.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    if judged.report.untried:
        return judged
    ids = judged.component in MODELS
    own = own_defaults(kind, near)
    if own is None:
        return judged
    small, _ = make(kind, near)
    args = in_time(lambda: a_call(small.eval(), ids=ids))
    named, width = own
    if args is None or not (ids or (width and args[0].shape[-1] == WIDTH)):
        return judged
    wide = tuple(of_width(x, width) for x in args)
    if not (raised := raised_by(kind, named, wide)):
        return judged
    said = said_of(kind, named)
    risk = Failure(
        ANSWERS,
        f"Built as {said}, with its own defaults, it does not answer the same "
        f"call. It raised {raised}",
        level=RISK,
        why=NOT_TAKEN,
        cause=ANSWERS,
    )
    return replace(judged, report=judged.report.with_more(risk))


SAVED = "Whatever it draws when it is built is saved with it"
UNSAVED = (
    "`{}` is a plain tensor whose numbers are drawn: it is neither a parameter "
    "nor a buffer, so that nothing trains it, `state_dict()` leaves it out, "
    "and a model that loads these weights has others there. Make it an "
    "`nn.Parameter`, or call `register_buffer`."
)


def with_what_is_unsaved(judged: Judged, kind: Callable, near: dict) -> Judged:
    """Add a fault to a report if a table that counts is drawn and not saved.

    Args:
        judged: What came of it.
        kind: The class, or a function that builds a model.
        near: What else stands in its file.
    """
    if judged.report.untried:
        return judged
    module, _ = make(kind, near)
    if not plain_tensors(module):
        return judged
    other, _ = make(kind, near, seed=1)
    ids = judged.component in MODELS
    name = in_time(lambda: drawn_and_heard(module, other, ids=ids))
    if not name:
        return judged
    fault = Failure(SAVED, UNSAVED.format(name), cause=UNSAVED)
    return replace(judged, report=judged.report.with_more(fault))


def plain_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the tables that a module keeps as plain attributes, by name."""
    return {
        f"{name}.{attribute}".lstrip("."): x
        for name, part in module.named_modules()
        for attribute, x in vars(part).items()
        if isinstance(x, Tensor) and x.is_floating_point() and x.ndim > 1
    }


def drawn_and_heard(module: nn.Module, other: nn.Module, *, ids: bool) -> str:
    """Name a plain tensor that each object draws anew, and that counts.

    Args:
        module: One object of a class.
        other: Another one.
        ids: Whether ids go in, and no vectors.
    """
    tables, theirs = plain_tensors(module), plain_tensors(other)
    module.eval()
    args = a_call(module, ids=ids)
    before = None if args is None else outcome(module, args)
    if args is None or before is None:
        return ""
    for name, x in tables.items():
        if name not in theirs or x.shape != theirs[name].shape:
            continue
        if torch.equal(x, theirs[name]):
            continue
        kept = x.detach().clone()
        x.data.copy_(theirs[name])
        after = outcome(module, args)
        x.data.copy_(kept)
        if after is not None and not torch.equal(*calm(before, after)):
            return name
    return ""


def of_width(x: Any, width: int) -> Any:
    """Make vectors as wide as is said, and leave all else as it is."""
    if isinstance(x, Tensor) and x.is_floating_point():
        return draw(*x.shape[:-1], width, seed=3)
    return x


def raised_by(kind: Callable, named: dict[str, Any], args: tuple) -> str:
    """Tell what a call raises; nothing if it comes back, or was not tried.

    It is not tried if it cannot be built, is large, or takes long.
    """
    said = []

    def task() -> None:
        with torch.no_grad():
            try:
                with no_larger():
                    module = kind(**named).eval()
            except Exception:
                return
            try:
                module(*args)
            except (NotImplementedError, MemoryError):
                return
            except Exception as error:
                said.append(raised_in(error))

    thread, finished, clock = thread_for(task)
    with torch.random.fork_rng([]):
        thread.start()
        finishes(finished, clock, SECONDS)
        if not finished.is_set():
            stop(thread, finished)
    return said[0] if said else ""
