"""Translate what only pages show into the Markdown that every editor shows.

A chapter has one source, with the directives, citations and links of the book.
JupyterLab, VS Code and Colab show those as raw text: ``:::{margin}``. So what
is opened there is an edition: boxes are quotes with a bold title, a citation is
a link to the work, and the rest is as it was.
"""

import copy
import itertools
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import nbformat
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from mdit_py_plugins.anchors import anchors_plugin
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from pybtex.database import Person, parse_file
from pybtex.richtext import Text

# As _config.yml has them.
EXTENSIONS = {"amsmath", "colon_fence", "deflist", "dollarmath", "tasklist"}
PARSER = create_md_parser(
    MdParserConfig(enable_extensions=EXTENSIONS, dmath_double_inline=True),
    RendererHTML,
).use(anchors_plugin, max_level=6)
DIRECTIVE = re.compile(r"\{([\w:-]+)\} *(.*)")
OPTION = re.compile(r":[\w-]+:( .*)?")
SECTION = re.compile(r"\]\(([^()\s#:]*#[^()\s]+)\)")
# A role, or else a piece of code, which may look like one.
ROLE = re.compile(
    r"\{([\w:-]+)\}(`+)(.+?)(?<!`)\2(?!`)|(`+).+?(?<!`)\4(?!`)", re.DOTALL
)
# Boxes with a title of their own, and those whose name is their title.
TITLED = {"admonition", "margin", "sidebar", "topic"}
NAMED = {
    "attention", "caution", "danger", "error", "hint", "important", "note",
    "seealso", "tip", "warning",
}  # fmt: skip
DROPPED = {"myst_line_comment", "myst_block_break"}
# What no editor shows, and no chapter needs.
REFUSED = {
    "dl_open": "a definition list",
    "footnote_ref": "a footnote",
    "math_block_label": "a label of a formula",
    "myst_target": "a label",
}


class Work(NamedTuple):
    """A work that is cited: by whom, when, and where it lies, if anywhere."""

    who: str
    year: str
    url: str


class Link(NamedTuple):
    """A link to another file of the book.

    ``cell`` is the id of the cell in which the section begins, if both are in a
    notebook; ``file`` is as seen from the book's folder.
    """

    href: str
    file: str
    section: str
    cell: str


Lead = Callable[[str], str | None]
"""Where an address within the book leads; None: a link becomes its text."""


def works(bibliography: Path) -> dict[str, Work]:
    """Read the works of a BibTeX file, each under its key."""
    entries = parse_file(str(bibliography)).entries
    return {
        key: Work(
            _who(entry.persons.get("author") or entry.persons["editor"]),
            entry.fields["year"],
            _url(entry.fields),
        )
        for key, entry in entries.items()
    }


def _who(people: list[Person]) -> str:
    names = [
        str(Text.from_latex(" ".join(p.prelast_names + p.last_names)))
        for p in people
    ]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


def _url(fields: dict[str, str]) -> str:
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if "eprint" in fields:
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return fields.get("url", "")


def plain(
    source: str,
    known: dict[str, Work],
    lead: Lead,
    linked: Collection[str] = (),
) -> str:
    """Translate one cell.

    Args:
        source: The cell, in MyST.
        known: The works that may be cited.
        lead: What becomes of an address within the book.
        linked: Sections that get an anchor: editors give them other names.

    Raises:
        ValueError: It has something that cannot be translated.

    Example:
        >>> print(plain(":::{note}\\nIt is *so*.\\n:::", {}, str))
        > **Note**
        >
        > It is *so*.
    """
    source = anchored(source, linked)
    lines, kept, at = source.split("\n"), [], 0
    for token in PARSER.parse(source):
        for each in (token, *(token.children or ())):
            if each.type in REFUSED:
                raise ValueError(f"{REFUSED[each.type]} is shown by no editor")
        if token.type in DROPPED or _is_directive(token):
            if token.level:
                raise ValueError(
                    f"{token.info or token.type} in a list, a quote"
                )
            start, end = token.map
            kept += lines[at:start] + _box(token, known, lead)
            at = end
    return _inline("\n".join(kept + lines[at:]), known, lead)


def anchored(source: str, linked: Collection[str]) -> str:
    """Put an anchor before each heading that a link leads to.

    Example:
        >>> print(anchored("## To *see*", {"to-see"}))
        <a id="to-see" name="to-see"></a>
        <BLANKLINE>
        ## To *see*
    """
    lines, kept, at = source.split("\n"), [], 0
    for token in PARSER.parse(source):
        if token.type == "heading_open" and token.attrs["id"] in linked:
            start, _ = token.map
            anchor = '<a id="{0}" name="{0}"></a>'.format(token.attrs["id"])
            kept += [*lines[at:start], anchor, ""]
            at = start
    return "\n".join(kept + lines[at:])


def _is_directive(token: Token) -> bool:
    fence = token.type == "fence" and token.info.startswith("{")
    return fence or token.type == "colon_fence"


def _box(token: Token, known: dict[str, Work], lead: Lead) -> list[str]:
    """Write a directive as a quote, or as what folds; a comment as nothing."""
    if token.type in DROPPED:
        return []
    found = DIRECTIVE.fullmatch(token.info.strip())
    if not found or found[1] not in TITLED | NAMED | {"dropdown"}:
        raise ValueError(f"the directive {token.info} is not known")
    name, argument = found.groups()
    inner = token.content.rstrip("\n").split("\n")
    while inner and OPTION.fullmatch(inner[0]):
        inner.pop(0)
    if name in NAMED:
        title, inner = name.capitalize(), [argument, *inner]
    else:
        title = argument
    text = plain("\n".join(inner).strip("\n"), known, lead)
    if name == "dropdown":
        summary = f"<details><summary>{title}</summary>"
        return [summary, "", *text.split("\n"), "", "</details>"]
    quoted = [f"**{title}**", "", *_on_one_line(text).split("\n")]
    return [f"> {line}".rstrip() for line in quoted]


def _on_one_line(text: str) -> str:
    """Join the lines of each formula: in a quote, ``>`` would be part of it."""
    for token in PARSER.parse(text):
        for each in (token, *(token.children or ())):
            if each.type.startswith(("math", "amsmath")):
                joined = " ".join(each.content.split("\n")).strip()
                if each.type == "math_block":
                    text = text.replace(f"$${each.content}$$", f"$${joined}$$")
                else:
                    text = text.replace(each.content, joined)
    return text


def _children(text: str) -> Iterator[tuple[Token, Token | None]]:
    """Yield what stands in lines, each with what follows."""
    for token in PARSER.parse(text):
        yield from itertools.pairwise([*(token.children or ()), None])


def _inline(text: str, known: dict[str, Work], lead: Lead) -> str:
    """Translate roles and links, which the parser finds and does not place."""
    found, hrefs = Counter(), Counter()
    for token, after in _children(text):
        if token.type == "myst_role":
            found[token.meta["name"], token.content] += 1
        elif token.type == "link_open":
            href = str(token.attrs["href"])
            if after.type == "link_close":
                raise ValueError(f"the link to {href} has no text")
            hrefs[unquote(href)] += 1
        elif token.type == "image":
            source = token.attrs["src"]
            raise ValueError(f"the picture {source} lies in no notebook")
    roles = [m for m in ROLE.finditer(text) if m[1]]
    written = Counter((m[1], " ".join(m[3].split("\n"))) for m in roles)
    if written != found:
        odd = written - found | found - written
        raise ValueError(f"a role that is none, or is none here: {[*odd]}")
    text = ROLE.sub(lambda m: _cited(m, known) if m[1] else m[0], text)
    for href in hrefs:
        if not re.match(r"#|https?:|mailto:", href):
            text = _led(text, href, hrefs[href], lead)
    return text


def _cited(match: re.Match, known: dict[str, Work]) -> str:
    role, keys = match[1], match[3]
    if role not in ("cite", "cite:p", "cite:t", "cite:yearpar"):
        raise ValueError(f"the role {role} is not known")
    shapes = {"cite:t": "{0.who} ({0.year})", "cite:yearpar": "{0.year}"}
    shape = shapes.get(role, "{0.who}, {0.year}")
    cited = []
    for key in map(str.strip, keys.split(",")):
        if key not in known:
            raise ValueError(f"no work has the key {key!r}")
        text, url = shape.format(known[key]), known[key].url
        cited.append(f"[{text}]({url})" if url else text)
    return ", ".join(cited) if role == "cite:t" else f"({'; '.join(cited)})"


def _led(text: str, href: str, times: int, lead: Lead) -> str:
    link = re.compile(rf"(?<!!)\[([^][]+)\]\({re.escape(href)}\)")
    if len(link.findall(text)) != times:
        raise ValueError(f"links to {href}: write each as [text]({href})")
    to = lead(href)
    return link.sub(lambda m: f"[{m[1]}]({to})" if to else m[1], text)


def edition(
    notebook: nbformat.NotebookNode,
    known: dict[str, Work],
    lead: Lead,
    linked: Collection[str] = (),
    say: Callable[[str], str] = str,
) -> nbformat.NotebookNode:
    """Copy a notebook, with its prose translated as ``plain`` does.

    Args:
        notebook: A chapter.
        known: The works that may be cited.
        lead: What becomes of an address within the book.
        linked: Sections that get an anchor, by their names in the source.
        say: Says a cell in another language.

    Raises:
        ValueError: A cell, which is named, cannot be translated.
    """
    translated = copy.deepcopy(notebook)
    for cell in translated.cells:
        if cell.cell_type == "markdown":
            try:
                source = say(anchored(cell.source, linked))
                cell.source = plain(source, known, lead)
            except ValueError as error:
                raise ValueError(f"cell {cell.id}: {error}") from None
    return translated


def course(
    book: Path,
    lead: Callable[[Link], str | None],
    say: Callable[[str, str], str] = lambda _, source: source,
) -> Iterator[tuple[str, nbformat.NotebookNode]]:
    """Translate the notebooks of a book, in order.

    Args:
        book: Its folder, with the works in ``references.bib``.
        lead: Where a link to another file leads; None: it becomes its text.
        say: Says a cell of a file in another language.

    Yields:
        The file of a notebook (``labs/01_rnn.ipynb``), and its edition.

    Raises:
        ValueError: A notebook, which is named, cannot be translated.
    """
    known = works(book / "references.bib")
    notebooks = {
        path.relative_to(book).as_posix(): nbformat.read(path, as_version=4)
        for path in sorted(book.rglob("[0-9]*.ipynb"))
        if ".ipynb_checkpoints" not in path.parts
    }
    linked = defaultdict(set)
    for name, notebook in notebooks.items():
        for cell in notebook.cells:
            for href in SECTION.findall(cell.source):
                file, section = target(name, href)
                linked[file].add(section)
    cells = {
        (name, section): cell.id
        for name, sections in linked.items()
        for cell in notebooks.get(name, {"cells": ()})["cells"]
        for section in sections & _sections(cell)
    }

    def leads(name: str, href: str) -> str | None:
        place = target(name, href)
        return lead(Link(href, *place, cells.get(place, "")))

    for name, notebook in notebooks.items():
        to = partial(leads, name)
        try:
            translated = edition(
                notebook, known, to, linked[name], partial(say, name)
            )
        except ValueError as error:
            raise ValueError(f"{name}, {error}") from None
        yield name, translated


def target(page: str, href: str) -> tuple[str, str]:
    """Return which file of the book a link leads to, and which section."""
    file, _, section = href.partition("#")
    if not file:
        return page, section
    return posixpath.normpath(posixpath.join(page, "..", file)), section


def _sections(cell: nbformat.NotebookNode) -> set[str]:
    if cell.cell_type != "markdown":
        return set()
    tokens = PARSER.parse(cell.source)
    return {t.attrs["id"] for t in tokens if t.type == "heading_open"}
