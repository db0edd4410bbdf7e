"""A search that finds Chinese words too, and shows the sentence it found.

Chinese has no spaces, so a run of characters is indexed by its pairs,
学习率 as 学习 and 习率, and what is searched for is cut in the same way. No
dictionary has to know the word. Particles part the runs: their pairs are no
words, and would be a third of the index.

Sphinx's index says which pages have a word, not how often, nor in which
sentence. The sentences of all pages are in a file of their own, which the
search page reads once somebody searches: book/assets/search.js.
"""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

PARTICLES = "的了是在和与这那你我他她它们吗呢吧也都就把被而么"
HAN = "\\u3400-\\u9fff"
# Python's and JavaScript's expressions are one, but for what a letter is.
RUN = f"(?:(?![{PARTICLES}])[{HAN}])+"
PIECES = re.compile(rf"{RUN}|[^\W{HAN}]+")

ARTICLE = re.compile(r"<article.*</article>", re.S)
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.S)
# What is drawn, run or pressed is no text.
SILENT = re.compile(r"<(svg|script|style|button)\b.*?</\1>", re.S)
BLOCKS = ["p", "li", "dt", "dd", "tr", "figcaption"]
# A figure is described by its caption. The index has code and questions; here
# they would be half of the file, and a claim to be refuted no good excerpt.
APART = (
    "pre, summary, .reading-time, .provenance, "
    ".companion :not(figcaption, figcaption *)"
)
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
WORDS = re.compile(rf"[{HAN}]{{2}}|[^\W\d_]{{2,}}\W+[^\W\d_]{{2,}}")


class EnglishAndChinese(SearchEnglish):
    """English by its stems, Chinese by characters and pairs of characters."""

    js_splitter_code = rf"""
var splitQuery = (query) =>
  (query.match(/{RUN}|(?:(?![{HAN}])[\p{{L}}\p{{N}}_])+/gu) || [])
    .filter((piece) => !/^\d/.test(piece))
    .flatMap((piece) => /^[{HAN}]{{2}}/.test(piece)
      ? [...piece].slice(1).map((next, i) => piece[i] + next) : [piece]);
"""

    def split(self, input: str) -> list[str]:
        """List what a text is found by."""
        words = []
        for piece in PIECES.findall(input):
            if re.match(f"[{HAN}]", piece):
                words += [*piece, *map("".join, pairwise(piece))]
            else:
                words.append(piece)
        return words

    def word_filter(self, word: str) -> bool:
        """Leave out what begins with a digit.

        Sphinx runs the numbers of a figure into its words, and nobody searches
        for a number by itself. In a query such a word is passed over.
        """
        return super().word_filter(word) and not word[:1].isdigit()


def section(block: Tag) -> str:
    """Name the section of the page in which a block stands; "" at its head."""
    for parent in block.parents:
        if parent.name == "section" and parent.find_parent("section"):
            return parent.get("id", "")
    return ""


def sentences(page: str) -> Iterator[tuple[str, str]]:
    """List the sentences of a page's HTML, each with its section.

    A formula is ``…``: its signs are drawn, and no letters. So is the line
    between two cells of a table.
    """
    article = ARTICLE.search(page)
    if article is None:
        return
    html = SILENT.sub("", FORMULA.sub("…", article[0]))
    text = BeautifulSoup(html, "html.parser")
    for apart in text.select(APART):
        apart.decompose()
    for paragraph in text.select(":is(td, th) p"):
        paragraph.unwrap()
    for cell in text.select(":is(td, th) + :is(td, th)"):
        cell.insert_before(" … ")
    for block in text.find_all(BLOCKS):
        if block.find(BLOCKS):
            continue
        words = " ".join(block.get_text().split())
        where = section(block)
        for sentence in SENTENCE.split(words):
            if WORDS.search(sentence):
                yield where, sentence


def write_sentences(app: Sphinx, exception: Exception | None) -> None:
    """Put the sentences of all pages into one file."""
    if exception or app.builder.format != "html":
        return
    pages: dict[str, list[list[str]]] = {}
    for name in sorted(app.env.found_docs):
        page = Path(app.outdir) / f"{name}.html"
        parts: dict[str, list[str]] = {}
        for where, sentence in sentences(page.read_text(encoding="utf-8")):
            parts.setdefault(where, []).append(sentence)
        pages[name] = [[where, *said] for where, said in parts.items()]
    code = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    file = Path(app.outdir) / "_static" / "sentences.js"
    file.write_text(f"var sentences = {code};\n", encoding="utf-8")


def add_search(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Bring the script that orders and shows what is found."""
    if pagename == "search":
        app.add_js_file("search.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.add_search_language(EnglishAndChinese)
    app.connect("html-page-context", add_search)
    app.connect("build-finished", write_sentences)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
