"""What the notes answered: their interview questions, each with a verdict."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from companion.interview.model import toml
from companion.interview.model.bank import NOTES
from companion.interview.model.question import PROOF
from companion.interview.model.toml import Text, one_of

__all__ = ["VERDICTS", "Note", "read"]

VERDICTS = ("correct", "incomplete", "partly wrong", "wrong", "unanswered")


@dataclass(frozen=True)
class Note:
    """One question of the notes, what they answered, and what decides.

    Attributes:
        id: Its name: ``note-``, then letters, digits and hyphens.
        where: Where it stands, such as "note 0, question 3".
        asked: The question, in our words.
        master: The question of the bank that answers it.
        verdict: correct, incomplete, partly wrong, wrong or unanswered.
        said: What the notes answered, in our words.
        number: The number that decides, and what it means.
        proof: The test or cell that computes this number, as in the bank.
        missing: What was wrong or missing; only a correct answer may lack it.
    """

    id: Annotated[str, toml.like(r"note-[a-z0-9-]+")]
    where: Text
    asked: Text
    master: toml.Line
    verdict: Annotated[str, one_of(*VERDICTS)]
    said: Text
    number: Text
    proof: Annotated[str, toml.like(PROOF)]
    missing: Text | None = None

    def fault(self) -> tuple[str, str, object] | None:
        """Check that it says what was missing."""
        if self.verdict == "correct" or self.missing:
            return None
        return "missing", "a table", None


@cache
def read(path: Path = NOTES) -> tuple[Note, ...]:
    """Read all entries of a file, in its order.

    Raises:
        ValueError: A fault. The message names the file, the line, the entry,
            the key, what was expected and what came.
    """
    notes = {}
    for entry in toml.entries(path, "note"):
        note = toml.build(Note, entry.values, entry)
        if note.id in notes:
            entry.fail("id", "a name of its own", note.id)
        notes[note.id] = note
    return tuple(notes.values())
