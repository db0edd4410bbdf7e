"""A release: what stops it, what the wheel carries, how workflows are held."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import colab
import pytest
import release
import trial
import yaml

import companion

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# The tools know these by sight; a reader finds them by the version behind.
PINNED = re.compile(r"uses: [\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
LOG = "# Changes\n\n## 7.11.13 (2026-11-21)\n\nNew.\n\n## 7.11.5\n\nOld.\n"


@pytest.fixture
def commit(tmp_path):
    """A repository of one commit."""

    def run(*arguments):
        release.git(tmp_path, *arguments)

    run("init", "--quiet")
    (tmp_path / "a.py").write_text("")
    run("add", ".")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run(*who, "commit", "--quiet", "--message", "a")
    return tmp_path


def test_a_clean_commit_may_be_released_tagged_or_not(commit):
    release.check_tree(commit, "7.11.13")
    release.git(commit, "tag", "seen")
    release.git(commit, "tag", "v7.11.13")
    release.check_tree(commit, "7.11.13")


def test_what_is_not_committed_stops_a_release_and_is_named(commit):
    (commit / "new.py").write_text("")
    with pytest.raises(ValueError, match=r"commit or remove .*\n\?\? new\.py"):
        release.check_tree(commit, "7.11.13")


def test_the_tag_of_another_version_stops_a_release(commit):
    release.git(commit, "tag", "v7.11.5")
    with pytest.raises(
        ValueError, match=r"expected the tag v7\.11\.13.*7\.11\.5"
    ):
        release.check_tree(commit, "7.11.13")


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
    with pytest.raises(
        ValueError, match=rf"first entry '## {version} \(date\)"
    ):
        release.entry(log, version)


def test_the_version_is_the_same_everywhere():
    version = companion.__version__
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.entry(log, version)
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert yaml.safe_load(cited)["version"] == version


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the package as it stands, beside nothing else."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-prose"):
        shutil.copy(ROOT / name, source)
    ours = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "companion", source / "companion", ignore=ours)
    return release.build(source, tmp_path_factory.mktemp("dist"))


def test_the_wheel_carries_every_file_of_the_package(wheel):
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "companion").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    # A list for the lint: nothing reads it where the package is installed.
    assert release.carried(wheel) == files - {
        "companion/interview/bank/ids.txt"
    }


def test_the_wheel_is_named_by_the_one_version(wheel):
    assert wheel.name == f"companion-{companion.__version__}-py3-none-any.whl"
    (archive,) = wheel.parent.glob("*.tar.gz")
    assert archive.name == f"companion-{companion.__version__}.tar.gz"


def ask(tmp_path, *arguments, code=0, answer=""):
    return trial.one(Path(sys.executable), tmp_path, arguments, code, answer)


def test_a_command_that_answers_as_expected_is_no_fault(tmp_path):
    assert ask(tmp_path, "-c", "print(7)", answer="7") == ""
    assert ask(tmp_path, "-c", "raise SystemExit(3)", code=3) == ""


def test_a_command_that_fails_or_says_something_else_is_told(tmp_path):
    said = ask(tmp_path, "-c", "print(5)", answer="7")
    assert said == "-c print(5): expected 0 and '7', got 0:\n5\n"
    assert "got 1:\n" in ask(tmp_path, "-c", "1 / 0")
    assert "ZeroDivisionError" in ask(tmp_path, "-c", "1 / 0")


def test_an_environment_knows_nothing_of_this_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code = "import os; print(os.environ['HOME'], 'PYTHONPATH' in os.environ)"
    assert ask(tmp_path, "-c", code, answer=f"{tmp_path} False") == ""


def test_a_wheel_of_another_version_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(trial, "TRIALS", trial.TRIALS[1:2])
    faults = trial.try_out(Path(sys.executable), tmp_path, "another")
    assert len(faults) == 1
    assert "expected 0 and 'another'" in faults[0]


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


def test_an_audit_says_how_much_it_saw():
    some = report(("good", []), skipped=("torch", "uv"))
    assert release.verdict(some) == "audited: 1 packages, 2 not"


@pytest.mark.parametrize("found", ["", report(skipped=("torch",))])
def test_an_audit_without_its_database_does_not_say_that_all_is_well(found):
    assert release.verdict(found).startswith("not audited")


def test_the_sums_are_those_of_the_files(tmp_path):
    (tmp_path / "companion-7.zip").write_bytes(b"abc")
    (tmp_path / "NOTES.md").write_text("Nobody who downloads gets this file.")
    release.add_sums(tmp_path)
    # The example of FIPS 180-2, appendix B.1.
    assert (tmp_path / "SHA256SUMS").read_text() == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        "  companion-7.zip\n"
    )


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.stem)
def workflow(request):
    return request.param.read_text(encoding="utf-8")


def test_every_action_is_pinned_by_its_commit(workflow):
    used = [line for line in workflow.splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not PINNED.search(line)] == []


def test_one_action_has_one_pin():
    used = re.findall(
        r"uses: (\S+)@(.+)", "".join(path.read_text() for path in WORKFLOWS)
    )
    assert len({action for action, _ in used}) == len(set(used))


def test_there_is_one_container_pinned_by_its_contents():
    jobs = [
        job
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text())["jobs"].values()
    ]
    (image,) = {job["container"] for job in jobs if "container" in job}
    assert re.fullmatch(
        r"python:3\.11\.\d+-bookworm@sha256:[0-9a-f]{64}", image
    )


def test_a_workflow_may_read_and_only_a_job_may_write(workflow):
    read = yaml.safe_load(workflow)
    assert read["permissions"] == {"contents": "read"}
    for job in read["jobs"].values():
        granted = job.get("permissions", {})
        assert "write" not in granted.values() or len(granted) <= 2
        # What runs the project's own code holds no key.
        if "container" in job:
            assert granted == {}


def test_no_checkout_leaves_its_key_behind(workflow):
    steps = [
        step
        for job in yaml.safe_load(workflow)["jobs"].values()
        for step in job["steps"]
        if "actions/checkout" in step.get("uses", "")
    ]
    for step in steps:
        assert step["with"]["persist-credentials"] is False


def test_every_job_ends_by_itself(workflow):
    jobs = yaml.safe_load(workflow)["jobs"].values()
    assert all(0 < job["timeout-minutes"] <= 300 for job in jobs)


def test_no_workflow_runs_what_a_stranger_wrote_into_a_title(workflow):
    scripts = [
        step.get("run", "")
        for job in yaml.safe_load(workflow)["jobs"].values()
        for step in job["steps"]
    ]
    assert not [script for script in scripts if "${{" in script]
    assert "pull_request_target" not in workflow


def test_only_a_tag_publishes():
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text()
    # YAML reads the word on as True.
    assert yaml.safe_load(text)[True] == {"push": {"tags": ["v*"]}}


def test_what_is_published_is_what_a_release_makes():
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert any(
        step.get("run") == ".ci/run release colab"
        for step in jobs["release"]["steps"]
    )
    built = "".join(str(step) for step in jobs["release"]["steps"])
    assert "'REPO': '${{ github.repository }}'" in built
    pushed = "".join(str(step) for step in jobs["notebooks"]["steps"])
    assert f'"$HOME_OF_ALL" {colab.BRANCH}\\n' in pushed
    # Each waits for the one before: no button opens what is not there yet.
    assert [job.get("needs") for job in jobs.values()] == [
        None,
        "release",
        "notebooks",
        "pages",
    ]
    help_text = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "make release" in help_text
    assert "make colab" in help_text
