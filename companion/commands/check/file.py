"""Find what is to be checked in a learner's file: by name, or by a mark.

The file, or the notebook, is only read here; ``imports`` runs it, in
another process.
"""

import ast
import contextlib
import difflib
import io
import json
import re
import tokenize
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

__all__ = ["File", "Part", "parts_in", "plain", "read"]

COMMENT = re.compile(r"#\s*checks:\s*(\w+)")


@dataclass(frozen=True)
class File:
    """A learner's file, as it was read.

    A notebook's cells stand here one below the other.

    Attributes:
        path: Where it lies.
        lines: Its text.
        body: Its statements.
        cells: Of a notebook, the cells that are Python: number -> before which
            line each begins.
        faults: Of a notebook, why a cell is left out, by number.
    """

    path: Path
    lines: list[str]
    body: list[ast.stmt]
    cells: dict[int, int] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)

    @property
    def statements(self) -> Iterator[ast.stmt]:
        """List its statements, also those under an `if`, `try` or `with`."""
        return _flat(self.body)

    def at(self, line: int) -> str:
        """Name a line of it, as editors and terminals open it."""
        if not self.cells:
            return f"{self.path}:{line}"
        cell = self.cell_of(line)
        return f"{self.path}, cell {cell}, line {line - self.cells[cell]}"

    def cell_of(self, line: int) -> int:
        """Return the number of the cell that a line belongs to."""
        return max(n for n, before in self.cells.items() if before < line)

    def code_of(self, cell: int) -> list[ast.stmt]:
        """Return the statements of a cell."""
        return [s for s in self.body if self.cell_of(s.lineno) == cell]


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """List statements with those inside, but for what only a script runs."""
    for statement in body:
        yield statement
        match statement:
            case ast.If(test=test, body=inner, orelse=other):
                if "__main__" not in ast.unparse(test):
                    yield from _flat([*inner, *other])
            case ast.Try(body=inner, orelse=other, handlers=handlers):
                late = (s for handler in handlers for s in handler.body)
                yield from _flat([*inner, *other, *late])
            case ast.With(body=inner):
                yield from _flat(inner)


@dataclass(frozen=True)
class Part:
    """Something to check.

    Attributes:
        component: What it claims to be, as ``check`` calls it.
        name: What its writer called it.
        line: Where it stands.
        expression: Makes what is checked; often just the name.
        by_name: Whether nothing but its name says so.
    """

    component: str
    name: str
    line: int
    expression: ast.expr
    by_name: bool = False


def read(path: Path) -> File:
    """Read a file; nothing of it is run.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not Python, or has an error of syntax.
    """
    if path.suffix == ".ipynb":
        return _read_notebook(path)
    if path.suffix != ".py":
        raise ValueError(
            f"file: expected a Python file, *.py, or a notebook, got {path}"
        )
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


def _read_notebook(path: Path) -> File:
    """Read the code cells of a notebook; one that is no Python is left out."""
    lines, body = [], []
    cells: dict[int, int] = {}
    faults = {}
    for number, source in _sources(path):
        try:
            text = plain(source)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
                compile(tree, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None) or 1
            said = getattr(error, "msg", error)
            faults[number] = f"a syntax error in its line {line}: {said}"
            continue
        ast.increment_lineno(tree, len(lines))
        cells[number] = len(lines)
        # What only a notebook understands, Python would not find classes in.
        own = text.split("\n")
        lines += [*own, *[""] * (source.count("\n") + 2 - len(own))]
        body += tree.body
    if not cells:
        why = next(iter(faults.values()), "it has no cell with code")
        raise ValueError(f"{path}: there is no Python in it: {why}")
    return File(path, lines, body, cells, faults)


def _sources(path: Path) -> list[tuple[int, str]]:
    """Return the code cells of a notebook, and their numbers among all."""
    try:
        cells = json.loads(path.read_bytes().decode("utf-8-sig"))["cells"]
        return [
            (number, "".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{path}: it cannot be read as a notebook, nbformat 4"
        ) from None


def plain(source: str) -> str:
    """Replace what only a notebook understands by a line that does nothing.

    Example:
        >>> plain("!pip install torch")
        'pass'
    """
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        ast.parse(source)
        return source
    first = source.lstrip().partition("\n")[0]
    if first.startswith("%%"):
        runs = re.match(r"%%(time|timeit|capture|prun)\b", first)
        source = source.replace(first, "pass", 1) if runs else "pass"
    source = re.sub(r"(?m)^([ \t]*)[%!?].*$", r"\1pass", source)
    source = re.sub(r"(?m)^([ \t]*)[\w.]+\?{1,2}$", r"\1pass", source)
    return re.sub(r"(?m)^(\s*[\w, ]+=\s*)[%!][a-z].*$", r"\1None", source)


def parts_in(file: File, components: Collection[str]) -> list[Part]:
    """Find what is marked as one of ``components``, or is a function so named.

    A mark is ``@checks("attention")``, or a comment ``# checks: attention`` in
    the first line or right above it. A class that is marked is built, with what
    else stands in the mark. Of two with one name, Python keeps the second.

    Raises:
        ValueError: A mark names no component.
    """
    found = {}
    for statement in file.statements:
        marked = list(_marked(file, statement))
        for part in marked:
            if part.component not in components:
                raise ValueError(_unknown(file, part, components))
        if isinstance(statement, ast.FunctionDef):
            name = statement.name
            if name in components and not marked:
                part = _part(statement, name, name)
                marked = [replace(part, by_name=True)]
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
