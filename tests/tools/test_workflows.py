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


FORMS = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
}


def test_there_is_a_form_for_a_mistake_a_false_alarm_and_a_bug():
    forms = {name: form for name, form in FORMS.items() if name != "config"}
    assert set(forms) == {"mistake", "false_alarm", "bug"}
    for form in forms.values():
        # What GitHub asks of a form, else it shows none.
        assert set(form) == {"name", "description", "labels", "body"}
        ids = [field["id"] for field in form["body"]]
        assert len(ids) == len(set(ids))
        for field in form["body"]:
            assert field["type"] in ("input", "textarea", "dropdown")
            assert field["attributes"]["label"]
            assert field["type"] != "dropdown" or field["attributes"]["options"]
    # A page's link may bring a text of its own.
    assert FORMS["config"] == {"blank_issues_enabled": True}


def test_what_is_pinned_is_watched():
    text = (ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8")
    watched = {
        each["package-ecosystem"]: each
        for each in yaml.safe_load(text)["updates"]
    }
    assert set(watched) == {"pip", "github-actions"}
    folder = ROOT / watched["pip"]["directory"].strip("/")
    assert list(folder.glob("*.txt"))
    # Single new versions would not fit each other: make pins raises them.
    assert watched["pip"]["open-pull-requests-limit"] == 0


def test_who_finds_a_hole_is_told_where_to_say_so():
    text = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
    assert "Report a vulnerability" in text
    assert "no sandbox" in text
