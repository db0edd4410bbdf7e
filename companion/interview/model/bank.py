"""The question bank: a TOML file per chapter, checked as it is read."""

import tomllib
from functools import cache
from pathlib import Path

from companion import CHAPTERS
from companion.interview.model.question import Question
from companion.interview.model.table import Source, Table

BANK = Path(__file__).parents[1] / "bank"
NOTES = BANK / "notes.toml"


def load(chapter: str) -> list[Question]:
    """The questions of a chapter, in the order of its file.

    Raises:
        ValueError: there is no such chapter, or the bank has a fault.
    """
    if chapter not in CHAPTERS:
        known = ", ".join(CHAPTERS)
        raise ValueError(f"chapter: expected one of {known}, got {chapter!r}")
    return list(read(BANK)[chapter])


def course() -> list[Question]:
    """All questions, chapter by chapter in the order of the course.

    Raises:
        ValueError: the bank has a fault.
    """
    return [q for chapter in CHAPTERS for q in read(BANK).get(chapter, [])]


@cache
def read(folder: Path) -> dict[str, list[Question]]:
    """All questions of all the files in a folder, by chapter.

    Raises:
        ValueError: a fault. The message names the file, the line, the
            question, the key, what was expected and what came.
    """
    bank, owner = {}, {}
    for path in sorted(set(folder.glob("*.toml")) - {folder / NOTES.name}):
        file, bank[path.stem] = parse(path), []
        for table in entries(file, path, "question"):
            question = Question.read(table, chapter=path.stem)
            if question.id in owner:
                taken = f"a name of its own ({owner[question.id]} has it)"
                table.fail("id", taken, question.id)
            owner[question.id] = table.source.at("id")
            bank[path.stem].append(question)
        file.finish()
    return bank


def parse(path: Path) -> Table:
    """A file as one table.

    Raises:
        ValueError: it is no TOML; the message names the line.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path.name}: expected valid TOML, got: {error}"
        ) from error
    return Table(values, path.name)


def entries(file: Table, path: Path, name: str) -> list[Table]:
    """The tables ``[[name]]`` of a file, each with its place in it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    heads = [n for n, line in enumerate(lines) if line == f"[[{name}]]"]
    tables = file.tables(name, least=1)
    if len(heads) != len(tables):
        wanted = f"each {name} under a line [[{name}]]"
        file.fail(name, wanted, f"{len(heads)} for {len(tables)}")
    for number, table in enumerate(tables, 1):
        first, end = (*heads, None)[number - 1 : number + 1]
        table.path, table.place = "", f"{name} {number}"
        table.source = Source(path.name, first + 1, tuple(lines[first:end]))
    return tables
