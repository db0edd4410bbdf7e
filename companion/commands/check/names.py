"""What names say that a thing is, or that it is something else."""

import contextlib
import inspect
import re
from collections.abc import Callable

from torch import nn

from companion.contracts import COMPONENTS
from companion.contracts.discovery.filters import filters_logits
from companion.contracts.discovery.mask_makers import makes_masks
from companion.contracts.discovery.warmup import rate_of
from companion.contracts.engine.forms.signature import SAME

__all__ = [
    "alias",
    "another_argument",
    "any_number_of",
    "by_words",
    "is_factory",
    "is_torchs",
    "takes_arrays",
    "takes_something",
]

FACTORY = re.compile(
    r"(make|build|create|get)_?(a_)?(\w+_)?(model|transformer|gpt|bert|llama)"
)
"""What functions are called that build a whole model."""

ALIASES = {
    r"(scaled_?)?dot_?prod(uct)?(_?att\w*)?|scaled_?dot_?att\w*|sdpa|attn": (
        "attention"
    ),
    r"((make|create|get|generate|build)_)?(attn_)?(square_)?(causal|subsequent|"
    r"look_?ahead|future|autoregressive|no_?peak|no_?peek)_(attn_)?mask": (
        "causal_mask"
    ),
    r"((make|create|get|generate|build)_)?(attn_)?(pad|padding)_(attn_)?mask": (
        "padding_mask"
    ),
    r"((make|create|get|generate|build)_)?(src|source|enc(oder)?)_mask": (
        "padding_mask"
    ),
    r"(get_|create_|make_|build_)?(sinusoid(al)?|sin_?cos|positional)"
    r"(_?pos(itional)?)?_?(enc(odings?)?|emb(eddings?)?|table"
    r"|encoding_table|pe)?": "sinusoidal",
    r"shift_(tokens_)?right": "shift_right",
    r"apply_(rot(ary|ate)|rope).*|rotary(_pos)?(_embedding|_emb)?": "rope",
    r"layernorm": "layer_norm",
    r"rmsnorm": "rms_norm",
    r"(my|masked|naive|own|manual)_softmax": "masked_softmax",
}
"""What functions are called elsewhere -> what they then are."""


def alias(name: str) -> str:
    """Return the component that a function of this name usually is, or ''."""
    name = name.strip("_").lower()
    for pattern, component in ALIASES.items():
        if re.fullmatch(pattern, name):
            return component
    return name if name in COMPONENTS else ""


def by_words(name: str, fn: Callable) -> str:
    """Return the component that its name and its arguments' names make it."""
    if makes_masks(name, fn):
        return "combine_masks"
    if rate_of(fn) is not None:
        return "schedule"
    return "sampling_filter" if filters_logits(name, fn) else ""


def is_factory(fn: Callable) -> bool:
    """Tell whether a function builds a model of sizes, by its names."""
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return False
    named = FACTORY.fullmatch(fn.__name__.strip("_").lower())
    return bool(named) and any("vocab" in name for name in names)


def takes_something(value: object) -> bool:
    """Tell whether it is a function, or an object of a class is as one."""
    if isinstance(value, type):
        # Its class may have a say in what it has, and raise.
        with contextlib.suppress(Exception):
            calls = hasattr(value, "forward") or "__call__" in dir(value)
            return calls and not issubclass(value, nn.Module)
        return False
    if not inspect.isfunction(value):
        return False
    return bool(inspect.signature(value).parameters)


def is_torchs(value: object) -> bool:
    """Tell whether it is PyTorch's own, with nothing else inside."""
    if isinstance(value, nn.Sequential):
        return all(
            type(part).__module__.startswith("torch.")
            for part in value.modules()
        )
    return type(value).__module__.startswith("torch.")


def any_number_of(kind: object) -> str:
    """Name what a module's class takes any number of, by position."""
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        return ""
    named = inspect.signature(kind.__init__).parameters.values()
    found = (one.name for one in named if one.kind is one.VAR_POSITIONAL)
    # PyTorch's own `__init__` takes `*args` and asks for none.
    own = kind.__init__ is not nn.Module.__init__
    return next(found, "") if own else ""


PROMPT = re.compile(
    r"(?i)\w*prompt\w*|(input_?)?ids|idx|tokens|inputs?|prefix|context|src|source"
)
"""What is called so comes first, or is what is translated."""

OF_OTHERS = {
    "padding_mask": re.compile(
        r"(?i)(\w*_)?(len(gth)?s|lens?|seq_?lens?|valid_len\w*)"
    ),
    "rope": re.compile("axis|axes|dims?"),
    "sinusoidal": re.compile("t|time_?steps?|times?"),  # Of a diffusion model.
    "beam_search": PROMPT,
    "greedy_decode": PROMPT,
}
"""Component -> what arguments are called of others that bear its name."""

STRINGS = re.compile(r"(?i)<class 'str'>|str|(list|sequence|iterable)\[str\]")
"""How a type is written of sentences that are not split into words."""


def another_argument(fn: object, component: str) -> str:
    """Name an argument that shows that a function is no such component.

    A type, a device, a model or whole strings where the contracts give
    something else, any number of arguments, or one of another name that moves
    a known one to a later place.
    """
    expected = COMPONENTS[component].parameters
    known = {name for one in expected for name in SAME.get(one, (one,))}
    try:
        taken = [*inspect.signature(fn).parameters.values()]  # pyrefly: ignore
    except (TypeError, ValueError):
        return ""
    names = [one.name for one in taken]
    for place, (one, usual) in enumerate(zip(taken, expected, strict=False)):
        moved = one.name not in known and usual in names[place + 1 :]
        needed = one.default is one.empty
        text = str(one.annotation).replace("typing.", "")
        strings = component == "bleu" and STRINGS.fullmatch(text)
        other = one.name in ({"dtype", "device", "model"} - {*expected})
        many = one.kind is one.VAR_POSITIONAL
        foreign = OF_OTHERS.get(component)
        other |= bool(foreign and foreign.fullmatch(one.name))
        other |= has_another_role(one, usual, names)
        if other or many or strings or (needed and moved):
            return one.name
    return ""


def has_another_role(
    one: inspect.Parameter, usual: str, names: list[str]
) -> bool:
    """Tell whether an argument is not what the contracts give at its place.

    No argument has a name for what they give there; and this one has a default,
    as `offset=0` has, or is called as keys are.

    Args:
        one: The argument at that place.
        usual: What the contracts give there.
        names: What all arguments are called.
    """
    own = SAME.get(usual, (usual,))
    if usual == "mask" or any(name in own for name in names):
        return False
    keys = one.name in SAME["k"] and usual not in "qkv"
    return keys or one.default is not one.empty


def takes_arrays(fn: object) -> bool:
    """Tell from what a function names whether it is written with NumPy."""
    known = getattr(fn, "__globals__", {})
    own = getattr(getattr(fn, "__code__", None), "co_names", ())
    named = [known[name] for name in own if inspect.ismodule(known.get(name))]
    # Where it names neither, its file tells.
    modules = named or [x for x in known.values() if inspect.ismodule(x)]
    roots = {module.__name__.partition(".")[0] for module in modules}
    return "numpy" in roots and "torch" not in roots
