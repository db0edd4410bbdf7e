"""The house plan, as tests: one word per chapter, layers, small pieces."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import companion
from companion import CHAPTERS

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "companion"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = [
    *MODULES,
    *sorted((ROOT / "tools").glob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*.py")),
]
# What chapters may import besides earlier chapters.
OPEN_TO_ALL = {"costs", "data"}


def name(path):
    return path.relative_to(ROOT).as_posix()


def imported(path):
    """The parts of companion that the file imports: rnn, data, figures …"""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}: import by the full name"
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        parts = [t.split(".") for t in targets]
        found |= {p[1] for p in parts if p[0] == "companion" and len(p) > 1}
    return found & {
        p.stem if p.is_file() else p.name for p in PACKAGE.iterdir()
    }


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
        ROOT / "tests" / f"test_{word}.py",
    ):
        assert place.exists()
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert f"book/{number:02}_{word}\n" in toc


@pytest.mark.parametrize(("number", "word"), list(enumerate(CHAPTERS)))
def test_a_chapter_imports_only_earlier_chapters(number, word):
    allowed = set(CHAPTERS[:number]) | OPEN_TO_ALL
    for path in files_of(word):
        assert imported(path) - {word} <= allowed, name(path)


def test_data_imports_no_chapter():
    for path in (PACKAGE / "data").glob("*.py"):
        assert imported(path) <= {"data"}, name(path)


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_module_fits_on_a_few_screens(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_function_fits_on_one_screen(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                doc = node.body[0]
                lines -= doc.end_lineno - doc.lineno + 1
            assert lines <= 25, f"{node.name}: {lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_what_is_public_has_a_docstring(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in [tree, *(n for n in tree.body if isinstance(n, kinds))]:
        if not getattr(node, "name", "").startswith("_"):
            assert ast.get_docstring(node), getattr(node, "name", name(path))


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


def test_what_is_open_to_all_imports_no_chapter():
    assert imported(PACKAGE / "costs.py") == set()
