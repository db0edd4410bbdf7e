"""Find what is to be checked in a learner's file: by name, or by a mark.

The file is only read here; ``check_process`` imports it, in another process.
"""

import ast
import difflib
import io
import re
import tokenize
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["File", "Part", "parts_in", "read"]

COMMENT = re.compile(r"#\s*checks:\s*(\w+)")


@dataclass(frozen=True)
class File:
    """A learner's file, as it was read.

    Attributes:
        path: Where it lies.
        lines: Its text.
        body: Its statements.
    """

    path: Path
    lines: list[str]
    body: list[ast.stmt]

    def at(self, line: int) -> str:
        """Name a line of it, as editors and terminals open it."""
        return f"{self.path}:{line}"


@dataclass(frozen=True)
class Part:
    """Something to check.

    Attributes:
        component: What it claims to be, as ``check`` calls it.
        name: What its writer called it.
        line: Where it stands.
        expression: Makes what is checked; often just the name.
    """

    component: str
    name: str
    line: int
    expression: ast.expr


def read(path: Path) -> File:
    """Read a file; nothing of it is run.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not Python, or has an error of syntax.
    """
    if path.suffix != ".py":
        raise ValueError(f"file: expected a Python file, *.py, got {path}")
    data = path.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data, str(path))
            # A `return` at the top is found only here.
            compile(tree, str(path), "exec", dont_inherit=True)
        coding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except (SyntaxError, ValueError) as error:
        raise ValueError(_syntax_error(path, error)) from None
    return File(path, data.decode(coding).splitlines(), tree.body)


def parts_in(file: File, components: Collection[str]) -> list[Part]:
    """Find what is marked as one of ``components``, or is a function so named.

    A mark is ``@checks("attention")``, or a comment ``# checks: attention`` in
    the first line or right above it. A class that is marked is built, with what
    else stands in the mark. Of two with one name, Python keeps the second.

    Raises:
        ValueError: A mark names no component.
    """
    found = {}
    for statement in file.body:
        marked = list(_marked(file, statement))
        for part in marked:
            if part.component not in components:
                raise ValueError(_unknown(file, part, components))
        if isinstance(statement, ast.FunctionDef):
            name = statement.name
            if name in components and not marked:
                marked = [_part(statement, name, name)]
        found |= {(part.component, part.name): part for part in marked}
    return list(found.values())


def _marked(file: File, statement: ast.stmt) -> Iterator[Part]:
    decorators = getattr(statement, "decorator_list", [])
    first = min(node.lineno for node in (statement, *decorators))
    targets = getattr(statement, "targets", ())
    name = getattr(targets[0] if len(targets) == 1 else statement, "id", None)
    name = name or getattr(statement, "name", None)
    if name is None:  # Neither a definition, nor an assignment to one name.
        return
    for line in sorted({first - 1, first, statement.lineno} - {0}):
        if mark := COMMENT.search(file.lines[line - 1]):
            yield _part(statement, mark[1], name)
    for call in decorators:
        function = getattr(call, "func", None)
        words = (getattr(function, "id", None), getattr(function, "attr", None))
        if "checks" not in words:
            continue
        if not (call.args and isinstance(call.args[0], ast.Constant)):
            raise ValueError(
                f"{file.at(call.lineno)}: expected the name of a component, as "
                f'in @checks("attention"), got @{ast.unparse(call)}'
            )
        component, *args = call.args
        kind = str(component.value)
        yield _part(statement, kind, name, args, call.keywords)


def _part(
    statement: ast.stmt,
    component: str,
    name: str,
    args: Sequence[ast.expr] = (),
    keywords: Sequence[ast.keyword] = (),
) -> Part:
    """Make a part; a class, or what a mark has arguments for, is called."""
    expression: ast.expr = ast.Name(name, ast.Load())
    if args or keywords or isinstance(statement, ast.ClassDef):
        expression = ast.Call(expression, [*args], [*keywords])
    ast.fix_missing_locations(ast.copy_location(expression, statement))
    return Part(component, name, statement.lineno, expression)


def _unknown(file: File, part: Part, components: Collection[str]) -> str:
    near = difflib.get_close_matches(part.component, components, 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{file.at(part.line)}: expected one of {', '.join(sorted(components))}"
        f", got {part.component!r}.{hint}"
    )


def _syntax_error(path: Path, error: SyntaxError | ValueError) -> str:
    line = getattr(error, "lineno", None) or 1
    text = (getattr(error, "text", None) or "").strip()
    message = f"{path}:{line}: a syntax error: {getattr(error, 'msg', error)}"
    return f"{message}: `{text}`" if text else message
