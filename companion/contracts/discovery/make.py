"""Build somebody's class with small sizes, from the names of its arguments.

``make`` asks ``arguments`` for a value for each parameter. ``value_of`` chooses
it: a size by its name, as ``sizes`` has them, a module of the file, which is
built likewise, or a ``configuration``, whose own arguments are chosen so too.
If the call raises, ``others`` lists second tries. ``ready`` then draws what was
left empty. ``typed`` writes the call for the user, with … for what is unknown,
and ``said_of`` writes it for the report.
"""

import contextlib
import copy
import dataclasses
import enum
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.overrides import TorchFunctionMode

from companion.contracts.discovery.arguments import arranged, required_names
from companion.contracts.discovery.sizes import (
    CHOSEN,
    EXPERTS,
    HEAD,
    HEADS,
    INNER,
    KEPT,
    LONG,
    SCALES,
    VOCAB,
    WIDTH,
    Sizes,
    is_size,
    size,
)
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.modules.common import is_lazy

__all__ = [
    "MOST",
    "NotBuilt",
    "arguments",
    "by_default",
    "make",
    "no_larger",
    "of_its_own_width",
    "of_several_experts",
    "own_defaults",
    "said_of",
]

UNKNOWN = object()
"""Stands for an argument whose name says nothing."""

CONFIG = re.compile(
    r"(?i).*(config(uration)?|cfg|args|opts?|hparams|params|options)$"
)


class NotBuilt(Exception):
    """A class that cannot be built by itself; the message says why.

    Args:
        reason: The message.
        call: What builds it, if the user puts something in place of each `…`;
            empty, if that is not why.
        always: Whether it raises in any size.
    """

    def __init__(self, reason: str, call: str = "", *, always: bool = False):
        super().__init__(reason)
        self.call, self.always = call, always


def make(
    kind: Callable,
    near: dict[str, object],
    width: int = WIDTH,
    rate: float = 0.0,
    length: int = 0,
    seed: int = 0,
) -> tuple[Any, str]:
    """Build ``kind`` with sizes that its arguments' names suggest.

    Args:
        kind: The class, or a function that builds a model.
        near: What else stands in its file, where its configuration may be.
        width: How wide its vectors are to be.
        rate: The rate of its dropout, where an argument asks for one.
        length: How long its sentences may be, if not as usual.
        seed: What its numbers are drawn with.

    Returns:
        The module, and the call in words.

    Raises:
        NotBuilt: An argument says nothing, or the class raised something.
    """
    named = arguments(kind, near, rate)
    if length:
        # A default beside it may be anything: the base of sinusoids, too.
        wanted = only_wanted(kind, named)
        lengths = [n for n, x in wanted.items() if is_size(x, LONG)] or named
        named |= {n: of_length(named[n], length) for n in lengths}
    more = named | left_at_none(kind, rate)
    if width != WIDTH:
        # That of a head, where there is no other.
        own = WIDTH if WIDTH in named.values() else HEAD
        named, more = (
            {n: width if is_size(x, own) else x for n, x in each.items()}
            for each in (named, more)
        )
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        try:
            with EmptyIsNaN():
                built = kind(**named)
        except Exception as error:
            ways = others(kind, named, more, rate)
            for other in ways if width == WIDTH else [more]:
                with contextlib.suppress(Exception), no_larger():
                    with EmptyIsNaN():
                        built = kind(**other)
                    return built, said_of(kind, other) + ready(built)
            guessed = any(isinstance(x, Sizes) for x in named.values())
            plain = all(isinstance(x, int | float) for x in named.values())
            raise NotBuilt(
                f"{kind.__name__}({listed(named)}) raised {raised_in(error)}",
                typed(kind, named, near) if guessed else "",
                always=always_raises(error, kind, plain),
            ) from None
        if isinstance(built, nn.Module) and "_parameters" not in vars(built):
            raise NotBuilt(NO_SUPER, always=True)
        if width == WIDTH and has_no_width(built):
            # A width inside was rounded down to 0.
            larger = twice_as_large(named)
            with contextlib.suppress(Exception):
                wide = kind(**larger)
                if not has_no_width(wide):
                    built, named = wide, larger
        return built, said_of(kind, named) + ready(built)


def always_raises(error: Exception, kind: Callable, plain: bool) -> bool:
    """Tell whether what a constructor raised has nothing to do with sizes.

    Args:
        error: What it raised.
        kind: The class.
        plain: Whether all that it was given is numbers.
    """
    own = re.escape(f"'{kind.__name__}' object has no attribute")
    others = (
        "unexpected keyword argument|a leaf Variable that"
        r"|before Module.__init__\(\) call|valid indices \(got float\)"
    )
    if re.search(WHATEVER_IS_GIVEN, str(error)):
        return True
    return plain and re.search(f"{own}|{others}", str(error)) is not None


WHATEVER_IS_GIVEN = (
    r"name '\w+' is not defined|module 'torch[\w.]*' has no attribute"
    r"|__init__\(\) takes 1 positional argument but 2 were given"
)
"""What a line raises whatever sizes, or modules, its class was given."""


def of_length(value: Any, length: int) -> Any:
    """Return an argument with another length, also in a configuration."""
    if is_size(value, LONG):
        return length
    if isinstance(value, Sizes):
        return Sizes(value._rate, length)
    own = is_record(value) and not isinstance(value, type)
    if not (own or is_plain(value)):
        return value
    other = copy.copy(value)
    for name, x in vars(value).items():
        if is_size(x, LONG) and size(name) == LONG:
            object.__setattr__(other, name, length)  # It may be frozen.
    return other


def ready(built: Any) -> str:
    """Give what was built shapes and numbers where it has none; tell of it.

    Raises:
        NotBuilt: A part cannot draw its own.
    """
    if isinstance(built, nn.Module) and any(map(is_lazy, built.parameters())):
        called_once(built)
    return drawn(built)


def called_once(module: nn.Module) -> None:
    """Call a module with vectors or ids, so that its parameters get a shape."""
    names = ["mask" if LENGTHS.search(n) else n for n in required_names(module)]
    module.eval()  # Nothing is counted by what runs over a batch.
    for x in (torch.randn(2, 5, WIDTH), torch.ones(2, 5).long()):
        for args in arranged(names, [x]):
            with contextlib.suppress(Exception), torch.no_grad():
                module(*args)
                break
    module.train()


LENGTHS = re.compile(r"(?i)len(gth)?s?$")
"""How many keys count is asked for so, and None is all of them."""

NO_SUPER = (
    "its `__init__` never calls `super().__init__()`, so that it is no module "
    "yet"
)


def has_no_width(built: Any) -> bool:
    """Tell whether a matrix of it has no numbers."""
    own = built.parameters() if isinstance(built, nn.Module) else ()
    return any(not is_lazy(x) and x.ndim > 1 and not x.numel() for x in own)


class EmptyIsNaN(TorchFunctionMode):
    """Has ``torch.empty`` hold NaN, and not whatever stands in memory."""

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        got = func(*args, **(kwargs or {}))
        if func in EMPTY and got.is_floating_point():
            got.fill_(torch.nan)
        return got


EMPTY = (torch.empty, torch.empty_like)

DRAWN = ", with weights that `reset_parameters()` drew"
UNDRAWN = (
    "nothing draws its `{}`: `torch.empty` leaves there what happened to stand "
    "in memory. If a whole model draws it, judge that"
)


def drawn(built: Any) -> str:
    """Draw the parameters that a class has left empty, and say so.

    Each is drawn as its own part of the module would, as `nn.Linear` does.

    Raises:
        NotBuilt: A part cannot draw its own.
    """
    if not isinstance(built, nn.Module):
        return ""
    empty = []
    for part in built.modules():
        if any(map(has_nan, part.parameters(recurse=False))):
            empty.append(part)
            with contextlib.suppress(Exception):
                part.reset_parameters()  # pyrefly: ignore
        for x in (*part.buffers(recurse=False), *vars(part).values()):
            if has_nan(x) and x.isnan().all():  # A cache, perhaps.
                x.data.zero_()
    for name, x in built.named_parameters():
        if has_nan(x):
            raise NotBuilt(UNDRAWN.format(name))
    return DRAWN if empty else ""


def has_nan(x: object) -> bool:
    """Tell whether it is a tensor in which something is NaN."""
    known = isinstance(x, Tensor) and not is_lazy(x)
    return known and bool(x.reshape(-1).isnan().any())


def others(
    kind: Callable, named: dict, more: dict, rate: float
) -> Iterator[dict[str, Any]]:
    """List what else may build a class, where sizes by name do not.

    Sizes for what is None; another configuration than a plain class of the
    file; sizes for modules; its own defaults, with what it wants besides; and
    twice the width.

    Args:
        kind: The class, or a function that builds a model.
        named: What did not build it.
        more: That, with sizes for what is None by default.
        rate: The rate of its dropout.
    """
    if more != named:
        yield more
    if any(map(is_plain, named.values())):
        yield {n: Sizes(rate) if is_plain(x) else x for n, x in named.items()}
    # `ffn` may say how wide a network is, and not which.
    sizes = {n: size(n) for n, x in named.items() if isinstance(x, nn.Module)}
    if any(map(is_size, sizes.values())):
        yield named | {n: x for n, x in sizes.items() if is_size(x)}
    wanted = only_wanted(kind, named)
    # With a rate it would be another one than with a rate of 0.
    if wanted != named and not rate:
        yield wanted
    # It may have 8 heads inside, by which 12 cannot be divided.
    larger = twice_as_large(named)
    if larger != named:
        yield larger


def twice_as_large(named: dict) -> dict[str, Any]:
    """Return the same with twice the widths."""
    twice = {WIDTH: 2 * WIDTH, INNER: 2 * INNER}
    return {n: twice.get(x, x) if is_size(x) else x for n, x in named.items()}


def only_wanted(kind: Callable, named: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a call what has a default."""
    known = parameters(kind)
    empty = inspect.Parameter.empty
    return {n: x for n, x in named.items() if known[n].default is empty}


def by_default(
    kind: Callable, near: dict[str, object]
) -> tuple[Any, str] | None:
    """Build a class with its own defaults, and what it wants besides.

    Args:
        kind: The class, or a function that builds a model.
        near: What else stands in its file.

    Returns:
        The module, and the call in words; None, if it is large, or would be
        built no differently.

    Raises:
        NotBuilt: An argument says nothing.
    """
    named = arguments(kind, near)
    wanted = only_wanted(kind, named)
    if wanted == named:
        return None
    with torch.random.fork_rng([]), no_larger():
        torch.manual_seed(0)
        try:
            with EmptyIsNaN():
                built = kind(**wanted)
            return built, said_of(kind, wanted) + ready(built)
        except Exception:
            return None


MOST = 4_000_000
"""How many numbers a model may have that is built with its own defaults."""


class TooLarge(Exception):
    """A module has more numbers than it may have."""


@contextlib.contextmanager
def no_larger() -> Iterator[None]:
    """Have whoever builds a module with too many numbers stopped at once.

    Raises:
        TooLarge: Inside the block, where the module is built.
    """
    count = 0

    def seen(module: nn.Module, name: str, x: Tensor | None) -> None:
        nonlocal count
        count += 0 if x is None or is_lazy(x) else x.numel()
        if count > MOST:
            raise TooLarge

    hooks = (
        register_module_parameter_registration_hook(seen),
        register_module_buffer_registration_hook(seen),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def left_at_none(kind: Callable, rate: float) -> dict[str, Any]:
    """Name the sizes that are None by default, with what they could be."""
    known = parameters(kind).values()
    sizes = {p.name: size(p.name, rate) for p in known if p.default is None}
    return {name: x for name, x in sizes.items() if type(x) is int and x > 2}


def arguments(
    kind: Callable, near: dict[str, object], rate: float = 0.0
) -> dict[str, Any]:
    """Choose the arguments of a constructor, by their names."""
    known = parameters(kind)
    chosen: dict[str, Any] = {}
    unknown = []
    for one in known.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        needed = one.default is one.empty
        if one.kind is one.POSITIONAL_ONLY and needed:
            raise NotBuilt(f"its argument `{one.name}` has no name to call")
        built = needed and is_called(kind, one.name)
        try:
            value = (
                layers_for(kind, near, rate)
                if wants_layers(one)
                else (built and module_for(one, near))
                or value_of(one, near, rate)
            )
        except NotBuilt as reason:
            own = f"nothing says what its argument `{one.name}` is"
            unknown.append(own if wants_layers(one) else str(reason))
            value = UNKNOWN
        if value is None and needed:
            drops = goes_to_dropout(kind, one.name)
            value = rate if drops else by_the_others(one, [*known])
            value = activation_for(kind, one) if value is None else value
        if value is None and needed:
            unknown.append(f"nothing says what its argument `{one.name}` is")
            value = UNKNOWN
        if value is not None:
            chosen[one.name] = value
    chosen = by_its_kind(kind, reconciled(chosen))
    if unknown:
        raise NotBuilt(unknown[0], typed(kind, chosen, near))
    return chosen


def goes_to_dropout(kind: Callable, name: str) -> bool:
    """Tell whether an argument is handed to ``nn.Dropout``, by the code."""
    text = code_of(kind)
    return bool(re.search(rf"Dropout\w*\((p *= *)?{re.escape(name)}\b", text))


ACTIVATION = re.compile(
    r"(?i)(hidden_|ff_?n?_|mlp_|gate_)?(act(ivation|iv)?|non_?lin(earity)?)"
    r"(_?(fn|func|function|layer|type))?"
)
"""What a nonlinear function is called that a constructor asks for."""


class ReLU(nn.ReLU):
    """Stands for an activation: a function, a module, or a module's class."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Apply it to a tensor; without one, return a module."""
        tensor = args and isinstance(args[0], Tensor)
        return super().__call__(args[0]) if tensor else nn.ReLU()


def activation_for(kind: Callable, one: inspect.Parameter) -> object:
    """Choose an activation: by its word, where the code compares words."""
    if not ACTIVATION.fullmatch(one.name):
        return None
    with contextlib.suppress(OSError, TypeError):
        if word := re.search(r"['\"](relu|gelu)['\"]", inspect.getsource(kind)):
            return word[1]
    return "relu" if one.annotation in (str, "str") else ReLU()


def is_called(kind: Callable, name: str) -> bool:
    """Tell whether a constructor builds parts of an argument, by the code."""
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}\(", code_of(kind)))


def code_of(kind: Callable) -> str:
    """Return the code that builds something; empty, where there is none."""
    own = getattr(kind, "__init__", None) if isinstance(kind, type) else kind
    try:
        return inspect.getsource(own)  # pyrefly: ignore
    except (OSError, TypeError):
        return ""


def by_its_kind(kind: Callable, chosen: dict[str, Any]) -> dict[str, Any]:
    """Choose otherwise what means something else in a class of this name."""
    if A_NORM.search(kind.__name__):
        chosen.pop("p", None)  # The part of the width whose square counts.
    if "num_embeddings" in chosen and POSITIONS.search(kind.__name__):
        chosen["num_embeddings"] = PLACES
    return chosen


A_NORM = re.compile("(?i)norm")
POSITIONS = re.compile("(?i)posi")
PLACES = 40
"""How many rows a table of positions is given, of which it may skip some."""


def parameters(kind: Callable) -> dict[str, inspect.Parameter]:
    """List what builds it, by name.

    A class that takes `**kwargs` hands them to the class it is made of, whose
    arguments then are its own as well.

    Args:
        kind: The class, or a function that builds a model.

    Raises:
        NotBuilt: It does not say what it takes.
    """
    try:
        if not isinstance(kind, type):
            return dict(inspect.signature(kind).parameters)
        named: dict[str, inspect.Parameter] = {}
        for one in kind.__mro__:
            if "__init__" not in vars(one):
                continue
            own = [*inspect.signature(one.__init__).parameters.values()][1:]
            named = {p.name: p for p in own} | named
            if one in ENDS or all(p.kind is not p.VAR_KEYWORD for p in own):
                break
        return named
    except (TypeError, ValueError):
        raise NotBuilt("its `__init__` has no signature") from None


ENDS = (nn.Module, object)
"""Classes whose arguments are nobody's sizes."""


def by_the_others(one: inspect.Parameter, names: list[str]) -> int | None:
    """Choose an argument by those beside it, or by its type; None, if unknown.

    Args:
        one: The argument.
        names: What all arguments are called.
    """
    beside = {size(name) for name in names}
    if one.name == "k":  # How many experts, or how wide vectors are.
        experts = any(re.fullmatch(EXPERTS, n) for n in names)
        if experts:
            return 2
        return WIDTH if HEADS in beside and WIDTH not in beside else None
    if re.fullmatch("n_?embeddings", one.name):  # A width, as n_embd.
        wide = HEADS in beside or VOCAB in beside
        return WIDTH if wide and WIDTH not in beside else None
    if one.name == "groups":  # With a default it is a convolution's.
        return HEADS
    if one.name in ("q", "v") and {"q", "v"} <= {*names}:
        return HEAD
    whole = one.annotation in (int, "int")
    return INNER if whole and re.fullmatch("feed_?forward", one.name) else None


def of_its_own_width(
    kind: Callable, near: dict[str, object]
) -> tuple[Any, str] | None:
    """Build heads that together are as wide as a number outside the class.

    None, if it is not asked for their number and their width, or if there is no
    such number.

    Raises:
        NotBuilt: An argument says nothing, or the class raised something.
    """
    named = arguments(kind, near)
    counts = [n for n, x in named.items() if is_size(x, HEADS)]
    sizes = [n for n, x in named.items() if is_size(x, HEAD)]
    if len(counts) != 1 or len(sizes) != 1 or WIDTH in named.values():
        return None
    built, _ = make(kind, near)
    linear = (x for x in built.modules() if isinstance(x, nn.Linear))
    wide = max((x.in_features for x in linear), default=0)
    if wide % 2 or wide == HEADS * HEAD or wide > WIDEST:
        return None
    given = named | {counts[0]: 2, sizes[0]: wide // 2}
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        try:
            built = kind(**given)
        except Exception as error:
            raise NotBuilt(
                f"{kind.__name__}({listed(given)}) raised {raised_in(error)}"
            ) from None
        return built, said_of(kind, given) + ready(built)


WIDEST = 1024


def of_several_experts(kind: Callable) -> Callable | None:
    """Return what builds a class of several experts; None, if that is usual.

    By default it has one, whose share is 1 whatever its router says.
    """
    known = parameters(kind).values()
    ones = [p.name for p in known if is_size(p.default, 1)]
    if not any(re.fullmatch(EXPERTS, name) for name in ones):
        return None
    wanted = [n for n in ones if re.fullmatch(f"{EXPERTS}|{CHOSEN}", n)]

    def build(**named: Any) -> Any:
        return kind(**named)

    build.__name__ = kind.__name__
    build.__signature__ = inspect.Signature(  # pyrefly: ignore
        p.replace(
            kind=p.KEYWORD_ONLY,
            default=p.empty if p.name in wanted else p.default,
        )
        for p in known
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )
    return build


def own_defaults(
    kind: Callable, near: dict[str, object]
) -> tuple[dict[str, Any], int] | None:
    """Return what builds a class as it is by default, and how wide it then is.

    None, if it has no default for some size or one that stands for none, such
    as 0 or -1; or if it would be built no differently. The width is 0 where
    its arguments do not say it.
    """
    own: dict[str, Any] = {}
    pairs: list[tuple[Any, Any]] = []
    chosen = arguments(kind, near)
    for name, one in parameters(kind).items():
        value = chosen.get(name)
        if isinstance(value, Sizes):
            return None
        if is_record(value):
            try:
                config = type(value)()
            except Exception:
                return None
            own[name] = config
            pairs += [
                tuple(getattr(one, field.name, None) for one in (value, config))
                for field in dataclasses.fields(value)
            ]
        elif is_plain(value):
            try:
                config = type(value)()
            except Exception:
                return None
            own[name] = config
            pairs += [(x, getattr(config, n)) for n, x in vars(value).items()]
        elif name in chosen:
            pairs.append((value, one.default))
    sizes = [(x, y) for x, y in pairs if type(x) is int and x > 0]
    if not all(type(y) is int and y >= LEAST.get(x, 1) for x, y in sizes):
        return None
    wide = {y for x, y in sizes if x == WIDTH}
    different = any(x != y for x, y in sizes)
    return (own, wide.pop() if len(wide) == 1 else 0) if different else None


LEAST = {VOCAB: 6, LONG: 5}
"""Of a vocabulary and of a length, what a call with a few small ids takes."""


def reconciled(chosen: dict[str, Any]) -> dict[str, Any]:
    """Make two widths of one call different, where one is the inner one."""
    widths = [n for n, value in chosen.items() if is_size(value, WIDTH)]
    inner = [n for n in widths if re.search("(?i)hid|inner|units", n)]
    known = any(is_size(value, INNER) for value in chosen.values())
    if inner and len(widths) > len(inner) and not known:
        # As in FeedForward(d_model, hidden).
        chosen |= dict.fromkeys(inner, INNER)
    return chosen


CARRIES = re.compile(r"(?i)((use|with|has|add)_?)?(residual|skip)\w*")
"""What a switch is called without which no sub-layer is led past."""


def value_of(
    one: inspect.Parameter, near: dict[str, object], rate: float
) -> Any:
    """Choose one argument; None, where nothing is to be said."""
    if CONFIG.fullmatch(one.name) and may_be_settings(one):
        return configuration(one, near, rate)
    default = one.default
    value = size(one.name, rate)
    if default is one.empty:
        if (kind := module_for(one, near)) is not None:
            rest = {name: x for name, x in near.items() if x is not kind}
            try:
                return make(kind, rest, rate=rate)[0]
            except RecursionError:
                return None
        a_switch = one.annotation is bool and not isinstance(value, bool)
        return bool(CARRIES.fullmatch(one.name)) if a_switch else value
    number = isinstance(default, int | float) and not isinstance(default, bool)
    # A GPU, perhaps.
    place = one.name == "device" and isinstance(default, str | torch.device)
    if place or (number and not KEPT.fullmatch(one.name)):
        return None if isinstance(value, bool) else value
    # Whoever uses it has its scores scaled. Else it is a way, and no size.
    scales = re.fullmatch(SCALES, one.name, re.IGNORECASE)
    return True if scales and default is False else None


def may_be_settings(one: inspect.Parameter) -> bool:
    """Tell whether an argument that is called so may be a configuration."""
    kind = one.annotation
    module = isinstance(kind, type) and issubclass(kind, nn.Module)
    return not module and not isinstance(one.default, int | float)


def wants_layers(one: inspect.Parameter) -> bool:
    """Tell whether an argument is the list of a stack's layers."""
    return one.default is one.empty and one.annotation is nn.ModuleList


LAYER = r"_?(layer|block)"
"""What stands behind a stack's name in that of its layers."""


def layers_for(kind: Callable, near: dict, rate: float) -> nn.ModuleList | None:
    """Build two layers for a stack, if its file has a class of them.

    It is called as the stack is, as EncoderBlock for Encoder.
    """
    for name, layer in near.items():
        named = re.fullmatch(f"(?i){re.escape(kind.__name__)}{LAYER}", name)
        if named and isinstance(layer, type) and issubclass(layer, nn.Module):
            rest = {n: x for n, x in near.items() if x is not kind}
            return nn.ModuleList(make(layer, rest, rate=rate)[0] for _ in "12")
    return None


def module_for(one: inspect.Parameter, near: dict) -> type | None:
    """Return the class of a module that an argument asks for, if one does.

    By its annotation, or because it is called as a class of the file is. It may
    be a part of that name, if there is one such class alone.
    """
    if one.annotation in NUMBERS:
        return None
    plain = one.name.replace("_", "").lower()
    kinds = [one.annotation]
    if plain != "heads":  # How many there are, whatever a class is called.
        kinds += [kind for name, kind in near.items() if name.lower() == plain]
    for argument, named in PARTS.items():
        if re.fullmatch(argument, plain):
            known = [x for n, x in near.items() if is_part(x, n, named, plain)]
            kinds += known if len(known) == 1 else []
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, nn.Module):
            return None if kind is nn.Module else kind
    return None


NUMBERS = (int, float, bool, "int", "float", "bool")


PARTS = {
    "(en|de)coder(layer)?": r"\w*{}",
    "(self|src|cross|multihead|masked)?att(ention|n)|mha": r"\w*att(ention|n)",
    "feedforward|ffn?|mlp": r"(position_?wise_?)?(feed_?forward|ffn|mlp)\w*",
}
"""What an argument is called -> what the class is that it asks for."""


def is_part(x: object, name: str, named: str, argument: str) -> bool:
    """Tell whether a class of a file is called as an argument wants it.

    Args:
        x: What the file has.
        name: Under which name.
        named: The pattern for it, with the argument's own name for `{}`.
        argument: That.
    """
    own = not str(getattr(x, "__module__", "")).startswith("torch.")
    kind = isinstance(x, type) and issubclass(x, nn.Module)
    fits = re.fullmatch(named.format(argument), name, re.IGNORECASE)
    return own and kind and fits is not None


def configuration(
    one: inspect.Parameter, near: dict[str, object], rate: float
) -> object:
    """Build the configuration that a file has, or one that knows all names."""
    if isinstance(one.default, dict):
        return made_small(one.default, rate)
    kinds = [one.annotation, *near.values()]
    if one.default is None:
        kinds = kinds[:1]
    for kind in kinds:
        if not isinstance(kind, type) or not is_record(kind):
            continue
        base = any(is_more(k, kind) for k in kinds)
        named = CONFIG.fullmatch(kind.__name__) and not base
        if kind is one.annotation or named:
            return filled(kind, rate)
    for kind in kinds:
        if is_settings(kind) and not any(is_more(k, kind) for k in kinds):
            made = settings(kind, {}, rate)
            if made is not None:
                return made
    return Sizes(rate) if one.default in (None, one.empty) else None


def made_small(config: dict, rate: float) -> dict:
    """Return a copy of a dictionary, with sizes for the numbers in it."""
    small = {}
    for name, value in config.items():
        own = size(name, rate) if isinstance(name, str) else None
        number = type(value) in (int, float) and not isinstance(own, bool)
        kept = own is None or not number or KEPT.fullmatch(name)
        small[name] = value if kept else own
    return small


def is_more(kind: object, than: type) -> bool:
    """Tell whether a class is made of another one."""
    return (
        isinstance(kind, type) and kind is not than and issubclass(kind, than)
    )


def filled(kind: type, rate: float) -> object:
    """Build a dataclass: a size for each name that says one."""
    named = {}
    for one in dataclasses.fields(kind):
        if one.init and (inner := inner_of(one)) is not None:
            named[one.name] = filled(inner, rate)
            continue
        if one.default_factory is not dataclasses.MISSING:
            continue  # That makes no number.
        value = size(one.name, rate)
        plain = isinstance(one.default, str | bool | None.__class__)
        given = one.default is not dataclasses.MISSING
        kept = plain or (given and KEPT.fullmatch(one.name))
        if one.init and value is not None and not kept:
            named[one.name] = value
    try:
        return kind(**named)
    except Exception as error:
        raise NotBuilt(
            f"{kind.__name__}(…) raised {raised_in(error)}"
        ) from None


def inner_of(one: dataclasses.Field) -> type | None:
    """Return the dataclass that a field of another one holds, if one does."""
    kind = one.type
    if one.default_factory is not dataclasses.MISSING:
        try:
            kind = type(one.default_factory())
        except Exception:
            return None
    elif one.default is not dataclasses.MISSING:
        kind = type(one.default)
    known = isinstance(kind, type) and is_record(kind)
    return kind if known else None


def is_record(value: object) -> bool:
    """Tell whether it is, or is of, a dataclass that takes what its fields say.

    One with an `__init__` of its own, as of Hugging Face, is a plain class.
    """
    if not dataclasses.is_dataclass(value):
        return False
    kind = value if isinstance(value, type) else type(value)
    taken = {*inspect.signature(kind).parameters}
    named = {one.name for one in dataclasses.fields(kind)}
    # Without annotations it has no fields, and sizes of its class alone.
    return taken <= named and bool(named)


def is_plain(value: object) -> bool:
    """Tell whether it is a configuration whose class is no dataclass."""
    return is_settings(type(value))


def is_settings(kind: object) -> bool:
    """Tell whether it is somebody's class of sizes, and no dataclass."""
    return (
        isinstance(kind, type)
        and CONFIG.fullmatch(kind.__name__) is not None
        and not is_record(kind)
        and not issubclass(kind, (nn.Module, dict, BaseException, enum.Enum))
    )


def settings(kind: type, near: dict, rate: float) -> object:
    """Build a configuration whose class is no dataclass; None, if it raises.

    What its class alone says becomes a size as well.
    """
    try:
        made = kind(**arguments(kind, near, rate))
        for name, value in vars(kind).items():
            own = size(name, rate)
            plain = type(value) in (int, float) and not KEPT.fullmatch(name)
            if plain and own is not None and not isinstance(own, bool):
                object.__setattr__(made, name, own)  # It may be frozen.
    except Exception:
        return None
    return made


def put_into(config: Any) -> dict[str, Any]:
    """Return what a configuration was given that is no dataclass."""
    kind = type(config)
    names = [*parameters(kind), *vars(kind)]
    values = {name: getattr(config, name, None) for name in names}
    sizes = {n: x for n, x in values.items() if type(x) in (int, float, bool)}
    return {n: x for n, x in sizes.items() if x == size(n)}


def typed(kind: Callable, named: dict[str, Any], near: dict) -> str:
    """Write a call as it is typed, with … for what is not known."""
    said = (f"{name}={expression(x, near)}" for name, x in named.items())
    return f"{kind.__name__}({', '.join(said)})"


def expression(value: object, near: dict) -> str:
    """Write what makes an argument."""
    if value is UNKNOWN or isinstance(value, Sizes):
        return "…"
    if isinstance(value, nn.ModuleList):
        return f"nn.ModuleList([{expression(value[0], near)}])"
    if isinstance(value, nn.Module):
        own = {name: x for name, x in near.items() if x is not type(value)}
        return typed(type(value), arguments(type(value), own), own)
    if is_record(value) and not isinstance(value, type):
        named = {n: x for n, x in vars(value).items() if size(n) == x}
        return typed(type(value), named, near)
    if is_plain(value):
        return typed(type(value), put_into(value), near)
    return value.__name__ if isinstance(value, type) else repr(value)


def told(value: object) -> str:
    """Write an argument; of a configuration what was put into it."""
    if isinstance(value, int | float | str | bool | type):
        return value.__name__ if isinstance(value, type) else repr(value)
    if isinstance(value, Sizes):
        return said_of(Sizes, value._asked)
    if isinstance(value, dict):
        return repr({n: x for n, x in value.items() if size(str(n)) == x})
    if is_record(value):
        return said_of(type(value), changed(value))
    if is_plain(value):
        return said_of(type(value), put_into(value))
    return f"{type(value).__name__}(…)"


def said_of(kind: Callable, named: dict[str, Any]) -> str:
    """Write a call."""
    return f"{kind.__name__}({listed(named)})"


def listed(named: dict[str, Any]) -> str:
    """Write what a call is given."""
    return ", ".join(f"{name}={told(value)}" for name, value in named.items())


def changed(config: Any) -> dict[str, Any]:
    """Return the plain numbers of a configuration that are no defaults."""
    values = {
        one.name: getattr(config, one.name, one.default)
        for one in dataclasses.fields(config)
        if one.init
    }
    given = {one.name: one.default for one in dataclasses.fields(config)}
    return {
        name: x
        for name, x in values.items()
        if (isinstance(x, int | float) and x != given[name])
        or (is_record(x) and changed(x))
    }
