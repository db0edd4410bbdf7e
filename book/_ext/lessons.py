"""Lessons and labs: what folds, how long a page takes, where old links lead.

A chapter is a lesson, and, where there is one, a lab of the same name in the
folder ``labs``. In a notebook nothing is hidden; only a page folds.
"""

import ast
import json
import math
import re
import sys
import tomllib
from html import escape, unescape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

# A book is built where the package is not installed.
sys.path.append(str(Path(__file__).parents[2]))

from companion import CHAPTERS
from companion.interview.model.bank import retired

MOVED = Path(__file__).parents[1] / "moved.toml"
QUESTION = re.compile(r'<li class="question" id="([\w-]+)"')
LISTING = re.compile(r'<div class="highlight">.*?</div>', re.DOTALL)
CHAPTER = re.compile(r"book/(labs/)?\d\d_\w+")
MINUTES = re.compile(r"(\d+) (?:minutes|分钟)")
# A reader of technical prose, an unhurried one. Seconds for what is no word.
WORDS_A_MINUTE = 180
# So many characters the Chinese pages have for a word of the English ones.
CHARACTERS_A_WORD = 1.9
HAN = re.compile("[\u3400-\u9fff]")
# Lines that prepare an assertion; more are an experiment.
SET_UP = 6
SECONDS = {"line of code": 4, "formula": 12, "figure": 60}
WHOLE = {"tag_solution", "tag_hide-cell"}
HIDDEN = WHOLE | {"tag_hide-input"}
LOOKED_UP = re.compile("companion-(source|quiz)")
# A section that moved is looked for where it went.
LEAD = """<script>
const moved = {moved};
const led = () => {{ const id = decodeURIComponent(location.hash.slice(1));
  if (id in moved && !document.getElementById(id))
    location.replace(moved[id].includes("#") ? moved[id]
      : (document.getElementById(moved[id]) ? "" : "{lab}") + "#" + moved[id]);
}};
addEventListener("DOMContentLoaded", led);
addEventListener("hashchange", led);
</script>
"""
# With scripts the section of the address is kept.
OLD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="robots" content="noindex">
<title>This chapter has another number now</title>
<script>location.replace("{new}.html" + location.hash);</script>
<meta http-equiv="refresh" content="1; url={new}.html">
</head>
<body><p>This chapter is now <a href="{new}.html">{new}</a>.</p></body>
</html>
"""


def checks(code: str) -> int:
    """Count what a cell asserts, if asserting is all that a reader sees of it.

    Args:
        code: The source of a cell that prints nothing.

    Returns:
        The number of assertions; 0 if there are none, or if the cell does more
        than ``SET_UP`` lines of something else, which a reader should see.

    Example:
        >>> checks("n = 2\\nassert n > 1")
        1
        >>> checks("def double(x): return 2 * x\\nassert double(1) == 2")
        0
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:  # A magic command of a notebook.
        return 0
    every = list(ast.walk(tree))
    if any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in every):
        return 0
    if sum(map(_work, tree.body)) > SET_UP:
        return 0
    return _asserted(tree)


def _asserted(tree: ast.Module) -> int:
    every = list(ast.walk(tree))
    calls = [n.func for n in every if isinstance(n, ast.Call)]
    called = [getattr(f, "attr", getattr(f, "id", "")) for f in calls]
    asserts = sum(isinstance(n, ast.Assert) for n in every)
    return asserts + called.count("assert_close")


def _work(node: ast.stmt) -> int:
    """Count the lines of a statement that do something else than assert."""
    if isinstance(node, ast.Assert) or "assert_close" in ast.dump(node)[:200]:
        return 0
    lines = node.end_lineno - node.lineno + 1
    inner = getattr(node, "body", [])
    within = sum(each.end_lineno - each.lineno + 1 for each in inner)
    return lines - within + sum(map(_work, inner))


def signature(code: str) -> str:
    """Write what a listing defines, without annotations, in one line.

    Example:
        >>> signature("def twice(x: int, *, by: int = 2) -> int:\\n  ...")
        'twice(x, *, by=2)'
    """
    found = []
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef):
            found.append(f"class {node.name}")
        elif isinstance(node, ast.FunctionDef):
            for each in ast.walk(node.args):
                if isinstance(each, ast.arg):
                    each.annotation = None
            found.append(f"{node.name}({ast.unparse(node.args)})")
    return ", ".join(found)


def _part(cell: nodes.Element, name: str) -> nodes.Element | None:
    found = (n for n in cell.children if name in n.get("classes", ()))
    return next(found, None)


def _told(count: int) -> str:
    return f"✓ {count} check{'s' * (count > 1)}"


def name_checks(app: Sphinx, tree: nodes.document) -> None:
    """Say what a cell that is folded by its tag checks, if it shows nothing."""
    for cell in tree.findall(nodes.container):
        source, output = (_part(cell, f"cell_{x}put") for x in ("in", "out"))
        if "tag_hide-cell" not in cell["classes"] or source is None or output:
            continue
        count = _asserted(ast.parse(source.astext()))
        if count and "tag_solution" not in cell["classes"]:
            cell["prompt_show"] = _told(count)
            cell["prompt_hide"] = "Hide the checks"


def fold_cells(app: Sphinx, tree: nodes.document, document: str) -> None:
    """Show a cell that only asserts as a line, and a listing by its name."""
    if app.builder.format != "html":
        return
    for cell in list(tree.findall(nodes.container)):
        source = _part(cell, "cell_input")
        if "cell" not in cell["classes"] or source is None:
            continue
        if (WHOLE | {"tag_exercise"}) & {*cell["classes"]}:
            continue
        output = _part(cell, "cell_output")
        count = checks(source.astext()) if output is None else 0
        if count:
            line = _told(count)
            opens = f'<details class="checks"><summary>{line}</summary>'
            at = cell.index(source)
            cell.insert(at, nodes.raw("", opens, format="html"))
            cell.insert(at + 2, nodes.raw("", "</details>", format="html"))
        elif source.astext().startswith("figures.source("):
            cell.remove(source)
    for node in tree.findall(nodes.raw):
        if 'class="companion companion-source"' in node.astext():
            node.children = [nodes.Text(LISTING.sub(_fold, node.astext(), 1))]


def _fold(match: re.Match) -> str:
    code = unescape(re.sub("<[^>]+>", "", match[0]))
    return (
        f'<details class="listing"><summary><code>{escape(signature(code))}'
        f"</code></summary>{match[0]}</details>"
    )


def length(text: str) -> float:
    """Count the words of a text; a word of Chinese is 1.9 characters.

    Example:
        >>> round(length("A query 查询向量 asks"), 1)
        5.1
    """
    rest, characters = HAN.subn(" ", text)
    return len(rest.split()) + characters / CHARACTERS_A_WORD


def minutes(tree: nodes.document) -> tuple[int, int]:
    """Estimate how long a page takes: to read, and its exercises.

    Prose is counted in words, and visible code in lines; what is folded, and
    the questions at the end, is not. Exercises say their minutes themselves.
    """
    words = formulas = lines = figures = exercises = 0
    for node in tree.findall():
        if isinstance(node, nodes.paragraph | nodes.title):
            words += length(node.astext())
        if isinstance(node, nodes.title):
            found = MINUTES.search(node.astext())
            exercises += int(found[1]) if found else 0
        formulas += isinstance(node, nodes.math_block)
        if isinstance(node, nodes.container) and "cell" in node["classes"]:
            source = _part(node, "cell_input")
            output = _part(node, "cell_output")
            code = source.astext() if source is not None else ""
            folded = output is None and checks(code)
            if not folded and not HIDDEN & {*node["classes"]}:
                lines += len(code.splitlines())
            shown = output.astext() if output is not None else ""
            figures += "<figure" in shown and not LOOKED_UP.search(shown)
    seconds = (
        60 * words / WORDS_A_MINUTE
        + SECONDS["formula"] * formulas
        + SECONDS["line of code"] * lines
        + SECONDS["figure"] * figures
    )
    return 5 * math.ceil(seconds / 300), exercises


def tell_time(app: Sphinx, tree: nodes.document) -> None:
    """Say below the title of a chapter's page how long it takes."""
    if not CHAPTER.fullmatch(app.env.docname):
        return
    reading, exercises = minutes(tree)
    more = f", and {exercises} more for the exercises" if exercises else ""
    text = f"About {reading} minutes to read{more}."
    line = nodes.paragraph("", text, classes=["reading-time"])
    title = next(tree.findall(nodes.title))
    title.parent.insert(title.parent.index(title) + 1, line)


def anchors(env: BuildEnvironment, document: str) -> set[str]:
    """Collect what links may lead to on a page: sections and questions."""
    tree = env.get_doctree(document)
    ids = {i for node in tree.findall(nodes.section) for i in node["ids"]}
    for node in tree.findall(nodes.raw):
        ids |= {*QUESTION.findall(node.astext())}
    return ids


def gone(env: BuildEnvironment, page: str) -> dict[str, str]:
    """Lead from a question the bank no longer has to the one in its place."""
    found = {}
    for old, new in retired().items():
        if not page.endswith(f"_{old.partition('-')[0]}"):
            continue
        word = new.partition("-")[0]
        name = f"{CHAPTERS.index(word) + 1:02}_{word}"
        lab = f"labs/{name}"
        where = lab if f"book/{lab}" in env.found_docs else name
        found[old] = f"{where}.html#{new}"
    return found


def lead_on(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree
) -> None:
    """Let addresses of sections that moved to another page lead there."""
    lab = pagename.replace("book/", "book/labs/")
    if doctree is None or lab == pagename or lab not in app.env.found_docs:
        return
    renamed = tomllib.loads(MOVED.read_text(encoding="utf-8"))
    moved = {i: i for i in anchors(app.env, lab)}
    moved |= renamed.get(pagename.removeprefix("book/"), {})
    moved |= gone(app.env, pagename)
    for here in anchors(app.env, pagename):
        moved.pop(here, None)
    script = LEAD.format(
        moved=json.dumps(dict(sorted(moved.items()))),
        lab=app.builder.get_relative_uri(pagename, lab),
    )
    context["metatags"] = context.get("metatags", "") + script


def write_old_pages(app: Sphinx, exception: Exception | None) -> None:
    """Leave a page at each address that a chapter had under another number."""
    if exception is not None or app.builder.format != "html":
        return
    pages = tomllib.loads(MOVED.read_text(encoding="utf-8")).get("pages", {})
    for old, new in pages.items():
        for folder in ("book", "book/labs"):
            path = Path(app.outdir) / folder / f"{old}.html"
            if f"{folder}/{new}" in app.env.found_docs:
                path.write_text(OLD.format(new=new), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("doctree-read", tell_time)
    app.connect("doctree-read", name_checks)
    # After the listings have got their links.
    app.connect("doctree-resolved", fold_cells, priority=700)
    app.connect("html-page-context", lead_on)
    app.connect("build-finished", write_old_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
