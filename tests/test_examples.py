"""The examples in docstrings run, and print what stands there."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "companion").rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]

pytestmark = pytest.mark.once


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = import_module(name.removesuffix(".__init__"))
    done = doctest.testmod(
        module, extraglobs={"torch": torch}, optionflags=OPTIONS
    )
    assert done.attempted
    assert not done.failed
