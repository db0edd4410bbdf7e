"""The house plan, as tests; ``make lint`` checks layers and docstrings."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import companion
from companion import CHAPTERS

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "companion"


def files_of(word):
    """A chapter's module, or the modules of its package."""
    package = PACKAGE / word
    return sorted(package.glob("*.py")) or [PACKAGE / f"{word}.py"]


@pytest.mark.parametrize(("number", "word"), list(enumerate(CHAPTERS, 1)))
def test_a_chapter_has_one_word_in_five_places(number, word):
    for place in (
        *files_of(word),
        ROOT / "book" / f"{number:02}_{word}.ipynb",
        PACKAGE / "interview" / "bank" / f"{word}.toml",
    ):
        assert place.exists()
    tests = ROOT / "tests"
    assert (tests / word).is_dir() or (tests / f"test_{word}.py").exists()
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert f"book/{number:02}_{word}\n" in toc


def test_the_layers_are_the_chapters_in_order():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [name for name in contract["layers"] if name in CHAPTERS]
    assert tuple(reversed(layers)) == CHAPTERS


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
