"""The bank page: ``{interview} bank``, ``mock`` or ``notes`` in a page.

The page is made from the question bank as the book is built.
"""

import re
import sys
from functools import cache
from html import escape, unescape
from pathlib import Path

import chinese
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
# A book is built where the package is not installed.
sys.path.append(str(ROOT))

from companion import CHAPTERS  # noqa: E402
from companion.interview.model.bank import BANK, read  # noqa: E402
from companion.interview.web import overview  # noqa: E402


class place(nodes.General, nodes.Element):
    """Stands where a part of the bank comes, until all pages are read."""


class Interview(SphinxDirective):
    """``{interview} bank``: a part of the bank page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A place, and the files it depends on."""
        if self.arguments[0] not in PARTS:
            raise self.error(
                f"interview: expected one of {', '.join(PARTS)}, "
                f"got {self.arguments[0]!r}"
            )
        for path in BANK.glob("*.toml"):
            self.env.note_dependency(str(path))
        return [place(part=self.arguments[0])]


@cache
def chapters(env: BuildEnvironment) -> dict[str, overview.Chapter]:
    """The chapters that the book has, as seen from a page beside them."""
    found = {}
    for number, word in enumerate(CHAPTERS, 1):
        name = f"{number:02}_{word}"
        if f"book/{name}" not in env.found_docs:
            continue
        # The last page has all questions; a section is on either.
        pages = [
            n for n in (name, f"labs/{name}") if f"book/{n}" in env.found_docs
        ]
        headings = {
            overview.plain(title.astext()): f"{page}.html#{section['ids'][0]}"
            for page in reversed(pages)
            for title in env.get_doctree(f"book/{page}").findall(nodes.title)
            if isinstance(section := title.parent, nodes.section)
        }
        headings |= {
            overview.plain(question.section): address
            for question in read(BANK).get(word, ())
            # The bank names a section in English, and a page in its language.
            if (address := headings.get(named(env, question.section)))
        }
        title = env.titles[f"book/{name}"].astext()
        found[word] = overview.Chapter(title, f"{pages[-1]}.html", headings)
    return found


def named(env: BuildEnvironment, section: str) -> str:
    """Say what a section is called on the pages of this edition."""
    if chinese.is_chinese(env.app):
        section = chinese.section(section)
    return overview.plain(section)


# The first words of what a note answered.
NOTED = re.compile(r"(<span lang=\"[\w-]+\">)(note \d|笔记 \d)(?=[,，])")
CARD = '<li class="question" '
CHAPTER = re.compile(r'[^>]*data-chapter="(\w+)"')
SECTION = re.compile(r'(<span class="section">)([^<]+)(?=</span>)')


def link_cards(
    app: Sphinx, page: str, template: str, context: dict, doctree: object
) -> None:
    """Lead from a question to the section that answers it, and to the notes.

    The page's notebook does not know on which page of the chapter that is.
    """
    first, *cards = context.get("body", "").split(CARD)
    if not page.startswith("book/") or not cards:
        return
    known = chapters(app.env)
    up, own = "../" * (page.count("/") - 1), page.removeprefix("book/")

    def linked(card: str) -> str:
        word = CHAPTER.match(card)[1]
        headings = known[word].headings if word in known else {}

        def link(found: re.Match) -> str:
            address = headings.get(overview.plain(unescape(found[2])), "")
            # To a section of its own page the script leads.
            if not address or address.startswith(f"{own}.html#"):
                return found[0]
            return f'{found[1]}<a href="{escape(up + address)}">{found[2]}</a>'

        notes = rf'\1<a href="{up}notes.html">\2</a>'
        return NOTED.sub(notes, SECTION.sub(link, card))

    context["body"] = CARD.join([first, *map(linked, cards)])


PARTS = {
    "bank": lambda env: overview.overview(read(BANK), chapters(env)),
    "mock": lambda env: overview.mock_place(),
    "notes": lambda env: overview.answered_table(),
}


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the bank where a page wants it."""
    for node in list(doctree.findall(place)):
        html = PARTS[node["part"]](app.env)
        node.replace_self(nodes.raw("", html, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.add_node(place)
    app.add_directive("interview", Interview)
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", link_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
