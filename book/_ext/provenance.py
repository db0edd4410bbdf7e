"""At the foot of each page: what proved it, and how to cite it."""

import tomllib
from html import escape
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from frame import written_before
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[2]
PROVED = ROOT / "book" / "proved.toml"
CITATION = ROOT / "CITATION.cff"


def proved(page: str) -> str:
    """Say when, with what and on what the outputs of a page were stored.

    A page without code has no outputs; it is as old as the oldest chapter.
    """
    chapters = tomllib.loads(PROVED.read_text(encoding="utf-8"))
    name = page.removeprefix("book/")
    entry = chapters.get(name) or min(
        chapters.values(), key=lambda chapter: chapter["date"]
    )
    subject = "This chapter" if name in chapters else "Every chapter"
    versions = ", ".join(
        f"{part} {entry[part]}" for part in ("Python", "torch", "numpy")
    )
    when = "on" if name in chapters else "on or after"
    return (
        f"{subject} was last run, and its claims asserted, {when} "
        f'<time datetime="{entry["date"]}">{entry["date"]}</time> with '
        f"{escape(versions)} on {escape(entry['device'])}."
    )


def citation(title: str, address: str) -> tuple[str, str]:
    """Cite a page, as a line of text and as BibTeX."""
    work = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    author = " and ".join(person["name"] for person in work["authors"])
    chapters = tomllib.loads(PROVED.read_text(encoding="utf-8"))
    year = max(str(chapter["date"]) for chapter in chapters.values())[:4]
    fields = {
        "author": f"{{{author}}}",
        "title": work["title"],
        "note": f"{title}. Version {work['version']}",
        "year": year,
    } | ({"url": address} if address else {})
    lines = "".join(
        f"  {name} = {{{text}}},\n" for name, text in fields.items()
    )
    plain = (
        f"{author} ({year}). {title}. In {work['title']}, version "
        f"{work['version']}. {address}"
    )
    return plain.strip(), f"@misc{{transformer-course,\n{lines}}}"


def foot(page: str, title: str, address: str) -> str:
    """Make the foot as HTML; without scripts it works too."""
    plain, bibtex = citation(title, address)
    return (
        f'<footer class="provenance"><p>{proved(page)}</p>'
        "<details><summary>Cite this page</summary>"
        f"<p>{escape(plain)}</p>"
        f'<pre tabindex="0" aria-label="BibTeX">{escape(bibtex)}</pre>'
        "</details></footer>\n"
    )


def add_foot(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Put it below the text."""
    if doctree is None:
        return
    title = app.env.titles[pagename].astext()
    context["body"] += foot(pagename, title, context.get("pageurl") or "")


def pages_older_than_their_foot(
    app: Sphinx, env: BuildEnvironment
) -> list[str]:
    """Ask for each page again that was written before what its foot tells.

    Sphinx writes a page anew when its text has changed. The foot is no part of
    the text, so that `make book` would otherwise keep the old dates.
    """
    if app.builder.format != "html":
        return []
    return written_before(app, env, (PROVED, CITATION))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("env-updated", pages_older_than_their_foot)
    app.connect("html-page-context", add_foot)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
