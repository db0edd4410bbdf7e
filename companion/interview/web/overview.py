"""The bank page: every question with its answers, and what the notes answered.

The page holds all of it, folded, so that it can be read, searched and printed
without scripts, and from a disk. That is the one page of the book which weighs
more than another: some 0.4 MB on the way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from companion.figures.kit.inline import inline
from companion.interview.model import notes
from companion.interview.model.bank import retired
from companion.interview.model.notes import Note
from companion.interview.model.question import Question
from companion.interview.model.toml import Text
from companion.interview.model.words import VERDICTS, WORDS, line
from companion.interview.web.card import card, facts, key
from companion.interview.web.page import script, style

__all__ = [
    "Chapter",
    "answered_table",
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


def overview(bank: Bank, book: Mapping[str, Chapter]) -> str:
    """List all questions, folded, with filters where there are scripts.

    Args:
        bank: The questions by chapter.
        book: The chapters that have a page, by their word.
    """
    chapters = [word for word in book if word in bank]
    listed = "".join(_part(book[word], bank[word], word) for word in chapters)
    asked = [question for word in chapters for question in bank[word]]
    return inline(
        "quiz",
        body=f'<div class="bank">{listed}</div>',
        label="All interview questions",
        style=style("quiz", "bank"),
        script=script("cards", "progress", "session", "resume", "bank"),
        data={
            "facts": [facts(question) for question in asked],
            "keys": {q.id: found for q in asked if (found := key(q))},
            "chapters": {
                word: {"title": book[word].title, "page": book[word].page}
                for word in chapters
            },
            "retired": retired(),
        },
    )


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
        card(
            number,
            question,
            link=chapter.headings.get(plain(question.section), chapter.page),
            marked=True,
        )
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
        f"<tr><td>{line(note.where)}</td>"
        f'<td><a href="#{note.master}">{line(note.asked)}</a></td>'
        f'<td class="{note.verdict.replace(" ", "-")}">{verdict}</td></tr>'
    )
