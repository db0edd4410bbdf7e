"""The course as one page to be printed, and its question bank as another.

A figure shows what it shows without scripts. What only proves or lists stays
folded: its line is printed, its inside is in the pages. Hints and solutions
move to an appendix, so that nobody reads them by accident.
"""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import NamedTuple
from urllib.parse import urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

# For the screen: commands, the bank, the study notes, a section for each file.
ON_SCREEN = ("book/interview", "book/check", "book/notes", "book/api")
PROOF = ".tag_hide-cell:has(.collapsed:-soup-contains('✓'))"
QUIZ = "figure.companion-quiz:has(.work)"
HEADING = ["h1", "h2", "h3", "h4", "h5", "h6"]
# Attributes that name an id of the same page.
NAMING = ("id", "for", "aria-labelledby", "aria-describedby", "aria-controls")
# A heading in two alphabets that begins a page would stand twice in the outline
# that Chromium makes, were nothing before it: hence the empty word.
STYLE = """
.bd-main .bd-content, .bd-article-container { display: block !important;
  max-width: none !important; padding: 0 !important; margin: 0; }
.bd-main .bd-content .bd-article { padding: 0 !important; }
.bd-main .bd-content .bd-article h1 { display: block !important;
  margin: 0 0 1rem; }
.bd-article > * + * { break-before: page; }
.chapter::before { content: "\\200b"; display: block; }
/* What may be longer than the rest of a page goes on over its end: code, a
   figure between its parts, a table between its rows. What scrolls on a screen
   would not. */
.bd-article :is(div, figure) { overflow: visible !important; }
.bd-article :is(.cell_input, [class*="highlight"]) {
  display: block !important; }
.bd-article :is(pre, details, details *, figure, table, .admonition,
  [class*="highlight"]) { break-inside: auto !important; orphans: 4;
  widows: 4; }
.bd-article :is(tr, svg, mjx-container, .companion .cells, .plot, .lane, .term,
  figure:not(.companion-quiz) :is(li, p)) { break-inside: avoid !important; }
.bd-article :is(figcaption, .says) { break-before: avoid; }
.bd-article :is(summary, .title, figure:not(.companion-quiz) p):has(+ *) {
  break-after: avoid; }
.bd-article .companion-quiz { font-size: 10.5pt; line-height: 1.35; }
.bd-article .companion-quiz .work > * + * { margin-top: 0.3rem; }
.bd-article .companion-quiz .work details > div { padding-top: 0.2rem; }
.bd-article .companion-quiz p { margin-bottom: 0.3rem; }
/* A picture leaves room for text, and is printed in its colours. */
.bd-article .companion svg { max-height: 110mm; }
.bd-article figure * { print-color-adjust: exact; }
.headerlink, .copybtn, .provenance details { display: none !important; }
.bd-article details > summary { list-style: none !important; }
.bd-article details:not(#_) > summary::before { content: none !important; }
"""


class Words(NamedTuple):
    """What is said on paper, and how the pages call what is folded there."""

    edition: str
    asked: str
    appendix: str
    tried: str
    source: str
    show: str
    spoilers: tuple[str, ...]
    numbers: str


WORDS = {
    "en": Words(
        edition="Version {version}, as a PDF. Figures stand still here; in the "
        "pages they move. What only proves or lists is folded into one line. "
        "Hints and solutions are in the appendix.",
        asked="The questions of this chapter are in the question bank, a PDF "
        "of its own, and in the pages.",
        appendix="Appendix: hints and solutions",
        tried="After you have tried: the appendix",
        source="The source: in the pages",
        show="Show ",
        spoilers=("Hint", "Answer", "When you have tried"),
        numbers="number",
    ),
    "zh": Words(
        edition="版本 {version}，PDF。图在这里是静止的，在网页里可以操作。"
        "只用来证明或列举的内容折成一行。提示和参考答案在附录里。",
        asked="本章的面试题在面试题库里：题库另有一份 PDF，网页里也有。",
        appendix="附录：提示和参考答案",
        tried="自己试过之后，再看附录",
        source="源代码：见网页",
        show="显示",
        spoilers=("提示", "答案", "试过之后再看"),
        numbers="数值",
    ),
}
"""By language: the pages have the same words in book/locale."""
BANK = "Interview questions 面试题库"
COUNT = (
    "Version {version}: {count} questions, and below each its answer. Where it "
    "names a cell or a test, this one proves it; the pages have both."
)
EMPTY = (
    '<!DOCTYPE html><html lang="{language}" data-theme="light"><head>'
    '<meta charset="utf-8"><title></title></head><body>'
    '<main class="bd-main"><div class="bd-content">'
    '<div class="bd-article-container"><article class="bd-article">'
    "</article></div></div></main></body></html>"
)


def order(toc: Path) -> list[str]:
    """The documents that are printed, the first page first."""
    contents = yaml.safe_load(toc.read_text(encoding="utf-8"))
    parts = (part["chapters"] for part in contents["parts"])
    return [
        contents["root"],
        *(
            page["file"]
            for part in parts
            for entry in part
            if entry["file"] not in ON_SCREEN
            for page in (entry, *entry.get("sections", ()))
        ),
    ]


def course(
    pages: Path, documents: list[str], version: str, language: str = "en"
) -> str:
    """Make one page of all ``documents`` below ``pages``, and an appendix.

    Args:
        pages: A built edition, in ``language``.
        documents: What is printed, the first page first.
        version: The course's.
        language: ``en`` or ``zh``.
    """
    sheet = _soup(EMPTY.format(language=language))
    words = WORDS[language]
    appendix = sheet.new_tag("section")
    appendix.append(_tag(sheet, "h1", words.appendix))
    for name in documents:
        page = _read(pages, name)
        _add_head(sheet, page, pages / name)
        chapter = _chapter(page, pages / name, name, documents)
        sheet.article.append(chapter)
        for quiz in chapter.select(QUIZ):
            section = quiz.find_parent("section")
            for tag in section.select(":scope > :not(h1, h2)"):
                tag.extract()
            section.append(_tag(sheet, "p", words.asked))
        moved = list(_spoilers(sheet, chapter, words))
        if moved:
            appendix.extend([_tag(sheet, "h2", _title(chapter)), *moved])
    sheet.article.append(appendix)
    _finish(sheet, words.edition.format(version=version), words)
    return str(sheet)


def bank(pages: Path, documents: list[str], version: str) -> str:
    """Make one page of the questions in ``documents``, each with its answer.

    A chapter's last page has all of its questions.
    """
    sheet = _soup(EMPTY.format(language="en"))
    front = sheet.new_tag("div")
    front.append(_tag(sheet, "h1", BANK))
    sheet.article.append(front)
    chapters = {}
    for name in documents:
        page = _read(pages, name)
        _add_head(sheet, page, pages / name)
        if quiz := page.select_one(QUIZ):
            chapter, _ = chapters.get(Path(name).name, (_title(page), None))
            chapters[Path(name).name] = chapter, quiz
    for name, (title, quiz) in chapters.items():
        # Whom a question's link led to is the question itself.
        for tag in quiz.select("script, .end p:has(a)"):
            tag.decompose()
        chapter = sheet.new_tag("div", attrs={"class": "chapter", "id": name})
        chapter.extend([_tag(sheet, "h1", title), quiz])
        sheet.article.append(chapter)
    count = len(sheet.select(".question"))
    note = COUNT.format(version=version, count=count)
    _finish(sheet, note, WORDS["en"])
    return str(sheet)


def _finish(sheet: BeautifulSoup, note: str, words: Words) -> None:
    """Say what this is; leave of what is folded the line, and open the rest."""
    sheet.head.append(_tag(sheet, "style", STYLE))
    sheet.title.string = _title(sheet)
    sheet.h1.insert_after(_tag(sheet, "p", note))
    for tag in sheet.select(".tag_hide-input > details .collapsed"):
        tag.string = words.source
    for tag in sheet.select(", ".join(_folded(words))):
        for inside in tag.select(":scope > :not(summary)"):
            inside.decompose()
    for tag in sheet.select("details"):
        tag["open"] = ""
    for title in sheet.select("summary .collapsed"):
        line = title.get_text().removeprefix(words.show).capitalize()
        title.parent.string = line
    known = set()
    for style in sheet.select("style"):
        if style.string in known:
            style.decompose()
        known.add(style.string)


def _read(pages: Path, name: str) -> BeautifulSoup:
    return _soup((pages / f"{name}.html").read_text(encoding="utf-8"))


def _title(page: Tag) -> str:
    return page.h1.get_text().rstrip("#")


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


def _folded(words: Words) -> tuple[str, ...]:
    """Select what is printed as one line: what proves, and what lists."""
    return (
        "details:is(.checks, .listing)",
        f"{PROOF} > details",
        ".tag_hide-input > details",
        ".companion-check details",
        "figure:not(.companion-quiz)"
        f" details:has(> summary:-soup-contains('{words.numbers}'))",
    )


def _spoilers(
    sheet: BeautifulSoup, chapter: Tag, words: Words
) -> Iterator[Tag]:
    """Take hints and solutions out; leave a link where the first stood."""
    spoiler = (
        f".tag_hide-cell:not({PROOF})",
        *(
            f"details:has(> summary:-soup-contains('{word}'))"
            for word in words.spoilers
        ),
    )
    for section in chapter.select("section"):
        spoilers = [
            tag
            for tag in section.select(", ".join(spoiler))
            if tag.find_parent("section") is section
        ]
        if not spoilers:
            continue
        place = f"{section['id']}--solved"
        back = sheet.new_tag("a", href=f"#{section['id']}", id=place)
        back.string = section.find(HEADING).get_text().rstrip("#")
        title = sheet.new_tag("h3")
        title.append(back)
        link = sheet.new_tag("a", href=f"#{place}")
        link.string = words.tried
        spoilers[0].insert_before(sheet.new_tag("p"))
        spoilers[0].previous_sibling.append(link)
        yield title
        yield from (tag.extract() for tag in spoilers)
