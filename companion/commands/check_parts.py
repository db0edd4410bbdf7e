"""Finds what is to be checked in a learner's file: by name, or by a mark."""

import ast
import difflib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from companion.commands.check_file import DEFINITIONS, File

COMMENT = re.compile(r"#\s*checks:\s*(\w+)")


@dataclass(frozen=True)
class Part:
    """Something to check.

    Attributes:
        component: What it claims to be, as ``check`` calls it.
        name: What its writer called it.
        line: Where it stands.
        made: The expression that makes what is checked; often just the name.
    """

    component: str
    name: str
    line: int
    made: ast.expr


def parts_in(file: File, components: Collection[str]) -> list[Part]:
    """What is marked as one of ``components``, or is a function of its name.

    A mark is ``@checks("attention")``, or a comment ``# checks: attention`` in
    the first line or right above it. A class that is marked is built, with what
    else stands in the mark. Of two with one name, Python keeps the second.

    Raises:
        ValueError: a mark names no component.
    """
    found = {}
    for statement in file.body:
        marked = list(_marked(file, statement))
        for part in marked:
            if part.component not in components:
                raise ValueError(_unknown(file, part, components))
        name = getattr(statement, "name", None)
        if isinstance(statement, ast.FunctionDef) and name in components:
            marked = marked or [_part(statement, name)]
        found |= {(part.component, part.name): part for part in marked}
    return list(found.values())


def unmarked(statement: ast.stmt) -> ast.stmt:
    """A definition without its ``@checks``: its file need not import that."""
    if isinstance(statement, DEFINITIONS):
        left = [d for d in statement.decorator_list if not _is_mark(d)]
        fields = {**dict(ast.iter_fields(statement)), "decorator_list": left}
        return ast.copy_location(type(statement)(**fields), statement)
    return statement


def _marked(file: File, statement: ast.stmt) -> Iterator[Part]:
    decorators = getattr(statement, "decorator_list", [])
    first = min(node.lineno for node in (statement, *decorators))
    for line in sorted({first - 1, first, statement.lineno} - {0}):
        mark = COMMENT.search(file.lines[line - 1])
        if mark and (part := _part(statement, mark[1])):
            yield part
    for call in filter(_is_mark, decorators):
        named = call.args and isinstance(call.args[0], ast.Constant)
        if not named:
            raise ValueError(
                f"{file.at(call.lineno)}: expected the name of a component, as "
                f'in @checks("attention"), got @{ast.unparse(call)}'
            )
        component, *args = call.args
        yield _part(statement, str(component.value), args, call.keywords)


def _part(
    statement: ast.stmt,
    component: str,
    args: list[ast.expr] | None = None,
    keywords: list[ast.keyword] | None = None,
) -> Part | None:
    """A definition, or an assignment to one name, as a part."""
    targets = getattr(statement, "targets", ())
    name = getattr(targets[0] if len(targets) == 1 else statement, "id", None)
    name = name or getattr(statement, "name", None)
    if name is None:
        return None
    made = ast.Name(name, ast.Load())
    if args or keywords or isinstance(statement, ast.ClassDef):
        made = ast.Call(made, args or [], keywords or [])
    ast.fix_missing_locations(ast.copy_location(made, statement))
    return Part(component, name, statement.lineno, made)


def _is_mark(decorator: ast.expr) -> bool:
    called = getattr(decorator, "func", None)
    words = (getattr(called, "id", None), getattr(called, "attr", None))
    return "checks" in words


def _unknown(file: File, part: Part, components: Collection[str]) -> str:
    near = difflib.get_close_matches(part.component, components, 1)
    ask = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{file.at(part.line)}: expected one of {', '.join(sorted(components))}"
        f", got {part.component!r}.{ask}"
    )
