"""Where the corpora lie on this machine."""

import os
import sys
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from companion.data.atomic import write_atomically
from companion.data.download import checksum, fetch
from companion.data.pinned import FILES, INSIDE, NOTICES
from companion.extras import lazy

__all__ = ["locate"]

platformdirs = lazy("platformdirs", "train")


def locate(name: str) -> Path:
    """Find the file of that name, such as ``tatoeba-cmn-eng/cmn.txt``.

    It lies in the folder that the environment's ``COMPANION_DATA`` names. If
    that is not set, it lies in the cache folder of the platform, downloaded
    the first time. Either way its checksum is right.

    Raises:
        FileNotFoundError: The folder that ``COMPANION_DATA`` names lacks it.
        ValueError: Its checksum is wrong.
        OSError: It cannot be downloaded; ConnectionError, if no network is.
    """
    folder = os.environ.get("COMPANION_DATA")
    if folder:
        return _local(Path(folder) / name, (FILES | INSIDE)[name].sha256)
    cache = platformdirs.user_cache_path("companion")
    _show_notice(cache / Path(name).parts[0])
    if name in INSIDE:
        return _unpacked(cache, name)
    file = FILES[name]
    return fetch(file.url, cache / name, sha256=file.sha256, size=file.size)


def _local(path: Path, wanted: str) -> Path:
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: expected this file, because COMPANION_DATA is set; "
            "without it, the file is downloaded"
        )
    _compare(path, checksum(path), wanted)
    return path


def _compare(path: Path, got: str, wanted: str) -> None:
    if got != wanted:
        raise ValueError(f"{path}: expected SHA-256 {wanted}, got {got}")


def _show_notice(folder: Path) -> None:
    """Show once what the licence of a corpus asks for, and leave it there."""
    path = folder / "NOTICE.txt"
    if not path.exists():
        print(NOTICES[folder.name], file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, f"{NOTICES[folder.name]}\n".encode())


def _unpacked(cache: Path, name: str) -> Path:
    path, file = cache / name, INSIDE[name]
    if not (path.exists() and checksum(path) == file.sha256):
        with ZipFile(locate(file.url)) as archive:
            text = archive.read(path.name)
        _compare(path, sha256(text).hexdigest(), file.sha256)
        write_atomically(path, text)
    return path
