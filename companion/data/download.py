"""One file from the network, once, whole and the right one.

By urllib: the libraries that would do it, pooch and torch.hub, begin again
after a broken connection instead of going on.
"""

import errno
import hashlib
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from companion.extras import lazy

__all__ = ["checksum", "fetch"]

filelock = lazy("filelock", "train")

ATTEMPTS = 3
CHUNK = 1 << 16
PATIENCE = 30
"""Seconds without a byte until a connection counts as broken."""


def checksum(path: str | Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(url: str, path: str | Path, *, sha256: str, size: int) -> Path:
    """Download a file, if it is not there yet.

    What has come lies beside it as ``….part``: whoever is interrupted goes on
    from there the next time, where the server allows it. Under its own name
    the file is there when it is whole and its checksum is right, not before.
    Of two processes at once, one downloads and the other waits.

    Args:
        url: Where it lies.
        path: Where it goes.
        sha256: Its checksum, in hexadecimal.
        size: Its length in bytes.

    Returns:
        The path.

    Raises:
        ConnectionError: There is no network or no such file, or the connection
            broke again and again; the message says what to do.
        ValueError: The checksum is wrong; what came is deleted.
        OSError: The disk is full; what came is kept.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The system unlocks it when a process dies, however it dies.
    with filelock.FileLock(path.with_name(f"{path.name}.lock")):
        if not (path.exists() and checksum(path) == sha256):
            part = path.with_name(f"{path.name}.part")
            _complete(url, part, size)
            _check(url, part, sha256)
            part.replace(path)
    return path


def _check(url: str, part: Path, sha256: str) -> None:
    got = checksum(part)
    if got != sha256:
        part.unlink()
        raise ValueError(
            f"{url}: expected SHA-256 {sha256}, got {got}. What came is "
            "deleted. Run it again; if that does not help, the file has "
            f"changed there: {_otherwise(part)}"
        )


def _complete(url: str, part: Path, size: int) -> None:
    """Make ``part`` as long as it should be, in a few attempts."""
    reason = ""
    for _ in range(ATTEMPTS):
        try:
            _continue(url, part, size)
            reason = "the connection was cut"
        except (URLError, HTTPException, ConnectionError, TimeoutError) as e:
            reason = str(e) or type(e).__name__
        if _length(part) == size:
            return
    raise ConnectionError(
        f"{url}: {_length(part)} of {size} bytes came ({reason}). What came "
        "is kept: run it again to go on. Without a network, "
        f"{_otherwise(part)}"
    )


def _continue(url: str, part: Path, size: int) -> None:
    """Ask for what is missing and append it."""
    if _length(part) > size:  # Of another version: nothing to go on from.
        part.unlink()
    have = _length(part)
    if have == size:
        return
    headers = {"User-Agent": "companion", "Range": f"bytes={have}-"}
    with urlopen(Request(url, headers=headers), timeout=PATIENCE) as answer:
        # A server that does not know ranges answers 200, from the beginning.
        goes_on = answer.status == 206
        try:
            with part.open("ab" if goes_on else "wb") as file:
                while chunk := answer.read(CHUNK):
                    file.write(chunk)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            raise OSError(
                errno.ENOSPC,
                f"{part}: the disk is full after {_length(part)} of {size} "
                "bytes. They are kept: make room and run it again",
            ) from error


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _otherwise(part: Path) -> str:
    return (
        f"get the file another way and put it at {part.with_suffix('')}, or "
        "set COMPANION_DATA to a folder that has the corpora"
    )
