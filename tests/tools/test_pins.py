"""What is installed: pinned, with sums, and from where it belongs."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution

import pins
import pytest
from support.contents import ROOT

pytestmark = pytest.mark.once

FILES = {
    name: (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    for name in ("book", "test", "torch", "cuda")
}
CPU, OTHER = "a" * 64, "b" * 64


def test_every_package_has_one_pin_with_sums():
    found = [pins.entries(text) for text in FILES.values()]
    names = [name for each in found for name in each]
    assert len(names) == len(set(names))
    assert len(found[0]) > 50
    for entry in (entry for each in found for entry in each.values()):
        first, *sums = entry.rstrip("\n").split(" \\\n    ")
        assert re.fullmatch(r"[\w.-]+==[\w.!]+( ; .+)?", first)
        assert sums
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", s) for s in sums)
    # Nothing stands there beside the pins: no index, and no other file.
    for text, entries in zip(FILES.values(), found, strict=True):
        assert text == pins.HEAD + "".join(entries.values())


def test_what_is_installed_here_is_what_is_pinned():
    for name in ("book", "test", "torch"):
        for package, entry in pins.entries(FILES[name]).items():
            try:
                got = distribution(package).version
            except PackageNotFoundError:
                assert " ; " in entry.splitlines()[0], package
            else:
                pinned = re.search(r"==([\w.]+)", entry)[1]
                assert got.partition("+")[0] == pinned, package


def test_torch_may_be_a_build_for_a_cpu_and_only_torch_comes_from_its_index():
    assert len(pins.SUM.findall(FILES["torch"])) > 20 + 4
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = makefile.replace("\\\n", " ").splitlines()
    asked = [line for line in lines if "--index-url" in line]
    assert len(asked) == 1
    (files,) = re.findall(r"--index-url \S+ +--requirement (\S+);", asked[0])
    assert files == "requirements/torch.txt"
    assert "EXTRA_INDEX" not in makefile
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        assert "EXTRA_INDEX" not in path.read_text(encoding="utf-8")


def test_make_installs_nothing_without_a_sum_but_the_course_itself():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"(?:pip|\(PIP\)) install (.*)", makefile)
    assert [each.split(" && ")[0] for each in installs] == [
        "--require-hashes --no-deps",
        "--no-build-isolation --no-deps --editable .",
    ]


FAKE = """#!/bin/sh
echo "$@" >> log
case "$*" in
  *{index}*) [ -z "$OUT_OF_REACH" ] || exit 1; needs="" ;;
  *) needs="Requires-Dist: nvidia-nccl" ;;
esac
case "$*" in *torch.txt) echo "$needs" > {metadata}; esac
"""


@pytest.mark.parametrize(
    ("setting", "from_index", "from_pypi"),
    [
        ({}, True, False),
        ({"OUT_OF_REACH": "1"}, True, True),
        ({"TORCH_INDEX": ""}, False, True),
    ],
)
def test_torch_comes_from_its_index_or_from_pypi_with_what_it_needs(
    tmp_path, setting, from_index, from_pypi
):
    """A script that writes down what it is told stands in for Python."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    torch = ".venv/lib/python3.11/site-packages/torch-7.5.3.dist-info"
    (tmp_path / torch).mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        FAKE.format(index=pins.CPU_INDEX, metadata=f"{torch}/METADATA")
    )
    python.chmod(0o755)
    (tmp_path / ".venv" / "book").touch()
    environment = {k: v for k, v in os.environ.items() if k != "TORCH_INDEX"}
    subprocess.run(
        ["make", "--quiet", ".venv/test"],
        cwd=tmp_path,
        env=environment | setting,
        check=True,
    )
    asked = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    torch = [line for line in asked if line.endswith("torch.txt")]
    assert ["--index-url" in line for line in torch] == [
        *[True] * from_index,
        *[False] * from_pypi,
    ]
    cuda = [line for line in asked if line.endswith("cuda.txt")]
    assert len(cuda) == from_pypi
    for line in (*torch, *cuda):
        assert "--require-hashes --no-deps" in line


def wheel(folder, name, version, tag="py3-none-any"):
    """Make an empty wheel, and return it."""
    path = folder / f"{name}-{version}-{tag}.whl"
    inside = {
        "METADATA": "Metadata-Version: 2.1\n"
        f"Name: {name}\nVersion: {version}\n",
        "WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as file:
        for part, text in inside.items():
            file.writestr(f"{name}-{version}.dist-info/{part}", text)
    return path


def test_pip_refuses_a_file_with_another_sum(tmp_path):
    right = sha256(wheel(tmp_path, "small", "1.0").read_bytes()).hexdigest()
    wanted = tmp_path / "pins.txt"
    told = {}
    for each in (right, OTHER):
        wanted.write_text(entry("small==1.0", each))
        told[each] = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "--dry-run"),
                *("--no-index", "--find-links", tmp_path, "--no-deps"),
                *("--require-hashes", "--requirement", wanted),
            ],
            capture_output=True,
            text=True,
        )
    assert "Would install small-1.0" in told[right].stdout
    assert told[OTHER].returncode
    assert "DO NOT MATCH THE HASHES" in told[OTHER].stderr


# How the files are written.


def entry(name, *sums):
    lines = [name, *(f"--hash=sha256:{each}" for each in sums)]
    return " \\\n    ".join(lines) + "\n"


def test_each_package_goes_into_the_file_that_needs_it():
    all_ = {
        name: entry(f"{name}==1.0", CPU)
        for name in ("sphinx", "pytest", "torch", "nvidia-nccl", "triton")
    }
    book = {"sphinx": entry("sphinx==1.0 ; sys_platform == 'win32'", CPU)}
    files = pins.resolved(book, all_)
    assert {name: list(pins.entries(text)) for name, text in files.items()} == {
        "book": ["sphinx"],
        "test": ["pytest"],
        "torch": ["torch"],
        "cuda": ["nvidia-nccl", "triton"],
    }


def test_torch_s_own_index_is_asked_for_its_builds(tmp_path):
    """A folder stands in for the index."""
    page = tmp_path / "torch" / "index.html"
    page.parent.mkdir()
    tag = "cp311-cp311-manylinux_2_28_x86_64"
    path = wheel(page.parent, "torch", "7.5.3+cpu", tag)
    page.write_text(f'<a href="{path.name}#sha256={CPU}">{path.name}</a>\n')
    found = pins.cpu_sums("7.5.3", "", index=tmp_path.as_uri())
    assert found == {f"sha256:{CPU}"}


@pytest.mark.bad_input
def test_an_index_out_of_reach_leaves_the_sums_of_the_same_version(
    monkeypatch, capsys
):
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    nowhere = "http://127.0.0.1:9/simple"
    before = entry("torch==7.5.3", CPU)
    assert pins.cpu_sums("7.5.3", before, index=nowhere) == {f"sha256:{CPU}"}
    assert "out of reach" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"torch 7.5.4: uv says: "):
        pins.cpu_sums("7.5.4", before, index=nowhere)


@pytest.mark.bad_input
def test_two_pins_of_one_package_are_refused():
    book = {"sphinx": entry("sphinx==1.0", CPU)}
    for other in ({}, {"sphinx": entry("sphinx==1.1", CPU)}):
        with pytest.raises(ValueError, match=r"differ: .*sphinx==1.0"):
            pins.resolved(book, other)


def test_pins_for_a_new_environment_have_no_sums():
    lines = pins.versions("torch", "cuda").splitlines()
    assert re.fullmatch(r"torch==[\d.]+", lines[0])
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


def test_an_environment_behind_a_link_is_not_emptied(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "book.txt").touch()
    (tmp_path / "another's").mkdir()
    theirs = tmp_path / "another's" / "file"
    theirs.touch()
    (tmp_path / ".venv").symlink_to(theirs.parent)
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", ".venv/book"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "remove the link first" in done.stdout
    assert theirs.exists()
