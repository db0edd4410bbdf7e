"""The bank as an editor would read it: nothing amiss, and what is, is found."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from lint_bank import faults

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]

EN, ZH = " ".join(["word"] * 70), "字" * 60
GOOD = f"""# One question.
[[question]]
id = "attention-one"
kind = "open"
asks = "concept"
level = "mid"
minutes = 3
section = "Why √dₖ"
source = "new"
proof = "03_attention#attention-dot-product"
prompt = {{ en = "Why?", zh = "为什么？" }}
points = [
  {{ en = "One", zh = "一" }}, {{ en = "Two", zh = "二" }},
  {{ en = "Three", zh = "三" }}, {{ en = "Four", zh = "四" }},
]
short = {{ en = "{EN}", zh = "{ZH}" }}
answer = {{ en = "{EN}", zh = "{ZH}" }}
wrong = {{ en = "This.", zh = "这样。" }}
why = {{ en = "No.", zh = "不对。" }}
follow = [{{ en = "And then?", zh = "然后呢？" }}]
"""


def choice(number, right, lengths=(4, 4, 4), kind="choice"):
    """A question with three options; the right one and their lengths."""
    options = "".join(
        f'  {{ text = {{ en = "{"a" * length}", zh = "{"字" * length}" }}, '
        f'why = {{ en = "So.", zh = "如此。" }}'
        f"{', right = true' if place == right else ''} }},\n"
        for place, length in enumerate(lengths)
    )
    start, _, rest = GOOD.partition("points = [")
    start = start.replace("-one", f"-c{number}").replace("open", kind)
    rest = rest.partition("]\n")[2].partition("wrong")[0]
    follow = GOOD.partition("follow")[2]
    return f"{start}options = [\n{options}]\n{rest}follow{follow}"


@pytest.fixture
def found(tmp_path):
    """The faults of a bank of one file, whose ids are all known."""

    def linted(text, ids=None):
        folder = tmp_path / "bank"
        folder.mkdir()
        (folder / "attention.toml").write_text(text, encoding="utf-8")
        known = re.findall(r'^id = "(.*)"', text, re.MULTILINE)
        path = tmp_path / "ids.txt"
        path.write_text("\n".join(known if ids is None else ids))
        return [
            fault
            for fault in faults(folder, path)
            if not fault.startswith("notes.toml")
        ]

    return linted


def test_nothing_is_amiss_in_the_bank():
    if amiss := faults():
        pytest.fail("\n".join(["python tools/lint_bank.py says:", *amiss]))


def test_a_good_question_raises_no_alarm_but_one_is_no_bank(found):
    amiss = found(GOOD)
    assert len(amiss) == 4
    assert "bank: 1 of 'all': write 180 or more" in amiss
    assert "bank: 0 of 'code': write 30 or more" in amiss
    assert "bank: 0 of 'debug': write 25 or more" in amiss
    assert "bank: 0 of 'numeric': write 30 or more" in amiss


CELL = "03_attention#attention-dot-product"
FAULTS = [
    (
        f'short = {{ en = "{EN}"',
        'short = { en = "a b"',
        "short.en has 2 words or signs: write 25 to 75",
    ),
    (
        f'"{ZH}" }}\nanswer',
        f'"{ZH * 3}" }}\nanswer',
        "short.zh has 180 words or signs: write 40 to 130",
    ),
    (
        f'answer = {{ en = "{EN}"',
        'answer = { en = "a b"',
        "answer.en has 2 words: write 60 to 200",
    ),
    ("为什么？", "Why?", "prompt.zh has no Chinese: translate it"),
    ("Why?", "Why 为什么?", "prompt.en has Chinese: translate it"),
    (
        "This.",
        "A feedforward one.",
        "'feedforward': write 'feed-forward', as the book",
    ),
    ("这样。", "集束搜索。", "'集束搜索': write '束搜索', as the book does"),
    (
        "Why √dₖ",
        "Why sqrt",
        "section 'Why sqrt': name a heading of its chapter",
    ),
    (CELL, "03_attention#gone", "proof '03_attention#gone': name a cell, or"),
    (
        CELL,
        "test_gone",
        "proof 'test_gone': name a cell, or a test that exists",
    ),
]


@pytest.mark.bad_input
@pytest.mark.parametrize(("old", "new", "fault"), FAULTS)
def test_a_fault_comes_with_file_line_id_and_what_to_do(found, old, new, fault):
    assert old in GOOD
    amiss = found(GOOD.replace(old, new, 1))
    assert f"attention.toml:3 attention-one: {fault}" in "\n".join(amiss)
    assert len(amiss) == 5


@pytest.mark.parametrize(("times", "faults"), [(0, 5), (1, 4), (2, 5)])
def test_a_proof_is_a_test_in_any_folder_defined_once(
    found, monkeypatch, times, faults
):
    monkeypatch.setattr("lint_bank.tests", lambda: {"test_x": [ROOT] * times})
    amiss = found(GOOD.replace(CELL, "test_x"))
    assert len(amiss) == faults


@pytest.mark.bad_input
def test_a_renamed_question_is_noticed_twice(found):
    amiss = "\n".join(found(GOOD, ids=["attention-two"]))
    assert "ids.txt: 'attention-two' is in no file. Give the question" in amiss
    assert "ids.txt: 'attention-one' is new: add a line" in amiss


@pytest.mark.parametrize(("spread", "even"), [(0, False), (1, True)])
def test_the_right_option_stands_everywhere_as_often(found, spread, even):
    amiss = found("".join(choice(n, spread * n % 3) for n in range(12)))
    about = [fault for fault in amiss if "right one is number" in fault]
    assert about == ([] if even else about[:1])
    assert even or "is number 1 in 12: move some, 4 would be even" in about[0]


@pytest.mark.parametrize(
    ("long", "advice"), [(1, "lengthen"), (2, ""), (5, ""), (6, "shorten")]
)
def test_the_right_option_is_not_the_longest_by_habit(found, long, advice):
    def lengths(n):
        return [9 if n < long and place == n % 3 else 4 for place in range(3)]

    amiss = found("".join(choice(n, n % 3, lengths(n)) for n in range(12)))
    about = [fault for fault in amiss if "the longest in" in fault]
    assert len(about) == (2 if advice else 0)
    if advice:
        said = f"of 12 choices the right option is the longest in en in {long}"
        assert f"{said}: {advice} some" in about[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It has 65 504 of them.", "'65 504': write '65,504'"),
        ("$4 · 512^2 = 1 048 576$", "'1 048 576': write '1,048,576'"),
        ("It has 65,504; see `0 100 200`, and 3 heads of 512.", None),
        ("0.5 100 times", None),
    ],
)
def test_a_blank_between_thousands_is_refused(found, text, said):
    amiss = found(GOOD.replace("And then?", text))
    about = [fault for fault in amiss if "': write '" in fault]
    assert [said in fault for fault in about] == [True] * bool(said)


def test_the_linter_needs_no_package_and_says_so_with_its_exit_code():
    done = subprocess.run(
        [sys.executable, "-S", "tools/lint_bank.py"],
        capture_output=True,
        cwd=ROOT,
        env={"PYTHONIOENCODING": "utf-8"},
        text=True,
        encoding="utf-8",
    )
    assert done.stderr == ""
    assert (done.returncode == 0) == (done.stdout == "no fault\n")
