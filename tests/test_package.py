"""What ``import companion`` gives, and what it does not load."""

import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import companion

pytestmark = pytest.mark.once

LAZY = sorted(set(companion.__all__) - {"CHAPTERS", "device"})


def test_the_package_alone_loads_nothing_but_the_standard_library():
    code = (
        "import sys; before = set(sys.modules); import companion\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["companion"]


@pytest.mark.parametrize("name", LAZY)
def test_a_name_of_the_package_is_that_of_its_part(name):
    part = import_module(f"companion.{companion._HOME[name]}")
    assert getattr(companion, name) is getattr(part, name)
    assert name in part.__dict__.get("__all__", [name])


def test_what_is_offered_is_listed():
    assert set(companion._HOME) == set(LAZY)
    assert set(companion.__all__) <= set(dir(companion))


def test_a_name_that_is_not_there_is_named():
    with pytest.raises(AttributeError, match="'Transfomer'"):
        _ = companion.Transfomer


def test_the_help_has_a_line_for_every_part():
    parts = {part.name for part in pkgutil.iter_modules(companion.__path__)}
    lines = re.findall(r"^    (\w+)  +\S", companion.__doc__, re.MULTILINE)
    assert set(lines) == parts - {"__main__"}
    assert tuple(lines[: len(companion.CHAPTERS)]) == companion.CHAPTERS


def test_type_checkers_read_the_package():
    assert Path(companion.__file__).with_name("py.typed").exists()
