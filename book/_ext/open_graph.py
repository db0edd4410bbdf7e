"""What stands beside a link to a page: its title, and what it is about.

Search engines read ``description``, chats and forums Open Graph (ogp.me). No
page has a picture of its own, so none is named.
"""

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

# What a preview shows of it; the rest is cut off wherever that falls.
LONGEST = 200
SENTENCE = re.compile(r"(?<=[.?!:。？！：])\s+")
# A paragraph in one of these is no beginning of a text.
ASIDE = (nodes.Admonition, nodes.list_item, nodes.table, nodes.sidebar)


def pieces(doctree: nodes.document) -> list[str]:
    """Take what a chapter promises, or else a page's first paragraph apart."""
    for box in doctree.findall(nodes.Admonition):
        if "tip" in box["classes"] and box.next_node(nodes.list_item):
            title = box.next_node(nodes.title).astext()
            first, *rest = [i.astext() for i in box.findall(nodes.list_item)]
            return [f"{title} {first}", *rest]
    for paragraph in doctree.findall(nodes.paragraph):
        above = paragraph.parent
        while above and not isinstance(above, ASIDE):
            above = above.parent
        if not above and "reading-time" not in paragraph["classes"]:
            return SENTENCE.split(paragraph.astext())
    return []


def description(doctree: nodes.document) -> str:
    """Say in a line what a page is about; empty if it has no text."""
    first, *rest = [" ".join(each.split()) for each in pieces(doctree)] or [""]
    for piece in rest:
        if len(first) + len(piece) >= LONGEST:
            break
        first = f"{first} {piece}"
    if len(first) > LONGEST:
        return first[:LONGEST].rpartition(" ")[0].rstrip(",;:") + " …"
    return re.sub(r"[;:]$", ".", first)


def tags(title: str, text: str, book: str, address: str) -> str:
    """Write the tags; ``address`` is where the page stands, or empty."""
    told = {
        "og:type": "article",
        "og:title": title,
        "og:site_name": book,
        "og:description": text,
        "og:url": address,
    }
    lines = [
        f'<meta property="{name}" content="{escape(value)}">\n'
        for name, value in told.items()
        if value
    ]
    if text:
        lines.append(f'<meta name="description" content="{escape(text)}">\n')
    return "".join(lines)


def add_tags(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Put the tags into the head of a page."""
    if doctree is not None:
        title = app.env.titles[pagename].astext()
        address = context.get("pageurl") or ""
        found = tags(
            title, description(doctree), app.config.html_title, address
        )
        context["metatags"] = context.get("metatags", "") + found


def tell_root(app: Sphinx, exception: Exception | None) -> None:
    """Put the landing page's tags into the one that leads to it.

    The book's own address is what is shared most.
    """
    if exception or app.builder.format != "html":
        return
    root, book = app.config.root_doc, app.config.html_title
    text = description(app.env.get_doctree(root))
    found = tags(book, text, book, app.config.html_baseurl)
    path = Path(app.outdir) / "index.html"
    page = path.read_text(encoding="utf-8")
    page = page.replace("</title>\n", f"</title>\n{found}", 1)
    path.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("html-page-context", add_tags)
    app.connect("build-finished", tell_root)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
