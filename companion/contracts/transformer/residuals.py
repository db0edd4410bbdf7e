"""Residuals of the layers of a model: what leads past them.

Where all matrices of its layers are 0, they say nothing. What is left is the
token itself, if a path leads past each sub-layer, wherever it is written: in
the layer, in a class of its own or in the model; before a norm or after.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules import (
    is_lazy,
    modules_behind,
)
from companion.contracts.engine.scale import FUSED, SOFTMAX, WHOLE

__all__ = ["layers_that_attend", "require_own_weights", "require_paths"]

ATTENTION = {*SOFTMAX, *WHOLE, FUSED}
FEW = 4
"""Of so few rows or columns is what mixes residuals, and no sub-layer."""

NO_PATH = (
    "With the weights of `{}` at 0 no token reaches the logits: what it says "
    "replaces what came in. Is the residual connection around it missing, "
    "`x + f(x)`?"
)
ONE_LAYER = (
    "`{}` holds one and the same layer {} times, so that these share their "
    "weights. `[layer] * n` repeats one: write `ModuleList(Layer(…) for _ in "
    "range(n))`."
)
SHARED = "It is right if layers are to share their weights, as in ALBERT."


class Attending(TorchFunctionMode):
    """Notes in which modules an attention is at work."""

    def __init__(self, modules: list[nn.Module]):
        super().__init__()
        self.inside: list[nn.Module] = []
        self.found: set[int] = set()
        self.hooks = [
            hook
            for module in modules
            for part in module.modules()
            for hook in (
                part.register_forward_pre_hook(self.enter),
                part.register_forward_hook(self.leave, always_call=True),
            )
        ]

    def enter(self, part: nn.Module, args: tuple) -> None:
        """Note that a module is called."""
        self.inside.append(part)

    def leave(self, part: nn.Module, args: tuple, result: object) -> None:
        """Note that it has returned."""
        self.inside.pop()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") in ATTENTION:
            self.found.update(map(id, self.inside))
        return func(*args, **(kwargs or {}))


def layers_that_attend(
    modules: list[nn.Module], call: Callable[[], object]
) -> dict[str, nn.Module]:
    """Return name -> layer, of those in lists in which an attention is heard.

    Args:
        modules: A model, or those that a function calls.
        call: Calls it.
    """
    heard = Attending(modules)
    try:
        with heard:
            call()
    finally:
        for hook in heard.hooks:
            hook.remove()

    def attends(part: nn.Module) -> bool:
        return any(id(inner) in heard.found for inner in part.modules())

    return {
        name: layer
        for module in modules
        for name, layer in in_lists(module, attends)
    }


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
    layers = layers_that_attend(modules_of(fn), call)
    if not layers or leads_past([*layers.values()], moves):
        return
    lost = [
        inner
        for name, layer in layers.items()
        for inner in lost_in(name, layer, moves)
    ]
    # Where none alone cuts the path, several lead past each other.
    if not lost:
        return
    first, *others = lost
    more = f" So it is with {len(others)} more." if others else ""
    raise Broken(told.format(first) + more, cause=told)


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
    kept = [(x, x.detach().clone()) for part in parts for x in matrices(part)]
    try:
        for matrix, _ in kept:
            matrix.data.zero_()
        moved = moves()
    except Broken:
        return True
    finally:
        for matrix, before in kept:
            matrix.data.copy_(before)
    return not moved.isfinite().all() or bool(moved.any())


def require_own_weights(fn: Guarded, call: Callable[[], object]) -> None:
    """Raise Broken if a list holds the very same layer again."""
    modules = modules_of(fn)
    lists = [one for module in modules for one in repeated(module)]
    if not lists:
        return
    layers = {id(x) for x in layers_that_attend(modules, call).values()}
    for name, layer, times in lists:
        if id(layer) in layers:
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
