"""Import a learner's file, with its neighbours; it runs in another process.

Neighbours are the files beside it, the package that it belongs to, what stands
above it up to the folder that was asked for, and the current folder above it.
"""

import ast
import builtins
import contextlib
import importlib
import importlib.util
import io
import itertools
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

from companion.commands.check.file import File, Part

__all__ = ["build", "imported", "imported_by_name", "run_cells", "silent"]

PROJECT = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What lies where a repository begins."""


class _Nothing(io.StringIO):
    def write(self, text: str) -> int:
        return len(text)


class _Silent:
    """Stands for what only a notebook has, and does nothing here."""

    def __getattr__(self, name: str) -> Callable:
        return lambda *args, **named: None


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show neither what a file prints, nor what it warns of."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(_Nothing()):
        warnings.simplefilter("ignore")
        yield


def build(file: File, part: Part) -> object:
    """Import ``file`` and make what is to be checked.

    Other files beside it can be imported, but none in place of a module that is
    installed. What it prints is not shown.

    Raises:
        ValueError: A line raises something; the message names the line.
    """
    return made(file, part, imported(file))


def made(file: File, part: Part, module: ModuleType) -> object:
    """Make what is to be checked of a module that was imported.

    Raises:
        ValueError: It raises something; the message names the line.
    """
    expression = compile(
        ast.Expression(part.expression), file.path, "eval", dont_inherit=True
    )
    try:
        with silent():
            return eval(expression, module.__dict__)
    except BaseException as error:
        raise ValueError(_broken(file, part.line, error)) from None


def imported(file: File, root: Path | None = None) -> ModuleType:
    """Import a file, under the name that its package gives it.

    Args:
        file: It, as it was read; of a notebook, its namespace is made, and no
            cell is run.
        root: The folder that was asked for, if it was one.

    Returns:
        The module.

    Raises:
        ValueError: A line raises something; the message names the line.
    """
    from companion.contracts import checks

    path = file.path.resolve()
    package = _package_of(path)
    if package.count(".") < (up := _levels(file)):
        package = _package_without_init(path, root, up)
    # A mark needs no import, nor where another file imports this one.
    builtins.checks = checks  # pyrefly: ignore
    with _importable(path, root):
        _look_above(file, path)
        try:
            with silent():
                if package and not file.cells:
                    return _in_package(path, package)
                return _alone(file, checks)
        except BaseException as error:
            raise ValueError(_broken(file, 0, error)) from None


def _alone(file: File, checks: Callable) -> ModuleType:
    """Run a file that belongs to no package."""
    name = f"checked_{file.path.stem}"
    # A dataclass looks its module up.
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(__file__=str(file.path), checks=checks)
    if file.cells:
        more = {"get_ipython": _Silent, "display": lambda *args, **named: None}
        vars(module).update(more)
        text = "\n".join(file.lines)
        lines = [f"{line}\n" for line in file.lines]
        # From here a report quotes a line.
        linecache.cache[str(file.path)] = (
            len(text),
            None,
            lines,
            str(file.path),
        )
    else:
        SourceFileLoader(name, str(file.path)).exec_module(module)
    return module


def run_cells(
    file: File, module: ModuleType, skip: list[int], at: Callable
) -> dict[int, str]:
    """Run the cells of a notebook; one that raises does not stop the others.

    Nor does an import that fails stop what stands behind it in its cell.

    Args:
        file: The notebook.
        module: Its namespace.
        skip: The numbers of cells that are left out.
        at: Told the number of each cell before it is run.

    Returns:
        What cells raised, by their numbers.
    """
    said = {}
    with _importable(file.path.resolve(), None), silent():
        for number in file.cells:
            body = file.code_of(number)
            if number in skip or _only_checks(body):
                continue
            at(number)
            while body:
                tree, body = ast.Module(body, []), []
                try:
                    code = compile(tree, file.path, "exec", dont_inherit=True)
                    exec(code, vars(module))
                except BaseException as error:
                    first = file.cells[number] + 1
                    said.setdefault(number, _broken(file, first, error))
                    body = _behind_import(file, tree.body, error)
    return said


def _behind_import(
    file: File, body: list[ast.stmt], error: BaseException
) -> list[ast.stmt]:
    """List what stands behind the import that raised, if one did."""
    if not isinstance(error, ImportError):
        return []
    steps = traceback.extract_tb(error.__traceback__)
    lines = {s.lineno for s in steps if s.filename == str(file.path)}
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            own = range(statement.lineno, (statement.end_lineno or 0) + 1)
            if lines & {*own}:
                return body[i + 1 :]
    return []


def _only_checks(body: list[ast.stmt]) -> bool:
    """Tell whether all that a cell does is to call ``check``."""
    text = " ".join(ast.unparse(statement) for statement in body)
    return bool(re.fullmatch(r"check(_\w+)?\([^()]*\)", text))


@contextlib.contextmanager
def _importable(path: Path, root: Path | None) -> Iterator[None]:
    """Let the neighbours of a file be imported, meanwhile and afterwards.

    They stand behind what is installed. They stay, since a function may import
    something when it is called; only in the process that asks they do not.
    """
    before = list(sys.path)
    # As where a file of a package is run by itself.
    folders = [*dict.fromkeys([*_folders(path, root), path.parent])]
    if (here := Path.cwd()) in path.parents:
        folders.append(here)  # As Python itself does.
    sys.path += [p for p in map(str, folders) if p not in before]
    try:
        yield
    finally:
        from multiprocessing import parent_process

        if parent_process() is None:
            sys.path[:] = before


def _look_above(file: File, path: Path) -> None:
    """Let what a file imports be found in a folder above it, if nowhere else.

    So it is where its writer runs something there, and this file was asked for
    alone.
    """
    nodes = [n for one in file.statements for n in ast.walk(one)]
    plain = [n for n in nodes if isinstance(n, ast.Import)]
    names = [alias.name for n in plain for alias in n.names]
    names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    for top in {name.partition(".")[0] for name in names} - {""}:
        if top in sys.modules or importlib.util.find_spec(top):
            continue
        places = (
            folder
            for folder in [*path.parents][:4]
            if (folder / top).is_dir() or (folder / f"{top}.py").is_file()
        )
        sys.path += map(str, itertools.islice(places, 1))


def _folders(path: Path, root: Path | None) -> Iterator[Path]:
    """List where neighbours may be, the nearest first."""
    start = path.parent
    while (start / "__init__.py").exists():
        start = start.parent
    if start == path.parent:
        yield start
    end = root.resolve() if root else start
    end = end if end in (start, *start.parents) else start
    for folder in (start, *start.parents):
        yield folder
        project = any((folder / name).exists() for name in PROJECT)
        # Above the folder that was asked for, to where a repository begins.
        if project or (folder == end and not _project_above(folder)):
            return


def _project_above(folder: Path) -> bool:
    """Tell whether a repository begins in one of the four folders above."""
    above = list(folder.parents)[:4]
    return any((up / name).exists() for up in above for name in PROJECT)


def _package_of(path: Path) -> str:
    """Return the full name of a file in a package; nothing if it is in none."""
    names, folder = [path.stem], path.parent
    if not (folder / "__init__.py").exists():
        return ""
    while (folder / "__init__.py").exists():
        name = re.sub(r"\W|^(?=\d)", "_", folder.name)
        names.insert(0, name)
        if name != folder.name:
            break  # A clone, which nobody imports by its name.
        folder = folder.parent
    return ".".join(names).removesuffix(".__init__")


def _levels(file: File) -> int:
    """Return how many folders up the relative imports of a file reach."""
    nodes = [n for one in file.statements for n in ast.walk(one)]
    return max([0, *(n.level for n in nodes if isinstance(n, ast.ImportFrom))])


def _package_without_init(path: Path, root: Path | None, up: int) -> str:
    """Return the full name of a file that imports relatively, in such folders.

    Python takes a folder without ``__init__.py`` for a package too, if what is
    run stands above it. It begins below the folder that was asked for, or as
    far up as its imports reach.

    Args:
        path: Where it is.
        root: The folder that was asked for, if it was one.
        up: How many folders up its own imports reach.
    """
    if root and root.resolve() in path.parents:
        up = max(up, len(path.relative_to(root.resolve()).parts) - 1)
    folders = [folder.name for folder in path.parents[:up]]
    names = [re.sub(r"\W|^(?=\d)", "_", name) for name in folders]
    if names[-1] in sys.stdlib_module_names:
        names[-1] += "_"  # Python's own is wanted elsewhere.
    return ".".join([*reversed(names), path.stem])


def _in_package(path: Path, name: str) -> ModuleType:
    """Import a file of a package, so that relative imports work."""
    top, *inner = name.split(".")
    home = path.parents[len(inner) - (path.stem != "__init__")]
    if (home / "__init__.py").exists():
        _claim(top, home)
    else:
        _stand_in(top, home)
    try:
        return importlib.import_module(name)
    except BaseException as error:
        reached = {
            s.filename for s in traceback.extract_tb(error.__traceback__)
        }
        if str(path) in reached:
            raise
    # What fails is a package around it, which it may not need.
    for i in range(1, len(inner) + 1):
        around = ".".join([top, *inner][:i])
        folder = home.joinpath(*inner[: i - 1])
        _stand_in(around, folder)
    return importlib.import_module(name)


def _stand_in(name: str, folder: Path) -> None:
    """Let a folder be a package of this name, without what it would run."""
    stub = sys.modules[name] = ModuleType(name)
    stub.__path__ = [str(folder)]
    stub.__spec__ = ModuleSpec(name, None, is_package=True)


def _claim(top: str, home: Path) -> None:
    """Let a package be this one, if another of its name is installed."""
    try:
        spec = importlib.util.find_spec(top)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
    except (ImportError, ValueError, AttributeError):
        found = None
    init = home / "__init__.py"
    if found == init:
        return
    for name in [n for n in sys.modules if n.partition(".")[0] == top]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        top, init, submodule_search_locations=[str(home)]
    )
    sys.meta_path.insert(0, _Claimed(top, spec))


class _Claimed:
    """Finds one package where it lies, and nothing else."""

    def __init__(self, name: str, spec: ModuleSpec | None):
        self.name, self.spec = name, spec

    def find_spec(self, name: str, path: object, target: object = None):
        """Answer for this name alone."""
        return self.spec if name == self.name else None


def imported_by_name(name: str) -> tuple[ModuleType, Path]:
    """Import a module that is installed.

    Raises:
        ValueError: There is none, it raises something, or is not Python.
    """
    sys.path.append(str(Path.cwd()))
    try:
        with silent():
            module = importlib.import_module(name)
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and (
            error.name or ""
        ) in (name, *_beginnings(name))
        if missing:
            raise ValueError(
                f"{name}: there is no such file, folder or module"
            ) from None
        raised = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise ValueError(f"{name}: importing it raised {raised}") from None
    path = Path(getattr(module, "__file__", None) or "")
    if path.suffix != ".py":
        raise ValueError(f"{name}: this module is not written in Python")
    return module, path


def _beginnings(name: str) -> list[str]:
    names = name.split(".")
    return [".".join(names[:i]) for i in range(1, len(names))]


def _broken(file: File, line: int, error: BaseException) -> str:
    """Say which line raised, and what: one of the file, if it was reached."""
    steps = traceback.extract_tb(error.__traceback__)
    own = {str(file.path), str(file.path.resolve())}
    lines = [s.lineno for s in steps if s.filename in own]
    raised = f"{type(error).__name__}: {error}".removesuffix(": ")
    if not lines and not line:
        others = [
            step
            for step in steps
            if Path(step.filename).exists()
            and Path(step.filename) != Path(__file__)
            and not re.search("(site|dist)-packages", step.filename)
        ]
        if others:
            last = others[-1]
            text = (last.line or "").strip()
            where = f"{last.filename}:{last.lineno}: `{text}`"
            return f"{file.path}: importing it failed at {where}, {raised}"
        return f"{file.path}: importing it raised {raised}"
    line = next(filter(None, lines), line)
    text = file.lines[line - 1].strip()
    return f"{file.at(line)}: `{text}` raised {raised}"
