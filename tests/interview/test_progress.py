"""What is remembered of a learner's answers, and when it is asked again."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fsrs import Rating
from interview.small_bank import question

from companion.interview.model import progress as progress_module
from companion.interview.model.progress import (
    VERSION,
    Answer,
    Interview,
    Progress,
    place,
)
from companion.interview.model.review import (
    SCHEDULER,
    cards,
    due,
    next_due,
    rating,
)

pytestmark = pytest.mark.once

LONG = "rnn-" + 5000 * "x"
"""A name that needs pages of its own in the file."""

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
WRITES = """
import sys
from pathlib import Path
from companion.interview.model.progress import Answer, Progress
progress = Progress(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    progress.add(Answer(f"rnn-{number}", float(number), 1.0, "en", "quiz"))
    print(number, flush=True)
"""


def answer(name="rnn-a", at=NOON, mark=1.0):
    return Answer(name, at.timestamp(), mark, "both", "quiz")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "not yet there" / "progress.sqlite3"


@pytest.fixture
def open_file(path):
    """Opens the file, and closes it after the test."""
    opened = []

    def one():
        opened.append(Progress(path))
        return opened[-1]

    yield one
    for each in opened:
        each.close()


def writer(path, rows):
    return subprocess.Popen(
        [sys.executable, "-c", WRITES, str(path), str(rows)],
        stdout=subprocess.PIPE,
        text=True,
    )


# The file


def test_an_answer_is_still_there_the_next_time(open_file, path):
    given = [answer(mark=mark) for mark in (0.0, 1 / 3, 1.0)]
    first = open_file()
    for each in given:
        first.add(each)
    first.close()
    again = open_file()
    assert again.answers() == given
    assert again.kept is None
    assert again.path == path


def test_answers_come_in_the_order_they_were_given(open_file):
    """Also when the clock was put back between them."""
    file = open_file()
    given = [answer("rnn-b"), answer("rnn-a", NOON - timedelta(7))]
    for each in given:
        file.add(each)
    assert file.answers() == given


def test_it_lies_where_the_platform_keeps_a_users_data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert place().name == "progress.sqlite3"
    assert place().parent.name == "companion"
    if sys.platform == "linux":
        assert place().is_relative_to(tmp_path)


def test_two_processes_at_once_lose_no_answer(path, open_file):
    both = [writer(path, 31), writer(path, 31)]
    for each in both:
        each.communicate(timeout=60)
        assert each.returncode == 0
    at = [each.at for each in open_file().answers()]
    assert sorted(at) == sorted(2 * [float(n) for n in range(31)])


@pytest.mark.parametrize("lines", [1, 5, 17])
def test_a_killed_process_has_kept_every_answer_it_reported(
    path, open_file, lines
):
    process = writer(path, 1_000_000)
    for _ in range(lines):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    reported = lines + len(process.stdout.readlines())
    process.wait(timeout=60)
    process.stdout.close()
    file = open_file()
    kept = [each.question for each in file.answers()]
    assert len(kept) in (reported, reported + 1)
    assert kept == [f"rnn-{number}" for number in range(len(kept))]
    assert file.kept is None
    file.add(answer())


# A file that is damaged, or not ours


def damaged(path, how):
    path.parent.mkdir(parents=True, exist_ok=True)
    if how == "text":
        path.write_text("my notes, not a database\n" * 50)
        return
    with closing(Progress(path)) as file:
        for _ in range(5):
            file.add(answer(LONG))
    data = bytearray(path.read_bytes())
    if how == "cut":
        data = data[: len(data) // 2]
    else:
        data[4096:4200] = os.urandom(104)
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["text", "cut", "overwritten"])
def test_a_damaged_file_is_kept_aside_and_never_overwritten(
    path, open_file, how
):
    damaged(path, how)
    before = path.read_bytes()
    file = open_file()
    assert file.kept != path
    assert file.kept.read_bytes() == before
    assert "damaged-20" in file.kept.name
    assert file.answers() == []
    file.add(answer())
    assert open_file().kept is None


def test_two_damaged_files_are_both_kept(path, open_file):
    kept = []
    for word in ("one", "two"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(word * 500)
        file = open_file()
        file.close()
        kept.append(file.kept)
    assert [each.read_text()[:3] for each in kept] == ["one", "two"]


def test_the_journal_of_a_damaged_file_goes_with_it(path, open_file):
    """A journal left behind would be played into the new file."""
    damaged(path, "text")
    journal = Path(f"{path}-journal")
    journal.write_bytes(b"")
    kept = open_file().kept
    assert not journal.exists()
    assert Path(f"{kept}-journal").exists()


@pytest.mark.bad_input
def test_a_file_of_a_newer_version_is_refused_and_left_alone(path, open_file):
    open_file().close()
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"version 1 or older, got 2 in .*newer"
    ):
        Progress(path)
    assert path.read_bytes() == before


@pytest.mark.bad_input
def test_the_database_of_another_program_is_refused_and_left_alone(path):
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE recipes (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"another program\. It was left"):
        Progress(path)
    assert path.read_bytes() == before


@pytest.mark.bad_input
def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Progress(tmp_path / "file" / "progress.sqlite3")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("pragma", "said"),
    [
        ("max_page_count = 1", "database or disk is full"),
        ("query_only = 1", "attempt to write a readonly database"),
    ],
)
def test_what_cannot_be_written_is_told_and_the_rest_stays(
    open_file, path, pragma, said
):
    file = open_file()
    file.add(answer("rnn-before"))
    file._connection.execute(f"PRAGMA {pragma}")
    with pytest.raises(OSError, match=f"progress: .*sqlite3: {said}"):
        file.add(answer(LONG))
    assert open_file().answers() == [answer("rnn-before")]


@pytest.mark.bad_input
def test_a_file_that_somebody_else_holds_is_told(open_file, path, monkeypatch):
    monkeypatch.setattr(progress_module, "PATIENCE", 0.05)
    file = open_file()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OSError, match="database is locked"):
            file.add(answer())
        with pytest.raises(OSError, match="locked"):
            Progress(path)
    assert path.exists()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "wrong", [{"mark": 1.5}, {"mark": -0.1}, {"at": NOON.replace(year=9999)}]
)
def test_a_row_that_makes_no_sense_is_not_written(open_file, wrong):
    with pytest.raises(OSError, match="CHECK constraint failed"):
        open_file().add(answer(**wrong))


# The interview that is not over


def talk(*marks, names=("rnn-a", "rnn-b", "rnn-c")):
    given = dict(zip(names, marks, strict=False))
    took = dict.fromkeys(given, 7.5)
    return Interview(names, given, took, 31.0, NOON.timestamp())


def test_an_interview_waits_with_the_answers_given_in_it(open_file):
    first = open_file()
    assert first.waiting() is None
    for interview in (talk(1.0), talk(1.0, 0.25)):
        first.add(answer(), interview)
        assert open_file().waiting() == interview
    first.add(answer())
    assert first.waiting() == talk(1.0, 0.25)
    other = talk(0.0, names=("masks-z", "masks-a"))
    first.add(answer(), other)
    assert first.waiting() == other
    first.finish()
    assert open_file().waiting() is None
    assert len(first.answers()) == 4


@pytest.mark.bad_input
def test_an_interview_and_its_answer_are_written_together_or_not(open_file):
    file = open_file()
    file.add(answer(), talk(1.0))
    with pytest.raises(OSError, match="CHECK constraint failed"):
        file.add(answer("rnn-b"), talk(1.0, 1.5))
    assert file.answers() == [answer()]
    assert file.waiting() == talk(1.0)


def test_a_file_that_knows_no_interviews_gets_a_place_for_them(open_file, path):
    file = open_file()
    file.add(answer())
    file._connection.execute("DROP TABLE interview")
    file.close()
    file = open_file()
    assert file.waiting() is None
    assert file.answers() == [answer()]
    file.add(answer("rnn-b"), talk(0.5))
    assert file.waiting() == talk(0.5)


# Review


def test_a_right_answer_comes_back_after_days_then_weeks_then_months():
    """FSRS's own intervals, with its default parameters."""
    answers, gaps, at = [], [], NOON
    for _ in range(4):
        answers.append(answer(at=at))
        then = cards(answers)["rnn-a"].due
        gaps.append((then - at).days)
        at = then
    assert gaps == [2, 11, 46, 163]


def test_a_wrong_answer_comes_back_tomorrow():
    wrong = [answer(mark=0.0)]
    assert cards(wrong)["rnn-a"].due == NOON + timedelta(days=1)


@pytest.mark.parametrize(
    ("mark", "wanted"),
    [
        (0.0, Rating.Again),
        (0.49, Rating.Again),
        (0.5, Rating.Hard),
        (0.74, Rating.Hard),
        (0.75, Rating.Good),
        (1.0, Rating.Good),
    ],
)
def test_a_mark_is_a_rating(mark, wanted):
    assert rating(mark) is wanted


def test_review_is_what_is_due_today_the_longest_waiting_first():
    bank = [question(name, "rnn") for name in "abcd"]
    answers = [
        answer("rnn-a", NOON - timedelta(days=1), 0.0),
        answer("rnn-b", NOON - timedelta(days=9), 0.0),
        answer("rnn-c", NOON, 1.0),
        answer("rnn-gone", NOON - timedelta(days=9), 0.0),
    ]
    found = due(bank, answers, NOON)
    assert [each.id for each in found] == ["rnn-b", "rnn-a"]
    assert next_due(bank, answers, NOON) == NOON - timedelta(days=8)
    assert next_due(bank, [], NOON) is None


def test_an_answer_of_a_clock_that_was_ahead_is_due_and_then_forgotten():
    bank = [question(name, "rnn") for name in "ab"]
    ahead = answer("rnn-a", NOON.replace(year=2099))
    early = answer("rnn-b", NOON - timedelta(days=9), 0.0)
    assert [q.id for q in due(bank, [ahead, early], NOON)] == ["rnn-b", "rnn-a"]
    assert next_due(bank, [ahead], NOON) is None
    # The clock was put right, and the question is answered again.
    both = [ahead, answer("rnn-a", NOON, 0.0)]
    assert due(bank, both, NOON) == []
    assert next_due(bank, both, NOON) == NOON + timedelta(days=1)
    assert due(bank, both, NOON + timedelta(days=1))


def test_a_clock_that_was_put_back_does_not_disturb_what_is_due():
    given = [answer(at=NOON - timedelta(days=days)) for days in (3, 9, 1)]
    assert cards(given) == cards(sorted(given, key=lambda each: each.at))


def test_what_is_due_in_the_evening_can_be_answered_in_the_morning():
    today = datetime.now().astimezone().replace(hour=6)
    evening = today.replace(hour=22) - timedelta(days=1)
    answers = [answer("rnn-a", evening, 0.0)]
    assert due([question("a", "rnn")], answers, today)
    assert not due([question("a", "rnn")], answers, today - timedelta(days=1))


def test_the_same_answers_are_due_at_the_same_time_every_time():
    answers = [
        answer(f"rnn-{n}", NOON + timedelta(days=n), n / 30) for n in range(31)
    ]
    assert cards(answers) == cards(answers)
    assert not SCHEDULER.enable_fuzzing
