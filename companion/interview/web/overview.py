"""The bank page: every question in a list, and what the notes answered.

The page holds the questions. What is inside their cards lies in one file a
chapter, so that a reader gets what they open, and a page stays light.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from companion.figures.kit.inline import inline
from companion.interview.model import notes
from companion.interview.model.notes import Note
from companion.interview.model.question import Question
from companion.interview.model.toml import Text
from companion.interview.model.words import VERDICTS, WORDS, line
from companion.interview.web.card import entry, facts, key, work
from companion.interview.web.page import script, style

__all__ = [
    "Chapter",
    "answered_table",
    "chapter_file",
    "mock_place",
    "overview",
    "plain",
]

Bank = Mapping[str, Sequence[Question]]
NO_SCRIPT = Text(
    "The mock interview needs scripts. Without them, take the questions below "
    "from junior to senior.",
    "模拟面试需要脚本。没有脚本时，请按从初级到高级的顺序做下面的题。",
)


@dataclass(frozen=True)
class Chapter:
    """A chapter of the book: its title, page, and its headings' addresses."""

    title: str
    page: str
    headings: Mapping[str, str]


def overview(bank: Bank, book: Mapping[str, Chapter], folder: str) -> str:
    """List all questions, with filters; without scripts, with links.

    Args:
        bank: The questions by chapter.
        book: The chapters that have a page, by their word.
        folder: Where ``chapter_file`` is stored, as seen from the page.
    """
    chapters = [word for word in book if word in bank]
    listed = "".join(_part(book[word], bank[word], word) for word in chapters)
    return inline(
        "quiz",
        body=f'<div class="bank">{listed}</div>',
        label="All interview questions",
        style=style("quiz", "bank"),
        script=script("cards", "progress", "session", "resume", "bank"),
        data={
            "facts": [facts(q) for word in chapters for q in bank[word]],
            "chapters": {
                word: {"title": book[word].title, "page": book[word].page}
                for word in chapters
            },
            "folder": folder,
            "version": _version(bank),
        },
    )


def chapter_file(
    word: str, questions: Sequence[Question], chapter: Chapter
) -> str:
    """Write the inside of a chapter's cards as a script for a page to load."""
    cards = {
        question.id: {
            "html": work(question),
            "key": key(question),
            "link": chapter.headings.get(plain(question.section), chapter.page),
        }
        for question in questions
    }
    held = json.dumps(cards, ensure_ascii=False, separators=(",", ":"))
    return f'(window.companionBank ??= {{}})["{word}"] = {held};\n'


def plain(heading: str) -> str:
    """Write a heading as it is compared: quotation marks may differ."""
    return heading.replace("’", "'").strip()


def mock_place() -> str:
    """Make the element in which the bank page puts the mock interview."""
    return (
        '<figure class="companion companion-quiz mock" '
        f'aria-label="Mock interview"><div class="mock-place">'
        f"<p>{line(NO_SCRIPT)}</p></div></figure>"
    )


def answered_table() -> str:
    """Make the table of what the notes answered, with links to questions."""
    head = "".join(
        f'<th scope="col">{line(WORDS[name])}</th>'
        for name in ("where", "asked", "verdict")
    )
    rows = "".join(map(_row, notes.read()))
    return (
        '<figure class="companion companion-quiz" '
        'aria-label="What the notes answered"><div class="scroll">'
        f'<table class="noted"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></figure>"
    )


def _part(chapter: Chapter, questions: Sequence[Question], word: str) -> str:
    items = "".join(
        entry(number, question, chapter.page)
        for number, question in enumerate(questions, 1)
    )
    return (
        f'<section data-chapter="{word}"><h3><a href="{escape(chapter.page)}">'
        f"{escape(chapter.title)}</a></h3>"
        f'<ol class="questions">{items}</ol></section>\n'
    )


def _row(note: Note) -> str:
    verdict = line(VERDICTS[note.verdict])
    return (
        f"<tr><td>{escape(note.where)}</td>"
        f'<td><a href="#{note.master}">{line(note.asked)}</a></td>'
        f'<td class="{note.verdict.replace(" ", "-")}">{verdict}</td></tr>'
    )


def _version(bank: Bank) -> str:
    """Return a digest of the questions: no browser shows an old one."""
    content = repr([*bank.values(), notes.read()])
    return hashlib.sha256(content.encode()).hexdigest()[:8]
