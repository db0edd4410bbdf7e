"""The question bank: a TOML file a chapter, checked as it is read."""

from functools import cache
from pathlib import Path

from companion import CHAPTERS
from companion.interview.model.question import Question, read_question, require
from companion.interview.model.toml import entries

__all__ = ["BANK", "NOTES", "course", "load", "read", "retired"]

BANK = Path(__file__).parents[1] / "bank"
NOTES = BANK / "notes.toml"
RETIRED = BANK / "retired.txt"


def load(chapter: str) -> list[Question]:
    """Load the questions of a chapter, in the order of its file.

    Args:
        chapter: The chapter's word, one of ``companion.CHAPTERS``.

    Raises:
        ValueError: There is no such chapter, or the bank has a fault.

    Example:
        >>> load("rnn")[0].id
        'rnn-mean-and-concat'
    """
    return list(read(BANK)[require("chapter", chapter, CHAPTERS)])


def course() -> list[Question]:
    """Load all questions, chapter by chapter in the order of the course.

    Raises:
        ValueError: The bank has a fault.
    """
    return [q for chapter in CHAPTERS for q in read(BANK).get(chapter, [])]


@cache
def retired(path: Path = RETIRED) -> dict[str, str]:
    """Read which question asks what one asked that the bank no longer has.

    A line of the file has the old id and, behind a blank, the one that stands
    for it. What a learner answered under the old one then counts for the new.

    Example:
        >>> retired()["blocks-rms-norm"]
        'variants-rms-norm'
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)


@cache
def read(folder: Path) -> dict[str, list[Question]]:
    """Read all questions of all the files in a folder, by chapter.

    Raises:
        ValueError: A fault. The message names the file, the line, the
            question, the key, what was expected and what came.
    """
    bank, owner = {}, {}
    for path in sorted(set(folder.glob("*.toml")) - {folder / NOTES.name}):
        bank[path.stem] = []
        for entry in entries(path, "question"):
            question = read_question(entry, path.stem)
            if question.id in owner:
                taken = f"a name of its own ({owner[question.id]} has it)"
                entry.fail("id", taken, question.id)
            owner[question.id] = entry.at("id")
            bank[path.stem].append(question)
    return bank
