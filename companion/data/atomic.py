"""Files that are whole or not there."""

import contextlib
import os
import re
from pathlib import Path

__all__ = ["remove_temporaries", "write_atomically"]


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file beside its place and move it there once it is complete.

    Whoever reads meets the old file or the new one, whatever happens between,
    be it a full disk or a killed process.

    Args:
        path: The file; its folder must exist.
        data: All that it shall hold.

    Raises:
        OSError: It cannot be written; nothing half-written is left.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_atomically(f"{folder}/a.txt", b"whole")
        ...     Path(folder, "a.txt").read_bytes()
        b'whole'
    """
    path = Path(path)
    # Two processes that write the same file must not write into one.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        # Writing to an open file says why it fails, but not which file it was.
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_folder(path.parent)


def remove_temporaries(folder: Path, *names: str) -> None:
    """Remove what a process left that was killed while it wrote.

    Args:
        folder: Where it wrote; files of other names stay.
        names: Regular expressions, each for the name of a file.
    """
    pattern = re.compile(rf"({'|'.join(names)})\.\d+\.tmp")
    for path in folder.glob("*.tmp"):
        if pattern.fullmatch(path.name):
            path.unlink()


def _sync_folder(folder: Path) -> None:
    """Wait until a new name is on the disk, as the file itself is."""
    # The file is whole either way; and Windows opens no folders.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
