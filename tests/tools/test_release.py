"""A release: what stops it, what the wheel carries, what a trial finds."""

import json
import re
import shutil
import sys
from pathlib import Path

import colab
import pytest
import release
import trial
import yaml
from support.contents import ROOT

import companion

pytestmark = pytest.mark.once

LOG = "# Changes\n\n## 7.11.13 (2026-11-21)\n\nNew.\n\n## 7.11.5\n\nOld.\n"


def test_a_clean_commit_is_released_tagged_or_not_but_not_as_another(checkout):
    release.check_tree(checkout, "7.11.13")
    colab.git(checkout, "tag", "seen")
    colab.git(checkout, "tag", "v7.11.13")
    release.check_tree(checkout, "7.11.13")
    with pytest.raises(ValueError, match=r"tag v7\.11\.5.*got v7\.11\.13"):
        release.check_tree(checkout, "7.11.5")
    (checkout / "new.py").write_text("")
    with pytest.raises(ValueError, match=r"commit them first\n\?\? new\.py"):
        release.check_tree(checkout, "7.11.13")


def test_the_newest_entry_of_the_change_log_is_read():
    assert release.entry(LOG, "7.11.13") == "New.\n"


@pytest.mark.parametrize(
    ("log", "version"),
    [
        (LOG, "7.11.5"),
        (LOG, "7.11"),
        ("# Changes\n", "7.11.13"),
        ("# Changes\n\n## 7.11.13\n", "7.11.13"),
    ],
    ids=["an older one", "half a number", "no entry", "nothing said"],
)
def test_a_version_without_an_entry_is_refused(log, version):
    expected = re.escape(f"first entry '## {version} (date)")
    with pytest.raises(ValueError, match=expected):
        release.entry(log, version)


def test_the_version_is_the_same_everywhere():
    version = companion.__version__
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.entry(log, version)
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert yaml.safe_load(cited)["version"] == version


def test_the_wheel_carries_the_package_and_has_its_version(tmp_path):
    source = tmp_path / "source"
    ours = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "companion", source / "companion", ignore=ours)
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-prose"):
        shutil.copy(ROOT / name, source)
    files = {
        path.relative_to(source).as_posix()
        for path in (source / "companion").rglob("*")
        if path.is_file()
    }
    wheel = release.build(source, tmp_path / "dist")
    # A list for the lint: nothing reads it where the package is installed.
    assert release.carried(wheel) == files - {
        "companion/interview/bank/ids.txt"
    }
    name = f"companion-{companion.__version__}"
    assert wheel.name == f"{name}-py3-none-any.whl"
    assert (wheel.parent / f"{name}.tar.gz").exists()


def test_a_trial_names_the_command_that_does_not_answer_as_expected(tmp_path):
    def ask(code, status=0, answer=""):
        command = "-c", code
        return trial.one(
            Path(sys.executable), tmp_path, command, status, answer
        )

    assert ask("print(7)", answer="7") == ""
    assert ask("raise SystemExit(3)", 3) == ""
    fault = ask("print(5)", answer="7")
    assert fault == "-c print(5): expected 0 and '7', got 0:\n5\n"
    assert re.search("got 1:\n(.|\n)*ZeroDivisionError", ask("1 / 0"))


def test_a_trial_knows_nothing_of_this_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = "import os; print(os.environ['HOME'], 'PYTHONPATH' in os.environ)"
    expected = f"{tmp_path} False"
    command = "-c", code
    assert not trial.one(Path(sys.executable), tmp_path, command, 0, expected)


def test_a_wheel_of_another_version_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "TRIALS", ())
    (fault,) = trial.try_out(Path(sys.executable), tmp_path, "another")
    assert "expected 0 and 'another'" in fault


def report(*vulnerable, skipped=()):
    packages = [
        {"name": name, "version": "7.0", "vulns": found}
        for name, found in vulnerable
    ]
    skips = [{"name": name, "skip_reason": "not there"} for name in skipped]
    return json.dumps({"dependencies": packages + skips, "fixes": []})


def test_a_package_known_to_be_vulnerable_stops_a_release():
    found = report(("good", []), ("bad", [{"id": "PYSEC-7"}]))
    with pytest.raises(ValueError, match=r"known to be vulnerable: bad 7\.0$"):
        release.verdict(found)


def test_an_audit_says_how_much_it_saw_and_when_it_saw_nothing():
    some = report(("good", []), skipped=("torch", "uv"))
    assert release.verdict(some) == "audited: 1 packages, 2 not"
    for nothing in ("", report(skipped=("torch",))):
        assert release.verdict(nothing).startswith("not audited")


def test_the_sums_are_those_of_the_files(tmp_path):
    (tmp_path / "companion-7.zip").write_bytes(b"abc")
    (tmp_path / "NOTES.md").write_text("Nobody who downloads gets this file.")
    release.add_sums(tmp_path)
    # The example of FIPS 180-2, appendix B.1.
    assert (tmp_path / "SHA256SUMS").read_text() == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        "  companion-7.zip\n"
    )
