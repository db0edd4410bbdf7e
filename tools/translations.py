"""Build the Chinese edition, and keep its catalogues in step with the English.

``build`` writes ``_build/html/zh`` beside the English book. ``update`` brings
the catalogues in ``book/locale`` up to what the English edition says now: a
message that changed keeps its old translation, marked as fuzzy. ``lint`` says
which message of a translated page is missing, old, or differs in numbers,
formulas, code, links or citations, and the same of what reports on contracts
say (companion/words). The last two read what ``make book`` left.
"""

import argparse
import html
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "book" / "_ext"))

import chinese  # noqa: E402
from chinese import (  # noqa: E402
    CATALOGUES,
    FRAME,
    MESSAGES,
    REPORTS,
    WORDS,
    in_english_alone,
)
from words import page_words, report_words  # noqa: E402

BUILD = ROOT / "_build"
# What is put together in the source, and stands in no line of it as a whole.
COMPOSED = "composed"
# What an exception says is its own, and stays as it is.
THEIRS = re.compile(r"raised \w+|cannot be called as")
TITLE = "每个论断都能运行验证的 Transformer 课程"
# A message without a word of English is the same in both editions.
CODE = re.compile(r"\$[^$]*\$|`[^`]*`")
ENGLISH = re.compile(r"[A-Za-z]{2}|[\u3400-\u9fff] I\b")
HAN = "\u3400-\u9fff"
LINK = r"\]\(([^()\s]+)\)"
# What is the same on both sides: its name, and how it is found. What was found
# is taken away before the next.
KEPT = {
    "formula": r"\$\$?[^$]+\$\$?",
    "citation or role": r"\{[a-z:]+\}`[^`]*`",
    "code": r"`+[^`]+`+",
    "link": LINK,
    "tag": r"<[^>]*>",
    "placeholder": r"\{\d+\}",
    "number": r"\d+(?:[.,]\d+)*",
}
# Where a message may stand in a source: a whole block, or a cell of a table.
BEGINS = r"(?m)((?:^[ \t]*(?:(?:#+|[-*+>]|\d+\.|:::+\{\w+\}|: ) +)*)|\|[ \t]*)"
FOLDED = re.compile("(?<=<summary>).+?(?=</summary>)")
ENDS = r"(?=[ \t]*(?:\||$))"
# Chinese counts in ten thousands: 4.5 million are 450 万.
SIZES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "千": 10**3,
    "百万": 10**6,
    "万": 10**4,
    "亿": 10**8,
}
SIZED = re.compile(rf"(\d[\d,]*(?:\.\d+)?) ?({'|'.join(SIZES)})")
# Words in a formula are said in Chinese; all the rest of it stays. A formula on
# lines of its own begins with one.
SPELT = re.compile(r"\\text\{[^{}]*\}")
# The sign behind a formula may stand in it, so that no line breaks before it.
ENDED = re.compile(r"(?<!\$)[,.;]\$(?!\$)")
PUNCTUATION = re.compile(
    rf"[{HAN}][,;:?!]|[,;:?!][{HAN}]|[{HAN}]\.(?:\s|$)|[{HAN}]\(|\)[{HAN}]"
)
# Four words that follow each other, outside of code and shapes.
SENTENCE = re.compile(r"(?:[A-Za-z]+[,;:]? ){3}[A-Za-z]+")
BRACKETS = re.compile(r"\([^()\u3400-\u9fff]*\)")
SPACE = re.compile(rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]")
# Terms with one translation: what is never written for them.
NEVER = {
    "令牌": "词元",
    "标记化": "分词",
    "遮罩": "掩码",
    "掩膜": "掩码",
    "蒙版": "掩码",
    "自我注意": "自注意力",
    "多头部": "多头",
    "预填阶段": "预填充",
    "词汇表": "词表",
    "束搜寻": "束搜索",
    "量子化": "量化",
}


def build() -> int:
    """Build the edition; what is as the last time is not made again."""
    from jupyter_book.sphinx import build_sphinx

    BUILD.mkdir(exist_ok=True)
    result = build_sphinx(
        ROOT,
        BUILD / "html" / "zh",
        noconfig=True,
        path_config=_write("config-zh.yml", _settings()),
        confoverrides={
            "external_toc_path": _write("toc-zh.yml", _order()).as_posix(),
            "latex_individualpages": False,
        },
        doctreedir=BUILD / ".doctrees-zh",
        warningiserror=True,
        keep_going=True,
        quiet=True,
    )
    return int(result != 0)


def _settings() -> dict:
    """Take the book's settings, in Chinese and without the API's pages."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    settings["title"] = TITLE
    # Were they there, the list of what is no page would change with them.
    settings["exclude_patterns"].append("api/**")
    sphinx = settings["sphinx"]
    sphinx["local_extensions"] = {
        name: (ROOT / folder).as_posix()
        for name, folder in sphinx["local_extensions"].items()
        if name != "reference"
    }
    config = {
        name: value
        for name, value in sphinx["config"].items()
        if not name.startswith("autoapi")
    }
    config["extensions"].remove("reference")
    sphinx["config"] = config | {
        "language": "zh_CN",
        "locale_dirs": ["book/locale"],
        "gettext_compact": False,
        # The book's own search, which knows Chinese: book/_ext/search.py.
        "html_search_language": "en",
    }
    return settings


def _order() -> dict:
    """Take the order of the pages without the API, which is English alone."""
    order = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    for part in order["parts"]:
        part["chapters"] = [
            each
            for each in part["chapters"]
            if not in_english_alone(each["file"])
        ]
    return order


def _write(name: str, content: dict) -> Path:
    """Write a file of settings, unless it is there: a newer one builds anew."""
    path = BUILD / name
    text = yaml.safe_dump(content, allow_unicode=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return path


def needs_words(message: str) -> bool:
    """Tell if a message has words, beside formulas and code."""
    return bool(ENGLISH.search(CODE.sub(" ", message)))


def prose() -> dict[str, list[str]]:
    """Read which messages the pages of the English edition have.

    Raises:
        SystemExit: The book was not built.
    """
    path = BUILD / MESSAGES
    if not path.exists():
        raise SystemExit(f"{path}: expected the book, built: run make book")
    return json.loads(path.read_text("utf-8"))


def stored(page: str) -> dict[str, str]:
    """List the messages in the outputs of a notebook, each with its cell."""
    path = ROOT / f"{page}.ipynb"
    if not path.exists():
        return {}
    found: dict[str, str] = {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            text = "".join(output.get("data", {}).get("text/html", ""))
            # The bank speaks both languages already, all but its label.
            if text.startswith('<figure class="companion companion-quiz'):
                text = text.partition("\n")[0]
            for message in page_words.messages(text):
                found.setdefault(message, cell["id"])
    return found


def pages() -> list[str]:
    """List the pages that are translated: those with a catalogue."""
    return sorted(
        path.relative_to(CATALOGUES).with_suffix("").as_posix()
        for path in CATALOGUES.rglob("*.po")
        if path not in (WORDS, FRAME)
    )


def read(path: Path) -> Catalog:
    """Read a catalogue, or begin one."""
    if not path.exists():
        return Catalog(locale="zh_CN", fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale="zh_CN")


def template(page: str) -> Catalog:
    """Make the catalogue that a page should have, without translations."""
    found = Catalog()
    for message in prose()[page]:
        if needs_words(message):
            found.add(message)
    return found


def words() -> Catalog:
    """Make the table that the outputs of the translated pages should have."""
    found = Catalog()
    for page in pages():
        for message, cell in stored(page).items():
            found.add(message, locations=[(f"{page}#{cell}", 0)])
    # What a page says in another way than the others.
    for entry in read(WORDS):
        if entry.context and entry.id in stored(entry.context):
            found.add(entry.id, context=entry.context)
    return found


def in_chinese(page: str, source: str) -> str:
    """Say a cell of a page in Chinese, as its catalogue does.

    Args:
        page: Its name, ``book/03_attention``.
        source: Markdown. What has no translation stays.
    """
    found: list[str] = []

    def put(begin: str, said: str) -> str:
        found.append(said)
        return f"{begin}\0{len(found) - 1}\0"

    known = chinese.messages(CATALOGUES / f"{page}.po")
    # The longest first: it may hold others.
    for english in sorted(known, key=len, reverse=True):
        words = r"\s+(?:> )*".join(map(re.escape, english.split()))
        source = re.sub(
            f"{BEGINS}{words}{ENDS}",
            lambda text, said=known[english]: put(text[1], said),
            source,
        )
    table = chinese.words(page)
    source = FOLDED.sub(
        lambda line: page_words.said(line[0], lambda w: table.get(w, w)), source
    )
    return re.sub("\0(\\d+)\0", lambda at: found[int(at[1])], source)


def update(new: list[str]) -> int:
    """Bring the catalogues up to the English edition.

    Args:
        new: Pages to begin a catalogue for.
    """
    for page in sorted({*pages(), *new}):
        _merge(CATALOGUES / f"{page}.po", template(page))
    _merge(WORDS, words())
    return 0


def _merge(path: Path, found: Catalog) -> None:
    catalogue = read(path)
    before = _content(catalogue)
    catalogue.update(found)
    catalogue.obsolete.clear()
    if path.exists() and _content(catalogue) == before:
        return  # Its head would have another date, and no more.
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalogue, width=0)


def _content(catalogue: Catalog) -> list[tuple]:
    return [(m.id, m.context, m.string, m.fuzzy) for m in catalogue if m.id]


def faults(english: str, chinese: str) -> Iterator[str]:
    """Say what a translation lost, added or writes in another way.

    Example:
        >>> list(faults("Take 3 heads.", "取 4 个头。"))
        ["number: lacks '3', and has '4'"]
    """
    left, right = (
        SIZED.sub(_in_figures, ENDED.sub("$", html.unescape(text)))
        for text in (SPELT.sub(r"\\text{}", t) for t in (english, chinese))
    )
    if english.startswith("\n") and left != right:
        yield "formula: has other signs"
    for name, pattern in KEPT.items():
        one, other = (Counter(re.findall(pattern, t)) for t in (left, right))
        if one != other:
            lacks = ", ".join(map(repr, one - other)) or "nothing"
            more = ", ".join(map(repr, other - one)) or "nothing"
            yield f"{name}: lacks {lacks}, and has {more}"
        left, right = (re.sub(pattern, " x ", t) for t in (left, right))
    for found in PUNCTUATION.finditer(right):
        yield f"half-width punctuation at {found[0]!r}"
    for found in SPACE.finditer(re.sub("<[^>]*>", "", chinese)):
        yield f"no space between {found[0]!r}"
    for word, better in NEVER.items():
        if word in chinese and better not in chinese:
            yield f"{word!r} for {better!r}"


def _in_figures(number: re.Match) -> str:
    """Write 4.5 million, or 450 万, as 4500000."""
    return str(round(float(number[1].replace(",", "")) * SIZES[number[2]]))


def lint() -> int:
    """Print what is not in step; the number of faults is the result."""
    found = []
    for page in pages():
        known = prose()
        if page not in known:
            found.append(f"{page}: has a catalogue, and is no page")
            continue
        found += [
            f"{_where(page, message)}: {fault}"
            for message, fault in _compare(
                CATALOGUES / f"{page}.po", template(page)
            )
        ]
    wanted = words()
    for message, fault in _compare(WORDS, wanted):
        entry = wanted.get(message)
        cell = entry.locations[0][0] if entry else WORDS.name
        found.append(f"{cell}: {fault}")
    wanted = report_words.registered() | report_words.written()
    found += reports(REPORTS, wanted, report_words.known())
    print("\n".join(found))
    return int(bool(found))


def reports(
    path: Path, wanted: dict[str, str], known: dict[str, str]
) -> Iterator[str]:
    """Say what the table of reports lacks, or says in another way.

    Args:
        path: The table.
        wanted: The sentences it should have, each with the place that says it.
        known: Whole messages that it should leave nothing English of.
    """
    parts = tomllib.loads(path.read_text(encoding="utf-8"))
    table: dict[str, str] = {}
    for part, entries in parts.items():
        for english, said in entries.items():
            where = f"{path.name} [{part}]: {english[:60]!r}"
            if english in table:
                yield f"{where} stands there twice"
            elif part != COMPOSED and english not in wanted:
                yield f"{where} is no longer said in English"
            table[english] = said
            for fault in faults(english, said):
                yield f"{where}: {fault}"
    for english, place in wanted.items():
        if english not in table:
            yield f"{place}: {english!r} is not translated in {path.name}"
    for message, place in known.items():
        if english := "" if THEIRS.search(message) else left(message):
            yield f"{place}: {path.name} leaves {english!r} of {message!r}"


def left(message: str) -> str:
    """Return the English that is left of a message in Chinese, if any is.

    Example:
        >>> left("Row 0 sums to 2, not to 1. Nobody has said this before.")
        'Nobody has said this'
    """
    told = page_words.package().say(message)
    bare = BRACKETS.sub("`", page_words.package().CODE.sub("`", told))
    found = SENTENCE.search(bare)
    return found[0] if found else ""


def _compare(path: Path, wanted: Catalog) -> Iterator[tuple[str, str]]:
    catalogue = read(path)
    for message in wanted:
        if not message.id:
            continue
        entry = catalogue.get(message.id, message.context)
        short = f"{message.id[:60]!r}"
        if entry is None or not entry.string:
            yield message.id, f"{short} is not translated"
        elif entry.fuzzy:
            yield message.id, f"{short} is newer than its translation"
        else:
            for fault in faults(message.id, entry.string):
                yield message.id, f"{short}: {fault}"
    for entry in catalogue:
        if entry.id and wanted.get(entry.id, entry.context) is None:
            yield entry.id, f"{entry.id[:60]!r} is no longer said in English"


def _where(page: str, message: str) -> str:
    """Name the cell or the line of a page in which a message begins."""
    start = r"\s+".join(map(re.escape, message.split()[:5]))
    notebook = ROOT / f"{page}.ipynb"
    if notebook.exists():
        for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"])
            if begins := re.search(start, source):
                line = source.count("\n", 0, begins.start()) + 1
                return f"{page}#{cell['id']}:{line}"
        return page
    # What a directive lists stands in a file beside its page.
    for source in (ROOT / f"{page}.md", ROOT / f"{page}.toml"):
        text = source.read_text("utf-8") if source.exists() else ""
        if begins := re.search(start, text):
            name = page if source.suffix == ".md" else f"{page}.toml"
            return f"{name}:{text.count(chr(10), 0, begins.start()) + 1}"
    return f"{page}:1"


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["build", "update", "lint"])
    parser.add_argument("pages", nargs="*", help="update: pages to begin")
    options = parser.parse_args()
    if options.what == "update":
        return update(options.pages)
    return build() if options.what == "build" else lint()


if __name__ == "__main__":
    sys.exit(main())
