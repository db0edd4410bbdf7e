"""The interview in a terminal: quiz, mock, review and stats."""

import io
import itertools
import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from interview.small_bank import changed, every_kind, large, question
from rich.cells import cell_len

from companion import CHAPTERS, shell
from companion.commands import main
from companion.commands.check.file import parts_in, read
from companion.contracts import COMPONENTS
from companion.interview.model.bank import course, retired
from companion.interview.model.mock import pick
from companion.interview.model.progress import Answer, Progress, place
from companion.interview.model.words import CHAPTER
from companion.interview.terminal.ask import parse
from companion.interview.terminal.resume import ago
from companion.interview.terminal.screen import Screen
from companion.interview.terminal.session import Session
from companion.interview.terminal.text import paragraphs, wrapped

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
TYPED = shell.typed()
"""How a command of the package begins, where these tests run."""
ENOUGH = 99 * "\n"
ONE_OF_EACH = "\na\n\nb\n\n\n\n\n3\n"
"""What the four questions of ``small`` take."""


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    """No test may touch the answers of whoever runs it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def say(capsys, monkeypatch):
    """Runs a command with lines to type; returns code, stdout and stderr."""

    def run(line, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        code = main(line.split())
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def small(monkeypatch):
    """The bank is these four questions, one of each kind."""
    questions = every_kind()
    give(monkeypatch, questions)
    return questions


def give(monkeypatch, questions):
    for module in ("quiz", "mock", "review", "stats"):
        monkeypatch.setattr(
            f"companion.commands.{module}.course", lambda: questions
        )


def answers():
    with closing(Progress(place())) as file:
        return file.answers()


def marks():
    return {each.question: each.mark for each in answers()}


# Texts


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("$h_t^2 + x_{t-1}$", "hₜ² + xₜ₋₁"),
        ("$Q K^T / √d_k$", "Q Kᵀ / √dₖ"),
        ("$d_{model}$ and $W_Q$", "d_model and W_Q"),
        ("$10000^{-2i/d}$", "10000^(−2i/d)"),
        ("$e^{z_i - m}$", "e^(zᵢ − m)"),
        ("`a_t * b` is **not** $<$", "a_t * b is not <"),
    ],
)
def test_a_formula_can_be_read_as_text(markup, shown):
    (paragraph,) = paragraphs(markup)
    assert paragraph.plain.replace("\N{NO-BREAK SPACE}", " ") == shown


def test_stressed_words_and_code_are_styled_and_a_blank_line_is_a_paragraph():
    first, second = paragraphs("**one** two\n\n`three`")
    assert [str(span.style) for span in first.spans] == ["bold"]
    assert [str(span.style) for span in second.spans] == ["cyan"]


def lines(words, width):
    return [
        line.plain
        for paragraph in paragraphs(words)
        for line in wrapped(paragraph, width)
    ]


def test_chinese_is_wrapped_by_cells_and_no_line_begins_with_a_comma():
    assert lines("分子分母，同乘", 8) == ["分子分", "母，同乘"]
    assert lines("ab分子。", 6) == ["ab分", "子。"]
    assert lines("看（头）吧", 4) == ["看", "（头", "）吧"]
    assert lines("用 abc。", 5) == ["用", "abc。"]


def test_a_word_longer_than_a_line_is_cut():
    assert lines("a bcdefghij", 4) == ["a", "bcde", "fghi", "j"]


@pytest.mark.parametrize("width", [30, 40])
def test_every_text_of_the_bank_is_wrapped_and_nothing_of_it_is_lost(width):
    for each in course():
        for words in (each.prompt, each.answer):
            for paragraph in paragraphs(words.en) + paragraphs(words.zh):
                shown = wrapped(paragraph, width)
                assert max(cell_len(line.plain) for line in shown) <= width
                said = "".join(line.plain for line in shown)
                assert "".join(said.split()) == "".join(paragraph.plain.split())


@pytest.mark.parametrize("language", ["en", "zh", "both"])
def test_in_40_columns_no_line_of_any_question_is_longer(
    monkeypatch, capsys, language
):
    monkeypatch.setenv("COLUMNS", "40")
    # A command stays whole, however long the path of its interpreter.
    monkeypatch.setattr(sys, "orig_argv", ["python"])
    typed = {"open": "", "choice": "b", "numeric": "", "code": "3"}
    session = Session(Screen(language), "quiz")
    # Every fifth question of a kind: the texts are all tried above.
    for kind, line in typed.items():
        monkeypatch.setattr("builtins.input", lambda line=line: line)
        asked = [each for each in course() if each.kind == kind]
        assert session.ask_all(asked[::5])
    session.close()
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 500
    assert [line for line in printed if cell_len(line) > 40] == []


def test_beside_a_prompt_there_is_room_to_type(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("builtins.input", lambda: "")
    Screen("en").ask(48 * "a ", "")
    printed = capsys.readouterr().out
    assert printed.endswith("a > \n")
    assert max(map(cell_len, printed.splitlines())) <= 35


def test_the_language_chosen_is_the_one_shown(say, small):
    _, english, _ = say("quiz --lang en", ONE_OF_EACH)
    assert "What is code? in English." in english
    assert not re.search(r"[\u4e00-\u9fff]", english)
    place().unlink()
    _, chinese, _ = say("quiz --lang zh", ONE_OF_EACH)
    assert "What is code?的中文。" in chinese
    assert "in English" not in chinese
    _, both, _ = say("quiz", "\n")
    assert both.index("in English.") < both.index("的中文。")


def test_a_chapter_is_called_in_chinese_what_its_page_is_called():
    for number, word in enumerate(CHAPTERS, 1):
        path = ROOT / "book" / f"{number:02}_{word}.ipynb"
        cell = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
        title = "".join(cell["source"]).splitlines()[0]
        assert title.endswith(f" {CHAPTER[word].zh}"), title


def test_in_chinese_the_chapter_has_its_chinese_name(say, monkeypatch):
    give(monkeypatch, [question("a")])
    _, out, _ = say("quiz --lang zh", "\n\n")
    assert "1/1 | 注意力 | 初级 | 概念" in out
    # The book's headings are English.
    assert "出处\n注意力: A section" in out
    assert "attention:" not in out
    place().unlink()
    _, out, _ = say("mock --lang zh --minutes 3", "\n\nq\n")
    assert "弱项\n注意力, 概念" in out
    assert "· 注意力: A section" in out


# Answers


def test_an_open_question_is_revealed_step_by_step_and_marked_by_points(
    say, small
):
    code, out, _ = say("quiz --lang en", "\n1 3\n")
    assert code == 0
    steps = [
        *("What is open?", "Say it aloud", "1. Point 1", "4. Point 4"),
        *("Which did you say?", "50 %", "Short open", "Long open"),
        *("✗ The slip", "→ The reason", "· Next open"),
        *("attention: A section", "[test_x]", "Enter: next"),
    ]
    places = [out.index(step) for step in steps]
    assert places == sorted(places)
    assert marks() == {"attention-open": 0.5}


@pytest.mark.parametrize(
    ("typed", "mark"),
    [("", 0), ("a", 1), ("1,2,3", 0.75), ("４ 4", 0.25), ("9\nx\n2", 0.25)],
)
def test_points_are_ticked_by_their_numbers(say, small, typed, mark):
    _, out, _ = say("quiz --lang en", f"\n{typed}\n")
    assert marks() == {"attention-open": mark}
    assert out.count("Numbers from 1 to 4, please.") == 2 * ("x" in typed)


@pytest.mark.parametrize(
    ("typed", "mark"),
    [("b", 1), ("B)", 1), ("ｂ", 1), ("a", 0), ("", 0), ("z\nd\nb", 1)],
)
def test_a_choice_is_answered_by_a_letter_and_every_option_explained(
    say, monkeypatch, typed, mark
):
    give(monkeypatch, [question("choice", kind="choice")])
    _, out, _ = say("quiz --lang en", f"{typed}\n")
    assert marks() == {"attention-choice": mark}
    assert out.count("One of a, b, c, please.") == typed.count("\n")
    assert re.search(r"✗ a.*\n  Why A.*\n✓ b.*\n  Why B.*\n✗ c", out)
    assert ("✗ a (yours)" in out) == (typed == "a")


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        *(("0.25", 0.25), (" -1,024.5 ", -1024.5), ("−3", -3.0)),
        *(("590 592", 590_592.0), ("59 05", None), ("1 024.5", 1024.5)),
        *(("１２．５", 12.5), ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0)),
        *(("", None), ("1,02", None), ("nan", None), ("inf", None)),
        *(("1e999", None), ("1_000", None), ("0x10", None), ("٣", None)),
        *(("1/3", None), ("12 %", None)),
    ],
)
def test_a_number_is_read_as_the_page_reads_it(typed, number):
    assert parse(typed) == number


@pytest.mark.parametrize(
    ("typed", "mark", "told"),
    [
        ("−1,024.5", 1, "✓ 100 %"),
        ("-1024.505", 1, "✓ 100 %"),
        ("-1024.52\n\n", 0, "The hint"),
        ("7\n-1024.5", 0, "The mistake"),
        ("many\n-1024.5", 1, "Type a number, such as 0.25"),
        ("\n", 0, "−1,024.5"),
    ],
)
def test_a_number_is_marked_by_its_first_answer_and_wrong_ones_explained(
    say, monkeypatch, typed, mark, told
):
    give(monkeypatch, [question("number", kind="numeric")])
    _, out, _ = say("quiz --lang en", f"{typed}\n")
    assert marks() == {"attention-number": mark}
    assert told in out


@pytest.mark.parametrize(
    ("typed", "mark"), [("1", 1), ("2", 0.5), ("no\n３", 0)]
)
def test_code_is_written_elsewhere_and_marked_by_who_wrote_it(
    say, monkeypatch, typed, mark
):
    give(monkeypatch, [question("code", kind="code")])
    _, out, _ = say("quiz --lang en", f"\n{typed}\n")
    assert marks() == {"attention-code": mark}
    assert out.index(f"\n  {TYPED} check FILE.py\n") < out.index(
        "return torch.softmax(scores, dim)"
    )


@pytest.mark.parametrize(
    "task",
    [q for q in course() if q.kind == "code"],
    ids=lambda q: q.id,
)
def test_what_is_printed_of_a_code_question_is_found_by_check(
    capsys, tmp_path, task
):
    Screen("en").code(f"import torch\n\n# checks: {task.task.component}")
    path = tmp_path / "mine.py"
    path.write_text(
        f"import torch\n\n# checks: {task.task.component}\n{task.task.stub}\n",
        encoding="utf-8",
    )
    (part,) = parts_in(read(path), COMPONENTS)
    assert part.component == task.task.component


# Which questions, and in which order


def test_what_was_never_answered_comes_first_then_what_went_worst(
    say, monkeypatch
):
    give(monkeypatch, [question(name) for name in "abc"])
    with closing(Progress(place())) as file:
        for name, mark in (("a", 0.0), ("b", 0.0), ("a", 1.0)):
            file.add(Answer(f"attention-{name}", 1.0, mark, "en", "quiz"))
    _, out, _ = say("quiz --lang en", ENOUGH)
    assert re.findall(r"What is (\w)\?", out) == ["c", "b", "a"]


def test_a_chapter_a_level_and_a_kind_can_be_chosen(say, monkeypatch):
    give(monkeypatch, large())
    line = "quiz --chapter masks rnn --level junior mid --kind debug --lang en"
    _, out, _ = say(line, ENOUGH)
    asked = re.findall(r"What is (\w+)-(\w+)-\d\?", out)
    assert sorted(asked) == 2 * [("junior", "debug")] + 2 * [("mid", "debug")]
    assert out.count("| masks | ") == 4


@pytest.mark.bad_input
def test_a_choice_that_leaves_nothing_is_told(say, monkeypatch):
    give(monkeypatch, large())
    told = say("quiz --chapter rnn --level mid")
    assert told[:2] == (2, "")
    assert "no question of chapter rnn, level mid and kind" in told[2]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "line",
    [
        *("quiz --lang fr", "mock --lang fr", "review --lang fr"),
        *("stats --lang fr", "quiz --chapter mask", "mock --minutes soon"),
    ],
)
def test_an_unknown_option_is_told_with_exit_code_2(capsys, line):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    assert re.search(
        f"argument {line.split()[1]}: invalid .*'{line.split()[2]}'",
        capsys.readouterr().err,
    )


@pytest.mark.bad_input
def test_an_unknown_language_of_a_screen_is_told():
    with pytest.raises(ValueError, match="one of both, en, zh, got 'fr'"):
        Screen("fr")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mock --minutes 1", "minutes: expected 2 or more"),
        ("mock --seed -1", "seed: expected a whole number from 0"),
    ],
)
def test_an_interview_that_cannot_be_is_told(say, monkeypatch, line, said):
    give(monkeypatch, large())
    code, out, err = say(line)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.bad_input
@pytest.mark.parametrize("line", ["quiz", "mock", "review", "stats"])
def test_a_bank_that_was_edited_by_hand_is_told_with_its_place(
    say, tmp_path, monkeypatch, line
):
    (tmp_path / "rnn.toml").write_text("[[question]]\nid = 7\n")
    monkeypatch.setattr("companion.interview.model.bank.BANK", tmp_path)
    code, out, err = say(line)
    assert (code, out) == (2, "")
    assert re.match("error: rnn.toml.*question 1.*key 'id'.*got 7", err)
    assert not place().exists()


# The end


def test_q_and_the_end_of_the_input_end_politely_and_nothing_is_lost(
    say, monkeypatch
):
    give(monkeypatch, [question(name) for name in "abcd"])
    for typed in ("\na\n", "\na\nq\n", "\na\n Q \n\na\n"):
        code, out, err = say("quiz --lang en", typed)
        assert (code, err) == (0, "")
        assert "Answered: 1, on average 100 %" in out
        assert "Remembered in" in out
    assert len(answers()) == 3


@pytest.mark.parametrize("line", ["quiz", "mock", "review"])
def test_ctrl_c_ends_politely_with_130_and_nothing_is_lost(
    say, monkeypatch, line
):
    questions = [question(name) for name in "abcd"]
    give(monkeypatch, questions)
    with closing(Progress(place())) as file:
        for each in questions:
            file.add(Answer(each.id, 1.0, 0.0, "en", "quiz"))
    typed = iter(["", "", "a", ""])

    def stopped():
        for line in typed:
            return line
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", stopped)
    code, out, err = say(f"{line} --lang en")
    assert (code, err) == (130, "")
    assert "Answered: 1" in out
    assert len(answers()) == 5


def test_a_command_of_a_real_terminal_has_colour_and_a_pipe_has_none(tmp_path):
    def on_a_terminal(**more):
        above, below = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "companion", "quiz", "--lang", "zh"],
            stdin=below,
            stdout=below,
            stderr=below,
            cwd=ROOT,
            env=os.environ
            | {"XDG_DATA_HOME": str(tmp_path), "TERM": "xterm-256color"}
            | {"COLUMNS": "40"}
            | more,
        )
        os.close(below)
        seen = b""
        while b"Enter" not in seen and (piece := os.read(above, 4096)):
            seen += piece
        os.write(above, b"q\n")
        assert child.wait(timeout=60) == 0
        os.close(above)
        return seen.decode()

    shown = on_a_terminal()
    assert "\033[1m" in shown
    assert "\033[33m" in shown
    shown = on_a_terminal(NO_COLOR="1")
    assert not re.search("\033\\[[0-9;]*3[0-9]", shown)
    shown = on_a_terminal(TERM="dumb")
    assert "\033[" not in shown
    assert max(map(cell_len, shown.splitlines())) <= 40


def test_a_terminal_that_knows_no_chinese_gets_question_marks(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "companion", "stats", "--lang", "zh"],
        cwd=ROOT,
        env=os.environ
        | {"XDG_DATA_HOME": str(tmp_path), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"??" in done.stdout
    assert b"attention" in done.stdout


# Memory


@pytest.mark.bad_input
@pytest.mark.parametrize("how", ["newer", "a folder", "no folder"])
def test_without_memory_the_quiz_says_so_once_and_goes_on(say, small, how):
    if how == "newer":
        Progress(place()).close()
        with closing(sqlite3.connect(place())) as file:
            file.execute("PRAGMA user_version = 99")
    elif how == "a folder":
        place().mkdir(parents=True)
    else:
        place().parent.parent.mkdir(exist_ok=True)
        place().parent.touch()
    code, out, err = say("quiz --lang en", "\na\n\nb\n")
    assert (code, err) == (0, "")
    assert out.count("not remembered from here on: ") == 1
    # A long path is wrapped.
    assert place().parent.name in out.replace("\n", "")
    assert "Answered: 2, on average 100 %" in out
    assert "Remembered" not in out
    for line in ("stats", "review"):
        code, out, err = say(line)
        assert code == 2
        assert err.startswith("error: ")


@pytest.mark.bad_input
def test_a_disk_that_fills_up_is_told_and_the_quiz_goes_on(
    say, small, monkeypatch
):
    def full(self, answer, interview):
        raise OSError("progress: x: database or disk is full")

    monkeypatch.setattr(Progress, "add", full)
    code, out, err = say("quiz --lang en", "\na\n\nb\n")
    assert (code, err) == (0, "")
    assert " ".join(out.split()).count("disk is full") == 1
    assert "Answered: 2, on average 100 %" in out


@pytest.mark.parametrize("line", ["quiz", "stats", "review"])
def test_a_damaged_file_is_kept_and_told(say, small, line):
    place().parent.mkdir(parents=True)
    place().write_text("precious")
    _, out, _ = say(f"{line} --lang en")
    (kept,) = place().parent.glob("*damaged*")
    assert kept.read_text() == "precious"
    assert f"kept as{kept}" in "".join(out.split("\n")).replace(
        "kept as ", "kept as"
    )
    assert "was damaged" in out


# Review and stats


def test_review_asks_what_is_due_and_says_when_nothing_is(say, monkeypatch):
    give(monkeypatch, [question(name) for name in "abc"])
    out = say("review --lang en")[1]
    assert out == f"Nothing to review yet. Begin with:\n  {TYPED} quiz\n"
    long_ago = (datetime.now(UTC) - timedelta(days=40)).timestamp()
    with closing(Progress(place())) as file:
        file.add(Answer("attention-b", long_ago, 1.0, "en", "quiz"))
    _, out, _ = say("review --lang en", "\na\n")
    assert re.findall(r"What is (\w)\?", out) == ["b"]
    assert answers()[-1].source == "review"
    assert re.search(r"due today\. Next: 20\d\d-", say("review --lang en")[1])


def test_an_answer_to_a_question_that_is_gone_counts_for_its_heir(say):
    old, new = next(iter(retired().items()))
    with closing(Progress(place())) as file:
        file.add(Answer(old, time.time(), 1.0, "en", "quiz"))
    code, out, _ = say("stats --lang en")
    assert code == 0
    (line,) = re.findall(rf"(?m)^ *{new.partition('-')[0]} .*$", out)
    assert re.search(r" 1/\d+ +100 %", line)


def test_stats_count_a_question_once_by_its_last_mark(say, monkeypatch):
    give(monkeypatch, [question(name) for name in "abc"])
    # However long, a command is one line.
    python = f"/a/{'long/' * 20}python"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "orig_argv", [python])
        out = say("stats --lang en")[1]
    assert f"Begin with:\n  {python} -m companion quiz\n" in out
    with closing(Progress(place())) as file:
        for name, mark in (("a", 0.0), ("a", 1.0), ("b", 0.5)):
            file.add(Answer(f"attention-{name}", 1.0, mark, "en", "quiz"))
    _, out, _ = say("stats --lang en")
    assert re.search(r"attention +2/3 +75 % +2", out)
    assert re.search(r"rnn +0/0", out)
    assert f"Due today: 2. To answer:\n  {TYPED} review\n" in out


# The mock interview


def test_an_interview_on_paper(say, monkeypatch):
    """Every look at the clock is 30 seconds after the one before."""
    ticks = SimpleNamespace(
        monotonic=itertools.count(0.0, 30.0).__next__, time=time.time
    )
    monkeypatch.setattr("companion.interview.terminal.session.time", ticks)
    numbers = ("numeric", "number", "senior", 3, "On numbers")
    bank = [
        question("words"),
        question("numbers", "attention", *numbers),
    ]
    give(monkeypatch, bank)
    typed = "\na\n\n7\n\n"
    code, out, err = say("mock --lang en --minutes 6 --seed 4", typed)
    assert (code, err) == (0, "")
    asked, rest = out.split("Minutes")
    reported, missing = rest.split("What was missing")
    assert "2 questions, 6 minutes. Seed 4" in asked
    assert "1/2 | attention | junior | concept | 3 min | 0:30 / 6:00" in asked
    assert "2/2 | attention | senior | number | 3 min | 1:30 / 6:00" in asked
    assert "Long" not in asked + reported
    assert re.search(r"attention-words +0:30 / 3:00 +100 %", reported)
    assert re.search(r"attention-numbers +0:30 / 3:00 +0 %", reported)
    assert re.search(r"\n +1:00 / 6:00 +50 %", reported)
    assert "Strengths\nconcept\n\nGaps\nnumber\n" in reported
    assert "Read again\n· attention: On numbers\n" in reported
    assert "Long numbers" in missing
    assert "Long words" not in missing
    assert {each.source for each in answers()} == {"mock"}


def test_an_interview_that_is_left_early_still_reports(say, monkeypatch):
    give(monkeypatch, [question(name) for name in "abcd"])
    _, out, _ = say("mock --lang en --minutes 12", "\n\nq\n")
    assert "Gaps\nattention, concept\n" in out
    assert "What was missing" not in out
    assert "Answered: 1, on average 0 %" in out


def test_an_interview_of_which_nothing_was_answered_has_no_report(
    say, monkeypatch
):
    give(monkeypatch, [question(name) for name in "abcd"])
    code, out, err = say("mock --minutes 12", "q\n")
    assert (code, err) == (0, "")
    assert "Nothing was answered, so there is nothing to report." in out
    assert "没有作答，所以没有报告。" in out
    assert "Minutes" not in out
    assert answers() == []


def test_the_seed_of_an_interview_is_drawn_and_told(say, monkeypatch):
    give(monkeypatch, large())
    _, out, _ = say("mock --lang en")
    seed = re.search(r"Seed (\d+)", out)[1]
    prompt = re.search(r"What is .*\?", out)[0]
    assert prompt in say(f"mock --lang en --seed {seed}")[1]


# An interview that was broken off

MOCK = "mock --lang en --minutes 12"


def waiting():
    with closing(Progress(place())) as file:
        return file.waiting()


def asked_in(out):
    """The questions that were asked, of which some are explained later."""
    return re.findall(r"What is (\w)\?", out.partition("Minutes")[0])


@pytest.fixture
def broken_off(say, monkeypatch):
    """Two of four questions are answered, with 100 % and 25 %, then Ctrl-C."""
    give(monkeypatch, [question(name) for name in "abcd"])
    typed = iter(["", "a", "", "", "1", ""])

    def stopped():
        for line in typed:
            return line
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("builtins.input", stopped)
        code, out, err = say(MOCK)
    assert (code, err) == (130, "")
    assert "The interview waits: mock goes on with it." in out
    return asked_in(out)


def test_an_interview_that_was_broken_off_goes_on_where_it_was(say, broken_off):
    code, out, err = say(MOCK, "\n\na\n\n\na\n")
    assert (code, err) == (0, "")
    assert out.startswith("An interview waits, left 0 min ago: 2 of 4 answered")
    assert re.findall(r"(\d/4) \|", out) == ["3/4", "4/4"]
    # The third was on the screen when Ctrl-C came.
    assert asked_in(out)[0] == broken_off[2]
    assert {*asked_in(out), *broken_off} == {*"abcd"}
    assert not {*asked_in(out)} & {*broken_off[:2]}
    assert "Answered: 4, on average 81 %" in out
    assert re.findall(r"/ 3:00 +(\d+ %)", out) == [
        *("100 %", "25 %", "100 %", "100 %")
    ]
    assert len(answers()) == 4
    assert waiting() is None
    assert "waits" not in say(MOCK)[1]


def test_the_clock_of_an_interview_goes_on_where_it_was(say, monkeypatch):
    """Every look at the clock is 30 seconds after the one before."""
    give(monkeypatch, [question(name) for name in "ab"])
    ticks = itertools.count(0.0, 30.0)
    clock = SimpleNamespace(monotonic=ticks.__next__, time=time.time)
    monkeypatch.setattr("companion.interview.terminal.session.time", clock)

    typed = iter(["", "a"])

    def stopped():
        for line in typed:
            return line
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("builtins.input", stopped)
        say("mock --lang en --minutes 6")
    # Asked at 0:30, answered at 1:00.
    assert waiting().clock == 60.0
    _, out, _ = say("mock --lang en --minutes 6", "\n\na\n")
    assert "1 of 2 answered, 1:00 / 6:00." in out
    assert "2/2 | attention | junior | concept | 3 min | 1:30 / 6:00" in out
    assert re.search(r"\n +1:00 / 6:00 +100 %", out)


def test_an_interview_that_waits_can_be_left_or_begun_anew(say, broken_off):
    before = waiting()
    assert len(before.marks) == 2
    # Who stops at once, or answers nothing in the new one, loses nothing.
    for typed in ("q\n", "", "what\nq\n", "n\nq\n", "n\n"):
        code, out, err = say(MOCK, typed)
        assert (code, err) == (0, "")
        assert out.count("Enter, n or q, please.") == typed.count("what")
        assert waiting() == before
    code, out, _ = say(MOCK, " Ｎ \n\na\nq\n")
    assert code == 0
    assert "1/4" in out
    assert "Answered: 1, on average 100 %" in out
    assert waiting() is None


def test_ctrl_c_before_an_answer_leaves_the_interview_that_waits(
    say, broken_off, monkeypatch
):
    before = waiting()

    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", stopped)
    code, _, err = say(MOCK)
    assert (code, err) == (130, "")
    assert waiting() == before


def test_an_interview_of_which_only_the_report_is_missing_reports(
    say, broken_off, monkeypatch
):
    """As if it was killed between the last answer and the report."""
    with monkeypatch.context() as patch:
        patch.setattr(Session, "finish", lambda session: None)
        say(MOCK, "\n\na\n\n\na\n")
    assert len(waiting().marks) == 4
    _, out, _ = say(MOCK, "\nq\n")
    assert "4 of 4 answered" in out
    assert "What is" not in out.partition("What was missing")[0]
    assert re.search(r"\n +0:\d\d / 12:00 +81 %", out)
    assert waiting() is None


def test_a_question_that_is_gone_is_not_asked(say, broken_off, monkeypatch):
    for gone in (broken_off[0], broken_off[2]):
        left = [question(name) for name in "abcd" if name != gone]
        give(monkeypatch, left)
        _, out, _ = say(MOCK, "q\n")
        done = 1 if gone == broken_off[0] else 2
        assert f"{done} of 3 answered" in out
    _, out, _ = say(MOCK, "\n\na\n")
    assert "3/3" in out
    assert "Answered: 3, on average 75 %" in out
    give(monkeypatch, [question("other", "masks")])
    assert "waits" not in say(MOCK)[1]


def test_a_killed_interview_goes_on(say):
    seed = next(
        seed
        for seed in range(100)
        if pick(course(), seed=seed)[0].kind == "open"
    )
    picked = pick(course(), seed=seed)
    process = subprocess.Popen(
        [sys.executable, "-m", "companion", "mock", "--seed", str(seed)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("\na\n\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith(f"2/{len(picked)} |"):
            break
    process.kill()
    process.communicate()
    assert waiting().questions == tuple(q.id for q in picked)
    assert waiting().marks == {picked[0].id: 1.0}
    _, out, _ = say("mock --lang zh", "\nq\n")
    assert f"有一场面试没有做完（0 分钟前）：已答 1 / {len(picked)} 题" in out
    assert f"2/{len(picked)} |" in out
    assert [each.question for each in answers()] == [picked[0].id]


@pytest.mark.bad_input
def test_without_memory_an_interview_runs_and_nothing_waits(say, small):
    place().mkdir(parents=True)
    code, out, err = say(MOCK, "1\n1\n\n")
    assert (code, err) == (0, "")
    assert out.count("not remembered from here on: ") == 1
    assert "Answered: 1" in out
    assert "waits" not in out


def test_ago_is_told_in_minutes_hours_and_then_as_a_date():
    assert ago(3599.0, 0.0).en == "59 min ago"
    assert ago(3600.0, 0.0).zh == "1 小时前"
    assert ago(86_399.0, 0.0).en == "23 h ago"
    noon = datetime(2026, 3, 2, 12).astimezone().timestamp()
    assert ago(86_400.0, noon).en == "on 2026-03-02 12:00"
    assert ago(-9.0, noon).en == "0 min ago"


# One source


def test_a_changed_answer_is_said_in_the_terminal(
    tmp_path, monkeypatch, capsys
):
    one = changed(tmp_path, monkeypatch, "It is 4711 squirrels")
    session = Session(Screen("en"), "quiz")
    questions = [each for each in course() if each.id == one.id]
    session.explain_all(questions)
    session.progress.close()
    assert "\nIt is 4711 squirrels" in capsys.readouterr().out
