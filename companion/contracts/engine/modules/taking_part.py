"""Tell which weights take no part, whatever goes in."""

import contextlib
import inspect
import itertools
import re

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import (
    Broken,
    draw,
    is_float,
    tensors_in,
    weighed,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.common import (
    MADE_ANEW,
    apart_in_training,
    is_lazy,
    is_unused,
    made_anew,
    module_kept,
    module_of,
    require_grad_mode,
    require_registered,
    require_two_steps,
    tensors_of,
    unused,
)
from companion.contracts.engine.modules.rounding import Unrounded
from companion.contracts.engine.modules.waiting import why_elsewhere

__all__ = ["OF_MODULES", "takes_part"]

UNUSED = (
    "no gradient reaches it, whatever the input. Is it built and never called, "
    "or is the path to it cut by `.detach()` or `no_grad`?"
)

TEMPLATE = "It is right if it is the template that others were copied from."


def takes_part(fn: Guarded) -> None:
    """Every weight of a module takes part."""
    if made := made_anew(fn):
        raise Broken(MADE_ANEW.format(made))
    require_registered(fn)
    parameters = module_of(fn).named_parameters()
    # What has no numbers, such as a memory of length 0, needs none.
    named = {n: p for n, p in parameters if p.requires_grad and p.numel()}
    if named:
        example = fn.component.example
        require_two_steps(module_of(fn), lambda: fn.raw(*example), named)
    fused = {name: p.shape for name, p in projections(module_of(fn))}
    alive: dict[str, Tensor] = {}
    # A part may be used for some inputs only, such as one expert of many.
    for args in fn.cases:
        named = unused(fn, args, named, fused, alive) if named else {}
    if named:
        require_grad_mode(fn, fn.component.example)
        named = of_no_outcome(fn, never_chosen(fn, named))
        named = in_training_neither(fn, named) if named else {}
    if named:
        name, *others = named
        more = f" So it is with {len(others)} more." if others else ""
        says = f"`{name}` takes no part: {UNUSED}{more}"
        if is_template(module_of(fn), [*named]):
            raise Broken(says, cause=UNUSED, level=RISK, why=TEMPLATE)
        if used_unrounded(fn, named):
            raise Broken(f"`{name}` takes no part: {ROUNDED}", cause=ROUNDED)
        if why := why_elsewhere(fn, named):
            raise Broken(says, cause=UNUSED, level=RISK, why=why)
        raise Broken(says, cause=UNUSED)
    if any(dead_block(alive[n], s) for n, s in fused.items() if n in alive):
        require_each_third(fn)


ROUNDED = (
    "no gradient reaches it, for numbers are rounded on the way, and rounding "
    "has no slope."
)


def used_unrounded(fn: Guarded, named: dict[str, nn.Parameter]) -> bool:
    """Tell whether parameters take part where nothing is rounded."""
    with Unrounded() as unrounded, contextlib.suppress(Broken):
        for args in fn.cases:
            named = unused(fn, args, named, {}, {}) if named else {}
        return unrounded.heard and not named
    return False


def in_training_neither(
    fn: Guarded, named: dict[str, nn.Parameter]
) -> dict[str, nn.Parameter]:
    """Return the parameters that take no part in training mode either.

    Those of a noise that a router adds there do.
    """
    module = module_of(fn)
    with module_kept(module), torch.random.fork_rng([]):
        module.train()
        with contextlib.suppress(Broken):
            for args in fn.cases:
                named = unused(fn, args, named, {}, {}) if named else {}
    return named


def is_template(module: nn.Module, unused: list[str]) -> bool:
    """Tell whether what takes no part is what others were copied from.

    Args:
        module: The whole.
        unused: The names of parameters that take no part.
    """
    every = dict(module.named_parameters())
    used = {name: p for name, p in every.items() if name not in unused}
    matrices = [name for name in unused if every[name].ndim > 1]
    apart = held_by_a_layer_alone(module)
    return bool(matrices) and all(
        id(every[name]) in apart or is_copied_elsewhere(name, every[name], used)
        for name in matrices
    )


BY_NAME = re.compile(
    r"(.*_)?(template|prototype)|((en|de)coder_)?(layer|block)"
)
"""What one layer is called that stands beside a list of such layers."""


def held_by_a_layer_alone(module: nn.Module) -> set[int]:
    """Tell which parameters a layer beside a list of its kind holds.

    Its name says so. Its numbers may have been drawn anew after the copies,
    and its parts may have names of their own.
    """
    lists = [x for x in module.modules() if isinstance(x, nn.ModuleList) and x]
    # A list may hold None where a layer has nothing.
    kinds = [{like(x) for x in one if x is not None} for one in lists]
    return {
        id(x)
        for name, part in module.named_modules()
        if BY_NAME.fullmatch(name.rpartition(".")[2]) and {like(part)} in kinds
        for x in part.parameters()
    }


def like(part: nn.Module) -> tuple:
    """Return the class of a module, and the names and shapes of its weights."""
    shapes = ((name, x.shape) for name, x in part.named_parameters())
    return type(part), *shapes


def is_copied_elsewhere(
    name: str, matrix: Tensor, used: dict[str, Tensor]
) -> bool:
    """Tell whether a part that is used holds a copy of what is not.

    It stands by itself. Of copies in one list, or in one layer, those that are
    not called are no template.
    """
    parts = name.split(".")
    for i in range(1, len(parts)):
        own = ".".join(parts[:i])
        if not any(n.startswith(f"{own}.") for n in used):
            break
    else:
        return False
    inner, before = name.removeprefix(own), own.rpartition(".")[0]
    copies = [
        other.removesuffix(inner)
        for other, p in used.items()
        if other.endswith(inner) and torch.equal(p, matrix)
    ]
    beside = any(copy.rpartition(".")[0] == before for copy in copies)
    return bool(copies) and not beside and not parts[i - 1].isdigit()


A_THIRD = (
    "The numbers {} to {} that `{}` makes are never used: no gradient reaches "
    "its weights for them, whatever the input. If it makes queries, keys and "
    "values at once, is one of them taken twice, and another never?"
)


def require_each_third(fn: Guarded) -> None:
    """Raise Broken if queries, keys or values are projected for nothing.

    Where one matrix makes all three, its gradient as a whole is not 0.
    """
    fused = projections(module_of(fn))
    if not fused:
        return
    alive = {name: torch.zeros(out.shape[0]).bool() for name, out in fused}
    weights = [out for _, out in fused]
    for args in fn.cases:
        ends = [x for x in tensors_in(fn.raw(*args)) if x.requires_grad]
        pairs = [(x, draw(*x.shape, seed=97)) for x in ends]
        if not pairs:
            return
        found = torch.autograd.grad(weighed(pairs), weights, allow_unused=True)
        for (name, _), got in zip(fused, found, strict=True):
            if got is not None:
                alive[name] |= got.ne(0).any(-1)
    for name, out in fused:
        if dead := dead_block(alive[name], out.shape):
            first, last = dead
            told = A_THIRD.format(first, last - 1, name)
            raise Broken(told, cause=A_THIRD)


def dead_block(alive: Tensor, shape: torch.Size) -> tuple[int, int] | None:
    """Return where queries, keys or values are dead, and all else is not."""
    rows = alive.tolist()
    for first, last in blocks(*shape):
        if all(
            is_alive != (first <= i < last) for i, is_alive in enumerate(rows)
        ):
            return first, last
    return None


def projections(module: nn.Module) -> list[tuple[str, Tensor]]:
    """List the matrices (out, in) that may make queries, keys and values."""
    return [
        (name, p)
        for part_name, part in module.named_modules()
        for own, p in part.named_parameters(recurse=False)
        if p.ndim == 2
        and p.requires_grad
        and not is_lazy(p)
        and (isinstance(part, nn.Linear) or own == "in_proj_weight")
        and blocks(*p.shape)
        for name in [f"{part_name}.{own}".lstrip(".")]
    ]


def blocks(rows: int, width: int) -> list[tuple[int, int]]:
    """Return where keys and values begin and end, and queries before them.

    Of fewer keys than queries each is shared by several.
    """
    keys, odd = divmod(rows - width, 2)
    if odd or not 1 < keys <= width:
        return []
    ends = 0, width, width + keys, rows
    return [*itertools.pairwise(ends)]


SHUFFLES = 12
"""How often weights are shuffled, so that a router chooses other experts."""

NUMBER = re.compile(r"(?<=[._])\d+(?=[._])")
"""What tells apart the names of parts of one list."""


def never_chosen(fn: Guarded, named: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return those parameters that no call uses, whatever the weights are.

    A router chooses a few experts for each vector. With its numbers in another
    order it chooses others, and what is not called stays unused.
    """
    module = module_of(fn)
    used = {n for n, _ in module.named_parameters()} - {*named}
    own = {one for name in used for one in families(name)}
    if not any(own & families(name) for name in named):
        return named
    turn = idle = 0
    while named and idle < SHUFFLES:
        before = len(named)
        with module_kept(module):
            shuffle(module, turn)
            for args in fn.cases:
                more = of_more_rows(args, turn)
                named = unused(fn, more, named) if named else {}
        turn, idle = turn + 1, idle + 1 if len(named) == before else 0
    return named


def of_more_rows(args: tuple, turn: int) -> tuple:
    """Return vectors for many times as many rows, where there is no mask."""
    if len(args) > 1 or not is_float(args[0]):
        return args
    sizes = ROWS * len(args[0]), *args[0].shape[1:]
    return (draw(*sizes, seed=821 + turn),)


ROWS = 32
"""So many times more rows find more of the experts."""


def shuffle(module: nn.Module, turn: int) -> None:
    """Put the numbers of each parameter into an order of this turn."""
    for seed, p in enumerate(module.parameters()):
        order = draw(p.numel(), seed=811 + 97 * turn + seed).argsort()
        flat = p.detach().flatten()[order.to(p.device)]
        p.data.copy_(flat.view(p.shape))


def families(name: str) -> set[str]:
    """Return the names that a weight shares with those of its siblings."""
    found = NUMBER.finditer(f".{name}")
    return {f".{name}"[: m.start()] + f".{name}"[m.end() :] for m in found}


def of_no_outcome(fn: Guarded, named: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return those parameters that are used for nothing that is returned.

    Beside its logits a model may return a value, or its own loss if it gets
    targets; attention of two sequences may return what each of them gathers.
    """
    module, outcomes = module_of(fn), []
    if not named:
        return named
    model = fn.component.name.endswith("_model")

    def hear(part: nn.Module, args: tuple, result: object) -> None:
        outcomes.extend(x for x in tensors_of(result) if x.requires_grad)

    example, hook = fn.component.example, module.register_forward_hook(hear)
    asked = inspect.signature(module.forward).parameters
    goals = {n: example[-1] for n in asked if TARGETS.fullmatch(n)}
    try:
        fn.raw(*example)
        with contextlib.suppress(Exception):
            if goals and len(example) == 1:
                module(*map(torch.clone, example), **goals)
    finally:
        hook.remove()
    for end in outcomes:
        # Caches and maps are not what a model is trained for.
        meant = end.ndim < 3 or end.shape[-1] == 1
        alike = end.ndim == 3 and end.shape == outcomes[0].shape
        if named and (meant if model else alike):
            weights = list(named.values())
            found = torch.autograd.grad(
                end.sum(), weights, retain_graph=True, allow_unused=True
            )
            pairs = zip(named.items(), found, strict=True)
            named = {name: p for (name, p), got in pairs if is_unused(p, got)}
    return named


TARGETS = re.compile(r"(?i)(targets?|labels?|y|tgts?|next_?(ids|tokens))")
"""What a model calls the tokens for which it computes its own loss."""


OF_MODULES = (takes_part, apart_in_training)
"""What is tried on a component that may have weights, if it is a module."""
