"""The question bank: a TOML file per chapter, checked as it is read."""

import tomllib
from functools import cache
from pathlib import Path

from companion import CHAPTERS
from companion.interview.question import Question
from companion.interview.table import Table

BANK = Path(__file__).parent / "bank"


def load(chapter: str) -> list[Question]:
    """The questions of a chapter, in the order of its file.

    Raises:
        ValueError: there is no such chapter, or the bank has a fault.
    """
    if chapter not in CHAPTERS:
        known = ", ".join(CHAPTERS)
        raise ValueError(f"chapter: expected one of {known}, got {chapter!r}")
    return list(read(BANK)[chapter])


@cache
def read(folder: Path) -> dict[str, list[Question]]:
    """All questions of all the files in a folder, by chapter.

    Raises:
        ValueError: a fault. The message names the file, the question, the
            key, what was expected and what came.
    """
    bank, owner = {}, {}
    for path in sorted(folder.glob("*.toml")):
        file = Table(_values(path), path.name)
        bank[path.stem] = []
        for number, table in enumerate(file.tables("question", least=1), 1):
            table.path, table.place = "", f"{path.name}, question {number}"
            question = Question.read(table, chapter=path.stem)
            if question.id in owner:
                taken = f"a name of its own ({owner[question.id]} has it)"
                table.fail("id", taken, question.id)
            owner[question.id] = f"{path.name}, question {number}"
            bank[path.stem].append(question)
        file.finish()
    return bank


def _values(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path.name}: expected valid TOML, got: {error}"
        ) from error
