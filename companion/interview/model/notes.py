"""What the notes answered: their interview questions, each with a verdict.

``notes.toml`` has an entry for each question of the notes:

    id        its name: ``note-``, then letters, digits and hyphens
    where     where it stands, such as "note 0, question 3"
    asked     the question, in our words
    master    the question of the bank that answers it
    verdict   correct, incomplete, partly wrong, wrong or unanswered
    said      what the notes answered, in our words
    missing   what was wrong or missing; a correct answer may lack it
    number    the number that decides, and what it means
    proof     the test or cell that computes this number, as in the bank
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from companion.interview.model.bank import NOTES, entries, parse
from companion.interview.model.question import PROOF
from companion.interview.model.table import Table, Text

VERDICTS = ("correct", "incomplete", "partly wrong", "wrong", "unanswered")


@dataclass(frozen=True)
class Note:
    """One question of the notes, what they answered, and what decides."""

    id: str
    where: str
    asked: Text
    master: str
    verdict: str
    said: Text
    missing: Text | None
    number: Text
    proof: str

    @classmethod
    def read(cls, table: Table) -> "Note":
        """From a table of the file.

        Raises:
            ValueError: a key is missing, unknown or does not fit.
        """
        name = table.name("id", r"note-[a-z0-9-]+")
        table.place += f" '{name}'"
        verdict = table.word("verdict", among=VERDICTS)
        spared = verdict == "correct" and "missing" not in table.values
        note = cls(
            id=name,
            where=table.word("where"),
            asked=table.text("asked"),
            master=table.word("master"),
            verdict=verdict,
            said=table.text("said"),
            missing=None if spared else table.text("missing"),
            number=table.text("number"),
            proof=table.name("proof", PROOF),
        )
        table.finish()
        return note


@cache
def read(path: Path = NOTES) -> tuple[Note, ...]:
    """All entries of a file, in its order.

    Raises:
        ValueError: a fault. The message names the file, the line, the entry,
            the key, what was expected and what came.
    """
    file, notes = parse(path), {}
    for table in entries(file, path, "note"):
        note = Note.read(table)
        if note.id in notes:
            table.fail("id", "a name of its own", note.id)
        notes[note.id] = note
    file.finish()
    return tuple(notes.values())
