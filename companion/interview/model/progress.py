"""What a learner has answered: one small SQLite file in the user's folder.

Every answer is one row in a transaction of its own, so that a process which is
killed loses nothing that it has shown, and two at once wait for each other. A
mock interview that is not over stands beside them, and changes in the same
transaction as the answer that was given in it. A file that is damaged is kept
under another name; nothing is ever overwritten.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path

from companion.extras import lazy

filelock = lazy("filelock", "interview")
platformdirs = lazy("platformdirs", "interview")

__all__ = ["VERSION", "Answer", "Interview", "Progress", "place"]

VERSION = 1
"""Of the answers' table; a larger one was written by a newer companion."""

PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""

SCHEMA = """
CREATE TABLE answers (
    question TEXT NOT NULL,
    at REAL NOT NULL CHECK (at BETWEEN 0 AND 1e11),
    mark REAL NOT NULL CHECK (mark BETWEEN 0 AND 1),
    language TEXT NOT NULL,
    source TEXT NOT NULL
)
"""
# A table more does not disturb a companion that does not know it.
INTERVIEW = """
CREATE TABLE IF NOT EXISTS interview (
    place INTEGER PRIMARY KEY,
    question TEXT NOT NULL UNIQUE,
    mark REAL CHECK (mark BETWEEN 0 AND 1),
    seconds REAL CHECK (seconds BETWEEN 0 AND 1e11),
    clock REAL NOT NULL CHECK (clock BETWEEN 0 AND 1e11),
    at REAL NOT NULL CHECK (at BETWEEN 0 AND 1e11)
)
"""


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        question: The id of the question.
        at: When, in seconds since 1970, UTC.
        mark: From 0 to 1.
        language: en, zh or both.
        source: Where it was asked: quiz, mock or review.
    """

    question: str
    at: float
    mark: float
    language: str
    source: str


@dataclass(frozen=True)
class Interview:
    """A mock interview that was begun and is not over.

    Attributes:
        questions: The ids of all its questions, in the order they are asked.
        marks: What was answered so far, by question.
        seconds: What each of these took.
        clock: How many seconds of it had passed at the last answer.
        at: When that was, in seconds since 1970, UTC.
    """

    questions: tuple[str, ...]
    marks: Mapping[str, float]
    seconds: Mapping[str, float]
    clock: float
    at: float


class Progress:
    """The file of answers, open.

    Attributes:
        path: Where it lies.
        kept: Where a damaged file lies that was found in its place, or None.
    """

    def __init__(self, path: Path):
        """Open the file, or begin one.

        Raises:
            ValueError: It was written by a newer version, or is the database
                of another program.
            OSError: It cannot be read or written.
        """
        self.path, self.kept = path, None
        path.parent.mkdir(parents=True, exist_ok=True)
        # Under the lock, so that of two processes only one sets it aside.
        with _naming(path), filelock.FileLock(f"{path}.lock", timeout=PATIENCE):
            if path.exists() and not _sound(path):
                self.kept = _set_aside(path)
            self._connection = _connected(path)
            try:
                _prepare(self._connection, path)
            except BaseException:
                self._connection.close()
                raise

    def add(self, answer: Answer, interview: Interview | None = None) -> None:
        """Store an answer; once this returns, it is on the disk.

        Args:
            answer: What was answered.
            interview: The interview in which it was, as it now stands. It
                takes the place of the one that waited.

        Raises:
            OSError: It cannot be written.
        """
        with _naming(self.path), _transaction(self._connection) as connection:
            connection.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?)", astuple(answer)
            )
            if interview is not None:
                connection.execute("DELETE FROM interview")
                connection.executemany(
                    "INSERT INTO interview VALUES (?, ?, ?, ?, ?, ?)",
                    _rows(interview),
                )

    def waiting(self) -> Interview | None:
        """Read the interview that was begun and is not over, if there is one.

        Raises:
            OSError: It cannot be read.
        """
        with _naming(self.path):
            rows = self._connection.execute(
                "SELECT question, mark, seconds, clock, at FROM interview "
                "ORDER BY place"
            ).fetchall()
        if not rows:
            return None
        names, marks, seconds, clocks, times = zip(*rows, strict=True)
        given = [n for n, mark in enumerate(marks) if mark is not None]
        return Interview(
            names,
            {names[n]: marks[n] for n in given},
            {names[n]: seconds[n] for n in given},
            max(clocks),
            max(times),
        )

    def finish(self) -> None:
        """Forget the interview that waits: it is over.

        Raises:
            OSError: It cannot be written.
        """
        with _naming(self.path), _transaction(self._connection) as connection:
            connection.execute("DELETE FROM interview")

    def answers(self) -> list[Answer]:
        """Read all answers in the order they were given.

        A clock may have been wrong or put back; the rows know the order.

        Raises:
            OSError: They cannot be read.
        """
        columns = "question, at, mark, language, source"
        with _naming(self.path):
            rows = self._connection.execute(
                f"SELECT {columns} FROM answers ORDER BY rowid"
            )
            return [Answer(*row) for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def place() -> Path:
    """Find where the file lies on this machine."""
    return platformdirs.user_data_path("companion") / "progress.sqlite3"


def _rows(interview: Interview) -> Iterator[tuple]:
    for number, name in enumerate(interview.questions):
        yield (
            number,
            name,
            interview.marks.get(name),
            interview.seconds.get(name),
            interview.clock,
            interview.at,
        )


def _connected(path: Path) -> sqlite3.Connection:
    # Without implicit transactions: each is begun where it is written.
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)


def _sound(path: Path) -> bool:
    connection = _connected(path)
    try:
        found = connection.execute("PRAGMA quick_check").fetchall()
    except sqlite3.OperationalError:
        raise  # It cannot be read now; that says nothing about what is in it.
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
    return found == [("ok",)]


def _set_aside(path: Path) -> Path:
    """Rename a damaged file, with the journal that belongs to it."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    number = 1
    while kept.exists():
        number += 1
        kept = kept.with_name(
            f"{path.stem}-damaged-{stamp}-{number}{path.suffix}"
        )
    journal = Path(f"{path}-journal")
    if journal.exists():
        journal.rename(f"{kept}-journal")
    return path.rename(kept)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables that are missing, and refuse what it cannot read."""
    with _transaction(connection):
        ((version,),) = connection.execute("PRAGMA user_version")
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
        if version > VERSION:
            raise ValueError(
                f"progress: expected version {VERSION} or older, got "
                f"{version} in {path}. A newer companion wrote it; use that "
                "one. It was left as it is"
            )
        if version == 0 and tables:
            raise ValueError(
                f"progress: expected a file of answers, got {path}, the "
                "database of another program. It was left as it is"
            )
        if version == 0:
            connection.execute(SCHEMA)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(INTERVIEW)


@contextmanager
def _transaction(
    connection: sqlite3.Connection,
) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        # On a full disk SQLite has rolled back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn an error of SQLite into one that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(f"progress: {path}: {error}") from error
