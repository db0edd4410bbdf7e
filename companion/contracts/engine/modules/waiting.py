"""Weights that take no part in what is judged, and may in something else.

In what else is returned, behind a switch, or with an argument that is optional.
"""

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import (
    Broken,
    draw,
    is_float,
    weighed,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.modules.around import inmost
from companion.contracts.engine.modules.common import (
    is_unused,
    module_of,
    tensors_of,
)

__all__ = ["WITH_AN_ARGUMENT", "why_elsewhere"]

WITH_AN_ARGUMENT = (
    "With `{}` they take part: it is right if yours is given that in use."
)

WAITS = (
    "The code uses them where `{}` is given, and it was not: it is right if "
    "yours is given that in use."
)

USED = (
    "The method `{}` uses them, which was not called: it is right if that is "
    "called in training."
)

SWITCHED_OFF = (
    "The code uses them where `self.{}` is on, and it was built with that off: "
    "it is right if yours is on, or is meant to be without them."
)

BEHIND_A_FLAG = (
    "With `{}` they take part in what is returned: it is right if that is "
    "trained by a loss of its own."
)

IN_WHAT_ELSE = (
    "They take part in what else is returned: it is right if that is trained "
    "by a loss of its own."
)


def why_elsewhere(fn: Guarded, named: dict[str, Tensor]) -> str:
    """Say in what else parameters take part that do not in what is judged.

    Args:
        fn: What is checked.
        named: Parameters that take no part in it.
    """
    unused = [*named.values()]
    if fn.form is not None and fn.form.reading:
        whole, fn.form = fn.form, replace(fn.form, reading=None)
        try:
            if all_take_part(fn, unused):
                return IN_WHAT_ELSE
        finally:
            fn.form = whole
    if flag := behind_a_flag(fn, unused):
        return BEHIND_A_FLAG.format(flag)
    if given := with_an_argument(fn, unused):
        return WITH_AN_ARGUMENT.format(given)
    module = module_of(fn)
    for ask, says in (
        (waits_for, WAITS),
        (switched_off, SWITCHED_OFF),
        (used_by, USED),
    ):
        found = {ask(module, name) for name in named}
        if len(found) == 1 and all(found):
            return says.format(*found)
    return ""


def all_take_part(fn: Guarded, parameters: list[Tensor]) -> bool:
    """Tell whether a gradient reaches each of them from all that it returns."""
    try:
        got = fn.call(*fn.component.example)
    except Broken:
        return False
    ends = [x for x in tensors_of(got) if x.requires_grad]
    if not ends:
        return False
    pairs = [(x, draw(*x.shape, seed=97)) for x in ends]
    found = torch.autograd.grad(weighed(pairs), parameters, allow_unused=True)
    return not any(map(is_unused, parameters, found))


def behind_a_flag(fn: Guarded, unused: list[Tensor]) -> str:
    """Name the switch of `forward` with which all of these take part.

    Args:
        fn: What is checked.
        unused: Parameters that take no part without it.
    """
    for one in inspect.signature(module_of(fn).forward).parameters.values():
        if isinstance(one.default, bool):
            word = {one.name: not one.default}
            if take_part_with(fn, unused, word):
                return f"{one.name}={not one.default}"
    return ""


def with_an_argument(fn: Guarded, unused: list[Tensor]) -> str:
    """Name the argument of `forward`, None by default, that they wait for.

    It may be vectors, such as a memory, or a number for each pair of them.

    Args:
        fn: What is checked.
        unused: Parameters that take no part without it.
    """
    vectors = [x for x in fn.component.example if is_float(x) and x.ndim == 3]
    if not vectors:
        return ""
    x = vectors[0]
    pairs = draw(len(x), x.shape[1], x.shape[1], seed=113)
    for one in inspect.signature(module_of(fn).forward).parameters.values():
        for value in (x.flip(0), pairs) if one.default is None else ():
            if take_part_with(fn, unused, {one.name: value}):
                return one.name
    return ""


def take_part_with(fn: Guarded, unused: list[Tensor], word: dict) -> bool:
    """Tell whether they take part where `forward` is given this word."""
    module = module_of(fn)
    switched = functools.partial(module.forward, **word)
    with mock.patch.object(module, "forward", switched):
        return all_take_part(fn, unused)


def waits_for(module: nn.Module, parameter: str) -> str:
    """Name the argument, None by default, without which no line asks for it.

    Nothing, if there is none, or the code cannot be read. Only the whole can be
    given one: what a layer inside waits for has to be handed on to it.

    Args:
        module: The whole, or what stands around it.
        parameter: The name of a parameter in it.
    """
    module = inmost(module)
    first, _, rest = parameter.partition(".")
    inner = ""
    if rest and isinstance(part := getattr(module, first, None), nn.Module):
        inner = waits_for(part, rest)
    if isinstance(module, nn.ModuleList | nn.ModuleDict):
        return inner
    forward = code_of(type(module).forward)
    names = [] if forward is None else left_at_none(forward)
    asked = (n for n in names if asked_under(forward, first, n))
    handed = inner if inner in names and hands_on(forward, inner) else ""
    return next(asked, handed)


def switched_off(module: nn.Module, parameter: str) -> str:
    """Name the attribute, False or None, that keeps a line from asking for it.

    Nothing, if there is none, or the code cannot be read.

    Args:
        module: The whole, or what stands around it.
        parameter: The name of a parameter in it.
    """
    module = inmost(module)
    first, _, rest = parameter.partition(".")
    part = getattr(module, first, None)
    forward = code_of(type(module).forward)
    for name, value in vars(module).items() if forward is not None else ():
        off = value is False or value is None
        if off and asked_under_own(forward, first, name):
            return name
    return switched_off(part, rest) if isinstance(part, nn.Module) else ""


def asked_under_own(
    forward: ast.FunctionDef, attribute: str, switch: str
) -> bool:
    """Tell whether a part is asked for only where `self.switch` is asked too.

    Args:
        forward: The function.
        attribute: Its part, an attribute of `self`.
        switch: Another attribute of `self`, which an `if` around it names.
    """
    mentions = [*mentions_of(forward, attribute)]
    under = {
        id(one)
        for branch in ast.walk(forward)
        if isinstance(branch, ast.If | ast.IfExp)
        and any(mentions_of(branch.test, switch))
        for part in where_on(branch)
        for one in mentions_of(part, attribute)
    }
    return bool(mentions) and all(id(one) in under for one in mentions)


def where_on(branch: ast.If | ast.IfExp) -> list[ast.AST]:
    """List the code of a branch that runs where what it asks for is on."""
    negated = isinstance(branch.test, ast.UnaryOp)
    taken = branch.orelse if negated else branch.body
    return taken if isinstance(taken, list) else [taken]


def used_by(module: nn.Module, parameter: str) -> str:
    """Name the method that asks for it, and that `forward` does not call.

    Nothing, if there is none, or the code cannot be read.

    Args:
        module: The whole, or what stands around it.
        parameter: The name of a parameter in it.
    """
    kind, first = type(inmost(module)), parameter.partition(".")[0]
    codes = {
        name: code
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not method.__module__.startswith("torch.")
        and (code := code_of(method)) is not None
    }
    if "forward" not in codes:
        return ""
    reached, left = set(), ["forward"]
    while left:
        name = left.pop()
        reached.add(name)
        asked = (n for n in codes if any(mentions_of(codes[name], n)))
        left += [n for n in asked if n not in reached]
    return next(
        (
            name
            for name, code in codes.items()
            if name not in reached
            and not OF_NO_USE.search(name)
            and any(mentions_of(code, first))
        ),
        "",
    )


OF_NO_USE = re.compile(
    r"(?i)^__|init|reset|param|weight|optim|load|save|freez|export|repr"
)
"""What methods are called that use no weights where they mention them."""


def code_of(function: Callable) -> ast.FunctionDef | None:
    """Return the code of a function; None, if it cannot be read."""
    try:
        code = textwrap.dedent(inspect.getsource(function))
        [found, *_] = ast.parse(code).body
    except (OSError, TypeError, SyntaxError):
        return None
    return found if isinstance(found, ast.FunctionDef) else None


def left_at_none(forward: ast.FunctionDef) -> list[str]:
    """List the arguments of a function that are None by default."""
    args = forward.args
    every = [*args.posonlyargs, *args.args]
    given = [None] * (len(every) - len(args.defaults)) + args.defaults
    pairs = [*zip(every, given, strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    return [
        one.arg
        for one, default in pairs
        if isinstance(default, ast.Constant) and default.value is None
    ]


def hands_on(forward: ast.FunctionDef, name: str) -> bool:
    """Tell whether an argument is given to something else that is called."""
    calls = (x for x in ast.walk(forward) if isinstance(x, ast.Call))
    return any(
        is_named(given, name)
        for call in calls
        for given in (*call.args, *(word.value for word in call.keywords))
    )


def asked_under(forward: ast.FunctionDef, attribute: str, name: str) -> bool:
    """Tell whether a part is asked for, and only where an argument is there.

    Args:
        forward: The function.
        attribute: Its part, an attribute of `self`.
        name: The argument, which an `if` around it names.
    """
    mentions = [*mentions_of(forward, attribute)]
    under = {
        id(one)
        for branch in ast.walk(forward)
        if isinstance(branch, ast.If | ast.IfExp)
        and any(is_named(x, name) for x in ast.walk(branch.test))
        for one in mentions_of(branch, attribute)
    }
    return bool(mentions) and all(id(one) in under for one in mentions)


def mentions_of(code: ast.AST, attribute: str) -> Iterator[ast.AST]:
    """List where `self.attribute` stands."""
    for one in ast.walk(code):
        asked = isinstance(one, ast.Attribute) and one.attr == attribute
        if asked and is_named(one.value, "self"):
            yield one


def is_named(code: ast.AST, name: str) -> bool:
    """Tell whether it is a name, and this one."""
    return isinstance(code, ast.Name) and code.id == name
