"""A learner's way: the published notebook in a runtime without the course.

`make journey` walks through each of them in an environment of its own. Here one
of them does, with packages that it borrows instead of fetching them.
"""

import re
import subprocess
import sysconfig
import venv
from pathlib import Path

import colab
import journey
import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns
from support.contents import ROOT

pytestmark = pytest.mark.once

# The cells of a chapter that are walked through: its imports, and a few more.
CELLS = 12


def test_a_shallow_checkout_has_a_whole_stand_in(checkout, tmp_path):
    shallow, home = tmp_path / "shallow", tmp_path / "home"
    colab.git(checkout, "commit", "--quiet", "--allow-empty", "--message=two")
    clone = "clone", "--quiet", "--depth=1", f"file://{checkout}", str(shallow)
    colab.git(tmp_path, *clone)
    assert (shallow / ".git" / "shallow").exists()
    commit = journey.stand_in(shallow, home)
    assert commit == colab.working_commit(home)
    assert not (home / ".git" / "shallow").exists()
    for path in (checkout / "book").iterdir():
        there = home / "book" / path.name
        assert there.read_bytes() == path.read_bytes()


def test_a_notebook_that_is_not_there_is_named(
    checkout, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(journey.colab, "ROOT", checkout)
    monkeypatch.setattr(journey, "FOLDER", tmp_path / "journey")
    assert journey.main(["book/99_nowhere.ipynb"]) == 1
    assert "no such notebook: 99_nowhere" in capsys.readouterr().out


def test_only_a_plot_may_be_drawn_in_other_bytes():
    (pair,) = get_sanitize_patterns(journey.DIFFERS.read_text("utf-8"))
    plot, score = (
        f'<figure class="companion companion-{kind}" id="{{}}">\n1</figure>'
        for kind in ("plot", "scores")
    )
    page = f"a {plot} b {score} c"
    one, two = (re.sub(*pair, page.format(*ids)) for ids in ("pq", "rq"))
    assert one == two
    assert score.format("q") in one
    assert re.sub(*pair, page.format("p", "r")) != one


def borrowed(folder):
    """An environment with this one's packages, but without the course."""
    venv.create(folder, with_pip=False)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    # What an editable install added to this one's path is not followed.
    own = sysconfig.get_path("purelib")
    (Path(packages) / "borrowed.pth").write_text(own)
    return folder / "bin" / "python"


@pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="no commit, so nothing to install"
)
def test_a_published_notebook_runs_where_the_course_is_not(tmp_path):
    home, desk = tmp_path / "home", tmp_path / "desk"
    commit = journey.stand_in(ROOT, home)
    editions = colab.publish(home, tmp_path / "editions", journey.HOME, commit)
    desk.mkdir()
    published = nbformat.read(editions[0], as_version=4)
    del published.cells[CELLS:]
    notebook = desk / editions[0].name
    nbformat.write(published, notebook)
    interpreter = borrowed(tmp_path / "runtime")
    around = journey.surroundings(home, tmp_path / "jupyter", interpreter)
    # No network: nothing but the clone is fetched.
    around |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    without = subprocess.run(
        [interpreter, "-c", "import torch, companion"],
        cwd=desk,
        env=around,
        capture_output=True,
        text=True,
    )
    assert "No module named 'companion'" in without.stderr
    done = journey.walk(notebook, around)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert list(desk.iterdir()) == [notebook]
