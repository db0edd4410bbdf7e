"""A folder that is whole or not there, and one that a process has alone."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from companion.extras import lazy

filelock = lazy("filelock", "train")

LOCK = ".lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Makes ``folder`` if need be, and keeps other processes out of it.

    Raises:
        BlockingIOError: another process is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The system unlocks it when a process dies, however it dies.
    lock = filelock.FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise BlockingIOError(
            errno.EAGAIN,
            "another process is training here; wait until it has ended, or "
            "take another folder",
            str(folder),
        ) from None
    try:
        yield
    finally:
        lock.release()


def write_folder(path: Path, files: dict[str, bytes]) -> None:
    """Puts a folder of ``files`` at ``path``, where none is yet.

    Raises:
        OSError: it could not be written; nothing of it stays.
    """
    part = path.with_name(f".{path.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        for name, data in files.items():
            _write(part / name, data)
        _sync(part)
        part.rename(path)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise OSError(
            error.errno,
            f"could not be written, and nothing of it stays: {error.strerror}",
            str(path),
        ) from error
    _sync(path.parent)


def fingerprint(data: bytes) -> dict[str, int | str]:
    """What tells whether a file is the one that was written."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Waits until the names in a folder are on the disk, as its files are."""
    if os.name != "posix":  # Windows opens no folders.
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
