"""``python -m companion grade``: what it collects, runs, writes and refuses."""

import csv
import io
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from support.harness import DESKTOP, PHONE

from companion.commands import grade as command
from companion.commands import main
from companion.commands.grade import pages, process
from companion.commands.grade.exercises import (
    Exercise,
    exercises_of,
    notebooks_of,
    read_notebook,
    tagged,
)
from companion.commands.grade.pages import Graded, write
from companion.commands.grade.process import Result, judge
from companion.commands.grade.submission import Cell, Submission, collect, read
from companion.commands.handout import handout

pytestmark = pytest.mark.once

UPSIDE_DOWN = """
def my_attention(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -float("inf"))
    return scores.softmax(-1) @ v
"""


FOUND = {"headline": "x", "held": [], "failed": [], "untried": 0}


def answers(chapter):
    """The book's solutions under the names that the exercises ask for."""
    cells = [
        cell
        for page in map(read_notebook, notebooks_of(chapter))
        for cell in page.cells
        if tagged(cell, "solution")
    ]
    return {
        exercise.name: re.sub(
            r"def \w+_solution", f"def {exercise.name}", cell.source
        ).partition("\n\n\nassert")[0]
        for exercise, cell in zip(exercises_of(chapter), cells, strict=True)
    }


def filled(chapter, *more, **written):
    """A handout as a learner hands it in: with answers, and other cells."""
    made = handout(chapter)
    for cell in made.cells:
        if tagged(cell, "exercise"):
            name = re.match(r"def (\w+)", cell.source)[1]
            cell.source = written.get(name, cell.source)
    made.cells += map(new_code_cell, more)
    return made


def hand_in(path, notebook):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "handed in"
    made.mkdir()
    return made


# What is collected.


def test_a_learner_is_the_outermost_folder_or_the_file(folder):
    for name in (
        "Ada.ipynb",
        "Bob Bobson/attempt 1/mine.IPYNB",
        ".ipynb_checkpoints/Ada-checkpoint.ipynb",
        "Ada/.ipynb_checkpoints/x.ipynb",
        "__MACOSX/Ada.ipynb",
        "猫.ipynb",
    ):
        hand_in(folder / name, handout("masks"))
    (folder / "Carl").mkdir()
    (folder / "Carl" / "masks.py").write_text("mine = 3")
    found, notes = collect(folder)
    assert [(one.who, one.chapter, one.fault) for one in found] == [
        # The folder of that name holds nothing but a checkpoint.
        ("Ada", "", "There is no notebook in this folder."),
        ("Ada", "masks", ""),
        ("Bob Bobson", "masks", ""),
        ("Carl", "", "There is no notebook in this folder."),
        ("猫", "masks", ""),
    ]
    path = folder / "Carl" / "masks.py"
    assert notes == [f"{path}: this is no notebook, and is not graded"]


def test_two_notebooks_of_a_learner_are_both_kept_and_told_of(folder):
    for name, chapter in (("1", "masks"), ("2", "masks"), ("3", "rnn")):
        hand_in(folder / "Ada" / f"{name}.ipynb", handout(chapter))
    found, notes = collect(folder)
    assert [one.path.name for one in found] == ["1.ipynb", "2.ipynb", "3.ipynb"]
    assert notes == ["Ada: 2 notebooks of one chapter; each is graded"]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"cells": [', "It cannot be read as a notebook: Notebook does not"),
        (b"", "The file is empty."),
        (b" \n", "The file is empty."),
        (b"[1]", "It cannot be read as a notebook: "),
        (b"{}", "It cannot be read as a notebook: "),
        (b"[" * 100_000, "It cannot be read as a notebook: "),
        ('{"cells": "é"}'.encode("latin-1"), "It is not UTF-8 text."),
        (b'{"nbformat": 4, "cells": [3]}', "It cannot be read as a notebook: "),
    ],
)
def test_a_broken_notebook_is_told_of_in_one_line(tmp_path, data, says):
    path = tmp_path / "x.ipynb"
    path.write_bytes(data)
    fault = read(path, "Ada").fault
    assert fault.startswith(says)
    assert "\n" not in fault
    assert len(fault) < 200


def test_a_notebook_of_endless_outputs_is_not_read(tmp_path):
    path = tmp_path / "x.ipynb"
    with path.open("wb") as file:
        file.truncate(2**40)  # A terabyte of nothing takes no room.
    assert "larger than 64 MiB: clear its outputs" in read(path, "Ada").fault


def test_magics_become_python_and_all_else_stays_as_it_is(tmp_path):
    lines = ["%matplotlib inline\nx = 3", "!ls", "x = 1  # %", "x = ("]
    made = new_notebook(cells=[new_markdown_cell("# 1")])
    made.cells += map(new_code_cell, lines)
    found = read(hand_in(tmp_path / "x.ipynb", made), "Ada")
    numbers, (first, second, *rest) = zip(
        *((cell.number, cell.source) for cell in found.cells), strict=True
    )
    assert numbers == (2, 3, 4, 5)
    assert "run_line_magic('matplotlib', 'inline')\nx = 3" in first
    assert second.startswith("get_ipython().system('ls')")
    assert [text.strip() for text in rest] == lines[2:]


def test_the_chapter_is_found_by_the_names_if_the_handout_says_none(tmp_path):
    made = filled("seq2seq")
    del made.metadata["companion"]
    one = read(hand_in(tmp_path / "x.ipynb", made), "Ada")
    assert command._chapter_of(one) == "seq2seq"
    other = new_notebook(cells=[new_code_cell("def mine(x): ...")])
    one = read(hand_in(tmp_path / "y.ipynb", other), "Ada")
    fault = command.grade(one, 4).fault
    assert fault.startswith("No chapter asks for a function that is in it.")


# What is run.


def test_of_a_notebook_nothing_is_lost_whatever_is_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "LIMIT", 8)
    made = filled(
        "attention",
        "while True: print('x' * 1000)",
        "import os\nopen('left behind', 'w').close()\n%time 1\n!ls",
        "answer = undefined",
        "raise SystemExit('\x1b[2J')",
        my_attention="",  # An empty cell.
        my_masked_softmax="def my_masked_softmax(scores, mask):\n"
        "    return bytearray(2**32)",
        my_softmax="def my_softmax(scores, dim):\n    os._exit(0)",
    )
    misnamed = answers("attention")["my_attention"].replace("my_", "mi_")
    made.cells.append(new_code_cell(misnamed))
    path = hand_in(tmp_path / "x.ipynb", made)
    monkeypatch.chdir(tmp_path)
    verdict = judge(read(path, "Ada"), exercises_of("attention"), 1)
    named, crashed, greedy = verdict.results
    says = "There is no function `my_attention` in the notebook. Is it `mi_att"
    assert named.message.startswith(says)
    assert crashed.message.startswith("Its process ended before there was a")
    assert "raised MemoryError in line 2" in greedy.message
    assert greedy.message.endswith("take 1 GiB; `--memory 2` allows more.")
    assert [r.score for r in verdict.results] == [
        *("not tried", "not tried", "0 of 17")
    ]
    loop, name, end = verdict.remarks.values()
    assert "was left out. It had not come back after 8 seconds" in loop
    assert "raised NameError in line 1, `answer = undefined`: name 'un" in name
    assert end.endswith(": [2J.")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ipynb"]


@pytest.mark.parametrize(
    "message",
    [
        {"at": "my_causal_mask", "found": FOUND | {"failed": [3]}},
        {"at": "my_causal_mask", "found": FOUND | {"failed": [{}]}},
        {"at": "nobody asked", "found": FOUND},
        {"at": "nobody asked", "missing": []},
        {"at": [3], "raised": 5},
    ],
)
def test_a_message_that_is_none_costs_its_sender_alone(
    tmp_path, monkeypatch, message
):
    """The code of a learner is in the process that sends."""

    class Forged(process.IsolatedProcess):
        def __enter__(self):
            return self

        __exit__ = begin = lambda *_: None

        def receive(self, seconds):
            return message

    monkeypatch.setattr(process, "IsolatedProcess", Forged)
    monkeypatch.setattr(process, "ALTOGETHER", 0.05)
    path = hand_in(tmp_path / "x.ipynb", handout("masks"))
    verdict = judge(read(path, "Ada"), exercises_of("masks"), 4)
    assert [result.passed for result in verdict.results] == [False] * 3


def test_the_time_of_a_notebook_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "ALTOGETHER", -1)
    path = hand_in(tmp_path / "x.ipynb", handout("masks"))
    verdict = judge(read(path, "Ada"), exercises_of("masks"), 4)
    assert {result.message for result in verdict.results} == {
        "It was not tried: the notebook had taken -1 seconds."
    }


def test_a_class_is_graded_by_the_command(folder, tmp_path):
    bad = "def my_softmax(scores, dim):\n    raise ValueError('<img src=x>')"
    wrong = {"my_attention": UPSIDE_DOWN, "my_softmax": bad}
    attention = answers("attention") | wrong
    hand_in(folder / "Ada.ipynb", filled("attention", **attention))
    tests = answers("clinic")
    hand_in(folder / "Bob" / "mine.ipynb", filled("clinic", **tests))
    (folder / "Carl.ipynb").write_text("{")
    (folder / "Dora.zip").write_bytes(b"PK")
    done = subprocess.run(
        [sys.executable, "-m", "companion", "grade", folder],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    note = "Dora.zip: this is no notebook, and is not graded"
    assert (done.returncode, done.stderr) == (0, f"note: {folder}/{note}\n")
    assert note in (tmp_path / "grades" / "index.html").read_text("utf-8")
    out = done.stdout
    assert "  ✗ my_attention: 17 of 23. Row 0 sees key 1, which" in out
    assert "Bob: mine.ipynb, clinic\n  ✓ my_loss_test: " in out
    assert out.endswith("index.html, grades/table.csv: 3 learners\n")
    text = (tmp_path / "grades" / "table.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    held = [(r["who"], r["function"], r["held"], r["contracts"]) for r in rows]
    assert held[:3] == [
        ("Ada", "my_attention", "17", "23"),
        ("Ada", "my_softmax", "0", "13"),
        ("Ada", "my_masked_softmax", "17", "17"),
    ]
    assert rows[0]["message"].startswith("Row 0 sees key 1, which is in its")
    assert [function for _, function, _, _ in held[3:8]] == [*tests]
    assert all(int(got) == int(of) > 3 for _, _, got, of in held[3:8])
    assert held[8:] == [("Carl", "", "", "")]
    assert "cannot be read as a notebook" in rows[8]["message"]
    learners = tmp_path / "grades" / "learners"
    assert sorted(path.stem for path in learners.iterdir()) == [
        *("Ada", "Bob", "Carl")
    ]
    text = (learners / "Ada.html").read_text("utf-8")
    assert "&lt;img src=x&gt;" in text
    assert "img" not in Tags(text).found


# What is written.

EVIL = "<script>alert(1)</script>&`<img src=x>`\x1b[2J\"'"


def everything_evil():
    exercise = Exercise("my_softmax", "1. Softmax", "softmax")
    failed = [{"names": [EVIL], "message": EVIL}]
    result = Result(exercise, EVIL, [EVIL], failed, 1, EVIL)
    one = Submission(EVIL.replace("/", "∕"), Path(EVIL))
    return [
        Graded(one, "attention", [result], {1: EVIL}),
        Graded(Submission(EVIL, Path(EVIL)), fault=EVIL),
    ]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.found |= {name for name, _ in attrs if name.startswith("on")}


def test_whatever_a_learner_wrote_is_text_on_every_page(tmp_path):
    write(tmp_path, everything_evil(), [EVIL])
    files = list(tmp_path.rglob("*.html"))
    assert len(files) == 3
    for path in files:
        text = path.read_text("utf-8")
        assert not {"script", "img"} & Tags(text).found
        assert "alert(1)" in text
        assert "\x1b" not in text


def test_every_learner_has_a_file_within_the_folder(tmp_path):
    names = ["Ada", "ada", "ADA!", "../../etc", "..", "猫", "a/b", "x" * 300]
    graded = [Graded(Submission(n, Path("x")), fault="None.") for n in names]
    folder = tmp_path / "grades"
    folder.mkdir()
    assert write(folder, graded) == len(names)
    assert [path.name for path in tmp_path.iterdir()] == ["grades"]
    files = [path.name for path in (folder / "learners").iterdir()]
    assert len({name.casefold() for name in files}) == len(names)
    index = (folder / "index.html").read_text("utf-8")
    linked = re.findall(r'href="learners/([^"]+)"', index)
    assert len(linked) == len(names)


def test_a_spreadsheet_computes_nothing(tmp_path):
    names = ['=HYPERLINK("x")', "+1", "-1", "@a", "Ada"]
    graded = [Graded(Submission(n, Path("x")), fault="=1") for n in names]
    write(tmp_path, graded)
    data = (tmp_path / "table.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbfwho,notebook,")
    _, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig")))
    assert [row[0] for row in rows] == [f"'{n}" for n in names[:4]] + ["Ada"]
    assert {row[-1] for row in rows} == {"'=1"}


def test_a_risk_passes_unless_the_exercise_is_strict(tmp_path):
    head, body = (
        "def my_padding_mask(tokens, pad):",
        "(tokens != 0)[:, None, None]",
    )
    code = f"{head}\n    return {body}"
    one = Submission("Ada", Path("x"), cells=(Cell(1, code),))
    for strict, sign in ((False, "!"), (True, "✗")):
        exercise = Exercise(
            "my_padding_mask", "Pads", "padding_mask", strict=strict
        )
        [result] = judge(one, [exercise], 4).results
        assert result.passed == (not strict)
        assert result.level == ("fault" if strict else "risk")
        shown, _, _ = command._line(result)
        assert shown.startswith(f"{sign} my_padding_mask: ")
        folder = tmp_path / result.level
        folder.mkdir()
        write(folder, [Graded(one, "masks", [result])])
        for page in ("index.html", "learners/Ada.html"):
            assert f"{sign} " in (folder / page).read_text("utf-8")
        assert f",{result.level}," in (folder / "table.csv").read_text("utf-8")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESKTOP])
def test_the_pages_fit_a_screen_in_both_themes(tmp_path, opened, size, scheme):
    long = Submission("x" * 90, Path("y" * 90))
    write(tmp_path, [*everything_evil(), Graded(long, fault="z" * 300)])
    paper = set()
    for path in tmp_path.rglob("*.html"):
        page = opened(path, size=size, scripts=True, color_scheme=scheme).page
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide == size["width"]
        paper.add(
            page.evaluate("getComputedStyle(document.body).backgroundColor")
        )
    [colour] = paper
    light = sum(map(int, re.findall(r"\d+", colour))) > 3 * 128
    assert light == (scheme == "light")


# What is refused, and what survives.


@pytest.fixture
def handed_in(folder):
    for name in ("Ada", "Bob"):
        hand_in(folder / f"{name}.ipynb", handout("masks"))
    return folder


def no_process(monkeypatch, *outcomes):
    """Let ``grade`` return, or raise, one of ``outcomes`` after the other."""
    left = list(outcomes)

    def grade(submission, memory):
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return Graded(submission, fault=outcome)

    monkeypatch.setattr(command, "grade", grade)


def test_what_was_graded_before_control_c_is_written(
    handed_in, tmp_path, capsys, monkeypatch
):
    no_process(monkeypatch, "None.", KeyboardInterrupt())
    to = tmp_path / "grades"
    assert main(["grade", str(handed_in), "--to", str(to)]) == 130
    assert "1 notebooks are not graded" in capsys.readouterr().err
    assert "Ada,Ada.ipynb" in (to / "table.csv").read_text("utf-8")


@pytest.mark.bad_input
def test_grades_are_never_written_over_or_in_part(
    handed_in, tmp_path, capsys, monkeypatch
):
    no_process(monkeypatch, *["None."] * 9)
    to = tmp_path / "grades"
    words = ["grade", str(handed_in), "--to", str(to)]
    with monkeypatch.context() as patch:
        patch.setattr(pages, "_file_names", lambda names: {})
        with pytest.raises(KeyError):
            main(words)
    assert [path.name for path in tmp_path.iterdir()] == [handed_in.name]
    assert main(words) == 0
    before = (to / "table.csv").stat()
    capsys.readouterr()
    assert main(words) == 2
    says = "grades: it is there already; name a new folder with --to\n"
    assert capsys.readouterr().err.endswith(says)
    assert (to / "table.csv").stat() == before


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("nowhere", "nowhere: No such file or directory"),
        ("file", "file: Not a directory"),
        ("empty", "empty: there is no notebook in it, no *.ipynb"),
        ("full --memory 0", "memory: expected more than 0 GiB, got 0"),
    ],
)
def test_what_cannot_be_graded_is_refused_in_one_line(
    tmp_path, capsys, monkeypatch, words, says
):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("empty").mkdir()
    hand_in(Path("full/Ada.ipynb"), handout("masks"))
    assert main(["grade", *shlex.split(words)]) == 2
    assert capsys.readouterr().err == f"error: {says}\n"
    assert not Path("grades").exists()
    assert not list(tmp_path.glob(".grades*"))
