"""A function's source, coloured like the page's own code."""

import inspect
import textwrap
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import HERE, inline, read_style


def source(*things) -> Figure:
    """The source of functions and classes, as it stands in the package.

    The HTML carries the classes every Sphinx page has colours for; the colours
    it brings itself give way to those, and serve in notebooks.

    Raises:
        TypeError: nothing was given, or something that has no Python source.
    """
    if not things:
        raise TypeError("source: expected a function or a class, got nothing")
    code = "\n\n".join(_code(thing) for thing in things)
    names = ", ".join(f"{t.__module__}.{t.__qualname__}" for t in things)
    # Without a wrapper of its own: a page finds div.highlight > pre.
    marked = highlight(code, PythonLexer(), HtmlFormatter(wrapcode=False))
    html = inline(
        "source",
        body=marked,
        label=f"Source of {names}",
        caption=f"<code>{escape(names)}</code>",
        style=read_style(HERE / "listing.css"),
    )
    return Figure(html, code)


def _code(thing) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (TypeError, OSError) as problem:
        raise TypeError(
            "source: expected a function or a class written in Python, got "
            f"{thing!r}"
        ) from problem
