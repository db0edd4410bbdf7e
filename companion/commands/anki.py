"""``python -m companion anki``: the question bank as a deck for Anki."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from companion.interview.anki import write
from companion.interview.model.bank import course


def add_options(parser: ArgumentParser) -> None:
    """Where the deck goes."""
    parser.description = (
        "Writes all questions as a deck, in both languages. Import it again "
        "after an update: changed notes change, and what you learnt stays."
    )
    parser.add_argument("out", type=Path, metavar="OUT.apkg")


def run(options: Namespace) -> int:
    """Writes the file; 0.

    Raises:
        ValueError, OSError: as ``anki.write``.
    """
    questions = course()
    write(questions, options.out)
    print(f"{len(questions)} notes in {options.out}")
    return 0
