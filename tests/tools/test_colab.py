"""The published notebooks: they install the course, and nothing else is new.

`make journey` walks through each of them in an environment of its own. Here one
of them does, with packages that it borrows instead of fetching them.
"""

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import colab
import journey
import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / "book").glob("*.ipynb"))
HOME, COMMIT = "owner/name", "0123456789abcdef0123456789abcdef01234567"
INSTALL = f"%pip install course@{COMMIT}"
# The quickest.
SHORT = "07_blocks"


def git(root, *arguments):
    subprocess.run(["git", "-C", root, *arguments], check=True)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one commit, two notebooks, and no public home."""
    monkeypatch.delenv("REPO", raising=False)
    for key in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{key}_NAME", "A")
        monkeypatch.setenv(f"GIT_{key}_EMAIL", "a@example.org")
    root = tmp_path / "course"
    (root / "book").mkdir(parents=True)
    for path in PATHS[:2]:
        (root / "book" / path.name).write_bytes(path.read_bytes())
    (root / "companion").mkdir()
    (root / "companion" / "__init__.py").write_text('__version__ = "7.1"\n')
    git(tmp_path, "init", "--quiet", root)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=first")
    return root


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_nothing_but_the_install_cell_and_the_accelerator_is_new(path):
    stored = nbformat.read(path, as_version=4)
    published = colab.edition(stored, INSTALL)
    nbformat.validate(published)
    assert published.cells[0].source == INSTALL
    assert published.cells[1:] == stored.cells
    assert published.metadata == {**stored.metadata, "accelerator": "GPU"}
    assert (published.nbformat, published.nbformat_minor) == (
        stored.nbformat,
        stored.nbformat_minor,
    )
    assert "install" not in {cell.id for cell in stored.cells}


def test_every_notebook_is_published_and_the_last_time_s_are_gone(tmp_path):
    folder = tmp_path / "colab"
    folder.mkdir()
    (folder / "99_renamed.ipynb").write_text("{}")
    written = colab.publish(ROOT, folder, HOME, COMMIT)
    assert [path.name for path in written] == [path.name for path in PATHS]
    assert sorted(folder.iterdir()) == written
    assert list(tmp_path.iterdir()) == [folder]
    assert COMMIT in written[0].read_text(encoding="utf-8")


def test_a_crash_while_publishing_leaves_the_last_ones(tmp_path, monkeypatch):
    folder = tmp_path / "colab"
    before = colab.publish(ROOT, folder, HOME, COMMIT)[0].read_bytes()

    def crash(*_):
        raise OSError("no space left")

    monkeypatch.setattr(colab.nbformat, "writes", crash)
    with pytest.raises(OSError, match="no space left"):
        colab.publish(ROOT, folder, HOME, "another")
    assert (folder / PATHS[0].name).read_bytes() == before


def test_the_command_publishes_the_working_commit(
    checkout, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("REPO", HOME)
    folder = tmp_path / "colab"
    assert colab.main(checkout, folder) == 0
    commit = colab.working_commit(checkout)
    for path in folder.iterdir():
        first = nbformat.read(path, as_version=4).cells[0]
        assert (first.outputs, first.execution_count) == ([], None)
        command, *_, check = first.source.splitlines()[1:]
        assert command == (
            '%pip install -q "companion[book] @ '
            f'git+https://github.com/owner/name@{commit}"'
        )
        assert check.startswith('assert companion.__version__ == "7.1"')
    assert "2 notebooks that install owner/name@" in capsys.readouterr().out


@pytest.mark.bad_input
def test_without_a_public_home_nothing_is_written(checkout, tmp_path, capsys):
    folder = tmp_path / "colab"
    assert colab.main(checkout, folder) == 1
    assert not folder.exists()
    assert "make colab REPO=owner/name" in capsys.readouterr().out


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["01_rnn.ipynb", "new.py"])
def test_what_is_not_committed_is_refused_and_named(
    checkout, tmp_path, monkeypatch, capsys, name
):
    monkeypatch.setenv("REPO", HOME)
    (checkout / "book" / name).write_text("not what was committed")
    folder = tmp_path / "colab"
    assert colab.main(checkout, folder) == 1
    assert not folder.exists()
    assert f"book/{name}" in capsys.readouterr().out


@pytest.mark.bad_input
def test_a_folder_without_a_commit_is_refused(tmp_path):
    git(tmp_path, "init", "--quiet", tmp_path)
    with pytest.raises(ValueError, match="git says: fatal: Needed a single"):
        colab.working_commit(tmp_path)


@pytest.mark.parametrize(
    "remote",
    [
        "https://github.com/owner/name",
        "https://github.com/owner/name.git",
        "https://somebody:secret@github.com/owner/name/",
        "git@github.com:owner/name.git",
        "ssh://git@github.com/owner/name.git",
    ],
)
def test_an_origin_on_github_is_the_public_home(checkout, remote):
    git(checkout, "remote", "add", "origin", remote)
    assert colab.public_home(checkout, "") == HOME
    assert colab.public_home(checkout, "some/fork") == "some/fork"


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "remote",
    ["owner/name", "https://example.org/github.com/owner/name", "../name.git"],
)
def test_an_origin_elsewhere_is_none(checkout, remote):
    git(checkout, "remote", "add", "origin", remote)
    with pytest.raises(ValueError, match="no public home"):
        colab.public_home(checkout, "")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "repo", ["name", "a/b/c", "https://github.com/a/b", 'a/b"', "a/b\n", "../b"]
)
def test_a_home_that_is_not_owner_and_name_is_refused(repo):
    with pytest.raises(ValueError, match="REPO: expected owner/name, got"):
        colab.named(repo)


@pytest.fixture(scope="module")
def small_book(tmp_path_factory):
    """Build a book of two notebooks and a page; return every Colab address."""
    source = tmp_path_factory.mktemp("source")
    cell = nbformat.v4.new_markdown_cell("# A chapter")
    (source / "book").mkdir()
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    for name in ("01_first", "02_second"):
        notebook = nbformat.v4.new_notebook(cells=[cell], metadata=kernel)
        nbformat.write(notebook, source / "book" / f"{name}.ipynb")
    (source / "book" / "index.md").write_text(
        "# A page\n\n```{toctree}\n01_first\n02_second\n```\n"
    )

    def build(**surroundings):
        options = {
            "extensions": "myst_nb,sphinx_book_theme,colab_button",
            "html_theme": "sphinx_book_theme",
            "nb_execution_mode": "off",
        }
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-q", "-C"]
            + [f"-D{key}={value}" for key, value in options.items()]
            + [source / "book", source / "_build"],
            env={key: os.environ[key] for key in os.environ if key != "REPO"}
            | {"PYTHONPATH": str(ROOT / "book" / "_ext")}
            | surroundings,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return done.stderr
        return {
            address
            for page in (source / "_build").glob("*.html")
            for address in re.findall(
                r'https://colab[^"]*', page.read_text(encoding="utf-8")
            )
        }

    (source / "companion").mkdir()
    (source / "companion" / "__init__.py").write_text('__version__ = "7.1"\n')
    build.source = source
    return build


def test_a_button_opens_a_file_that_is_written(small_book, tmp_path):
    assert small_book() == set()
    written = colab.publish(small_book.source, tmp_path / "c", HOME, COMMIT)
    # The same folder again: what changes is the public home alone.
    assert small_book(REPO=HOME) == {
        f"https://colab.research.google.com/github/owner/name/blob/colab/{name}"
        for name in (path.name for path in written)
    }
    assert "expected owner/name" in small_book(REPO="https://example.org")


def test_a_shallow_checkout_has_a_whole_stand_in(checkout, tmp_path):
    shallow, home = tmp_path / "shallow", tmp_path / "home"
    git(checkout, "commit", "--quiet", "--allow-empty", "--message=second")
    git(
        tmp_path, "clone", "--quiet", "--depth=1", f"file://{checkout}", shallow
    )
    assert (shallow / ".git" / "shallow").exists()
    commit = journey.stand_in(shallow, home)
    assert commit == colab.working_commit(home)
    assert not (home / ".git" / "shallow").exists()
    for path in (checkout / "book").iterdir():
        there = home / "book" / path.name
        assert there.read_bytes() == path.read_bytes()


@pytest.mark.bad_input
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
    (notebook,) = (path for path in editions if path.stem == SHORT)
    interpreter = borrowed(tmp_path / "runtime")
    without = [interpreter, "-c", "import torch, companion"]
    done = subprocess.run(without, cwd=desk, capture_output=True, text=True)
    assert "No module named 'companion'" in done.stderr
    around = journey.surroundings(home, tmp_path / "jupyter", interpreter)
    # No network: nothing but the clone is fetched.
    around |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    done = journey.walk(notebook.rename(desk / notebook.name), around)
    assert done.returncode == 0, done.stdout
    assert list(desk.iterdir()) == [desk / notebook.name]
