"""The Chinese edition: the same sources, with catalogues of translations.

Sphinx translates the prose of a page from ``book/locale/zh_CN/LC_MESSAGES``.
What else a page says stands in two tables there: ``words.po`` for figures,
``frame.po`` for what folds and is pressed; reports on contracts have the
package's own. They are applied to the pages as written, so that stored outputs
stay as they are. tools/translations.py builds the edition.
"""

import json
import re
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from babel.messages.catalog import Message
from babel.messages.pofile import read_po
from docutils import nodes
from frame import written_before
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform, i18n
from sphinx.util.nodes import extract_messages
from words import page_words

BOOK = Path(__file__).parents[1]
CATALOGUES = BOOK / "locale" / "zh_CN" / "LC_MESSAGES"
# What outputs say, and what is around every page.
WORDS, FRAME = CATALOGUES / "words.po", CATALOGUES / "frame.po"
# What reports on contracts say: page_words asks for it.
REPORTS = page_words.PACKAGE.with_name("zh.toml")
# Where the English edition leaves what there is to translate.
MESSAGES = "messages.json"
# What the directives of a page say, while it is read.
SAID = "messages"
# How Sphinx parses a translation, and what it takes for a list.
PUBLISH = i18n.publish_msgstr
NUMBERED = re.compile(r"^(\d+)\.(?= )")
CHINESE = re.compile(f"[{page_words.HAN}]")
# Browsers begin a line with what follows a formula, be it a comma.
BETWEEN_SIGNS = re.compile(
    r'([（“《]*)(<span class="math"><mjx-container.*?</mjx-container></span>)'
    r"([，。、；：？！）”》]*)",
    re.S,
)
# What is read as text, and what of it is one sign after the other.
TEXT = re.compile(
    r"<(script|style|pre|code|svg|title|textarea)\b.*?</\1>|<[^>]*>|[^<]+", re.S
)
SIGNS = "[=·×/+−≤≥≈≠⊙→]"
TOGETHER = re.compile(
    rf"\([^(){page_words.HAN}]{{1,30}}\)|(?<=[\w)\]]) {SIGNS} (?=[\w(√−])"
    r"|(?<=\d) (?=[%°])"
)
UNTRANSLATED = "这一页还没有译成中文，下面是英文原文。"
# Formulas are signs, code is code, tables of the prose have their catalogue (a
# table of terms has English ones), and the way to the English page is English.
# So is what the bank says in English beside the Chinese.
AS_IT_IS = re.compile(
    r'(<mjx-container.*?</mjx-container>|<table class="table">.*?</table>'
    r'|<a [^>]*hreflang="en".*?</a>'
    r'|<code class="docutils literal notranslate">.*?</code>'
    r'|<(?:div|span) lang="en".*?(?=<(?:div|span) lang="zh-CN"))',
    re.S,
)


def is_chinese(app: Sphinx) -> bool:
    """Tell which edition is built."""
    return (app.config.language or "").startswith("zh")


def translated(page: str) -> bool:
    """Tell if a page has a catalogue: it is translated whole or not at all."""
    return (CATALOGUES / f"{page}.po").exists()


def words(page: str) -> dict[str, str]:
    """Read what a page says beside its prose.

    An entry with a context is of that page alone, before one for all pages.
    """
    found: dict[str, str] = {}
    own: dict[str, str] = {}
    for path in (WORDS, FRAME):
        for entry in _entries(path):
            if entry.context == page:
                own[entry.id] = entry.string
            elif not entry.context:
                found[entry.id] = entry.string
    return sections() | found | own


@cache
def sections() -> dict[str, str]:
    """Read what the sections of the pages are called, and all else they say.

    A question says in which section its answer is taught.
    """
    return dict(
        page_words.alike(written(entry.id), written(entry.string))
        for path in sorted(CATALOGUES.rglob("*.po"), reverse=True)
        if path not in (WORDS, FRAME)
        for entry in _entries(path)
        # As a page writes it, and as a source does.
        for written in (escape, str)
    )


@cache
def _entries(path: Path) -> list[Message]:
    with path.open("rb") as file:
        return [entry for entry in read_po(file) if entry.id]


def collect(app: Sphinx, tree: nodes.document) -> None:
    """Note the messages of a page, as Sphinx will look them up.

    Sphinx reads each translated title as a page of its own, and MyST then takes
    it for all there is to link to: the page's own titles are noted again.
    """
    if slugs := getattr(tree, "myst_slugs", None):
        app.env.metadata[app.env.docname]["myst_slugs"] = slugs
    found = dict.fromkeys(text for _, text in extract_messages(tree) if text)
    found |= app.env.temp_data.get(SAID, {})
    found |= dict.fromkeys(node.astext() for node in blocks(tree))
    if not hasattr(app.env, "messages"):
        app.env.messages = {}
    app.env.messages[app.env.docname] = list(found)


def blocks(tree: nodes.document) -> list[nodes.Element]:
    """List the blocks that Sphinx translates not at all, or not well.

    Displayed formulas, of which it makes a paragraph of two colons, and printed
    text, as of a report.
    """
    printed = tree.findall(nodes.literal_block)
    texts = [node for node in printed if node.get("language") == "text"]
    return [*tree.findall(nodes.math_block), *texts]


class Blocks(SphinxTransform):
    """Says the words of displayed formulas and printed texts in Chinese."""

    default_priority = i18n.Locale.default_priority - 1

    def apply(self, **kwargs: Any) -> None:
        """Put what the catalogue has for a block in its place."""
        page = self.env.docname
        if not is_chinese(self.app) or not translated(page):
            return
        said = messages(CATALOGUES / f"{page}.po")
        for node in blocks(self.document):
            if spelt := said.get(node.astext()):
                node.rawsource = spelt
                node.children = [nodes.Text(spelt)]


def publish(app: Sphinx, source: str, *place: Any) -> nodes.Element:
    """Parse a translation as Sphinx does: ``1. A title`` is no list of one.

    What is stressed and has no Chinese character is for italics, not for dots.
    """
    parsed = PUBLISH(app, NUMBERED.sub(r"\1\.", source), *place)
    for stressed in parsed.findall(nodes.emphasis):
        if not CHINESE.search(stressed.astext()):
            stressed["classes"].append("latin")
    return parsed


def say(env: BuildEnvironment, text: str) -> str:
    """Say what a directive makes in the language of the edition.

    The text is noted as a message of the page that is read.
    """
    env.temp_data.setdefault(SAID, {})[text] = None
    if not is_chinese(env.app):
        return text
    return messages(CATALOGUES / f"{env.docname}.po").get(text, text)


def messages(path: Path) -> dict[str, str]:
    """Read what a catalogue translates; a draft is no translation."""
    if not path.exists():
        return {}
    return {
        entry.id: entry.string
        for entry in _entries(path)
        if entry.string and not entry.fuzzy
    }


def section(title: str) -> str:
    """Say the title of a section, of any page."""
    table = sections()
    return page_words.said(title, lambda words: table.get(words, words))


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Forget the messages of a page that is read again."""
    getattr(env, "messages", {}).pop(page, None)


def merge(
    app: Sphinx, env: BuildEnvironment, pages: set[str], other: BuildEnvironment
) -> None:
    """Take over what another process has read."""
    env.messages = getattr(env, "messages", {}) | {
        page: other.messages[page] for page in pages if page in other.messages
    }


def write_messages(app: Sphinx, env: BuildEnvironment) -> None:
    """Leave the messages for tools/translations.py."""
    if app.builder.name == "html" and not is_chinese(app):
        path = Path(app.outdir).parent / MESSAGES
        text = json.dumps(env.messages, ensure_ascii=False, indent=1)
        path.write_text(text, encoding="utf-8")


def outdated(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Ask for pages anew that were written before a table of words changed.

    What is on such a page is Chinese already, and is found in no table. Pages
    name sections of others, so that each catalogue is such a table.
    """
    if app.builder.name != "html" or not is_chinese(app):
        return []
    return written_before(app, env, (*CATALOGUES.rglob("*.po"), REPORTS))


def add_template(app: Sphinx, config: Config) -> None:
    """Let the theme find the switch between the languages."""
    config.templates_path.append(str(Path(__file__).parent / "templates"))


def switch(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Lead to the same page in the other language; say if it is English."""
    if doctree is None and pagename != "search":
        return
    up = "../" * pagename.count("/")
    if is_chinese(app):
        context["other_language"] = {
            "name": "English",
            "code": "en",
            "title": "This page in English",
            "url": f"{up}../{pagename}.html",
        }
        if doctree is not None and not translated(pagename):
            note = f'<p class="untranslated">{UNTRANSLATED}</p>'
            context["body"] = note + context["body"]
        codes = {"en": f"{up}../", "zh-CN": up}
    elif in_english_alone(pagename):
        context["other_language"] = {
            "name": "中文",
            "code": "zh-CN",
            "title": "这一页只有英文；去中文版的首页",
            "url": f"{up}zh/{app.config.root_doc}.html",
        }
        return
    else:
        context["other_language"] = {
            "name": "中文",
            "code": "zh-CN",
            "title": "这一页的中文版",
            "url": f"{up}zh/{pagename}.html",
        }
        codes = {"en": up, "zh-CN": f"{up}zh/"}
    context["metatags"] = context.get("metatags", "") + "".join(
        f'<link rel="alternate" hreflang="{code}" href="{to}{pagename}.html">\n'
        for code, to in codes.items()
    )


def in_english_alone(page: str) -> bool:
    """Tell if the Chinese edition leaves a page out: the API's reference."""
    return page == "book/api" or page.startswith("api/")


def in_page(page: str, table: dict[str, str]) -> str:
    """Say in Chinese what a page says beside its prose."""
    pieces = AS_IT_IS.split(page)
    pieces[::2] = (
        page_words.in_html(piece, lambda word: table.get(word, word))
        for piece in pieces[::2]
    )
    return together(BETWEEN_SIGNS.sub(_on_one_line, "".join(pieces)))


def together(page: str) -> str:
    """Keep a sum or a tuple of a text on one line: Chinese breaks anywhere.

    Example:
        >>> together("<p>2 · 3 = 6</p>")
        '<p>2\\xa0·\\xa03\\xa0=\\xa06</p>'
    """
    return TEXT.sub(
        lambda found: (
            found[0]
            if found[0].startswith("<")
            else TOGETHER.sub(
                lambda short: short[0].replace(" ", "\N{NO-BREAK SPACE}"),
                found[0],
            )
        ),
        page,
    )


def _on_one_line(found: re.Match) -> str:
    before, formula, after = found.groups()
    if not (before or after):
        return formula
    return f'<span class="unbroken">{before}{formula}{after}</span>'


def translate_pages(app: Sphinx, exception: Exception | None) -> None:
    """Apply the table to the pages that were written."""
    if exception or app.builder.name != "html" or not is_chinese(app):
        return
    for path in _written(app):
        table = words(path.relative_to(app.outdir).with_suffix("").as_posix())
        old = path.read_text(encoding="utf-8")
        new = in_page(old, table)
        if new != old:
            path.write_text(new, encoding="utf-8")


def _written(app: Sphinx) -> Iterable[Path]:
    out = Path(app.outdir)
    return sorted([*out.glob("*.html"), *(out / "book").rglob("*.html")])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.add_transform(Blocks)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", write_messages)
    app.connect("env-updated", outdated)
    app.connect("config-inited", add_template)
    app.connect("html-page-context", switch)
    i18n.publish_msgstr = publish
    # Before the index of the search is made of the pages.
    app.connect("build-finished", translate_pages, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
