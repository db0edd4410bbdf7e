"""A small course with a history."""

import shutil

import colab
import pytest
from support.contents import ROOT


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, two notebooks, and no public home."""
    monkeypatch.delenv("REPO", raising=False)
    for key in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{key}_NAME", "A")
        monkeypatch.setenv(f"GIT_{key}_EMAIL", "a@example.org")
    root = tmp_path / "course"
    (root / "book").mkdir(parents=True)
    for path in sorted((ROOT / "book").glob("*.ipynb"))[:2]:
        (root / "book" / path.name).write_bytes(path.read_bytes())
    shutil.copy(ROOT / "book" / "references.bib", root / "book")
    (root / "companion").mkdir()
    (root / "companion" / "__init__.py").write_text('__version__ = "7.1"\n')
    colab.git(root, "init", "--quiet")
    colab.git(root, "add", "--all")
    colab.git(root, "commit", "--quiet", "--message=first")
    return root
