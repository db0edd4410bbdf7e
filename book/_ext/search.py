"""A search that finds Chinese words too, and shows the sentence it found.

Chinese has no spaces, so a run of characters is indexed by its pairs,
学习率 as 学习 and 习率, and what is searched for is cut in the same way. No
dictionary has to know the word. Particles part the runs: their pairs are no
words, and would be a third of the index.

Sphinx's index is one file that says which pages have a word, not how often, nor
in which sentence; here it keeps the titles and the names of the API alone. What
pages say is in many small files, of which a query reads those that it needs:
book/assets/search.js. So a longer book makes no query heavier.
"""

import json
import pickle
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search import js_index
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
# What has many tags and no sentence: a figure, beside its caption, and code.
FIGURE = re.compile(r'<figure class="companion.*?</figure>', re.S)
CAPTION = re.compile(r"<figcaption.*?</figcaption>", re.S)
PROOF = re.compile(r'<p class="proof".*?</p>', re.S)
CODE = re.compile(r"<pre\b.*?</pre>", re.S)
TAG = re.compile(r"<[^>]*>")
# Nor is what every page has, or only its authors need.
FRAME = ["reading-time", "provenance", "proof"]
BLOCKS = ["p", "li", "dt", "dd", "tr", "figcaption"]
CELLS = ["td", "th"]
# Code and questions are found; as excerpts they would be half of the files, and
# a claim to be refuted no good one.
APART = ["pre", "summary"]
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
WORDS = re.compile(rf"[{HAN}]{{2}}|[^\W\d_]{{2,}}\W+[^\W\d_]{{2,}}")
# What a slip may have meant.
SPELLED = re.compile(r"[a-z]{4,}")
# As many files of words; book/assets/search.js counts them too.
FILES = 64


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
        """Give Sphinx nothing to index: see ``words``."""
        return []

    def words(self, text: str) -> Iterator[str]:
        """List what a text is found by, cut as a query is."""
        for piece in PIECES.findall(text.lower()):
            if re.match(f"[{HAN}]", piece):
                yield from piece
                yield from map("".join, pairwise(piece))
            elif self.word_filter(piece) and self.stem(piece):
                yield self.stem(piece)

    @cache  # noqa: B019 - One object a build.
    def stem(self, word: str) -> str:
        """Cut a word to its stem."""
        return super().stem(word)

    def word_filter(self, word: str) -> bool:
        """Leave out what begins with a digit.

        Nobody searches for a number by itself. In a query such a word is passed
        over.
        """
        return super().word_filter(word) and not word[:1].isdigit()


def section(block: Tag) -> str:
    """Name the section of the page in which a block stands; "" at its head."""
    for parent in block.parents:
        if parent.name == "section" and parent.find_parent("section"):
            return parent.get("id", "")
    return ""


def article(page: str) -> BeautifulSoup:
    """Read the article of a page's HTML, if it has one.

    A formula is ``…``: its signs are drawn, and no letters.
    """
    found = ARTICLE.search(page)
    html = SILENT.sub("", FORMULA.sub("…", found[0])) if found else ""
    # A parser takes seconds for these, and nobody asks for their parts.
    html = CODE.sub(lambda code: f"<pre>{TAG.sub(' ', code[0])}</pre>", html)
    html = FIGURE.sub(lambda figure: _flat(figure[0]), html)
    text = BeautifulSoup(html, "html.parser")
    for frame in text.find_all(class_=FRAME):
        frame.extract()
    return text


def _flat(figure: str) -> str:
    """Leave of a figure its captions and its words."""
    captions = "".join(CAPTION.findall(figure))
    words = TAG.sub(" ", PROOF.sub("", CAPTION.sub("", figure)))
    return f'<figure class="companion">{captions}{words}</figure>'


def sentences(text: BeautifulSoup) -> Iterator[tuple[str, str]]:
    """List the sentences of an article, each with its section.

    A figure is described by its caption. The line between two cells of a table
    is ``…``. The article is taken apart.
    """
    for apart in text.find_all(APART):
        apart.extract()
    for figure in text.find_all(class_="companion"):
        captions = [each.extract() for each in figure("figcaption")]
        figure.clear()
        figure.extend(captions)
    for cell in text.find_all(CELLS):
        for paragraph in cell("p"):
            paragraph.unwrap()
        before = cell.find_previous_sibling()
        if before and before.name in CELLS:
            cell.insert_before(" … ")
    for block in text.find_all(BLOCKS):
        if block.find(BLOCKS):
            continue
        words = " ".join(block.get_text().split())
        where = section(block)
        for sentence in SENTENCE.split(words):
            if WORDS.search(sentence):
                yield where, sentence


class Contents(NamedTuple):
    """What the search knows of a page.

    Attributes:
        words: How often sentences say a word; 0 where it is in none.
        parts: The sentences of each section.
        spelled: How often a word is written, for slips of the pen.
    """

    words: Counter[str]
    parts: dict[str, list[str]]
    spelled: Counter[str]


def contents(language: EnglishAndChinese, page: str) -> Contents:
    """Read a page's HTML for the search."""
    text = article(page)
    # What is no sentence is found, and counts nothing.
    words = Counter(dict.fromkeys(language.words(text.get_text(" ")), 0))
    parts: dict[str, list[str]] = {}
    spelled: Counter[str] = Counter()
    for where, sentence in sentences(text):
        parts.setdefault(where, []).append(sentence)
        words.update(language.words(sentence))
        spelled.update(SPELLED.findall(sentence.lower()))
    return Contents(words, parts, spelled)


def read_pages(out: Path, names: list[str], before: Path) -> list[Contents]:
    """Read the pages of a build, of those that stayed what was read before.

    Args:
        out: Where the pages are.
        names: The pages, without their ending.
        before: A file with what was read. A page is known there by the sum of
            its name, its text and this file.
    """
    code = Path(__file__).read_bytes()
    known = pickle.loads(before.read_bytes()) if before.exists() else {}
    language = EnglishAndChinese({})
    read: dict[str, Contents] = {}
    for name in names:
        page = (out / f"{name}.html").read_bytes()
        key = sha256(code + name.encode() + page).hexdigest()
        read[key] = known.get(key) or contents(language, page.decode())
    new = before.with_suffix(".new")
    new.write_bytes(pickle.dumps(read))
    new.replace(before)
    return list(read.values())


def weigh(pages: list[Counter[str]]) -> dict[str, dict[int, int]]:
    """Say for each word which pages have it, and how much it counts there.

    BM25, in tenths: how often a page says it, for the page's length.
    """
    index: dict[str, dict[int, int]] = defaultdict(dict)
    mean = max(sum(page.total() for page in pages) / max(len(pages), 1), 1)
    for number, page in enumerate(pages):
        length = 1.2 * (0.25 + 0.75 * page.total() / mean)
        for word, often in page.items():
            index[word][number] = round(22 * often / (often + length))
    return index


def write_index(app: Sphinx, exception: Exception | None) -> None:
    """Write what a query reads: files of words, and each page's sentences.

    A word's file is told by its first character, so that its longer forms and
    the pairs of a character are in the same file.
    """
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    folder = out / "_static" / "search"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def write(name: str, content: Any) -> None:
        code = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        file = folder / f"{name}.js"
        file.write_text(f'Search.parts["{name}"] = {code};\n', encoding="utf-8")

    index = js_index.loads((out / "searchindex.js").read_text(encoding="utf-8"))
    names = index["docnames"]
    pages = read_pages(out, names, Path(app.doctreedir) / "search.pickle")
    for name, page in zip(names, pages, strict=True):
        write(
            f"page-{name.replace('/', '-')}",
            [[where, *said] for where, said in page.parts.items()],
        )
    files: list[dict[str, dict[int, int]]] = [{} for _ in range(FILES)]
    for word, found in sorted(weigh([page.words for page in pages]).items()):
        files[ord(word[0]) % FILES][word] = found
    for number, words in enumerate(files):
        write(f"words-{number}", words)
    spelled = sum((page.spelled for page in pages), Counter())
    write("spelled", [word for word, _ in spelled.most_common()])


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
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
