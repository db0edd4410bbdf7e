"""A run's log: what each step told, one row a step."""

import csv
from pathlib import Path

from companion.data.store import write_whole
from companion.training.steps import Step

LOG = "log.csv"
COLUMNS = (*Step._fields, "speed", "validation")
HEAD = ",".join(COLUMNS)


class Log:
    """Appends rows to ``log.csv``, from the row after step ``done`` on.

    A run that was killed has logged steps after its last checkpoint, and these
    it will take again: their rows go.

    Raises:
        ValueError: another file lies there; it stays as it is.
    """

    def __init__(self, folder: Path, done: int):
        path = folder / LOG
        old = _lines(path) if path.exists() else []
        rows = [row for row in old[1:] if _step(row) <= done]
        kept = "".join(f"{row}\n" for row in (HEAD, *rows))
        write_whole(path, kept.encode())
        # By lines, so that who looks on sees whole rows.
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def add(self, step: Step, speed: float, validation: float | None) -> None:
        """One row. ``speed`` is in target tokens a second."""
        said = "" if validation is None else f"{validation:.6g}"
        self._file.write(
            f"{step.step},{step.loss:.6g},{step.rate:.6g},"
            f"{step.gradient:.6g},{step.tokens},{speed:.0f},{said}\n"
        )

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


def read_log(folder: Path | str) -> list[dict[str, float | None]]:
    """The rows of a run's log, with None where nothing was measured.

    Raises:
        FileNotFoundError: there is no log in ``folder``.
        ValueError: the file is no log.
    """
    return [
        {name: float(text) if text else None for name, text in row.items()}
        for row in csv.DictReader(_lines(Path(folder) / LOG))
    ]


def _lines(path: Path) -> list[str]:
    """The lines of a log; none if it is empty."""
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


def _step(row: str) -> float:
    """The step of a row; a row that was cut short counts as never."""
    fields = row.split(",")
    return float(fields[0]) if len(fields) == len(COLUMNS) else float("inf")
