"""What the book's pages need from this machine alone.

The palette the figures use, and a name on folded solutions.
"""

import re
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]
# A book is built where the package is not installed.
sys.path.append(str(ROOT))

from companion.figures.kit.inline import BASE_STYLE  # noqa: E402
from companion.interview.web.page import QUIZ, script, style  # noqa: E402

FIGURES = ROOT / "companion" / "figures" / "kit" / "base.css"
# The folder's own address leads to the landing page. It names the icon, or a
# browser asks the server for one that is not there.
ROOT_PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<link rel="icon" href="_static/{icon}">
<meta http-equiv="refresh" content="0; url={home}.html">
</head>
<body><p><a href="{home}.html">{title}</a></p></body>
</html>
"""
# The two rules of FIGURES that set the colours: light first, then dark.
COLOURS = re.compile(r"\{([^{}]*--ink:[^{}]*)\}")
COLOUR = re.compile(r"--[a-z]+: *#[0-9a-f]{6};")


def colours() -> tuple[str, str]:
    """Take the colours of the figures, light and dark, as CSS.

    Raises:
        ExtensionError: the figures' style sheet has no light and dark rule.
    """
    rules = COLOURS.findall(FIGURES.read_text(encoding="utf-8"))
    if len(rules) != 2:
        raise ExtensionError(
            f"{FIGURES}: expected two rules that set --ink, one light and "
            f"one dark, got {len(rules)}"
        )
    light, dark = (" ".join(COLOUR.findall(rule)) for rule in rules)
    return light, dark


def palette() -> str:
    """Write the colours of the figures for the whole page."""
    light, dark = colours()
    return (
        f"html {{ {light} }}\n"
        f'html[data-theme="dark"] {{ {dark} }}\n'
        # Paper is white, whatever the screen was.
        "@media print { html[data-theme], html[data-theme] .bd-main .companion "
        f"{{ color-scheme: light; {light} }} }}\n"
    )


def add_assets(app: Sphinx) -> None:
    """Put the style sheets that are made where the pages look for them."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / "palette.css").write_text(palette(), encoding="utf-8")
    (static / "quiz.css").write_text(BASE_STYLE + style("quiz"), "utf-8")
    # A module from a file does not run from disk; this defines one name.
    code = f"'use strict';\n{script(*QUIZ)}return mount;"
    (static / "quiz.js").write_text(
        f"const quiz = (() => {{{code}}})();", "utf-8"
    )
    root = ROOT_PAGE.format(
        language=app.config.language.replace("_", "-"),
        title=escape(app.config.html_title),
        icon=Path(app.config.html_favicon).name,
        home=app.config.root_doc,
    )
    (Path(app.outdir) / "index.html").write_text(root, encoding="utf-8")


def mend_citations(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Docutils calls the works a list, which for a screen reader has no items.

    An entry has a role of its own, and a list may not have such children.
    """
    listed = '<div role="list" class="citation-list">'
    plain = '<div class="citation-list">'
    context["body"] = context.get("body", "").replace(listed, plain)


def name_solutions(app: Sphinx, doctree: nodes.document) -> None:
    """Say "solution" on a folded cell that is one."""
    for cell in doctree.findall(nodes.container):
        if "tag_solution" in cell["classes"]:
            cell["prompt_show"] = "Show a solution"
            cell["prompt_hide"] = "Hide the solution"


def style_once(
    app: Sphinx, name: str, template: str, context: dict, doctree: object
) -> None:
    """Keep the first of the style sheets that figures of a kind repeat."""
    seen = set()

    def first(match: re.Match) -> str:
        known = match[0] in seen
        seen.add(match[0])
        return "" if known else match[0]

    body = context.get("body", "")
    context["body"] = re.sub(r"<style>.*?</style>", first, body, flags=re.S)


def share_quiz(
    app: Sphinx, name: str, template: str, context: dict, doctree: object
) -> None:
    """Leave what each quiz repeats to files, which a browser fetches once.

    A notebook's quiz carries all it needs; so does a page's, if its notebook
    was run with another version of the script.
    """
    body = context.get("body", "")
    code = script(*QUIZ)
    if code not in body:
        return
    body = body.replace(BASE_STYLE, "").replace(style("quiz"), "")
    body = body.replace("<style></style>\n", "")
    context["body"] = body.replace(code, "const mount = quiz;")
    # After all other sheets, as if it stood in the page.
    app.add_css_file("quiz.css", priority=900)
    app.add_js_file("quiz.js", loading_method="defer")


def changed_assets(app: Sphinx, *_: object) -> list[str]:
    """Ask for a page again when only a style or a script has changed.

    Sphinx copies static files only when a page is written, so that otherwise
    `make book` after an edit in book/assets would show the old one.
    """
    static = Path(app.outdir) / "_static"
    for folder in app.config.html_static_path:
        source = Path(app.confdir) / folder
        for file in source.rglob("*"):
            copy = static / file.relative_to(source)
            if file.is_file() and not (
                copy.exists() and copy.stat().st_mtime >= file.stat().st_mtime
            ):
                return [app.config.root_doc]
    return []


def written_before(
    app: Sphinx, env: BuildEnvironment, files: Iterable[Path]
) -> list[str]:
    """List the pages that were written before one of some files changed.

    Sphinx writes a page anew when its own text has changed, and no sooner.
    """
    changed = max(file.stat().st_mtime for file in files)
    pages = {
        name: Path(app.outdir) / app.builder.get_target_uri(name)
        for name in env.found_docs
    }
    return [
        name
        for name, page in pages.items()
        if page.exists() and page.stat().st_mtime < changed
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("env-get-outdated", changed_assets)
    app.connect("builder-inited", add_assets)
    app.connect("doctree-read", name_solutions)
    app.connect("html-page-context", mend_citations)
    app.connect("html-page-context", style_once)
    app.connect("html-page-context", share_quiz)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
