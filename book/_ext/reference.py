"""The API reference: a page for each part of the package, and links to it.

sphinx-autoapi reads the package as text, so that the book needs no torch. A
name stands once, where it is imported from; the chapters' listings link there.
"""

import re
import sys
from html import escape
from pathlib import Path

from astroid.nodes import If
from autoapi._astroid_utils import is_local_import_from
from autoapi._parser import Parser
from docutils import nodes
from jinja2 import Environment
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[2]
# A book is built where the package is not installed.
sys.path.append(str(ROOT))

from companion import CHAPTERS  # noqa: E402

DATA = "batches codecs copying corpora grammar phrasebook subwords vocabulary"
PAGES = {
    f"companion.{part}"
    for part in (
        *CHAPTERS,
        *(
            "contracts",
            "contracts.adapters",
            "costs",
            "figures",
            "figures.live",
            "interview",
            "models",
        ),
        *(f"data.{part}" for part in DATA.split()),
    )
}
# The caption of a listing, as companion/figures/kit/listing.py writes it.
CAPTION = re.compile(r"<figcaption><code>(companion\.[\w., ]+)</code>")
# autoapi writes types by their full names, and shapes without quotes.
SHAPED = re.compile(r"jaxtyping\.(\w+)\[torch\.Tensor, ([^\]]+)\]")
MODULE = re.compile(
    r"\b(?:torch\.(?:nn\.)?|collections\.abc\.|pathlib\.)(?=[A-Z])"
)
# A line of a module's docstring that says what a word means.
LEGEND = re.compile(r"^ *(?P<word>\S+(?:[ ,]+\S+)*?) {2,}(?P<meaning>\S.*)$")


def ignore(app: Sphinx, config: Config) -> None:
    """Leave out the contracts' files of a chapter: none has a page."""
    config.autoapi_ignore = [
        *config.autoapi_ignore,
        *(f"*/contracts/{word}/*" for word in CHAPTERS),
    ]


def skip(app: Sphinx, kind: str, name: str, thing, skipped: bool, options):
    """Hide all modules but those with a page."""
    return name not in PAGES if kind in ("module", "package") else skipped


def lazy_imports(parser: Parser, node: If) -> list[dict]:
    """Read what a package imports for type checkers: its names come later."""
    if node.test.as_string() != "TYPE_CHECKING":
        return []
    return [
        name
        for line in node.body
        if is_local_import_from(line, "companion")
        for name in parser._parse_local_import_from(line)
    ]


def typed(signature: str) -> str:
    """Write the types of a signature as the code has them."""
    return MODULE.sub("", SHAPED.sub(r'\1[Tensor, "\2"]', signature))


def described(docstring: str) -> str:
    """Turn a module's docstring into what Sphinx reads: legends and code."""
    lines: list[str] = []
    width = 0
    for line in docstring.splitlines():
        meaning = LEGEND.match(line)
        if meaning:
            if not width and lines and lines[-1]:
                lines.append("")
            width = meaning.start("meaning")
            lines.append(f":{meaning['word']}: {meaning['meaning']}")
        elif width and line.startswith(" " * width):
            lines.append(f"   {line.strip()}")
        else:
            if width and line:
                lines.append("")
            width = 0
            if line.startswith("    ") and not (lines and lines[-1]):
                lines += ["::", "", line]
            else:
                lines.append(line)
    return "\n".join(lines)


def add_filters(jinja: Environment) -> None:
    """Give the templates what they write types and docstrings with."""
    jinja.filters |= {"typed": typed, "described": described}


def entry(env: BuildEnvironment, name: str) -> ObjectEntry | None:
    """Return what describes a name: its entry, its class or its part's page."""
    objects = env.get_domain("py").objects
    while name:
        found = objects.get(env.autoapi_public_names.get(name, name))
        if found:
            return found
        name = name.rpartition(".")[0]
    return None


def collect(app: Sphinx, env: BuildEnvironment) -> None:
    """Note where each name is defined that a package shows as its own."""
    env.autoapi_public_names = {
        thing.obj["original_path"]: thing.id
        for thing in env.autoapi_all_objects.values()
        if "original_path" in thing.obj and thing.display
    }


def resolve(app: Sphinx, env: BuildEnvironment, node, content):
    """Link a type to its entry; one of another library stays plain."""
    if node.get("refdomain") != "py":
        return None
    found = entry(env, node["reftarget"])
    if found is None or found.objtype == "module":
        return content
    address = address_of(app, node["refdoc"], found)
    return nodes.reference("", "", content, refuri=address)


def address_of(app: Sphinx, document: str, found: ObjectEntry) -> str:
    """Return the address of an entry, as seen from a document."""
    page = app.builder.get_relative_uri(document, found.docname)
    return f"{page}#{found.node_id}"


def link_listings(app: Sphinx, tree: nodes.document, document: str) -> None:
    """Link the names above each listing to the page that describes them."""

    def linked(name: str) -> str:
        found = entry(app.env, name)
        code = f"<code>{escape(name)}</code>"
        if found is None:
            return code
        return f'<a href="{address_of(app, document, found)}">{code}</a>'

    def caption(match: re.Match) -> str:
        names = match[1].split(", ")
        return f"<figcaption>{', '.join(map(linked, names))}"

    for node in tree.findall(nodes.raw):
        if "<figcaption><code>companion." in node.astext():
            text = CAPTION.sub(caption, node.astext())
            node.children = [nodes.Text(text)]


def setup(app: Sphinx) -> dict:
    """Register the pages and the links."""
    app.setup_extension("sphinx.ext.napoleon")
    app.setup_extension("autoapi.extension")
    Parser.parse_if = lazy_imports
    app.config.autoapi_prepare_jinja_env = add_filters
    app.connect("config-inited", ignore)
    app.connect("autoapi-skip-member", skip)
    app.connect("env-check-consistency", collect)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_listings)
    return {"parallel_read_safe": True}
