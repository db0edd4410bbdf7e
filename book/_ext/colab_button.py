"""A button on each chapter that opens it in Colab.

Only a book with a public home has buttons: ``make book REPO=owner/name``, or
the address in ``_config.yml``. A button that leads nowhere is worse than none.
"""

import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

# A book is built where nothing of the course is installed.
sys.path.append(str(Path(__file__).parents[2] / "tools"))

import colab

GITHUB = "https://github.com/"


def find_home(app: Sphinx, config: Config) -> None:
    """Set ``public_home`` to owner/name; leave it empty if there is none.

    Raises:
        ValueError: what is named is not owner/name.
    """
    url = config.html_theme_options.get("repository_url", "")
    repo = os.environ.get("REPO") or url.removeprefix(GITHUB).rstrip("/")
    config.public_home = colab.named(repo) if repo else ""


def add_button(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Put the button among those at the head of a notebook's page."""
    home = app.config.public_home
    source = Path(app.env.doc2path(pagename))
    if not home or source.suffix != ".ipynb":
        return
    context["header_buttons"].append(
        {
            "type": "link",
            "text": "Colab",
            "tooltip": "Run this chapter in Colab",
            "url": colab.address(home, pagename.removeprefix("book/")),
        }
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    # Pages are written anew when it changes.
    app.add_config_value("public_home", "", "html")
    app.connect("config-inited", find_home)
    # The theme makes the list of buttons at 500.
    app.connect("html-page-context", add_button, priority=501)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
