"""The published notebooks: they install the course, and nothing else is new."""

from copy import deepcopy

import colab
import nbformat
import plain_markdown
import pytest
from support.contents import ROOT

pytestmark = pytest.mark.once

PATHS = sorted((ROOT / "book").rglob("[0-9]*.ipynb"))
HOME, COMMIT = "owner/name", "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_code_is_stored_code_but_for_the_install_cell(path):
    """What becomes of the prose: test_plain_markdown.py."""
    stored = nbformat.read(path, as_version=4)
    published = colab.edition(deepcopy(stored), "%pip install course")
    nbformat.validate(published)
    assert published.cells[0].source == "%pip install course"
    for copy, cell in zip(published.cells[1:], stored.cells, strict=True):
        if "solution" in cell.metadata.get("tags", ()):
            assert copy.metadata.pop("cellView") == "form"
            copy.source = copy.source.removeprefix("# @title A solution\n")
        assert copy == cell
    published.metadata.pop("accelerator", None)
    assert published.metadata == stored.metadata
    for part in ("nbformat", "nbformat_minor"):
        assert published[part] == stored[part]
    assert "install" not in {cell.id for cell in stored.cells}


def test_a_gpu_is_asked_for_only_where_something_trains_on_it():
    asking = {
        path.relative_to(ROOT / "book").with_suffix("").as_posix()
        for path in PATHS
        if "accelerator"
        in colab.edition(nbformat.read(path, as_version=4), "").metadata
    }
    # Whole models, and the largest experiments with attention and heads.
    lessons = {"03_attention", "04_multihead"}
    both = {"08_transformer", "10_training", "11_decoding", "12_variants"}
    both |= {"14_clinic"}
    assert asking == lessons | both | {f"labs/{name}" for name in both}


def test_every_notebook_is_published_and_the_last_time_s_are_gone(
    tmp_path, monkeypatch
):
    folder = tmp_path / "colab"
    folder.mkdir()
    (folder / "99_renamed.ipynb").write_text("{}")
    editions = colab.publish(ROOT, folder, HOME, COMMIT)
    names = [path.relative_to(ROOT / "book") for path in PATHS]
    names += ["zh" / name for name in names]
    assert [path.relative_to(folder) for path in editions] == names
    assert sorted(p for p in folder.rglob("*") if p.is_file()) == editions
    assert list(tmp_path.iterdir()) == [folder]
    before = editions[0].read_bytes()
    assert COMMIT.encode() in before
    assert b"> **" in before
    assert not [path for path in editions if b":::" in path.read_bytes()]

    def crash(*_):
        raise OSError("no space left")

    # A crash leaves the last ones.
    monkeypatch.setattr(colab.nbformat, "writes", crash)
    with pytest.raises(OSError, match="no space left"):
        colab.publish(ROOT, folder, HOME, "another")
    assert editions[0].read_bytes() == before


def test_a_chinese_notebook_has_chinese_prose_and_leads_to_its_edition(
    tmp_path,
):
    colab.publish(ROOT, tmp_path / "colab", HOME, COMMIT)
    english, chinese = (
        nbformat.read(tmp_path / "colab" / folder / name, as_version=4).cells
        for folder in ("", "zh")
        for name in ["labs/05_positions.ipynb"]
    )
    assert [c.id for c in english] == [c.id for c in chinese]
    for one, other in zip(english, chinese, strict=True):
        assert one.source == other.source or one.cell_type == "markdown"
    prose = "\n".join(c.source for c in chinese if c.cell_type == "markdown")
    assert "# 05 · 位置编码：实验课" in prose
    assert "| offset | 间隔 | 键的位置减去查询的位置 |" in prose
    assert "<summary>提示 1</summary>" in prose
    home = "https://colab.research.google.com/github/owner/name/blob/colab/"
    assert f"]({home}zh/05_positions.ipynb#scrollTo=" in prose
    assert f"]({home}05" not in prose


def test_the_command_publishes_the_working_commit(
    checkout, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("REPO", HOME)
    folder = tmp_path / "colab"
    assert colab.main(checkout, folder) == 0
    commit = colab.working_commit(checkout)
    for path in folder.rglob("*.ipynb"):
        first = nbformat.read(path, as_version=4).cells[0]
        assert (first.outputs, first.execution_count) == ([], None)
        command, *_, check = first.source.splitlines()[1:]
        assert command == (
            '%pip install -q "companion[book] @ '
            f'git+https://github.com/owner/name@{commit}"'
        )
        assert check.startswith('assert companion.__version__ == "7.1"')
    assert "4 notebooks that install owner/name@" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("home", "changed", "message"),
    [
        ("", None, "make colab REPO=owner/name"),
        (HOME, "01_rnn.ipynb", "book/01_rnn.ipynb"),
        (HOME, "new.py", "book/new.py"),
    ],
    ids=["no home", "a changed file", "a new file"],
)
def test_nothing_is_written_without_a_home_or_a_commit(
    checkout, tmp_path, monkeypatch, capsys, home, changed, message
):
    monkeypatch.setenv("REPO", home)
    if changed:
        (checkout / "book" / changed).write_text("not what was committed")
    folder = tmp_path / "colab"
    assert colab.main(checkout, folder) == 1
    assert not folder.exists()
    assert message in capsys.readouterr().out


def test_a_folder_without_a_commit_is_refused(tmp_path):
    colab.git(tmp_path, "init", "--quiet")
    with pytest.raises(ValueError, match="git says: fatal: Needed a single"):
        colab.working_commit(tmp_path)


def test_an_origin_on_github_is_the_public_home_and_none_elsewhere(checkout):
    colab.git(checkout, "remote", "add", "origin", "")
    for remote in (
        "https://github.com/owner/name",
        "https://github.com/owner/name.git",
        "https://somebody:secret@github.com/owner/name/",
        "git@github.com:owner/name.git",
        "ssh://git@github.com/owner/name.git",
    ):
        colab.git(checkout, "remote", "set-url", "origin", remote)
        assert colab.public_home(checkout, "") == HOME
        assert colab.public_home(checkout, "some/fork") == "some/fork"
    for remote in (
        "owner/name",
        "https://example.org/github.com/owner/name",
        "../name.git",
    ):
        colab.git(checkout, "remote", "set-url", "origin", remote)
        with pytest.raises(ValueError, match="no public home"):
            colab.public_home(checkout, "")


@pytest.mark.parametrize(
    ("link", "to"),
    [
        (
            plain_markdown.Link("1.ipynb#so", "labs/1.ipynb", "so", "a-cell"),
            colab.address(HOME, "labs/1") + "#scrollTo=a-cell",
        ),
        (
            plain_markdown.Link("../2.ipynb", "2.ipynb", "", ""),
            colab.address(HOME, "2"),
        ),
        (
            plain_markdown.Link(
                "../notation.md#masks", "notation.md", "masks", ""
            ),
            "https://owner.github.io/name/book/notation.html#masks",
        ),
        (  # A page to look something up has no edition of its own.
            plain_markdown.Link(
                "../page.ipynb#so", "page.ipynb", "so", "a-cell"
            ),
            "https://owner.github.io/name/book/page.html#so",
        ),
    ],
)
def test_a_link_leads_to_a_published_notebook_or_page(link, to):
    assert colab.led(HOME, "", link) == to
    there = to.replace("/name/book/", "/name/zh/book/")
    there = there.replace("/blob/colab/", "/blob/colab/zh/")
    assert there != to
    assert colab.led(HOME, "zh/", link) == there


def test_what_cannot_be_translated_is_named_and_nothing_is_written(
    checkout, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("REPO", HOME)
    path = checkout / "book" / PATHS[0].name
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = "{ref}`somewhere`"
    nbformat.write(notebook, path)
    colab.git(checkout, "commit", "--quiet", "--all", "--message=second")
    assert colab.main(checkout, tmp_path / "colab") == 1
    assert [*tmp_path.iterdir()] == [checkout]
    assert "01_rnn.ipynb, cell rnn-title: the role" in capsys.readouterr().out


@pytest.mark.parametrize(
    "repo", ["name", "a/b/c", "https://github.com/a/b", 'a/b"', "a/b\n", "../b"]
)
def test_a_home_that_is_not_owner_and_name_is_refused(repo):
    with pytest.raises(ValueError, match="REPO: expected owner/name, got"):
        colab.named(repo)
