"""A run's log: what was measured, one row a step."""

import csv
from pathlib import Path

from companion.data.atomic import write_atomically
from companion.training.steps import Step

__all__ = ["LOG", "Log", "read_log"]

LOG = "log.csv"
COLUMNS = (*Step._fields[:5], "speed", "validation")
HEAD = ",".join(COLUMNS)


class Log:
    """Append rows to ``log.csv``, from the row after step ``done`` on.

    A run that was killed has logged steps after its last checkpoint, and these
    it will take again: their rows go.

    Args:
        folder: That of the run.
        done: The last step whose row stays.

    Raises:
        ValueError: Another file lies there, or a row is damaged; the file
            stays as it is.

    Example:
        >>> folder = Path("log")
        >>> folder.mkdir()
        >>> with Log(folder, done=0) as log:
        ...     log.add(Step(1, 2.5, 0.001, 0.7, 96), 1000.0, None)
        >>> print((folder / LOG).read_text().strip())
        step,loss,rate,gradient,tokens,speed,validation
        1,2.5,0.001,0.7,96,1000,
    """

    def __init__(self, folder: Path, done: int):
        path = folder / LOG
        old = _lines(path) if path.exists() else []
        rows = [row for row in old[1:] if _step(path, row) <= done]
        text = "".join(f"{row}\n" for row in (HEAD, *rows))
        write_atomically(path, text.encode())
        # By lines, so that who looks on sees whole rows.
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def add(self, step: Step, speed: float, validation: float | None) -> None:
        """Append a row; ``speed`` is in target tokens a second."""
        last = "" if validation is None else f"{validation:.6g}"
        self._file.write(
            f"{step.step},{step.loss:.6g},{step.rate:.6g},"
            f"{step.gradient:.6g},{step.tokens},{speed:.0f},{last}\n"
        )

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def read_log(folder: Path | str) -> list[dict[str, float | None]]:
    """Read a run's log, with None where nothing was measured.

    Args:
        folder: That of the run.

    Returns:
        A row for each step, by the names in the first line.

    Raises:
        FileNotFoundError: There is no log in ``folder``.
        ValueError: The file is no log, or a row is damaged.

    Example:
        >>> folder = Path("read_log")
        >>> folder.mkdir()
        >>> with Log(folder, done=0) as log:
        ...     log.add(Step(1, 2.5, 0.001, 0.7, 96), 1000.0, None)
        >>> (row,) = read_log(folder)
        >>> row["loss"], row["validation"]
        (2.5, None)
    """
    path = Path(folder) / LOG
    return [
        {name: _number(path, text) for name, text in row.items()}
        for row in csv.DictReader(_lines(path))
    ]


def _lines(path: Path) -> list[str]:
    """Read the lines of a log; none if it is empty."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        lines = ["no text"]
    if lines and lines[0] != HEAD:
        raise ValueError(
            f"{path}: expected the log of a run, whose first line is {HEAD}, "
            f"got {lines[0][:40]!r}"
        )
    return lines


def _number(path: Path, text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise ValueError(
            f"{path}: expected rows of numbers, got {text[:40]!r}"
        ) from None


def _step(path: Path, row: str) -> float:
    """Read the step of a row; one that was cut short counts as never."""
    fields = row.split(",")
    if len(fields) != len(COLUMNS):
        return float("inf")
    step = _number(path, fields[0])
    return float("inf") if step is None else step
