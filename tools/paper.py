"""The whole book as one page, to be printed.

What folds on a screen stands open on paper, and figures show what they show
without scripts. Hints, solutions and answers move to an appendix, so that
nobody reads them by accident.
"""

import copy
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

HINT = "details:has(> summary:-soup-contains('Hint'))"
SPOILER = f"{HINT}, .tag_solution"
ANSWER = ".work > :is(details, .end)"
HEADING = ["h1", "h2", "h3", "h4", "h5", "h6"]
# Attributes that name an id of the same page.
NAMING = ("id", "for", "aria-labelledby", "aria-describedby", "aria-controls")
# A heading in two alphabets that begins a page would stand twice in the outline
# that Chromium makes, were nothing before it: hence the empty word.
STYLE = """
.bd-main .bd-content, .bd-article-container { display: block !important;
  max-width: none !important; padding: 0 !important; margin: 0; }
.bd-main .bd-content .bd-article { padding: 0 !important; }
.bd-main .bd-content .bd-article h1 { display: block !important; margin: 0; }
.bd-article > * + * { break-before: page; }
.chapter::before { content: "\\200b"; display: block; }
/* What is longer than a page may begin on this one. */
.bd-article :is(pre, details, details *, .companion-source, .companion-quiz) {
  break-inside: auto !important; orphans: 4; widows: 4; }
.headerlink, .copybtn { display: none !important; }
.bd-article details > summary { list-style: none !important; }
.bd-article details > summary::before { content: none !important; }
"""
EDITION = (
    "Version {version}, as a PDF. Figures stand still here; in the pages they "
    "move. Hints, solutions and answers are in the appendix."
)
APPENDIX = "Appendix: hints, solutions and answers"
EMPTY = (
    '<!DOCTYPE html><html lang="en" data-theme="light"><head>'
    '<meta charset="utf-8"><title></title></head><body>'
    '<main class="bd-main"><div class="bd-content">'
    '<div class="bd-article-container"><article class="bd-article">'
    "</article></div></div></main></body></html>"
)


def order(toc: Path) -> list[str]:
    """The documents of the book, the first page first.

    The reference, a section for each of many files, is for the screen.
    """
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    parts = (part["chapters"] for part in contents["parts"])
    return [
        contents["root"],
        *(
            page["file"]
            for part in parts
            for entry in part
            if "glob" not in str(entry)
            for page in (entry, *entry.get("sections", ()))
        ),
    ]


def paper(pages: Path, documents: list[str], version: str) -> str:
    """Make one page of all ``documents`` below ``pages``, and an appendix."""
    sheet = _soup(EMPTY)
    appendix = sheet.new_tag("section")
    appendix.append(_tag(sheet, "h1", APPENDIX))
    for name in documents:
        page = _soup((pages / f"{name}.html").read_text(encoding="utf-8"))
        _add_head(sheet, page, pages / name)
        chapter = _chapter(page, pages / name, name, documents)
        sheet.article.append(chapter)
        moved = list(_answers(sheet, chapter)) + list(_spoilers(sheet, chapter))
        if moved:
            title = chapter.h1.get_text().rstrip("#")
            appendix.extend([_tag(sheet, "h2", title), *moved])
    sheet.head.append(_tag(sheet, "style", STYLE))
    sheet.article.append(appendix)
    sheet.title.string = sheet.h1.get_text().rstrip("#")
    note = _tag(sheet, "p", EDITION.format(version=version))
    sheet.h1.insert_after(note)
    _unfold(sheet)
    return str(sheet)


def _soup(text: str) -> BeautifulSoup:
    return BeautifulSoup(text, "html.parser")


def _tag(sheet: BeautifulSoup, kind: str, text: str) -> Tag:
    tag = sheet.new_tag(kind)
    tag.string = text
    return tag


def _add_head(sheet: BeautifulSoup, page: BeautifulSoup, path: Path) -> None:
    """Take over the page's style sheets."""
    for tag in page.head.select("link[rel=stylesheet]"):
        tag["href"] = _file(tag["href"], path)
        if tag not in sheet.head.contents:
            sheet.head.append(tag)


def _file(link: str, page: Path) -> str:
    """Return the file that a link of ``page`` means, without ``?v=1``."""
    parts = urlsplit(link)
    return (
        link if parts.scheme else (page.parent / parts.path).resolve().as_uri()
    )


def key_of(document: str) -> str:
    """Name a document in the whole book: ``book/labs/a`` is ``labs-a``."""
    return document.removeprefix("book/").replace("/", "-")


def _chapter(
    page: BeautifulSoup, path: Path, document: str, documents: list[str]
) -> Tag:
    """Take a page's text, with names and links that fit the whole book."""
    chapter = page.select_one("article.bd-article")
    for script in chapter.select("script, noscript"):
        script.decompose()
    for kind in NAMING:
        # A drawing refers to its own parts, and repeats nobody else's.
        for tag in chapter.select(f"[{kind}]:not(svg, svg *)"):
            tag[kind] = f"{key_of(document)}--{tag[kind]}"
    for link in chapter.select("a[href]"):
        link["href"] = _target(link["href"], document, documents)
        if not link["href"]:
            del link["href"]
    for picture in chapter.select("img[src]"):
        picture["src"] = _file(picture["src"], path)
    chapter.name = "div"
    chapter.attrs = {"class": "chapter", "id": key_of(document)}
    return chapter


def _target(link: str, page: str, documents: list[str]) -> str:
    """Return where in the book a link of ``page`` leads; empty if out of it."""
    parts = urlsplit(link)
    if parts.scheme:
        return link
    beside = PurePosixPath(page).parent / PurePosixPath(parts.path)
    meant = normpath(beside.with_suffix("")) if parts.path else page
    if meant not in documents:
        return ""
    name = key_of(meant)
    return f"#{name}--{parts.fragment}" if parts.fragment else f"#{name}"


def _spoilers(sheet: BeautifulSoup, chapter: Tag) -> Iterator[Tag]:
    """Take hints and solutions out; leave a link where the first stood."""
    for section in chapter.select("section"):
        spoilers = [
            tag for tag in section.select(SPOILER) if tag.parent is section
        ]
        if not spoilers:
            continue
        place = f"{section['id']}--solved"
        back = sheet.new_tag("a", href=f"#{section['id']}", id=place)
        back.string = section.find(HEADING).get_text().rstrip("#")
        title = sheet.new_tag("h3")
        title.append(back)
        link = sheet.new_tag("a", href=f"#{place}")
        link.string = "Hints and a solution: in the appendix"
        spoilers[0].insert_before(link)
        yield title
        yield from (tag.extract() for tag in spoilers)


def _answers(sheet: BeautifulSoup, chapter: Tag) -> Iterator[Tag]:
    """Take what follows each question out; repeat the question with it."""
    for quiz in chapter.select("figure.companion-quiz:has(.work)"):
        answered = copy.copy(quiz)
        for style in answered.select("style"):
            style.decompose()
        for kept in answered.select(".work > :not(details, .end)"):
            kept.decompose()
        for tag in answered.select("[id]"):
            tag["id"] += "--answered"
        for tag in quiz.select(ANSWER):
            tag.decompose()
        title = sheet.new_tag("h3")
        title.string = "Interview"
        yield title
        yield answered


def _unfold(sheet: BeautifulSoup) -> None:
    """Open what is folded, and drop a style sheet said before."""
    for tag in sheet.select("details"):
        tag["open"] = ""
    for title in sheet.select("summary .collapsed"):
        words = title.get_text().removeprefix("Show ").capitalize()
        title.parent.string = words
    known = set()
    for style in sheet.select("style"):
        if style.string in known:
            style.decompose()
        known.add(style.string)
