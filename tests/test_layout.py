"""The house plan, as tests; ``make lint`` checks layers and docstrings."""

import re
import subprocess
import sys
import tomllib
from collections import defaultdict

import mutants
import pytest
from support.contents import ROOT

import companion
from companion import CHAPTERS

pytestmark = pytest.mark.once

MOST = 19
"""Entries of a folder that are seen at one look."""


@pytest.fixture(scope="module")
def folders():
    """What is committed: folder -> names in it, the root's folder is ''."""
    if not (ROOT / ".git").exists():
        pytest.skip("no commit, so nobody knows which files belong to it")
    listed = subprocess.run(
        ["git", "ls-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = defaultdict(set)
    for name in listed.stdout.splitlines():
        folder = ""
        for part in name.split("/"):
            found[folder].add(part)
            folder = f"{folder}/{part}".lstrip("/")
    return found


@pytest.mark.parametrize(("number", "word"), list(enumerate(CHAPTERS, 1)))
def test_a_chapter_has_one_word_in_five_places(number, word):
    package = ROOT / "companion" / word
    assert package.is_dir() or package.with_suffix(".py").exists()
    assert (ROOT / "book" / f"{number:02}_{word}.ipynb").exists()
    bank = ROOT / "companion" / "interview" / "bank"
    assert (bank / f"{word}.toml").exists()
    assert mutants.tests_of(word)
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert f"book/{number:02}_{word}\n" in toc


def test_the_layers_are_the_chapters_in_order():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [name for name in contract["layers"] if name in CHAPTERS]
    assert tuple(reversed(layers)) == CHAPTERS


def test_a_folder_is_seen_at_one_look(folders):
    """A file a chapter, or a figure, is one thing to look at, however many."""
    figures = folders["companion/figures/gallery"]
    each = "|".join(word.partition(".")[0] for word in {*CHAPTERS, *figures})
    listed = re.compile(rf"\.|\d\d_|(test_)?({each})(_|\.|$)")
    sizes = {
        folder: sum(not listed.match(name) for name in names)
        for folder, names in folders.items()
    }
    assert {name: n for name, n in sizes.items() if n > MOST} == {}


def test_the_tree_of_the_readme_shows_every_room(folders):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = readme.partition("## The house")[2].split("```")[1]
    shown = set(re.findall(r"[\w.-]+", tree.replace("/", " ")))
    known = {
        *CHAPTERS,
        *(f"{word}.py" for word in CHAPTERS),
        ".gitignore",
    }
    known |= {"__init__.py", "__main__.py", "py.typed"}
    for folder in ("", "book", "companion"):
        names = {n for n in folders[folder] if not re.match(r"\d\d_", n)}
        assert names - known - shown == set(), folder


def test_the_device_is_one_that_torch_can_use():
    import torch

    assert torch.ones(2, device=companion.device()).sum().item() == 2


def test_the_quiz_needs_no_torch():
    """The book is built, and a quiz is shown, where torch is not installed."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from companion.interview import show\n"
        "assert len(show('rnn').html) > 1000"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
