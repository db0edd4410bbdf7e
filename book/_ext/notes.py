"""What became of the study notes: ``{notes} attention`` in a page.

The page is made from ``book/notes.toml`` and, for the questions, from the bank.
An entry stands with the chapter that its first link leads to. In the Chinese
edition the questions come from the bank as well, and all else goes through the
page's catalogue.
"""

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import chinese
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
# A book is built where the package is not installed.
sys.path.append(str(ROOT))

from companion import CHAPTERS  # noqa: E402
from companion.interview.model import bank, notes  # noqa: E402
from companion.interview.model.markup import to_line  # noqa: E402
from companion.interview.model.words import VERDICTS  # noqa: E402

DATA = BOOK / "notes.toml"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
KINDS = ("wrong", "imprecise", "contested", "bug", "right", "misprint")
LISTS = ("topics", "questions", "statements")
SUMMARY = (
    "{topics} topics, {questions} questions and {statements} statements are "
    "below. {listed} statements were looked into; {misprints} of them are mere "
    "misprints and stand by themselves at the end, and {right} are right. "
    "Every other entry has a link to the section or the question that shows "
    "what is said of it."
)

Say = Callable[[str], str]


class Entry(NamedTuple):
    """A topic, a question or a statement, as it stands on the page."""

    id: str
    list: str
    said: str
    label: str
    verdict: str
    see: tuple[str, ...]
    answer: str = ""


class Place(NamedTuple):
    """Where a link leads, as seen from the page, and what it is called."""

    address: str
    name: str


class Signs(NamedTuple):
    """How a language ends a sentence, parts what follows it, and lists."""

    ends: str
    gap: str
    comma: str


SIGNS = {"en": Signs(".?", " ", ", "), "zh": Signs("。？…", "", "；")}


@cache
def entries(language: str = "en") -> tuple[Entry, ...]:
    """Read all entries, in the notes' order.

    Args:
        language: That of the questions, en or zh; all else is English here.

    Raises:
        ValueError: A kind is none of ``KINDS``.
    """
    data, found = tomllib.loads(DATA.read_text(encoding="utf-8")), []
    for name, one in data["topics"].items():
        found.append(_entry(name, "topics", one["name"], "", one))
    more = data["questions"]
    for note in notes.read():
        found.append(_question(note, language, **more.pop(note.id, {})))
    if more:
        raise ValueError(f"expected questions of the notes, got {[*more]}")
    for name, one in data["statements"].items():
        if one["kind"] not in KINDS:
            raise ValueError(
                f"{name}: expected a kind of {', '.join(KINDS)}, "
                f"got {one['kind']!r}"
            )
        found.append(_entry(name, "statements", one["said"], one["kind"], one))
    return tuple(found)


def _question(note: notes.Note, language: str, see: Sequence = ()) -> Entry:
    return Entry(
        id=note.id,
        list="questions",
        said=getattr(note.asked, language),
        label=note.verdict,
        verdict=getattr(note.missing or note.number, language),
        see=(note.master, *see),
        answer=getattr(note.said, language),
    )


def _entry(name: str, listed: str, said: str, label: str, one: dict) -> Entry:
    see = tuple(one.get("see", ()))
    return Entry(name.lower(), listed, said, label, one["verdict"], see)


@cache
def sections(word: str) -> dict[str, Place]:
    """List the sections of a lesson and its lab, or of another page.

    A section that moved has its old name as well.
    """
    if word not in CHAPTERS:
        text = (BOOK / f"{word}.md").read_text(encoding="utf-8")
        return dict(_headings(f"{word}.html", FENCE.sub("", text)))
    name, found = f"{CHAPTERS.index(word) + 1:02}_{word}", {}
    for page in (f"labs/{name}", name):
        path = BOOK / f"{page}.ipynb"
        if path.exists():
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            text = "\n".join(
                "".join(cell["source"])
                for cell in cells
                if cell["cell_type"] == "markdown"
            )
            found |= _headings(f"{page}.html", text)
    moved = tomllib.loads((BOOK / "moved.toml").read_text(encoding="utf-8"))
    for old, new in moved.get(name, {}).items():
        if new in found:
            found.setdefault(old, found[new])
    return found


def _headings(page: str, text: str) -> Iterator[tuple[str, Place]]:
    for title in HEADING.findall(text):
        name = nodes.make_id(title)
        yield name, Place(f"{page}#{name}", title)


def place(target: str) -> Place:
    """Find where a link leads.

    Args:
        target: ``attention#why-dk``, a section, or the id of a question.

    Raises:
        KeyError: There is no such section or question.
    """
    word, _, section = target.partition("#")
    if section:
        return sections(word)[section]
    known = {
        q.id for questions in bank.read(bank.BANK).values() for q in questions
    }
    if target not in known:
        raise KeyError(target)
    name = target.partition("-")[2].replace("-", " ")
    return Place(f"interview.html#{target}", f"the question “{name}”")


def home(entry: Entry) -> str:
    """Say under which word an entry stands: a chapter's, or what it is."""
    if entry.label == "misprint":
        return "misprints"
    word = entry.see[0].partition("#")[0] if entry.see else ""
    word = word if word in CHAPTERS else word.partition("-")[0]
    return word if word in CHAPTERS else "beyond"


def summary() -> str:
    """Count the entries."""
    each = entries()
    of = {name: sum(e.list == name for e in each) for name in LISTS}
    misprints = sum(e.label == "misprint" for e in each)
    return SUMMARY.format(
        topics=of["topics"],
        questions=of["questions"],
        listed=of["statements"],
        statements=of["statements"] - misprints,
        misprints=misprints,
        right=sum(e.label == "right" for e in each),
    )


def item(entry: Entry, say: Say = str, language: str = "en") -> nodes.list_item:
    """Make an entry of a list: what was said, the verdict, where to look.

    Args:
        entry: What stands in the list, a question in the language.
        say: Translates all else.
        language: en or zh.
    """
    made, signs = nodes.list_item(ids=[entry.id]), SIGNS[language]
    asked = entry.list == "questions"
    said, verdict = entry.said, entry.verdict
    if not asked:
        said, verdict = say(said), say(verdict)
    end = "" if said[-1] in signs.ends else signs.ends[0]
    html = f"{_html(said + end, 'strong')}{signs.gap}"
    line = nodes.paragraph()
    line += nodes.raw("", html, format="html")
    if entry.answer:
        html = f"{_html(entry.answer, 'em')}{signs.gap}"
        line += nodes.raw("", html, format="html")
    if entry.label:
        name = (
            getattr(VERDICTS[entry.label], language)
            if asked
            else say(entry.label)
        )
        classes = ["kind", entry.label.replace(" ", "-")]
        line += nodes.inline("", name, classes=classes)
        line += nodes.Text(" ")
    line += nodes.raw("", f"{_html(verdict)} ", format="html")
    for number, target in enumerate(entry.see):
        address, name = place(target)
        name = called(target, name, say, language)
        line += nodes.Text(signs.comma if number else "→ ")
        line += nodes.reference("", name, refuri=address, internal=True)
    made += line
    return made


def called(target: str, name: str, say: Say, language: str) -> str:
    """Say what a link is called: a section has the name that its page has."""
    if "#" not in target:
        return say(name)
    return name if language == "en" else chinese.section(name)


def _html(text: str, tag: str = "span") -> str:
    return f"<{tag}>{to_line(text.replace(chr(39), '’'))}</{tag}>"


class Notes(SphinxDirective):
    """``{notes} attention``: a chapter's entries; ``summary`` counts all."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The lists, and the files they depend on."""
        for path in (DATA, notes.NOTES, *BOOK.glob("**/[01]*.ipynb")):
            self.env.note_dependency(str(path))
        word = self.arguments[0]
        try:
            if word == "summary":
                return self.summary()
            return self.lists(word)
        except (KeyError, ValueError) as error:
            raise self.error(f"notes: {error}") from error

    def summary(self) -> list[nodes.Node]:
        """The numbers."""
        return [nodes.paragraph("", summary())]

    def lists(self, word: str) -> list[nodes.Node]:
        """The topics, questions and statements of a chapter."""
        made, say = [], partial(chinese.say, self.env)
        language = "zh" if chinese.is_chinese(self.env.app) else "en"
        known = [e for e in entries(language) if home(e) == word]
        for name in LISTS:
            here = [entry for entry in known if entry.list == name]
            if here:
                listed = nodes.bullet_list(classes=["noted"])
                listed += [item(entry, say, language) for entry in here]
                made += [nodes.rubric("", name.capitalize()), listed]
        if not made:
            raise ValueError(f"expected a chapter with entries, got {word!r}")
        return made


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.add_directive("notes", Notes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
