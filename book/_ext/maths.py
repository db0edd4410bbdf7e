"""Formulas, drawn when the book is built: a page needs no maths engine.

MathJax runs here, in a small V8, and writes each formula as SVG with MathML for
screen readers. So a page is lighter by the engine, nothing moves when a formula
appears, and a reader without scripts sees it too.
"""

import atexit
import json
import re
from collections import Counter
from functools import cache
from hashlib import md5
from importlib.metadata import distribution

from docutils import nodes
from py_mini_racer import MiniRacer
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import wrap_displaymath
from sphinx.writers.html5 import HTML5Translator

LOG = logging.getLogger(__name__)
HOME = "sphinx-mathjax-offline/static/mathjax"
PARTS = (
    "loader.js",
    "core.js",
    "adaptors/liteDOM.js",
    "input/tex.js",
    "output/svg.js",
    "output/svg/fonts/tex.js",
    "a11y/assistive-mml.js",
)
# Nothing is loaded later, and no page is looked for.
BEFORE = """
globalThis.global = globalThis;
globalThis.setTimeout = () => 0;
globalThis.MathJax = { startup: { typeset: false, ready() {} },
  loader: { load: [], ready() {}, failed(error) { throw error; } } };
0"""
AFTER = """
const { adaptors, handlers, input, output, a11y, mathjax } = MathJax._;
const pen = adaptors.liteAdaptor.liteAdaptor();
a11y["assistive-mml"].AssistiveMmlHandler(
  handlers.html_ts.RegisterHTMLHandler(pen));
const page = mathjax.mathjax.document("", {
  InputJax: new input.tex_ts.TeX({ packages: ["base", "ams"] }),
  OutputJax: new output.svg_ts.SVG({ fontCache: "none",
    font: new output.svg.fonts.tex_ts.TeXFont() }) });
const drawn = (tex, display) =>
  pen.outerHTML(page.convert(tex, { display }));
0"""
ERROR = 'data-mjx-error="'
FORMULA = re.compile(r"<mjx-container.*?</mjx-container>", re.DOTALL)
SIGN = re.compile(r'<path d="([^"]+)"([^>]*)></path>')


@cache
def engine() -> MiniRacer:
    """Start MathJax without a page."""
    wheel = distribution("sphinx-mathjax-offline")
    racer = MiniRacer()
    # Its thread cannot be waited for once Python ends: 3.13 waited for ever.
    atexit.register(racer.close)
    racer.eval(BEFORE)
    for part in PARTS:
        code = wheel.locate_file(f"{HOME}/{part}").read_text(encoding="utf-8")
        racer.eval(f"{code}\n;0")
    racer.eval(AFTER)
    return racer


@cache
def drawn(tex: str, display: bool) -> str:
    """Draw a formula as an element with SVG and MathML.

    Raises:
        ValueError: MathJax does not understand it.
    """
    html = engine().eval(f"drawn({json.dumps(tex)}, {json.dumps(display)})")
    if ERROR in html:
        reason = html.split(ERROR)[1].split('"')[0]
        raise ValueError(f"the formula {tex!r}: {reason}")
    # What MathJax notes about each sign, nobody reads; it weighs. So does
    # what is behind the decimal point of a thousandth of an em.
    html = re.sub(r' data-[a-z-]+="[^"]*"', "", html)
    return re.sub(r"(\d{3,})\.\d+", r"\1", html)


def put(page: HTML5Translator, node: nodes.Node, tag: str, tex: str) -> None:
    """Write the formula into the page; one that is wrong is a warning."""
    try:
        html = drawn(tex, tag == "div")
    except ValueError as error:
        LOG.warning(str(error), location=node)
        html = page.encode(tex)
    page.body.append(
        f"{page.starttag(node, tag, '', CLASS='math')}{html}</{tag}>"
    )
    raise nodes.SkipNode


def inline(page: HTML5Translator, node: nodes.math) -> None:
    """Write a formula into a line of text."""
    put(page, node, "span", node.astext())


def block(page: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    tex = node.astext()
    if not node["nowrap"]:
        tex = wrap_displaymath(tex, None, numbering=False)
    put(page, node, "div", tex)


def sign_once(
    app: Sphinx, name: str, template: str, context: dict, doctree: object
) -> None:
    """Draw a sign that formulas repeat once, where the page begins.

    A sign is called by its outline, so that pages can be bound together.
    """
    body = context.get("body", "")
    signs = [d for each in FORMULA.findall(body) for d, _ in SIGN.findall(each)]
    names = {
        d: f"sign-{md5(d.encode()).hexdigest()[:8]}"
        for d, number in Counter(signs).items()
        if number > 1
    }

    def used(sign: re.Match) -> str:
        if sign[1] not in names:
            return sign[0]
        return f'<use href="#{names[sign[1]]}"{sign[2]}></use>'

    if names:
        paths = "".join(f'<path id="{n}" d="{d}"/>' for d, n in names.items())
        signs = f'<svg class="signs" aria-hidden="true">{paths}</svg>'
        body = FORMULA.sub(lambda each: SIGN.sub(used, each[0]), body)
        context["body"] = signs + body


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.add_html_math_renderer("drawn", (inline, None), (block, None))
    app.connect("html-page-context", sign_once)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
