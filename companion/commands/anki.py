"""``python -m companion anki``: the question bank as a deck for Anki."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from companion.interview.anki import write
from companion.interview.model.bank import course

__all__ = ["add_options", "run"]


def add_options(parser: ArgumentParser) -> None:
    """Add where the deck goes."""
    parser.description = (
        "Writes all questions as a deck, in both languages. Import it again "
        "after an update: changed notes change, and what you learnt stays."
    )
    parser.add_argument("out", type=Path, metavar="OUT.apkg")


def run(options: Namespace) -> int:
    """Write the file; return 0.

    Raises:
        ValueError, OSError: As ``anki.write``.
    """
    questions = course()
    write(questions, options.out)
    print(f"{len(questions)} notes in {options.out}")
    return 0
