"""What a user asks ``check`` to look at: a file, a folder, a module, a name.

Nothing is imported here, not even PyTorch.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["SUFFIXES", "Target", "targets"]

SUFFIXES = (".py", ".ipynb")
SKIPPED = {
    "__pycache__",
    "build",
    "dist",
    "env",
    "node_modules",
    "site-packages",
    "venv",
}
"""Folders that hold what somebody else wrote, or what was made."""

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Target:
    """A file to check, or a module that is installed.

    Attributes:
        path: The file; none for a module that is only known by its name.
        module: The name of that module.
        name: What of it is to be checked, an expression; all, if empty.
        root: The folder that was asked for, if it was one.
    """

    path: Path | None = None
    module: str = ""
    name: str = ""
    root: Path | None = None

    @property
    def title(self) -> str:
        """Name it as a report does."""
        return str(self.path or self.module)


def targets(asked: str) -> list[Target]:
    """Find the files that are asked for.

    Args:
        asked: A file, a folder, or a module; behind a colon, a name in it.

    Returns:
        One target a file; those of a folder in the order of their paths.

    Raises:
        OSError: There is no such file.
        ValueError: A folder has no Python in it, or has a name behind it.

    Example:
        >>> targets("no_such.module:Name")
        [Target(path=None, module='no_such.module', name='Name', root=None)]
    """
    place, name = asked, ""
    if not _is_there(asked):
        # Behind a drive, as in C:\mine.py, the colon is followed by a slash.
        drive = asked[:2] if asked[1:3] in (":/", ":\\") else ""
        place, colon, name = asked[len(drive) :].partition(":")
        place = drive + place
        if not colon:
            place, name = asked, ""
        elif not name.strip():
            raise ValueError(f"{asked}: expected a name behind the colon")
    path = Path(place)
    if path.is_dir():
        if name:
            raise ValueError(
                f"{place}: this is a folder; a name, here {name!r}, stands "
                "behind a file or a module"
            )
        return _in_folder(path)
    if path.exists() or path.suffix in SUFFIXES or not MODULE.fullmatch(place):
        return [Target(path, name=name)]
    for found in _files_of(place):
        return [Target(found, name=name)]
    return [Target(module=place, name=name)]


def _is_there(path: str) -> bool:
    """Tell whether there is such a file; an expression may be too long."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def _in_folder(folder: Path) -> list[Target]:
    found = [Target(path, root=folder) for path in sorted(_walk(folder))]
    if not found:
        raise ValueError(
            f"{folder}: there is no Python in this folder: no *.py, and no "
            "*.ipynb"
        )
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _skipped(name, place)]
        for name in files:
            if name == "setup.py":  # It installs when it is imported.
                continue
            if name.endswith(SUFFIXES) and not name.startswith("."):
                yield Path(place, name)


def _skipped(name: str, place: str) -> bool:
    own = name.startswith(".") or name in SKIPPED or name.endswith(".egg-info")
    return own or Path(place, name, "pyvenv.cfg").exists()


def _files_of(module: str) -> Iterator[Path]:
    """Find the file of a module in this folder, or in its ``src``."""
    for folder in (Path(), Path("src")):
        path = folder.joinpath(*module.split("."))
        if path.with_suffix(".py").is_file():
            yield path.with_suffix(".py")
        if (path / "__init__.py").is_file():
            yield path / "__init__.py"
