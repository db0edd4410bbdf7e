"""Contracts of what has weights of its own: a module, not a function.

A function's weights cannot be found, so these are tried on modules only.
"""

import contextlib
import functools
import inspect
import itertools
import re
import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.blame import without_grad_at
from companion.contracts.engine.compare import (
    Broken,
    draw,
    furthest,
    is_float,
    tensors_in,
    weighed,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import FAULT, RISK
from companion.contracts.engine.scale import over_another_axis

__all__ = [
    "MADE_ANEW",
    "apart_in_training",
    "gains_moved",
    "held_apart",
    "is_unused",
    "last_part",
    "made_anew",
    "matrices_in_use",
    "module_kept",
    "module_of",
    "modules_behind",
    "moved_from_zero",
    "network_pairs",
    "no_way_past",
    "require_grad_mode",
    "require_registered",
    "require_two_steps",
    "tensors_of",
    "unused",
    "watched",
    "ways_past_each_other",
    "works_at_home",
    "zeros_moved",
]

MADE_ANEW = (
    "A {} is made anew in each call, so its weights are never trained: make it "
    "once, in `__init__`."
)
UNREGISTERED = (
    "`{}` is a plain {}: what it holds is not among the parameters, and so it "
    "is never trained, moved or saved, and `.eval()` does not reach it. Make "
    "it an `{}`."
)
LENT = "It is right if it belongs to another module, and is only lent."
GRAD_OFF = "Gradients are switched off{}: nothing can be trained through it."
ANSWERS = (
    "What it computes is right, and code that only answers needs no more; in "
    "code that is trained it is a fault."
)
NORM_OVER_THE_BATCH = (
    "does a norm run over the batch (BatchNorm)? In eval mode it does not "
    "show. LayerNorm runs over the features of one position."
)
NOT_ONLY_IN_TRAINING = (
    "Only sentence 0 was changed, and sentence 1 moved, in eval mode as in "
    "training mode: sentences see each other."
)
BATCH_NORM = (
    "`{}` is a BatchNorm: in training mode a sentence moves with the others of "
    "its batch."
)
BY_NAME = (
    "It is meant so where the name of its class says it, as in TST and "
    "PatchTST, on series of numbers. Padding counts in its mean."
)
OF_A_CONVOLUTION = (
    "It is meant so behind a convolution, as in a Conformer. Padding counts in "
    "its mean."
)


def module_of(fn: Guarded) -> nn.Module | None:
    """Return the module that is checked, or whose method it is."""
    owner = fn.fn
    while isinstance(owner, functools.partial):
        owner = owner.func
    owner = getattr(owner, "__self__", owner)
    return owner if isinstance(owner, nn.Module) else None


@contextlib.contextmanager
def module_kept(module: nn.Module | None) -> Iterator[None]:
    """Put back a module's parameters, buffers and modes, if there is one.

    And what else it keeps that is one number, as that of the rows of a table
    that it has made: it says something of its buffers.
    """
    if module is None:
        yield
        return
    kept = [(part, plain_values(part)) for part in module.modules()]
    tensors = [
        (x, x.detach().clone())
        for x in (*module.parameters(), *module.buffers())
        if not is_lazy(x)
    ]
    try:
        yield
    finally:
        for part, values in kept:
            vars(part).update(values)
        for x, before in tensors:
            # By way of `data`, so that no graph that hangs on it complains.
            x.data.copy_(before)


def plain_values(part: nn.Module) -> dict[str, Any]:
    """Return what a module keeps as a number, its mode among it."""
    plain = bool, int, float
    return {name: x for name, x in vars(part).items() if type(x) in plain}


@contextlib.contextmanager
def watched(
    parts: Iterable[nn.Module],
    before: Callable[[nn.Module, tuple, dict], object],
    after: Callable[[nn.Module, object], object] = lambda part, got: None,
) -> Iterator[None]:
    """Have each call of some modules told, also one of `forward` itself.

    Args:
        parts: The modules.
        before: Gets one, and with what it is called.
        after: Gets one, and what it returned, None if it raised.
    """

    def told(part: nn.Module) -> Callable:
        plain = part.forward

        @functools.wraps(plain)
        def forward(*args: Any, **words: Any) -> Any:
            before(part, args, words)
            got = None
            try:
                got = plain(*args, **words)
            finally:
                after(part, got)
            return got

        return forward

    with contextlib.ExitStack() as stack:
        for part in dict.fromkeys(parts):
            own = {"forward": told(part)}
            stack.enter_context(mock.patch.dict(part.__dict__, own))
        yield


def modules_behind(fn: object, depth: int = 3) -> list[nn.Module]:
    """Return the modules that a call may reach: itself, or what it names.

    A function names what it closes over and what is global where it stands.
    """
    if isinstance(fn, nn.Module):
        return [fn]
    if isinstance(fn, functools.partial):
        reached = [fn.func, *fn.args, *fn.keywords.values()]
    elif inspect.ismethod(fn):
        reached = [fn.__self__, fn.__func__]
    elif inspect.isfunction(fn):
        named = inspect.getclosurevars(fn)
        reached = [*named.nonlocals.values(), *named.globals.values()]
    else:
        reached = []
    found = [m for x in reached for m in modules_behind(x, depth - 1) if depth]
    return list(dict.fromkeys(found))


@contextlib.contextmanager
def zeros_moved(fn: Guarded) -> Iterator[None]:
    """Draw tables and matrices anew that are nearly 0, and put them back.

    Training moves them with its first steps. Until then positions that are
    learned from 0 say nothing, and no contract could see them. So it is with
    gains that are nearly 0.
    """
    modules: list[nn.Module] = []
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        modules = modules_behind(fn.given) if fn.moves_zeros else []
    with moved_from_zero(modules, 0), gains_moved(modules) as fn.gains:
        yield


@contextlib.contextmanager
def moved_from_zero(modules: list[nn.Module], axes: int = 2) -> Iterator[None]:
    """Draw parameters anew that are nearly 0, and put them back.

    So are learned positions that all begin with one number.

    Args:
        modules: What may have some.
        axes: How many axes they have at least; 2 leaves single numbers alone.
    """
    before = [
        (x, x.detach().clone())
        for module in modules
        for name, x in module.named_parameters()
        if x.requires_grad
        and not is_lazy(x)
        and x.ndim >= axes
        and (starts_at_zero(x) or (OF_PLACES.search(name) and is_even(x)))
    ]
    try:
        for seed, (x, _) in enumerate(before):
            x.data.copy_(0.1 * draw(*x.shape, seed=601 + seed))
        yield
    finally:
        for x, kept in before:
            x.data.copy_(kept)


@contextlib.contextmanager
def gains_moved(modules: list[nn.Module]) -> Iterator[str]:
    """Draw vectors anew, near 1, that begin nearly at 0; and put them back.

    Multiplied by such a gain (LayerScale), a branch says next to nothing until
    training has moved it. Yield a sentence that tells of them, or nothing.
    """
    small = {
        name: x
        for module in modules
        for name, x in module.named_parameters()
        if x.requires_grad and not is_lazy(x) and starts_small(x)
    }
    before = {name: x.detach().clone() for name, x in small.items()}
    told = ""
    if small:
        name, *others = small
        value, more = float(before[name].flatten()[0]), len(others)
        which = (
            f"`{name}` and {more} more start" if more else f"`{name}` starts"
        )
        told = (
            f"{which} at {value:.3g}, as the gain of a branch may: judged with "
            "about 1 instead."
        )
    try:
        for seed, x in enumerate(small.values()):
            x.data.copy_(1 + 0.1 * draw(*x.shape, seed=701 + seed))
        yield told
    finally:
        for name, x in small.items():
            x.data.copy_(before[name])


def starts_small(x: Tensor) -> bool:
    """Tell whether all of a vector is one number that is nearly 0."""
    first = x.detach().flatten()[:1]
    wide = x.numel() > 1 and x.numel() == max(x.shape)
    return bool(wide and 0 < first.abs() < SMALL and (x == first).all())


SMALL = 2e-3
"""Gains begin at 1e-6 to 1e-1; with smaller ones the contracts see nothing."""

TINY = 4e-3
"""No number of a matrix is larger that is drawn with a deviation of 0.001."""


OF_PLACES = re.compile(r"(?i)pos|place|(time|temporal)_?enc|(^|\.)pe$")
"""What a learned table of positions is called."""


def is_even(x: Tensor) -> bool:
    """Tell whether all numbers of a table are the same."""
    table = sum(size > 1 for size in x.shape) > 1
    return table and bool((x.detach() == x.detach().flatten()[0]).all())


def starts_at_zero(x: Tensor) -> bool:
    """Tell whether a parameter is nearly 0 that is no bias.

    Those begin with 0 often.
    """
    if x.ndim > 1:
        return bool(x.detach().abs().max() < TINY) if x.numel() else False
    return x.numel() == 1 and not x.any()


class GradOff(TorchFunctionMode):
    """Notes whether gradients end because the code switches them off.

    Attributes:
        off: Whether they end so.
        cut: Whether they end in another way, as by ``detach``.
        where: The line that switches them off, if it is found.
    """

    off, cut, where = False, False, ""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        got = func(*args, **kwargs)
        given = (*args, *kwargs.values())
        if not any(x.requires_grad for x in given if isinstance(x, Tensor)):
            return got
        ends = is_float(got) and not got.requires_grad
        name = getattr(func, "__name__", "")
        if torch.is_grad_enabled():
            # `__get__` is of `x.data`, or of `x.shape`.
            self.cut |= name in CUTS or (name == "__get__" and ends)
        elif ends and not self.off:
            self.off, self.where = True, without_grad_at(sys._getframe(1))
        return got


CUTS = {"detach", "detach_", "item", "numpy", "tolist"}


def require_grad_mode(fn: Guarded, args: tuple) -> None:
    """Raise Broken if no result has a gradient for want of grad mode.

    It computes what is right then: a mere risk. A loss is for training alone.
    """
    given = [a.clone().requires_grad_() if is_float(a) else a for a in args]
    with GradOff() as heard:
        ends = tensors_in(fn.raw(*given))
    if heard.cut or not heard.off or any(x.requires_grad for x in ends):
        return
    where = f" {heard.where}" if heard.where else ""
    loss = fn.component.name == "label_smoothing"
    level, why = ("", "") if loss else (RISK, ANSWERS)
    raise Broken(GRAD_OFF.format(where), level=level, why=why)


def made_anew(fn: Guarded) -> str:
    """Name the class of a module with weights that a call makes; or nothing.

    One that the first call makes and the next finds again is trained.
    """
    args, made = fn.component.example, []
    fn.raw(*args)
    thread, plain = threading.get_ident(), nn.Module.__init__

    def heard(self: nn.Module, *args: object, **named: object) -> None:
        plain(self, *args, **named)
        if threading.get_ident() == thread:
            made.append(self)

    nn.Module.__init__ = heard
    try:
        fn.raw(*args)
    finally:
        nn.Module.__init__ = plain
    # A slice of a ModuleList is a new list of old parts.
    module = module_of(fn)
    own = {id(p) for p in module.parameters()} if module is not None else {}
    for part in made:
        weights = (p for p in part.parameters() if p.requires_grad)
        if any(id(p) not in own for p in weights):
            return type(part).__name__
    return ""


def require_registered(fn: Guarded) -> None:
    """Raise Broken if weights that take part stand in a plain list.

    One module alone may stand there on purpose, so that it is not registered
    twice.
    """
    for one in held_apart(module_of(fn)):
        weights = {str(i): p for i, p in enumerate(one.weights)}
        left = [unused(fn, args, weights) for args in fn.cases]
        if any(len(unmoved) < len(weights) for unmoved in left):
            level, why = (RISK, LENT) if len(one.held) == 1 else ("", "")
            raise Broken(one.told, level=level, why=why)


class Apart(NamedTuple):
    """What holds weights that are not among the parameters of a module.

    Attributes:
        name: Its name in the module.
        holder: A list, tuple or dict.
        held: The modules and parameters in it.
        weights: Those that are not among the module's.
    """

    name: str
    holder: object
    held: list
    weights: list[nn.Parameter]

    @property
    def told(self) -> str:
        """Say what is wrong with that, and what to write instead."""
        kind = "Module" if isinstance(self.held[0], nn.Module) else "Parameter"
        plain = next(k for k in HOLDERS if isinstance(self.holder, k))
        form = "Dict" if plain is dict else "List"
        made = f"nn.{kind}{form}"
        return UNREGISTERED.format(self.name, plain.__name__, made)


def held_apart(module: nn.Module) -> list[Apart]:
    """List what holds weights that are not among the parameters."""
    named = (p for _, p in module.named_parameters())
    own = {id(p) for p in itertools.chain(module.parameters(), named)}
    found = []
    for prefix, part in module.named_modules():
        for name, holder in vars(part).items():
            if name not in PYTORCHS and isinstance(holder, HOLDERS):
                held = held_in(holder)
                weights = [p for p in weights_of(held) if id(p) not in own]
                if weights:
                    where = f"{prefix}.{name}".lstrip(".")
                    found.append(Apart(where, holder, held, weights))
    return found


HOLDERS = list, tuple, dict
PYTORCHS = set(vars(nn.Module()))
"""What PyTorch itself keeps in each module."""


def held_in(holder: object, depth: int = 3) -> list:
    """List the modules and parameters in a list, or in lists of it."""
    if isinstance(holder, nn.Module | nn.Parameter):
        return [holder]
    if not depth or not isinstance(holder, HOLDERS):
        return []
    inner = holder.values() if isinstance(holder, dict) else holder
    return [x for one in inner for x in held_in(one, depth - 1)]


def weights_of(held: list) -> list[nn.Parameter]:
    """List the different parameters that can be trained."""
    own = (
        p
        for x in held
        for p in (x.parameters() if isinstance(x, nn.Module) else [x])
        if p.requires_grad and not is_lazy(p)
    )
    return list({id(p): p for p in own}.values())


class Uses(TorchFunctionMode):
    """Notes the order in which a call uses parameters."""

    def __init__(self, named: dict[str, Tensor]):
        super().__init__()
        self.names, self.order = {id(p): n for n, p in named.items()}, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for x in args:
            if (name := self.names.pop(id(x), "")) and isinstance(x, Tensor):
                self.order.append(name)
        return func(*args, **(kwargs or {}))


def matrices_in_use(fn: Guarded, x: Tensor) -> dict[str, Tensor]:
    """Return name -> matrix of a module, in the order of their first use.

    The kernel of a convolution that sees one place is one, too.
    """
    named = dict(module_of(fn).named_parameters())
    matrices = {
        name: p
        for name, p in named.items()
        if p.ndim > 1 and p.shape[2:].numel() == 1
    }
    with Uses(matrices) as uses:
        fn.raw(x)
    return {name: matrices[name] for name in uses.order}


def no_way_past(fn: Guarded, x: Tensor) -> list[str]:
    """Return the networks that all of ``x`` goes through, by a name in each.

    Where one of their matrices is 0, nothing of ``x`` is left in the result. A
    matrix alone may lead into the stack or out of it, and a network may do so
    too where it is the first of all, or the last while others have a way past.
    """
    matrices = matrices_in_use(fn, x)
    networks = network_pairs(matrices)
    found = [
        pair[0]
        for pair in networks
        if all(is_cut_off(fn, x, [matrices[name]]) for name in pair)
    ]
    leads_out = len(networks) > 1 and found == [networks[-1][0]]
    return [] if leads_out else found


def ways_past_each_other(fn: Guarded, x: Tensor) -> bool:
    """Tell whether each matrix has a way past it, and all together have none.

    So it is where a sum starts from what a sub-layer returned. There has to be
    a network: what is attention alone leads past nothing.
    """
    matrices = matrices_in_use(fn, x)
    return (
        bool(network_pairs(matrices))
        and is_cut_off(fn, x, [*matrices.values()])
        and not any(is_cut_off(fn, x, [one]) for one in matrices.values())
    )


def is_cut_off(fn: Guarded, x: Tensor, matrices: list[Tensor]) -> bool:
    """Tell whether nothing of ``x`` is left where these are 0."""
    other = x + draw(*x.shape, seed=61)
    with module_kept(module_of(fn)):
        for matrix in matrices:
            matrix.data.zero_()
        return furthest(fn.raw(other), fn.raw(x)) is None


def network_pairs(matrices: dict[str, Tensor]) -> list[tuple[str, str]]:
    """List the names of two matrices that lead to another width and back."""
    found = []
    for i, (one, following) in enumerate(itertools.pairwise(matrices)):
        up, down = (matrices[n].shape[:2] for n in (one, following))
        if i and up == down[::-1] and up[0] != up[1]:
            found.append((one, following))
    return found


def unused(
    fn: Guarded,
    args: tuple,
    named: dict[str, Tensor],
    fused: Container[str] = (),
    alive: dict[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """Return those parameters that this call does not use.

    Args:
        fn: What is checked.
        args: What it is called with.
        named: The parameters.
        fused: Matrices of which it is noted, which rows are used.
        alive: There it is noted: for each name a Boolean a row.
    """
    ends = [x for x in tensors_in(fn.raw(*args)) if x.requires_grad]
    if not ends:
        return named
    pairs = [(x, draw(*x.shape, seed=97)) for x in ends]
    found = torch.autograd.grad(
        weighed(pairs), list(named.values()), allow_unused=True
    )
    pairs = [*zip(named.items(), found, strict=True)]
    for (name, _), got in pairs:
        if name in fused and got is not None and alive is not None:
            alive[name] = got.ne(0).any(-1)
    return {name: p for (name, p), got in pairs if is_unused(p, got)}


def is_unused(parameter: Tensor, gradient: Tensor | None) -> bool:
    """Tell whether a parameter was not used, or multiplied by zero."""
    # The gradient of a bias may be 0: a key's moves all scores alike.
    return gradient is None or (parameter.ndim > 1 and not gradient.any())


class NoDropout(TorchFunctionMode):
    """Lets all dropout return what goes in."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if getattr(func, "__name__", "") in ("dropout", "dropout_"):
            return args[0] if args else kwargs["input"]
        if "dropout_p" in kwargs:
            kwargs["dropout_p"] = 0.0
        return func(*args, **kwargs)


def drawn_otherwise(fn: Guarded) -> bool:
    """Tell whether sentences are apart as soon as no dropout draws.

    Experts drop out of the vectors that they are given, so that what they
    draw for one sentence moves with how many vectors of another they get.
    """
    with NoDropout():
        return not sees_another(fn)


def apart_in_training(fn: Guarded) -> None:
    """In training mode too no sentence sees another."""
    module = module_of(fn)
    with module_kept(module):
        module.train()
        try:
            require_apart(fn)
        except Broken as broken:
            if drawn_otherwise(fn):
                return
            name = batch_norm_that_explains(fn, module)
            if name:
                broken.message = BATCH_NORM.format(name)
                named = says_batch_norm(module)
                broken.level = RISK
                broken.why = BY_NAME if named else OF_A_CONVOLUTION
            module.eval()
            if not name and sees_another(fn):
                over = over_another_axis(fn, fn.component.example)
                broken.message = broken.cause = over or NOT_ONLY_IN_TRAINING
            raise


def sees_another(fn: Guarded) -> bool:
    """Tell whether a sentence moves with another, as things are."""
    try:
        require_apart(fn)
    except Broken:
        return True
    return False


def require_apart(fn: Guarded) -> None:
    """Raise Broken if a sentence moves with another, as things are."""
    usual = fn.component.example
    other = tuple(first_as_second(x) for x in usual)
    before, again, after = (
        same_draws(fn, args) for args in (usual, usual, other)
    )
    for one, two, moved in zip(before, again, after, strict=True):
        # Otherwise it draws from where nobody can put it back.
        repeatable = furthest(one, two) is None
        if repeatable and furthest(moved[1:], one[1:]) is not None:
            raise Broken(
                "Only sentence 0 was changed, and in training mode sentence 1 "
                f"moved: {NORM_OVER_THE_BATCH}",
                moved[1],
                one[1],
                fn.component.axes[-2:],
                NORM_OVER_THE_BATCH,
            )


def batch_norm_that_explains(fn: Guarded, module: nn.Module) -> str:
    """Name a BatchNorm that is meant, if nothing else sees the batch.

    Beside a convolution, or in a class whose name says so. In place of a
    LayerNorm, where there is neither, it is a mistake.
    """
    parts = dict(module.named_modules())
    convolves = any(isinstance(x, _ConvNd) for x in parts.values())
    if not (convolves or says_batch_norm(module)):
        return ""
    names = [n for n, x in parts.items() if isinstance(x, _BatchNorm)]
    for name in names:
        parts[name].eval()
    try:
        require_apart(fn)
    except Broken:
        return ""
    return last_part(names[0]) if names else ""


BATCH_NORMED = re.compile(
    r"(?i)batch_?norm\w*(layer|block|encoder|transformer)"
    r"|(layer|block|encoder|transformer)\w*batch_?norm"
)


def says_batch_norm(module: nn.Module) -> bool:
    """Tell whether a layer in it is called after its BatchNorm."""
    return any(
        BATCH_NORMED.search(type(part).__name__)
        for part in module.modules()
        if not isinstance(part, _BatchNorm)
    )


def last_part(name: str) -> str:
    """Return the last part of a name, and that before a mere number.

    Example:
        >>> last_part("module.encoder.norm"), last_part("encoder.layers.2")
        ('norm', 'layers.2')
    """
    before, _, last = name.rpartition(".")
    holder = before.rpartition(".")[2]
    return f"{holder}.{last}" if last.isdigit() and holder else last


def works_at_home(fn: Guarded, home: torch.device) -> None:
    """It works on the device where it lives."""

    def there(x: object) -> object:
        if isinstance(x, Tensor):
            return x.to(home)
        if isinstance(x, tuple | list):
            return type(x)(map(there, x))
        return x

    args = there(fn.component.example)
    try:
        results = tensors_in(fn.call(*args))
    except Broken as raised:
        raise Broken(f"On the CPU it works; on {home}: {raised}") from None
    for x in results:
        if x.device.type != home.type:
            raise Broken(
                f"It lives on {home} and got its arguments there, but what it "
                f"returned is on {x.device}: make new tensors with "
                "`device=x.device`."
            )


def first_as_second(x: object) -> object:
    """Replace sentence 0 of ``x`` by sentence 1."""
    if not isinstance(x, Tensor):
        return x
    changed = x.clone()
    changed[0] = x[1]
    return changed


def same_draws(fn: Guarded, args: tuple) -> list[Tensor]:
    """Return the float results, with the same numbers for every dropout."""
    torch.manual_seed(0)
    return [x.detach() for x in tensors_in(fn.raw(*args)) if is_float(x)]


# Tensors that a module keeps with their graph, so that training fails: the
# first `backward()` uses a graph up, and what hangs on one that an earlier
# call, or `__init__`, has made raises at the second.

ONCE = (
    "`{}` is computed once and kept, with its graph: the second `backward()` "
    "raises, and it stays what it was while its weights learn. Compute it in "
    "`forward`, in each call."
)
KEPT = (
    "`{}` keeps what the last call computed, with its graph, so that the next "
    "`backward()` raises: store `.detach()` of it, or write it under "
    "`torch.no_grad()`."
)
CACHED = (
    "What it computes is right, and a cache that only answers under "
    "`torch.no_grad()` needs no more; in code that is trained it is a fault."
)
CACHE = re.compile(r"(?i)cache|past|prev|(^|[._])(k|v|kv|keys?|values?)$")
"""What is called so is made for answering, a token at a time."""
USED_UP = re.compile("a second time|modified by an inplace operation")
"""What autograd says of a graph that is used up, or written over."""


def require_two_steps(
    module: nn.Module, call: Callable, named: dict[str, Tensor]
) -> None:
    """Raise Broken if a second step of training fails for what is kept.

    Args:
        module: What is to be trained.
        call: Calls it, always with the same inputs.
        named: Its weights.
    """
    if not any(with_graphs(module)):
        return  # It was called before, and has kept nothing.
    try:
        for _ in range(2):
            before = dict(with_graphs(module))
            versions = {name: x._version for name, x in before.items()}
            ends = [x for x in tensors_in(call()) if x.requires_grad]
            if not ends:
                return
            pairs = [(x, draw(*x.shape, seed=97)) for x in ends]
            weights = list(named.values())
            torch.autograd.grad(weighed(pairs), weights, allow_unused=True)
    except RuntimeError as error:
        if not USED_UP.search(str(error)):
            raise
        after = dict(with_graphs(module))
        same = [n for n, x in after.items() if before.get(n) is x]
        once = [n for n in same if after[n]._version == versions[n]]
        written = [n for n in same if n not in once]
        for names, told in ((once, ONCE), (written, KEPT), (after, KEPT)):
            for name in names:
                cached = told == KEPT and CACHE.search(name)
                level, why = (RISK, CACHED) if cached else (FAULT, "")
                raise Broken(
                    told.format(name), cause=told, level=level, why=why
                ) from None
        raise


def with_graphs(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """List what a module holds that was computed from weights or inputs."""
    for prefix, part in module.named_modules():
        plain = {n: x for n, x in vars(part).items() if n not in PYTORCHS}
        buffers = part.named_buffers(recurse=False)
        for name, held in (*buffers, *plain.items()):
            for x in tensors_of(held):
                if x.grad_fn is not None:
                    yield f"{prefix}.{name}".lstrip("."), x


def tensors_of(held: object, depth: int = 2) -> list[Tensor]:
    """List the tensors that something is, or holds."""
    if isinstance(held, Tensor):
        return [held]
    if not depth or not isinstance(held, list | tuple | dict):
        return []
    inner = held.values() if isinstance(held, dict) else held
    return [x for one in inner for x in tensors_of(one, depth - 1)]
