"""Residuals of the layers of a model: what leads past them, and from where.

Where all matrices of its layers are 0, they say nothing. What is left is the
token itself, if a path leads past each sub-layer, wherever it is written: in
the layer, in a class of its own or in the model; before a norm or after. Each
sum is to start from what the one before it left, and each layer to have
matrices of its own.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.common import (
    is_lazy,
    modules_behind,
    watched,
)
from companion.contracts.engine.scale import FUSED, SOFTMAX, WHOLE

__all__ = [
    "attending",
    "in_lists",
    "require_own_weights",
    "require_paths",
    "require_sums",
    "sub_layers",
]

ATTENTION = {*SOFTMAX, *WHOLE, FUSED}
LONG = 1e4
"""So long are vectors beside which no bias counts."""

FEW = 4
"""Of so few rows or columns is what mixes residuals, and no sub-layer."""

NO_PATH = (
    "With the weights of `{}` at 0 no token reaches the logits: what it says "
    "replaces what came in. Is the residual connection around it missing, "
    "`x + f(x)`?"
)
PAST_ONE_ONLY = (
    "With the weights of `{}` at 0, or with those of `{}`, tokens reach the "
    "logits, and with both at 0 none does: a sum starts from what one of them "
    "returned, and not from what came in. Write `x = x + attend(norm1(x))`, "
    "and then `x = x + network(norm2(x))`."
)
NORMED_STREAM = (
    "In `{}` a sum starts from what `{}` returned, and not from what came in: "
    "no path leads past that norm. Is there `x = norm(x)` before `x + f(x)`? "
    "Write `x + f(norm(x))`."
)
LEFT_BEHIND = (
    "With the weights of `{}` at 0, and of those alike, nothing that attention "
    "says reaches the logits: its sum starts from what came into the layer, "
    "and not from what attention left. Write `x = x + attend(norm1(x))`, and "
    "then `x = x + network(norm2(x))`."
)
ONE_LAYER = (
    "`{}` holds one and the same layer {} times, so that these share their "
    "weights. `[layer] * n` repeats one: write `ModuleList(Layer(…) for _ in "
    "range(n))`."
)
SHARED = "It is right if layers are to share their weights, as in ALBERT."


class Attending(TorchFunctionMode):
    """Notes in which modules an attention is at work."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[nn.Module] = []
        self.found: set[int] = set()

    def enter(self, part: nn.Module, args: tuple, words: dict) -> None:
        """Note that a module is called."""
        self.inside.append(part)

    def leave(self, part: nn.Module, got: object) -> None:
        """Note that it has returned."""
        self.inside.pop()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") in ATTENTION:
            self.found.update(map(id, self.inside))
        return func(*args, **(kwargs or {}))


def attending(
    modules: list[nn.Module], call: Callable[[], object]
) -> Callable[[nn.Module], bool]:
    """Return what tells of a module whether an attention is heard in it.

    Args:
        modules: A model, or those that a function calls.
        call: Calls it.
    """
    heard = Attending()
    every = [part for module in modules for part in module.modules()]
    with watched(every, heard.enter, heard.leave), heard:
        call()

    def attends(part: nn.Module) -> bool:
        return any(id(inner) in heard.found for inner in part.modules())

    return attends


def in_lists(
    module: nn.Module, attends: Callable[[nn.Module], bool], name: str = ""
) -> Iterator[tuple[str, nn.Module]]:
    """List the layers of the outermost lists of layers that are alike."""
    own = [(key, x) for key, x in module.named_children() if attends(x)]
    kinds, all_kinds = (
        {type(x) for x in parts}
        for parts in ([x for _, x in own], module.children())
    )
    # In a Sequential a whole model may stand beside its output layer.
    a_list = isinstance(module, nn.ModuleList | nn.Sequential) and (
        len(all_kinds) == 1
        or (len(own) > 1 and (len(kinds) == 1 or type(module) is nn.ModuleList))
    )
    for key, part in own:
        full = f"{name}.{key}".lstrip(".")
        if a_list:
            yield full, part
        else:
            yield from in_lists(part, attends, full)


def require_paths(
    fn: Guarded,
    moves: Callable[[], Tensor],
    call: Callable[[], object],
    told: str = NO_PATH,
) -> None:
    """Raise Broken if a token reaches the end through a sub-layer only.

    Args:
        fn: A model.
        moves: Returns how the result moves when all tokens are others.
        call: Calls it.
        told: What is said of a sub-layer, which stands in for the braces.
    """
    modules = modules_of(fn)
    attends = attending(modules, call)
    layers = dict(x for m in modules for x in in_lists(m, attends))
    if not layers or leads_past([*layers.values()], moves):
        return
    lost = [
        inner
        for name, layer in layers.items()
        for inner in lost_in(name, layer, moves)
    ]
    if not lost:
        require_path_past_both(layers, attends, moves)
        return
    first, *others = lost
    more = f" So it is with {len(others)} more." if others else ""
    raise Broken(told.format(first) + more, cause=told)


def require_path_past_both(
    layers: dict[str, nn.Module],
    attends: Callable[[nn.Module], bool],
    moves: Callable[[], Tensor],
) -> None:
    """Raise Broken if an attention and a network lead past each other only.

    Where there are several networks, they may do so on purpose.
    """
    for name, layer in layers.items():
        parts = dict(sub_layers(name, layer))
        looking = {n: part for n, part in parts.items() if attends(part)}
        networks = {n: part for n, part in parts.items() if n not in looking}
        if not looking or len(networks) != 1:
            continue
        [(network, other)] = networks.items()
        for attention, part in looking.items():
            if not leads_past([part, other], moves):
                told = PAST_ONE_ONLY.format(attention, network)
                raise Broken(told, cause=PAST_ONE_ONLY)


def modules_of(fn: Guarded) -> list[nn.Module]:
    """List the modules that a call may reach, also of a function."""
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        return modules_behind(fn.given)
    return []


def lost_in(
    name: str, layer: nn.Module, moves: Callable[[], Tensor]
) -> list[str]:
    """List the sub-layers of a layer without which no token counts.

    A lone matrix may lead into the layer, or join what comes from two.
    """
    cut = {
        inner: part
        for inner, part in sub_layers(name, layer)
        if not leads_past([part], moves)
    }
    alone = len(cut) == 1 and all(len(matrices(x)) == 1 for x in cut.values())
    return [] if alone else [*cut]


def sub_layers(name: str, layer: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """List the parts of a layer that hold its matrices."""
    parts = [(n, x) for n, x in layer.named_children() if matrices(x)]
    if len(parts) == 1 and not matrices(layer, deep=False):
        yield from sub_layers(f"{name}.{parts[0][0]}", parts[0][1])
        return
    if not parts:
        yield name, layer
    for inner, part in parts:
        yield f"{name}.{inner}", part


def matrices(part: nn.Module, *, deep: bool = True) -> list[nn.Parameter]:
    """List what maps vectors to vectors: no gain, whatever its shape."""
    return [
        p
        for p in part.parameters(recurse=deep)
        if not is_lazy(p)
        and p.ndim > 1
        and sum(size > FEW for size in p.shape) > 1
    ]


def leads_past(parts: list[nn.Module], moves: Callable[[], Tensor]) -> bool:
    """Tell whether tokens count without what some parts say.

    Also where it cannot be told, for a call that fails then, or numbers that
    are not finite.
    """
    try:
        with zeroed(parts):
            moved = moves()
    except Broken:
        return True
    return not moved.isfinite().all() or bool(moved.any())


@contextlib.contextmanager
def zeroed(parts: list[nn.Module]) -> Iterator[None]:
    """Hold the matrices of some parts at 0."""
    kept = [(x, x.detach().clone()) for part in parts for x in matrices(part)]
    try:
        for matrix, _ in kept:
            matrix.data.zero_()
        yield
    finally:
        for matrix, before in kept:
            matrix.data.copy_(before)


def require_sums(
    fn: Guarded,
    moves: Callable[[], Tensor],
    call: Callable[[], object],
) -> None:
    """Raise Broken if a sum starts from something else than what was left.

    Args:
        fn: A model.
        moves: Returns how the last logits move when the first token is
            another.
        call: Calls it.
    """
    modules = modules_of(fn)
    attends = attending(modules, call)
    layers = dict(x for m in modules for x in in_lists(m, attends))
    parts = {
        name: dict(sub_layers(name, layer)) for name, layer in layers.items()
    }
    calls = calls_of(layers, call)
    for name, called in calls.items():
        norm, own = "", [*parts[name].values()]
        # A layer may refuse vectors that no other part would give it.
        with contextlib.suppress(Exception):
            norm = normed_before(layers[name], own, called)
        if norm:
            told = NORMED_STREAM.format(name, f"{name}.{norm}")
            raise Broken(told, cause=NORMED_STREAM)
    networks = {
        name: part
        for own in parts.values()
        for name, part in own.items()
        if len(matrices(part)) > 1 and not (attends(part) or gates(part))
    }
    networks = {n: x for n, x in networks.items() if not is_linear(x)}
    # Where no token counts, another contract says so.
    if (
        networks
        and moves().any()
        and not leads_past([*networks.values()], moves)
    ):
        first = next(iter(networks))
        raise Broken(LEFT_BEHIND.format(first), cause=LEFT_BEHIND)


def is_linear(part: nn.Module) -> bool:
    """Tell whether a part with several matrices maps vectors linearly.

    So queries and keys are projected by way of a smaller width.
    """
    width = matrices(part)[0].shape[-1]
    x, y = (draw(1, 2, width, seed=seed) for seed in (71, 73))
    try:
        with torch.no_grad():
            both, one, other, none = map(part, (x + y, x, y, 0 * x))
            return torch.allclose(both - one, other - none, atol=1e-5)
    except Exception:
        return False


def gates(part: nn.Module) -> bool:
    """Tell whether a recurrent cell is part of it, which may be the sum itself.

    Behind a gate a layer keeps some of what came in, as in a GTrXL.
    """
    return any(
        isinstance(inner, nn.RNNCellBase | nn.RNNBase)
        for inner in part.modules()
    )


Called = tuple[tuple, dict]
"""What a module was called with."""


def calls_of(
    layers: dict[str, nn.Module], call: Callable[[], object]
) -> dict[str, Called]:
    """Return with what each layer is called, where vectors go in."""
    names = {id(layer): name for name, layer in layers.items()}
    calls: dict[str, Called] = {}

    def note(part: nn.Module, args: tuple, words: dict) -> None:
        calls.setdefault(names[id(part)], (args, words))

    with watched(layers.values(), note):
        call()
    return {n: one for n, one in calls.items() if vectors_in(one) is not None}


def vectors_in(called: Called) -> Tensor | None:
    """Return the first vectors among what a module was called with."""
    args, words = called
    given = [x for x in (*args, *words.values()) if isinstance(x, Tensor)]
    vectors = [x for x in given if x.is_floating_point() and x.ndim == 3]
    return vectors[0] if vectors else None


def normed_before(
    layer: nn.Module, parts: list[nn.Module], called: Called
) -> str:
    """Name the norm from whose vectors a sum starts, where another does not.

    Where the matrices of a layer are 0, the sums alone are left. A norm whose
    gain counts then stands in their way. If that of another does not, the
    layer is pre-LN; and if what the one returns is what a sub-layer gets,
    it does not stand behind a sum, as in post-LN.

    Args:
        layer: A layer.
        parts: Its sub-layers.
        called: With what it is called.
    """
    x = vectors_in(called)
    norms = {
        name: part
        for name, part in layer.named_modules()
        if is_norm(part, x.shape[-1])
        and not any(part is y for one in parts for y in one.modules())
    }
    if len(norms) < 2:
        return ""

    def says(times: float) -> Tensor:
        """Return what it makes of other vectors, which are so long."""
        other = times * draw(*x.shape, seed=67)
        args, words = (
            [other if y is x else y for y in called[0]],
            {n: other if y is x else y for n, y in called[1].items()},
        )
        got = layer(*args, **words)
        got = got[0] if isinstance(got, tuple | list) else got
        return got.detach() if isinstance(got, Tensor) else other

    with torch.no_grad():
        normed = seen_between(norms, parts, lambda: says(LONG))
        # A norm that stands at the end of a layer keeps no path open.
        if not normed:
            return ""
        with zeroed([layer]):
            before = says(LONG)
            if before.shape != x.shape or not alike(before, says(3 * LONG)):
                return ""
            counts = {
                name: not alike(before, with_gain(part, lambda: says(LONG)))
                for name, part in norms.items()
            }
    if all(counts.values()):
        return ""
    return next((name for name in normed if counts[name]), "")


def seen_between(
    norms: dict[str, nn.Module],
    parts: list[nn.Module],
    call: Callable[[], Tensor],
) -> list[str]:
    """Name the norms whose vectors a sub-layer gets; none, if one ends all."""
    names = {id(norm): name for name, norm in norms.items()}
    made: dict[str, Tensor] = {}
    given: list[Tensor] = []

    def note(part: nn.Module, args: tuple, words: dict) -> None:
        if id(part) not in names:
            every = (*args, *words.values())
            given.extend(x for x in every if isinstance(x, Tensor))

    def keep(part: nn.Module, got: object) -> None:
        if id(part) in names and isinstance(got, Tensor):
            made[names[id(part)]] = got

    with watched([*norms.values(), *parts], note, keep):
        got = call()
    if any(torch.equal(x, got) for x in made.values()):
        return []
    return [n for n, x in made.items() if any(torch.equal(x, y) for y in given)]


def is_norm(part: nn.Module, width: int) -> bool:
    """Tell whether a module is a norm of vectors, as its name says."""
    shapes = {x.shape for x in part.parameters()}
    return bool(A_NORM.search(type(part).__name__)) and shapes == {(width,)}


A_NORM = re.compile("(?i)norm|rms|^ln$")
"""What the class of a norm is called."""


def with_gain(norm: nn.Module, call: Callable[[], Tensor]) -> Tensor:
    """Return what is said where the vectors of a norm are stretched.

    Each feature otherwise, for a norm behind it undoes one factor for all.
    """
    kept = [(x, x.detach().clone()) for x in norm.parameters()]
    try:
        for x, before in kept:
            # A single gain, as that of a ScaleNorm, has no features.
            each = x.shape[-1] if x.ndim else 1
            ramp = torch.linspace(3, 1, each, device=x.device)
            x.data.copy_(before * (ramp if x.ndim else ramp[0]))
        return call()
    finally:
        for x, before in kept:
            x.data.copy_(before)


def alike(one: Tensor, other: Tensor) -> bool:
    """Tell whether vectors are the same, but for the eps of a norm."""
    return torch.allclose(one, other, rtol=1e-3, atol=1e-3)


def require_own_weights(fn: Guarded, call: Callable[[], object]) -> None:
    """Raise Broken if a list holds the very same layer again."""
    modules = modules_of(fn)
    lists = [one for module in modules for one in repeated(module)]
    if not lists:
        return
    attends = attending(modules, call)
    for name, layer, times in lists:
        if attends(layer):
            told = ONE_LAYER.format(name, times)
            raise Broken(told, cause=ONE_LAYER, level=RISK, why=SHARED)


def repeated(module: nn.Module) -> list[tuple[str, nn.Module, int]]:
    """List what holds a module with weights several times, with its name."""
    found = []
    for name, part in module.named_modules():
        if isinstance(part, nn.ModuleList | nn.Sequential):
            held = [*part]
            for layer in dict.fromkeys(held):
                times = sum(layer is x for x in held)
                if times > 1 and matrices(layer):
                    found.append((name, layer, times))
    return found
