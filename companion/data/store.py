"""Files that are whole or not there."""

import os
from pathlib import Path


def write_whole(path: str | Path, data: bytes) -> None:
    """Writes a file beside its place and moves it there when it is complete.

    Whoever reads meets the old file or the new one, whatever happens between.

    Raises:
        OSError: it cannot be written; nothing half-written is left.
    """
    path = Path(path)
    # Two processes that write the same file must not write into one.
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        # Writing to an open file says why it fails, but not which file it was.
        raise OSError(error.errno, error.strerror, str(path)) from error
