"""Write the published edition of each notebook: it installs the course first.

It is translated, too: Colab shows no box and no citation of a
page (plain_markdown.py).

    make colab REPO=owner/name

REPO is the public home; without it, the remote ``origin`` is, if it is on
GitHub. The editions lie in ``_build/colab``. Pushed to the branch ``colab`` of
the public home, they are what the pages' buttons open.
"""

import os
import posixpath
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import nbformat
import plain_markdown
import translations

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "_build" / "colab"
BRANCH = "colab"
CHINESE = "zh/"
"""The folder of the Chinese edition, beside the English one."""
NAME = r"[A-Za-z0-9][\w-]*/[\w.-]+?"
REMOTE = re.compile(
    rf"(?:https://(?:[^/@]+@)?|ssh://git@|git@)github\.com[/:]({NAME})"
    r"(?:\.git)?/?"
)
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
INSTALL = """\
# The course, as it was when this notebook was made from it.
%pip install -q "companion[book] @ git+https://github.com/{home}@{commit}"
import companion

assert companion.__version__ == "{version}", "Restart the runtime."\
"""


def named(repo: str) -> str:
    """Check that ``repo`` names a public home, and return it.

    Raises:
        ValueError: ``repo`` is not ``owner/name``.
    """
    if not re.fullmatch(NAME, repo):
        raise ValueError(f"REPO: expected owner/name, got {repo!r}")
    return repo


def address(home: str, notebook: str) -> str:
    """Return where Colab opens a notebook (``01_rnn``, ``labs/01_rnn``)."""
    return (
        "https://colab.research.google.com/github/"
        f"{home}/blob/{BRANCH}/{notebook}.ipynb"
    )


def download(home: str, notebook: str) -> str:
    """Return where the file itself is, to be kept and run anywhere."""
    return f"https://raw.githubusercontent.com/{home}/{BRANCH}/{notebook}.ipynb"


def git(root: Path, *arguments: str) -> str:
    """Run git in ``root`` and return what it prints.

    Raises:
        ValueError: git refuses; its own words are in the message.
    """
    done = subprocess.run(
        ["git", "-C", root, *arguments], capture_output=True, text=True
    )
    if done.returncode:
        raise ValueError(f"git says: {done.stderr.strip()}")
    return done.stdout.strip()


def public_home(root: Path, repo: str) -> str:
    """Return ``repo``, or else the owner/name of the remote origin.

    Raises:
        ValueError: ``repo`` is not ``owner/name``, or there is neither.
    """
    if repo:
        return named(repo)
    origin = ["config", "--default", "", "--get", "remote.origin.url"]
    remote = REMOTE.fullmatch(git(root, *origin))
    if not remote:
        raise ValueError(
            "no public home: the remote origin is not on GitHub. Name one with "
            "make colab REPO=owner/name"
        )
    return remote[1]


def working_commit(root: Path) -> str:
    """Return the commit that the files are, all of them.

    Raises:
        ValueError: there is no commit, or a file is not as it was committed.
    """
    commit = git(root, "rev-parse", "--verify", "HEAD")
    if changed := git(root, "status", "--porcelain"):
        raise ValueError(
            "these files are not as they were committed, and the commit is "
            f"what is installed: commit them first\n{changed}"
        )
    return commit


def course_version(root: Path) -> str:
    """Return the version that the course in ``root`` gives itself."""
    init = root / "companion" / "__init__.py"
    return VERSION.findall(init.read_text(encoding="utf-8"))[0]


def published(page: str) -> bool:
    """Tell whether a page of the book has an edition: chapters have one.

    Example:
        >>> published("labs/03_attention"), published("mask_conventions")
        (True, False)
    """
    return posixpath.basename(page)[:1].isdigit()


def led(home: str, folder: str, link: plain_markdown.Link) -> str:
    """Return where a link leads: a notebook in Colab, or a published page.

    Args:
        home: The public home, owner/name.
        folder: That of the edition: ``zh/``, or none.
        link: Its file lies in that edition, too.
    """
    page, kind = posixpath.splitext(link.file)
    if kind == ".ipynb" and published(page):
        place = f"#scrollTo={link.cell}" if link.cell else ""
        return address(home, folder + page) + place
    owner, name = home.split("/")
    place = f"#{link.section}" if link.section else ""
    return f"https://{owner}.github.io/{name}/{folder}book/{page}.html{place}"


def in_chinese(name: str, source: str) -> str:
    """Say a cell of a notebook (``labs/01_rnn.ipynb``) in Chinese."""
    return translations.in_chinese(
        f"book/{name.removesuffix('.ipynb')}", source
    )


def edition(
    notebook: nbformat.NotebookNode, install: str
) -> nbformat.NotebookNode:
    """Put ``install`` first in a translated notebook.

    It asks for a GPU only if it trains on one, for Colab has not many.
    """
    for solution in notebook.cells:
        if "solution" in solution.metadata.get("tags", ()):
            # Colab folds a cell into a form, which shows its title alone.
            solution.metadata["cellView"] = "form"
            solution.source = f"# @title A solution\n{solution.source}"
    cell = nbformat.v4.new_code_cell(install, id="install")
    # What pip says depends on the machine.
    cell.metadata["tags"] = ["nbval-ignore-output"]
    notebook.cells.insert(0, cell)
    if trains_on_a_device(notebook):
        notebook.metadata["accelerator"] = "GPU"
    return notebook


def trains_on_a_device(notebook: nbformat.NotebookNode) -> bool:
    """Tell whether a cell takes something to ``companion.device()``."""
    return any(
        "device())" in cell.source
        for cell in notebook.cells
        if cell.cell_type == "code"
    )


def publish(root: Path, folder: Path, home: str, commit: str) -> list[Path]:
    """Write the edition of every notebook of the course, and nothing else.

    Raises:
        ValueError: A notebook has what cannot be translated.
    """
    install = INSTALL.format(
        home=home, commit=commit, version=course_version(root)
    )
    book = root / "book"
    english = plain_markdown.course(book, partial(led, home, ""))
    chinese = plain_markdown.course(
        book, partial(led, home, CHINESE), in_chinese
    )
    translated = [*english, *((CHINESE + name, each) for name, each in chinese)]
    draft = folder.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name, notebook in translated:
        text = nbformat.writes(edition(notebook, install)) + "\n"
        copy = draft / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return sorted(folder.rglob("*.ipynb"))


def main(root: Path = ROOT, folder: Path = FOLDER) -> int:
    """Publish the notebooks of the working commit, or say why not."""
    try:
        home = public_home(root, os.environ.get("REPO", ""))
        commit = working_commit(root)
        paths = publish(root, folder, home, commit)
    except ValueError as error:
        print(f"Nothing was written: {error}")
        return 1
    print(f"{len(paths)} notebooks that install {home}@{commit}: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
