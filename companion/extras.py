"""The packages that only some parts of the course need, and how to get them.

Chapters run on torch, numpy and jaxtyping. What else a part needs is an *extra*
of the package: ``pip install 'companion[train]'``. In a checkout, ``make
install`` brings all of them, of the versions that the course was tested with.
"""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["extra", "lazy"]

ROOT = Path(__file__).parents[1]
"""The folder that the package lies in: a checkout has a Makefile there."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import what belongs to an extra; say how to install it if it is missing.

    Args:
        name: The extra, as ``pyproject.toml`` has it.

    Raises:
        ModuleNotFoundError: A package is missing; the message has the line that
            installs it.

    Example:
        >>> with extra("train"):
        ...     import nosuchpackage
        Traceback (most recent call last):
        ModuleNotFoundError: nosuchpackage is missing: ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        raise ModuleNotFoundError(
            f"{missing} is missing: {_remedy(name)}",
            name=error.name,
        ) from error


def _remedy(name: str) -> str:
    if not (ROOT / "Makefile").exists():
        return f"pip install 'companion[{name}]'"
    if Path.cwd() == ROOT:
        return "make install"
    return f"make -C {shlex.quote(str(ROOT))} install"


def lazy(module: str, name: str) -> ModuleType:
    """Return a module of an extra that is imported when it is first used.

    Args:
        module: Its full name.
        name: The extra that it belongs to.

    Example:
        >>> lazy("nosuchpackage", "train")
        <module 'nosuchpackage'>
    """
    return _Lazy(module, name)


class _Lazy(ModuleType):
    def __init__(self, module: str, name: str):
        super().__init__(module)
        self._extra = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        with extra(self._extra):
            return getattr(import_module(self.__name__), attribute)
