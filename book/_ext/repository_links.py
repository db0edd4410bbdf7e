"""Links that need a public home: run a page, take it along, mend it, report it.

Only a book with a public home has them: ``make book REPO=owner/name``, or the
address in ``_config.yml``. A link that leads nowhere is worse than none.
"""

import os
import sys
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from chinese import is_chinese
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).parents[2]
# A book is built where nothing of the course is installed.
sys.path.append(str(ROOT / "tools"))

import colab  # noqa: E402

GITHUB = "https://github.com/"
# The form for it; the fields of the same names are filled in.
FORM = "mistake.yml"


def find_home(app: Sphinx, config: Config) -> None:
    """Set ``public_home`` to owner/name; leave it empty if there is none.

    Raises:
        ValueError: what is named is not owner/name.
    """
    url = config.html_theme_options.get("repository_url", "")
    repo = os.environ.get("REPO") or url.removeprefix(GITHUB).rstrip("/")
    config.public_home = colab.named(repo) if repo else ""


def source(page: str, path: Path) -> Path:
    """Find what one edits to change a page; the reference's is the package."""
    if not page.startswith("api/"):
        return path
    module = ROOT / Path(page).parent.relative_to("api")
    package = module / "__init__.py"
    return package if package.exists() else module.with_suffix(".py")


def notebook(app: Sphinx, page: str) -> str:
    """Name the notebook of a page that runs anywhere, in its language."""
    folder = colab.CHINESE if is_chinese(app) else ""
    return folder + page.removeprefix("book/")


def links(
    home: str, branch: str, page: str, title: str, path: Path, run: str
) -> list[dict[str, str]]:
    """Make the links of a page, as the theme's buttons.

    Args:
        home: The public home, owner/name.
        branch: That which changes are suggested to.
        page: The page's name.
        title: What stands above it.
        path: Its source, as seen from the root of the course.
        run: Its notebook that runs anywhere; empty if it has none.
    """
    report = {
        "template": FORM,
        "title": f"Mistake in {title}: ",
        "page": f"{title} ({page}, version {colab.course_version(ROOT)})",
    }
    found = [
        (
            "Suggest a change",
            "Edit the source of this page",
            f"{GITHUB}{home}/edit/{branch}/{quote(path.as_posix())}",
        ),
        (
            "Report a mistake",
            "Say what is wrong on this page",
            f"{GITHUB}{home}/issues/new?{urlencode(report, quote_via=quote)}",
        ),
    ]
    if run:
        found.append(
            (
                "Download the notebook",
                "The edition that runs anywhere: it installs the course",
                colab.download(home, run),
            )
        )
    return [
        {"type": "link", "text": text, "tooltip": tooltip, "url": url}
        for text, tooltip, url in found
    ]


def add_links(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Put the links at the head of a page, and at its foot as plain text."""
    home = app.config.public_home
    if not home or doctree is None:
        return
    title = app.env.titles[pagename].astext()
    file = source(pagename, Path(app.env.doc2path(pagename)))
    path = file.relative_to(app.srcdir)
    branch = app.config.html_theme_options.get("repository_branch") or "main"
    runs = path.suffix == ".ipynb" and colab.published(pagename)
    run = notebook(app, pagename) if runs else ""
    found = links(home, branch, pagename, title, path, run)
    buttons = context["header_buttons"]
    if run:
        buttons.append(
            {
                "type": "link",
                "text": "Colab",
                "tooltip": "Run this chapter in Colab",
                "url": colab.address(home, run),
            }
        )
    buttons.append(
        {
            "type": "group",
            "icon": "fa-solid fa-pencil",
            "tooltip": "Change, report or take along this page",
            "label": "mend",
            "buttons": found,
        }
    )
    listed = " · ".join(
        f'<a href="{escape(each["url"])}">{each["text"]}</a>' for each in found
    )
    # The group at the head opens by a script.
    context["body"] += f'<p class="mend">{listed}</p>\n'


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    # Pages are written anew when it changes.
    app.add_config_value("public_home", "", "html")
    app.connect("config-inited", find_home)
    # The theme makes the list of buttons at 500, as the foot is made.
    app.connect("html-page-context", add_links, priority=501)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
