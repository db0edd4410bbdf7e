"""Every line of the README, typed in order in a fresh clone."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from support.contents import ROOT

pytestmark = pytest.mark.once

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = ".venv/bin/python -m"
# What a line gives, in its output. A line that stands neither here nor below
# is a line of which nobody knows what it gives, and the test fails.
GIVES = {
    "make install": "Ready: .venv/bin/python -m companion",
    f"{PYTHON} companion train": "Done: step 400",
    f'{PYTHON} companion translate "我爱小猫"': "I love little cats",
    f'{PYTHON} companion translate --model zh-en "我想喝一杯咖啡。"': (
        "I want a cup of coffee."
    ),
    f"{PYTHON} benchmarks.recipes --table": README.partition("| recipe |")[
        2
    ].partition("\n\n")[0],
    f"{PYTHON} companion check my_file.py": "contracts hold",
    f"{PYTHON} companion quiz --chapter attention --lang zh": "什么是自注意力",
    # Each draw is another, and where no question fits any more, 29 are full.
    f"{PYTHON} companion mock --minutes 30 --level mid": " questions, ",
    f"{PYTHON} companion handout attention --to class": "3 exercises",
    f"{PYTHON} companion grade class/handed-in": "1 learners",
    f"{PYTHON} companion review": "Nothing to review yet",
    f"{PYTHON} companion stats": "Nothing answered yet",
    f"{PYTHON} companion anki companion.apkg": "notes in companion.apkg",
}
# What else somebody does before a line, by the README's own words.
BEFORE = {
    f"{PYTHON} companion grade class/handed-in": "mkdir class/handed-in && "
    "cp class/attention-exercises.ipynb class/handed-in/ann.ipynb",
}
# What is typed instead, what that gives, and why.
INSTEAD = {
    "make notebook": (
        "make --dry-run notebook",
        "tools/open_jupyter.py",
        "it runs until it is closed; test_open_jupyter.py opens a browser",
    ),
    "make book": (
        "make --dry-run book",
        "Open file://",
        "make test, which runs this test, has built the book by this line",
    ),
    "make test": ("make --dry-run test", "pytest", "it runs this test"),
    "make clean install TORCH_INDEX=": (
        "make --dry-run install TORCH_INDEX=",
        "Ready",
        "gigabytes from the network; test_pins.py tells what it asks for",
    ),
    f"{PYTHON} benchmarks.recipes phrasebook": (
        f"{PYTHON} benchmarks.recipes phrasebook --seeds 1 --steps 10",
        "| phrasebook | exact match, % |",
        "three times the training above",
    ),
    f"{PYTHON} companion train --config benchmarks/recipes/tatoeba.toml": (
        f"{PYTHON} companion train --config benchmarks/recipes/tatoeba.toml "
        "--data phrasebook --steps 2 --folder runs/small",
        "Done: step 2",
        "five minutes, and a corpus from the network",
    ),
}
TORCHRUN = ".venv/bin/torchrun --nproc-per-node=2 -m companion train"
INSTEAD[f"{TORCHRUN} --folder runs/two"] = (
    f"{TORCHRUN} --folder runs/two --steps 3",
    "Done: step 3",
    "as long as the training above",
)
# What is left beside what is committed, and nothing else.
MADE = ("my_file.py",)
PIP = re.compile(r"pip install '?\.(?:\[(\w+)\])?'?")
# How pip begins a script for an interpreter whose path has spaces.
START = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
"""
MINE = """\
def softmax(scores, dim):
    return scores.softmax(dim)
"""


def commands():
    """The lines of the README that one types, in order, without comments."""
    found = re.findall(
        r"^```shell\n(.*?)^```|`(\.venv/bin/[^`]+)`", README, re.M | re.S
    )
    lines = (line for both in found for line in "".join(both).splitlines())
    return [line.partition("  #")[0].rstrip() for line in lines]


@pytest.fixture
def clone(tmp_path):
    """A clone with what is committed, and the files as they are now."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository, so nothing can be cloned")
    place = tmp_path / "a fresh clone"
    git = ["git", "-C", ROOT]
    subprocess.run(["git", "clone", "--quiet", ROOT, place], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.rstrip("\0").split("\0"):
        source, target = ROOT / name, place / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        else:
            target.unlink(missing_ok=True)
    (place / "my_file.py").write_text(MINE, encoding="utf-8")
    return place


def typed(clone, line):
    """Type a line into a shell, with no answers kept and nobody there."""
    leaks = ("PYTHONPATH", "VIRTUAL_ENV", "REPO", "MAKEFLAGS", "MAKELEVEL")
    around = {k: v for k, v in os.environ.items() if k not in leaks}
    around |= {
        "XDG_DATA_HOME": str(clone.parent / "data"),
        "PIP_NO_INDEX": "1",
        "COLUMNS": "200",
    }
    return subprocess.run(
        line,
        shell=True,
        cwd=clone,
        env=around,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def borrow(clone):
    """Make an environment of the clone's own, of links to what is in ours.

    So nothing is installed twice. ``make`` finds it finished.
    """
    place = clone / ".venv"
    shutil.rmtree(place)
    packages = Path(sysconfig.get_path("purelib"))
    own = place / packages.relative_to(sys.prefix)
    own.mkdir(parents=True)
    for path in packages.iterdir():
        if "companion" not in path.name:  # That would be the one of ours.
            (own / path.name).symlink_to(path)
    (own / "companion.pth").write_text(str(clone), encoding="utf-8")
    (place / "bin").mkdir()
    start = START.format(python=place / "bin" / "python").encode()
    for path in Path(sys.prefix, "bin").iterdir():
        target = place / "bin" / path.name
        first, _, rest = path.read_bytes().partition(b"\n")
        if first.startswith(b"#!") and b"python" in first:
            target.write_bytes(start + rest)
            target.chmod(0o755)
        else:
            target.symlink_to(path)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), place)
    for name in ("book", "test"):
        (place / name).touch()


def test_until_make_install_each_command_is_one_line_that_says_so(clone):
    # What `make book` leaves has no torch, either.
    venv.create(clone / ".venv", symlinks=True)
    lines = [line for line in commands() if line.startswith(PYTHON)]
    assert len(lines) > 10
    for line in lines:
        done = typed(clone, line)
        assert done.returncode, line
        assert re.fullmatch(
            r"error: \w+ is missing: make install\n", done.stderr
        ), (line, done.stderr)


def test_each_line_gives_what_the_readme_says(clone):
    venv.create(clone / ".venv", symlinks=True)
    borrow(clone)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = extras["project"]["optional-dependencies"].keys() | {""}
    for line in commands():
        if asked := PIP.fullmatch(line):
            # From the network; `make release` installs all of it and tries it.
            assert (asked[1] or "") in extras, line
            continue
        line, gives, _ = INSTEAD.get(line, (line, GIVES.get(line), ""))
        assert gives, f"{line}: say here what this line of the README gives"
        if line in BEFORE:
            assert typed(clone, BEFORE[line]).returncode == 0
        done = typed(clone, line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert gives in done.stdout, (line, done.stdout, done.stderr)
    assert (clone / "runs" / "phrasebook" / "curve.svg").exists()
    told = subprocess.run(
        ["git", "status", "--porcelain"],
        cwd=clone,
        check=True,
        capture_output=True,
        text=True,
    )
    made = {f"?? {name}" for name in MADE}
    committed = subprocess.run(
        ["git", "diff", "--quiet", "HEAD"], cwd=ROOT, check=False
    )
    assert committed.returncode or set(told.stdout.splitlines()) == made


def test_the_lines_of_python_give_what_stands_behind_them(clone):
    """Typed into a session, which shows what each line returns."""
    (block,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-i", "-q"],
        cwd=clone,
        input=block.replace("\n)", "\n)\n"),
        capture_output=True,
        text=True,
    )
    (said,) = re.findall(r"# (all \d+ contracts hold)", block)
    assert said in done.stdout
    assert "Error" not in done.stderr


def test_what_stands_here_stands_in_the_readme():
    lines = commands()
    assert len(lines) == len(set(lines))
    assert {*GIVES, *INSTEAD} <= set(lines)
