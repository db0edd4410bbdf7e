"""The bank as a deck for Anki: a note a question, a sub-deck a chapter.

A note's guid comes from the question's id, and the ids of decks and of the
model never change. So a second import changes the notes that changed, and keeps
what the learner has done with them.
"""

import itertools
import json
import sqlite3
import time
import zipfile
from collections.abc import Sequence
from contextlib import closing
from html import escape
from os import getpid
from pathlib import Path
from zlib import crc32

from companion import CHAPTERS
from companion.extras import extra
from companion.interview.model.question import Question
from companion.interview.model.toml import Text
from companion.interview.model.words import WORDS, block
from companion.interview.web import card

with extra("interview"):
    from genanki import Deck, Model, Note, Package, guid_for

__all__ = ["back", "decks", "front", "write"]

NAME = "Transformer interview"
MODEL_ID = 1_763_752_931
"""Any number; but another one would make every import a new kind of note."""

STYLE = """
.card { font: 18px/1.5 sans-serif; text-align: left; max-width: 40em;
  margin: auto; padding: 0.5em; }
h3 { font-size: 1em; margin: 1.2em 0 0.3em; }
pre { white-space: pre-wrap; font-size: 0.85em; padding: 0.5em;
  border: 1px solid #8888; border-radius: 4px; }
ol { list-style: upper-alpha; }
.formula { font-family: serif; }
.value, .title { font-weight: 600; }
.tags { font-size: 0.8em; opacity: 0.7; }
span[lang] { display: block; }
"""
MODEL = Model(
    MODEL_ID,
    NAME,
    fields=[{"name": "Id"}, {"name": "Question"}, {"name": "Answer"}],
    templates=[
        {
            "name": "Question",
            "qfmt": "{{Question}}",
            "afmt": "{{FrontSide}}<hr id=answer>{{Answer}}",
        }
    ],
    css=STYLE,
)


def write(questions: Sequence[Question], path: Path) -> None:
    """Write the deck; what lies there already is replaced in one step.

    Args:
        questions: What becomes a note.
        path: Where the deck goes, a name that ends in ``.apkg``.

    Raises:
        ValueError: The name does not end in ``.apkg``.
        OSError: There is no such folder, or it cannot be written.
    """
    if path.suffix != ".apkg":
        raise ValueError(f"out: expected a file *.apkg, got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"out: there is no folder {path.parent}")
    part = path.with_name(f".{path.name}.{getpid()}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as package:
            package.writestr("collection.anki2", _collection(questions))
            package.writestr("media", json.dumps({}))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def decks(questions: Sequence[Question]) -> list[Deck]:
    """Make a sub-deck for each chapter that has a question."""
    found = []
    for number, chapter in enumerate(CHAPTERS, 1):
        mine = [q for q in questions if q.chapter == chapter]
        name = f"{NAME}::{number:02} {chapter}"
        deck = Deck(crc32(f"{NAME}::{chapter}".encode()), name)
        for place, question in enumerate(mine, 1):
            deck.add_note(_note(question, place))
        found += [deck] if mine else []
    return found


def front(question: Question) -> str:
    """Make what is asked, as HTML."""
    minutes = Text(f"{question.minutes} min", f"{question.minutes} 分钟")
    words = WORDS[question.level], WORDS[question.asks], minutes
    en = " · ".join(text.en for text in words)
    zh = " · ".join(text.zh for text in words)
    head = f'<p class="tags">{en} / {zh}</p>{block(question.prompt)}'
    return head + card.front(question)


def back(question: Question) -> str:
    """Make the answers, what is often said instead, and what comes next."""
    source = f"<p>{escape(f'{question.chapter}: {question.section}')}</p>"
    shown = [
        *card.parts(question),
        ("section", source),
        ("proof", f"<p>{escape(question.proof)}</p>"),
    ]
    return "".join(
        f"<h3>{WORDS[name].en} · {WORDS[name].zh}</h3>{html}"
        for name, html in shown
    )


def _collection(questions: Sequence[Question]) -> bytes:
    # genanki's own way leaves a file behind in the folder for passing files.
    now = time.time()
    with closing(sqlite3.connect(":memory:")) as connection:
        numbers = itertools.count(int(1000 * now))
        package = Package(decks(questions))
        package.write_to_db(connection.cursor(), now, numbers)
        connection.commit()
        return connection.serialize()


def _note(question: Question, place: int) -> Note:
    return Note(
        MODEL,
        [question.id, front(question), back(question)],
        guid=guid_for(NAME, question.id),
        tags=[question.level, question.asks],
        due=place,
    )
