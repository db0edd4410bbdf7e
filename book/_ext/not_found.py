"""The page for an address that leads nowhere: 404.html.

A server shows it at any depth, so that no address in it can be relative, and it
brings its own styles. Where the book stands is known from ``html_baseurl``, or
from its public home on GitHub Pages; else it is the root of its server.
"""

from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import frame
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Not here · {book}</title>
<link rel="icon" href="{base}_static/{icon}">
<style>
html {{ {light} color-scheme: light; }}
@media (prefers-color-scheme: dark) {{ html {{ {dark} color-scheme: dark; }} }}
body {{ max-width: 42rem; margin: 3rem auto; padding: 0 1.25rem;
  background: var(--paper); color: var(--ink);
  font: 1.1rem/1.6 Georgia, "Times New Roman", serif; }}
a {{ color: var(--blue); }}
a:focus-visible {{ outline: 2px solid var(--blue); outline-offset: 2px; }}
li {{ margin: 0.3rem 0; }}
</style>
</head>
<body>
<main>
<h1>This page is not here <span lang="zh-CN">页面不存在</span></h1>
<p>The address may be that of an older edition, or have a slip of the pen.
These pages exist, and <a href="{base}search.html">the search</a> looks through
all of them:</p>
<ul>
{pages}</ul>
</main>
</body>
</html>
"""


def base(address: str, home: str) -> str:
    """Find the path at which a server has the book; it ends with a slash.

    Args:
        address: Where the book stands, or empty.
        home: Its public home, owner/name, or empty.
    """
    if address:
        return urlsplit(address).path.rstrip("/") + "/"
    owner, _, name = home.partition("/")
    own = not name or name.lower() == f"{owner}.github.io".lower()
    return "/" if own else f"/{name}/"


def pages(env: BuildEnvironment) -> dict[str, str]:
    """List the pages a reader may have meant, with their titles."""
    root = env.config.root_doc
    listed = [root, *env.toctree_includes.get(root, [])]
    return {name: env.titles[name].astext() for name in listed}


def page(app: Sphinx) -> str:
    """Write the page."""
    light, dark = frame.colours()
    path = base(app.config.html_baseurl, app.config.public_home)
    listed = "".join(
        f'<li><a href="{escape(path)}{name}.html">{escape(title)}</a></li>\n'
        for name, title in pages(app.env).items()
    )
    return PAGE.format(
        book=escape(app.config.html_title),
        base=escape(path),
        icon=Path(app.config.html_favicon).name,
        light=light,
        dark=dark,
        pages=listed,
    )


def write(app: Sphinx, exception: Exception | None) -> None:
    """Store the page where a server looks for it."""
    if exception is None and app.builder.format == "html":
        path = Path(app.outdir) / "404.html"
        path.write_text(page(app), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
