"""A folder that is there as a whole or not at all, whatever happens."""

import hashlib
import os
import shutil
from pathlib import Path


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
