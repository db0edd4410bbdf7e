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
from pathlib import Path
from typing import Any

import page_words
from babel.messages.catalog import Message
from babel.messages.pofile import read_po
from docutils import nodes
from frame import written_before
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import extract_messages

BOOK = Path(__file__).parents[1]
CATALOGUES = BOOK / "locale" / "zh_CN" / "LC_MESSAGES"
# What outputs say, and what is around every page.
WORDS, FRAME = CATALOGUES / "words.po", CATALOGUES / "frame.po"
# What reports on contracts say: page_words asks for it.
REPORTS = page_words.PACKAGE.with_name("zh.toml")
# Where the English edition leaves what there is to translate.
MESSAGES = "messages.json"
UNTRANSLATED = "这一页还没有译成中文，下面是英文原文。"
# Formulas are signs, and code stays.
BODY = re.compile(r"(<mjx-container.*?</mjx-container>)", re.S)


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
    return found | own


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
    if not hasattr(app.env, "messages"):
        app.env.messages = {}
    app.env.messages[app.env.docname] = list(found)


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

    What is on such a page is Chinese already, and is found in no table.
    """
    if app.builder.name != "html" or not is_chinese(app):
        return []
    return written_before(app, env, (WORDS, FRAME, REPORTS))


def frame(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Lead from a Chinese page to the English one, and say if it is English."""
    if doctree is None or not is_chinese(app):
        return
    english = "../" * (pagename.count("/") + 1) + f"{pagename}.html"
    context["metatags"] = context.get("metatags", "") + (
        f'<link rel="alternate" hreflang="en" href="{english}">\n'
    )
    context["header_buttons"].append(
        {
            "type": "link",
            "text": "In English",
            "tooltip": "This page in English",
            "url": english,
            "label": "language",
        }
    )
    if not translated(pagename):
        note = f'<p class="untranslated">{UNTRANSLATED}</p>'
        context["body"] = note + context["body"]


def in_page(page: str, table: dict[str, str]) -> str:
    """Say in Chinese what a page says beside its prose."""
    pieces = BODY.split(page)
    pieces[::2] = (
        page_words.in_html(piece, lambda word: table.get(word, word))
        for piece in pieces[::2]
    )
    return "".join(pieces)


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
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", write_messages)
    app.connect("env-updated", outdated)
    # The theme makes the list of buttons at 500.
    app.connect("html-page-context", frame, priority=502)
    # Before the index of the search is made of the pages.
    app.connect("build-finished", translate_pages, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
