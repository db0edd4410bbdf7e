"""Reads a learner's file, and takes from it what one of its functions needs.

The file is not run. Of its statements those are kept which make a name that the
function needs, or that one of these needs in turn. So no training starts, and
mistakes elsewhere in the file are not met.
"""

import ast
import builtins
import dis
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

BUILTINS = set(dir(builtins))
READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}
WRITES = {"STORE_NAME", "STORE_GLOBAL", "DELETE_NAME"}

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Delete)
IMPORTS = (ast.Import, ast.ImportFrom)
PLAIN = (*DEFINITIONS, *ASSIGNMENTS, *IMPORTS, ast.Pass, ast.Raise)
BLOCKS = (ast.If, ast.Try, ast.With)
"""What may stand around plain statements: it runs each of them once."""


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
        """A place in it, as editors and terminals open it."""
        return f"{self.path}:{line}"


def read(path: Path) -> File:
    """What a file says; nothing of it is run.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not Python, or has an error of syntax.
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
        raise ValueError(_syntax(path, error)) from None
    return File(path, data.decode(coding).splitlines(), tree.body)


def needed(file: File, made: ast.expr) -> list[ast.stmt]:
    """The statements that an expression needs, in the order of the file.

    Raises:
        ValueError: a name that it needs is made in a loop, or in a block that
            does other things too.
    """
    makers, chosen, asking = _makers(file.body), set(), [made]
    while asking:
        for name in names_read(asking.pop()):
            for index in makers.get(name) or _by_star(makers, name):
                if index not in chosen:
                    statement = file.body[index]
                    if not _plain(statement):
                        raise ValueError(_not_plain(file, name, statement))
                    chosen.add(index)
                    asking.append(statement)
    return [
        statement
        for index, statement in enumerate(file.body)
        if index in chosen or _of_the_future(statement)
    ]


def names_read(node: ast.stmt | ast.expr) -> set[str]:
    """The names that it reads from its module, or from Python."""
    statement = ast.Expr(node) if isinstance(node, ast.expr) else node
    found, codes = set(), [_compiled(statement)]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
        steps = dis.get_instructions(code)
        found |= {step.argval for step in steps if step.opname in READS}
    return found


def _makers(body: list[ast.stmt]) -> dict[str, list[int]]:
    """Name -> the statements that make or change it; * may make any."""
    makers: dict[str, list[int]] = {}
    for index, statement in enumerate(body):
        if not _is_main(statement):
            for name in _names_written(statement):
                makers.setdefault(name, []).append(index)
    return makers


def _by_star(makers: dict[str, list[int]], name: str) -> list[int]:
    """The imports of * that may make a name, which nothing else does."""
    return [] if name in BUILTINS else makers.get("*", [])


def _names_written(statement: ast.stmt) -> set[str]:
    steps = list(dis.get_instructions(_compiled(statement)))
    found = {step.argval for step in steps if step.opname in WRITES}
    # `table[0] = 1` changes `table`.
    for node in _targets(statement):
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        found |= {node.id} if isinstance(node, ast.Name) else set()
    star = isinstance(statement, ast.ImportFrom) and any(
        alias.name == "*" for alias in statement.names
    )
    return found | ({"*"} if star else set())


def _targets(statement: ast.stmt) -> Iterator[ast.expr]:
    """What is assigned to, in blocks and loops too, but not in functions."""
    if isinstance(statement, ASSIGNMENTS):
        yield from getattr(statement, "targets", ())
        yield from filter(None, [getattr(statement, "target", None)])
    if not isinstance(statement, DEFINITIONS):
        for inner in _inside(statement):
            yield from _targets(inner)


def _inside(block: ast.AST) -> Iterator[ast.stmt]:
    """The statements that stand directly in a block."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.stmt):
            yield node
        elif isinstance(node, ast.ExceptHandler):
            yield from _inside(node)


def _plain(statement: ast.stmt) -> bool:
    """Whether it makes names, and does nothing else."""
    block = isinstance(statement, BLOCKS)
    return isinstance(statement, PLAIN) or (
        block and all(map(_plain, _inside(statement)))
    )


def _compiled(statement: ast.stmt) -> CodeType:
    module = ast.fix_missing_locations(ast.Module([statement], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(module, "<part>", "exec", dont_inherit=True)


def _is_main(statement: ast.stmt) -> bool:
    """Whether this is ``if __name__ == "__main__"``."""
    test = getattr(statement, "test", None)
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(test)


def _of_the_future(statement: ast.stmt) -> bool:
    return getattr(statement, "module", "") == "__future__"


def _not_plain(file: File, name: str, statement: ast.stmt) -> str:
    loop = isinstance(statement, ast.For | ast.While)
    how = "in a loop" if loop else "in a block that does more than make names"
    return (
        f"{file.at(statement.lineno)}: `{name}` is needed, and made {how}. Of "
        "a file only definitions, assignments and imports are run: put this "
        "into a function, and assign what it returns"
    )


def _syntax(path: Path, error: SyntaxError | ValueError) -> str:
    line = getattr(error, "lineno", None) or 1
    text = (getattr(error, "text", None) or "").strip()
    said = f"{path}:{line}: a syntax error: {getattr(error, 'msg', error)}"
    return f"{said}: `{text}`" if text else said
