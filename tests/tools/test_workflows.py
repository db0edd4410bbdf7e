"""The public home's workflows: pinned, without keys, and in order."""

import re

import colab
import pytest
import yaml
from support.contents import ROOT

pytestmark = pytest.mark.once

TEXTS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
}
WORKFLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
JOBS = [job for each in WORKFLOWS.values() for job in each["jobs"].values()]
STEPS = [step for job in JOBS for step in job["steps"]]
# The tools know these by sight; a reader finds them by the version behind.
PINNED = re.compile(r"uses: ([\w-]+/[\w/-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$")


def test_every_action_is_pinned_once_by_its_commit():
    used = [
        line
        for text in TEXTS.values()
        for line in text.splitlines()
        if "uses:" in line
    ]
    pins = [PINNED.search(line) for line in used]
    assert used
    assert None not in pins
    assert len({p[1] for p in pins}) == len({p.groups() for p in pins})


def test_there_is_one_container_pinned_by_its_contents():
    (image,) = {job["container"] for job in JOBS if "container" in job}
    assert re.fullmatch(
        r"python:3\.11\.\d+-bookworm@sha256:[0-9a-f]{64}", image
    )


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_only_a_job_may_write(name):
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    for job in WORKFLOWS[name]["jobs"].values():
        granted = job.get("permissions", {})
        assert "write" not in granted.values() or len(granted) <= 2
        # What runs the project's own code holds no key.
        if "container" in job:
            assert granted == {}


def test_no_checkout_leaves_its_key_behind():
    checkouts = [s for s in STEPS if "actions/checkout" in s.get("uses", "")]
    assert checkouts
    for step in checkouts:
        assert step["with"]["persist-credentials"] is False


def test_every_job_ends_by_itself():
    assert all(0 < job["timeout-minutes"] <= 300 for job in JOBS)


def test_no_workflow_runs_what_a_stranger_wrote_into_a_title():
    assert not [step for step in STEPS if "${{" in step.get("run", "")]
    assert not [
        text for text in TEXTS.values() if "pull_request_target" in text
    ]


def test_what_a_tag_publishes_is_what_a_release_makes():
    publish = WORKFLOWS["publish"]
    # YAML reads the word on as True.
    assert publish[True] == {"push": {"tags": ["v*"]}}
    steps = publish["jobs"]["release"]["steps"]
    made = next(s for s in steps if s.get("run") == ".ci/run release colab")
    assert made["env"]["REPO"] == "${{ github.repository }}"
    pushed = str(publish["jobs"]["notebooks"]["steps"])
    assert f'"$HOME_OF_ALL" {colab.BRANCH}\\n' in pushed
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "\nrelease: " in makefile
    assert "\ncolab: " in makefile


def test_no_button_opens_what_is_not_there_yet():
    jobs = WORKFLOWS["publish"]["jobs"]
    order = [None, *list(jobs)[:-1]]
    assert [job.get("needs") for job in jobs.values()] == order
    assert list(jobs) == ["release", "notebooks", "pages", "assets"]
